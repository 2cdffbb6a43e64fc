/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Files that code was mapped from, and the frames in them
 *
 * A frame is (file, offset), in generated code also a version (version.h), and is named once. Files are
 * distinguished by build id if there is one, else by (device, inode, path). A file mapped by processes of
 * several users is a separate file for each user: they may differ in who may read its names, and anyone can
 * make a file with another's build id. Code outside files has a file of its own kind: the kernel, each
 * module, the vdso, the JIT area of one process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/naming/frame_index.h"
#include "daemon/naming/quota.h"
#include "daemon/naming/version.h"
#include "proto/base/hash_table.h"

/* distinct executables and libraries; a full Debian has fewer. Beyond it, and beyond a user's quota: LOSS_ROOM */
#define FILES_MAX 65536
/* some 90 bytes each with its index: 72 MB; beyond it, LOSS_ROOM, too */
#define FRAMES_MAX 800000
/* Bytes that a pool is charged for a frame and for a file. */
#define FRAME_BYTES 90u
#define FRAME_VERSION_BYTES 16u /* more for one of generated code */
#define FILE_BYTES 500u /* with a path of up to FILE_PATH_BYTES; a longer one takes more places */
#define FILE_PATH_BYTES 256u

/* Stored: do not renumber. */
enum file_kind {
	FILE_ELF = 1,      /* executable, library; offset is the file offset */
	FILE_KERNEL = 2,   /* offset from _stext */
	FILE_MODULE = 3,   /* offset from the module's start */
	FILE_VDSO = 4,     /* offset from its start */
	FILE_PERF_MAP = 5, /* /tmp/perf-PID.map of one process; offset is the address */
	FILE_JITDUMP = 6,  /* jit-PID.dump of one process; offset is the address */
	FILE_ANON = 7,     /* executable memory without a name; offset is the address */
	FILE_UNKNOWN = 8,  /* address in no mapping that we know; offset is the address */
};

static inline bool file_is_kernel(enum file_kind kind)
{
	return kind == FILE_KERNEL || kind == FILE_MODULE;
}

/* Size of the kernel's own text, from _stext on; code elsewhere, and in no module, was generated or came after the
 * modules were listed. Debian's has 20 MB, and its image twice as much. */
#define FILE_KERNEL_TEXT_BYTES (32u << 20)

/* State of a file at the namer. Stored: do not renumber. */
enum file_state {
	FILE_UNSEEN = 0, /* not asked for yet */
	FILE_OPENING = 1,
	FILE_READY = 2,      /* opened; frames can be named */
	FILE_VANISHED = 3,   /* gone, or replaced by another */
	FILE_REFUSED = 4,    /* we may not open it */
	FILE_NO_SYMBOLS = 5, /* parsed; has no symbols and no debug information */
	FILE_MALFORMED = 6,  /* does not parse */
	FILE_HUNG = 7,       /* opening took too long: the opener was killed */
	FILE_SPUN = 8,       /* the parser ran out of time and was killed */
	FILE_CRASHED = 9,    /* the parser died over it */
	FILE_OVERSIZE = 10,  /* above the limits of size or memory */
};
/* In place of 1 for has_debug, in the store. */
#define FILE_DEBUG_SPLIT_MISSING 2
const char *file_state_says(enum file_state s); /* static: "the parser ran out of time" */
/* Was the file never there? The perf map of a process has an entry before anyone has looked for it. */
static inline bool file_is_absent(enum file_kind kind, enum file_state state, bool has_symbols)
{
	return kind == FILE_PERF_MAP && !has_symbols &&
	       (state == FILE_UNSEEN || state == FILE_OPENING || state == FILE_VANISHED);
}

/* Identity of the file last opened for this struct, or for the earlier one of the same key. If the next
 * look finds the same identity, we look less often. */
struct file_seen {
	uint64_t device, inode, bytes;
	int64_t changed_ns, status_ns;
	uint64_t for_ns; /* assumed unchanged for this long; 0: not found unchanged yet */
};

/* Ancestors of the process that mapped a file. They are remembered since they usually live
 * longer. */
#define FILE_KIN 2
struct file_kin {
	pid_t pid; /* 0: none */
	uint64_t start_ns;
};

