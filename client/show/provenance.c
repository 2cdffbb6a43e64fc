/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The provenance line ends every answer: how the figures were measured, how many samples, and what
 * is missing. Parts that the daemon left empty are omitted, but losses are always shown, since
 * "none" is news.
 */
#include <errno.h>
#include <string.h>

#include "client/show/escape.h"
#include "client/show/reply.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

/* "a: its cycles; d: cpu-clock alone" becomes "rung a (its cycles), rung d (cpu-clock alone)". */
static void write_rungs(FILE *f, const char *rung)
{
	while (*rung) {
		char part[128];
		size_t n = strcspn(rung, ";");
		snprintf(part, sizeof(part), "%.*s", (int)n, rung);
		rung += n;
		rung += strspn(rung, "; ");

		fputs(", rung ", f);
		char *says = strchr(part, ':');
		if (says)
			*says++ = '\0';
		escape_terminal(f, part);
		if (says) {
			fputs(" (", f);
			escape_terminal(f, says + strspn(says, " "));
			fputc(')', f);
		}
	}
}

/* The causes of missing samples, or the other causes. True if there was one. */
static bool write_causes(FILE *f, const Mperf__Provenance *p, bool samples, const char *before)
{
	char count[UNIT_TEXT_BYTES];
	bool any = false;

	for (size_t i = 0; i < p->n_loss; i++) {
		if (p->loss[i]->count == 0 || p->loss[i]->samples != samples)
			continue;
		unit_count_text((int64_t)p->loss[i]->count, count);
		fputs(any ? ", " : before, f);
		escape_terminal(f, p->loss[i]->cause);
		fprintf(f, " (%s)", count);
		any = true;
	}
	return any;
}

static void write_losses(FILE *f, const Mperf__Provenance *p)
{
	if (!write_causes(f, p, true, "; lost: "))
		fputs("; lost: none", f);
	write_causes(f, p, false, "; besides: ");
}

/* The smallest share of the time, of which it is not known what threads waited for, that is worth a word. */
#define UNKNOWN_MIN 0.01

double reply_waited_s(const Mperf__Threads *t)
{
	const double waited = t->lived - t->ran - t->ready - t->unsplit;
	return waited > 0 ? waited : 0;
}

/* For how much of their time the threads had a CPU, waited for one, and waited for something else. */
static void write_threads(FILE *f, const Mperf__Threads *t)
{
	char text[UNIT_TEXT_BYTES];

	if (!t || t->lived <= 0)
		return;
	unit_text(MPERF__UNIT__UNIT_NS, t->lived * 1e9, text);
	fprintf(f,
		"; threads lived %s: with a CPU %.1f %%, waiting for one %.1f %%, waiting for "
		"something else %.1f %%",
		text, 100 * t->ran / t->lived, 100 * t->ready / t->lived,
		100 * reply_waited_s(t) / t->lived);
	if (t->unsplit >= UNKNOWN_MIN * t->lived)
		fprintf(f, ", waiting for either %.1f %%", 100 * t->unsplit / t->lived);
}

/* For how long harts worked, and how many at once. */
static void write_wall(FILE *f, const Mperf__Wall *w)
{
	char text[UNIT_TEXT_BYTES], least[UNIT_TEXT_BYTES], most[UNIT_TEXT_BYTES];

	if (!w || w->busy <= 0)
		return;
	unit_text(MPERF__UNIT__UNIT_NS, w->busy * 1e9, text);
	fprintf(f, "; at least one hart worked for %s", text);
	if (w->most > w->least * 1.01) {
		unit_text(MPERF__UNIT__UNIT_NS, w->least * 1e9, least);
		unit_text(MPERF__UNIT__UNIT_NS, w->most * 1e9, most);
		fprintf(f,
			" (between %s and %s: the service's windows do not say what ran at once)",
			least, most);
	}
	fprintf(f, "; meanwhile %.2f harts on average", w->cpu / w->busy);
}

static void write_line(FILE *f, const Mperf__Provenance *p)
{
	char text[UNIT_TEXT_BYTES];

	escape_terminal(f, *p->event ? p->event : "no event");
	write_rungs(f, p->rung);
	if (*p->switches) {
		fputs(", switches: ", f);
		escape_terminal(f, p->switches);
	}
	if (p->period > 0) {
		unit_count_text((int64_t)p->period, text);
		fprintf(f, ", one in %s", text);
	} else if (p->hz > 0) {
		unit_count_text(p->hz, text);
		fprintf(f, ", %s Hz", text);
	}
	if (p->look_every > 0) {
		unit_text(MPERF__UNIT__UNIT_NS, p->look_every * 1e9, text);
		fprintf(f, ", sampled every %s", text);
	}
	unit_count_text((int64_t)p->samples, text);
	fprintf(f, "; %s sample%s", text, p->samples == 1 ? "" : "s");
	if (p->seconds > 0) {
		unit_text(MPERF__UNIT__UNIT_NS, p->seconds * 1e9, text);
		fprintf(f, " in %s", text);
	}
	write_losses(f, p);
	if (p->samples > 0)
		fprintf(f, "; %.1f %% named", 100 * p->named_share);
	if (p->placed_share > p->named_share)
		fprintf(f, ", %.1f %% placed", 100 * p->placed_share);
	if (p->cost_share > 0)
		fprintf(f,
			p->cost_share < 0.0001 ? "; cost less than 0.01 %% of the machine"
			: p->cost_share < 0.01 ? "; cost %.2f %% of the machine"
					       : "; cost %.1f %% of the machine",
			100 * p->cost_share);
	write_threads(f, p->threads);
	write_wall(f, p->wall);
	if (p->has_waiting && p->threads && reply_waited_s(p->threads) > p->threads->lived / 2)
		fputs("; mperfctl hotspots --event waiting shows where", f);
	for (size_t i = 0; i < p->n_note; i++) {
		/* notes that are sentences end with a full stop */
		const char *before = i > 0 ? p->note[i - 1] : "";
		fputs(*before && before[strlen(before) - 1] == '.' ? " " : "; ", f);
		escape_terminal(f, p->note[i]);
	}
}

void reply_write_provenance(const Mperf__Provenance *p, FILE *f)
{
	if (!p)
		return;
	fputc('\n', f);
	write_line(f, p);
	fputc('\n', f);
}

char *reply_provenance_line(const Mperf__Provenance *p)
{
	_cleanup_(freep) char *line = NULL;
	size_t size;
	FILE *f = open_memstream(&line, &size);
	if (!f)
		return NULL;
	write_line(f, p);
	if (fclose(f) != 0)
		return NULL;
	return TAKE_PTR(line);
}
