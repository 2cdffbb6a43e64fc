/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rows of a roofline, and behind them what they mean less than they seem to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/query/loops/roofline.h"
#include "proto/base/memory.h"

#define COLUMNS_MAX 96 /* 81, if four events are granted */
#define TEXTS_MAX 4
#define TEXT_BYTES 512
#define CALLEES_BYTES 384 /* of these: three names */

struct row {
	struct answer_value value[COLUMNS_MAX];
	size_t n;
	char text[TEXTS_MAX][TEXT_BYTES];
	size_t n_texts;
	bool is_uncounted; /* none of its entries counted */
};

static void put(struct row *row, struct answer_value v)
{
	if (row->n < COLUMNS_MAX)
		row->value[row->n++] = v;
}

static void put_text(struct row *row, const char *text)
{
	put(row, text && *text ? (struct answer_value){.kind = ANSWER_TEXT, .text = text}
			       : (struct answer_value){.kind = ANSWER_ABSENT});
}

/* Counts are whole numbers; a made-up one is cut off. */
static void put_count(struct row *row, double n)
{
	put(row, (struct answer_value){.kind = ANSWER_INTEGER, .integer = integer_of(n)});
}

static void put_known(struct row *row, double n)
{
	if (n < 0)
		put(row, (struct answer_value){.kind = ANSWER_ABSENT});
	else
		put_count(row, n);
}

/* What no entry counted is not 0. */
static void put_counted(struct row *row, double n)
{
	put_known(row, row->is_uncounted ? -1 : n);
}

static void put_real(struct row *row, double n)
{
	put(row, n < 0 ? (struct answer_value){.kind = ANSWER_ABSENT}
		       : (struct answer_value){.kind = ANSWER_REAL, .real = n});
}

static char *new_text(struct row *row)
{
	return row->text[row->n_texts < TEXTS_MAX ? row->n_texts++ : TEXTS_MAX - 1];
}

/* --- columns ---------------------------------------------------------------------------------- */

#define SITE_COLUMNS                                                                               \
	{"function", "Function", 0}, {"source", "Source", 0}, {"nest", "Nest", 0},                 \
		{"inlined_at", "Inlined at", 0}, {"copies", "Copies", 0},                          \
	{                                                                                          \
		"build_id", "Build id", 0                                                          \
	}
static const struct answer_column key_columns[N_ROOFLINE_BY][8] = {
	[ROOFLINE_LOOP] = {SITE_COLUMNS},
	[ROOFLINE_FUNCTION] = {SITE_COLUMNS},
	[ROOFLINE_REGION] = {{"region", "Region", 0}, {"source", "Source", 0},
		{"around", "Inside", 0}},
	[ROOFLINE_THREAD] = {{"comm", "Thread", 0}, {"pid", "PID", 0}, {"tid", "TID", 0}},
};

