/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Unprocessed facts, in the order of time. An epoch is a stretch of CLOCK_REALTIME. The counts of a
 * window belong to the epoch in which the window began, so if epochs are shorter than windows, some
 * are empty. The bandwidth of a thread is computed over the time for which its counts gathered.
 */
#include "daemon/query/loops/blocks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/cells.h"
#include "daemon/query/loops/dram.h"
#include "proto/base/memory.h"

struct blocks {
	struct blocks_question q;
	struct loop_facts facts;
	uint32_t *order; /* of facts */
	uint32_t n;
};

/* One thread in one epoch. Bytes from memory are counted in regions alone, for dram_ns. */
struct series_row {
	double loaded, stored, ops, span_ns, dram, dram_ns;
	bool has_no_rate;
};

static double both(const struct fact *f, enum loop_metric metric)
{
	return (double)f->value[LOOP_VALUE(metric, false)] +
	       (double)f->value[LOOP_VALUE(metric, true)];
}

static double fp_ops(const struct fact *f)
{
	return both(f, LOOP_FP16_OPS) + both(f, LOOP_FP32_OPS) + both(f, LOOP_FP64_OPS) +
	       both(f, LOOP_FP_WIDE_OPS);
}

/* Time, then region, thread, site. */
static int compare(const void *a, const void *b, void *userdata)
{
	const struct loop_facts *f = userdata;
	const uint64_t *x = f->table.keys.key[*(const uint32_t *)a].part;
	const uint64_t *y = f->table.keys.key[*(const uint32_t *)b].part;
	static const int order[] = {3, 1, 2, 0};
	for (int i = 0; i < 4; i++)
		if (x[order[i]] != y[order[i]])
			return x[order[i]] < y[order[i]] ? -1 : 1;
	return 0;
}

