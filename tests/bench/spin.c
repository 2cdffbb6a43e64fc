/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A loop that does nothing else: spin ROUNDS. What it takes is what a profiler takes. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 10000000u /* some 10 ms */

__attribute__((noinline)) uint64_t spin_hot(uint64_t x)
{
	for (uint32_t i = 0; i < STEPS; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

int main(int argc, char **argv)
{
	uint64_t x = 1;
	for (long n = argc > 1 ? atol(argv[1]) : 1; n > 0; n--)
		x = spin_hot(x);
	printf("%llu\n", (unsigned long long)x);
	return 0;
}
