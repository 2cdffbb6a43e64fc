/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A worker of the namer, and what the namer keeps: private to daemon/attribute/namer*.c
 *
 * A worker has one question at a time, so that whatever befalls it is that question's fault.
 *
 * A slot is a file at the namer: what it waits for, the descriptors held for it, the frames that
 * want a name. Slots are in at most one queue:
 *
 *      (none) ──namer_name──▶ to_name ──no descriptor──▶ to_open ──opened──▶ to_name ──▶ (none)
 *                                ▲──────────────── wants debug file ──┘
 */

#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/attribute/namer.h"
#include "daemon/namer/message.h"

#define WORKER_START_TIMEOUT_NS 10000000000u /* to exec and say hello, on a loaded board */
#define WORKER_GRAVES_MAX (2 * NAMER_RESTARTS_MAX + 4) /* killed, but not gone yet */
#define NAMER_DEBUG_HANGS_MAX 3u /* then no separate debug files: their file system is dead */
#define NAMER_IMAGES_BYTES_MAX (1ull << 30)    /* of files loaded at the parser at the same time */
#define NAMER_COPIES_BYTES_MAX (512ull << 20)  /* of remote files, copied into memory */
#define NAMER_STRINGS_BYTES_MAX (512ull << 20) /* names; beyond it frames are FRAME_UNNAMED */
#define NAMER_DEATHS_MAX 3u      /* of the parser over one process's stacks; then no more of them */
#define NAMER_BARRED_MAX 64u     /* processes remembered for that; the oldest is forgotten */
#define NAMER_JOBS_LOOKED_AT 16u /* to find one that need not wait for the opener */
#define NAMER_ROUNDS_MAX 64u     /* questions answered in one dispatch; the loop has other work */
#define NAMER_RETRY_NS 1000000000u /* then a perf map that was missing is looked for again */

/* --- worker ---------------------------------------------------------------------------------- */

enum worker_state {
	WORKER_DEAD,
	WORKER_STARTING, /* no hello yet */
	WORKER_IDLE,
	WORKER_BUSY,
	WORKER_BROKEN, /* could not be asked: gone without having seen the question */
};

/* What ended a worker. */
enum worker_end {
	WORKER_OVER_TIME,
	WORKER_DIED,   /* on its own: crash, sandbox, memory */
	WORKER_KILLED, /* by a SIGKILL that was not ours: a person, or for want of memory */
	WORKER_LIED,   /* sent what it should not */
	WORKER_OFF,    /* nothing of its own doing: the other one was given up */
};

struct worker {
	enum worker_role role;
	enum worker_state state;
	pid_t pid;
	int fd;
	uint32_t serial; /* of the last question */
	uint64_t deadline_ns;
	uint32_t generation; /* counts starts: what an earlier one was given is gone */
	uint32_t restarts;
};

/* Killed workers that have not been reaped: one that is stuck in the kernel stays here. */
struct graves {
	pid_t pid[WORKER_GRAVES_MAX];
	size_t n;
};

int worker_start(struct worker *w, const char *binary, uint64_t now_ns);
/* Kill, close, bury. */
void worker_kill(struct worker *w, struct graves *g);
void graves_visit(struct graves *g);
/* The same for the last time: gives the killed some milliseconds to go. */
void graves_leave(struct graves *g);
/* After the socket ended: how? Waits a few milliseconds at most. */
enum worker_end worker_autopsy(struct worker *w);
/* Ask: fills the head of iov[0] in. 0, or -errno: WORKER_BROKEN then. */
int worker_ask(struct worker *w, enum message_type type, struct iovec *iov, size_t n_iov, int fd,
	uint64_t deadline_ns);
/* One answer. Bytes, -EAGAIN, 0: gone, -EBADMSG: nonsense. Hellos are taken in here. */
ssize_t worker_hear(struct worker *w, void *buffer, size_t size, int *ret_fd);
int worker_find_binary(const char *given, char **ret_path);

