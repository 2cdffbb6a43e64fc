/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Selection: which entries into functions of two bodies count (mode clone of the pass)
 *
 *      MPERF_LOOPS, MPERF_SAMPLE ─┐
 *                                 ├─▶ selection ─▶ one_in of each struct mperf_choice
 *      SELECT of the daemon ──────┘
 *
 * A function is selected if a glob matches its name, or that of a function whose loops were inlined
 * into it. Of its entries then 1 in N counts; of others none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state;
struct mperf_choice;

/* Of 1 in N. With 10,000 counting is one part in hundreds of what it was where it is dearest, and who
 * chooses another N waits for twice as many entries at most. */
#define MPERF_ONE_IN_MAX 10000u
/* All globs together; they fit a message (ask.c). */
#define MPERF_GLOBS_BYTES_MAX 2048u
/* Letters of a name that are compared; templates of C++ have longer ones, whose rest is not seen.
 */
#define MPERF_NAME_BYTES_MAX 4096u

struct selection {
	uint32_t one_in;      /* as in SELECT */
	uint32_t globs_bytes; /* 0: all functions */
	char globs[MPERF_GLOBS_BYTES_MAX];
};

/* The choices of one object. */
struct choices {
	struct choices *next;
	struct mperf_choice *first; /* NULL: free */
	struct mperf_choice *end;
};

/* Take the selection from the environment: MPERF_SAMPLE=N and MPERF_LOOPS=GLOB[,GLOB]. What is no
 * number counts each entry; globs beyond MPERF_GLOBS_BYTES_MAX are left out. */
void mperf_select_init(struct selection *s);

/* Take another: globs as SELECT has them. 0; -EBADMSG: they are none that fit, and all stays as it
 * is. */
int mperf_select_set(struct selection *s, uint32_t one_in, const char *globs, uint32_t globs_bytes);

/* Is one of these names, each ended by NUL and the last by two, selected? */
bool mperf_select_has(const struct selection *s, const char *names);

/* Tell all choices; under the lock. Linear in choices times globs. */
void mperf_select_apply(struct state *s);

/* Does a name fit a glob, in which * stands for anything and ? for one letter? */
bool mperf_glob_fits(const char *glob, const char *name);
