/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Edit distance (insert, delete, replace) with the swap of two neighbours as one edit too, a common
 * typing error: "cylces". Letter case costs nothing, and a name that starts with the typed text is
 * one edit away. Source: the optimal string alignment distance, e.g. Navarro, "A guided tour to
 * approximate string matching", ACM Computing Surveys 33(1), 2001.
 */
#include "proto/syntax/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static int lower(char c)
{
	return tolower((unsigned char)c);
}

/* Three rows of the table are enough: a swap looks two rows back. */
static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][NEAREST_BYTES_MAX + 1];
	size_t n = strlen(b);
	for (size_t j = 0; j <= n; j++)
		rows[0][j] = (unsigned)j;

	for (size_t i = 1; a[i - 1]; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *two = rows[(i + 1) % 3];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= n; j++) {
			unsigned differs = lower(a[i - 1]) != lower(b[j - 1]);
			row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + differs);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
				lower(a[i - 2]) == lower(b[j - 1]))
				row[j] = smaller(row[j], two[j - 2] + 1);
		}
	}
	return rows[strlen(a) % 3][n];
}

void nearest_start(struct nearest *near, const char *wanted, size_t n)
{
	*near = (struct nearest){0};
	if (n >= sizeof(near->wanted))
		return;
	memcpy(near->wanted, wanted, n);
	near->distance = n < 6 ? 2 : (unsigned)n / 3 + 1;
}

static unsigned edits_to(const char *wanted, const char *name)
{
	size_t n = strlen(wanted);
	return n >= 2 && strncasecmp(name, wanted, n) == 0 && name[n] ? 1 : distance(wanted, name);
}

void nearest_offer(void *userdata, const char *name)
{
	struct nearest *near = userdata;
	size_t n = strnlen(name, NEAREST_BYTES_MAX);
	if (!near->wanted[0] || n == NEAREST_BYTES_MAX)
		return;

	unsigned edits = edits_to(near->wanted, name);
	if (edits >= near->distance)
		return;
	near->distance = edits;
	memcpy(near->best, name, n + 1);
}

const char *nearest_says(const struct nearest *near, char *buffer, size_t size)
{
	if (near->best[0])
		snprintf(buffer, size, ", did you mean '%s'?", near->best);
	else
		buffer[0] = '\0';
	return buffer;
}

const char *nearest_name(const char *text, const char *const *names, size_t n)
{
	struct nearest near;
	const char *best = NULL;
	nearest_start(&near, text, strlen(text));
	for (size_t i = 0; i < n; i++) {
		unsigned before = near.distance;
		nearest_offer(&near, names[i]);
		best = near.distance < before ? names[i] : best;
	}
	return best;
}
