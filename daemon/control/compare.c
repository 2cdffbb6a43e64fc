/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * diff and gate: one recording is read each turn, so that the client can show progress and cancel;
 * then all are compared and the answer is sent. Only a private daemon reads files.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/compare/became.h"
#include "daemon/compare/compare.h"
#include "daemon/compare/gather.h"
#include "daemon/control/compare_beside.h"
#include "daemon/control/query_request.h"

#define MARGIN_PPM 20000
#define EFFECT_PPM 50000
#define SEED 1
#define TOO_MANY "Compare fewer recordings, or --by module."

/* Exit statuses that CI systems see. */
enum { STATUS_WITHIN = 0, STATUS_SLOWER = 3, STATUS_UNDECIDED = 4 };

struct compare_job {
	struct job job;
	Mperf__Request *request; /* a copy */
	const Mperf__CompareRequest *asked;
	bool is_gate;
	enum query_by by;
	struct gather *gather;
	size_t n_read;
};

static void compare_free(struct job *job)
{
	struct compare_job *j = (struct compare_job *)job;
	if (j->request)
		mperf__request__free_unpacked(j->request, NULL);
	gather_free(j->gather);
	free(j);
}

static size_t n_files(const struct compare_job *j)
{
	return j->asked->n_baseline + j->asked->n_candidate;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The next file: 0, positive after a refusal, -errno. */
static int read_one(struct compare_job *j, struct request *q)
{
	const Mperf__CompareRequest *m = j->asked;
	const bool candidate = j->n_read >= m->n_baseline;
	const char *path =
		candidate ? m->candidate[j->n_read - m->n_baseline] : m->baseline[j->n_read];
	const struct query_filter filter = query_filter_of(q, m->filter);
	const struct query_question question = {
		.by = j->by, .inlined = m->inlined, .filter = &filter};
	struct query_error error = {"", "", 0};
	sqlite3 *db;

	int r = request_open_segment(q, path, &db);
	if (r != 0)
		return r;
	r = gather_run(j->gather, candidate, db, &question, &error);
	sqlite3_close(db);
	j->n_read++;
	if (r == GATHER_FULL)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, TOO_MANY,
			"the recordings have more than %u rows", GATHER_ROWS_MAX);
	else if (r == QUERY_FAILED)
		r = request_fail(q, error.kind, error.remedy, "%s: %s", path, error.text);
	else
		return r;
	return r < 0 ? r : 1;
}

/* Are there two instruction sets? Then changes mean nothing: the same work is other instructions. */
static bool is_of_two_machines(const struct compare_job *j)
{
	const char *first = gather_source(j->gather, 0).arch;
	for (size_t i = 1; i < n_files(j); i++)
		if (strcmp(gather_source(j->gather, i).arch, first) != 0)
			return true;
	return false;
}

static bool is_beside(const struct compare_job *j)
{
	return !j->is_gate && (j->asked->side_by_side || is_of_two_machines(j));
}

/* A side is of one machine, also where sides are not. 0, positive after a refusal, -errno. */
static int check_machines(struct compare_job *j, struct request *q)
{
	const Mperf__CompareRequest *m = j->asked;
	for (size_t i = 0; i < n_files(j); i++) {
		const bool candidate = i >= m->n_baseline;
		const size_t first = candidate && !j->is_gate ? m->n_baseline : 0;
		const struct gathered_source a = gather_source(j->gather, first);
		const struct gathered_source b = gather_source(j->gather, i);
		if (strcmp(a.arch, b.arch) == 0)
			continue;
		int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			j->is_gate ? "Use mperfctl diff, which shows two machines side by side."
				   : "Put recordings of one machine on each side.",
			"'%s' is of a machine with instruction set %s, and '%s' with %s",
			first < m->n_baseline ? m->baseline[first] : m->candidate[0], a.arch,
			candidate ? m->candidate[i - m->n_baseline] : m->baseline[i], b.arch);
		return r < 0 ? r : 1;
	}
	return 0;
}

