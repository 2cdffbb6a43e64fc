/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The name that the user may have meant
 *
 * Offer all the names that would have been right; the closest one stays, if it is close at all.
 */

#include <stddef.h>

#define NEAR_BYTES_MAX 64 /* longer names are not compared: the cost is quadratic */

struct near {
	char wanted[NEAR_BYTES_MAX];
	char best[NEAR_BYTES_MAX]; /* "" while nothing is near */
	unsigned distance;         /* edits from wanted to best; only closer offers are taken */
};

/* Begin with what was asked for, n bytes. */
void near_start(struct near *near, const char *wanted, size_t n);

/* Compare one name; takes a struct near *, so that struct kernel's list can call it. */
void near_offer(void *near, const char *name);

/* ", did you mean 'cycles'?" in *buffer, or "". Returns buffer. */
const char *near_says(const struct near *near, char *buffer, size_t size);
