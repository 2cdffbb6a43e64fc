/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How often a comparison is right, on made runs: `make gate-check`, of which RUN="1000 WORD" picks
 * cases. Seeds are fixed, so it prints the same each time. Exit status 1: a case is not as it must be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gate/made_runs.h"

#define ALARMS 0.067 /* of a test at 5 %, in 1,000 comparisons, with 99 % of chance */

enum measure {
	SLOWER, /* share of comparisons that say so */
	NAMED,  /* share that names the function that grew */
	WITHIN,
	UNDECIDED,
	RUNS_NEEDED, /* median of what is said for the function that grew */
};

struct gate_case {
	const char *what;
	struct made_scenario made;
	struct compare_options options; /* what is 0 is the default */
	enum measure measure;
	bool at_least;
	double limit;
};

#define RUNS_60(...) {.n = 10, .seconds = 60, __VA_ARGS__}
#define RUNS_300(...) {.n = 10, .seconds = 300, __VA_ARGS__}

static const struct gate_case cases[] = {
	{"equal sides, 60 s", RUNS_60(), {0}, SLOWER, false, ALARMS},
	{"— 5 runs a side", {.n = 5, .seconds = 60}, {0}, SLOWER, false, ALARMS},
	{"— 20 runs a side", {.n = 20, .seconds = 60}, {0}, SLOWER, false, ALARMS},
	{"— 2 % of the runs take 1.3 times as long", RUNS_60(.outliers = 0.02), {0}, SLOWER, false,
		ALARMS},
	{"— runs resemble the last one by 0.9, in turns", RUNS_60(.drift = 0.9), {0}, SLOWER, false,
		ALARMS},
	{"— the same, one side after the other", RUNS_60(.drift = 0.9, .one_after_other = true),
		{0}, UNDECIDED, true, 1},
	{"— two looks, 10 and then 20 runs", {.n = 20, .seconds = 60}, {.looks = 2}, SLOWER, false,
		ALARMS},
	{"— margin 5 %", RUNS_60(), {.margin = 0.05}, UNDECIDED, false, 0.15},
	{"— margin 2 %", RUNS_60(), {0}, WITHIN, true, 0},
	{"— layout changes functions by 1 %, 300 s", RUNS_300(.layout = 0.01), {0}, SLOWER, true,
		0},
	{"— layout by 1 %, which is allowed", RUNS_300(.layout = 0.01), {.allowance = 0.01}, SLOWER,
		true, 0},
	{"20 % function 5 % slower, 300 s", RUNS_300(.growth = 0.05), {0}, SLOWER, true, 0.8},
	{"— it is named", RUNS_300(.growth = 0.05), {0}, NAMED, true, 0.8},
	{"— 60 s", RUNS_60(.growth = 0.05), {0}, NAMED, true, 0},
	{"78 % function 5 % slower, 60 s", RUNS_60(.first_share = 0.78, .growth = 0.05), {0}, NAMED,
		true, 0},
	{"— 10 %", RUNS_60(.first_share = 0.78, .growth = 0.1), {0}, NAMED, true, 0.8},
	{"— 10 % faster, others are not slower", RUNS_60(.first_share = 0.78, .growth = -0.1), {0},
		SLOWER, false, ALARMS},
	{"— 60 % faster, others are not slower", RUNS_60(.first_share = 0.78, .growth = -0.6), {0},
		SLOWER, false, ALARMS},
	{"— equal sides", RUNS_60(.first_share = 0.78), {0}, SLOWER, false, ALARMS},
	{"— 5 % function 10 % slower, 300 s",
		RUNS_300(.first_share = 0.78, .function = 1, .growth = 0.1), {0}, NAMED, true, 0},
	{"5 % function 5 % slower, 300 s", RUNS_300(.function = 1, .growth = 0.05), {0}, NAMED,
		true, 0},
	{"all 5 % slower", RUNS_60(.all = 0.05), {0}, SLOWER, true, 0.75},
	{"all 20 % slower, the 20 % function is not", RUNS_60(.all = 0.2), {0}, NAMED, false,
		ALARMS},
	{"— 2 % of the runs take 1.3 times as long", RUNS_60(.all = 0.05, .outliers = 0.02), {0},
		SLOWER, true, 0},
	{"all 2 % slower, margin 2 %", RUNS_60(.all = 0.02), {0}, WITHIN, false, ALARMS},
	{"20 % function 50 % faster", RUNS_60(.growth = -0.5), {0}, SLOWER, false, ALARMS},
	{"1 % function 5 % slower, 60 s", RUNS_60(.function = 2, .growth = 0.05), {0}, SLOWER,
		false, ALARMS},
	{"— runs that are said to be needed", RUNS_60(.function = 2, .growth = 0.05), {0},
		RUNS_NEEDED, true, 400},
};

