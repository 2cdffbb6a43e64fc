/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* How long it takes to name offsets of large files. */

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "tests/unit/test.h"

EACH_TEST(.seconds = 120);

static bool is_named(struct image *i, uint64_t offset)
{
	struct image_naming naming;

	image_name(i, offset, &naming);
	return naming.outcome == IMAGE_NAMED;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure(const char *path, size_t n)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image *i = NULL;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &status), 0);
	double start = seconds();
	ck_assert_int_eq(image_open_elf(fd, &i), 0);
	double opened = seconds();
	size_t n_named = 0;
	for (size_t k = 0; k < n; k++)
		n_named += is_named(i, (uint64_t)status.st_size / n * k);
	double end = seconds();
	printf("%s: opened in %.3f s, %zu look-ups (%zu named) in %.3f s\n", path, opened - start,
		n, n_named, end - opened);
	ck_assert_uint_gt(n_named, n / 100);
	ck_assert(end - start < 20);
	image_free(i);
	close(fd);
}

TEST(large_library_is_named_in_seconds)
{
	glob_t found;

	if (glob("/usr/lib/*/libLLVM*.so.1*", 0, NULL, &found) || !found.gl_pathc)
		printf("SKIP large_library_is_named_in_seconds: libLLVM is not installed\n");
	else
		measure(found.gl_pathv[0], 10000);
	globfree(&found);
}

TEST(own_debug_information_is_named_in_seconds)
{
	measure("/proc/self/exe", 10000);
}
