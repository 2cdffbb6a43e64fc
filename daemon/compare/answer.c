/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The answer of diff and gate, once all runs are gathered from files or from the store.
 */
#include "daemon/compare/answer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/answer/row.h"
#include "daemon/compare/compare.h"
#include "daemon/compare/renames.h"
#include "daemon/compare/side_by_side.h"
#include "daemon/compare/values.h"
#include "daemon/query/load.h"

#define MARGIN_PPM 20000
#define EFFECT_PPM 50000
#define SEED 1

/* Exit statuses that CI systems see. */
enum { STATUS_WITHIN = 0, STATUS_SLOWER = 3, STATUS_UNDECIDED = 4 };

/* --- checks ----------------------------------------------------------------------------------- */

static size_t n_runs(const struct compare_sides *s)
{
	return s->n_side[0] + s->n_side[1];
}

/* Are there two instruction sets? Then changes mean nothing: the same work takes other
 * instructions. */
static bool is_of_two_machines(const struct compare_sides *s)
{
	const char *first = gather_source(s->gather, 0).arch;
	for (size_t i = 1; i < n_runs(s); i++)
		if (strcmp(gather_source(s->gather, i).arch, first) != 0)
			return true;
	return false;
}

static bool is_side_by_side(const struct compare_sides *s)
{
	return !s->is_gate && (s->asked->side_by_side || is_of_two_machines(s));
}

/* Are all runs of a side of one machine, even if the sides differ? 0 or QUERY_FAILED. */
static int check_machines(const struct compare_sides *s, struct query_error *error)
{
	for (size_t i = 0; i < n_runs(s); i++) {
		const bool candidate = i >= s->n_side[0];
		const size_t first = candidate && !s->is_gate ? s->n_side[0] : 0;
		const struct gathered_source a = gather_source(s->gather, first);
		const struct gathered_source b = gather_source(s->gather, i);
		if (strcmp(a.arch, b.arch) == 0)
			continue;
		return query_fail(error, MPERF__FAILURE_KIND__FAILURE_USAGE,
			s->is_gate ? "Use mperfctl diff, which shows two machines side by side."
				   : "Put recordings of one machine on each side.",
			"'%s' is from a machine with instruction set %s, '%s' from one with %s",
			s->name[first], a.arch, s->name[i], b.arch);
	}
	return 0;
}

/* Are all runs of one event, and are there samples in each? 0 or QUERY_FAILED. */
static int check_sources(const struct compare_sides *s, struct query_error *error)
{
	const struct gathered_source first = gather_source(s->gather, 0);
	int r = check_machines(s, error);

	for (size_t i = 0; i < n_runs(s) && r == 0; i++) {
		const struct gathered_source run = gather_source(s->gather, i);
		if (run.samples == 0)
			r = query_fail(error, MPERF__FAILURE_KIND__FAILURE_MISSING,
				gather_is_by_loop(s->gather)
					? "Build the program with mperf-cc, see mperf-cc(1), or "
					  "compare by function."
					: "Leave it out, record longer, or relax the filters.",
				gather_is_by_loop(s->gather)
					? "'%s' has no samples of a program that counts its loops"
					: "'%s' has no samples that match",
				s->name[i]);
		else if (run.ns <= 0 && !gather_is_by_loop(s->gather))
			r = query_fail(error, MPERF__FAILURE_KIND__FAILURE_USAGE,
				"Record both sides by time: with -F, not -c.",
				"'%s' was sampled by occurrences of %s, which do not measure time",
				s->name[i], run.event);
		else if (!is_side_by_side(s) && strcmp(run.event, first.event) != 0)
			r = query_fail(error, MPERF__FAILURE_KIND__FAILURE_USAGE,
				s->is_gate ? "Record both sides on the same machine, or with the "
					     "same -e."
					   : "Record both sides with the same -e, or compare only "
					     "shares: --side-by-side.",
				"'%s' was sampled by %s and '%s' by %s, so their samples mean "
				"different things",
				s->name[0], first.event, s->name[i], run.event);
	}
	return r;
}

/* --- answering -------------------------------------------------------------------------------- */

#define CHANGE_COLUMNS(COLUMN, KNOWN_IF)                                                           \
	COLUMN(change, "Change", share, of->change)                                                \
	COLUMN(low, "Lowest", share, of->low)                                                      \
	COLUMN(high, "Highest", share, of->high)                                                   \
	COLUMN(p, "p of slower", ratio, of->p)                                                     \
	COLUMN(seen_from, "Seen from", share, of->seen_from)                                       \
	KNOWN_IF(runs_needed, "Runs needed", count, of->runs_needed < 1e9, of->runs_needed + 0.5)

static const char *const verdict_name[] = {"within", "slower", "undecided"};

