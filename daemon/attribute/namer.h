/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The namer, seen from the daemon
 *
 * Two workers do what is dangerous (DESIGN.md decision 8): the opener opens files and parses
 * nothing, the parser parses and unwinds and opens nothing. The daemon passes descriptors from one
 * to the other without reading them. All calls queue and return at once; results come from
 * namer_dispatch through the callbacks. A worker that is over its time is killed and started
 * again; the file it was at is marked (FILE_HUNG, FILE_SPUN, FILE_CRASHED) and not tried again, and
 * the user responsible for it is charged: after some deaths no file of that user is tried for a
 * while; others go on. Users are served in turn, the one who has had the least time first.
 *
 *      daemon ──open──▶ opener (may open, parses nothing)
 *        ▲  ◀──fd────────┘
 *        └──fd, offsets, stacks──▶ parser (seccomp: cannot open, connect, exec)
 *           ◀──names, frames──────┘
 */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/attribute/file.h"
#include "daemon/attribute/task.h"

#define NAMER_OPEN_TIMEOUT_NS 2000000000u   /* a local disc opens in milliseconds; a cold NFS in one second */
#define NAMER_PARSE_TIMEOUT_NS 20000000000u /* DWARF of a 1 GB binary takes about ten seconds on a board */
#define NAMER_WALL_TIMES 4u /* of the time limit that a parser may sleep away, over a slow disc */
#define NAMER_FILE_BYTES_MAX (4ull << 30)   /* larger files are FILE_OVERSIZE */
#define NAMER_PARSER_BYTES_MAX (3ull << 30) /* RLIMIT_AS of the parser: one such file mapped, and its tables */
#define NAMER_FILES_OPEN_MAX 256            /* descriptors kept; the oldest are closed and opened anew on need */
#define NAMER_UNWIND_BYTES_MAX (64u << 20)  /* copied stacks waiting; one user's as much as is left of it.
	                                     * Beyond it LOSS_UNWIND */

struct namer;

enum { NAMER_FULL = 1 };

/* A copied stack to unwind. */
struct unwind_job {
	const struct space *space;   /* mappings at the time of the sample; copied into the request */
	pid_t pid;
	uid_t uid;                   /* of the process; (uid_t)-1: unknown */
	uint64_t regs_abi, regs_mask;
	const uint64_t *regs;        /* popcount(regs_mask), may be unaligned; copied */
	const uint8_t *stack;        /* copied */
	size_t n_stack;
	uint64_t sp_hint;            /* 0 */
	void *ticket;                /* handed back */
};

/* Frames that an unwind gave, leaf first. Call sites have 1 taken off their return address. */
struct unwind_result {
	void *ticket;
	struct {
		struct file *file;   /* NULL: in no mapping */
		uint64_t offset;     /* in the sense of the file's kind; address where file is NULL */
	} frame[256];
	size_t n_frames;
	bool truncated;              /* ended before the outermost frame */
	bool failed;                 /* not even one caller: worker gone, no CFI, refused */
};

#define WORKER_GRAVES_MAX 256u /* killed, but not gone yet; then none is started until one is */

/* Killed workers that have not been reaped: one that is stuck in the kernel, or finds no hart to end on,
 * stays here. */
struct graves {
	struct {
		pid_t pid;
		uid_t uid; /* in whose name it was at work */
	} worker[WORKER_GRAVES_MAX];
	size_t n;
};

struct namer_options {
	const char *binary;          /* path of mperf-namer; NULL: beside mperfd, then MPERF_LIBEXECDIR */
	uint64_t open_timeout_ns, parse_timeout_ns; /* 0: the limits above */
	struct file_table *files;    /* borrowed */
	struct graves *graves;       /* borrowed: workers of namers before, and later ours, that were not
	                                gone yet; reaped as namers come and go; NULL: none are kept */
	bool own;                    /* names are for none but whose rights we have */
	void (*named)(void *userdata, struct frame *frame); /* state and places are set */
	void (*unwound)(void *userdata, const struct unwind_result *r);
	void *userdata;
};

/* Start both workers. -errno if the binary is not there. */
int namer_new(const struct namer_options *o, struct namer **ret_namer);