struct file {
	uint32_t id; /* from 1, in order of first sight; key in the store */
	enum file_kind kind;
	enum file_state state;
	char *path; /* as the process saw it; "[kernel]", "[vdso]", "[nf_tables]" */
	uint8_t build_id[20];
	uint8_t n_build_id;
	uint32_t major, minor;
	uint64_t inode;
	/* of the inode number, which may be reused; of generated code: when the program started
	 * (its exec), since several may run under the same pid; 0: not known (yet) */
	uint64_t generation;
	bool replaced; /* another file has taken its place */
	/* its status changed since it was opened: processes that map it from now on may run other contents */
	bool touched;
	struct file_seen seen;
	/* CLOCK_MONOTONIC; 0: never, since we notice changes. After this time, a process that maps the file gets a
	 * new one: this one is a copy (a container's, a server's), which does not show changes of the original, or
	 * it was not found. */
	uint64_t look_again_ns;
	bool sampled; /* private to the namer: since it last looked at it */
	bool deleted; /* path ended in " (deleted)", which was cut off */

	/* path for opening it while the process is alive */
	pid_t pid; /* of a process that mapped it */
	uint64_t pid_start_ns;
	uint64_t map_start, map_end; /* for /proc/PID/map_files */
	/* the nearest first: they may have the same mounts, for when the process is gone */
	struct file_kin kin[FILE_KIN];
	/* CLOCK_MONOTONIC, of the first mapping seen; 0: unknown. Contents written later did not
	 * run then */
	uint64_t mapped_ns;
	pid_t mapper;  /* process that mapped it then; 0: it has exec'd since */
	uid_t uid;     /* user of the process, to whom the names are shown; -1: unknown */
	uid_t account; /* the user who is charged for its place in the table, */
	uint32_t size; /* or places */
	uint32_t age;  /* of the table when it was last asked for */

	bool has_symbols, has_debug; /* found by the parser */
	/* no file was found with the split unit of some requested name; with has_debug */
	bool split_missing;
	uint64_t symbols_named, symbols_out; /* frames by outcome */
	struct versions *versions;           /* of generated code; NULL: nothing changed */
	uint64_t first_ns; /* CLOCK_MONOTONIC, of the first sample in it; 0: none has a time */
	char *debug_path;  /* of its debug file, fetched from elsewhere; owned; NULL: none was */
	void *namer_slot;  /* the namer's own */
	UT_hash_handle hh;
};

/* Is it a description of generated code, to which its compiler adds? Then offsets are addresses. */
static inline bool file_grows(const struct file *f)
{
	return f->kind == FILE_PERF_MAP || f->kind == FILE_JITDUMP;
}

/* Outcome of naming one frame. Stored: do not renumber. */
enum frame_state {
	FRAME_NEW = 0,
	FRAME_ASKED = 1,
	FRAME_NAMED = 2,         /* inside a sized symbol, or a JIT entry */
	FRAME_OUT_OF_SYMBOL = 3, /* file has symbols, none covers the address */
	FRAME_UNNAMED = 4,       /* file has no symbols, or could not be read: see its state */
	FRAME_PLACED = 5,        /* no symbol covers the address; its function's start is known */
};

/* Name code without a symbol: by the start of its function, "libbz2.so.1.0.4+0x51a0"; or, if that is not known, by the
 * 4 KiB around an address in it, "libbz2.so.1.0.4+0x5xxx". The file's name comes from the mapping, so a file
 * cannot give its code the name of another's. Returns the length. */
#define CODE_NAME_BYTES 300 /* NAME_MAX, "+0x", 16 digits */
size_t file_call_code(
	const char *path, uint64_t addr, bool is_start, char ret_name[static CODE_NAME_BYTES]);

/* A (function, file, line) of a frame; place 0 is the innermost inlined function, the last is
 * the symbol itself. */
struct place {
	/* demangled; NULL unknown; interned by the namer client, borrowed */
	const char *function;
	const char *source; /* path; NULL unknown; interned */
	uint32_t line;      /* 0 unknown */
	bool inlined;
};

struct frame {
	uint32_t id; /* from 1; key in the store */
	uint16_t n_places;
	enum frame_state state : 8;
	/* private to the namer: index of the user whose turn names it, or FRAME_LATE */
	uint8_t asker;
	struct file *file;
	uint64_t offset;
	struct place *place; /* n_places, owned */
	uint32_t age;        /* of the table when it was last asked for */
	uid_t account;       /* the user who is charged for its place in the table */
};
_Static_assert(sizeof(struct frame) <= 40, "millions of them: a chunk of 48 bytes each");

/* A frame with a version: all frames of files that grow have one. */
struct frame_of_version {
	struct frame frame;
	uint32_t version;
};

static inline uint32_t frame_version(const struct frame *f)
{
	return file_grows(f->file) ? ((const struct frame_of_version *)f)->version : 0;
}

/* Asker of a FRAME_ASKED frame if the source of its name does not exist yet, or is refused for a while. */
#define FRAME_LATE UINT8_MAX

