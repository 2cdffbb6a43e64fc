/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program with a secret on its stack, made at run time, so that no file holds it. */

#include <stdint.h>

static const char masked[16] = {
	10, 59, 111, 111, 45, 106, 40, 62, 119, 53, 60, 119, 12, 51, 57, 123};

static __attribute__((noinline)) int hold(int depth)
{
	volatile char secret[512];
	volatile uint64_t n = 0;

	for (int i = 0; i < 512; i++)
		secret[i] = (char)(masked[i % 16] ^ 0x5a);
	if (depth > 0)
		return hold(depth - 1) + secret[depth];
	for (;;)
		n++;
}

int main(void)
{
	return hold(8);
}
