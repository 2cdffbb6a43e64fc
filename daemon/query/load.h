/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Load: one segment's dictionaries as arrays by id, its names as content keys
 *
 * A sealed segment may come from anybody: every id is checked against its array, ids must rise in
 * the order of their table, and a stack's caller must come before it; a segment that breaks these
 * rules is damaged.
 */

#include "daemon/query/query.h"
#include "daemon/store/key.h"

/* Ids of one dictionary; the store's own limits are 8 million stacks and below. */
#define QUERY_IDS_MAX (1u << 24)
/* Events of one segment: a session has EVENTS_MAX, merged tiers some more. */
#define QUERY_EVENTS_MAX 256
/* Slot for samples with an impossible hart. */
#define HART_UNKNOWN HARTS_MAX

struct loaded_event {
	bool known, clock, cycles, instructions;
	bool offcpu; /* time that threads waited; a clock, too */
	/* occurrences that each sample represents, if its time is not known; 0: a sample
	 * represents time */
	uint64_t period;
	uint32_t name; /* text */
	uint32_t type;
	uint64_t config;
	uint8_t modifiers;
};

struct loaded_hart {
	bool known, user_only;
	uint8_t rung;
	uint32_t leader; /* event; 0: none */
	uint32_t core;   /* text: name of its platform; 0: not known */
};

/* The event per rung, for a roll-up of sources that attributed a hart's time by different events;
 * 0: any. */
#define LEADER_AS_HART UINT16_MAX
struct loaded_leaders {
	uint16_t at[HARTS_MAX + 1][RUNG_ASKED + 1];
};

/* Errors that rotation may cause in the counts of harts in a pass. */
#define LOADED_TURNS_MAX EVENTS_MAX /* a pass has at least one event */
struct loaded_turn {
	struct hart_set harts;
	unsigned pass;
	double part;
};

struct loaded_note {
	struct hart_set harts;
	uint32_t event; /* 0: of no single event */
	uint32_t says;  /* text */
};

struct loaded_task {
	int32_t pid, tid;
	uint32_t process; /* task; itself if the segment does not say */
	int64_t start_ns;
	uint64_t owner;      /* uid + 1; 0 not known */
	uint32_t comm, argv; /* texts; of a program, argv is its path */
	uint32_t cgroup;     /* text: path */
	uint32_t labels;     /* text: labels of its process's job, as JSON; 0: none */
	uint32_t labels_uid; /* user of these labels */
	bool known;
};

struct loaded_file {
	uint8_t kind;
	bool hidden;        /* part of a hidden kernel */
	bool has_debug;     /* debug information was found */
	uint8_t state;      /* enum file_state */
	bool split_missing; /* inlined functions of some of its frames are missing */
	uint32_t module;    /* text: what to call it */
	uint32_t build_id;  /* text, in hexadecimal digits; "" or 0: none */
};

/* The name of a file in answers: its path, if it has one (NULL: none). */
static inline const char *loaded_call_file(enum file_kind kind, const char *path, bool absent)
{
	if (kind == FILE_KERNEL)
		return "[kernel]";
	if (path && *path && !absent)
		return path;
	return kind == FILE_ANON || absent ? "[anonymous]" : "[unknown]";
}

struct loaded_place {
	uint32_t function, source, line; /* texts; line 0 unknown */
	bool inlined;
};

struct loaded_frame {
	uint32_t file;            /* 0: no such frame */
	uint32_t place, n_places; /* range in places, innermost first */
	uint8_t state;
	uint64_t offset; /* as in the segment */
};

struct loaded_window {
	bool known, wanted; /* passes the filter, and is in the requested part */
	int64_t start_ns, end_ns, realtime_ns;
};

/* Everything of one segment except its sample rows. Arrays are indexed by id; n_x is the highest
 * id. */
struct loaded {
	sqlite3 *db;
	const char *path;
	struct text_table *texts; /* of the whole query */
	struct query_error *error;

	uint32_t boot; /* text */
	uint32_t hz;
	uint32_t hz_lowest; /* 0: the kernel never cut the rate */
	bool hz_mixed;
	unsigned cut; /* CUT_* */
	enum tier tier;
	int64_t since_ns, until_ns; /* of its windows' starts; 0: open */
	enum query_pin pin;
	/* ids of the samples to read; all: the whole range of int64 */
	int64_t first, last;
	bool hide_kernel;
	struct loaded_event event[QUERY_EVENTS_MAX];
	struct loaded_hart hart[HARTS_MAX + 1];
	struct loaded_leaders *leaders; /* NULL: as in hart */
	struct loaded_turn turn[LOADED_TURNS_MAX];
	uint32_t n_turns;
	struct loaded_note *note;
	uint32_t n_notes, size_notes;
	struct loaded_task *task;
	struct loaded_file *file;
	struct loaded_frame *frame;
	struct loaded_place *place;
	struct {
		uint32_t parent, frame;
	} *stack;
	bool *whole; /* by stack: it reaches the start of its program or thread; NULL: not known */
	uint32_t *
		sleeper; /* by stack: without the waker above it (aggregate/waker.h); NULL: no stack has one */
	uint32_t *
		split_missing; /* by stack: the first file with split_missing; NULL: no stack has one */
	struct loaded_window *window;
	uint32_t n_tasks, n_files, n_frames, n_places, n_stacks, n_windows;
	uint32_t size_places, n_functions, n_sources;
	uint32_t *function, *source; /* texts, by id */
	uint32_t unknown_name;       /* text "[unknown]" */
	uint32_t kernel_name;        /* text "[kernel]" */
	uint32_t unlisted_name;      /* text "[kernel_unlisted]" */
	struct load_marks *marks;    /* which entries are needed; NULL: all */
};

