/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How often the gate is right on recordings (tests/gate/real): many times, two disjoint sides are
 * drawn from them at random and compared as mperfctl gate does. The seed is fixed, so it prints the
 * same each time: a line of JSON.
 *
 *     resample FUNCTION RUNS TIMES EFFECT RECORDING... [-- RECORDING...]
 *
 * Without the second list both sides are drawn from the first. EFFECT: growth for which runs are
 * planned.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/compare/compare.h"
#include "daemon/compare/distribution.h"
#include "daemon/compare/gather.h"
#include "daemon/store/segment/segment.h"

#define SEED 20
#define SINGLE_GROWTH 0.02 /* at which a gate of one run a side would say slower */
#define FAIL(...) (fprintf(stderr, "resample: " __VA_ARGS__), exit(1))

struct pool {
	const struct compare_runs *all;
	size_t *run, n; /* shuffled in place */
};

struct drawn {
	struct compare_runs runs;
	double *samples, *total, *weight;
	bool *candidate;
	int64_t *begin_ns;
};

struct tally {
	size_t verdict[3], named, other, single;
	double *needed, *spread; /* a value each time */
};

static void *memory(size_t n, size_t bytes)
{
	void *m = calloc(n + 1, bytes);
	if (!m)
		FAIL("out of memory\n");
	return m;
}

static void gather_files(struct gather *g, bool candidate, char **path, size_t n)
{
	const struct query_filter filter = {0};
	const struct query_question question = {.by = QUERY_BY_FUNCTION, .filter = &filter};

	for (size_t i = 0; i < n; i++) {
		struct segment_error opened = {"", ""};
		struct query_error error = {"", "", 0};
		sqlite3 *db;
		if (segment_open(path[i], &db, &opened) != 0)
			FAIL("%s: %s\n", path[i], opened.text);
		if (gather_run(g, candidate, db, &question, &error) != 0)
			FAIL("%s: %s\n", path[i], error.text);
		sqlite3_close(db);
	}
}

static size_t find_function(const struct gather *g, size_t n, const char *function)
{
	for (size_t i = 0; i < n; i++) {
		const char *names[GATHER_PARTS];
		gather_names(g, i, names);
		if (names[0] && strcmp(names[0], function) == 0)
			return i;
	}
	FAIL("no samples of %s\n", function);
}

/* The runs of a side. */
static struct pool pool_of(const struct compare_runs *all, bool candidate)
{
	struct pool p = {.all = all, .run = memory(all->n_runs, sizeof(*p.run))};
	for (size_t r = 0; r < all->n_runs; r++)
		if (all->candidate[r] == candidate)
			p.run[p.n++] = r;
	return p;
}

/* Its first n runs become a choice of n. */
static void choose(struct pool *p, size_t n, struct random_sequence *random)
{
	for (size_t i = 0; i < n; i++) {
		const size_t j = i + random_below(random, p->n - i), run = p->run[i];
		p->run[i] = p->run[j];
		p->run[j] = run;
	}
}

static void put_run(struct drawn *d, size_t at, const struct pool *p, size_t i, bool candidate)
{
	const size_t from = p->run[i];
	d->candidate[at] = candidate;
	d->begin_ns[at] = p->all->begin_ns[from];
	d->total[at] = p->all->total[from];
	d->weight[at] = p->all->weight[from];
	for (size_t f = 0; f < p->all->n_functions; f++)
		d->samples[f * d->runs.n_runs + at] = p->all->samples[f * p->all->n_runs + from];
}

static struct drawn drawn_new(size_t n_functions, size_t n_runs)
{
	struct drawn d = {.samples = memory(n_functions * n_runs, sizeof(*d.samples)),
		.total = memory(n_runs, sizeof(*d.total)),
		.weight = memory(n_runs, sizeof(*d.weight)),
		.candidate = memory(n_runs, sizeof(*d.candidate)),
		.begin_ns = memory(n_runs, sizeof(*d.begin_ns))};
	d.runs = (struct compare_runs){
		n_functions, n_runs, d.samples, d.total, d.candidate, d.begin_ns, d.weight};
	return d;
}