static int sort(struct blocks *b)
{
	const struct loop_facts *f = &b->facts;
	b->order = calloc((size_t)f->table.keys.n_keys + 1, sizeof(*b->order));
	if (!b->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->table.keys.n_keys; i++)
		if (f->table.keys.key[i].part[1] != FACT_ANY_REGION)
			b->order[b->n++] = i;
	qsort_r(b->order, b->n, sizeof(*b->order), compare, &b->facts);
	return 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

#define TEXT_BYTES 600

/* Seconds since 1970, to the millisecond; absent if all time is one epoch. */
static struct answer_value epoch(uint64_t epoch_ns)
{
	return cell_ratio(epoch_ns ? (double)(epoch_ns / 1000000u) / 1e3 : NAN);
}

static const struct fact_who *who_of(const struct loop_facts *f, uint64_t who)
{
	static const struct fact_who nobody = {0};
	return who ? &f->whos.who[who - 1] : &nobody;
}

static const char *kind_text(uint8_t kind)
{
	static const char *const names[] = {"", "loop", "function", "region", "block", "callee"};
	return kind < sizeof(names) / sizeof(*names) ? names[kind] : "";
}

#define SUM(metric) integer_of(both(&f->table.fact[i], LOOP_##metric))
#define BLOCK_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(time, "Time", cell, epoch(key[3]))                                                  \
	COLUMN(region, "Region", text, known_text(region))                                         \
	COLUMN(comm, "Thread", text, known_text(text_of(&f->texts, who->comm)))                    \
	KNOWN_IF(pid, "PID", number, who->pid > 0, who->pid)                                       \
	KNOWN_IF(tid, "TID", number, who->tid > 0, who->tid)                                       \
	COLUMN(kind, "Kind", text, known_text(kind_text(site->kind)))                              \
	COLUMN(function, "Function", text, known_text(text_of(&f->texts, site->readable)))         \
	COLUMN(source, "Source", text, known_text(place))                                          \
	COLUMN(nest, "Nest", text, known_text(text_of(&f->texts, site->nest)))                     \
	COLUMN(entries, "Entries", count, SUM(ENTRIES))                                            \
	COLUMN(iterations, "Iterations", count, SUM(ITERATIONS))                                   \
	COLUMN(instructions, "Instructions", count, SUM(INSTRUCTIONS))                             \
	COLUMN(int_ops, "Integer", count, SUM(INT_OPS))                                            \
	COLUMN(fp16_ops, "Half", count, SUM(FP16_OPS))                                             \
	COLUMN(fp32_ops, "Single", count, SUM(FP32_OPS))                                           \
	COLUMN(fp64_ops, "Double", count, SUM(FP64_OPS))                                           \
	COLUMN(fp_wide_ops, "Wide", count, SUM(FP_WIDE_OPS))                                       \
	COLUMN(branches, "Branches", count, SUM(BRANCHES))                                         \
	COLUMN(calls, "Calls", count, SUM(CALLS))                                                  \
	COLUMN(external_calls, "External calls", count, SUM(EXTERNAL_CALLS))                       \
	COLUMN(loads, "Loads", count, SUM(LOADS))                                                  \
	COLUMN(stores, "Stores", count, SUM(STORES))                                               \
	COLUMN(bytes_loaded, "Loaded", bytes, SUM(BYTES_LOADED))                                   \
	COLUMN(bytes_stored, "Stored", bytes, SUM(BYTES_STORED))                                   \
	COLUMN(updates, "Updates", count, SUM(UPDATES))                                            \
	COLUMN(time_ns, "Time taken", ns, SUM(TIME_NS))                                            \
	COLUMN(span_ns, "Of", ns, SUM(SPAN_NS))

static int tell_block(const struct blocks *b, uint32_t i, const struct answer *answer)
{
	const struct loop_facts *f = &b->facts;
	const uint64_t *key = f->table.keys.key[i].part;
	const struct fact_site *site = &f->sites.site[key[0] - 1];
	const struct fact_who *who = who_of(f, key[2]);
	const char *region =
		key[1] ? text_of(&f->texts, f->sites.site[key[1] - 1].subprogram) : NULL;
	const char *source = text_of(&f->texts, site->source);
	char place[TEXT_BYTES];
	snprintf(place, sizeof(place), site->line ? "%.500s:%u" : "%.500s", source ? source : "",
		site->line);
	return TABLE_ROW(answer, BLOCK_TABLE);
}

static int tell_blocks(const struct blocks *b, const struct answer *answer)
{
	int r = TABLE_BEGIN(answer, NULL, BLOCK_TABLE);
	uint32_t n = b->q.limit && b->q.limit < b->n ? b->q.limit : b->n;
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = tell_block(b, b->order[i], answer);
	return r;
}

/* --- the series ------------------------------------------------------------------------------- */

#define SERIES_TABLE(COLUMN, KNOWN_IF)                                                             \
	COLUMN(time, "Time", cell, epoch(key[3]))                                                  \
	COLUMN(comm, "Thread", text, known_text(text_of(&f->texts, who->comm)))                    \
	KNOWN_IF(pid, "PID", number, who->pid > 0, who->pid)                                       \
	KNOWN_IF(tid, "TID", number, who->tid > 0, who->tid)                                       \
	COLUMN(loaded, "Loaded GB/s", ratio, ratio_of(s->loaded, rate_ns))                         \
	COLUMN(stored, "Stored GB/s", ratio, ratio_of(s->stored, rate_ns))                         \
	COLUMN(gflops, "GFLOP/s", ratio, ratio_of(s->ops, rate_ns))                                \
	COLUMN(bytes_loaded, "Loaded", bytes, integer_of(s->loaded))                               \
	COLUMN(bytes_stored, "Stored", bytes, integer_of(s->stored))                               \
	COLUMN(span_ns, "Of", ns, integer_of(s->span_ns))                                          \
	KNOWN_IF(dram_bytes, "From memory", bytes, s->dram_ns > 0, integer_of(s->dram))            \
	KNOWN_IF(dram_ns, "Counted for", ns, s->dram_ns > 0, integer_of(s->dram_ns))

static int tell_series_row(const struct blocks *b, const uint64_t *key, const struct series_row *s,
	const struct answer *answer)
{
	const struct loop_facts *f = &b->facts;
	const struct fact_who *who = who_of(f, key[2]);
	const double rate_ns = s->has_no_rate ? 0 : s->span_ns;
	return TABLE_ROW(answer, SERIES_TABLE);
}

/* Add bytes from memory of outermost regions, whose counts include the regions inside them. */
static void add_dram(
	const struct loop_facts *f, uint32_t i, const struct dram *dram, struct series_row *s)
{
	const struct fact_site *site = &f->sites.site[f->table.keys.key[i].part[0] - 1];
	double count[MPERF_GRANTS_MAX];
	if (site->kind != LOOP_SITE_REGION || site->parent != 0)
		return;
	for (unsigned k = 0; k < MPERF_GRANTS_MAX; k++)
		count[k] = both(&f->table.fact[i], LOOP_GRANTED + k);
	const double bytes = dram_bytes(f, dram, count);
	s->dram += bytes > 0 ? bytes : 0;
	s->dram_ns += both(&f->table.fact[i], LOOP_GRANTED_NS);
}

static void add_to_series(const struct loop_facts *f, uint32_t i, struct series_row *s)
{
	const struct fact *fact = &f->table.fact[i];
	s->loaded += both(fact, LOOP_BYTES_LOADED);
	s->stored += both(fact, LOOP_BYTES_STORED);
	s->ops += fp_ops(fact);
	/* skip regions themselves: their time is their thread's time again */
	const char *name =
		text_of(&f->texts, f->sites.site[f->table.keys.key[i].part[0] - 1].subprogram);
	if (!name || !*name)
		s->span_ns += both(fact, LOOP_SPAN_NS);
}

/* Too few entries or iterations: one more or less changes a rate by more than a tenth. */
#define FEW 10
#define SMALL_SHARE 0.1 /* of an epoch's time and bytes: changes a rate by at most this much */

/* The counts of a nest of loops in an epoch. */
struct nest {
	double inside, bytes; /* instructions of the loops inside it; bytes of all */
	double instructions;  /* of all */
};

static bool is_inside(const struct loop_facts *f, uint32_t site, uint32_t loop)
{
	for (uint32_t i = f->sites.site[site].parent; i != 0; i = f->sites.site[i - 1].parent)
		if (i - 1 == loop)
			return true;
	return false;
}

static struct nest nest_of(const struct blocks *b, uint32_t first, uint32_t end, uint32_t loop)
{
	const struct loop_facts *f = &b->facts;
	struct nest nest = {0};
	for (uint32_t i = first; i < end; i++) {
		const uint32_t site = (uint32_t)f->table.keys.key[b->order[i]].part[0] - 1;
		const struct fact *fact = &f->table.fact[b->order[i]];
		if (site != loop && !is_inside(f, site, loop))
			continue;
		nest.bytes += both(fact, LOOP_BYTES_LOADED) + both(fact, LOOP_BYTES_STORED);
		nest.instructions += both(fact, LOOP_INSTRUCTIONS);
		nest.inside += site != loop ? both(fact, LOOP_INSTRUCTIONS) : 0;
	}
	return nest;
}

/* Does this loop take time in the epoch before, or after? */
static bool goes_on(const struct blocks *b, const struct key *key)
{
	struct key beside = *key;
	for (int i = 0; i < 2 && b->q.every_ns; i++) {
		beside.part[3] = i ? key->part[3] + b->q.every_ns : key->part[3] - b->q.every_ns;
		const uint32_t at = key_find(&b->facts.table.keys, &beside);
		if (at != KEY_NONE && both(&b->facts.table.fact[at], LOOP_TIME_NS) > 0)
			return true;
	}
	return false;
}

/* A loop that runs across an end of the epoch and adds all its counts at once: the counts may belong to
 * another epoch, so this epoch has no rate. Entries are added when they end. */
static bool has_crossed(
	const struct blocks *b, uint32_t first, uint32_t end, const struct series_row *s)
{
	const struct loop_facts *f = &b->facts;
	for (uint32_t i = first; i < end; i++) {
		const struct key *key = &f->table.keys.key[b->order[i]];
		const struct fact *fact = &f->table.fact[b->order[i]];
		const double time = both(fact, LOOP_TIME_NS), entries = both(fact, LOOP_ENTRIES);
		if (!(f->sites.site[key->part[0] - 1].flags & MPERF_SCOPE_HOISTED) || time <= 0 ||
			entries >= FEW)
			continue;
		const struct nest nest = nest_of(b, first, end, (uint32_t)key->part[0] - 1);
		if ((nest.inside > 0 && both(fact, LOOP_ITERATIONS) >= FEW) ||
			(time <= SMALL_SHARE * s->span_ns &&
				nest.bytes <= SMALL_SHARE * (s->loaded + s->stored)))
			continue;
		if (entries == 0 || both(fact, LOOP_TIMED_ENTRIES) == 0 || nest.instructions == 0 ||
			(time >= (1 - SMALL_SHARE) * s->span_ns && goes_on(b, key)))
			return true;
	}
	return false;
}

static int tell_series(struct blocks *b, const struct answer *answer)
{
	const struct loop_facts *f = &b->facts;
	int r = TABLE_BEGIN(answer, NULL, SERIES_TABLE);
	uint32_t n_rows = 0;
	struct dram dram;
	bool has_dram = dram_find(f, b->q.cores, &dram);
	for (uint32_t i = 0; i < b->n && r == 0 && (!b->q.limit || n_rows < b->q.limit); n_rows++) {
		const uint64_t *key = f->table.keys.key[b->order[i]].part;
		struct series_row s = {0};
		uint32_t first = i;
		for (; i < b->n; i++) {
			const uint64_t *next = f->table.keys.key[b->order[i]].part;
			if (next[3] != key[3] || next[2] != key[2])
				break;
			add_to_series(f, b->order[i], &s);
			if (has_dram)
				add_dram(f, b->order[i], &dram, &s);
		}
		s.has_no_rate = has_crossed(b, first, i, &s);
		r = tell_series_row(b, f->table.keys.key[b->order[first]].part, &s, answer);
	}
	return r;
}

/* ---------------------------------------------------------------------------------------------- */

static void blocks_free(struct blocks *b)
{
	loop_facts_clear(&b->facts);
	free(b->order);
	free(b);
}
DEFINE_CLEANUP(struct blocks *, blocks_free)

static struct blocks *blocks_new(const struct blocks_question *question)
{
	struct blocks *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->q = *question;
	const struct facts_question wish = {.filter = question->filter,
		.by_thread = true,
		.by_region = !question->series,
		.epoch_ns = question->every_ns};
	loop_facts_begin(&b->facts, &wish, QUERY_BY_THREAD);
	return b;
}

static int tell(struct blocks *b, const struct answer *answer)
{
	loop_facts_scale(&b->facts);
	int r = sort(b);
	if (r == 0)
		r = b->q.series ? tell_series(b, answer) : tell_blocks(b, answer);
	return r == 0 ? provenance_tell(&b->facts.provenance, &b->facts.texts, answer) : r;
}

int query_blocks(struct query_source *source, size_t n_sources,
	const struct blocks_question *question, const struct answer *answer,
	struct query_error *ret_error)
{
	_cleanup_(blocks_freep) struct blocks *b = blocks_new(question);
	if (!b)
		return -ENOMEM;
	int outcome = loop_facts_read(&b->facts, source, n_sources, ret_error);
	return outcome == 0 ? tell(b, answer) : outcome;
}
