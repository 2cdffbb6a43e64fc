/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Any bytes as /proc/kallsyms; the kernel is asked for by sizes that are even, a module else. */

#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "daemon/namer/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t offsets[] = {0, 0x100, 0x180, 0x1000, UINT64_MAX};
	static struct image_naming naming;
	struct kallsyms *list = NULL;
	struct image *image = NULL;
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return close(fd), 0;
	if (kallsyms_read(fd, &list) == 0 &&
		(size % 2 == 0 || kallsyms_read_module(list, "mod") == 0) &&
		image_open_kallsyms(list, size % 2 ? "mod" : NULL,
			size % 2 ? 0xffffffffc0000000 : 0, &image) == 0)
		for (size_t k = 0; k < sizeof(offsets) / sizeof(*offsets); k++)
			image_name(image, offsets[k], &naming);
	kallsyms_unref(list);
	image_free(image);
	close(fd);
	return 0;
}
