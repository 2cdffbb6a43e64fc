/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as a jitdump that grows. */

#include "tests/fuzz/growing.h"
#include "tests/fuzz/mutate.h"

MUTATE_ALSO_BY(mutate_jitdump)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return growing_run(image_open_jitdump, data, size);
}