static const struct answer_column figure_columns[] = {
	{"entries", "Calls", MPERF__UNIT__UNIT_COUNT},
	{"iterations", "Iterations", MPERF__UNIT__UNIT_COUNT},
	{"time_ns", "Time", MPERF__UNIT__UNIT_NS},
	{"share", "Share", MPERF__UNIT__UNIT_SHARE},
	{"clock", "Time is", 0},
	{"time_self_ns", "Own time", MPERF__UNIT__UNIT_NS},
	{"ipc", "IPC", MPERF__UNIT__UNIT_RATIO},
	{"ipc_share", "IPC covers", MPERF__UNIT__UNIT_SHARE},
	{"gops", NULL, MPERF__UNIT__UNIT_RATIO},
	{"gbytes", "GB/s", MPERF__UNIT__UNIT_RATIO},
	{"gbytes_corrected", "Corrected", MPERF__UNIT__UNIT_RATIO},
	{"gbytes_read", "Read GB/s", MPERF__UNIT__UNIT_RATIO},
	{"gbytes_written", "Written", MPERF__UNIT__UNIT_RATIO},
	{"gbytes_read_corrected", "Read, corr.", MPERF__UNIT__UNIT_RATIO},
	{"gbytes_written_corrected", "Written, corr.", MPERF__UNIT__UNIT_RATIO},
	{"ops_per_byte", NULL, MPERF__UNIT__UNIT_RATIO},
	{"lanes", "Lanes active", MPERF__UNIT__UNIT_SHARE},
	{"cost", "Counting", MPERF__UNIT__UNIT_SHARE},
	{"error", "Error", MPERF__UNIT__UNIT_SHARE},
	{"ops", "Operations", MPERF__UNIT__UNIT_COUNT},
	{"ops_self", "Own operations", MPERF__UNIT__UNIT_COUNT},
	{"bytes_loaded", "Loaded", MPERF__UNIT__UNIT_BYTES},
	{"bytes_stored", "Stored", MPERF__UNIT__UNIT_BYTES},
	{"bytes_self", "Own bytes", MPERF__UNIT__UNIT_BYTES},
	{"bytes_stack", "Of locals", MPERF__UNIT__UNIT_BYTES},
	{"bytes_modelled", "Modelled", MPERF__UNIT__UNIT_BYTES},
	{"loads", "Loads", MPERF__UNIT__UNIT_COUNT},
	{"stores", "Stores", MPERF__UNIT__UNIT_COUNT},
	{"fp16_ops", "Half", MPERF__UNIT__UNIT_COUNT},
	{"fp32_ops", "Single", MPERF__UNIT__UNIT_COUNT},
	{"fp64_ops", "Double", MPERF__UNIT__UNIT_COUNT},
	{"fp_wide_ops", "Wide", MPERF__UNIT__UNIT_COUNT},
	{"int_ops", "Integer", MPERF__UNIT__UNIT_COUNT},
	{"branches", "Branches", MPERF__UNIT__UNIT_COUNT},
	{"instructions", "Instructions", MPERF__UNIT__UNIT_COUNT},
	{"updates", "Updates", MPERF__UNIT__UNIT_COUNT},
	{"samples", "Samples", MPERF__UNIT__UNIT_COUNT},
	{"counted_entries", "Counted calls", MPERF__UNIT__UNIT_COUNT},
	{"sampling_error", "By chance", MPERF__UNIT__UNIT_SHARE},
	{"unseen", "Not seen", 0},
	/* the same, without the loops inside */
	{"share_self", "Share", MPERF__UNIT__UNIT_SHARE},
	{"clock_self", "Time is", 0},
	{"gops_self", NULL, MPERF__UNIT__UNIT_RATIO},
	{"gbytes_self", "GB/s", MPERF__UNIT__UNIT_RATIO},
	{"ops_per_byte_self", NULL, MPERF__UNIT__UNIT_RATIO},
	{"error_self", "Error", MPERF__UNIT__UNIT_SHARE},
	{"depth", "Depth", MPERF__UNIT__UNIT_COUNT},
	{"kind", "Kind", 0},
};
#define N_FIGURES (sizeof(figure_columns) / sizeof(*figure_columns))

/* --- what was granted ------------------------------------------------------------------------- */

/* A column for each event of regions, and what follows of it. */
#define PER_INSTRUCTIONS 1000.0

static const char *granted_name(const struct roofline *r, unsigned i)
{
	return text_of(&r->facts.texts, r->facts.granted[i]);
}

/* Its place, or -1. */
static int granted_find(const struct roofline *r, const char *wanted)
{
	for (unsigned i = 0; i < r->facts.n_granted; i++)
		if (granted_is(granted_name(r, i), wanted))
			return (int)i;
	return -1;
}

static bool has_rate(const struct roofline *r, unsigned i)
{
	int instructions = granted_find(r, "instructions");
	return instructions >= 0 && instructions != (int)i;
}

#define EVENT_COLUMN "event_" /* before their names, of which one may be that of a count of ours */
struct granted_names {
	char name[MPERF_GRANTS_MAX][LOOP_GRANTED_BYTES + 16];
	char rate[MPERF_GRANTS_MAX][LOOP_GRANTED_BYTES + 16];
	char title[MPERF_GRANTS_MAX][LOOP_GRANTED_BYTES + 16];
	char error[MPERF_GRANTS_MAX][LOOP_GRANTED_BYTES + 16];
};

