/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Much is measured: each operation in each unit, each level with several patterns. A loop may be any of them, so its
 * roof is the highest: of a level the fastest pattern, of a precision the fastest unit. The lines below the highest
 * peak show what leaving out FMA or vectors costs.
 */
#include "client/roofline/roofline_roofs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/roofs/find.h"
#include "proto/base/memory.h"

#define MEASURE "`mperfctl roofs measure` measures them in a minute."
#define PER_NS 1e9

static bool precision_of(const char *text, enum plot_precision *ret_precision)
{
	static const char *const names[N_PLOT_PRECISIONS] = {
		"f64", "f32", "f16", "i64", "i32", "i16", "i8"};
	for (enum plot_precision k = 0; k < N_PLOT_PRECISIONS; k++) {
		if (strcmp(text, names[k]) == 0) {
			*ret_precision = k;
			return true;
		}
	}
	return false;
}

/* "fma" for floats, "mac" for integers. */
static bool is_fused(const char *operation)
{
	return strcmp(operation, "fma") == 0 || strcmp(operation, "mac") == 0;
}

static bool has_fused(const struct roofs *from, const struct roof *of)
{
	const struct roof_wanted wanted = {.limit = ROOF_COMPUTE,
		.scope = ROOF_HART,
		.kind = of->kind,
		.precision = of->precision,
		.operation = *of->precision == 'i' ? "mac" : "fma"};
	return roofs_highest(from, &wanted) != NULL;
}

/* Additions and fused operations; without fused ones, pairs of multiplication and addition. */
static bool is_shown(const struct roofs *from, const struct roof *roof)
{
	return roof->limit == ROOF_MEMORY || strcmp(roof->operation, "add") == 0 ||
	       is_fused(roof->operation) ||
	       (strcmp(roof->operation, "mul+add") == 0 && !has_fused(from, roof));
}

/* "" if all harts are of one kind. */
static const char *kind_text(const struct roofs *from, const struct roof *roof)
{
	if (from->n_kinds <= 1)
		return "";
	for (size_t i = 0; i < from->n_kinds; i++)
		if (strcmp(from->kinds[i].id, roof->kind) == 0 && *from->kinds[i].name)
			return from->kinds[i].name;
	return roof->kind;
}

static bool convert(const struct roofs *from, const struct roof *roof, struct plot_roof *ret_roof)
{
	struct plot_roof p = {.is_memory = roof->limit == ROOF_MEMORY,
		.precision = PLOT_NO_PRECISION,
		.value = roof->value / PER_NS,
		.low = roof->low / PER_NS,
		.high = roof->high / PER_NS};
	if (roof->scope != ROOF_HART || !is_shown(from, roof) || !(roof->value > 0) ||
		(!p.is_memory && !precision_of(roof->precision, &p.precision)))
		return false;
	snprintf(p.hart_kind, sizeof(p.hart_kind), "%.*s", PLOT_NAME_BYTES - 1,
		kind_text(from, roof));
	bool is_scalar = strcmp(roof->unit, "scalar") == 0;
	if (p.is_memory)
		snprintf(p.name, sizeof(p.name), "%s", roof->level);
	else
		snprintf(p.name, sizeof(p.name), "%s %s", is_scalar ? "scalar" : "vector",
			roof->operation);
	snprintf(p.how, sizeof(p.how), "%s%s%s%s%.100s", roof->unit, p.is_memory ? " " : "",
		p.is_memory ? roof->pattern : "", *roof->note ? "; " : "", roof->note);
	*ret_roof = p;
	return true;
}

static int take(const struct roofs *from, struct roofline_roofs *r)
{
	r->roof = calloc(from->n + 1, sizeof(*r->roof));
	if (!r->roof)
		return -ENOMEM;
	for (size_t i = 0; i < from->n && r->n < PLOT_ROOFS_MAX; i++)
		r->n += convert(from, &from->roof[i], &r->roof[r->n]);
	if (r->n == 0)
		snprintf(r->none, sizeof(r->none),
			"There are no measured roofs of a single hart to compare with. " MEASURE);
	if (from->stale)
		snprintf(r->stale, sizeof(r->stale),
			"These roofs are stale, so no loop is compared with them: %.250s. " MEASURE,
			from->why);
	else if (*from->disturbed)
		snprintf(r->disturbed, sizeof(r->disturbed),
			"These roofs may be too low, and shares of them too high: when they were "
			"measured, %.250s. `mperfctl roofs measure` measures them again.",
			from->disturbed);
	return 0;
}

