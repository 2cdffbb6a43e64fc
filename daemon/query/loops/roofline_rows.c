/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rows of a roofline, whose figures are in proto/figures.inc, and the notes below them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/query/loops/cells.h"
#include "daemon/query/loops/roofline_private.h"
#include "proto/base/memory.h"

enum {
#define BY_COUNTS(name, title, unit, cell, value) FIGURE_##name,
#include "proto/figures.inc"
	N_FIGURES
};
#define KEYS_MAX 6
#define GRANTED_MAX (4 + 3 * MPERF_GRANTS_MAX) /* of an event its count, error and rate */
#define COLUMNS_MAX (KEYS_MAX + N_FIGURES + GRANTED_MAX)
#define TEXTS_MAX 4
#define TEXT_BYTES 512
#define CALLEES_BYTES 384 /* bytes of these: three names */

struct row {
	struct answer_value value[COLUMNS_MAX];
	size_t n;
	char text[TEXTS_MAX][TEXT_BYTES];
	size_t n_texts;
};

static void put(struct row *row, struct answer_value v)
{
	if (row->n < COLUMNS_MAX)
		row->value[row->n++] = v;
}

static struct answer_value figure_text(const char *text)
{
	return cell_text(known_text(text));
}

static struct answer_value figure_count(double n)
{
	return cell_number(integer_of(n));
}

/* Negative: absent. */
static struct answer_value figure_known(double n)
{
	return n < 0 ? cell_absent() : figure_count(n);
}

static struct answer_value figure_real(double n)
{
	return n < 0 ? cell_absent() : cell_ratio(n);
}

static void put_text(struct row *row, const char *text)
{
	put(row, figure_text(text));
}

static char *new_text(struct row *row)
{
	return row->text[row->n_texts < TEXTS_MAX ? row->n_texts++ : TEXTS_MAX - 1];
}

/* --- columns ---------------------------------------------------------------------------------- */

#define SITE_COLUMNS                                                                               \
	{"function", "Function", 0}, {"source", "Source", 0}, {"nest", "Nest", 0},                 \
		{"inlined_at", "Inlined at", 0}, {"copies", "Copies", 0},                          \
		{"build_id", "Build id", 0}
static const struct answer_column key_columns[N_ROOFLINE_BY][KEYS_MAX + 1] = {
	[ROOFLINE_LOOP] = {SITE_COLUMNS},
	[ROOFLINE_FUNCTION] = {SITE_COLUMNS},
	[ROOFLINE_REGION] = {{"region", "Region", 0}, {"source", "Source", 0},
		{"around", "Inside", 0}},
	[ROOFLINE_THREAD] = {{"comm", "Thread", 0}, {"pid", "PID", 0}, {"tid", "TID", 0}},
};

/* --- what was granted ------------------------------------------------------------------------- */

/* Each event of regions has a column, and some that follow from it. */
#define PER_INSTRUCTIONS 1000.0

static bool has_rate(const struct roofline *r, unsigned i)
{
	int instructions = granted_find(&r->facts, "instructions");
	return instructions >= 0 && instructions != (int)i;
}

#define EVENT_COLUMN "event_" /* prefix of their names, which may equal that of our own count */
struct granted_names {
	char name[MPERF_GRANTS_MAX][LOOP_GRANTED_BYTES + 16];
	char rate[MPERF_GRANTS_MAX][LOOP_GRANTED_BYTES + 16];
	char error[MPERF_GRANTS_MAX][LOOP_GRANTED_BYTES + 16];
};