static double mean_total(const struct compare_runs *runs, bool candidate)
{
	double sum = 0;
	size_t n = 0;
	for (size_t r = 0; r < runs->n_runs; r++)
		if (runs->candidate[r] == candidate) {
			sum += runs->total[r];
			n++;
		}
	return n > 0 ? sum / (double)n : 0;
}

#define TOTAL_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(verdict, "Verdict", text, verdict_name[c->verdict])                                 \
	COLUMN(baseline_runs, "Baseline runs", count, c->n_baseline)                               \
	COLUMN(candidate_runs, "Candidate runs", count, c->n_candidate)                            \
	COLUMN(baseline_ns, "Baseline", ns, mean_total(runs, false) + 0.5)                         \
	COLUMN(candidate_ns, "Candidate", ns, mean_total(runs, true) + 0.5)                        \
	COLUMN(above, "At most", share, of->above)                                                 \
	KNOWN_IF(spread, "Spread", share, !(c->lacks & COMPARE_FEW_RUNS), c->common_spread)        \
	COLUMN(tested, "Tested", count, c->n_tested)                                               \
	COLUMN(untested, "Untested", count, c->n_functions - c->n_tested)                          \
	COLUMN(left_out, "Left out", count, n_left_out)                                            \
	COLUMN(stable, "Stable", count, c->n_stable)                                               \
	COLUMN(few_runs, "Few runs", number, !!(c->lacks & COMPARE_FEW_RUNS))                      \
	COLUMN(not_in_turns, "Not in turns", number, !!(c->lacks & COMPARE_NOT_IN_TURNS))          \
	COLUMN(total_wide, "Total wide", number, !!(c->lacks & COMPARE_TOTAL_WIDE))                \
	COLUMN(functions_wide, "Rows wide", number, !!(c->lacks & COMPARE_FUNCTIONS_WIDE))         \
	CHANGE_COLUMNS(COLUMN, KNOWN_IF)

static int send_total(const struct answer *to, const struct compare_runs *runs,
	const struct comparison *c, size_t n_left_out)
{
	const struct compare_change *of = &c->total;
	return TABLE_OF_ONE(to, "total", TOTAL_TABLE);
}

struct changes {
	const struct gather *gather;
	const struct compare_runs *runs;
	/* faster: the comparison with the sides exchanged, or NULL */
	const struct comparison *slower, *faster;
	const struct function_rename *renames; /* by row */
	double margin;
};

static const char *verdict_of(const struct changes *t, size_t row)
{
	const struct compare_function *f = &t->slower->function[row];
	return f->is_slower                                         ? "slower"
	       : t->faster && t->faster->function[row].is_slower    ? "faster"
	       : !f->is_tested                                      ? "untested"
	       : f->own.low > -t->margin && f->own.high < t->margin ? "same"
								    : "undecided";
}

/* Order of rows: decided ones first; then those that change the total most. */
static int by_weight(const void *a, const void *b, void *userdata)
{
	const struct changes *t = userdata;
	const size_t i = *(const size_t *)a, j = *(const size_t *)b;
	const struct compare_function *x = &t->slower->function[i], *y = &t->slower->function[j];
	const bool p = x->is_slower || (t->faster && t->faster->function[i].is_slower);
	const bool q = y->is_slower || (t->faster && t->faster->function[j].is_slower);

	if (p != q)
		return q - p;
	if (fabs(x->adds) != fabs(y->adds))
		return fabs(x->adds) < fabs(y->adds) ? 1 : -1;
	return (i > j) - (i < j);
}

#define CHANGE_TABLE(COLUMN, KNOWN_IF)                                                             \
	COLUMN(verdict, "Verdict", text, verdict_of(t, row))                                       \
	COLUMN(share, "Share", share, f->share)                                                    \
	COLUMN(samples, "Samples", ratio, f->samples)                                              \
	COLUMN(baseline_ns, "Baseline", ns, gather_sums(t->gather, row, false).ns + 0.5)           \
	COLUMN(candidate_ns, "Candidate", ns, gather_sums(t->gather, row, true).ns + 0.5)          \
	COLUMN(adds, "Adds", share, f->adds)                                                       \
	COLUMN(stable, "Stable", number, f->is_stable)                                             \
	COLUMN(became, "Became", text, compare_rename_text(t->gather, t->renames, row, text))      \
	CHANGE_COLUMNS(COLUMN, KNOWN_IF)

#define CHANGE_COLUMNS_MAX                                                                         \
	(GATHER_PARTS + ROW_LENGTH(CHANGE_TABLE) + COMPARE_COUNT_COLUMNS + COMPARE_VALUE_COLUMNS)