static void tell_whose(const struct roofs *from, struct roofline_roofs *r)
{
	char when[64] = "";
	struct tm tm;
	time_t measured = (time_t)from->measured_s;
	if (localtime_r(&measured, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
	snprintf(r->whose, sizeof(r->whose), "Roofs: %s, measured %s%s.",
		roofs_keeper_says(from->keeper), when,
		from->paused ? " while mperfd's sampling was lowered" : "");
}

/* --- theoretical peaks ------------------------------------------------------------------------ */

static const struct machine_hart *hart_of(const struct machine *m, uint32_t number)
{
	for (size_t i = 0; i < m->n_harts; i++)
		if (m->hart[i].number == number)
			return &m->hart[i];
	return NULL;
}

/* Parse a precision as platform files write it: "fp64", "int8". */
static bool documented_precision(const char *text, enum plot_precision *ret_precision)
{
	char name[ROOF_WORD_BYTES];
	snprintf(name, sizeof(name), "%c%.8s", *text, text + strcspn(text, "0123456789"));
	return precision_of(name, ret_precision);
}

bool roofline_roofs_peak(
	const struct machine *m, const struct peak *peak, struct plot_roof *ret_roof)
{
	const struct machine_hart *h = hart_of(m, peak->hart);
	struct plot_roof p = {.is_theoretical = true};
	if (!h || h->khz == 0 || !documented_precision(peak->precision, &p.precision))
		return false;
	double ghz = (double)h->khz / 1e6;
	p.value = peak->ops_per_cycle * ghz;
	snprintf(p.name, sizeof(p.name), "theoretical %s", peak->unit);
	snprintf(p.how, sizeof(p.how), "%g a cycle at %.3g GHz, %s", peak->ops_per_cycle, ghz,
		peak->source);
	snprintf(p.hart_kind, sizeof(p.hart_kind), "%.*s", PLOT_NAME_BYTES - 1,
		m->n_kinds > 1 ? m->kind[h->kind].name : "");
	*ret_roof = p;
	return true;
}

static int add_peaks(struct roofline_roofs *r)
{
	_cleanup_(freep) struct peak *peak = NULL;
	struct machine m;
	size_t n;
	int error = peaks_find(&peak, &n);
	if (error < 0 || n == 0)
		return error;
	struct plot_roof *grown = realloc(r->roof, (r->n + n) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->roof = grown;
	if (machine_look(&m) < 0)
		return 0;
	for (size_t i = 0; i < n && r->n < PLOT_ROOFS_MAX; i++)
		r->n += roofline_roofs_peak(&m, &peak[i], &r->roof[r->n]);
	machine_clear(&m);
	return 0;
}

/* ---------------------------------------------------------------------------------------------- */

int roofline_roofs_find(enum roofline_peaks peaks, struct roofline_roofs *ret_roofs)
{
	struct roofline_roofs r = {.n = 0};
	struct roofs from = {.n = 0};
	char fault[ROOF_NOTE_BYTES] = "";
	int found = roofs_find(&from, fault);
	if (found == -ENOMEM)
		return found;
	if (found == 0) {
		found = take(&from, &r);
		tell_whose(&from, &r);
	} else if (found == ROOFS_NONE)
		snprintf(r.none, sizeof(r.none),
			"The roofs of this machine are not known. " MEASURE);
	else
		snprintf(r.none, sizeof(r.none),
			"The roofs of this machine cannot be read: %.250s. " MEASURE,
			*fault ? fault : strerror(-found));
	roofs_clear(&from);
	if (found != -ENOMEM && peaks != ROOFLINE_NO_PEAKS &&
		(*r.none || peaks == ROOFLINE_PEAKS_TOO))
		found = add_peaks(&r);
	if (found == -ENOMEM) {
		roofline_roofs_clear(&r);
		return found;
	}
	*ret_roofs = r;
	return 0;
}

void roofline_roofs_clear(struct roofline_roofs *r)
{
	free(TAKE_PTR(r->roof));
	*r = (struct roofline_roofs){.n = 0};
}
