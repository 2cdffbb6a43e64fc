/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/roofs/roofs.h"

#include <stdlib.h>
#include <string.h>

const char *roof_scope_name(enum roof_scope scope)
{
	static const char *const names[] = {
		[ROOF_HART] = "hart",
		[ROOF_CLUSTER] = "cluster",
		[ROOF_KIND] = "kind",
		[ROOF_MACHINE] = "machine",
	};
	return names[scope];
}

static bool fits(const char *wanted, const char *word)
{
	return !wanted || strcmp(wanted, word) == 0;
}

const struct roof *roofs_highest(const struct roofs *r, const struct roof_wanted *wanted)
{
	const struct roof *best = NULL;
	for (size_t i = 0; i < r->n; i++) {
		const struct roof *roof = &r->roof[i];
		if (roof->limit != wanted->limit || roof->scope != wanted->scope ||
			!fits(wanted->kind, roof->kind) ||
			!fits(wanted->precision, roof->precision) ||
			!fits(wanted->operation, roof->operation) ||
			!fits(wanted->unit, roof->unit) || !fits(wanted->level, roof->level) ||
			!fits(wanted->pattern, roof->pattern))
			continue;
		if (!best || roof->value > best->value)
			best = roof;
	}
	return best;
}

void roofs_clear(struct roofs *r)
{
	free(r->kinds);
	free(r->roof);
	free(r->note);
	*r = (struct roofs){0};
}