/* Send the table's head, or a row. */
static int send_one(const struct changes *t, size_t row, struct compare_value_names *value_names,
	struct row_builder *b, const struct answer *to)
{
	const struct compare_function *f = &t->slower->function[row];
	const struct compare_change *of = &f->own;
	char text[RENAME_TEXT_BYTES];
	const char *names[GATHER_PARTS] = {NULL};
	const struct answer_column *columns;
	const size_t n_names = gather_columns(t->gather, &columns);
	if (b->value)
		gather_names(t->gather, row, names);
	for (size_t i = 0; i < n_names; i++)
		row_add(b, &columns[i], cell_text(names[i]));
	ROW_PART(b, CHANGE_TABLE);
	int r = gather_has_counts(t->gather) ? compare_counts(t->gather, t->runs, row, b) : 0;
	if (r == 0)
		r = compare_values(t->gather, t->runs, row, value_names, b);
	return r == 0 ? row_send(to, "change", b) : r;
}

static int send_head(const struct changes *t, const struct answer *to)
{
	struct answer_column columns[CHANGE_COLUMNS_MAX];
	struct compare_value_names names;
	struct row_builder head = {.column = columns};
	return send_one(t, 0, &names, &head, to);
}

static int send_row(const struct changes *t, const struct answer *to, size_t row)
{
	struct answer_value v[CHANGE_COLUMNS_MAX];
	struct row_builder b = {.value = v};
	return send_one(t, row, NULL, &b, to);
}

static int send_changes(const struct answer *to, struct changes *t, uint32_t limit)
{
	size_t n_rows = t->slower->n_functions;
	_cleanup_(freep) size_t *order = calloc(n_rows + 1, sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n_rows; i++)
		order[i] = i;
	qsort_r(order, n_rows, sizeof(*order), by_weight, t);
	int r = send_head(t, to);
	if (limit != 0 && limit < n_rows)
		n_rows = limit;
	for (size_t i = 0; i < n_rows && r == 0; i++)
		r = send_row(t, to, order[i]);
	return r;
}

static struct compare_options options_of(const Mperf__CompareRequest *m)
{
	return (struct compare_options){
		.margin = (m->margin_ppm ? m->margin_ppm : MARGIN_PPM) / 1e6,
		.effect = (m->effect_ppm ? m->effect_ppm : EFFECT_PPM) / 1e6,
		.allowance = m->allowance_ppm / 1e6,
		.looks = m->looks ? m->looks : 1,
		.seed = SEED,
		.any_order = m->any_order,
	};
}

/* Compare with the sides exchanged, to find what became faster. 0 or as compare(). */
static int compare_exchanged(const struct compare_runs *runs, const struct compare_options *o,
	struct comparison **ret_comparison)
{
	struct compare_runs other = *runs;
	_cleanup_(freep) bool *side = calloc(runs->n_runs, sizeof(*side));
	if (!side)
		return -ENOMEM;
	for (size_t r = 0; r < runs->n_runs; r++)
		side[r] = !runs->candidate[r];
	other.candidate = side;
	return compare(&other, o, ret_comparison);
}

static int status_of(enum compare_verdict verdict)
{
	return verdict == COMPARE_SLOWER   ? STATUS_SLOWER
	       : verdict == COMPARE_WITHIN ? STATUS_WITHIN
					   : STATUS_UNDECIDED;
}

int compare_answer(const struct compare_sides *s, const struct answer *to, int *ret_status,
	struct query_error *ret_error)
{
	const struct compare_options options = options_of(s->asked);
	_cleanup_(comparison_freep) struct comparison *slower = NULL;
	_cleanup_(comparison_freep) struct comparison *faster = NULL;
	_cleanup_(freep) struct function_rename *renames = NULL;
	const struct compare_runs *runs = NULL;

	int r = check_sources(s, ret_error);
	if (r == 0)
		r = gather_table(s->gather, &runs);
	if (r == 0)
		r = renames_find(s->gather, runs->n_functions, &renames);
	if (r == 0 && is_side_by_side(s)) {
		*ret_status = 0;
		return compare_side_by_side(to, s, renames, runs);
	}
	if (r == 0)
		r = compare(runs, &options, &slower);
	if (r == 0 && !s->is_gate)
		r = compare_exchanged(runs, &options, &faster);
	if (r == -E2BIG)
		return query_fail(ret_error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			COMPARE_TOO_MANY_REMEDY,
			"there are too many functions and runs to compare");
	if (r == -EINVAL)
		return query_fail(ret_error, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"--layout-allowance must be below --plan-for.",
			"the layout allowance is not below the growth that is planned for");
	struct changes t = {s->gather, runs, slower, faster, renames, options.margin};
	if (r == 0)
		r = send_total(to, runs, slower, gather_n_left_out(s->gather));
	if (r == 0)
		r = send_changes(to, &t, s->asked->limit);
	if (r == 0)
		*ret_status = s->is_gate ? status_of(slower->verdict) : 0;
	return r;
}
