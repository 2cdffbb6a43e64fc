/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Opens each library whose path it is given, calls what library.c has once, and closes none.
 */

#include <dlfcn.h>
#include <stdio.h>

enum { N = 1000 };

int main(int argc, char **argv)
{
	static double a[N], b[N];
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		void (*axpy)(double *, const double *, double, int) =
			library ? (void (*)(double *, const double *, double, int))dlsym(
					  library, "axpy")
				: NULL;
		if (!axpy) {
			fprintf(stderr, "library %d: %s\n", i, dlerror());
			return 1;
		}
		axpy(a, b, 2, N);
	}
	return 0;
}