/* --- names ----------------------------------------------------------------------------------- */

struct string;
struct strings {
	struct string *set; /* uthash */
	uint64_t bytes;
};
/* The one copy of n bytes; NULL when there is no room. */
const char *strings_intern(struct strings *s, const char *text, size_t n);
void strings_clear(struct strings *s);
/* Free all but those that were kept since the last time; text is what strings_intern gave. */
void strings_keep(const char *text);
void strings_sweep(struct strings *s);

/* --- files ----------------------------------------------------------------------------------- */

struct slot {
	TAILQ_ENTRY(slot) by_use; /* least recently used first */
	TAILQ_ENTRY(slot) queued;
	enum { QUEUE_NONE, QUEUE_OPEN, QUEUE_NAME, QUEUE_FLIGHT } queue;
	struct file *file;
	int fd[N_PARTS];
	uint64_t bytes[N_PARTS];
	uint64_t copied_bytes;
	int64_t written_ns;     /* of the file, when it was opened; 0: unknown */
	uint32_t tried;         /* bit per part: asked the opener, or not worth it */
	enum message_part part; /* that the opener is to find */
	uint32_t first;         /* candidate to begin with */
	char *found;            /* path of the debug file, for its alt link; NULL: the file's own */

	uint32_t given;              /* parser generation that has the descriptor; 0: none */
	uint32_t loaded;             /* … that has the image */
	uint32_t joined;             /* bit per part: handed over since it was loaded */
	uint32_t forgotten;          /* times that the parser lost it in a row */
	uint32_t retries;            /* after a worker was killed from outside */
	struct message_loaded wants; /* valid while loaded */
	uint64_t retry_ns;

	struct frame **frame; /* waiting */
	size_t n_frames, size_frames;
	/* of generated code, asked and not described yet: bounded by FRAMES_MAX */
	struct frame **late;
	size_t n_late, size_late;
	bool stale;    /* is to be opened anew before it is asked again */
	bool renewing; /* … and what it holds is good enough if that fails */
};
TAILQ_HEAD(slot_list, slot);

/* --- stacks ---------------------------------------------------------------------------------- */

/* A copy of a process's mappings, shared by the stacks that were taken under them. */
struct snapshot {
	uint64_t generation;
	uint32_t n_users;
	pid_t pid;
	struct map *map;
	uint32_t n_maps;
	bool asked;         /* the opener was asked for its files */
	bool refused;       /* the parser can make nothing of it */
	uint32_t sent;      /* parser generation that has it; 0: none */
	uint32_t progress;  /* parser generation that the next two are about */
	uint32_t n_sent;    /* maps of it sent so far */
	uint32_t next_file; /* map whose file is to be handed over next */
	UT_hash_handle hh;
};

struct job {
	TAILQ_ENTRY(job) queued;
	struct snapshot *snapshot; /* NULL: fails at once */
	void *ticket;
	uint64_t regs_mask;
	uint32_t n_regs, n_stack;
	uint32_t retries;
	uint8_t bytes[]; /* registers, stack */
};
TAILQ_HEAD(job_list, job);

struct barred {
	pid_t pid;
	uint32_t deaths;
};

/* --- namer ----------------------------------------------------------------------------------- */

struct namer {
	struct namer_options options;
	char *binary;
	struct worker opener, parser;
	struct graves graves;
	bool off;
	bool fresh;  /* something was queued since the last dispatch */
	bool ending; /* namer_ask_again was called: what has no name now gets none */
	uint64_t now_ns;

	struct slot_list slots, to_open, to_name;
	uint32_t n_fds;
	uint64_t copied_bytes;
	uint32_t debug_hangs;
	struct slot *opening; /* the opener's question */

