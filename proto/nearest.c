/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Edit distance with three rows of memory, over names no longer than options, commands
 * and keys are. Two letters swapped are one slip. A name that starts with what was typed counts as
 * one letter away.
 */
#include "proto/nearest.h"

#include <string.h>

#define NAME_LETTERS_MAX 32 /* longer than any option; longer input is near to none */

static size_t min3(size_t a, size_t b, size_t c)
{
	a = a < b ? a : b;
	return a < c ? a : c;
}

/* Letters wrong, missing, too many, or swapped with their neighbour; na and nb are at most
 * NAME_LETTERS_MAX. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t rows[3][NAME_LETTERS_MAX + 1];
	size_t *before = rows[0], *above = rows[1], *row = rows[2];
	for (size_t j = 0; j <= nb; j++)
		row[j] = j;

	for (size_t i = 1; i <= na; i++) {
		size_t *oldest = before;
		before = above;
		above = row;
		row = oldest;
		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			row[j] = min3(above[j] + 1, row[j - 1] + 1,
				above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min3(row[j], row[j], before[j - 2] + 1);
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