/* Is its name being looked up? The name of a late frame may never come. */
static inline bool frame_is_awaited(const struct frame *f)
{
	return f->state == FRAME_NEW || (f->state == FRAME_ASKED && f->asker != FRAME_LATE);
}

struct file_table {
	struct file *by_key; /* uthash */
	struct frame_index frames;
	uint32_t n_files, n_frames; /* the highest ids */
	struct file **file;         /* by id - 1; NULL: freed by a sweep */
	struct frame **frame;       /* by id - 1; NULL: likewise */
	size_t size_file, size_frame;
	/* ids below n_files, n_frames; the next one to reuse is last */
	uint32_t *free_file, *free_frame;
	uint32_t n_free_files, n_free_frames;
	uint32_t age;       /* counts up over time, to find idle entries */
	uint64_t aged_ns;   /* CLOCK_MONOTONIC of the last increment */
	uint64_t n_refused; /* because the table, or the user's quota of it, was full */
	uint64_t
		n_asked_anew; /* outcomes of frames that were taken back, to name the frames by other files */
	struct quota files_of, frames_of; /* places of each user */
	/* memory that several tables share, in bytes, and the user who owns the table; NULL: none */
	struct quota *pool;
	uid_t pool_uid;
};

/* The description of a file by its mapping. */
struct file_key {
	enum file_kind kind;
	const char *path;
	const uint8_t *build_id;
	uint8_t n_build_id;
	uint32_t major, minor;
	uint64_t inode;
	uint64_t generation; /* as in struct file; 0: unknown, which matches any */
	uid_t uid;           /* of the process; part of the key of ELF files */
	/* not in the key: the user charged for a new file's place in the table */
	uid_t account;
	pid_t pid; /* part of the key only for kinds that belong to one process */
	uint64_t pid_start_ns;
};

/* Find or add. 0, FILE_TABLE_FULL, -ENOMEM. */
enum { FILE_TABLE_FULL = 1 };
int file_get(struct file_table *t, const struct file_key *key, struct file **ret_file);
/* The same file for a process of that user, on that account; the file itself if it is not ELF or already
 * that user's. The caller sets the process to open it through. 0, FILE_TABLE_FULL, -ENOMEM. */
int file_of_user(
	struct file_table *t, struct file *file, uid_t uid, uid_t account, struct file **ret_file);
/* Find or add a frame. account: the user in whose process it was seen, who is charged for its place in the table
 * if it is new. time_ns: of the sample, for generated code (version_at). */
int frame_get_for(struct file_table *t, struct file *file, uint64_t offset, uint64_t time_ns,
	uid_t account, struct frame **ret_frame);
/* The same for the file's user. */
int frame_get(struct file_table *t, struct file *file, uint64_t offset, struct frame **ret_frame);

/* Replace a frame's places by these, which it takes over. More than FRAME_PLACES take extra room from the user's
 * quota; without that room only the last place, the symbol itself, remains. */
#define FRAME_PLACES 4u
void frame_set_places(struct file_table *t, struct frame *frame, struct place *place, uint16_t n);

/* Memory of all walks, recordings and tops of clients together, of which each has a quota. */
#define POOL_BYTES_MAX (128ull << 20)

/* Marks that tell a sweep (daemon/attribute/sweep.h) what to do with an id; the highest mark applies. */
enum { SWEEP_FREE = 0, SWEEP_RESERVED = 1, SWEEP_KEPT = 2 };

/* Marks of a table's ids, at [id - 1]. */
struct file_marks {
	uint8_t *frame, *file;
	uint32_t n_frames, n_files;
};

/* Ids that are not in the table are skipped. */
static inline void mark_raise(uint8_t *mark, uint32_t n, uint32_t id, uint8_t to)
{
	if (id > 0 && id <= n && mark[id - 1] < to)
		mark[id - 1] = to;
}

/* NULL is skipped. */
static inline void file_marks_keep(struct file_marks *m, const struct file *file)
{
	if (file)
		mark_raise(m->file, m->n_files, file->id, SWEEP_KEPT);
}

static inline void file_marks_keep_frame(struct file_marks *m, const struct frame *frame)
{
	if (frame)
		mark_raise(m->frame, m->n_frames, frame->id, SWEEP_KEPT);
}

/* Free all frames and files except those marked SWEEP_KEPT; files of kept frames must be marked
 * too, and freed files must have no slot at the namer. Ids of the others are reused unless
 * SWEEP_RESERVED. 0; -ENOMEM: nothing was freed. */
int file_table_sweep(struct file_table *t, const struct file_marks *marks);

void file_table_clear(struct file_table *t);