	enum message_type asked; /* the parser's question */
	struct slot *asked_slot;
	struct job *asked_job;
	uint32_t asked_maps;
	struct frame *batch[MESSAGE_OFFSETS_MAX];
	uint32_t n_batch, n_answered;
	bool turn;        /* stacks and names take turns */
	uint32_t *forget; /* files that the parser is to forget */
	size_t n_forget, size_forget;

	struct job_list jobs;
	struct snapshot *snapshots; /* uthash by generation */
	uint64_t job_bytes;
	struct barred barred[NAMER_BARRED_MAX];
	uint32_t n_barred, next_barred;

	struct strings strings;
	size_t n_waiting_frames, n_waiting_jobs;
	uint64_t n_named, n_unwound;
	struct message_map maps[MESSAGE_MAPS_MAX]; /* being sent */
	uint8_t buffer[MESSAGE_BYTES_MAX];         /* being received */
};

static inline uint64_t namer_timeout(uint64_t wanted_ns, uint64_t limit_ns)
{
	return wanted_ns ? wanted_ns : limit_ns;
}

/* namer_slot.c */
int slot_get(struct namer *n, struct file *file, struct slot **ret_slot);
void slot_enqueue_open(struct namer *n, struct slot *s, enum message_part part);
void slot_enqueue_name(struct namer *n, struct slot *s);
void slot_dequeue(struct namer *n, struct slot *s);
void slot_touch(struct namer *n, struct slot *s);
void slot_hold(struct namer *n, struct slot *s, enum message_part part, int fd, uint64_t bytes);
int slot_release(struct namer *n, struct slot *s);
/* Nothing in it can be named (any more). */
bool slot_is_dead(const struct slot *s);
/* Add a frame that waits, wherever the slot is queued. -ENOMEM. */
int slot_push(struct namer *n, struct slot *s, struct frame *frame);
/* Ask the opener for it unless it is held, or hopeless. */
int slot_want(struct namer *n, struct slot *s);
bool slot_is_awaited(const struct namer *n, const struct slot *s);
/* Does it describe generated code, a line for each function as it is made? */
static inline bool slot_grows(const struct slot *s)
{
	return s->file->kind == FILE_PERF_MAP || s->file->kind == FILE_JITDUMP;
}
/* The frames that are late wait again, for what is then opened anew. -ENOMEM. */
int slot_ask_again(struct namer *n, struct slot *s);
/* Open it anew; the parser is to forget what it read before. -ENOMEM. */
int slot_renew(struct namer *n, struct slot *s);
/* Was the file that is held written to since it was opened? Then it is marked replaced. */
bool slot_is_rewritten(struct slot *s);
/* Every waiting frame becomes FRAME_UNNAMED. */
void slot_finish(struct namer *n, struct slot *s);
/* Mark the file and finish. -ENOMEM. */
int slot_fail(struct namer *n, struct slot *s, enum file_state state);
/* The parser is to forget it. */
int slot_forget(struct namer *n, struct slot *s);
/* Close the least recently used idle slot that holds a descriptor. False: none can be spared. */
bool slot_evict(struct namer *n);
void frame_finish(struct namer *n, struct frame *f, enum frame_state state);
struct slot *slot_free(struct slot *s);

/* namer_open.c */
int opener_vdso(struct namer *n, struct slot *s);
int opener_feed(struct namer *n, bool *ret_fed);
int opener_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes, int fd);
int opener_ended(struct namer *n, enum worker_end end);

/* namer_parse.c: positive from hear: more answers to this question will come */
enum { PARSER_MORE = 1 };
int parser_feed(struct namer *n, bool *ret_fed);
int parser_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes);
int parser_ended(struct namer *n, enum worker_end end);
int parser_give(struct namer *n, struct slot *s, enum message_part part);

/* namer_unwind.c */
int job_feed(struct namer *n, bool *ret_fed);
int job_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes);
void job_step_done(struct namer *n, int error);
void job_ended(struct namer *n, enum worker_end end);
void jobs_fail(struct namer *n);
void jobs_free(struct namer *n);
