/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Sums become rows: sorted, cut to the limit, and given to the answer one by one, so that however
 * many there are, only the sums themselves take memory. A figure that was not counted is absent,
 * not zero.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/answer/row.h"
#include "daemon/query/samples/hotspots.h"
#include "daemon/query/samples/hotspots_metrics.h"

#define COLUMNS_MAX (16 + 2 * QUERY_METRICS_MAX)

/* Are there counts that do not cover all samples? Then each row has the share that they cover. */
static bool tells_counted(const struct hotspots *h)
{
	bool any = h->cycles || h->instructions || h->metrics || h->of_event;
	return any && h->provenance.uncounted > 0;
}

static const char *text(const struct hotspots *h, uint64_t id)
{
	return text_of(&h->texts, (uint32_t)id);
}

static int64_t capped(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/* NAN: the whole is 0. */
static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

/* --- keys -------------------------------------------------------------------------------------
 *
 * part: as hotspots_key.c packs it. Programs have neither pid nor tid. A task that the segment does not know has pid
 * 0, which is the idle task's and never sampled as such by a clock; it stays without a name.
 */

#define FUNCTION_PART(COLUMN, KNOWN_IF)                                                            \
	COLUMN(function, "Function", text, text(h, part[0]))                                       \
	COLUMN(module, "Module", text, text(h, part[1]))
#define OF_PROCESS_PART(COLUMN, KNOWN_IF) COLUMN(process, "Process", text, text(h, spot->name[0]))
#define MODULE_PART(COLUMN, KNOWN_IF) COLUMN(module, "Module", text, text(h, part[0]))
#define PROCESS_PART(COLUMN, KNOWN_IF)                                                             \
	COLUMN(comm, "Process", text, text(h, spot->name[0]))                                      \
	KNOWN_IF(pid, "PID", number, part[0] != HOTSPOT_PROGRAM, (int32_t)part[1])                 \
	COLUMN(argv, "Arguments", text, text(h, spot->name[1]))
#define THREAD_PART(COLUMN, KNOWN_IF)                                                              \
	COLUMN(comm, "Thread", text, text(h, spot->name[0]))                                       \
	KNOWN_IF(pid, "PID", number, part[0] != HOTSPOT_PROGRAM, (int32_t)part[1])                 \
	KNOWN_IF(tid, "TID", number, part[0] != HOTSPOT_PROGRAM, (int32_t)(part[1] >> 32))
#define COMM_PART(COLUMN, KNOWN_IF) COLUMN(comm, "Name", text, text(h, part[0]))
#define CGROUP_PART(COLUMN, KNOWN_IF) COLUMN(cgroup, "Control group", text, text(h, part[0]))
#define JOB_PART(COLUMN, KNOWN_IF)                                                                 \
	COLUMN(job, "Job", text, text(h, part[0]))                                                 \
	KNOWN_IF(uid, "User", number, part[1] != UINT64_MAX, capped(part[1]))
#define LINE_PART(COLUMN, KNOWN_IF)                                                                \
	COLUMN(function, "Function", text, text(h, part[0]))                                       \
	COLUMN(source, "Source", text, text(h, part[1]))                                           \
	KNOWN_IF(line, "Line", number, (uint32_t)part[2], (uint32_t)part[2])                       \
	COLUMN(module, "Module", text, text(h, part[3]))
#define HART_PART(COLUMN, KNOWN_IF)                                                                \
	KNOWN_IF(hart, "Hart", number, part[0] != UINT64_MAX, capped(part[0]))                     \
	COLUMN(rung, "Sampled by", text, rung_says((enum rung)part[1]))
#define PARALLELISM_PART(COLUMN, KNOWN_IF)                                                         \
	KNOWN_IF(harts, "Harts at work", number, part[0] != 0, capped(part[0]))
#define ADDRESS_PART(COLUMN, KNOWN_IF)                                                             \
	COLUMN(function, "Function", text, text(h, part[0]))                                       \
	COLUMN(offset, "Offset", address, part[3])                                                 \
	COLUMN(source, "Source", text, text(h, part[1] >> 32))                                     \
	KNOWN_IF(line, "Line", number, (uint32_t)part[1], (uint32_t)part[1])                       \
	COLUMN(module, "Module", text, text(h, part[2]))                                           \
	COLUMN(build_id, "Build id", text, build_id(h, part[2] >> 32))

/* NULL: there is none. */
static const char *build_id(const struct hotspots *h, uint64_t id)
{
	const char *t = text(h, id);
	return t && *t ? t : NULL;
}

static void add_key(const struct hotspots *h, const uint64_t *part, const struct hotspot *spot,
	struct row_builder *b)
{
	switch (h->by) {
#define BY(id, ...)                                                                                \
	case QUERY_BY_##id:                                                                        \
		ROW_PART(b, id##_PART);                                                            \
		break;
#include "daemon/query/by.inc"
#undef BY
	case N_QUERY_BY:
		break;
	}
	if (h->with_process)
		ROW_PART(b, OF_PROCESS_PART);
}

/* --- figures ---------------------------------------------------------------------------------- */

#define SHARES_PART(COLUMN, KNOWN_IF)                                                              \
	COLUMN(self, "Self", share, ratio(spot->self, h->sum))                                     \
	COLUMN(total, "Total", share, ratio(spot->total, h->sum))                                  \
	COLUMN(samples, "Samples", count, capped(spot->samples))                                   \
	COLUMN(self_ns, "Time", ns, capped(spot->self_ns))
#define WALL_PART(COLUMN, KNOWN_IF)                                                                \
	COLUMN(wall_ns, "Wall time", ns, integer_of(spot->self))                                   \
	COLUMN(parallelism, "Parallelism", ratio, ratio((double)spot->self_ns, spot->self))
#define COUNT_PART(COLUMN, KNOWN_IF) COLUMN(count, "Count", count, integer_of(spot->self))
#define CYCLES_PART(COLUMN, KNOWN_IF)                                                              \
	KNOWN_IF(cycles, "Cycles", count, spot->has_cycles, integer_of(spot->cycles))
#define INSTRUCTIONS_PART(COLUMN, KNOWN_IF)                                                        \
	KNOWN_IF(instructions, "Instructions", count, spot->has_instructions,                      \
		integer_of(spot->instructions))
#define IPC_PART(COLUMN, KNOWN_IF)                                                                 \
	KNOWN_IF(ipc, "IPC", ratio, spot->has_cycles && spot->has_instructions,                    \
		ratio(spot->instructions, spot->cycles))
#define COUNTED_PART(COLUMN, KNOWN_IF)                                                             \
	COLUMN(counted, "Counted", share,                                                          \
		ratio((double)(spot->samples - spot->uncounted), (double)spot->samples))
#define NAMED_PART(COLUMN, KNOWN_IF)                                                               \
	COLUMN(named, "Named", share, ratio((double)spot->named, (double)spot->samples))           \
	COLUMN(placed, "Placed", share,                                                            \
		ratio((double)(spot->named + spot->placed), (double)spot->samples))                \
	COLUMN(unnamed, "Unnamed", share, ratio((double)spot->unnamed, (double)spot->samples))     \
	COLUMN(out_of_symbol, "Out of symbol", share,                                              \
		ratio((double)spot->out_of_symbol, (double)spot->samples))

static void add_metrics(const struct hotspots_metrics *m, uint32_t hot, struct row_builder *b)
{
	struct sums_value value[QUERY_METRICS_MAX];
	if (b->column)
		b->n += hotspots_metrics_columns(m, &b->column[b->n]);
	const size_t n = b->value ? hotspots_metrics_values(m, hot, value) : 0;
	for (size_t i = 0; i < n; i++) {
		b->value[b->n++] = cell_ratio(value[i].value);
		b->value[b->n++] = cell_ratio(value[i].error);
	}
}

/* The table's head, or a row. */
static int tell(
	const struct hotspots *h, uint32_t hot, struct row_builder b, const struct answer *to)
{
	const struct hotspot *spot = b.value ? &h->hotspot[hot] : NULL;
	add_key(h, b.value ? h->keys.key[hot].part : NULL, spot, &b);
	ROW_PART(&b, SHARES_PART);
	if (h->filter->wall)
		ROW_PART(&b, WALL_PART);
	if (h->of_other)
		ROW_PART(&b, COUNT_PART);
	if (h->cycles)
		ROW_PART(&b, CYCLES_PART);
	if (h->instructions)
		ROW_PART(&b, INSTRUCTIONS_PART);
	if (h->cycles && h->instructions)
		ROW_PART(&b, IPC_PART);
	if (h->metrics)
		add_metrics(h->metrics, hot, &b);
	if (tells_counted(h))
		ROW_PART(&b, COUNTED_PART);
	if (h->by == QUERY_BY_MODULE)
		ROW_PART(&b, NAMED_PART);
	return row_send(to, NULL, &b);
}

static int tell_head(const struct hotspots *h, const struct answer *to)
{
	struct answer_column column[COLUMNS_MAX];
	return tell(h, 0, (struct row_builder){.column = column}, to);
}

static int tell_row(const struct hotspots *h, uint32_t hot, const struct answer *to)
{
	struct answer_value value[COLUMNS_MAX];
	return tell(h, hot, (struct row_builder){.value = value}, to);
}

static bool is_empty(const struct hotspot *s)
{
	return s->samples == 0 && s->self == 0 && s->total == 0 && s->cycles == 0 &&
	       s->instructions == 0;
}

static int compare_texts(const struct hotspots *h, uint64_t a, uint64_t b)
{
	const char *x = text_of(&h->texts, (uint32_t)a), *y = text_of(&h->texts, (uint32_t)b);
	return strcmp(x ? x : "", y ? y : "");
}

/* Order by self, then total, largest first; equal rows by name, so that an answer is the same each
 * time. */
static int compare(const void *a, const void *b, void *userdata)
{
	const struct hotspots *h = userdata;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct hotspot *x = &h->hotspot[i], *y = &h->hotspot[j];
	if (!h->by_total && x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	int r = 0;
	if (query_by_kinds[h->by].by_text)
		r = compare_texts(h, h->keys.key[i].part[0], h->keys.key[j].part[0]);
	for (size_t k = 0; k < 4 && r == 0; k++) {
		uint64_t p = h->keys.key[i].part[k], q = h->keys.key[j].part[k];
		r = (p > q) - (p < q);
	}
	return r;
}

/* The keys in order, without empty ones: *ret_n. NULL without memory. */
static uint32_t *sort_keys(struct hotspots *h, uint32_t *ret_n)
{
	uint32_t n = 0, *order = calloc((size_t)h->keys.n_keys + 1, sizeof(*order));
	for (uint32_t i = 0; order && i < h->keys.n_keys; i++)
		if (!is_empty(&h->hotspot[i]))
			order[n++] = i;
	if (order)
		qsort_r(order, n, sizeof(*order), compare, h);
	*ret_n = n;
	return order;
}

int hotspots_tell(struct hotspots *h, uint32_t limit, const struct answer *answer)
{
	uint32_t n, *order = sort_keys(h, &n);
	if (!order)
		return -ENOMEM;
	if (limit != 0 && limit < n)
		n = limit;

	int r = tell_head(h, answer);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = tell_row(h, order[i], answer);
	free(order);
	return r;
}

/* --- sums ------------------------------------------------------------------------------------- */

static int tell_columns(const struct hotspots *h, const struct sums_reader *to)
{
	struct answer_column name[COLUMNS_MAX], metric[2 * QUERY_METRICS_MAX];
	struct sums_column value[QUERY_METRICS_MAX];
	struct row_builder head = {.column = name};
	const size_t n = h->metrics ? hotspots_metrics_columns(h->metrics, metric) / 2 : 0;
	for (size_t i = 0; i < n; i++)
		value[i] = (struct sums_column){metric[2 * i].name, metric[2 * i].title, false};
	add_key(h, NULL, NULL, &head);
	return to->columns(to->userdata, name, query_by_kinds[h->by].n_names, value, n);
}

/* NULL: the name does not depend on the build of its file. */
static const char *build_of(const struct hotspots *h, const struct key *key)
{
	const uint64_t build = h->by == QUERY_BY_FUNCTION ? key->part[2]
			       : h->by == QUERY_BY_LINE   ? key->part[2] >> 32
							  : 0;
	const char *id = build ? text(h, build - 1) : NULL;
	return build && !id ? "" : id;
}

static int tell_sums(const struct hotspots *h, uint32_t hot, const struct sums_reader *to)
{
	const struct hotspot *spot = &h->hotspot[hot];
	struct answer_value name[COLUMNS_MAX];
	struct sums_value value[QUERY_METRICS_MAX];
	struct row_builder b = {.value = name};
	if (h->metrics)
		(void)hotspots_metrics_values(h->metrics, hot, value);
	add_key(h, h->keys.key[hot].part, spot, &b);
	return to->row(to->userdata,
		&(struct sums){.name = name,
			.build = build_of(h, &h->keys.key[hot]),
			.samples = (double)capped(spot->samples),
			.ns = (double)capped(spot->self_ns),
			.cycles = spot->has_cycles ? (double)integer_of(spot->cycles) : -1,
			.instructions = spot->has_instructions
						? (double)integer_of(spot->instructions)
						: -1,
			.value = value});
}

int hotspots_tell_sums(struct hotspots *h, const struct sums_reader *to)
{
	uint32_t n, *order = sort_keys(h, &n);
	int r = order ? tell_columns(h, to) : -ENOMEM;
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = tell_sums(h, order[i], to);
	free(order);
	return r;
}