static size_t granted_columns(const struct roofline *r, struct granted_names *names,
	const char *per_dram_byte, struct answer_column *c)
{
	size_t n = 0;
	if (r->rows.any_measured_in_part)
		c[n++] = (struct answer_column){
			"measured_entries", "Measured", MPERF__UNIT__UNIT_COUNT};
	if (r->q.by != ROOFLINE_REGION || r->facts.granted.n == 0)
		return n;
	c[n++] = (struct answer_column){"granted_ns", "Counted for", MPERF__UNIT__UNIT_NS};
	for (unsigned i = 0; i < r->facts.granted.n; i++) {
		const char *name = granted_name(&r->facts, i);
		snprintf(names->name[i], sizeof(names->name[i]), EVENT_COLUMN "%.63s", name);
		c[n++] = (struct answer_column){names->name[i], name, MPERF__UNIT__UNIT_COUNT};
		snprintf(
			names->error[i], sizeof(names->error[i]), EVENT_COLUMN "%.47s_error", name);
		if (r->rows.any_measured_in_part)
			c[n++] = (struct answer_column){
				names->error[i], "Error", MPERF__UNIT__UNIT_SHARE};
		if (!has_rate(r, i))
			continue;
		snprintf(names->rate[i], sizeof(names->rate[i]), EVENT_COLUMN "%.47s_per_1000",
			name);
		c[n++] = (struct answer_column){
			names->rate[i], "/ 1000 instr.", MPERF__UNIT__UNIT_RATIO};
	}
	if (r->has_dram) {
		c[n++] =
			(struct answer_column){"dram_gbytes", "DRAM GB/s", MPERF__UNIT__UNIT_RATIO};
		c[n++] = (struct answer_column){
			"ops_per_dram_byte", per_dram_byte, MPERF__UNIT__UNIT_RATIO};
	}
	return n;
}

/* A granted event's count; negative: it was not counted, or is impossible. */
static double granted_count(const struct roofline *r, const struct roof_row *from, int i)
{
	const double *value = r->groups.total[from->group].value;
	bool known = i >= 0 && value[LOOP_GRANTED_NS] > 0 && !(from->doubted & 1u << i);
	return known ? value[LOOP_GRANTED + i] : -1;
}

static double ratio(double part, double whole, double factor)
{
	return part >= 0 && whole > 0 ? factor * part / whole : -1;
}

static void put_granted(struct row *row, const struct roofline *r, const struct roof_row *from)
{
	const double *v = r->groups.total[from->group].value;
	double ns = v[LOOP_GRANTED_NS];
	double instructions = granted_count(r, from, granted_find(&r->facts, "instructions"));
	double counts[MPERF_GRANTS_MAX] = {-1, -1, -1, -1};
	if (r->rows.any_measured_in_part) /* a region without these figures measured all of its entries */
		put(row, figure_count(v[LOOP_REPRESENTED] > 0 ? v[LOOP_TIMED_ENTRIES]
							      : v[LOOP_ENTRIES]));
	if (r->q.by != ROOFLINE_REGION || r->facts.granted.n == 0)
		return;
	put(row, figure_known(ns > 0 ? ns : -1));
	for (unsigned i = 0; i < r->facts.granted.n; i++) {
		double count = counts[i] = granted_count(r, from, (int)i);
		put(row, figure_known(count));
		if (r->rows.any_measured_in_part)
			put(row, figure_real(
					 roof_variance_error(v[LOOP_GRANTED_VARIANCE + i], count)));
		if (has_rate(r, i))
			put(row, figure_real(ratio(count, instructions, PER_INSTRUCTIONS)));
	}
	if (!r->has_dram)
		return;
	/* operations are of all entries, misses of those with counters: their rates are compared */
	double bytes_per_ns = ratio(dram_bytes(&r->facts, &r->dram, counts), ns, 1);
	put(row, figure_real(bytes_per_ns));
	put(row, figure_real(ratio(from->total.ops_per_ns, bytes_per_ns, 1)));
}

