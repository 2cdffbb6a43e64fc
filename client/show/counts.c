/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Mean and spread grow by Welford's method, one pass, without keeping the rounds. The spread is
 * the sample standard deviation as a share of the mean: what the next single run may differ by.
 */
#include "client/show/counts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

#define VALUE_COLUMNS 18
#define EVENT_COLUMNS 28

static void welford(double value, uint32_t *n, double *mean, double *squares)
{
	double before = value - *mean;
	++*n;
	*mean += before / *n;
	*squares += before * (value - *mean);
}

static double spread(uint32_t n, double mean, double squares)
{
	return n > 1 && mean != 0 ? sqrt(squares / (n - 1)) / fabs(mean) : 0;
}

static int take_row(struct count *c, const struct reply *r, size_t row)
{
	const char *event = reply_text(r, row, reply_column(r, "event"));
	const char *reason = reply_text(r, row, reply_column(r, "reason"));
	const char *unit = reply_text(r, row, reply_column(r, "unit"));
	const char *harts = reply_text(r, row, reply_column(r, "harts"));
	double value;

	if (!event || (c->event && strcmp(c->event, event) != 0))
		return COUNTS_MALFORMED;
	if (!c->event && !(c->event = strdup(event)))
		return -ENOMEM;
	if (reason && *reason && !c->reason && !(c->reason = strdup(reason)))
		return -ENOMEM;
	if (unit && !c->unit && !(c->unit = strdup(unit)))
		return -ENOMEM;
	if (harts && !c->harts && !(c->harts = strdup(harts)))
		return -ENOMEM;
	c->measured = reply_number(r, row, reply_column(r, "scaled"), &value) ||
		      reply_number(r, row, reply_column(r, "value"), &value);
	c->running_share = 1;
	reply_number(r, row, reply_column(r, "running_share"), &c->running_share);
	c->error = NAN;
	reply_number(r, row, reply_column(r, "error"), &c->error);
	if (c->measured) {
		c->value = value;
		welford(value, &c->n, &c->mean, &c->squares);
	}
	return 0;
}

int counts_add(struct counts *c, const struct reply *r)
{
	if (r->n_rows > COUNTS_MAX || (c->count && r->n_rows != c->n_counts))
		return COUNTS_MALFORMED;
	if (!c->count) {
		c->count = calloc(r->n_rows + 1, sizeof(*c->count));
		if (!c->count)
			return -ENOMEM;
		c->n_counts = r->n_rows;
	}
	for (size_t i = 0; i < r->n_rows; i++) {
		int e = take_row(&c->count[i], r, i);
		if (e != 0)
			return e;
	}
	return 0;
}

void counts_add_times(struct counts *c, double elapsed_ns, double user_ns, double system_ns)
{
	c->elapsed_ns = elapsed_ns;
	c->user_ns = user_ns;
	c->system_ns = system_ns;
	welford(elapsed_ns, &c->n_elapsed, &c->elapsed_mean, &c->elapsed_squares);
}

void counts_clear(struct counts *c)
{
	for (size_t i = 0; i < c->n_counts; i++) {
		free(c->count[i].event);
		free(c->count[i].reason);
		free(c->count[i].unit);
		free(c->count[i].harts);
	}
	free(c->count);
	*c = (struct counts){0};
}

/* Does this event have that name, whatever its modifiers (":u") and its PMU's slashes? */
static bool is_event(const struct count *c, const char *name)
{
	size_t n = strlen(name);
	return strncmp(c->event, name, n) == 0 && (c->event[n] == '\0' || c->event[n] == ':');
}

/* Modifiers of an event, as in "cycles:u"; a ratio of two events has a meaning only if they are equal. */
static const char *modifiers(const struct count *c)
{
	const char *colon = strrchr(c->event, ':');
	return colon ? colon : "";
}

static bool is_of_same_harts(const struct count *a, const struct count *b)
{
	return !a->harts || !b->harts || strcmp(a->harts, b->harts) == 0;
}

static const struct count *find(const struct counts *c, const char *name, const struct count *like)
{
	for (size_t i = 0; i < c->n_counts; i++) {
		const struct count *found = &c->count[i];
		if (found->measured && found->n > 0 && is_event(found, name) &&
			(!like || (strcmp(modifiers(found), modifiers(like)) == 0 &&
					  is_of_same_harts(found, like))))
			return found;
	}
	return NULL;
}

static bool is_clock(const struct count *c)
{
	return is_event(c, "cpu-clock") || is_event(c, "task-clock");
}

