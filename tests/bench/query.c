/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* How long a query takes over files of a store, and what memory
 *
 *      query FILE… [--by WHAT] [--hours N] [--limit N] [--repeat N] [--flame]
 *
 * Each run is a process of its own, as in the daemon: its CPU time, since others may use the
 * machine, and its peak resident memory. --hours takes the last N hours of what the files hold.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/query/query.h"

#define HOUR_NS 3600000000000ll
#define RUNS_MAX 100
#define ARGUMENTS_MAX 4096

struct run {
	double cpu_s, wall_s;
	long peak_kb;
	uint64_t rows, samples;
	double seconds; /* that the answer is about */
	int r;
};

struct asking {
	struct query_source source[ARGUMENTS_MAX];
	size_t n;
	struct query_question question;
	struct query_filter filter;
	bool flame, notes;
	uint32_t hours, n_runs;
	struct run *run; /* under way */
};

static int take_columns(void *u, const struct answer_column *c, size_t n)
{
	(void)u, (void)c, (void)n;
	return 0;
}

static int take_row(void *u, const struct answer_value *v, size_t n)
{
	(void)v, (void)n;
	((struct asking *)u)->run->rows++;
	return 0;
}

static int take_provenance(void *u, const struct answer_provenance *p)
{
	struct asking *a = u;
	a->run->samples = p->samples;
	a->run->seconds = p->seconds;
	for (uint32_t i = 0; i < p->n_notes && a->notes; i++)
		printf("  note: %s\n", p->note[i]);
	return 0;
}

static double clock_s(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* In a child, which began with little: its peak is the query's own. */
static void ask(struct asking *a, struct run *run)
{
	struct answer answer = {take_columns, take_row, take_provenance, a};
	struct query_error error = {"", "", 0};
	struct rusage usage;
	a->run = run;
	double cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID), wall = clock_s(CLOCK_MONOTONIC);
	run->r = a->flame ? query_flamegraph(a->source, a->n, &a->filter, &answer, &error)
			  : query_hotspots(a->source, a->n, &a->question, &answer, &error);
	run->cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	run->wall_s = clock_s(CLOCK_MONOTONIC) - wall;
	getrusage(RUSAGE_SELF, &usage);
	run->peak_kb = usage.ru_maxrss;
	if (run->r != 0)
		printf("%d: %s\n", run->r, error.text);
	fflush(stdout);
}

static void run_child(struct asking *a, struct run *run)
{
	int pipes[2], status;
	if (pipe(pipes) < 0)
		exit(1);
	pid_t pid = fork();
	if (pid == 0) {
		ask(a, run);
		_exit(write(pipes[1], run, sizeof(*run)) != sizeof(*run));
	}
	close(pipes[1]);
	bool whole = read(pipes[0], run, sizeof(*run)) == sizeof(*run);
	close(pipes[0]);
	if (waitpid(pid, &status, 0) != pid || !whole || run->r != 0)
		exit(1);
}

/* Where the files end: the end of their last windows. */
static int64_t last_ns(const struct asking *a)
{
	int64_t last = 0;
	for (size_t i = 0; i < a->n; i++) {
		sqlite3 *db = NULL;
		sqlite3_stmt *st = NULL;
		struct segment_error e;
		if (segment_open_live(a->source[i].path, &db, &e) != 0)
			continue;
		sqlite3_prepare_v2(db, "SELECT max(realtime_ns + end_ns - start_ns) FROM window",
			-1, &st, NULL);
		if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int64(st, 0) > last)
			last = sqlite3_column_int64(st, 0);
		sqlite3_finalize(st);
		sqlite3_close(db);
	}
	return last;
}

static int compare(const void *a, const void *b)
{
	const struct run *x = a, *y = b;
	return (x->cpu_s > y->cpu_s) - (x->cpu_s < y->cpu_s);
}

static void usage(void)
{
	fprintf(stderr, "usage: query FILE… [--by WHAT] [--hours N] [--limit N] [--repeat N] "
			"[--flame] [--notes]\n");
	exit(2);
}

static void parse(struct asking *a, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (argv[i][0] != '-' && a->n < ARGUMENTS_MAX)
			a->source[a->n++] = (struct query_source){.path = argv[i], .live = true};
		else if (strcmp(argv[i], "--flame") == 0)
			a->flame = true;
		else if (strcmp(argv[i], "--notes") == 0)
			a->notes = true;
		else if (strcmp(argv[i], "--by") == 0 && query_by_parse(value) >= 0 && ++i)
			a->question.by = (enum query_by)query_by_parse(value);
		else if (strcmp(argv[i], "--hours") == 0 && ++i)
			a->hours = (uint32_t)atoi(value);
		else if (strcmp(argv[i], "--limit") == 0 && ++i)
			a->question.limit = (uint32_t)atoi(value);
		else if (strcmp(argv[i], "--repeat") == 0 && ++i)
			a->n_runs = (uint32_t)atoi(value);
		else
			usage();
	}
	if (a->n == 0 || a->n_runs == 0 || a->n_runs > RUNS_MAX)
		usage();
}

int main(int argc, char **argv)
{
	static struct asking a = {.n_runs = 5, .question = {.limit = 50}};
	static struct run run[RUNS_MAX];
	a.question.filter = &a.filter;
	parse(&a, argc, argv);
	if (a.hours > 0) {
		int64_t since_ns = last_ns(&a) - a.hours * HOUR_NS;
		for (size_t i = 0; i < a.n; i++)
			a.source[i].since_ns = since_ns;
	}
	for (uint32_t i = 0; i < a.n_runs; i++)
		run_child(&a, &run[i]);
	double wall_s = run[0].wall_s;
	for (uint32_t i = 1; i < a.n_runs; i++)
		wall_s = run[i].wall_s < wall_s ? run[i].wall_s : wall_s;
	qsort(run, a.n_runs, sizeof(*run), compare);
	const struct run *median = &run[a.n_runs / 2];
	printf("%s by %s, %.1f h: CPU %.1f ms (min %.1f, max %.1f), wall at best %.1f ms, peak "
	       "%.1f "
	       "MB; %llu rows of %llu samples\n",
		a.flame ? "flamegraph" : "hotspots", query_by_name(a.question.by),
		median->seconds / 3600, median->cpu_s * 1e3, run[0].cpu_s * 1e3,
		run[a.n_runs - 1].cpu_s * 1e3, wall_s * 1e3, (double)median->peak_kb / 1e3,
		(unsigned long long)median->rows, (unsigned long long)median->samples);
	return 0;
}