static size_t granted_columns(
	const struct roofline *r, struct granted_names *names, struct answer_column *c)
{
	size_t n = 0;
	if (r->any_measured_in_part)
		c[n++] = (struct answer_column){
			"measured_entries", "Measured", MPERF__UNIT__UNIT_COUNT};
	if (r->q.by != ROOFLINE_REGION || r->facts.n_granted == 0)
		return n;
	c[n++] = (struct answer_column){"granted_ns", "Counted for", MPERF__UNIT__UNIT_NS};
	for (unsigned i = 0; i < r->facts.n_granted; i++) {
		const char *name = granted_name(r, i);
		snprintf(names->name[i], sizeof(names->name[i]), EVENT_COLUMN "%.63s", name);
		c[n++] = (struct answer_column){names->name[i], name, MPERF__UNIT__UNIT_COUNT};
		snprintf(
			names->error[i], sizeof(names->error[i]), EVENT_COLUMN "%.47s_error", name);
		if (r->any_measured_in_part)
			c[n++] = (struct answer_column){
				names->error[i], "Error", MPERF__UNIT__UNIT_SHARE};
		if (!has_rate(r, i))
			continue;
		snprintf(names->rate[i], sizeof(names->rate[i]), EVENT_COLUMN "%.47s_per_1000",
			name);
		snprintf(names->title[i], sizeof(names->title[i]), "/ 1000 instr.");
		c[n++] = (struct answer_column){
			names->rate[i], names->title[i], MPERF__UNIT__UNIT_RATIO};
	}
	if (r->has_dram) {
		c[n++] =
			(struct answer_column){"dram_gbytes", "DRAM GB/s", MPERF__UNIT__UNIT_RATIO};
		c[n++] = (struct answer_column){"ops_per_dram_byte", NULL, MPERF__UNIT__UNIT_RATIO};
	}
	return n;
}

/* A granted event's count; negative: it was not counted, or cannot be. */
static double granted_count(const struct roofline *r, const struct roof_row *from, int i)
{
	const double *value = r->total[from->group].value;
	bool known = i >= 0 && value[LOOP_GRANTED_NS] > 0 && !(from->doubted & 1u << i);
	return known ? value[LOOP_GRANTED + i] : -1;
}

static double ratio(double part, double whole, double factor)
{
	return part >= 0 && whole > 0 ? factor * part / whole : -1;
}

/* Where 1 in N entries is measured: how many were; all, if the region told nothing of it. */
static void put_measured(struct row *row, const struct roofline *r, const struct roof_row *from)
{
	const double *v = r->total[from->group].value;
	if (r->any_measured_in_part)
		put_count(row, v[LOOP_REPRESENTED] > 0 ? v[LOOP_TIMED_ENTRIES] : v[LOOP_ENTRIES]);
}

static void put_granted_error(
	struct row *row, const struct roofline *r, const struct roof_row *from, unsigned i)
{
	const double *v = r->total[from->group].value;
	if (r->any_measured_in_part)
		put_real(row, roof_variance_error(v[LOOP_GRANTED_VARIANCE + i],
				      granted_count(r, from, (int)i)));
}

static void put_granted(struct row *row, const struct roofline *r, const struct roof_row *from)
{
	double ns = r->total[from->group].value[LOOP_GRANTED_NS];
	double instructions = granted_count(r, from, granted_find(r, "instructions"));
	double counts[MPERF_GRANTS_MAX] = {-1, -1, -1, -1};
	put_measured(row, r, from);
	if (r->q.by != ROOFLINE_REGION || r->facts.n_granted == 0)
		return;
	put_known(row, ns > 0 ? ns : -1);
	for (unsigned i = 0; i < r->facts.n_granted; i++) {
		double count = counts[i] = granted_count(r, from, (int)i);
		put_known(row, count);
		put_granted_error(row, r, from, i);
		if (has_rate(r, i))
			put_real(row, ratio(count, instructions, PER_INSTRUCTIONS));
	}
	if (!r->has_dram)
		return;
	/* operations are of all entries, misses of those with counters: their rates are compared */
	double bytes_per_ns = ratio(dram_bytes(&r->facts, &r->dram, counts), ns, 1);
	put_real(row, bytes_per_ns);
	put_real(row, ratio(from->total.ops_per_ns, bytes_per_ns, 1));
}

