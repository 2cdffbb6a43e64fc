/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A library with a function in two bodies, laid out as the compiler's part does it in mode clone.
 * Its turn's words are those that are a nest's state elsewhere.
 */
#include "counted.h"

#define N 24
COUNTED(N)

extern struct mperf_choice __start_mperf_choices[] HIDDEN, __stop_mperf_choices[] HIDDEN;

static struct mperf_choice choice __attribute__((section("mperf_choices"), used)) = {
	.one_in = -1, .names = "library_count\0"};

__attribute__((constructor(101))) static void choices_begin(void)
{
	__mperf_choices_register(__start_mperf_choices, __stop_mperf_choices);
}

__attribute__((destructor(101))) static void choices_end(void)
{
	__mperf_choices_unregister(__start_mperf_choices, __stop_mperf_choices);
}

static int is_counted(void)
{
	int32_t one_in = __atomic_load_n(&choice.one_in, __ATOMIC_RELAXED);
	if (one_in < 1)
		return one_in < 0;
	uint64_t *words = counted_word(0);
	return (int64_t)--words[MPERF_TURN_COUNTDOWN] < 1 && __mperf_turn_draw(words, one_in);
}

/* 1,000 entries; which of them count: counter 4 their number, 5 the sum of their ordinals. */
void library_count(void);
void library_count(void)
{
	for (unsigned i = 0; i < 1000; i++)
		if (is_counted()) {
			COUNT(COUNTED_FIRST, 1);
			COUNT(COUNTED_FIRST + 1, i % 10);
		}
}