/* Load what a query needs: names of functions and lines only with `places`. If only a part of the
 * file is requested (or the filter's time excludes windows), load only what that part refers to.
 * Call loaded_clear in any case. 0, QUERY_FAILED, -errno. */
struct load_wish {
	bool places;
	bool loops; /* also load tasks that loops counted for */
	bool tasks; /* load all tasks, also those without samples */
	const struct query_filter *filter;
	int64_t since_ns, until_ns; /* of its windows' starts; 0: open */
	enum query_pin pin;
};
int load_segment(struct loaded *l, sqlite3 *db, struct text_table *texts,
	const struct load_wish *wish, struct query_error *ret_error);
void loaded_clear(struct loaded *l);

/* Set clock, cycles and instructions from type and config. */
void loaded_event_classify(struct loaded_event *e);

/* The event by which a hart's time is attributed at a rung; 0: any. */
uint32_t loaded_leader(const struct loaded *l, uint32_t hart, uint8_t rung);
/* The stack without that of a waker. */
static inline uint32_t loaded_sleeper(const struct loaded *l, uint32_t stack)
{
	return l->sleeper && stack <= l->n_stacks ? l->sleeper[stack] : stack;
}
/* The leaf frame of a stack, of the thread that waits if it has a waker; frame 0 if there is none. Borrowed. */
const struct loaded_frame *loaded_leaf(const struct loaded *l, uint32_t stack);
/* Module of a frame, as text. Code without a name outside the kernel's text is "[kernel_unlisted]". */
uint32_t loaded_module(const struct loaded *l, const struct loaded_frame *frame);

/* A name for code that has none in the segment: of code in a file, the 4 KiB of the file that it is in; of other
 * user code, "[unknown]" and the mapping. 0, QUERY_FAILED, -ENOMEM. */
int loaded_call_code(const struct loaded *l, const struct loaded_frame *f, uint32_t *ret_function);
/* Code without a symbol has the same name only in the same build of its file: the build id's text + 1 (1: it has
 * none); 0: it has a symbol, or is in no file, or in the vdso, whose build is not known. */
uint64_t loaded_build(const struct loaded *l, const struct loaded_frame *f);
/* load_segment: give frames without a place one with that name. 0, QUERY_FAILED, -ENOMEM. */
int load_code(struct loaded *l);

/* Rows of one statement, in order of a rising id in column 0 (column 1 breaks ties if `pairs`). */
struct cursor {
	struct loaded *loaded;
	sqlite3_stmt *statement;
	bool pairs; /* ids recur, with another number in column 1 */
	bool ties;  /* both may recur: the caller limits the rows */
	bool begun;
	int64_t last, last_pair;
};
enum { CURSOR_END = -10000 }; /* neither an errno nor an outcome */
int cursor_open(struct cursor *c, struct loaded *l, const char *sql);
/* Restart the statement, with these as ?1 and ?2. 0, QUERY_FAILED, -ENOMEM. */
int cursor_bind(struct cursor *c, int64_t first, int64_t second);
/* 0, CURSOR_END, QUERY_FAILED (also if ids do not rise), -errno. */
int cursor_next(struct cursor *c);
void cursor_close(struct cursor *c);
static inline int64_t cursor_integer(const struct cursor *c, int column)
{
	return sqlite3_column_int64(c->statement, column);
}
/* Column as an id of at most max; 0 if it is not one. */
uint32_t cursor_id(const struct cursor *c, int column, uint32_t max);
/* Column as a text's id. 0, QUERY_FAILED, -ENOMEM. */
int cursor_text(const struct cursor *c, int column, uint32_t *ret_text);

/* Fill *error and return QUERY_FAILED. */
int query_fail(struct query_error *error, Mperf__FailureKind kind, const char *remedy,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
int query_fail_damaged(const struct loaded *l, const char *what);
/* The same for an SQLite result other than success: the file is damaged; or, for a read error, a lock or a full
 * disc, that the file cannot be read now, so that it is left out but not set aside. QUERY_FAILED or -ENOMEM. */
int query_fail_sqlite(struct query_error *error, const char *path, sqlite3 *db, int rc);
/* Outcome of a key or text table: 0 and -errno unchanged, KEY_TABLE_FULL as a failure. */
int query_fail_full(const struct loaded *l, int r);
