/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Functions that only this module calls, and whose entries its other counts tell: where they are
 * called from several places, from a thread that begins in a function known by its address alone,
 * and behind a call that does not always come back.
 *
 * expect: step fp32_ops 750
 * expect: in_thread entries 1
 * expect: behind fp32_ops 1500
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

#define KERNEL __attribute__((noinline))

static jmp_buf out;

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
	static float a[1000];
	printf("%g %d\n", (double)alternate_and_thread(a, 1000), midways(a));
	return 0;
}