/* Are all runs of one event, and are there samples in each? 0, positive after a refusal, -errno. */
static int check_sources(struct compare_job *j, struct request *q)
{
	const struct gathered_source first = gather_source(j->gather, 0);
	int r = check_machines(j, q);
	if (r != 0)
		return r;

	for (size_t i = 0; i < n_files(j) && r == 0; i++) {
		const Mperf__CompareRequest *m = j->asked;
		const char *path =
			i < m->n_baseline ? m->baseline[i] : m->candidate[i - m->n_baseline];
		const struct gathered_source s = gather_source(j->gather, i);
		if (s.samples == 0)
			r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
				"Leave it out, record longer, or relax the filters.",
				"'%s' has no samples that match", path);
		else if (!is_beside(j) && strcmp(s.event, first.event) != 0)
			r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
				j->is_gate ? "Record both sides on the same machine, or with the "
					     "same -e."
					   : "Record both sides with the same -e, or compare "
					     "shares alone: --side-by-side.",
				"'%s' was sampled by %s and '%s' by %s, so their samples mean "
				"different things",
				m->baseline[0], first.event, path, s.event);
		else
			continue;
		return r < 0 ? r : 1;
	}
	return 0;
}

/* --- answering -------------------------------------------------------------------------------- */

static struct answer_value text(const char *t)
{
	return t ? (struct answer_value){.kind = ANSWER_TEXT, .text = t}
		 : (struct answer_value){.kind = ANSWER_ABSENT};
}

static struct answer_value integer(size_t n)
{
	return (struct answer_value){.kind = ANSWER_INTEGER, .integer = (int64_t)n};
}

static struct answer_value real(double value)
{
	return isfinite(value) ? (struct answer_value){.kind = ANSWER_REAL, .real = value}
			       : (struct answer_value){.kind = ANSWER_ABSENT};
}

static struct answer_value nanoseconds(double ns)
{
	return (struct answer_value){.kind = ANSWER_INTEGER, .integer = (int64_t)(ns + 0.5)};
}

static const struct answer_column change_columns[] = {
	{"change", "Change", MPERF__UNIT__UNIT_SHARE},
	{"low", "From", MPERF__UNIT__UNIT_SHARE},
	{"high", "To", MPERF__UNIT__UNIT_SHARE},
	{"p", "p", MPERF__UNIT__UNIT_RATIO},
	{"seen_from", "Seen from", MPERF__UNIT__UNIT_SHARE},
	{"runs_needed", "Runs needed", MPERF__UNIT__UNIT_COUNT},
};
#define N_CHANGE_COLUMNS (sizeof(change_columns) / sizeof(*change_columns))

static size_t put_change(struct answer_value *v, const struct compare_change *c)
{
	v[0] = real(c->change);
	v[1] = real(c->low);
	v[2] = real(c->high);
	v[3] = real(c->p);
	v[4] = real(c->seen_from);
	v[5] = c->runs_needed < 1e9 ? nanoseconds(c->runs_needed) : real(NAN);
	return N_CHANGE_COLUMNS;
}

static size_t put_columns(struct answer_column *to, const struct answer_column *from, size_t n)
{
	memcpy(to, from, n * sizeof(*to));
	return n;
}

static const char *const verdict_says[] = {"within", "slower", "undecided"};

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

