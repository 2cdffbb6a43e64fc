/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/commands/status_short.h"

#include <errno.h>
#include <string.h>

#include "client/show/escape.h"
#include "client/show/table.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

/* Losses of the last minute from which on one should look: one sample in a thousand. */
#define LOST_LOOK 0.001
#define NAMES_WAITING_LOOK 10000

enum state { STATE_GOOD, STATE_LOOK, STATE_TROUBLE };

struct verdict {
	enum state state;
	FILE *why; /* a sentence for each reason */
};

/* --- figures ---------------------------------------------------------------------------------- */

static const char *text_of(
	const struct replies *s, const char *table, size_t row, const char *column)
{
	const struct reply *r = replies_table(s, table);
	const char *text =
		r && row < r->n_rows ? reply_text(r, row, reply_column(r, column)) : NULL;
	return text ? text : "";
}

/* 0 where it is missing. */
static double number_of(const struct replies *s, const char *table, size_t row, const char *column)
{
	const struct reply *r = replies_table(s, table);
	double n = 0;
	if (r && row < r->n_rows)
		reply_number(r, row, reply_column(r, column), &n);
	return n;
}

/* The row whose column has this text; SIZE_MAX: there is none. */
static size_t row_of(
	const struct replies *s, const char *table, const char *column, const char *text)
{
	const struct reply *r = replies_table(s, table);
	for (size_t i = 0; r && i < r->n_rows; i++)
		if (strcmp(text_of(s, table, i, column), text) == 0)
			return i;
	return SIZE_MAX;
}

static void write_amount(FILE *f, Mperf__Unit unit, double value)
{
	char text[UNIT_TEXT_BYTES];
	unit_text(unit, value, text);
	escape_terminal(f, text);
}

/* The row of the last minute; in the first one it is that since the start. */
static size_t lately(const struct replies *s)
{
	const size_t minute = row_of(s, "account", "period", "last minute");
	return minute == SIZE_MAX || number_of(s, "account", minute, "duration_ns") <= 0
		       ? row_of(s, "account", "period", "since start")
		       : minute;
}

static bool is_known(const struct replies *s, const char *table, size_t row, const char *column)
{
	const struct reply *r = replies_table(s, table);
	double n;
	return r && row < r->n_rows && reply_number(r, row, reply_column(r, column), &n);
}

/* --- the verdict ------------------------------------------------------------------------------ */

static void find(struct verdict *v, enum state state, const char *of, const char *what)
{
	if (state > v->state)
		v->state = state;
	fputs("  ", v->why);
	escape_terminal(v->why, of);
	fputs(*of ? ": " : "", v->why);
	escape_terminal(v->why, what);
	fputc('\n', v->why);
}

/* Each table may say in words what is wrong. */
static void find_troubles(struct verdict *v, const struct replies *s)
{
	static const char *const tables[] = {
		"rate", "store", "feed", "namer", "feed_event", "roofs"};
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
		const struct reply *r = replies_table(s, tables[t]);
		for (size_t i = 0; r && i < r->n_rows; i++) {
			const char *trouble = text_of(s, tables[t], i, "trouble");
			if (*trouble)
				find(v, STATE_TROUBLE, tables[t], trouble);
		}
	}
	if (number_of(s, "store", 0, "corrupt") > 0)
		find(v, STATE_LOOK, "store",
			"files are damaged and were set aside; mperfctl store shows them");
	const char *state = text_of(s, "naming", 0, "state");
	if (*state && strcmp(state, "on") != 0)
		find(v, STATE_LOOK, "names", state);
	if (number_of(s, "naming", 0, "waiting") > NAMES_WAITING_LOOK)
		find(v, STATE_LOOK, "names", "many are still waiting");
}

static void find_losses(struct verdict *v, const struct replies *s)
{
	const size_t row = lately(s);
	const double lost = number_of(s, "account", row, "lost"),
		     taken = number_of(s, "account", row, "taken");
	char text[UNIT_TEXT_BYTES + 64], share[UNIT_TEXT_BYTES];
	if (lost <= LOST_LOOK * (taken + lost))
		return;
	unit_text(MPERF__UNIT__UNIT_SHARE, lost / (taken + lost), share);
	snprintf(text, sizeof(text), "%s were lost lately", share);
	find(v, STATE_LOOK, "samples", text);
}

static void find_rate(struct verdict *v, const struct replies *s)
{
	const char *given_up = text_of(s, "budget", 0, "given_up");
	const bool is_said = *given_up && strcmp(given_up, "nothing") != 0;
	if (!is_said && number_of(s, "rate", 0, "hz") < number_of(s, "rate", 0, "wanted_hz"))
		find(v, STATE_LOOK, "samples", "the rate is lower than the one wanted");
}

static void find_given_up(struct verdict *v, const struct replies *s)
{
	const char *reason = text_of(s, "budget", 0, "reason"),
		   *given_up = text_of(s, "budget", 0, "given_up");
	if (number_of(s, "budget", 0, "step") > 0 ||
		(*given_up && strcmp(given_up, "nothing") != 0))
		find(v, STATE_LOOK, "given up for the budget", given_up);
	if (number_of(s, "budget", 0, "step") > 0 && *reason)
		find(v, STATE_LOOK, "because", reason);
}

