/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as an ELF file, then as its own debug file; offsets all over it are named. */

#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "tests/fuzz/mutate.h"

MUTATE_ALSO_BY(mutate_elf)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct image_naming naming;
	struct image *image = NULL;
	struct image_wants wants;
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return close(fd), 0;
	if (image_open_elf(fd, &image) == 0) {
		for (size_t pass = 0; pass < 2; pass++) {
			for (uint64_t k = 0; k < 64; k++)
				image_name(image, size * k / 64, &naming);
			image_wants(image, &wants);
			if (image_add_debug(image, fd, &(bool){pass > 0}) == 0)
				(void)image_add_alt(image, fd);
		}
	}
	image_free(image);
	close(fd);
	return 0;
}
