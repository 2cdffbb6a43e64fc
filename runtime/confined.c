/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We wait by counting, since reading the clock is a system call where the vDSO has none.
 */
#include "runtime/confined.h"

/* An iteration takes 1 to 100 ns, so the wait takes 10 ms to 1 s, mostly 100 ms. If the sender gets
 * no CPU for so long, it sends later, without our waiting. */
#define TURNS_MAX 10000000u

static void turn(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

void mperf_confined_round(struct state *s)
{
	if (!s->has_sender)
		return;
	uint32_t wanted = __atomic_add_fetch(&s->rounds_wanted, 1, __ATOMIC_ACQ_REL);
	for (uint32_t i = 0; i < TURNS_MAX; i++) {
		if ((int32_t)(__atomic_load_n(&s->rounds_made, __ATOMIC_ACQUIRE) - wanted) >= 0)
			return;
		turn();
	}
}

void mperf_confined_end(struct state *s)
{
	__atomic_store_n(&s->stop, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; s->has_sender && i < TURNS_MAX; i++) {
		if (__atomic_load_n(&s->sender_ended, __ATOMIC_ACQUIRE))
			break;
		turn();
	}
	s->has_sender = false;
}

bool mperf_confined_lock(struct state *s)
{
	for (uint32_t i = 0; i < TURNS_MAX; i++) {
		if (pthread_mutex_trylock(&s->lock) == 0)
			return true;
		turn();
	}
	return false;
}

void mperf_confined_unlock(struct state *s)
{
	pthread_mutex_unlock(&s->lock);
}
