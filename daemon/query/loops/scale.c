/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A function in two bodies reports its entries and its counted entries. Its counts represent all
 * entries, so they are multiplied by the ratio of the two. Entries, time and the cost of counting
 * are of all entries already.
 *
 * Functions choose for themselves whether they count, so each has a ratio of its own. Each outermost
 * loop has one too, since both bodies count its entries; nested loops use the ratio of the
 * outermost.
 *
 * The error depends on how much entries differ, which is not known. The reported error assumes a
 * standard deviation of entries equal to their mean: the relative standard deviation of a sum of n
 * out of m such, sqrt((1 - n / m) / n). Equal entries cause no error.
 *
 * A region of which 1 in N entries is measured has its time weighed already (runtime/draw.h), but
 * the entries since the last complete window are represented by one measured entry, or by none.
 * Since their number is known, the time is multiplied by all entries over the represented ones.
 */
#include <math.h>

#include "daemon/query/loops/facts.h"

uint32_t loop_facts_counted_by(const struct loop_facts *f, uint32_t site)
{
	while (site != 0 && !(f->sites.site[site - 1].flags & MPERF_SCOPE_CLONED))
		site = f->sites.site[site - 1].parent;
	return site;
}

double loop_share_error(double entries, double counted)
{
	if (counted <= 0 || counted >= entries)
		return 0;
	return sqrt((1 - counted / entries) / counted);
}

/* Does the metric's value come from the counted entries alone? */
static bool is_part(unsigned metric, bool cloned)
{
	switch (metric) {
	case LOOP_ENTRIES:
		return !cloned;
	case LOOP_COUNTED_ENTRIES:
	case LOOP_TIMED_ENTRIES:
	case LOOP_TIME_NS:
	case LOOP_UPDATES:
		return false;
	default:
		return metric < LOOP_METRICS_OF_PROGRAMS;
	}
}

static uint64_t times(uint64_t value, uint64_t entries, uint64_t counted)
{
	unsigned __int128 product = (unsigned __int128)value * entries + counted / 2;
	product /= counted;
	return product > UINT64_MAX ? UINT64_MAX : (uint64_t)product;
}

static void scale(struct fact *fact, bool cloned, uint64_t entries, uint64_t counted)
{
	for (unsigned i = 0; i < N_LOOP_VALUES; i++)
		if (fact->value[i] && is_part(i / 2, cloned))
			fact->value[i] = times(fact->value[i], entries, counted);
}

/* The fact whose entries scale another fact of the same thread, region and time; NULL: none. */
static const struct fact *fact_around(const struct loop_facts *f, uint32_t i, bool *ret_itself)
{
	struct key key = f->table.keys.key[i];
	uint32_t by = loop_facts_counted_by(f, (uint32_t)key.part[0]);
	*ret_itself = by == key.part[0];
	if (by == 0 || key.part[1] == FACT_ANY_REGION)
		return NULL;
	key.part[0] = by;
	uint32_t index = key_find(&f->table.keys, &key);
	return index == KEY_NONE ? NULL : &f->table.fact[index];
}

bool loop_facts_is_scarce(const struct loop_facts *f, uint32_t fact)
{
	bool itself;
	const struct fact *around = fact_around(f, fact, &itself);
	if (!around || !itself)
		return false;
	uint64_t counted = around->value[LOOP_VALUE(LOOP_COUNTED_ENTRIES, false)];
	return counted <= 1 && counted < around->value[LOOP_VALUE(LOOP_ENTRIES, false)];
}

static void times_real(uint64_t *value, double factor)
{
	double product = (double)*value * factor;
	*value = product < (double)INT64_MAX ? (uint64_t)product : INT64_MAX;
}

static void scale_region(struct fact *fact)
{
	const uint64_t *v = fact->value;
	double entries = (double)v[LOOP_VALUE(LOOP_ENTRIES, false)];
	double outer = entries - (double)v[LOOP_VALUE(LOOP_INNER_ENTRIES, false)];
	double represented = (double)v[LOOP_VALUE(LOOP_REPRESENTED, false)];
	if (represented <= 0 || outer <= 0)
		return;
	double factor = outer / represented;
	times_real(&fact->value[LOOP_VALUE(LOOP_TIME_NS, false)], factor);
	times_real(&fact->value[LOOP_VALUE(LOOP_TIME_VARIANCE, false)], factor * factor);
}

void loop_facts_scale(struct loop_facts *f)
{
	for (uint32_t i = 0; i < f->table.keys.n_keys; i++) {
		uint64_t site = f->table.keys.key[i].part[0];
		bool itself;
		if (site != 0 && f->sites.site[site - 1].kind == LOOP_SITE_REGION)
			scale_region(&f->table.fact[i]);
		const struct fact *around = fact_around(f, i, &itself);
		if (!around)
			continue;
		uint64_t entries = around->value[LOOP_VALUE(LOOP_ENTRIES, false)];
		uint64_t counted = around->value[LOOP_VALUE(LOOP_COUNTED_ENTRIES, false)];
		if (counted >= entries)
			continue;
		f->scaled.any |= itself;
		f->scaled.n_scarce += loop_facts_is_scarce(f, i);
		if (counted > 0)
			scale(&f->table.fact[i], itself, entries, counted);
	}
}