static int tell_columns(const struct roofline *r, const struct answer *answer)
{
	static const char *const rate[] = {"GFLOP/s", "GIOP/s", "SP GFLOP/s", "DP GFLOP/s"};
	static const char *const per_byte[] = {"FLOP/B", "IOP/B", "FLOP/B", "FLOP/B"};
	static const char *const per_dram_byte[] = {
		"FLOP/DRAM B", "IOP/DRAM B", "FLOP/DRAM B", "FLOP/DRAM B"};
	struct answer_column c[COLUMNS_MAX];
	struct granted_names names;
	size_t n = 0;
	for (const struct answer_column *key = key_columns[r->q.by]; key->name; key++)
		c[n++] = *key;
	for (size_t i = 0; i < N_FIGURES; i++) {
		c[n] = figure_columns[i];
		if (!c[n].title)
			c[n].title = strncmp(c[n].name, "gops", strlen("gops")) == 0
					     ? rate[r->q.ops]
					     : per_byte[r->q.ops];
		n++;
	}
	size_t first = n;
	n += granted_columns(r, &names, c + n);
	for (size_t i = first; i < n; i++)
		c[i].title = c[i].title ? c[i].title : per_dram_byte[r->q.ops];
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
	put_text(row, s->parent ? text_of(&f->texts, f->site[s->parent - 1].subprogram) : NULL);
}

static void put_key(struct row *row, const struct roofline *r, uint32_t group)
{
	const struct loop_facts *f = &r->facts;
	if (r->q.by == ROOFLINE_REGION) {
		put_region(row, f, &f->site[group]);
	} else if (r->q.by != ROOFLINE_THREAD) {
		put_site(row, f, &f->site[group]);
	} else {
		put_text(row, text_of(&f->texts, f->who[group].comm));
		int32_t pid = f->who[group].pid; /* 0: of a file, which tells none */
		put_known(row, pid > 0 ? pid : -1);
		put_count(row, f->who[group].tid);
	}
}

/* --- figures ---------------------------------------------------------------------------------- */

static bool is_scarce(struct roof_share share)
{
	return share.counted >= 0 && share.counted <= 1 && share.counted < share.entries;
}

/* Calls of what is not counted: by name, or as old tables have them. */
static size_t put_callees(const struct roofline *r, uint32_t group, char *text, size_t n)
{
	double external = r->total[group].value[LOOP_EXTERNAL_CALLS];
	size_t length = roofline_callees(r, group, text, n);
	if (length == 0 && external > 0)
		length = (size_t)snprintf(
			text, n, "%lld external calls", (long long)integer_of(external));
	return length;
}

