/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Opens a library by the path that it is given, twice, and closes it each time: what the first one
 * counted is not to be lost with it.
 */

#include <dlfcn.h>
#include <stdio.h>

enum { N = 10000 };

static double a[N], b[N];

static int call(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	if (!library)
		return 1;
	void (*axpy)(double *, const double *, double, int) =
		(void (*)(double *, const double *, double, int))dlsym(library, "axpy");
	if (axpy)
		axpy(a, b, 2, N);
	return !axpy || dlclose(library) != 0;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < N; i++)
		b[i] = i % 7;
	for (int i = 0; i < 2; i++)
		if (argc < 2 || call(argv[1]) != 0)
			return 1;
	printf("%g\n", a[N - 1]);
	return 0;
}
