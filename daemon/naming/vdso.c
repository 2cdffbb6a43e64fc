/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The vdso as a file: a copy of our own.
 */
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/base/memory.h"

#define VDSO_BYTES_MAX 65536u /* two pages on x86-64; pages may be 64 KiB on arm64 */

/* All processes share our vdso; a copy of it is a file like any other. Source: man vdso; the size
 * is that of the mapping which AT_SYSINFO_EHDR points to. */
int vdso_copy(int *ret_fd, uint64_t *ret_bytes)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	_cleanup_(fclosep) FILE *maps = fopen("/proc/self/maps", "re");
	_cleanup_(closep) int fd = memfd_create("mperf-vdso", MFD_CLOEXEC);
	char line[PATH_MAX + 128];
	uint64_t start = 0, end = 0;

	if (!vdso || !maps || fd < 0)
		return -ENOENT;
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && start == vdso)
			break;
	if (start != vdso || end <= start || end - start > VDSO_BYTES_MAX)
		return -ENOENT;
	if (write(fd, (const void *)(uintptr_t)start, end - start) != (ssize_t)(end - start))
		return -EIO;
	*ret_fd = TAKE_FD(fd);
	*ret_bytes = end - start;
	return 0;
}
