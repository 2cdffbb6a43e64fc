/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as a jitdump. */

#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "tests/fuzz/mutate.h"

MUTATE_ALSO_BY(mutate_jitdump)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t offsets[] = {0, 0x1000, 0x1008, 0x2000, 0x9000, UINT64_MAX};
	static struct image_naming naming;
	struct image *image = NULL;
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return close(fd), 0;
	if (image_open_jitdump(fd, &image) == 0)
		for (size_t k = 0; k < sizeof(offsets) / sizeof(*offsets); k++)
			image_name(image, offsets[k], &naming);
	image_free(image);
	close(fd);
	return 0;
}
