/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A library with more counters than fit into any thread-local storage that dlopen may still get.
 * Each call counts 1 to each of them but the nest's words.
 */
#include "counted.h"

#define N 2000
COUNTED(N)

void library_count(void);
void library_count(void)
{
	for (unsigned i = COUNTED_FIRST; i < N; i++)
		COUNT(i, 1);
}

/* Runs a function as the body of this library's nest. */
void library_nest(void (*body)(void));
void library_nest(void (*body)(void))
{
	NEST(1, body());
}
