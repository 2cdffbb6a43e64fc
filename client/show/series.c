/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rows arrive in order of time; sorted by thread they become lines, two a thread. If there are more stretches
 * than columns, neighbours are merged: their bytes over their time.
 */
#include "client/show/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/show/bars.h"
#include "client/show/escape.h"

#define NAME_COLUMNS 16 /* of a thread's name: comm has at most 15 bytes */
#define HEAD_COLUMNS (NAME_COLUMNS + 9 + 9 + 9 + 9 + 9 + 2)
#define BARS_MIN 10u
#define BARS_MAX 512u

enum way { READ, WRITTEN, DRAM, N_WAYS };
static const char *const way_names[N_WAYS] = {"read", "written", "DRAM"};

struct point {
	size_t row;
	double time, pid, tid, bytes[N_WAYS], span_ns, dram_ns;
	bool has_no_rate; /* its bytes were counted at another time */
};

struct cell {
	double bytes[N_WAYS], span_ns;
	double dram_ns; /* for which cache misses were counted, in regions */
	bool has_no_rate;
	double moved; /* bytes, also of stretches without a rate */
};

struct series {
	const struct reply *reply;
	struct point *point;
	size_t n_points;
	double begin, end; /* starts of the first and the last stretch */
	size_t n_ways;     /* DRAM is shown if it was counted at all */
	bool has_gaps;     /* stretches without a rate */
	size_t n_stretches, n_cells;
	struct cell cell[BARS_MAX]; /* of the current thread */
};

static double rate_of(const struct cell *c, enum way way)
{
	double ns = way == DRAM ? c->dram_ns : c->span_ns;
	return ns > 0 && (way == DRAM || !c->has_no_rate) ? c->bytes[way] / ns : 0;
}

