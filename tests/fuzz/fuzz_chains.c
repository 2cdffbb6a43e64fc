/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as a program whose unwind tables are judged. */

#include "client/measure/chains.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* aligned as a mapping is, and no byte longer than it is */
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	const struct image image = {copy, size};
	char path[PATH_MAX];
	if (size && !interpreter_of(&image, path))
		(void)keeps_frame_pointers(&image);
	free(copy);
	return 0;
}
