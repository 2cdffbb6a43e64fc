/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The kernels of mperf-roofs without the rest of it, for machines in QEMU's user mode: what each of
 * them is found to be. With a kernel's name and N, runs N passes of that one alone, over
 * CHECK_BYTES of each stream, and prints what it says it did.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/roofs/measure/probe.h"

#define CHECK_BYTES (2 * KERNEL_BLOCK_BYTES)

static int run(const char *name, uint64_t passes)
{
	static unsigned char in[3 * KERNEL_OPERAND_BYTES] __attribute__((aligned(64)));
	static unsigned char space[KERNEL_RESULT_BYTES] __attribute__((aligned(64)));
	for (size_t i = 0; i < n_kernels; i++) {
		const struct kernel *k = &kernels[i];
		if (strcmp(k->name, name) != 0)
			continue;
		kernel_operands(k, in);
		uint64_t n = k->compute ? k->compute(passes, in, space)
					: k->memory(passes, CHECK_BYTES, space, space + CHECK_BYTES,
						  space + 2 * CHECK_BYTES);
		printf("%llu\n", (unsigned long long)(n * k->per));
		return 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	static const char *const verdicts[] = {"absent", "illegal", "wrong", "right"};
	if (argc == 3)
		return run(argv[1], strtoull(argv[2], NULL, 10));
	struct probe *probe = calloc(n_kernels, sizeof(*probe));
	if (!probe || probe_kernels(0, probe) < 0)
		return 2;
	for (size_t i = 0; i < n_kernels; i++)
		printf("%s %s %s\n", kernels[i].name, verdicts[probe[i].verdict], probe[i].fault);
	free(probe);
	return 0;
}