static int tell_columns(const struct roofline *r, const struct answer *answer)
{
	static const char *const rate[] = {"GFLOP/s", "GIOP/s", "SP GFLOP/s", "DP GFLOP/s"};
	static const char *const per_byte[] = {"FLOP/B", "IOP/B", "FLOP/B", "FLOP/B"};
	static const char *const per_dram_byte[] = {
		"FLOP/DRAM B", "IOP/DRAM B", "FLOP/DRAM B", "FLOP/DRAM B"};
	const char *const RATE = rate[r->q.ops], *const PER_BYTE = per_byte[r->q.ops];
	struct answer_column c[COLUMNS_MAX];
	struct granted_names names;
	size_t n = 0;
	for (const struct answer_column *key = key_columns[r->q.by]; key->name; key++)
		c[n++] = *key;
#define BY_COUNTS(name, title, unit, cell, value)                                                  \
	c[n++] = (struct answer_column){#name, title, MPERF__UNIT__UNIT_##unit};
#include "proto/figures.inc"
	n += granted_columns(r, &names, per_dram_byte[r->q.ops], c + n);
	return answer->columns(answer->userdata, c, n);
}

/* --- whose ------------------------------------------------------------------------------------ */

static const char *place_text(
	struct row *row, const struct loop_facts *f, const struct fact_site *s)
{
	const char *source = text_of(&f->texts, s->source);
	char *text = new_text(row);
	if (!source || !*source)
		return "";
	if (s->line == 0)
		return source;
	snprintf(text, TEXT_BYTES, "%.480s:%u", source, s->line);
	return text;
}

static const char *copies_text(const struct fact_site *s)
{
	static const char *const says[] = {"", "vectorised", "remainder", "vectorised, remainder"};
	return says[s->flags & (MPERF_SCOPE_VECTORISED | MPERF_SCOPE_REMAINDER)];
}

static void put_site(struct row *row, const struct loop_facts *f, const struct fact_site *s)
{
	put_text(row, text_of(&f->texts, s->readable));
	put_text(row, place_text(row, f, s));
	put_text(row, text_of(&f->texts, s->nest));
	put_text(row, text_of(&f->texts, s->inlined_at));
	put_text(row, copies_text(s));
	put_text(row, text_of(&f->texts, s->build_id));
}

static void put_region(struct row *row, const struct loop_facts *f, const struct fact_site *s)
{
	const char *name = text_of(&f->texts, s->subprogram);
	put_text(row, name && *name ? name : "[no region]");
	put_text(row, place_text(row, f, s));
	put_text(row,
		s->parent ? text_of(&f->texts, f->sites.site[s->parent - 1].subprogram) : NULL);
}

static void put_key(struct row *row, const struct roofline *r, uint32_t group)
{
	const struct loop_facts *f = &r->facts;
	if (r->q.by == ROOFLINE_REGION) {
		put_region(row, f, &f->sites.site[group]);
	} else if (r->q.by != ROOFLINE_THREAD) {
		put_site(row, f, &f->sites.site[group]);
	} else {
		put_text(row, text_of(&f->texts, f->whos.who[group].comm));
		int32_t pid = f->whos.who[group].pid; /* 0: of a file, which has no pid */
		put(row, figure_known(pid > 0 ? pid : -1));
		put(row, figure_count(f->whos.who[group].tid));
	}
}

/* --- figures ---------------------------------------------------------------------------------- */

static bool is_scarce(struct roof_share share)
{
	return share.counted >= 0 && share.counted <= 1 && share.counted < share.entries;
}

/* Calls of uncounted code: by name, or as in old tables. */
static size_t put_callees(const struct roofline *r, uint32_t group, char *text, size_t n)
{
	double external = r->groups.total[group].value[LOOP_EXTERNAL_CALLS];
	size_t length = roofline_callees(r, group, text, n);
	if (length == 0 && external > 0)
		length = (size_t)snprintf(
			text, n, "%lld external calls", (long long)integer_of(external));
	return length;
}

/* Describe what could not be counted: calls, assembly, and entries that should have counted and did
 * not. */
static const char *unseen_text(
	struct row *row, const struct roofline *r, const struct roof_row *from)
{
	char *text = new_text(row);
	uint32_t group = from->group;
	const struct roof_sums *s = &r->groups.total[group];
	char calls[CALLEES_BYTES];
	bool assembly = r->q.by != ROOFLINE_THREAD &&
			r->facts.sites.site[group].flags & MPERF_SCOPE_ASSEMBLY;
	struct roof_share share = roof_share_of(r, group);
	bool is_site = r->q.by == ROOFLINE_LOOP || r->q.by == ROOFLINE_FUNCTION;
	size_t n = 0;
	*text = '\0';
	if (!is_site && s->n_scarce > 0)
		n += (size_t)snprintf(
			text, TEXT_BYTES, "functions counted once or never: %u", s->n_scarce);
	if (is_scarce(share))
		n += (size_t)snprintf(text, TEXT_BYTES, "%s of %lld entries counted",
			share.counted > 0 ? "1" : "none", (long long)integer_of(share.entries));
	if (put_callees(r, group, calls, sizeof(calls)) > 0)
		n += (size_t)snprintf(text + n, TEXT_BYTES - n, "%s%s", n ? ", " : "", calls);
	if (assembly)
		n += (size_t)snprintf(text + n, TEXT_BYTES - n, "%sinline assembly", n ? ", " : "");
	if (from->doubted)
		snprintf(text + n, TEXT_BYTES - n, "%shardware counts that cannot be",
			n ? ", " : "");
	return text;
}

/* Absent if all entries counted. */
static double sampling_error_of(struct roof_share share)
{
	bool known = share.entries > 0 && share.counted > 0;
	return known ? loop_share_error(share.entries, share.counted) : -1;
}

/* Instructions per cycle: in regions of the granted events, else of the counts of samples. */
static double ipc_of(const struct roofline *r, const struct roof_row *from)
{
	const struct roof_sums *s = &r->groups.total[from->group];
	if (r->q.by == ROOFLINE_REGION)
		return ratio(granted_count(r, from, granted_find(&r->facts, "instructions")),
			granted_count(r, from, granted_find(&r->facts, "cycles")), 1);
	return from->doubted ? -1 : ratio(s->instructions, s->cycles, 1);
}

static const char *const clocks[N_ROOF_CLOCKS] = {"", "measured", "sampled", "wall", "shared"};

#define ROOFLINE_COPY N_ROOFLINE_BY
static const char *const kinds[] = {
	[ROOFLINE_LOOP] = "loop",
	[ROOFLINE_FUNCTION] = "function",
	[ROOFLINE_REGION] = "region",
	[ROOFLINE_THREAD] = "thread",
	[ROOFLINE_COPY] = "copy",
};

static double time_share(const struct roofline *r, double ns)
{
	return r->times.whole_ns > 0 ? ns / r->times.whole_ns : -1;
}

/* The share of samples that this IPC covers; absent if all have counts. */
static double ipc_share_of(const struct roofline *r, const struct roof_sums *s)
{
	if (r->q.by == ROOFLINE_REGION || s->samples == 0 || r->facts.provenance.uncounted == 0)
		return -1;
	return 1 - (double)s->uncounted / (double)s->samples;
}

/* Operations and bytes are sums of a row with the loops inside (TOTAL), or without (OWN). */
static int tell_row(
	const struct roofline *r, const struct roof_row *from, const struct answer *answer)
{
	struct row row = {.n = 0};
	const struct roof_figures *total = &from->total, *self = &from->self;
	const struct roof_sums *sums = &r->groups.total[from->group],
			       *own = &r->groups.self[from->group];
	struct roof_share share = roof_share_of(r, from->group);
	bool has_iterations = r->q.by == ROOFLINE_LOOP || r->q.by == ROOFLINE_THREAD;
	bool is_uncounted =
		share.counted == 0 && share.entries > 0; /* none of its entries counted */
	put_key(&row, r, from->group);
#define TOTAL(metric) sums->value[LOOP_##metric]
#define OWN(metric) own->value[LOOP_##metric]
#define figure_counted(sum) figure_known(is_uncounted ? -1 : (sum)) /* not 0 */
#define BY_COUNTS(name, title, unit, cell, value) put(&row, figure_##cell(value));
#include "proto/figures.inc"
	put_granted(&row, r, from);
	return answer->row(answer->userdata, row.value, row.n);
}

int roofline_tell(struct roofline *r, const struct answer *answer)
{
	int outcome = tell_columns(r, answer);
	for (uint32_t i = 0; i < r->rows.n && outcome == 0; i++)
		outcome = tell_row(r, &r->rows.row[i], answer);
	if (outcome != 0)
		return outcome;
	roofline_note(r);
	return provenance_tell(&r->facts.provenance, &r->facts.texts, answer);
}
