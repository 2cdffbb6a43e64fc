/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/report/trust.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/syntax/unit.h"

#define FINDINGS_MAX 8
#define TEXT_BYTES 200

/* From here on one should look, or doubt. */
struct limits {
	double look, doubtful;
};
static const struct limits lost = {0.005, 0.05}; /* of samples */
static const struct limits unnamed = {0.1, 0.5}; /* of samples */
static const struct limits coming = {0.05, 0.5}; /* of samples */
static const struct limits cost = {0.02, 0.1};   /* of the machine */
static const struct limits error = {
	0.016, 0.05}; /* of a share of one half: 1,000 and 100 samples */

struct finding {
	enum trust trust;
	char text[TEXT_BYTES];
};

struct findings {
	struct finding finding[FINDINGS_MAX];
	size_t n;
};

const char *trust_name(enum trust t)
{
	static const char *const names[] = {"good", "look", "doubtful"};
	return names[t];
}

/* Where to write the next one's text: a value above its limits is a finding. */
static struct finding *add(struct findings *f, double value, const struct limits *limits)
{
	struct finding *next = &f->finding[f->n < FINDINGS_MAX ? f->n++ : FINDINGS_MAX - 1];
	next->trust = value >= limits->doubtful ? TRUST_DOUBTFUL
		      : value >= limits->look   ? TRUST_LOOK
						: TRUST_GOOD;
	return next;
}

static double lost_share(const Mperf__Provenance *p)
{
	double n = 0;
	for (size_t i = 0; i < p->n_loss; i++)
		n += p->loss[i]->samples ? (double)p->loss[i]->count : 0;
	return n > 0 ? n / (n + (double)p->samples) : 0;
}

static void find(const Mperf__Provenance *p, struct findings *f)
{
	char count[UNIT_TEXT_BYTES];
	const double in_error = p->samples > 0 ? 0.5 / sqrt((double)p->samples) : 1;
	const double without =
		1 - (p->placed_share > p->named_share ? p->placed_share : p->named_share);
	const double gone = lost_share(p);
	const int digits = in_error < 0.01 ? 1 : 0;

	unit_count_text((int64_t)p->samples, count);
	struct finding *next = add(f, in_error, &error);
	if (p->samples == 0)
		snprintf(next->text, TEXT_BYTES, "there are no samples");
	else
		snprintf(next->text, TEXT_BYTES,
			"%s sample%s: what is 50 %% may be %.*f to %.*f %%", count,
			p->samples == 1 ? "" : "s", digits, 50 - 100 * in_error, digits,
			50 + 100 * in_error);
	next = add(f, gone, &lost);
	if (gone > 0)
		snprintf(next->text, TEXT_BYTES, "%.2f %% of the samples were lost", 100 * gone);
	else
		snprintf(next->text, TEXT_BYTES, "no sample was lost");
	if (p->samples == 0)
		return;
	next = add(f, without, &unnamed);
	snprintf(next->text, TEXT_BYTES, "%.1f %% of the samples have a name or a place",
		100 * (1 - without));
	next = add(f, p->coming_share, &coming);
	if (p->coming_share > 0)
		snprintf(next->text, TEXT_BYTES, "names of %.1f %% of the samples are still coming",
			100 * p->coming_share);
	else
		f->n--;
	if (p->cost_share > 0) {
		next = add(f, p->cost_share, &cost);
		snprintf(next->text, TEXT_BYTES, "mperf itself took %.2f %% of the machine",
			100 * p->cost_share);
	}
}

static enum trust worst_of(const struct findings *f)
{
	enum trust worst = TRUST_GOOD;
	for (size_t i = 0; i < f->n; i++)
		if (f->finding[i].trust > worst)
			worst = f->finding[i].trust;
	return worst;
}

static void write_item(const char *before, const char *text, FILE *out)
{
	fprintf(out, "<li>%s", before);
	escape_markup(out, text);
	fputs("</li>\n", out);
}

enum trust trust_write(const Mperf__Provenance *p, FILE *out)
{
	struct findings f = {.n = 0};
	find(p, &f);
	for (enum trust t = TRUST_DOUBTFUL + 1; t-- > TRUST_GOOD;)
		for (size_t i = 0; i < f.n; i++)
			if (f.finding[i].trust == t)
				write_item("", f.finding[i].text, out);
	for (size_t i = 0; i < p->n_note; i++)
		write_item("", p->note[i], out);
	return worst_of(&f);
}

void trust_write_verdict(const Mperf__Provenance *p, FILE *out)
{
	struct findings f = {.n = 0};
	const char *before = "";
	find(p, &f);
	const enum trust worst = worst_of(&f);
	for (size_t i = 0; i < f.n; i++)
		if (f.finding[i].trust == worst) {
			fputs(before, out);
			escape_markup(out, f.finding[i].text);
			before = "; ";
		}
}