/* Ask for a file early, while the process that mapped it lives, in the name of that process's user;
 * (uid_t)-1: unknown. Idempotent. 0 or -ENOMEM. */
int namer_open(struct namer *n, struct file *file, uid_t uid);

/* True, and the file is marked replaced, if other contents were written to it since it was opened:
 * who maps it now runs those. A call of the kernel that waits for nothing. */
bool namer_is_rewritten(struct namer *n, struct file *file);

/* Name a frame (FRAME_NEW → FRAME_ASKED). Batched per file. 0 or -ENOMEM. A frame of generated code
 * that no line describes yet stays FRAME_ASKED, and is not waited for, until namer_ask_again. */
int namer_name(struct namer *n, struct frame *frame, uid_t uid);

/* A frame that is FRAME_ASKED was seen in this user's process: it need not wait for the turn of
 * another, who asked first. 0 or -ENOMEM. */
int namer_hurry(struct namer *n, struct frame *frame, uid_t uid);

/* Name a frame that is FRAME_NEW without asking anybody, such as one that stands for many. Copied.
 * 0, NAMER_FULL (it stays as it was), -ENOMEM. */
int namer_name_as(struct namer *n, struct frame *frame, const char *function);

/* All has run that will: open what describes generated code anew, and ask it once more for the
 * frames that had no name. From now on every answer is the last. 0 or -ENOMEM. */
int namer_ask_again(struct namer *n);

/* Queue a copied stack. 0, NAMER_FULL, -ENOMEM. */
int namer_unwind(struct namer *n, const struct unwind_job *job);

/* What to poll (at most NAMER_FDS_MAX) and by when to call namer_dispatch at the latest
 * (CLOCK_MONOTONIC ns, UINT64_MAX: no hurry). Descriptors change when a worker is restarted. */
#define NAMER_FDS_MAX 2
int namer_fds(const struct namer *n, struct pollfd ret_fds[NAMER_FDS_MAX]);
uint64_t namer_deadline_ns(const struct namer *n);

/* Send and receive what is possible without blocking, kill who is over time. 0 or -errno. */
int namer_dispatch(struct namer *n, uint64_t now_ns);

/* True when nothing is queued or under way. */
bool namer_idle(const struct namer *n);

/* Frames and stacks that are still waiting. */
size_t namer_waiting(const struct namer *n);

/* For attribute_sweep (sweep.h), in this order: mark what is queued or under way; give up what is
 * held for files, and frames that wait for a name that may come, which are not kept (0 or -ENOMEM);
 * free names that no frame of the table bears any more. */
struct sweep;
void namer_sweep_mark(const struct namer *n, struct sweep *s);
int namer_sweep_slots(struct namer *n, const struct sweep *s);
void namer_sweep_names(struct namer *n);

/* How a worker is. */
struct namer_worker_status {
	pid_t pid;                   /* 0: none runs */
	uint32_t restarts;
	const char *state;           /* static: "waits", "works", "starts", "failed" */
	uint64_t ended_ns;           /* when it last ended; 0: never */
	uint64_t start_ns;           /* failed: when it is tried again */
	int error;                   /* why it could not be started; 0 */
};

/* A user for whom naming pauses at present, and why. */
struct namer_refused {
	uid_t uid;
	const char *what;            /* static: "files", "stacks", "opening files" */
	uint32_t deaths;
	uint64_t since_ns;
	uint64_t until_ns;
};

#define NAMER_REFUSED_SHOWN_MAX 64u /* in one status; the sum counts all */

struct namer_status {
	struct namer_worker_status opener, parser;
	bool off;                    /* a worker does not come up: nothing is named until it does */
	uint64_t n_deaths;           /* of workers, over a file or stack */
	uint32_t n_faulty;           /* files remembered for that */
	size_t n_waiting;            /* frames and stacks */
	uint64_t n_named, n_unwound;
	uint32_t n_refused;
	struct namer_refused refused[NAMER_REFUSED_SHOWN_MAX];
};
void namer_status(const struct namer *n, struct namer_status *ret_status);

/* Kills the workers (without waiting for one that is stuck in the kernel). Returns NULL. */
struct namer *namer_free(struct namer *n);
