/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counting slows the program, so its times are unreliable; a run without counting has no counts. If
 * the command runs twice, we take the time from the first run and the counts from the second, as
 * long as both did the same. The entries tell, which both runs count: of each function, and of the
 * outermost loop of each nest. If they differ, a rate of one run's time and the other's counts
 * would describe neither, so there is none. The first run does not count entries of inner loops, so
 * they have no row.
 *
 * How much slower the second run was is the measured cost of counting. How far off it is, one run of
 * each cannot say: on a busy machine, two equal runs differ more than counting costs. So a third run,
 * without counting again, tells how much they differ. Of two times, the standard deviation of one is
 * their difference over the square root of two.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/measure/capture.h"
#include "client/roofline/roofline_print.h"
#include "client/roofline/two_phase.h"
#include "client/show/say.h"
#include "proto/base/memory.h"

#define KEYS_MAX 8 /* columns that identify a row */
#define REFUSED_BYTES 160
#define NOTES_MAX 16

/* --- figures ---------------------------------------------------------------------------------- */

struct combining {
	const struct reply *first, *second;
	const struct reply *again; /* the third run; NULL: none */
	int n_keys;                /* columns before "entries", the same in both */
	struct reply *both;
};

#define NO_ROW SIZE_MAX

/* A row of each run; NO_ROW: that run has none. */
struct pair {
	size_t first, second;
	double time_ns, counting_ns; /* of the first and the second run; negative: not known */
	double again_ns; /* of the third run, if it was entered as often; negative: not known */
	char refused[REFUSED_BYTES]; /* the reason why they are not combined; "" if they are */
};

static double number(const struct reply *r, size_t row, const char *name)
{
	double n;
	return row != NO_ROW && reply_number(r, row, reply_column(r, name), &n) ? n : -1;
}

static Mperf__Value value_of(const struct reply *r, size_t row, int column)
{
	const Mperf__Value *v = row == NO_ROW ? NULL : reply_value(r, row, column);
	return v ? *v : reply_value_of_text(NULL);
}

/* Negative: absent. */
static Mperf__Value known(double n)
{
	return reply_value_of_real(n < 0 ? NAN : n);
}

static Mperf__Value known_ns(double n)
{
	return n < 0 ? known(n) : reply_value_of_integer((uint64_t)n);
}

/* An amount of the second run over the time of the first. */
static Mperf__Value rate(const struct pair *p, double amount)
{
	bool is_known = !*p->refused && amount >= 0 && p->time_ns > 0;
	return known(is_known ? amount / p->time_ns : -1);
}

/* How much longer the second run took, as a share of the first run's time; NAN: not known. */
static double cost_of(const struct pair *p)
{
	bool is_known = !*p->refused && p->counting_ns >= 0 && p->time_ns > 0;
	return is_known ? p->counting_ns / p->time_ns - 1 : NAN;
}

/* The standard error of the first run's time, as a share of it; negative: not known. */
static double error_of(const struct pair *p)
{
	if (p->time_ns <= 0 || p->again_ns < 0)
		return -1;
	return fabs(p->time_ns - p->again_ns) / M_SQRT2 / p->time_ns;
}

/* The standard error of the cost, assuming the error of the first run's time for both times;
 * negative: not known. */
static double cost_error_of(const struct pair *p)
{
	double error = *p->refused || p->counting_ns < 0 ? -1 : error_of(p);
	return error < 0 ? -1 : M_SQRT2 * error * p->counting_ns / p->time_ns;
}

static const struct reply_heading figures[] = {
#define RATE NULL
#define PER_BYTE NULL
#define BY_PHASES(name, title, unit, value) {#name, title, MPERF__UNIT__UNIT_##unit},
#include "proto/figures.inc"
};
#define N_FIGURES (sizeof(figures) / sizeof(*figures))