/* What could not be seen: calls, assembly, and entries that did not count and should have. */
static const char *unseen_text(
	struct row *row, const struct roofline *r, const struct roof_row *from)
{
	char *text = new_text(row);
	uint32_t group = from->group;
	const struct roof_sums *s = &r->total[group];
	char calls[CALLEES_BYTES];
	bool assembly =
		r->q.by != ROOFLINE_THREAD && r->facts.site[group].flags & MPERF_SCOPE_ASSEMBLY;
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

/* Where all entries counted, there is no error. */
static void put_share(struct row *row, const struct roofline *r, uint32_t group)
{
	struct roof_share share = roof_share_of(r, group);
	if (share.entries <= 0) {
		put(row, (struct answer_value){.kind = ANSWER_ABSENT});
		put(row, (struct answer_value){.kind = ANSWER_ABSENT});
		return;
	}
	put_count(row, share.counted);
	put_real(row, share.counted > 0 ? loop_share_error(share.entries, share.counted) : -1);
}

static void put_counts(struct row *row, const struct roof_sums *t, const struct roof_sums *own)
{
	static const uint8_t metrics[] = {LOOP_LOADS, LOOP_STORES, LOOP_FP16_OPS, LOOP_FP32_OPS,
		LOOP_FP64_OPS, LOOP_FP_WIDE_OPS, LOOP_INT_OPS, LOOP_BRANCHES, LOOP_INSTRUCTIONS,
		LOOP_UPDATES};
	put_counted(row, t->value[LOOP_BYTES_LOADED]);
	put_counted(row, t->value[LOOP_BYTES_STORED]);
	put_counted(row, own->value[LOOP_BYTES_LOADED] + own->value[LOOP_BYTES_STORED]);
	put_counted(row, t->value[LOOP_STACK_BYTES_LOADED] + t->value[LOOP_STACK_BYTES_STORED]);
	put_counted(row, t->modelled_bytes);
	for (size_t i = 0; i < sizeof(metrics); i++)
		put_counted(row, t->value[metrics[i]]);
}

/* Of samples' counts; of a region, of what it was granted. */
static double ipc_of(const struct roofline *r, const struct roof_row *from)
{
	const struct roof_sums *s = &r->total[from->group];
	if (r->q.by == ROOFLINE_REGION)
		return ratio(granted_count(r, from, granted_find(r, "instructions")),
			granted_count(r, from, granted_find(r, "cycles")), 1);
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

static void put_time_share(struct row *row, const struct roofline *r, double ns)
{
	put_real(row, r->whole_ns > 0 ? ns / r->whole_ns : -1);
}

static void put_own(struct row *row, const struct roofline *r, const struct roof_row *from)
{
	const struct roof_figures *f = &from->self;
	put_time_share(row, r, from->self_ns);
	put_text(row, clocks[f->clock]);
	put_real(row, f->ops_per_ns);
	put_real(row, f->bytes_per_ns);
	put_real(row, f->ops_per_byte);
	put_real(row, f->error);
	put_count(row, from->depth);
	put_text(row, kinds[roofline_is_copy(r, from->group) ? ROOFLINE_COPY : r->q.by]);
}

/* The share of samples that this IPC is of; absent where all have counts. */
static double ipc_share_of(const struct roofline *r, const struct roof_sums *s)
{
	if (r->q.by == ROOFLINE_REGION || s->samples == 0 || r->facts.provenance.uncounted == 0)
		return -1;
	return 1 - (double)s->uncounted / (double)s->samples;
}

static int tell_row(
	const struct roofline *r, const struct roof_row *from, const struct answer *answer)
{
	struct row row = {.n = 0};
	const struct roof_figures *f = &from->total;
	const struct roof_sums *t = &r->total[from->group], *own = &r->self[from->group];
	struct roof_share share = roof_share_of(r, from->group);
	row.is_uncounted = share.counted == 0 && share.entries > 0;
	put_key(&row, r, from->group);
	put_count(&row, t->value[LOOP_ENTRIES]);
	if (r->q.by == ROOFLINE_LOOP || r->q.by == ROOFLINE_THREAD)
		put_counted(&row, t->value[LOOP_ITERATIONS]);
	else
		put(&row, (struct answer_value){.kind = ANSWER_ABSENT});
	put_known(&row, f->time_ns);
	put_time_share(&row, r, f->time_ns);
	put_text(&row, clocks[f->clock]);
	put_known(&row, from->self_ns);
	put_real(&row, ipc_of(r, from));
	put_real(&row, ipc_share_of(r, t));
	put_real(&row, f->ops_per_ns);
	put_real(&row, f->bytes_per_ns);
	put_real(&row, f->bytes_per_ns_corrected);
	put_real(&row, f->loaded_per_ns);
	put_real(&row, f->stored_per_ns);
	put_real(&row, f->loaded_per_ns_corrected);
	put_real(&row, f->stored_per_ns_corrected);
	put_real(&row, f->ops_per_byte);
	put_real(&row, f->lanes);
	put_real(&row, f->cost);
	put_real(&row, f->error);
	put_known(&row, f->ops);
	put_counted(&row, roof_ops(own, r->q.ops));
	put_counts(&row, t, own);
	put_count(&row, (double)t->samples);
	put_share(&row, r, from->group);
	put_text(&row, unseen_text(&row, r, from));
	put_own(&row, r, from);
	put_granted(&row, r, from);
	return answer->row(answer->userdata, row.value, row.n);
}

int roofline_tell(struct roofline *r, const struct answer *answer)
{
	int outcome = tell_columns(r, answer);
	for (uint32_t i = 0; i < r->n_rows && outcome == 0; i++)
		outcome = tell_row(r, &r->row[i], answer);
	if (outcome != 0)
		return outcome;
	roofline_note(r);
	return provenance_tell(&r->facts.provenance, &r->facts.texts, answer);
}
