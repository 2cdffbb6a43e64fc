/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Strings are copied, since their library may be closed while its figures are still reported. Two
 * threads may meet at a new path: if the list changed before its insertion, a thread searches
 * again.
 */
#include <string.h>
#include <sys/mman.h>

#include "runtime/region.h"
#include "runtime/state.h"

/* Copy a string with its NUL, truncated if too long; returns its bytes. */
static uint32_t text_copy(char *to, const char *from)
{
	size_t n = from ? strnlen(from, MPERF_REGION_TEXT_MAX - 1) : 0;
	if (n)
		memcpy(to, from, n);
	to[n] = '\0';
	return (uint32_t)n + 1;
}

static struct region *region_new(struct region *parent, const struct mperf_region *site)
{
	struct region *r =
		mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED)
		return NULL;
	r->parent = parent;
	r->line = site->line;
	r->name_bytes = text_copy(r->text, site->name);
	r->source_bytes = text_copy(r->text + r->name_bytes, site->source);
	return r;
}

static bool same(const struct region *a, const struct region *b)
{
	return a->parent == b->parent && a->line == b->line && a->name_bytes == b->name_bytes &&
	       a->source_bytes == b->source_bytes &&
	       memcmp(a->text, b->text, a->name_bytes + a->source_bytes) == 0;
}

struct region *mperf_region_get(
	struct state *s, struct region *parent, const struct mperf_region *site)
{
	struct region *made = region_new(parent, site);
	if (!made)
		return NULL;

	struct region *looked = NULL; /* the list has been searched from here on */
	struct region *first = __atomic_load_n(&s->regions, __ATOMIC_ACQUIRE);
	for (;;) {
		for (struct region *r = first; r != looked; r = r->next)
			if (same(r, made)) {
				munmap(made, sizeof(*made));
				return r;
			}
		looked = first;
		made->next = first;
		/* It does not matter if an id is too high, or is never used. */
		if (made->id == 0)
			made->id = __atomic_add_fetch(&s->n_regions, 1, __ATOMIC_RELAXED);
		if (made->id > MPERF_REGIONS_MAX) {
			__atomic_store_n(&s->n_regions, MPERF_REGIONS_MAX, __ATOMIC_RELAXED);
			munmap(made, sizeof(*made));
			return NULL;
		}
		if (__atomic_compare_exchange_n(
			    &s->regions, &first, made, 0, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
			return made;
	}
}
