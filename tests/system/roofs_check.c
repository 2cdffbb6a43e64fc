/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The kernels of mperf-roofs without the rest of it, for machines in QEMU's user mode and for tools
 * that count. Prints what each kernel is found to be; or with N and names, runs N passes of these,
 * over CHECK_BYTES of each stream.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/roofs/measure/probe.h"

#define CHECK_BYTES (2 * KERNEL_BLOCK_BYTES)

static int run(uint64_t passes, const char *name)
{
	static unsigned char space[3 * CHECK_BYTES] __attribute__((aligned(KERNEL_BLOCK_BYTES)));
	for (size_t i = 0; i < n_kernels; i++)
		if (strcmp(kernels[i].name, name) == 0 && kernels[i].memory)
			return kernels[i].memory(passes, CHECK_BYTES, space, space + CHECK_BYTES,
				       space + 2 * CHECK_BYTES) != passes * CHECK_BYTES;
	return 2;
}

int main(int argc, char **argv)
{
	static const char *const verdicts[] = {"absent", "illegal", "wrong", "right"};
	for (int i = 2; i < argc; i++) {
		int r = run(strtoull(argv[1], NULL, 10), argv[i]);
		if (r != 0)
			return r;
	}
	if (argc > 1)
		return 0;
	struct probe *probe = calloc(n_kernels, sizeof(*probe));
	if (!probe || probe_kernels(0, probe) < 0)
		return 2;
	for (size_t i = 0; i < n_kernels; i++)
		printf("%s %s %s %s\n", kernels[i].name, verdicts[probe[i].verdict],
			kernels[i].operation, probe[i].fault);
	free(probe);
	return 0;
}
