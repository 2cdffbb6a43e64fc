/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Members of a row in a third-party file: a value that is not a text counts as missing.
 */
#include "platform-db/foreign.h"

#include <strings.h>

const char *foreign_text(const struct node *row, const char *key)
{
	const struct node *v = node_get(row, key);
	return v && v->type == NODE_TEXT && *v->text ? v->text : NULL;
}

const char *foreign_line(const struct reader *r, const char *text)
{
	char line[TEXT_BYTES_MAX / 4] = "";
	size_t n = 0;
	while (*text == ' ')
		text++;
	for (; *text && n + 1 < sizeof(line); text++)
		line[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text;
	/* Not inside a multi-byte character. */
	while (n > 0 && *text && (line[n - 1] & 0xc0) == 0x80)
		n--;
	if (n > 0 && *text && (line[n - 1] & 0x80))
		n--;
	while (n > 0 && line[n - 1] == ' ')
		n--;
	line[n] = '\0';
	return pool_text(r->pool, line);
}

bool foreign_same_pmu(const char *a, const char *b)
{
	return a == b || (a && b && strcasecmp(a, b) == 0);
}