static int by_thread(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

static double number(const struct reply *r, size_t row, const char *column)
{
	double n;
	return reply_number(r, row, reply_column(r, column), &n) ? n : 0;
}

static int read_points(struct series *s)
{
	const struct reply *r = s->reply;
	s->point = calloc(r->n_rows + 1, sizeof(*s->point));
	if (!s->point)
		return -ENOMEM;
	s->begin = INFINITY;
	s->end = -INFINITY;
	s->n_ways = DRAM;
	for (size_t i = 0; i < r->n_rows; i++) {
		struct point p = {.row = i,
			.pid = number(r, i, "pid"),
			.tid = number(r, i, "tid"),
			.bytes = {[READ] = number(r, i, "bytes_loaded"),
				[WRITTEN] = number(r, i, "bytes_stored"),
				[DRAM] = number(r, i, "dram_bytes")},
			.span_ns = number(r, i, "span_ns"),
			.dram_ns = number(r, i, "dram_ns")};
		if (!reply_number(r, i, reply_column(r, "time"), &p.time))
			continue; /* its time is unknown */
		double rate;
		p.has_no_rate = p.span_ns > 0 && reply_column(r, "loaded") >= 0 &&
				!reply_number(r, i, reply_column(r, "loaded"), &rate);
		s->has_gaps |= p.has_no_rate;
		if (p.dram_ns > 0)
			s->n_ways = N_WAYS;
		s->begin = fmin(s->begin, p.time);
		s->end = fmax(s->end, p.time);
		s->point[s->n_points++] = p;
	}
	qsort(s->point, s->n_points, sizeof(*s->point), by_thread);
	return 0;
}

static void add(struct cell *c, const struct point *p)
{
	for (enum way way = 0; way < N_WAYS; way++)
		c->bytes[way] += p->bytes[way];
	c->span_ns += p->span_ns;
	c->dram_ns += p->dram_ns;
	c->has_no_rate |= p->has_no_rate;
}

/* Put the points of one thread into cells; returns how many points it has. */
static size_t fill_cells(struct series *s, size_t first, double stretch_s, struct cell *ret_all)
{
	size_t i = first;
	memset(s->cell, 0, sizeof(s->cell));
	*ret_all = (struct cell){.span_ns = 0};
	for (; i < s->n_points; i++) {
		const struct point *p = &s->point[i];
		if (p->pid != s->point[first].pid || p->tid != s->point[first].tid)
			break;
		size_t stretch = (size_t)((p->time - s->begin) / stretch_s + 0.5);
		size_t at = stretch * s->n_cells / s->n_stretches;
		add(&s->cell[at < s->n_cells ? at : s->n_cells - 1], p);
		ret_all->moved += p->bytes[READ] + p->bytes[WRITTEN];
		if (!p->has_no_rate)
			add(ret_all, p);
		else {
			ret_all->bytes[DRAM] += p->bytes[DRAM];
			ret_all->dram_ns += p->dram_ns;
		}
	}
	return i - first;
}

static double tallest(const struct series *s, enum way way)
{
	double most = 0;
	for (size_t i = 0; i < s->n_cells; i++)
		most = fmax(most, rate_of(&s->cell[i], way));
	return most;
}

static void put_bars(const struct series *s, enum way way, double height, bool utf8, FILE *f)
{
	size_t n = s->n_cells;
	while (n > 0 && s->cell[n - 1].span_ns <= 0)
		n--; /* no trailing spaces */
	for (size_t i = 0; i < n; i++) {
		double share = height > 0 ? rate_of(&s->cell[i], way) / height : 0;
		if (s->cell[i].has_no_rate && way != DRAM) {
			fputc('?', f);
			continue;
		}
		fputs(s->cell[i].span_ns <= 0 ? " " : bar_of(share, utf8), f);
	}
}

static void put_name(const struct series *s, size_t point, FILE *f)
{
	const char *name =
		reply_text(s->reply, s->point[point].row, reply_column(s->reply, "comm"));
	char cut[NAME_COLUMNS];
	snprintf(cut, sizeof(cut), "%s", name ? name : "-");
	escape_terminal(f, cut);
	fprintf(f, "%*s", NAME_COLUMNS - (int)strlen(cut), "");
}

static void put_clock(double seconds, FILE *f)
{
	time_t t = (time_t)seconds;
	struct tm tm;
	char text[16] = "?";
	if (localtime_r(&t, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	fputs(text, f);
}

/* How unevenly the threads of one process worked. */
struct balance {
	double pid, most, sum;
	size_t n;
	double worst; /* of all processes: most over mean */
};

static void balance_end(struct balance *b)
{
	if (b->n > 1 && b->sum > 0)
		b->worst = fmax(b->worst, b->most * (double)b->n / b->sum);
	b->most = b->sum = 0;
	b->n = 0;
}

static void balance_add(struct balance *b, double pid, double bytes)
{
	if (pid != b->pid)
		balance_end(b);
	b->pid = pid;
	b->most = fmax(b->most, bytes);
	b->sum += bytes;
	b->n++;
}

/* Draw a thread's lines: bytes read, bytes written, bytes from memory. */
static void put_thread(const struct series *s, size_t point, const struct cell *all, double height,
	bool utf8, FILE *f)
{
	for (enum way way = 0; way < s->n_ways; way++) {
		if (way == 0) {
			put_name(s, point, f);
			fprintf(f, "%9.0f%9.0f", s->point[point].pid, s->point[point].tid);
		} else {
			fprintf(f, "%*s", NAME_COLUMNS + 9 + 9, "");
		}
		if (s->has_gaps && way != DRAM && all->span_ns <= 0)
			fprintf(f, "  %-7s%9s%9s  ", way_names[way], "-", "-");
		else
			fprintf(f, "  %-7s%9.2f%9.2f  ", way_names[way], rate_of(all, way),
				tallest(s, way));
		put_bars(s, way, height, utf8, f);
		fputc('\n', f);
	}
}

static double height_of(struct series *s, double stretch_s)
{
	struct cell all;
	double height = 0;
	for (size_t i = 0; i < s->n_points;) {
		i += fill_cells(s, i, stretch_s, &all);
		for (enum way way = 0; way < s->n_ways; way++)
			height = fmax(height, tallest(s, way));
	}
	return height;
}

static void put_lines(struct series *s, const struct series_look *look, FILE *f)
{
	struct balance balance = {.pid = -1};
	struct cell all;
	double height = height_of(s, look->stretch_s);
	fprintf(f, "%-*s%9s%9s%9s%9s%9s  ", NAME_COLUMNS, "Thread", "PID", "TID", "", "GB/s",
		"At most");
	put_clock(s->begin, f);
	fputs(" to ", f);
	put_clock(s->end + look->stretch_s, f);
	fputc('\n', f);
	for (size_t i = 0, n; i < s->n_points; i += n) {
		n = fill_cells(s, i, look->stretch_s, &all);
		put_thread(s, i, &all, height, look->utf8, f);
		balance_add(&balance, s->point[i].pid, all.moved);
	}
	balance_end(&balance);
	fprintf(f, "\nOne column is %.3g s; the tallest bar is %.2f GB/s.\n",
		look->stretch_s * (double)s->n_stretches / (double)s->n_cells, height);
	if (s->has_gaps)
		fputs("?: no rate, since a loop that reports its bytes only at its end ran on "
		      "after this time; other rates leave it out.\n",
			f);
	if (balance.worst > 0)
		fprintf(f,
			"The busiest thread of a process moved %.2f times the mean of its "
			"threads.\n",
			balance.worst);
	fputs(s->n_ways == N_WAYS
			? "DRAM: cache lines from memory, as counted in regions.\n"
			: "DRAM: - (no region counted lines from memory; see region-events in "
			  "mperf.conf(5)).\n",
		f);
}

static void draw(struct series *s, const struct series_look *look, FILE *f)
{
	size_t width = look->width ? look->width : SERIES_WIDTH;
	double n = (s->end - s->begin) / look->stretch_s + 1.5;
	s->n_stretches = n < 1 ? 1 : (size_t)fmin(n, 1e9);
	size_t room = width > HEAD_COLUMNS + BARS_MIN ? width - HEAD_COLUMNS : BARS_MIN;
	room = room > BARS_MAX ? BARS_MAX : room;
	s->n_cells = s->n_stretches < room ? s->n_stretches : room;
	put_lines(s, look, f);
}

int series_print(const struct reply *r, const struct series_look *look, FILE *f)
{
	struct series s = {.reply = r};
	int outcome = read_points(&s);
	if (outcome == 0 && s.n_points > 0)
		draw(&s, look, f);
	free(s.point);
	return outcome == 0 && ferror(f) ? -EIO : outcome;
}
