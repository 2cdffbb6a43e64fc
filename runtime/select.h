/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Selection: which entries into functions in two bodies count (mode clone of the pass)
 *
 *      MPERF_LOOPS, MPERF_SAMPLE ─┐
 *                                 ├─▶ selection ─▶ one_in of each struct mperf_choice
 *      SELECT of the daemon ──────┘
 *
 * A function is selected if a glob matches its name, or the name of a function whose loops were
 * inlined into it. 1 in N entries of selected functions counts, and no entry of other functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state;
struct mperf_choice;

/* Largest N of 1 in N. At 10,000, even the most expensive counting costs only a few hundredths of
 * its full cost, and a change of N takes effect after at most 2 N entries. */
#define MPERF_ONE_IN_MAX 10000u
/* All globs together; fits a message (ask.c). */
#define MPERF_GLOBS_BYTES_MAX 2048u
/* Characters of a name that are compared; C++ templates have longer names, whose rest is
 * ignored. */
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

/* The N of a variable of the environment, at most MPERF_ONE_IN_MAX; 1 if it is not a number. */
uint32_t mperf_select_one_in(const char *variable);

/* Take the selection from the environment: MPERF_SAMPLE=N and MPERF_LOOPS=GLOB[,GLOB]. If N is not
 * a number each entry counts; globs beyond MPERF_GLOBS_BYTES_MAX are ignored. */
void mperf_select_init(struct selection *s);

/* Replace it: globs as in SELECT. 0; -EBADMSG: malformed or too long, and nothing changes. */
int mperf_select_set(struct selection *s, uint32_t one_in, const char *globs, uint32_t globs_bytes);

/* Is one of these names, each ended by NUL and the last by two, selected? Exported for tests. */
bool mperf_select_has(const struct selection *s, const char *names);

/* Write the selection to all choices; under the lock. Linear in choices times globs. */
void mperf_select_apply(struct state *s);

/* Add and remove an object's choices, which follow the selection while added; under the lock.
 * Without memory they stay unchanged. */
void mperf_select_add(struct state *s, struct mperf_choice *first, struct mperf_choice *end);
void mperf_select_remove(struct state *s, const struct mperf_choice *first);

/* Unmap all of that, at the end of this copy of the runtime. */
void mperf_select_release(struct state *s);

/* Does a name match a glob, in which * stands for any text and ? for one character?
 * Exported for tests. */
bool mperf_glob_fits(const char *glob, const char *name);
