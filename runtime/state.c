/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The state itself, its lock and its clock.
 */
#include <time.h>

#include "runtime/state.h"

struct state mperf_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t mperf_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void mperf_lock(struct state *s, sigset_t *ret_mask)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, ret_mask);
	pthread_mutex_lock(&s->lock);
}

void mperf_unlock(struct state *s, const sigset_t *mask)
{
	pthread_mutex_unlock(&s->lock);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}
