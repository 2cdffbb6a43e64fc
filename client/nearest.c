/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Edit distance with one row of memory, over names no longer than options and commands are. A
 * name that starts with what was typed counts as one letter away.
 */
#include "client/nearest.h"

#include <string.h>

#define NAME_LETTERS_MAX 32 /* longer than any option; longer input is near to none */

static size_t min3(size_t a, size_t b, size_t c)
{
	a = a < b ? a : b;
	return a < c ? a : c;
}

/* Levenshtein's distance; na and nb are at most NAME_LETTERS_MAX. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t row[NAME_LETTERS_MAX + 1];
	for (size_t j = 0; j <= nb; j++)
		row[j] = j;

	for (size_t i = 1; i <= na; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t above = row[j];
			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[nb];
}

const char *nearest_name(const char *text, const char *const *names, size_t n)
{
	size_t length = strlen(text);
	if (length == 0 || length > NAME_LETTERS_MAX)
		return NULL;

	const char *best = NULL;
	size_t least = length / 3 > 1 ? length / 3 : 1;
	for (size_t i = 0; i < n; i++) {
		size_t letters = strlen(names[i]);
		if (letters > NAME_LETTERS_MAX)
			continue;
		size_t d = length >= 2 && strncmp(names[i], text, length) == 0
				   ? 1
				   : distance(text, length, names[i], letters);
		if (d < least || (d == least && !best)) {
			least = d;
			best = names[i];
		}
	}
	return best;
}
