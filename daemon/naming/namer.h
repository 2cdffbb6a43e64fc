/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The namer: the daemon's side
 *
 * Two workers do the dangerous work: the opener opens files and parses
 * nothing, the parser parses and unwinds and opens nothing. The daemon passes descriptors from one
 * to the other without reading them. All calls queue and return at once; results come from
 * namer_dispatch through the callbacks, or at once where the answer for a frame's function is known.
 * A worker that exceeds its time is killed and restarted; the
 * file that it worked on is marked (FILE_HUNG, FILE_SPUN, FILE_CRASHED) and not tried again, and
 * the responsible user is charged: after several deaths no file of that user is tried for a while;
 * other users are not affected. Users are served in turn, the one who has used the least time
 * first.
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

#include "daemon/naming/file.h"
#include "daemon/naming/space.h"

/* a local disk opens in milliseconds, a cold NFS in one second */
#define NAMER_OPEN_TIMEOUT_NS 2000000000u
/* DWARF of a 1 GB binary takes about ten seconds on a board */
#define NAMER_PARSE_TIMEOUT_NS 20000000000u
/* the time limit may be exceeded this many times while the parser sleeps, on a slow disk */
#define NAMER_WALL_TIMES 4u
/* Larger files are FILE_OVERSIZE. The largest with debug information have some 10 GB. A quarter of
 * sv39's 256 GiB, our smallest address space. Source: Documentation/arch/riscv/vm-layout.rst */
#define NAMER_FILE_BYTES_MAX (64ull << 30)
/* RLIMIT_DATA of the parser: its tables, but not the mapped files, whose pages take memory only
 * when read */
#define NAMER_PARSER_BYTES_MAX (3ull << 30)
/* open descriptors; the oldest are closed, and opened again when needed */
#define NAMER_FILES_OPEN_MAX 256
/* waiting copied stacks; one user may take as much as is left for others. Beyond it: LOSS_UNWIND */
#define NAMER_UNWIND_BYTES_MAX (64u << 20)
#define NAMER_UNWIND_SHARE 16 /* … or this share of the machine's memory: 16 MiB of 256 */

/* Where debug files are by build id: FOLDER/ab/cdef….debug. Source: GDB manual, "Debugging Information in Separate
 * Files". */
#define NAMER_DEBUG_FOLDER "/usr/lib/debug/.build-id"
#define NAMER_DEBUG_PATH_BYTES (sizeof(NAMER_DEBUG_FOLDER "//.debug") + 2 * 20)
/* The path of the debug file for a build id. False: the build id is not a usable one. Exported for tests. */
bool namer_debug_path(const uint8_t *build_id, uint8_t n, char ret_path[NAMER_DEBUG_PATH_BYTES]);
/* Can we read the debug file for a build id? In our own mounts: the opener looks into those of containers. */
bool namer_has_debug_file(const uint8_t *build_id, uint8_t n);

struct namer;

enum { NAMER_FULL = 1 };

/* A copied stack to unwind. */
struct unwind_job {
	/* mappings at the time of the sample; copied into the request */
	const struct space *space;
	pid_t pid;
	uid_t uid; /* the user who pays for it; (uid_t)-1: unknown */
	uint64_t regs_abi, regs_mask;
	const uint64_t *regs; /* popcount(regs_mask), may be unaligned; copied */
	const uint8_t *stack; /* copied */
	size_t n_stack;
	uint64_t sp_hint; /* 0 */
	void *ticket;     /* returned with the result */
};

/* Frames of an unwound stack, leaf first. Call sites are the return address minus 1. */
struct unwind_result {
	void *ticket;
	struct {
		struct file *file; /* NULL: in no mapping */
		/* its meaning depends on the file's kind; the address if file is NULL */
		uint64_t offset;
		uint64_t address; /* of namer_unwind_now alone */
	} frame[256];
	size_t n_frames;
	bool truncated; /* ended before the outermost frame */
	bool deep;      /* since that is beyond the copy */
	uint64_t depth; /* bytes of the copy below the last frame; 0: by elfutils */
	bool failed;    /* not even one caller: worker gone, no CFI, refused */
};

