/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * With P the highest peak, and B the bandwidth of a level, a loop that takes all its data from there is bound by
 * memory below the intensity P / B, and by compute above. The bytes that a loop asks for do not say which level they
 * come from. So there are three zones: below P / B of the fastest level memory bounds in any case, above P / B of the
 * slowest compute does, and between them both may. The level of bytes that came from memory is known, so they have
 * two zones, which the memory's own roof divides. Roofs of another machine or kernel bound nothing.
 *
 * A zone says what would bound a loop that reaches a roof. A loop far below all of them waits for
 * something else, such as latency, so a bound is named only near a roof.
 */
#include "client/plot/bound.h"

#include <math.h>
#include <string.h>

#include "client/plot/scale.h"

const char *plot_precision_text(enum plot_precision precision)
{
	static const char *const texts[] = {"double precision", "single precision",
		"half precision", "64-bit integers", "32-bit integers", "16-bit integers",
		"8-bit integers", "no operations"};
	return texts[precision];
}

const char *plot_bound_text(enum plot_bound bound)
{
	static const char *const texts[N_PLOT_BOUNDS] = {NULL, "memory", "both", "compute"};
	return texts[bound];
}

bool plot_dot_has_place(const struct plot_dot *d)
{
	return plot_has_place(d->gops) && plot_has_place(d->ops_per_byte);
}

bool plot_dot_has_dram_place(const struct plot_dot *d)
{
	return plot_has_place(d->gops) && plot_has_place(d->ops_per_dram_byte);
}

bool plot_dot_is_drawn(const struct plot_dot *d)
{
	return plot_dot_has_place(d) || plot_dot_has_dram_place(d);
}

double plot_dot_intensity(const struct plot_dot *d)
{
	return plot_dot_has_place(d) ? d->ops_per_byte : d->ops_per_dram_byte;
}

/* The name that mperf-roofs gives the level. */
#define DRAM "DRAM"

/* --- sets ------------------------------------------------------------------------------------- */

/* Keep the list sorted by falling value, with one roof of each name. */
static size_t insert(
	const struct plot_roof **list, size_t n, size_t max, const struct plot_roof *roof)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(list[i]->name, roof->name) != 0)
			continue;
		if (list[i]->value >= roof->value)
			return n;
		memmove(&list[i], &list[i + 1], (n - i - 1) * sizeof(*list));
		n--;
		break;
	}
	size_t at = n;
	while (at > 0 && list[at - 1]->value < roof->value)
		at--;
	if (at >= max)
		return n;
	n = n < max ? n + 1 : max;
	memmove(&list[at + 1], &list[at], (n - at - 1) * sizeof(*list));
	list[at] = roof;
	return n;
}

static void fill(const struct plot *p, struct plot_set *s)
{
	for (size_t i = 0; i < p->n_roofs; i++) {
		const struct plot_roof *roof = &p->roof[i];
		if (strcmp(roof->hart_kind, s->hart_kind) != 0 || !plot_has_place(roof->value))
			continue;
		if (p->dram_only && roof->is_memory && strcmp(roof->name, DRAM) != 0)
			continue;
		if (roof->is_memory)
			s->n_memory = insert(s->memory, s->n_memory, PLOT_LEVELS_MAX, roof);
		else if (roof->precision == s->precision)
			s->n_peaks = insert(s->peak, s->n_peaks, PLOT_PEAKS_MAX, roof);
	}
	s->fastest = s->n_memory > 0 ? s->memory[0]->value : 0;
	s->slowest = s->n_memory > 0 ? s->memory[s->n_memory - 1]->value : 0;
	for (size_t i = 0; i < s->n_memory; i++)
		if (strcmp(s->memory[i]->name, DRAM) == 0)
			s->dram = s->memory[i]->value;
	for (size_t i = 0; i < s->n_peaks && !(s->gops > 0); i++)
		s->gops = s->peak[i]->is_theoretical ? 0 : s->peak[i]->value;
}

static bool is_wanted(const struct plot *p, enum plot_precision precision)
{
	return p->is_integer ? precision >= PLOT_I64 && precision < N_PLOT_PRECISIONS
			     : precision < PLOT_I64;
}

static const struct plot_set *find(
	const struct plot_sets *sets, const char *hart_kind, enum plot_precision precision)
{
	for (size_t i = 0; i < sets->n; i++)
		if (sets->set[i].precision == precision &&
			strcmp(sets->set[i].hart_kind, hart_kind) == 0)
			return &sets->set[i];
	return NULL;
}

static void add_set(const struct plot *p, struct plot_sets *sets, const struct plot_roof *of)
{
	enum plot_precision precision = of->is_memory ? PLOT_NO_PRECISION : of->precision;
	if (sets->n == PLOT_SETS_MAX || find(sets, of->hart_kind, precision))
		return;
	struct plot_set *s = &sets->set[sets->n++];
	*s = (struct plot_set){.hart_kind = of->hart_kind, .precision = precision};
	fill(p, s);
}

/* The precision of most of the work, by time. */
static enum plot_precision usual_precision(const struct plot *p)
{
	double share[N_PLOT_PRECISIONS + 1] = {0};
	enum plot_precision most = p->is_integer ? PLOT_I64 : PLOT_F64;
	for (size_t i = 0; i < p->n_dots; i++)
		if (plot_dot_is_drawn(&p->dot[i]))
			share[p->dot[i].precision] += fmax(p->dot[i].share, 0);
	for (enum plot_precision k = 0; k < N_PLOT_PRECISIONS; k++)
		if (is_wanted(p, k) && share[k] > share[most])
			most = k;
	return most;
}

