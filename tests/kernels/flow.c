/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Flow that is hard to count: jumps through tables, recursion, setjmp and longjmp, copies whose
 * length nobody knows, atomic operations that fail.
 *
 * expect: interpret_switch fp64_ops 4000
 * expect: interpret_labels fp64_ops 4000
 * expect: fibonacci entries.least 10000
 * expect: jump_out fp32_ops 7000
 * expect: copy bytes_loaded.least 49995000
 * expect: copy bytes_stored.least 49995000
 * expect: claim loads.least 1000
 * expect: claim stores.least 500
 * expect: claim bytes_stored.least 2000
 * expect: sort entries.least 1000
 * expect: step fp32_ops 750
 * expect: in_thread entries 1
 * expect: behind fp32_ops 1500
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL __attribute__((noinline))

enum { ADD, SUB, MUL, NOP, BACK, STOP };

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
		printf("%g\n", (double)jump_out(a, n));
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

/* Called from here and there alone, so its callers can tell how often. */
static KERNEL float step(float x)
{
	return x * 1.5f;
}

KERNEL float alternate(const float *a, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++)
		if (a[i] > 2)
			sum += step(a[i]);
		else if (i & 1)
			sum -= step(sum);
	return sum;
}

/* Known by its address alone: where its thread begins. */
static void *in_thread(void *a)
{
	float *x = a;
	for (int i = 0; i < 50; i++)
		*x = step(*x);
	return NULL;
}

KERNEL float alternate_and_thread(float *a, int n)
{
	for (int i = 0; i < n; i++)
		a[i] = (float)(i % 5);
	float x = 1;
	pthread_t thread;
	if (pthread_create(&thread, NULL, in_thread, &x) == 0)
		pthread_join(thread, NULL);
	return alternate(a, n) + x;
}

static KERNEL void jump_if(int i)
{
	if (i % 4 == 3)
		longjmp(out, 1);
}

static KERNEL void behind(float *a)
{
	for (int i = 0; i < 100; i++)
		a[i] *= 2;
}

KERNEL void midway(float *a, int i)
{
	jump_if(i);
	behind(a);
}

KERNEL int midways(float *a)
{
	volatile int i = 0;
	(void)setjmp(out);
	while (i < 20) {
		const int at = i;
		i = at + 1;
		midway(a, at);
	}
	return i;
}

int main(void)
{
	static const uint8_t code[] = {ADD, NOP, SUB, MUL, NOP, ADD, BACK, STOP};
	static float a[1000];
	static int numbers[5000];
	static _Atomic int slots[1000];
	static char from[10000], to[10000];
	for (int i = 0; i < 5000; i++)
		numbers[i] = i * 7919 % 5003;
	for (int i = 0; i < 1000; i += 2)
		slots[i] = 1;
	sort(numbers, 5000);
	copy(to, from, 10000);
	printf("%g %d\n", (double)alternate_and_thread(a, 1000), midways(a));
	memset(a, 0, sizeof(a));
	printf("%g %g %d %d %d %d\n", interpret_switch(code, 1000), interpret_labels(code, 1000),
		fibonacci(20), catch_jumps(a, 1000), claim(slots, 1000), numbers[17]);
	return 0;
}