/* Columns of the run that counted keep its titles. */
static int add_columns(const struct combining *c)
{
	struct reply_heading heading[KEYS_MAX + N_FIGURES];
	Mperf__Column *const *from = c->second->columns->column;
	size_t n = 0;
	for (int i = 0; i < c->n_keys; i++)
		heading[n++] = (struct reply_heading){from[i]->name, from[i]->title, from[i]->unit};
	for (size_t i = 0; i < N_FIGURES; i++) {
		int column = reply_column(c->second, figures[i].name);
		heading[n] = figures[i];
		if (column >= 0)
			heading[n].title = from[column]->title;
		else if (!heading[n].title)
			heading[n].title = figures[i].name;
		n++;
	}
	return reply_head(c->both, heading, n);
}

static int add_row(const struct combining *c, const struct pair *p)
{
	Mperf__Value value[KEYS_MAX + N_FIGURES];
	bool has_second = p->second != NO_ROW;
	size_t n = 0;
	for (int i = 0; i < c->n_keys; i++)
		value[n++] = has_second ? value_of(c->second, p->second, i)
					: value_of(c->first, p->first, i);
#define FIRST(name) value_of(c->first, p->first, reply_column(c->first, #name))
#define SECOND(name) value_of(c->second, p->second, reply_column(c->second, #name))
#define NUMBER(name) number(c->second, p->second, #name)
#define BY_PHASES(name, title, unit, value_) value[n++] = value_;
#include "proto/figures.inc"
	return reply_append(c->both, value, n);
}

/* --- pairs ------------------------------------------------------------------------------------ */

static int compare_keys(
	const struct reply *a, size_t row_a, const struct reply *b, size_t row_b, int n_keys)
{
	for (int i = 0; i < n_keys; i++) {
		const char *x = reply_text(a, row_a, i), *y = reply_text(b, row_b, i);
		int order = strcmp(x ? x : "", y ? y : "");
		if (order != 0)
			return order;
	}
	return 0;
}

/* The rows of a run, by their keys. */
struct sorted {
	const struct reply *reply;
	size_t *row;
	int n_keys;
};

static int compare_rows(const void *a, const void *b, void *userdata)
{
	const struct sorted *s = userdata;
	return compare_keys(s->reply, *(const size_t *)a, s->reply, *(const size_t *)b, s->n_keys);
}

/* 0, -ENOMEM. The caller frees ret_sorted->row. */
static int sort_rows(const struct reply *r, int n_keys, struct sorted *ret_sorted)
{
	struct sorted s = {r, calloc(r->n_rows + 1, sizeof(*s.row)), n_keys};
	if (!s.row)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_rows; i++)
		s.row[i] = i;
	qsort_r(s.row, r->n_rows, sizeof(*s.row), compare_rows, &s);
	*ret_sorted = s;
	return 0;
}

