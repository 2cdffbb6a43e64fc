/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Programs without a runtime of their own: one that has markers only, and does the same where the
 * runtime is linked and where it is not; and one that opens libraries which bring their own.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/mperf.h"

static int library(const char *path, int n)
{
	for (int i = 0; i < n; i++) {
		void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		void (*count)(void) = l ? (void (*)(void))dlsym(l, "library_count") : NULL;
		if (!count) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		count();
		dlclose(l);
	}
	return 0;
}

/* Two that do not see one another; the first, which serves both, is closed before the
 * second ends. */
static int both(char **paths)
{
	void *first = dlopen(paths[0], RTLD_NOW | RTLD_LOCAL);
	void *second = dlopen(paths[1], RTLD_NOW | RTLD_LOCAL);
	void (*one)(void) = first ? (void (*)(void))dlsym(first, "library_count") : NULL;
	void (*other)(void) = second ? (void (*)(void))dlsym(second, "library_count") : NULL;
	if (!one || !other)
		return 1;
	one();
	other();
	dlclose(first);
	other();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return both(argv + 2);
	if (argc == 3)
		return library(argv[1], atoi(argv[2]));
	for (int i = 0; i < 10; i++) {
		MPERF_REGION("solve");
	}
	return 0;
}
