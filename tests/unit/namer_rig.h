/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A namer on a bench: real workers, a table of files, and a loop that runs until all is answered */

#include "daemon/naming/namer.h"

#define NAMER_RIG_RESULTS_MAX 64

struct namer_rig {
	struct namer *namer;
	struct file_table files;
	uint32_t n_named;
	struct unwind_result result[NAMER_RIG_RESULTS_MAX];
	uint32_t n_results;
	uid_t uid;    /* in whose name frames are asked for; at first our own */
	char dir[64]; /* scratch, removed by namer_rig_end */
};

/* "parse" or "open": a worker that this very binary plays, as the environment says:
 * NAMER_RIG_ROLE (which role is fake) and NAMER_RIG_PLAY; the other role is the real worker. Plays:
 * mute, garbage, dumb, stranger; parsers: forgetful (of spaces, and of files when asked for names),
 * loadless, full, mortal (dies when asked for names), greedy (wants ever more split units); openers: half (hangs over debug files).
 * Called first in main; returns only if this is no worker. */
void namer_rig_main(int argc, char **argv);
const char *namer_rig_self(void);

/* Paths of the workers; tests: the one with traps. Fails the test if it was not built. */
const char *namer_rig_worker(bool tests);

void namer_rig_begin(struct namer_rig *r, const struct namer_options *o);
/* The same with a worker in that role that plays; o->binary is not looked at. */
void namer_rig_begin_fake(
	struct namer_rig *r, const char *role, const char *as, const struct namer_options *o);
void namer_rig_end(struct namer_rig *r);

/* Dispatch until the namer is idle. False after 30 seconds. */
bool namer_rig_run(struct namer_rig *r);
/* One dispatch, after waiting at most that long for a worker. */
void namer_rig_step(struct namer_rig *r, int timeout_ms);
/* Let the parser give one answer, at most, and stop it: what changes then, changes between two answers.
 * SIGCONT when that is over. */
pid_t namer_rig_one_answer(struct namer_rig *r);
/* CPU time of this process and of the parser so far. Wall time would include that of others. */
double namer_rig_cpu_seconds(const struct namer_rig *r);

/* A path in the scratch directory. Static. */
const char *namer_rig_path(struct namer_rig *r, const char *name);
/* Copy a file; with a shell command run over it (%s: its path), or NULL. */
const char *namer_rig_copy(struct namer_rig *r, const char *from, const char *name);
int namer_rig_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A file as a mapping would announce it; inode and device are left unknown. */
struct file *namer_rig_file(struct namer_rig *r, enum file_kind kind, const char *path);
struct frame *namer_rig_frame(struct namer_rig *r, struct file *f, uint64_t offset);
/* Name it and wait. */
struct frame *namer_rig_name(struct namer_rig *r, struct file *f, uint64_t offset);
/* The name of the symbol around the frame: its last place; "" if it has none. */
const char *namer_rig_symbol(const struct frame *f);

/* A copy of `from` with that section (NULL: none), for the test worker, which belongs to this user.
 * Only root can make another's. */
struct file *namer_rig_file_of(
	struct namer_rig *r, uid_t uid, const char *from, const char *section, const char *name);
/* Ask for a function's name in a copy of this program that belongs to this user, and see
 * it come. */
struct frame *namer_rig_ask_honest(struct namer_rig *r, uid_t uid, const char *name);
void namer_rig_is_honest(const struct frame *f);
/* Its offset in this program. */
uint64_t namer_rig_landmark(void);

/* Where an address of this process lies: path and file offset. */
struct namer_rig_spot {
	char path[512];
	uint64_t start, end, offset;
};
struct namer_rig_spot namer_rig_find(const void *addr);