/* --- the lines -------------------------------------------------------------------------------- */

static void write_samples(const struct replies *s, FILE *f)
{
	const size_t row = lately(s);
	const double hz = number_of(s, "rate", 0, "hz"),
		     wanted_hz = number_of(s, "rate", 0, "wanted_hz");
	const double lost = number_of(s, "account", row, "lost");
	fputs("Samples  ", f);
	write_amount(f, MPERF__UNIT__UNIT_COUNT, hz);
	fputs(" Hz a hart", f);
	if (hz < wanted_hz) {
		fputs(" of ", f);
		write_amount(f, MPERF__UNIT__UNIT_COUNT, wanted_hz);
		fputs(" wanted", f);
	}
	if (row == SIZE_MAX) {
		fputc('\n', f);
		return;
	}
	fputs("; ", f);
	write_amount(f, MPERF__UNIT__UNIT_COUNT, number_of(s, "account", row, "taken"));
	fputs(" in the last ", f);
	write_amount(f, MPERF__UNIT__UNIT_NS, number_of(s, "account", row, "duration_ns"));
	fputs(lost > 0 ? ", " : ", none lost", f);
	if (lost > 0) {
		write_amount(f, MPERF__UNIT__UNIT_COUNT, lost);
		fputs(" lost", f);
	}
	fputc('\n', f);
}

static void write_cost(const struct replies *s, FILE *f)
{
	const size_t all = row_of(s, "overhead", "cause", "all"),
		     own = row_of(s, "process", "what", "all");
	const double budget = number_of(s, "budget", 0, "budget");
	fputs("Cost     ", f);
	if (is_known(s, "overhead", all, "hart_share")) {
		write_amount(
			f, MPERF__UNIT__UNIT_SHARE, number_of(s, "overhead", all, "hart_share"));
		fputs(" of the busiest hart", f);
	} else
		fputs("not known yet", f);
	if (budget > 0) {
		fputs(" (budget ", f);
		write_amount(f, MPERF__UNIT__UNIT_SHARE, budget);
		fputc(')', f);
	}
	if (number_of(s, "process", own, "rss") > 0) {
		fputs("; ", f);
		write_amount(f, MPERF__UNIT__UNIT_BYTES, number_of(s, "process", own, "rss"));
		fputs(" of memory", f);
	}
	fputc('\n', f);
}

static void write_names(const struct replies *s, FILE *f)
{
	fputs("Names    ", f);
	write_amount(f, MPERF__UNIT__UNIT_COUNT, number_of(s, "naming", 0, "named"));
	fputs(" named, ", f);
	write_amount(f, MPERF__UNIT__UNIT_COUNT, number_of(s, "naming", 0, "placed"));
	fputs(" by place, ", f);
	write_amount(f, MPERF__UNIT__UNIT_COUNT, number_of(s, "naming", 0, "waiting"));
	fputs(" waiting", f);
	if (number_of(s, "feed", 0, "programs") > 0) {
		fputs("; ", f);
		write_amount(f, MPERF__UNIT__UNIT_COUNT, number_of(s, "feed", 0, "programs"));
		fputs(" instrumented programs", f);
	}
	fputc('\n', f);
}

static int write_store(const struct replies *s, FILE *f)
{
	const struct reply *r = replies_table(s, "store");
	const int column = r ? reply_column(r, "oldest") : -1;
	const Mperf__Value *oldest = r && r->n_rows > 0 ? reply_value(r, 0, column) : NULL;
	_cleanup_(freep) char *since =
		oldest ? table_cell(oldest, r->columns->column[column]->unit, false) : NULL;
	if (oldest && !since)
		return -ENOMEM;
	fputs("Store    ", f);
	write_amount(f, MPERF__UNIT__UNIT_BYTES, number_of(s, "store", 0, "bytes"));
	fputs(" of ", f);
	write_amount(f, MPERF__UNIT__UNIT_BYTES, number_of(s, "store", 0, "budget"));
	fputs(since ? ", since " : "", f);
	fputs(since ? since : "", f);
	fputs("; ", f);
	write_amount(f, MPERF__UNIT__UNIT_BYTES, number_of(s, "store", 0, "minute_bytes"));
	fputs(" a minute\n", f);
	return 0;
}

int status_write_short(const struct replies *s, FILE *f)
{
	static const char *const says[] = {
		"good: nothing is given up or in trouble, and next to nothing is lost",
		"look:", "trouble:"};
	_cleanup_(freep) char *why = NULL;
	size_t size;
	struct verdict v = {.why = open_memstream(&why, &size)};
	if (!v.why)
		return -ENOMEM;
	find_troubles(&v, s);
	find_losses(&v, s);
	find_given_up(&v, s);
	find_rate(&v, s);
	if (fclose(v.why) != 0)
		return -ENOMEM;
	fprintf(f, "%s\n%s", says[v.state], why);
	write_samples(s, f);
	write_cost(s, f);
	write_names(s, f);
	int r = write_store(s, f);
	fputs("\nmperfctl status --all shows all figures.\n", f);
	return r == 0 && ferror(f) ? -EIO : r;
}