/* killed, but not gone yet; at the limit no worker is started until one is gone */
#define WORKER_GRAVES_MAX 256u

/* Killed workers that have not been reaped, because they are stuck in the kernel or got no CPU time
 * to end. */
struct graves {
	struct {
		pid_t pid;
		uid_t uid; /* user it was working for */
	} worker[WORKER_GRAVES_MAX];
	size_t n;
};

struct namer_options {
	/* path of mperf-namer; NULL: next to mperfd, then MPERF_LIBEXECDIR */
	const char *binary;
	uint64_t open_timeout_ns, parse_timeout_ns; /* 0: the limits above */
	struct file_table *files;                   /* borrowed */
	/* borrowed: killed workers of earlier namers, and later ours, that have not ended yet;
	 * reaped when a namer begins or ends; NULL: none are kept */
	struct graves *graves;
	bool own; /* only the user whose rights we have sees the names */
	void (*named)(void *userdata, struct frame *frame); /* state and places are set */
	void (*unwound)(void *userdata, const struct unwind_result *r);
	void *userdata;
};

/* Start both workers. -errno if the binary is not there. */
int namer_new(const struct namer_options *o, struct namer **ret_namer);

/* May processes that map the file now run other contents? True if it was rewritten since it was opened (it is marked
 * replaced), or if its status changed or a change would not show (it is marked touched). One system call that does not
 * block. */
bool namer_is_rewritten(struct namer *n, struct file *file);

/* Note that another process now runs the file. If the file was not found because the former process was gone, look
 * for it once more, a few times in all. 0 or -ENOMEM. */
int namer_runs(struct namer *n, struct file *file);
/* The last time (CLOCK_MONOTONIC) at which a file was not found, since its process was gone; 0: never. */
uint64_t namer_missed_ns(const struct namer *n);

/* Name a frame that was seen in a process of this user; (uid_t)-1: unknown. A new frame becomes
 * FRAME_ASKED, or has its outcome at once where the answer for its function is known. Its file is
 * opened at once, while the process that mapped it is alive. A
 * FRAME_ASKED frame is named when this user is served, even if another user asked first. Others are
 * unchanged. 0 or -ENOMEM. A frame of generated code that no line describes yet stays FRAME_ASKED,
 * and is not awaited (frame_is_awaited), until namer_ask_again. */
int namer_name(struct namer *n, struct frame *frame, uid_t uid);

/* Name a FRAME_NEW frame without asking the workers, such as one that represents many. The name is
 * copied. 0, NAMER_FULL (the frame is unchanged), -ENOMEM. */
int namer_name_as(struct namer *n, struct frame *frame, const char *function);

/* A frame of generated code of this file was sampled: look at the file next time. */
void namer_sampled(struct namer *n, struct file *file);
bool namer_has_sampled(const struct namer *n);
/* Read on in files of generated code that were sampled since the last call and have grown. Samples taken
 * until now get the right versions (version.h) once the answers have come, some milliseconds later.
 * Makes one system call per file, which does not block. 0 or -ENOMEM. */
int namer_look(struct namer *n, uint64_t now_ns);

/* The recorded programs have ended: open the files that describe generated code again, and ask once
 * more for unnamed frames. From now on every answer is final. 0 or -ENOMEM. */
int namer_ask_again(struct namer *n);

/* Debug files may have been installed: name by them what has no name yet. False: look only at files whose debug file
 * is now where their build id says; true: at all without debug information. 0 or -ENOMEM. */
int namer_look_for_debug(struct namer *n, bool at_all);

/* The ELF file to ask servers for next: it has no debug information but frames without a name, it was sampled most, by
 * calls of namer_name, and may() says that it may be asked for. NULL: none has had samples_min calls. */