/* Find the row that has the keys of another run's row; or NO_ROW. */
static size_t find_row(const struct sorted *s, const struct reply *other, size_t row)
{
	size_t low = 0, high = s->reply->n_rows;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int way = compare_keys(other, row, s->reply, s->row[middle], s->n_keys);
		if (way == 0)
			return s->row[middle];
		if (way < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NO_ROW;
}

/* Is it an inner loop of a function with two bodies, which the first run does not count? */
static bool is_inside(const struct reply *r, size_t row)
{
	const char *nest = reply_text(r, row, reply_column(r, "nest"));
	return nest && strchr(nest, '.') && number(r, row, "counted_entries") >= 0;
}

static void compare_entries(const struct combining *c, struct pair *p)
{
	double before = number(c->first, p->first, "entries");
	double after = number(c->second, p->second, "entries");
	p->time_ns = number(c->first, p->first, "time_ns");
	p->counting_ns = number(c->second, p->second, "time_ns");
	if (p->first == NO_ROW)
		snprintf(p->refused, sizeof(p->refused), "it ran only in the second run");
	else if (p->second == NO_ROW)
		snprintf(p->refused, sizeof(p->refused), "it ran only in the first run");
	else if (before != after)
		snprintf(p->refused, sizeof(p->refused), "entered %.0f times, then %.0f", before,
			after);
}

/* The second run's rows with their counterparts, then the first run's other rows. */
static int make_pairs(
	const struct combining *c, const struct sorted *first, struct pair *pairs, size_t *ret_n)
{
	_cleanup_(freep) bool *paired = calloc(c->first->n_rows + 1, sizeof(*paired));
	size_t n = 0;
	if (!paired)
		return -ENOMEM;
	for (size_t i = 0; i < c->second->n_rows; i++) {
		size_t row = find_row(first, c->second, i);
		if (row == NO_ROW && is_inside(c->second, i))
			continue;
		pairs[n] = (struct pair){.first = row, .second = i, .again_ns = -1};
		if (row != NO_ROW)
			paired[row] = true;
		compare_entries(c, &pairs[n++]);
	}
	for (size_t i = 0; i < c->first->n_rows; i++) {
		if (paired[i] || is_inside(c->first, i))
			continue;
		pairs[n] = (struct pair){.first = i, .second = NO_ROW, .again_ns = -1};
		compare_entries(c, &pairs[n++]);
	}
	*ret_n = n;
	return 0;
}

/* Add times of the third run to rows that it entered as often as the first run. 0, -ENOMEM. */
static int add_again(const struct combining *c, struct pair *pairs, size_t n)
{
	struct sorted again;
	if (!c->again)
		return 0;
	int r = sort_rows(c->again, c->n_keys, &again);
	for (size_t i = 0; i < n && r == 0; i++) {
		size_t row = pairs[i].first == NO_ROW ? NO_ROW
						      : find_row(&again, c->first, pairs[i].first);
		if (row != NO_ROW && number(c->again, row, "entries") ==
					     number(c->first, pairs[i].first, "entries"))
			pairs[i].again_ns = number(c->again, row, "time_ns");
	}
	if (r == 0)
		free(again.row);
	return r;
}

static int compare_times(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	return (x->time_ns < y->time_ns) - (x->time_ns > y->time_ns);
}

bool has_two_bodies(const struct reply *r)
{
	for (size_t i = 0; i < r->n_rows; i++)
		if (number(r, i, "counted_entries") >= 0)
			return true;
	return false;
}

static int combine(const struct combining *c, uint32_t limit, size_t *ret_different)
{
	struct sorted first = {.row = NULL};
	size_t n = 0;
	_cleanup_(freep) struct pair *pairs =
		calloc(c->first->n_rows + c->second->n_rows + 1, sizeof(*pairs));
	int r = pairs ? sort_rows(c->first, c->n_keys, &first) : -ENOMEM;
	if (r == 0)
		r = make_pairs(c, &first, pairs, &n);
	free(first.row);
	if (r == 0)
		r = add_again(c, pairs, n);
	if (r != 0)
		return r;
	qsort(pairs, n, sizeof(*pairs), compare_times);
	*ret_different = 0;
	r = add_columns(c);
	for (size_t i = 0; i < n && r == 0; i++) {
		*ret_different += *pairs[i].refused != '\0';
		if (limit == 0 || i < limit)
			r = add_row(c, &pairs[i]);
	}
	return r;
}

int two_phase_combine(const struct two_phase_runs *runs, uint32_t limit, struct reply *ret_both,
	size_t *ret_different)
{
	const struct reply *again = runs->again;
	struct combining c = {.first = runs->plain,
		.second = runs->counting,
		.again = again,
		.both = ret_both,
		.n_keys = reply_column(runs->counting, "entries")};
	if (c.n_keys < 0 || c.n_keys > KEYS_MAX || reply_column(c.first, "entries") != c.n_keys ||
		(again && again->columns && reply_column(again, "entries") != c.n_keys))
		return REPLY_MALFORMED;
	if (!has_two_bodies(c.first) && !has_two_bodies(c.second))
		return TWO_PHASE_ONE_BODY;
	return combine(&c, limit, ret_different);
}

/* --- all runs -------------------------------------------------------------------------------- */

int choose_by_environment(const struct options *o, uint32_t one_in)
{
	char sample[16];
	_cleanup_(freep) char *globs = NULL;
	size_t bytes = 0;
	snprintf(sample, sizeof(sample), "%u", one_in);
	FILE *f = open_memstream(&globs, &bytes);
	for (size_t i = 0; f && i < o->n_globs; i++)
		fprintf(f, "%s%s", i > 0 ? "," : "", o->glob[i]);
	if (!f || fclose(f) != 0 || setenv("MPERF_SAMPLE", sample, 1) != 0 ||
		(o->n_globs > 0 && setenv("MPERF_LOOPS", globs, 1) != 0)) {
		say_failure("out of memory", "Free some memory, and try again");
		return -ENOMEM;
	}
	return 0;
}

/* Set the command's environment, run it, and read its counts. */
static int run_once(
	const struct options *o, uint32_t one_in, Mperf__Request *request, struct reply *reply)
{
	const struct source_request from = source_request_of(o);
	struct source source;
	Mperf__Filter filter;
	int exit_status;
	if (choose_by_environment(o, one_in) != 0)
		return EXIT_FAILED;
	if (source_start(&source, &from, &exit_status) == 0) {
		source_filter(&source, &from, &filter);
		request->roofline->path = source.path;
		request->roofline->filter = &filter;
		exit_status = source_ask(&source, request, reply_take, reply);
	}
	source_clear(&source);
	return exit_status;
}

static int add_notes(struct reply *both, const Mperf__Provenance *from, size_t n_different)
{
	char different[REFUSED_BYTES];
	char *notes[NOTES_MAX] = {"Times are from the first run, counts from the second, errors "
				  "from a third run like the first."};
	size_t n = 1;
	if (n_different > 0) {
		snprintf(different, sizeof(different),
			"Not combined: %zu of these rows, where the two runs differ.", n_different);
		notes[n++] = different;
	}
	for (size_t i = 0; i < from->n_note && n < NOTES_MAX; i++)
		notes[n++] = from->note[i];
	return reply_append_provenance(both, from, notes, n);
}

static int fail_one_body(void)
{
	say_failure(
		"no function that ran has two bodies, so the program cannot run without counting",
		"Build it with mperf-cc and MPERF_PASS=mode=clone in the environment");
	return EXIT_FAILED;
}

static int show(const struct options *o, const struct two_phase_runs *runs)
{
	struct reply both = {0};
	size_t n_different = 0;
	int r = two_phase_combine(runs, o->limit, &both, &n_different);
	if (r == 0 && runs->counting->provenance)
		r = add_notes(&both, runs->counting->provenance, n_different);
	int exit_status = EXIT_FAILED;
	if (r == TWO_PHASE_ONE_BODY)
		exit_status = fail_one_body();
	else if (r != 0)
		say_failure("the two runs cannot be combined",
			"Install mperfctl and mperfd of the same version");
	else
		exit_status = roofline_print(&(struct showing){.o = o, .reply = &both});
	reply_clear(&both);
	return exit_status == 0 && n_different > 0 ? EXIT_DIFFERENT : exit_status;
}

int two_phase(const struct options *o, Mperf__Request *request)
{
	struct reply plain = {0}, counting = {0}, again = {0};
	request->roofline->limit = 0;
	say_note("first run, for times and entries");
	int exit_status = run_once(o, 0, request, &plain);
	if (exit_status == 0 && !has_two_bodies(&plain))
		exit_status = fail_one_body();
	if (exit_status == 0) {
		say_note("second run, for counts");
		exit_status = run_once(o, 1, request, &counting);
	}
	if (exit_status == 0) {
		say_note("third run, for how much times differ");
		exit_status = run_once(o, 0, request, &again);
	}
	if (exit_status == 0)
		exit_status = show(o, &(struct two_phase_runs){&plain, &counting, &again});
	reply_clear(&plain);
	reply_clear(&counting);
	reply_clear(&again);
	return exit_status;
}