static int tell_total(struct row_stream *s, const struct answer *to,
	const struct compare_runs *runs, const struct comparison *c)
{
	static const struct answer_column columns[] = {{"verdict", "Verdict", 0},
		{"baseline_runs", "Baseline runs", MPERF__UNIT__UNIT_COUNT},
		{"candidate_runs", "Candidate runs", MPERF__UNIT__UNIT_COUNT},
		{"baseline_ns", "Baseline", MPERF__UNIT__UNIT_NS},
		{"candidate_ns", "Candidate", MPERF__UNIT__UNIT_NS},
		{"above", "At most", MPERF__UNIT__UNIT_SHARE},
		{"spread", "Spread", MPERF__UNIT__UNIT_SHARE},
		{"tested", "Tested", MPERF__UNIT__UNIT_COUNT},
		{"untested", "Untested", MPERF__UNIT__UNIT_COUNT},
		{"stable", "Stable", MPERF__UNIT__UNIT_COUNT}, {"few_runs", "Few runs", 0},
		{"not_in_turns", "Not in turns", 0}, {"total_wide", "Total wide", 0},
		{"functions_wide", "Rows wide", 0}};
	struct answer_column all[sizeof(columns) / sizeof(*columns) + N_CHANGE_COLUMNS];
	struct answer_value v[sizeof(columns) / sizeof(*columns) + N_CHANGE_COLUMNS];
	size_t n = put_columns(all, columns, sizeof(columns) / sizeof(*columns));

	n += put_columns(all + n, change_columns, N_CHANGE_COLUMNS);
	int r = row_stream_table(s, "total");
	if (r == 0)
		r = to->columns(to->userdata, all, n);
	n = 0;
	v[n++] = text(verdict_says[c->verdict]);
	v[n++] = integer(c->n_baseline);
	v[n++] = integer(c->n_candidate);
	v[n++] = nanoseconds(mean_total(runs, false));
	v[n++] = nanoseconds(mean_total(runs, true));
	v[n++] = real(c->total.above);
	v[n++] = c->lacks & COMPARE_FEW_RUNS ? real(NAN) : real(c->common_spread);
	v[n++] = integer(c->n_tested);
	v[n++] = integer(c->n_functions - c->n_tested);
	v[n++] = integer(c->n_stable);
	for (unsigned lack = COMPARE_FEW_RUNS; lack <= COMPARE_FUNCTIONS_WIDE; lack <<= 1)
		v[n++] = integer(c->lacks & lack ? 1 : 0);
	n += put_change(v + n, &c->total);
	return r == 0 ? to->row(to->userdata, v, n) : r;
}

struct tell {
	const struct gather *gather;
	const struct comparison *slower, *faster; /* faster: NULL, or with the sides exchanged */
	const struct became *became;              /* by row */
};

static const char *verdict_of(const struct tell *t, size_t row)
{
	const struct compare_function *f = &t->slower->function[row];
	return f->is_slower                                      ? "slower"
	       : t->faster && t->faster->function[row].is_slower ? "faster"
	       : f->is_tested                                    ? "same"
								 : "untested";
}

/* What was decided first; then what changes the total most. */
static int by_weight(const void *a, const void *b, void *userdata)
{
	const struct tell *t = userdata;
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

static int tell_row(const struct tell *t, const struct answer *to, size_t row, size_t n_names)
{
	const struct compare_function *f = &t->slower->function[row];
	struct answer_value v[GATHER_PARTS + 9 + N_CHANGE_COLUMNS];
	const char *names[GATHER_PARTS];
	size_t n = 0;

	gather_names(t->gather, row, names);
	while (n < n_names) {
		v[n] = text(names[n]);
		n++;
	}
	v[n++] = text(verdict_of(t, row));
	v[n++] = real(f->share);
	v[n++] = real(f->samples);
	v[n++] = nanoseconds(gather_time_ns(t->gather, row, false));
	v[n++] = nanoseconds(gather_time_ns(t->gather, row, true));
	v[n++] = real(f->adds);
	v[n++] = integer(f->is_stable);
	char became[BECAME_TEXT_BYTES];
	v[n++] = text(compare_became(t->gather, t->became, row, became));
	n += put_change(v + n, &f->own);
	return to->row(to->userdata, v, n);
}

static int tell_changes(
	struct row_stream *s, const struct answer *to, const struct tell *t, uint32_t limit)
{
	static const struct answer_column columns[] = {{"verdict", "Verdict", 0},
		{"share", "Share", MPERF__UNIT__UNIT_SHARE},
		{"samples", "Samples", MPERF__UNIT__UNIT_RATIO},
		{"baseline_ns", "Baseline", MPERF__UNIT__UNIT_NS},
		{"candidate_ns", "Candidate", MPERF__UNIT__UNIT_NS},
		{"adds", "Adds", MPERF__UNIT__UNIT_SHARE}, {"stable", "Stable", 0},
		{"became", "Became", 0}};
	struct answer_column all[GATHER_PARTS + 9 + N_CHANGE_COLUMNS];
	const struct answer_column *names;
	const size_t n_names = gather_columns(t->gather, &names);
	size_t n_rows = t->slower->n_functions;
	_cleanup_(freep) size_t *order = calloc(n_rows + 1, sizeof(*order));
	size_t n = put_columns(all, names, n_names);

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n_rows; i++)
		order[i] = i;
	qsort_r(order, n_rows, sizeof(*order), by_weight, (void *)t);
	n += put_columns(all + n, columns, sizeof(columns) / sizeof(*columns));
	n += put_columns(all + n, change_columns, N_CHANGE_COLUMNS);
	int r = row_stream_table(s, "change");
	if (r == 0)
		r = to->columns(to->userdata, all, n);
	if (limit != 0 && limit < n_rows)
		n_rows = limit;
	for (size_t i = 0; i < n_rows && r == 0; i++)
		r = tell_row(t, to, order[i], n_names);
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

/* The same, the other way round: what became faster. 0 or as compare(). */
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

static int send(struct compare_job *j, struct request *q, const struct compare_runs *runs,
	const struct tell *t)
{
	struct row_stream stream;
	const struct answer to = row_stream_answer(&stream, q);

	int r = tell_total(&stream, &to, runs, t->slower);
	if (r == 0)
		r = tell_changes(&stream, &to, t, j->asked->limit);
	if (row_stream_end(&stream) < 0 || r < 0)
		return r < 0 ? r : -EIO;
	return request_done(q, j->is_gate ? status_of(t->slower->verdict) : 0);
}

static int answer(struct compare_job *j, struct request *q)
{
	const struct compare_options options = options_of(j->asked);
	_cleanup_(comparison_freep) struct comparison *slower = NULL;
	_cleanup_(comparison_freep) struct comparison *faster = NULL;
	_cleanup_(freep) struct became *became = NULL;
	const struct compare_runs *runs;

	int r = check_sources(j, q);
	if (r != 0)
		return r;
	r = gather_table(j->gather, &runs);
	if (r == 0)
		r = became_find(j->gather, runs->n_functions, &became);
	if (r == 0 && is_beside(j))
		return compare_beside_send(q, j->asked, j->gather, became, runs->n_functions);
	if (r == 0)
		r = compare(runs, &options, &slower);
	if (r == 0 && !j->is_gate)
		r = compare_exchanged(runs, &options, &faster);
	if (r == -E2BIG)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, TOO_MANY,
			"there are too many functions and runs to compare");
	if (r == -EINVAL)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"--layout-allowance must be below --plan-for.",
			"what is allowed is no less than what is planned for");
	const struct tell t = {j->gather, slower, faster, became};
	return r == 0 ? send(j, q, runs, &t) : r;
}