/* Rates are per second of processor time if that was counted, else of elapsed time. */
static double rate_seconds(const struct counts *c, const struct count *of)
{
	const struct count *clock = find(c, "task-clock", NULL);
	if (!clock)
		clock = find(c, "cpu-clock", NULL);
	for (size_t i = 0; of->harts && i < c->n_counts; i++)
		if (is_clock(&c->count[i]) && is_of_same_harts(&c->count[i], of))
			clock = &c->count[i];
	double ns = clock ? clock->mean : c->elapsed_mean;
	return ns > 0 ? ns / 1e9 : 0;
}

static void print_rate(double per_second, FILE *f)
{
	static const char *const prefix[] = {"", "K", "M", "G", "T"};
	size_t i = 0;
	while (per_second >= 1000 && i + 1 < sizeof(prefix) / sizeof(*prefix)) {
		per_second /= 1000;
		i++;
	}
	fprintf(f, "  # %8.3f %s/sec", per_second, prefix[i]);
}

static bool print_ratio(const struct counts *c, const struct count *k, FILE *f)
{
	static const struct {
		const char *part, *whole, *says;
		double factor;
	} ratios[] = {
		{"instructions", "cycles", "insn per cycle (IPC)", 1},
		{"branch-misses", "branches", "% of all branches", 100},
		{"branch-misses", "branch-instructions", "% of all branches", 100},
		{"cache-misses", "cache-references", "% of all cache refs", 100},
		{"L1-dcache-load-misses", "L1-dcache-loads", "% of all L1-dcache loads", 100},
		{"LLC-load-misses", "LLC-loads", "% of all LLC loads", 100},
		{"dTLB-load-misses", "dTLB-loads", "% of all dTLB loads", 100},
		{"stalled-cycles-frontend", "cycles", "% cycles idle in the front end", 100},
		{"stalled-cycles-backend", "cycles", "% cycles idle in the back end", 100},
	};
	for (size_t i = 0; i < sizeof(ratios) / sizeof(*ratios); i++) {
		if (!is_event(k, ratios[i].part))
			continue;
		const struct count *whole = find(c, ratios[i].whole, k);
		if (!whole || whole->mean <= 0)
			continue;
		fprintf(f, "  # %8.2f %s", ratios[i].factor * k->mean / whole->mean,
			ratios[i].says);
		return true;
	}
	return false;
}

/* Print figures derived from the count. */
static void print_figure(const struct counts *c, const struct count *k, FILE *f)
{
	double seconds = rate_seconds(c, k);
	if (is_clock(k)) {
		if (c->elapsed_mean > 0)
			fprintf(f, "  # %8.3f CPUs utilized", k->mean / c->elapsed_mean);
	} else if (!print_ratio(c, k, f) && seconds > 0) {
		if (is_event(k, "cycles") || is_event(k, "cpu-cycles"))
			fprintf(f, "  # %8.3f GHz", k->mean / seconds / 1e9);
		else
			print_rate(k->mean / seconds, f);
	}
}

static void print_event(const struct count *c, FILE *f)
{
	_cleanup_(freep) char *name = escape_terminal_dup(c->event);
	const char *text = name ? name : "?";
	size_t width = escape_width(text);
	fprintf(f, "  %s%*s", text, width < EVENT_COLUMNS ? (int)(EVENT_COLUMNS - width) : 0, "");
}

/* "18.14 %": four digits, as many of them behind the point as there is room for. */
static void print_metric(const struct count *c, double value, FILE *f)
{
	char text[UNIT_TEXT_BYTES];
	_cleanup_(freep) char *unit = escape_terminal_dup(c->unit);
	double size = fabs(value);
	int digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
	snprintf(text, sizeof(text), "%.*f", digits, value);
	fprintf(f, "%*s %s", VALUE_COLUMNS - (unit && *unit ? 2 : 0), text, unit ? unit : "");
}

static void print_value(const struct count *c, double value, FILE *f)
{
	char text[UNIT_TEXT_BYTES];
	if (c->unit) {
		print_metric(c, value, f);
		return;
	}
	if (is_clock(c))
		snprintf(text, sizeof(text), "%.2f msec", value / 1e6);
	else
		unit_text(MPERF__UNIT__UNIT_COUNT, value, text);
	fprintf(f, "%*s", VALUE_COLUMNS, text);
}

/* Print the share of the time that was counted, and a metric's error. */
static void print_scaled(const struct count *k, FILE *f)
{
	fprintf(f, "  (scaled: counted %s%.1f %% of the time",
		k->running_share < 0.0005 ? "less than " : "",
		k->running_share < 0.0005 ? 0.1 : 100 * k->running_share);
	if (k->n == 1 && isfinite(k->error) && k->unit)
		fprintf(f, ", ± %.2g", k->error);
	else if (k->n == 1 && isfinite(k->error) && k->mean > 0)
		fprintf(f, ", ± %.2g %%", 100 * k->error / k->mean);
	fputs(")", f);
}

