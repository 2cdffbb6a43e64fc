/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A crew: a thread on each of some harts, which run one kernel at the same time
 *
 * Each thread is pinned before it first touches its memory, so that the memory is near it. A job
 * warms the kernel up, waits for all, runs for a time, and ends with a chain of additions, from
 * which the clock follows.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/roofs/measure/kernel.h"

struct crew;

struct job {
	const struct kernel *kernel;
	uint64_t bytes;  /* working set of each hart for memory kernels; at most the crew's */
	uint64_t run_ns; /* at least so long */
	uint64_t warm_ns;
};

struct job_result {
	double rate;    /* of all harts, per second: operations or bytes */
	double hz;      /* the slowest hart's clock */
	bool disturbed; /* a thread lost its hart, or a hypervisor took one */
};

/* Start threads on the harts `number`, each with `bytes` bytes, in huge pages if `huge` is set and
 * the kernel has some. The caller frees. 0, -ENOMEM, -errno. */
int crew_new(const uint32_t *number, size_t n, uint64_t bytes, bool huge, struct crew **ret_crew);

/* Run a job on all of them. */
void crew_run(struct crew *c, const struct job *job, struct job_result *ret_result);

/* The share of their memory that is in huge pages. */
double crew_huge(const struct crew *c);

/* Ends the threads. Returns NULL. */
struct crew *crew_free(struct crew *c);
