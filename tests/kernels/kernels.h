/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A program of kernels
 *
 *      PROGRAM                 each of its kernels once; `expect:` lines say what that counts
 *      PROGRAM NAME ROUNDS     one of them, so often; for benchmarks, which take differences
 *
 * Printed is what they computed, which nobody who counts may change. A kernel is not inlined, takes
 * all it works on as parameters, and has a run function that brings it what it may not find changed
 * by the round before.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL __attribute__((noinline))
/* Of arrays: where the linker puts them must not make one program faster than another. */
#define ALIGNED _Alignas(64)

struct kernel {
	const char *name;
	double (*run)(void);
};

/* What main of such a program does: its exit status. */
static inline int run_kernels(const struct kernel *kernels, int n, int argc, char **argv)
{
	const long rounds = argc > 2 ? atol(argv[2]) : 1;
	int found = 0;
	for (int i = 0; i < n; i++) {
		if (argc > 1 && strcmp(argv[1], kernels[i].name) != 0)
			continue;
		/* A compiler that knew which one it is could call a pure one once. */
		double (*volatile run)(void) = kernels[i].run;
		double value = 0;
		for (long round = 0; round < rounds; round++)
			value = run();
		printf("%s %.9g\n", kernels[i].name, value);
		found++;
	}
	return found ? 0 : 2;
}

#define RUN_KERNELS(kernels, argc, argv)                                                           \
	run_kernels(kernels, sizeof(kernels) / sizeof(*(kernels)), argc, argv)