/* b is a itself where both sides come from one pool. */
static void draw(struct pool *a, struct pool *b, struct random_sequence *random, struct drawn *d)
{
	const size_t n = d->runs.n_runs / 2;

	choose(a, a == b ? 2 * n : n, random);
	if (a != b)
		choose(b, n, random);
	for (size_t i = 0; i < n; i++) {
		put_run(d, i, a, i, false);
		put_run(d, n + i, b, a == b ? n + i : i, true);
	}
}

static void count(const struct comparison *c, const struct drawn *d, size_t function, size_t i,
	struct tally *t)
{
	t->verdict[c->verdict]++;
	t->named += c->function[function].is_slower;
	bool other = false;
	for (size_t f = 0; f < c->n_functions; f++)
		other |= f != function && c->function[f].is_slower;
	t->other += other;
	t->single += d->total[d->runs.n_runs / 2] > (1 + SINGLE_GROWTH) * d->total[0];
	t->needed[i] = c->function[function].own.runs_needed;
	t->spread[i] = c->common_spread;
}

static int rising(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), rising);
	return values[n / 2];
}

static struct comparison *compare_or_fail(
	const struct compare_runs *runs, const struct compare_options *o)
{
	struct comparison *c = NULL;
	const int r = compare(runs, o, &c);
	if (r != 0)
		FAIL("cannot compare: %s\n", strerror(-r));
	return c;
}

static void show(const struct compare_runs *all, size_t function, size_t times, struct tally *t,
	const struct comparison *c)
{
	const struct compare_function *f = c ? &c->function[function] : NULL;

	printf("{\"recordings\": %zu, \"slower\": %zu, \"within\": %zu, \"undecided\": %zu, "
	       "\"named\": %zu, \"other\": %zu, \"single\": %g, \"needed\": %g, \"spread\": %g",
		all->n_runs, t->verdict[COMPARE_SLOWER], t->verdict[COMPARE_WITHIN],
		t->verdict[COMPARE_UNDECIDED], t->named, t->other,
		(double)t->single / (double)times, median(t->needed, times),
		median(t->spread, times));
	if (f)
		printf(", \"samples\": %g, \"share\": %g, \"growth\": %g, \"low\": %g, \"high\": "
		       "%g",
			f->samples, f->share, f->own.change, f->own.low, f->own.high);
	printf("}\n");
}

static size_t number(const char *text)
{
	const long long n = atoll(text);
	if (n < 1)
		FAIL("'%s' is not a number of runs or times\n", text);
	return (size_t)n;
}

int main(int argc, char **argv)
{
	if (argc < 6) {
		fprintf(stderr, "usage: resample FUNCTION RUNS TIMES EFFECT RECORDING... "
				"[-- RECORDING...]\n");
		return 2;
	}
	const size_t n = number(argv[2]), times = number(argv[3]);
	struct compare_options o = COMPARE_OPTIONS_DEFAULT;
	o.effect = atof(argv[4]);
	struct random_sequence random = {SEED};
	struct gather *g;
	if (gather_new(QUERY_BY_FUNCTION, &g) != 0)
		FAIL("out of memory\n");
	int separator = 5;
	while (separator < argc && strcmp(argv[separator], "--") != 0)
		separator++;
	gather_files(g, false, argv + 5, (size_t)(separator - 5));
	const bool two = separator < argc;
	if (two)
		gather_files(g, true, argv + separator + 1, (size_t)(argc - separator - 1));

	const struct compare_runs *all;
	if (gather_table(g, &all) != 0)
		FAIL("the recordings make no table\n");
	const size_t function = find_function(g, all->n_functions, argv[1]);
	struct pool a = pool_of(all, false), b = pool_of(all, true);
	struct pool *second = two ? &b : &a;
	if (a.n < (two ? n : 2 * n) || (two && b.n < n))
		FAIL("%zu and %zu recordings are too few for sides of %zu\n", a.n, b.n, n);

	struct tally t = {
		.needed = memory(times, sizeof(double)), .spread = memory(times, sizeof(double))};
	struct drawn d = drawn_new(all->n_functions, 2 * n);
	for (size_t i = 0; i < times; i++) {
		draw(&a, second, &random, &d);
		struct comparison *c = compare_or_fail(&d.runs, &o);
		count(c, &d, function, i, &t);
		comparison_free(c);
	}
	show(all, function, times, &t, two ? compare_or_fail(all, &o) : NULL);
	return 0;
}
