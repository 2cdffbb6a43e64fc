/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program whose shares of CPU time are known by construction. Two threads do the same rounds of
 * work; a round spends 50, 30, 15 and 5 parts in four functions: a plain one, a recursive one, one
 * in a shared library (shares_library.c), and a small one. The parts are counted in iterations of
 * one and the same loop, so that they hold at any clock rate; at the end the program prints what
 * each function really spent, by CLOCK_THREAD_CPUTIME_ID, which is what a profiler has to find. It begins when the
 * file of its second argument, if it has one, is gone.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

uint64_t library_spin(uint64_t seed, uint64_t n);

static uint64_t thread_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Leaf functions set up no frame of their own, even with -fno-omit-frame-pointer, unless they use
 * it; without one, their caller is missing from a walk along frame pointers. */
#define KEEP_FRAME __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

/* One step of a xorshift; a data dependency that no compiler shortens. */
#define STEP(x) ((x) ^= (x) << 13, (x) ^= (x) >> 7, (x) ^= (x) << 17)

__attribute__((noinline)) uint64_t half(uint64_t x, uint64_t n)
{
	KEEP_FRAME;
	for (uint64_t i = 0; i < n; i++)
		STEP(x);
	return x;
}

/* Spreads its n over ten levels of recursion. */
__attribute__((noinline, noclone, optimize("no-optimize-sibling-calls"))) uint64_t recursive(
	uint64_t x, uint64_t n, int level)
{
	KEEP_FRAME;
	for (uint64_t i = 0; i < n / 10; i++)
		STEP(x);
	if (level > 1)
		x = recursive(x, n, level - 1);
	__asm__ volatile("" : "+r"(x)); /* no tail call */
	return x;
}

__attribute__((noinline)) uint64_t twentieth(uint64_t x, uint64_t n)
{
	KEEP_FRAME;
	for (uint64_t i = 0; i < n; i++)
		STEP(x);
	return x;
}

struct account {
	uint64_t x, rounds, spent_ns[4];
};

__attribute__((noinline)) static void *work(void *argument)
{
	struct account *a = argument;
	const uint64_t part = 20000;
	for (uint64_t i = 0; i < a->rounds; i++) {
		uint64_t t0 = thread_ns();
		a->x = half(a->x, 50 * part);
		uint64_t t1 = thread_ns();
		a->x = recursive(a->x, 30 * part, 10);
		uint64_t t2 = thread_ns();
		a->x = library_spin(a->x, 15 * part);
		uint64_t t3 = thread_ns();
		a->x = twentieth(a->x, 5 * part);
		uint64_t t4 = thread_ns();
		a->spent_ns[0] += t1 - t0;
		a->spent_ns[1] += t2 - t1;
		a->spent_ns[2] += t3 - t2;
		a->spent_ns[3] += t4 - t3;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
	struct account account[2] = {
		{.x = 88172645463325252u, .rounds = rounds}, {.x = 1234567u, .rounds = rounds}};
	while (argc > 2 && access(argv[2], F_OK) == 0)
		usleep(1000);
	pthread_t thread;
	if (pthread_create(&thread, NULL, work, &account[1]) != 0)
		return 1;
	work(&account[0]);
	pthread_join(thread, NULL);

	static const char *const names[] = {"half", "recursive", "library_spin", "twentieth"};
	for (int i = 0; i < 4; i++)
		printf("%s %llu\n", names[i],
			(unsigned long long)(account[0].spent_ns[i] + account[1].spent_ns[i]));
	fprintf(stderr, "%llu\n", (unsigned long long)(account[0].x ^ account[1].x));
	return 0;
}
