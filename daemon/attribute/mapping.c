/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Mappings: what the name of a mapping says of the code in it
 *
 * The kernel has many names for memory that belongs to no file, and for a profiler they are all
 * the same: somebody generated code there, and only that process can say what it is. Anything that
 * merely looks like a path is taken for a file; whether it really is one is for the opener to find.
 */

#include "daemon/attribute/mapping.h"

#include <string.h>

/* Source: kernel/events/core.c, perf_event_mmap_event ("//anon", "[heap]", "[stack]"); mm/shmem.c
 * (memfd:, SYSV, dev/zero); mm/hugetlb.c (anon_hugepage); fs/anon_inodes.c; man prctl,
 * PR_SET_VMA_ANON_NAME ("[anon:name]"). */
static const char *const generated[] = {
	"//anon",
	"[anon",
	"anon_inode:",
	"/anon_hugepage",
	"/memfd:",
	"/dev/zero",
	"/SYSV",
	"[heap]",
	"[stack",
	"[anon_shmem:",
};

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* jit-NNN.dump. Source: tools/perf/Documentation/jitdump-specification.txt. */
static bool is_jitdump(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	if (!starts(name, "jit-"))
		return false;
	name += strlen("jit-");
	size_t n_digits = strspn(name, "0123456789");
	return n_digits &&
	       (!strcmp(name + n_digits, ".dump") || !strcmp(name + n_digits, ".dump (deleted)"));
}

enum file_kind mapping_kind(const char *path, uint8_t n_build_id)
{
	if (!*path)
		return FILE_PERF_MAP;
	if (!strcmp(path, "[vdso]"))
		return FILE_VDSO;
	if (n_build_id && *path == '/')
		return FILE_ELF;
	if (is_jitdump(path))
		return FILE_JITDUMP;
	for (size_t i = 0; i < sizeof(generated) / sizeof(*generated); i++)
		if (starts(path, generated[i]))
			return FILE_PERF_MAP;

	/* "[vsyscall]", "[uprobes]", "//toolong": nothing to open */
	return *path == '/' && path[1] != '/' ? FILE_ELF : FILE_ANON;
}
