/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The valid name that the user probably meant
 *
 * Offer all valid names; the closest one remains if it is close enough: at most a third of the
 * letters wrong, but one wrong letter is always allowed.
 */

#include <stddef.h>

#define NEAREST_BYTES_MAX 64 /* longer names are not compared: the cost is quadratic */

struct nearest {
	char wanted[NEAREST_BYTES_MAX];
	char best[NEAREST_BYTES_MAX]; /* "" as long as no name is near */
	unsigned distance;            /* edits from wanted to best; only closer offers are taken */
};

/* Begin with the name typed, n bytes. */
void nearest_start(struct nearest *near, const char *wanted, size_t n);

/* Compare one name; takes a struct nearest *, so that it can be a callback for names. */
void nearest_offer(void *near, const char *name);

/* ", did you mean 'cycles'?" in *buffer, or "". Returns buffer. */
const char *nearest_says(const struct nearest *near, char *buffer, size_t size);

/* The nearest of n names, NULL if none is near enough. */
const char *nearest_name(const char *text, const char *const *names, size_t n);
