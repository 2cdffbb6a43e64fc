/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as the stack of a new program: the first says how wide its words are. */

#include <stdlib.h>
#include <string.h>

#include "daemon/attribute/exec_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct exec_stack e;
	uint64_t sp = 0;
	if (size < 9)
		return 0;
	memcpy(&sp, data + 1, sizeof(sp));
	if (exec_stack_parse(data + 9, size - 9, sp, data[0] & 1 ? 4 : 8, 64, &e) != 0)
		return 0;
	const uint8_t *argv = (const uint8_t *)e.argv;
	if (e.n_argv > 64 || argv < data + 9 || argv + e.n_argv > data + size)
		abort();
	return 0;
}
