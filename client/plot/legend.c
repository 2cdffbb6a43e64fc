/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/plot/legend.h"

#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"

#define WIDE 0.1 /* an interval of this share of its roof is mentioned */

static const char *unit_of(const struct plot *p, const struct plot_roof *roof)
{
	return roof->is_memory ? "GB/s" : p->rate;
}

void plot_roof_text(
	const struct plot *p, const struct plot_roof *roof, char ret_text[static PLOT_ROOF_BYTES])
{
	snprintf(
		ret_text, PLOT_ROOF_BYTES, "%s %.3g %s", roof->name, roof->value, unit_of(p, roof));
}

void plot_roof_interval(
	const struct plot *p, const struct plot_roof *roof, char ret_text[static PLOT_ROOF_BYTES])
{
	*ret_text = '\0';
	if (roof->low > 0 && roof->high >= roof->low)
		snprintf(ret_text, PLOT_ROOF_BYTES, "%.4g to %.4g %s", roof->low, roof->high,
			unit_of(p, roof));
}

void plot_set_text(const struct plot_set *s, char ret_text[static PLOT_ROOF_BYTES])
{
	snprintf(ret_text, PLOT_ROOF_BYTES, "One hart%s%s, %s", *s->hart_kind ? " of kind " : "",
		s->hart_kind, plot_precision_text(s->precision));
}

static void write_roofs(
	const struct plot *p, const struct plot_roof *const *roof, size_t n, FILE *f)
{
	char text[PLOT_ROOF_BYTES];
	for (size_t i = 0; i < n; i++) {
		plot_roof_text(p, roof[i], text);
		fprintf(f, "%s%s", i > 0 ? ", " : "", text);
		if (roof[i]->low > 0 && roof[i]->high - roof[i]->low > WIDE * roof[i]->value)
			fprintf(f, " (%.3g to %.3g)", roof[i]->low, roof[i]->high);
	}
}

static void write_set(const struct plot *p, const struct plot_set *s, bool brief, FILE *f)
{
	char text[PLOT_ROOF_BYTES];
	double memory, compute;
	plot_set_text(s, text);
	fprintf(f, brief ? "%s. " : "%s: ", text);
	if (!brief) {
		write_roofs(p, s->memory, s->n_memory, f);
		fputs(s->n_memory > 0 && s->n_peaks > 0 ? "; " : "", f);
		write_roofs(p, s->peak, s->n_peaks, f);
		fputs(". ", f);
	}
	if (!plot_set_zones(s, &memory, &compute))
		return;
	if (memory == compute)
		fprintf(f, "Memory bounds below %.3g %s, computing above. ", memory, p->per_byte);
	else
		fprintf(f,
			"Memory bounds below %.3g %s, computing above %.3g; between them, it "
			"depends on the cache. ",
			memory, p->per_byte, compute);
}

/* The sources of theoretical peaks, each once. */
static void write_sources(const struct plot_set *s, FILE *f)
{
	const char *said = NULL;
	for (size_t i = 0; i < s->n_peaks; i++) {
		const struct plot_roof *roof = s->peak[i];
		if (!roof->is_theoretical || (said && strcmp(said, roof->how) == 0))
			continue;
		fprintf(f, "%s: %s. ", said ? "And" : "Theoretical (dashed)", roof->how);
		said = roof->how;
	}
}

bool plot_has_dram(const struct plot *p, bool *ret_joined)
{
	bool any = false;
	*ret_joined = false;
	for (size_t i = 0; i < p->n_dots; i++) {
		any |= plot_dot_has_dram_place(&p->dot[i]);
		*ret_joined |=
			plot_dot_has_dram_place(&p->dot[i]) && plot_dot_has_place(&p->dot[i]);
	}
	return any;
}

/* Explain the diamonds. */
static void write_dram(const struct plot *p, bool brief, FILE *f)
{
	bool joined;
	if (!plot_has_dram(p, &joined))
		return;
	fprintf(f,
		"Diamonds: bytes that came from memory%s; only the DRAM roof and the peaks bound "
		"them. ",
		joined ? ", joined to the bytes asked for" : "");
	if (!brief)
		fputs("They count lines that missed the last cache, without write-backs. ", f);
}

static void write_all(const struct plot *p, const struct plot_sets *sets,
	const struct plot_legend_look *look, FILE *f)
{
	if (p->no_roofs)
		fprintf(f, "%s ", p->no_roofs);
	if (sets->n > 0)
		write_set(p, &sets->set[sets->shown], look->brief, f);
	if (sets->n > 0)
		write_sources(&sets->set[sets->shown], f);
	if (p->whose && !look->brief)
		fprintf(f, "%s ", p->whose);
	if (p->disturbed)
		fprintf(f, "%s ", p->disturbed);
	if (p->stale)
		fprintf(f, "%s ", p->stale);
	write_dram(p, look->brief, f);
	size_t n_without = 0;
	for (size_t i = 0; i < p->n_dots; i++)
		n_without += !plot_dot_is_drawn(&p->dot[i]);
	if (n_without > 0 && !look->brief)
		fprintf(f,
			"Not drawn, since they have no operations, bytes or measured time: %zu. ",
			n_without);
	if (look->with_provenance && p->provenance)
		fputs(p->provenance, f);
}

/* Bytes of the first line: as many words as fit, at least one. */
static size_t line_bytes(const char *text, size_t columns)
{
	size_t fits = escape_cut(text, columns), n = fits;
	if (text[fits] == '\0')
		return fits;
	while (n > 0 && text[n] != ' ')
		n--;
	return n > 0 ? n : strcspn(text, " ");
}

/* The text in one line; the caller frees. NULL if memory ran out. */
static char *text_of(
	const struct plot *p, const struct plot_sets *sets, const struct plot_legend_look *look)
{
	char *raw = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&raw, &bytes);
	if (!memory)
		return NULL;
	write_all(p, sets, look, memory);
	if (fclose(memory) != 0)
		free(TAKE_PTR(raw));
	for (size_t n = raw ? strlen(raw) : 0; n > 0 && raw[n - 1] == ' '; n--)
		raw[n - 1] = '\0';
	return raw;
}

size_t plot_legend_write(const struct plot *p, const struct plot_sets *sets,
	const struct plot_legend_look *look, FILE *f)
{
	size_t n_lines = 0;
	_cleanup_(freep) char *raw = text_of(p, sets, look);
	_cleanup_(freep) char *text = raw ? escape_terminal_dup(raw) : NULL;
	for (const char *at = text; at && *at; n_lines++) {
		size_t n = line_bytes(at, look->columns);
		fprintf(f, "%.*s\n", (int)n, at);
		at += n + strspn(at + n, " ");
	}
	return n_lines;
}

void plot_legend_markup(const struct plot *p, const struct plot_sets *sets, FILE *f)
{
	_cleanup_(freep) char *text = text_of(p, sets, &(struct plot_legend_look){.columns = 0});
	if (text)
		escape_markup(f, text);
}
