/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/measure/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Folders to look in, in order: mperfctl's own, one relative to it, one by its path. */
struct place {
	const char *relative, *configured;
	int mode; /* of access(2) */
};

static bool find(
	const char *name, const struct place *place, char ret_path[static PROGRAM_PATH_BYTES])
{
	const char *const from_here[] = {"", place->relative};
	char self[PROGRAM_PATH_BYTES];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
	const char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
	for (size_t i = 0; slash && i < sizeof(from_here) / sizeof(*from_here); i++) {
		int length = snprintf(ret_path, PROGRAM_PATH_BYTES, "%.*s/%s%s",
			(int)(slash - self), self, from_here[i], name);
		if (length < PROGRAM_PATH_BYTES && access(ret_path, place->mode) == 0)
			return true;
	}
	snprintf(ret_path, PROGRAM_PATH_BYTES, "%s/%s", place->configured, name);
	return access(ret_path, place->mode) == 0;
}

bool program_find(const char *name, char ret_path[static PROGRAM_PATH_BYTES])
{
	return find(name, &(struct place){"../libexec/mperf/", MPERF_LIBEXECDIR, X_OK}, ret_path);
}

bool program_find_library(const char *name, char ret_path[static PROGRAM_PATH_BYTES])
{
	return find(name, &(struct place){"../lib/mperf/", MPERF_LIBDIR, R_OK}, ret_path);
}