static double highest(const struct plot_set *s)
{
	return s->n_peaks > 0 ? s->peak[0]->value : 0;
}

/* The set to show first: of the usual precision, and if kinds of harts differ, of the fastest. */
static size_t choose_shown(const struct plot *p, const struct plot_sets *sets)
{
	enum plot_precision usual = usual_precision(p);
	size_t best = 0;
	for (size_t i = 1; i < sets->n; i++) {
		const struct plot_set *s = &sets->set[i], *b = &sets->set[best];
		bool is_usual = s->precision == usual, was_usual = b->precision == usual;
		if (is_usual != was_usual ? is_usual : highest(s) > highest(b))
			best = i;
	}
	return best;
}

void plot_sets_make(const struct plot *p, struct plot_sets *ret_sets)
{
	*ret_sets = (struct plot_sets){.n = 0};
	for (size_t i = 0; i < p->n_roofs; i++)
		if (!p->roof[i].is_memory && is_wanted(p, p->roof[i].precision))
			add_set(p, ret_sets, &p->roof[i]);
	for (size_t i = 0; i < p->n_roofs && ret_sets->n == 0; i++)
		if (p->roof[i].is_memory)
			add_set(p, ret_sets, &p->roof[i]);
	ret_sets->shown = choose_shown(p, ret_sets);
}

/* --- bounds ----------------------------------------------------------------------------------- */

bool plot_set_zones(const struct plot_set *s, double *ret_memory, double *ret_compute)
{
	if (!(s->gops > 0) || !(s->fastest > 0))
		return false;
	*ret_memory = s->gops / s->fastest;
	*ret_compute = s->gops / s->slowest;
	return true;
}

bool plot_set_dram_bend(const struct plot_set *s, double *ret_bend)
{
	if (!(s->gops > 0) || !(s->dram > 0))
		return false;
	*ret_bend = s->gops / s->dram;
	return true;
}

/* Near a roof: at least half of it. Below that, a loop would spend less than half of its time at
 * the roof, and more on something else, which a higher roof would not shorten. Both rates are
 * measured, so up to a tenth above a level's roof still counts as that roof. */
#define NEAR_LEAST 0.5
#define NEAR_MOST 1.1

static bool is_near(double rate, const struct plot_roof *const *roof, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const bool is_highest = i == 0;
		if (!roof[i]->is_theoretical && rate >= NEAR_LEAST * roof[i]->value &&
			(is_highest || rate <= NEAR_MOST * roof[i]->value))
			return true;
	}
	return false;
}

/* Is the dot near a roof of its zone? */
static bool is_bound(const struct plot_dot *d, const struct plot_set *s, enum plot_bound zone)
{
	const double gbytes = d->gbytes >= 0 ? d->gbytes : d->gops / d->ops_per_byte;
	return (zone != PLOT_BOUND_COMPUTE && is_near(gbytes, s->memory, s->n_memory)) ||
	       (zone != PLOT_BOUND_MEMORY && is_near(d->gops, s->peak, s->n_peaks));
}

/* For bytes from memory, roofs of caches do not matter. */
static void bind_dram(struct plot_dot *d, const struct plot_set *s)
{
	double bend;
	d->dram_bound = PLOT_BOUND_UNKNOWN;
	d->of_dram_roof = -1;
	if (!s || !plot_dot_has_dram_place(d) || !plot_set_dram_bend(s, &bend))
		return;
	d->of_dram_roof = d->gops / fmin(s->gops, s->dram * d->ops_per_dram_byte);
	if (d->of_dram_roof >= NEAR_LEAST)
		d->dram_bound =
			d->ops_per_dram_byte < bend ? PLOT_BOUND_MEMORY : PLOT_BOUND_COMPUTE;
}

/* A loop without operations of this kind may spend its time on others, so only its bandwidth says
 * something. */
static void bind(struct plot_dot *d, const struct plot_set *s)
{
	double memory, compute;
	d->bound = PLOT_BOUND_UNKNOWN;
	d->of_roof = -1;
	bool is_asked =
		d->gbytes >= 0 || plot_dot_has_place(d); /* otherwise it is drawn only by bytes from
							  * memory */
	if (!s || !is_asked || !plot_set_zones(s, &memory, &compute))
		return;
	if (d->gops > 0 || d->gbytes > 0)
		d->of_roof = fmax(d->gops / s->gops, d->gbytes / s->fastest);
	if (!plot_dot_has_place(d))
		return;
	const enum plot_bound zone = d->ops_per_byte < memory    ? PLOT_BOUND_MEMORY
				     : d->ops_per_byte > compute ? PLOT_BOUND_COMPUTE
								 : PLOT_BOUND_BOTH;
	if (is_bound(d, s, zone))
		d->bound = zone;
}

void plot_bind(struct plot *p, const struct plot_sets *sets)
{
	const char *kind = sets->n > 0 ? sets->set[sets->shown].hart_kind : "";
	for (size_t i = 0; i < p->n_dots; i++) {
		struct plot_dot *d = &p->dot[i];
		bool computes = d->gops > 0;
		const struct plot_set *s = p->stale ? NULL : find(sets, kind, d->precision);
		/* memory is the same for each precision */
		if (!computes && !p->stale && sets->n > 0)
			s = &sets->set[sets->shown];
		bind(d, s);
		bind_dram(d, s);
	}
}
