/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The distance is that of edits (insert, delete, replace) with the swap of two neighbours as one
 * edit too, since that is how fingers err: "cylces". Letter case costs nothing. A name is near
 * if at most a third of what was asked for is wrong (one letter of a short name); beyond that a
 * guess is noise. Source: the optimal string alignment distance, e.g. Navarro, "A guided tour to
 * approximate string matching", ACM Computing Surveys 33(1), 2001.
 */
#include "daemon/pmu/near.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

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
	unsigned rows[3][NEAR_BYTES_MAX + 1];
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

void near_start(struct near *near, const char *wanted, size_t n)
{
	*near = (struct near){0};
	if (n >= sizeof(near->wanted))
		return;
	memcpy(near->wanted, wanted, n);
	near->distance = n < 2 ? 0 : n < 6 ? 2 : (unsigned)n / 3 + 1;
}

void near_offer(void *userdata, const char *name)
{
	struct near *near = userdata;
	size_t n = strnlen(name, NEAR_BYTES_MAX);
	if (!near->wanted[0] || n == NEAR_BYTES_MAX)
		return;

	unsigned edits = distance(near->wanted, name);
	if (edits >= near->distance)
		return;
	near->distance = edits;
	memcpy(near->best, name, n + 1);
}

const char *near_says(const struct near *near, char *buffer, size_t size)
{
	if (near->best[0])
		snprintf(buffer, size, ", did you mean '%s'?", near->best);
	else
		buffer[0] = '\0';
	return buffer;
}
