/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Flow that is hard to count: jumps through tables, recursion, setjmp and longjmp, copies whose
 * length nobody knows, atomic operations that fail. (An exchange that fails writes on x86: what was
 * there.)
 *
 * expect: interpret_switch fp64_ops 4000
 * expect: interpret_labels fp64_ops 4000
 * expect: fibonacci entries.least 10000
 * expect: jump_out fp32_ops 7000
 * expect: copy bytes_loaded.least 49995000
 * expect: copy bytes_stored.least 49995000
 * expect: claim outside_bytes_loaded 4000
 * expect: claim outside_bytes_stored 4000
 * expect: accumulate outside_bytes_loaded 12000
 * expect: accumulate outside_bytes_stored 4000
 * expect: sort entries.least 1000
 * expect: short_loop fp32_ops 32000
 */

#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>

#include "kernels.h"

#define NUMBERS 5000
#define SLOTS 1000
#define COPIED 10000

static ALIGNED float values[SLOTS], few[32];
static ALIGNED int unsorted[NUMBERS], numbers[NUMBERS];
static ALIGNED _Atomic int slots[SLOTS];
static ALIGNED char source[COPIED], target[COPIED];

enum { ADD, SUB, MUL, NOP, BACK, STOP };

static const uint8_t program[] = {ADD, NOP, SUB, MUL, NOP, ADD, BACK, STOP};

KERNEL double interpret_switch(const uint8_t *code, int rounds)
{
	double x = 1;
	for (const uint8_t *at = code;; at++) {
		switch (*at) {
		case ADD:
			x = x + 1.5;
			break;
		case SUB:
			x = x - 1.25;
			break;
		case MUL:
			x = x * 1.125;
			break;
		case NOP:
			break;
		case BACK:
			if (--rounds > 0)
				at = code - 1;
			break;
		default:
			return x;
		}
	}
}

KERNEL double interpret_labels(const uint8_t *code, int rounds)
{
	static const void *const labels[] = {&&add, &&sub, &&mul, &&nop, &&back, &&stop};
	const uint8_t *at = code;
	double x = 1;
#define NEXT goto *labels[*at++]
	NEXT;
add:
	x = x + 1.5;
	NEXT;
sub:
	x = x - 1.25;
	NEXT;
mul:
	x = x * 1.125;
	NEXT;
nop:
	NEXT;
back:
	if (--rounds > 0)
		at = code;
	NEXT;
stop:
	return x;
}

KERNEL int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static jmp_buf out;

KERNEL float jump_out(float *a, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++) {
		sum += a[i];
		a[i] = sum;
		if (i == 699)
			longjmp(out, 1);
	}
	return sum;
}

KERNEL int catch_jumps(float *a, int n)
{
	volatile int jumps = 0;
	if (setjmp(out) != 0)
		jumps++;
	if (jumps < 10)
		return (int)jump_out(a, n);
	return jumps;
}

KERNEL void copy(char *to, const char *from, int n)
{
	for (int i = 0; i < n; i++)
		memcpy(to, from, i);
}

KERNEL int claim(_Atomic int *slots, int n)
{
	int won = 0;
	for (int i = 0; i < n; i++) {
		int expected = 0;
		won += atomic_compare_exchange_strong(&slots[i], &expected, 1);
	}
	return won;
}

/* What atomic_fetch_add does where there is no such instruction; alone, no exchange fails. */
KERNEL void accumulate(_Atomic int *total, const int *from, int n)
{
	for (int i = 0; i < n; i++) {
		int seen = atomic_load_explicit(total, memory_order_relaxed);
		while (!atomic_compare_exchange_weak(total, &seen, seen + from[i]))
			;
	}
}

/* Called for a few elements at a time: what an entry costs is not spread over much. */
KERNEL void short_loop(float *to, const float *from, float by, int n)
{
	for (int i = 0; i < n; i++)
		to[i] += by * from[i];
}

KERNEL void sort(int *a, int n)
{
	if (n < 2)
		return;
	const int pivot = a[n / 2];
	int i = 0, j = n - 1;
	for (;; i++, j--) {
		while (a[i] < pivot)
			i++;
		while (a[j] > pivot)
			j--;
		if (i >= j)
			break;
		const int other = a[i];
		a[i] = a[j];
		a[j] = other;
	}
	sort(a, i);
	sort(a + j + 1, n - j - 1);
}

static double run_interpret_switch(void)
{
	return interpret_switch(program, 1000);
}

static double run_interpret_labels(void)
{
	return interpret_labels(program, 1000);
}

static double run_fibonacci(void)
{
	return fibonacci(20);
}

static double run_jump_out(void)
{
	return catch_jumps(values, SLOTS);
}

static double run_copy(void)
{
	copy(target, source, COPIED);
	return target[COPIED - 2];
}

static double run_claim(void)
{
	for (int i = 0; i < SLOTS; i++)
		atomic_store_explicit(&slots[i], i % 2 == 0, memory_order_relaxed);
	return claim(slots, SLOTS);
}

static double run_accumulate(void)
{
	static _Atomic int total;
	atomic_store(&total, 0);
	accumulate(&total, unsorted, 1000);
	return total;
}

static double run_short_loop(void)
{
	memset(few, 0, sizeof(few) / 2);
	for (int i = 0; i < 1000; i++)
		short_loop(few, few + 16, 2, 16);
	return few[15];
}

static double run_sort(void)
{
	memcpy(numbers, unsorted, sizeof(numbers));
	sort(numbers, NUMBERS);
	return numbers[17];
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"interpret_switch", run_interpret_switch},
		{"interpret_labels", run_interpret_labels},
		{"fibonacci", run_fibonacci},
		{"jump_out", run_jump_out},
		{"copy", run_copy},
		{"claim", run_claim},
		{"accumulate", run_accumulate},
		{"sort", run_sort},
		{"short_loop", run_short_loop},
	};
	for (int i = 0; i < NUMBERS; i++)
		unsorted[i] = i * 7919 % 5003;
	for (int i = 0; i < 32; i++)
		few[i] = (float)i;
	for (int i = 0; i < COPIED; i++)
		source[i] = (char)i;
	return RUN_KERNELS(kernels, argc, argv);
}
