/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any messages of a program, one after the other as its own lengths part them. Whatever it says, it
 * ends up within its memory, what goes out is of a site and not below zero, and nothing is left
 * when it has gone.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/loops/program.h"
#include "daemon/loops/table_cache.h"

#define MEMORY_MAX (8u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *userdata, const struct loop_counts *c)
{
	uint64_t *n = userdata;
	if (!c->site || !c->thread || c->site->id == 0 || c->site->n_users == 0)
		abort();
	bool any = false;
	for (unsigned i = 0; i < N_LOOP_VALUES; i++)
		any |= c->value[i] > 0;
	bool spent = c->site->key.kind == LOOP_SITE_REGION || loop_site_is_place(c->site->key.kind);
	for (unsigned i = 0; i < N_LOOP_VALUES && !spent; i++)
		if (c->value[i] > INT64_MAX)
			abort();
	if (!any && !spent)
		abort();
	++*n;
	return 0;
}

/* A length that fits what is left, else all of it: to be refused. */
static size_t piece(const uint8_t *data, size_t size)
{
	uint32_t said = 0;
	if (size >= sizeof(struct mperf_feed_head))
		memcpy(&said, data + 4, sizeof(said));
	return said >= sizeof(struct mperf_feed_head) && said <= size ? said : size;
}

static void tell(struct program *p, const uint8_t *data, size_t size)
{
	while (size > 0) {
		size_t n = piece(data, size);
		/* on the heap and to the byte, so that a sanitizer sees the first one too many */
		uint8_t *copy = malloc(n);
		if (!copy)
			return;
		memcpy(copy, data, n);
		int r = program_take(p, copy, n);
		free(copy);
		if (p->budget.used > MEMORY_MAX)
			abort();
		if (r != 0)
			return;
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loop_sites sites = {0};
	struct table_cache cache = {0};
	struct budget all = {.max = 2 * MEMORY_MAX};
	uint64_t causes[N_FEED_CAUSES] = {0}, n = 0;
	const struct program_options o = {
		.sites = &sites,
		.cache = &cache,
		.causes = causes,
		.budget = &all,
		.memory_max = MEMORY_MAX,
		.take = take,
		.userdata = &n,
	};
	struct program *p;
	if (program_new(&o, &p) != 0)
		return 0;
	tell(p, data, size);
	program_free(p);
	/* again, with tables that are known by now */
	if (program_new(&o, &p) == 0)
		tell(p, data, size);
	program_free(p);
	table_cache_clear(&cache, &sites);
	if (all.used != 0 || sites.n_sites != 0)
		abort();
	loop_sites_clear(&sites);
	return 0;
}
