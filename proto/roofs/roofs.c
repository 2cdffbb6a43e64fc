/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "proto/roofs/roofs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/hash.h"
#include "proto/base/memory.h"

/* Fixed: names and ids must be the same tomorrow. */
static const struct hash_secret name_key = {{0x726f6f6673, 1}};
static const struct hash_secret machine_key = {{0x6d706572662d726full, 0x6f66732d76310000ull}};

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

static unsigned long long hash(const struct hash_secret *key, const char *text, size_t n)
{
	return hash_sip(key, 2, 4, text, n);
}

int roofs_name(const struct roofs *r, char ret_name[static ROOFS_NAME_BYTES])
{
	_cleanup_(freep) char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return -ENOMEM;
	fputs(r->kernel, f);
	for (size_t i = 0; i < r->n_kinds; i++)
		fprintf(f, "\n%s %s", r->kinds[i].id, r->kinds[i].harts);
	if (fclose(f) != 0)
		return -ENOMEM;
	snprintf(ret_name, ROOFS_NAME_BYTES, "%016llx-%016llx.json",
		hash(&name_key, r->machine, strlen(r->machine)), hash(&name_key, text, size));
	return 0;
}

void roofs_machine(char ret_id[static ROOF_TEXT_BYTES])
{
	char text[64] = "";
	_cleanup_(fclosep) FILE *f = fopen("/etc/machine-id", "re");
	if (!f || !fgets(text, sizeof(text), f))
		snprintf(text, sizeof(text), "none");
	snprintf(ret_id, ROOF_TEXT_BYTES, "%016llx", hash(&machine_key, text, strcspn(text, "\n")));
}

void roofs_clear(struct roofs *r)
{
	free(r->kinds);
	free(r->roof);
	free(r->note);
	*r = (struct roofs){0};
}