static void print_count(const struct counts *c, const struct count *k, FILE *f)
{
	if (k->n == 0) {
		fprintf(f, "%*s", VALUE_COLUMNS, "<not measured>");
		print_event(k, f);
		if (k->reason) {
			fputs("  # ", f);
			escape_terminal(f, k->reason);
		}
		fputc('\n', f);
		return;
	}

	print_value(k, k->mean, f);
	if (k->unit) {
		fputs("  ", f);
		escape_terminal(f, k->event);
	} else {
		print_event(k, f);
		print_figure(c, k, f);
	}
	if (k->n > 1)
		fprintf(f, "  ( ± %.2f %% )", 100 * spread(k->n, k->mean, k->squares));
	if (k->running_share < 0.9995)
		print_scaled(k, f);
	fputc('\n', f);
}

/* Print a heading where counts of other harts begin. */
static void print_harts(const struct counts *c, size_t i, FILE *f)
{
	const struct count *k = &c->count[i];
	if (!k->harts || (i > 0 && is_of_same_harts(&c->count[i - 1], k)))
		return;
	fputs(i > 0 ? "\n harts " : " harts ", f);
	escape_terminal(f, k->harts);
	fputs(":\n", f);
}

void counts_print(const struct counts *c, const char *what, FILE *f)
{
	fputs("\n Counts of ", f);
	escape_terminal(f, what);
	if (c->n_elapsed > 1)
		fprintf(f, " (%u runs)", c->n_elapsed);
	fputs(":\n\n", f);
	for (size_t i = 0; i < c->n_counts; i++) {
		print_harts(c, i, f);
		print_count(c, &c->count[i], f);
	}

	fprintf(f, "\n%*.9f seconds elapsed", VALUE_COLUMNS, c->elapsed_mean / 1e9);
	if (c->n_elapsed > 1)
		fprintf(f, "  ( ± %.2f %% )",
			100 * spread(c->n_elapsed, c->elapsed_mean, c->elapsed_squares));
	fputs("\n", f);
	/* These are of the last round; with -r they would need a mean of their own. */
	if (c->user_ns >= 0 && c->n_elapsed <= 1) {
		fprintf(f, "%*.9f seconds user\n", VALUE_COLUMNS, c->user_ns / 1e9);
		fprintf(f, "%*.9f seconds sys\n", VALUE_COLUMNS, c->system_ns / 1e9);
	}
	fputc('\n', f);
}

void counts_print_interval(const struct counts *c, double at_ns, bool first, FILE *f)
{
	if (first)
		fprintf(f, "#%11s %*s  %s\n", "time", VALUE_COLUMNS, "counts", "event");
	for (size_t i = 0; i < c->n_counts; i++) {
		fprintf(f, "%12.6f ", at_ns / 1e9);
		if (c->count[i].harts) {
			fputs("harts ", f);
			escape_terminal(f, c->count[i].harts);
			fputc(' ', f);
		}
		print_count(c, &c->count[i], f);
	}
	fflush(f);
}

/* A field of perf's is bare text: what would end one becomes a space. */
static void print_field(const char *text, const char *separator, FILE *f)
{
	_cleanup_(freep) char *shown = escape_terminal_dup(text);
	for (char *at = shown; at && (at = strstr(at, separator));)
		memset(at, ' ', strlen(separator));
	fputs(shown ? shown : "?", f);
}

void counts_print_fields(const struct counts *c, double at_ns, const char *separator, FILE *f)
{
	for (size_t i = 0; i < c->n_counts; i++) {
		const struct count *k = &c->count[i];
		if (at_ns >= 0)
			fprintf(f, "%.9f%s", at_ns / 1e9, separator);
		if (k->harts) {
			print_field(k->harts, separator, f);
			fputs(separator, f);
		}
		if (k->n == 0)
			fputs("<not counted>", f);
		else if (is_clock(k))
			fprintf(f, "%.6f", k->mean / 1e6);
		else
			fprintf(f, "%.15g", k->mean);
		fputs(separator, f);
		print_field(k->unit ? k->unit : is_clock(k) ? "msec" : "", separator, f);
		fputs(separator, f);
		print_field(k->event, separator, f);
		if (k->n > 1)
			fprintf(f, "%s%.2f%%", separator, 100 * spread(k->n, k->mean, k->squares));
		fprintf(f, "%s%s%.2f\n", separator, separator, k->n ? 100 * k->running_share : 0.0);
	}
	fflush(f);
}
