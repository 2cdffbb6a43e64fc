/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/commands/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool program_find(const char *name, char ret_path[static PROGRAM_PATH_BYTES])
{
	static const char *const from_here[] = {"", "../libexec/mperf/"};
	char self[PROGRAM_PATH_BYTES];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
	const char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
	for (size_t i = 0; slash && i < sizeof(from_here) / sizeof(*from_here); i++) {
		int length = snprintf(ret_path, PROGRAM_PATH_BYTES, "%.*s/%s%s",
			(int)(slash - self), self, from_here[i], name);
		if (length < PROGRAM_PATH_BYTES && access(ret_path, X_OK) == 0)
			return true;
	}
	snprintf(ret_path, PROGRAM_PATH_BYTES, "%s/%s", MPERF_LIBEXECDIR, name);
	return access(ret_path, X_OK) == 0;
}