/* --- the job ---------------------------------------------------------------------------------- */

static uint64_t compare_deadline_ns(struct job *job, const struct request *q)
{
	(void)job;
	return request_has_room(q) ? 0 : UINT64_MAX;
}

static int compare_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct compare_job *j = (struct compare_job *)job;
	(void)now_ns;
	int r;
	if (j->n_read < n_files(j)) {
		r = read_one(j, q);
		if (r == 0)
			r = request_progress(q, "reading recordings", j->n_read, n_files(j));
		return r > 0 ? JOB_DONE : r;
	}
	r = answer(j, q);
	return r < 0 ? r : JOB_DONE;
}

static int start(struct request *q, const Mperf__Request *request, const Mperf__CompareRequest *m,
	bool is_gate)
{
	static const struct job_kind kind = {.deadline_ns = compare_deadline_ns,
		.dispatch = compare_dispatch,
		.free = compare_free};
	const int by = query_by_parse(*m->by ? m->by : "function");
	if (by < 0 || by == QUERY_BY_THREAD || by == QUERY_BY_HART)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Use function, module, process, cgroup or line.",
			"recordings are not compared by '%s'", m->by);
	if (m->n_baseline == 0 || m->n_candidate == 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Name recordings of both sides.", "there is nothing to compare with");
	struct compare_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->job.kind = &kind;
	j->is_gate = is_gate;
	j->by = (enum query_by)by;
	j->request = query_request_copy(request);
	int r = j->request ? gather_new((enum query_by)by, &j->gather) : -ENOMEM;
	if (r < 0) {
		compare_free(&j->job);
		return r;
	}
	j->asked = is_gate ? j->request->gate : j->request->diff;
	q->job = &j->job;
	return 0;
}

int control_diff(struct request *q, const Mperf__Request *request)
{
	return start(q, request, request->diff, false);
}

int control_gate(struct request *q, const Mperf__Request *request)
{
	return start(q, request, request->gate, true);
}