struct tally {
	size_t n, verdict[3], named;
	double *runs_needed; /* n, in rising order */
};

static struct comparison *compare_made(
	const struct made_runs *m, size_t n, const struct compare_options *o)
{
	struct comparison *c = NULL;
	const struct compare_runs runs = made_as_input(m, n);
	if (compare(&runs, o, &c) != 0)
		abort();
	return c;
}

/* The first runs of them. */
static void take_first(const struct made_runs *all, size_t n_all, size_t n, struct made_runs *ret)
{
	*ret = *all;
	for (size_t f = 0; f < MADE_FUNCTIONS; f++)
		memcpy(ret->samples + f * 2 * n, all->samples + f * 2 * n_all,
			2 * n * sizeof(double));
}

/* With two looks the first is at half of the runs, and the second where that does not decide. */
static struct comparison *look(
	const struct made_runs *all, size_t n, const struct compare_options *o)
{
	static struct made_runs half;
	if (o->looks == 1)
		return compare_made(all, n, o);
	take_first(all, n, n / 2, &half);
	struct comparison *c = compare_made(&half, n / 2, o);
	if (c->verdict != COMPARE_UNDECIDED)
		return c;
	comparison_free(c);
	return compare_made(all, n, o);
}

static int rising(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static struct tally simulate(const struct gate_case *g, size_t times)
{
	static struct made_runs made;
	struct tally t = {.n = times, .runs_needed = calloc(times, sizeof(double))};
	struct random_sequence random = {20};
	struct compare_options o = COMPARE_OPTIONS_DEFAULT;

	if (!t.runs_needed)
		abort();
	o.margin = g->options.margin ? g->options.margin : o.margin;
	o.allowance = g->options.allowance;
	o.looks = g->options.looks ? g->options.looks : o.looks;
	for (size_t i = 0; i < times; i++) {
		make_runs(&g->made, &random, &made);
		_cleanup_(comparison_freep) struct comparison *c = look(&made, g->made.n, &o);
		const struct compare_function *f = &c->function[g->made.function];
		t.verdict[c->verdict]++;
		t.named += f->is_slower;
		t.runs_needed[i] = f->own.runs_needed;
	}
	qsort(t.runs_needed, times, sizeof(double), rising);
	return t;
}

static double measured(const struct tally *t, enum measure measure)
{
	const double n = (double)t->n;
	switch (measure) {
	case SLOWER:
		return (double)t->verdict[COMPARE_SLOWER] / n;
	case NAMED:
		return (double)t->named / n;
	case WITHIN:
		return (double)t->verdict[COMPARE_WITHIN] / n;
	case UNDECIDED:
		return (double)t->verdict[COMPARE_UNDECIDED] / n;
	case RUNS_NEEDED:
		return t->runs_needed[t->n / 2];
	}
	abort();
}

static bool show(const struct gate_case *g, size_t times)
{
	static const char *const what[] = {"slower", "named", "within", "undecided", "runs"};
	const struct tally t = simulate(g, times);
	const double is = measured(&t, g->measure);
	free(t.runs_needed);
	const bool asked = !g->at_least || g->limit > 0;
	const bool met = g->at_least ? is >= g->limit : is <= g->limit;
	const double unit = g->measure == RUNS_NEEDED ? 1 : 100;

	printf("| %s | %s %.*f%s |", g->what, what[g->measure], unit == 100, is * unit,
		unit == 100 ? " %" : "");
	if (asked)
		printf(" at %s %g | %s |\n", g->at_least ? "least" : "most", g->limit * unit,
			met ? "met" : "missed");
	else
		printf(" | |\n");
	fflush(stdout);
	return met;
}

int main(int argc, char **argv)
{
	const int times = argc > 1 ? atoi(argv[1]) : 1000;
	bool all = true;

	if (times < 1) {
		fprintf(stderr, "usage: check [COMPARISONS [WORD]]\n");
		return 2;
	}
	printf("| runs | seen in %d | must be | |\n|---|---|---|---|\n", times);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (argc < 3 || strstr(cases[i].what, argv[2]))
			all &= show(&cases[i], (size_t)times);
	return all ? 0 : 1;
}
