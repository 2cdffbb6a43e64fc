/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Events that were granted to regions, in the order in which sources name them.
 */
#include <string.h>
#include <strings.h>

#include "daemon/query/loops/facts_private.h"

int granted_add(struct loop_facts *f, const char *name, unsigned *ret_at)
{
	struct facts_granted *g = &f->granted;
	uint32_t text;
	unsigned i = 0;
	int r = facts_text(f, name, &text);
	if (r != 0)
		return r;
	while (i < g->n && g->name[i] != text)
		i++;
	*ret_at = i;
	if (i == MPERF_GRANTS_MAX) {
		g->left_out = true;
		return 0;
	}
	g->name[i] = text;
	g->n = i == g->n ? i + 1 : g->n;
	return 0;
}

const char *granted_name(const struct loop_facts *f, unsigned i)
{
	return text_of(&f->texts, f->granted.name[i]);
}

static bool granted_is(const char *name, const char *wanted)
{
	size_t n = strlen(wanted);
	return strncasecmp(name, wanted, n) == 0 && (name[n] == '\0' || name[n] == ':');
}

int granted_find(const struct loop_facts *f, const char *wanted)
{
	for (unsigned i = 0; i < f->granted.n; i++)
		if (granted_is(granted_name(f, i), wanted))
			return (int)i;
	return -1;
}
