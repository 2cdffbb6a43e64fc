/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl roofs: what this machine can do at most, as it was measured, now or before.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/commands/roofs_measure.h"
#include "client/options/command.h"
#include "client/options/options.h"
#include "client/roofs/find.h"
#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/say.h"

/* --- showing ---------------------------------------------------------------------------------- */

/* "98.1 GFLOP/s"; integers are plain operations. */
static void rate_text(const struct roof *r, double value, char ret_text[static 32])
{
	static const char prefix[] = {' ', 'k', 'M', 'G', 'T', 'P'};
	size_t i = 0;
	while (value >= 1000 && i + 1 < sizeof(prefix)) {
		value /= 1000;
		i++;
	}
	snprintf(ret_text, 32, "%.*f %c%s",
		value < 10    ? 2
		: value < 100 ? 1
			      : 0,
		value, prefix[i],
		r->limit == ROOF_MEMORY ? "B/s"
		: *r->precision == 'f'  ? "FLOP/s"
					: "OP/s");
}

static void write_roof(const struct roof *r, FILE *f)
{
	char value[32], low[32], high[32], unit[32], per_cycle[32] = "-";
	rate_text(r, r->value, value);
	rate_text(r, r->low, low);
	rate_text(r, r->high, high);
	snprintf(unit, sizeof(unit), r->lmul ? "%s m%u" : "%s", r->unit, r->lmul);
	if (r->hz > 0)
		snprintf(per_cycle, sizeof(per_cycle), "%.2f",
			r->value / r->hz / (r->n_harts ? r->n_harts : 1));
	fputs("  ", f);
	const char *first = r->limit == ROOF_COMPUTE ? r->precision : r->level;
	const char *second = r->limit == ROOF_COMPUTE ? r->operation : r->pattern;
	escape_terminal(f, first);
	fprintf(f, "%*s", (int)(6 - escape_width(first) % 6), "");
	escape_terminal(f, second);
	fprintf(f, "%*s", (int)(10 - escape_width(second) % 10), "");
	escape_terminal(f, unit);
	fprintf(f, "%*s%14s  %14s %14s  %9s", (int)(9 - escape_width(unit) % 9), "", value, low,
		high, per_cycle);
	if (*r->note) {
		fputs("  ", f);
		escape_terminal(f, r->note);
	}
	fputc('\n', f);
}

static void write_heading(const struct roofs *roofs, const struct roof *r, FILE *f)
{
	const char *name = r->kind;
	for (size_t i = 0; i < roofs->n_kinds; i++)
		if (strcmp(roofs->kinds[i].id, r->kind) == 0)
			name = roofs->kinds[i].name;
	fprintf(f, "\n%u %s (%s), ", r->n_harts, r->n_harts == 1 ? "hart" : "harts",
		roof_scope_name(r->scope));
	escape_terminal(f, name);
	fprintf(f, "\n  %-16s%-9s%14s  %14s %14s  %9s\n", "", "Unit", "Rate", "Low", "High",
		"Per cycle");
}

static int write_table(const struct roofs *roofs, FILE *f)
{
	char when[64] = "";
	struct tm tm;
	time_t measured = (time_t)roofs->measured_s;
	if (localtime_r(&measured, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
	const char *whose = roofs_keeper_says(roofs->keeper);
	fprintf(f, "Measured %s in %.0f s%s, %s, on Linux ", when, roofs->took_s,
		roofs->quick ? ", --quick" : "",
		roofs->paused ? "while mperfd's sampling was lowered" : "beside whatever else ran");
	escape_terminal(f, roofs->kernel);
	fprintf(f, *whose ? " (%s)\n" : "%s\n", whose);
	if (*roofs->disturbed) {
		fputs("Disturbed: ", f);
		escape_terminal(f, roofs->disturbed);
		fputs(". These rates may be too low: measure again when the machine has less to "
		      "do.\n",
			f);
	}
	for (size_t i = 0; i < roofs->n; i++) {
		const struct roof *r = &roofs->roof[i], *before = i > 0 ? r - 1 : NULL;
		if (!before || before->scope != r->scope || strcmp(before->kind, r->kind) != 0)
			write_heading(roofs, r, f);
		write_roof(r, f);
	}
	fputs(roofs->n_notes > 0 ? "\n" : "", f);
	for (size_t i = 0; i < roofs->n_notes; i++) {
		fputs("note: ", f);
		escape_terminal(f, roofs->note[i]);
		fputc('\n', f);
	}
	return 0;
}

static int show(const struct options *o, const struct roofs *roofs)
{
	struct print p;
	if (roofs->stale)
		say_note("these roofs are stale: %s. Run `mperfctl roofs measure`", roofs->why);
	int r = print_open_answer(&p, options_ask_data(o));
	if (r == 0)
		r = o->look.json ? roofs_write(roofs, false, p.file) : write_table(roofs, p.file);
	return print_close_answer(&p, r);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int say_unread(const char *from, int r, const char *fault)
{
	char what[1024];
	if (r == ROOFS_NONE) {
		say_failure("no roofs have been measured", "Run `mperfctl roofs measure`");
		return EXIT_FAILED;
	}
	snprintf(what, sizeof(what), "cannot read %s%.300s%s: %s", from ? "'" : "",
		from ? from : "the saved roofs", from ? "'" : "", r < 0 ? strerror(-r) : fault);
	say_failure(what, r == ROOFS_NEWER ? "Update mperfctl"
			  : from           ? "Name a file that `mperfctl roofs --json` wrote"
					   : "Run `mperfctl roofs measure`");
	return EXIT_FAILED;
}

static int read_kept(const struct options *o, struct roofs *ret_roofs)
{
	char fault[ROOF_NOTE_BYTES] = "";
	int r = o->input ? roofs_read(o->input, ret_roofs, fault) : roofs_find(ret_roofs, fault);
	return r == 0 ? 0 : say_unread(o->input, r, fault);
}

int client_roofs(const struct options *o)
{
	struct roofs roofs;
	int r = o->topic ? roofs_measure(o, &roofs) : read_kept(o, &roofs);
	if (r < 0) {
		char what[256];
		snprintf(what, sizeof(what), "cannot measure: %s", strerror(-r));
		say_failure(what, "Free some memory or processes, and try again");
		return EXIT_FAILED;
	}
	if (r > 0)
		return r;
	r = show(o, &roofs);
	roofs_clear(&roofs);
	return r;
}