const struct file *namer_without_debug(struct namer *n, uint64_t samples_min,
	bool (*may)(void *userdata, const struct file *f), void *userdata);
/* The debug file of that build id was fetched from a server. Its frames without a name are named by it. 0 or -ENOMEM. */
int namer_fetched(struct namer *n, const uint8_t *build_id, uint8_t n_build_id, const char *path);

/* From now on the parser names files for at most this share of one CPU's time, users as ever in turn, and of a user's
 * files the one with most samples first; 0: at once. Files are opened at once in any case. */
void namer_pace(struct namer *n, double share);

/* Find the callers at once, by tables. False: one of them is missing, or does not say all; the stack is to be queued. */
bool namer_unwind_now(
	struct namer *n, const struct unwind_job *job, struct unwind_result *ret_result);
/* Queue a copied stack. 0, NAMER_FULL, -ENOMEM. */
int namer_unwind(struct namer *n, const struct unwind_job *job);

/* The descriptors to poll (at most NAMER_FDS_MAX) and the deadline for calling namer_dispatch (CLOCK_MONOTONIC
 * ns, UINT64_MAX: none). Descriptors change when a worker is restarted. */
#define NAMER_FDS_MAX 2
int namer_fds(const struct namer *n, struct pollfd ret_fds[NAMER_FDS_MAX]);
uint64_t namer_deadline_ns(const struct namer *n);

/* A patient caller calls namer_dispatch within a fraction of a second anyway, and nobody waits for names: a few more of
 * files that are in use are gathered for a second, and their answers need not wake it. */
void namer_be_patient(struct namer *n, bool is_patient);

/* Send and receive what is possible without blocking; kill workers that exceed their time. 0 or
 * -errno. */
int namer_dispatch(struct namer *n, uint64_t now_ns);

/* True if nothing is queued or in progress. */
bool namer_idle(const struct namer *n);

/* Frames and stacks that are still waiting. */
size_t namer_waiting(const struct namer *n);

/* For a sweep, in this order: mark what is queued or in progress; release unkept files and late
 * frames (0 or -ENOMEM); free names that no frame uses any more. */
void namer_sweep_mark(const struct namer *n, struct file_marks *m);
int namer_sweep_slots(struct namer *n, const struct file_marks *m);
void namer_sweep_names(struct namer *n);

/* Status of a worker. */
struct namer_worker_status {
	pid_t pid; /* 0: none runs */
	uint32_t restarts;
	const char *state; /* static: "waits", "works", "starts", "failed" */
	uint64_t ended_ns; /* when it last ended; 0: never */
	uint64_t start_ns; /* failed: time of the next attempt */
	int error;         /* errno of the failed start, or 0 */
};

/* A user for whom naming is paused, and the reason. */
struct namer_refused {
	uid_t uid;
	const char *what; /* static: "files", "stacks", "opening files" */
	uint32_t deaths;
	uint64_t since_ns;
	uint64_t until_ns;
};

#define NAMER_REFUSED_SHOWN_MAX 64u /* listed in one status; n_refused counts all */

struct namer_status {
	struct namer_worker_status opener, parser;
	bool off;          /* a worker does not start: nothing is named until it does */
	uint64_t n_deaths; /* of workers, caused by a file or stack */
	uint32_t n_faulty; /* files remembered as the cause */
	size_t n_waiting;  /* frames and stacks */
	uint64_t n_named,
		n_placed; /* frames with a symbol; with the start of their function alone */
	uint64_t n_unwound;
	uint32_t n_refused;
	struct namer_refused refused[NAMER_REFUSED_SHOWN_MAX];
};
void namer_status(const struct namer *n, struct namer_status *ret_status);
/* The parser's CPU time so far for all users but root, its request in hand included. */
uint64_t namer_users_ns(const struct namer *n);

/* Kill the workers (without waiting for one that is stuck in the kernel). Returns NULL. */
struct namer *namer_free(struct namer *n);
