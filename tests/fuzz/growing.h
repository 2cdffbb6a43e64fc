/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Growing: any bytes as a file that describes generated code while it is written
 *
 * The last byte says after which part of it the file is first opened. The rest is then there, or, where
 * the bytes before are odd in number, takes the place of that part.
 */

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "daemon/unwind/table.h"

/* A table that is made is one that the daemon takes. */
static inline void growing_check_table(const struct image *image)
{
	struct unwind_table *table = NULL;

	if (image_table(image, EM_X86_64, 1u << 20, &table) == 0 &&
		(unwind_table_check_counts(table) < 0 || unwind_table_check(table) < 0 ||
			unwind_table_bytes(table) > 1u << 20))
		abort();
	free(table);
}

static inline void growing_check(struct image *image)
{
	static const uint64_t offsets[] = {
		0, 0x1000, 0x1008, 0x1040, 0x2000, 0x9000, 0x7f0010, UINT64_MAX};
	static struct image_naming naming;
	struct image_change change[16];
	uint32_t order = image_order(image), n = image_changes(image, order / 2, change, 16);

	for (uint32_t i = 0; i < n; i++)
		if (change[i].start >= change[i].end || change[i].order <= order / 2 ||
			change[i].order > order)
			abort();
	for (size_t k = 0; k < sizeof(offsets) / sizeof(*offsets); k++) {
		image_name(image, offsets[k], &naming);
		image_name_by(image, offsets[k], order / 2, &naming);
	}
	growing_check_table(image);
}

static inline int growing_run(
	int (*open_image)(int fd, struct image **ret_image), const uint8_t *data, size_t size)
{
	size_t n_first = size ? size * data[size - 1] / 255 : 0;
	struct image *image = NULL;
	int fd = memfd_create("growing", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, n_first) != (ssize_t)n_first)
		return close(fd), 0;
	if (open_image(fd, &image) == 0) {
		growing_check(image);
		if (n_first % 2 && (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0))
			abort();
		if (write(fd, data + n_first, size - n_first) == (ssize_t)(size - n_first) &&
			image_read_on(image, fd) >= 0)
			growing_check(image);
	}
	image_free(image);
	close(fd);
	return 0;
}
