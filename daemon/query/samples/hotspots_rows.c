/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Sums become rows: sorted, cut to the limit, and given to the answer one by one, so that however
 * many there are, only the sums themselves take memory. A figure that was not counted is absent,
 * not zero.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/samples/hotspots.h"
#include "daemon/query/samples/hotspots_metrics.h"

#define COLUMNS_MAX (16 + 2 * QUERY_METRICS_MAX)

static const char *const by_name[N_QUERY_BY] = {
	[QUERY_BY_FUNCTION] = "function",
	[QUERY_BY_MODULE] = "module",
	[QUERY_BY_PROCESS] = "process",
	[QUERY_BY_THREAD] = "thread",
	[QUERY_BY_CGROUP] = "cgroup",
	[QUERY_BY_JOB] = "job",
	[QUERY_BY_LINE] = "line",
	[QUERY_BY_HART] = "hart",
	[QUERY_BY_ADDRESS] = "address",
};

const char *query_by_name(enum query_by by)
{
	return by >= 0 && by < N_QUERY_BY ? by_name[by] : NULL;
}

int query_by_parse(const char *name)
{
	for (int i = 0; i < N_QUERY_BY; i++)
		if (strcmp(by_name[i], name) == 0)
			return i;
	return -1;
}

/* Key columns per question, ended by a NULL name. */
static const struct answer_column key_columns[N_QUERY_BY][7] = {
	[QUERY_BY_FUNCTION] = {{"function", "Function", 0}, {"module", "Module", 0}},
	[QUERY_BY_MODULE] = {{"module", "Module", 0}},
	[QUERY_BY_PROCESS] = {{"comm", "Process", 0}, {"pid", "PID", 0}, {"argv", "Arguments", 0}},
	[QUERY_BY_THREAD] = {{"comm", "Thread", 0}, {"pid", "PID", 0}, {"tid", "TID", 0}},
	[QUERY_BY_CGROUP] = {{"cgroup", "Control group", 0}},
	[QUERY_BY_JOB] = {{"job", "Job", 0}, {"uid", "User", 0}},
	[QUERY_BY_LINE] = {{"function", "Function", 0}, {"source", "Source", 0},
		{"line", "Line", 0}, {"module", "Module", 0}},
	[QUERY_BY_HART] = {{"hart", "Hart", 0}, {"rung", "Sampled by", 0}},
	[QUERY_BY_ADDRESS] = {{"function", "Function", 0},
		{"offset", "Offset", MPERF__UNIT__UNIT_ADDRESS}, {"source", "Source", 0},
		{"line", "Line", 0}, {"module", "Module", 0}, {"build_id", "Build id", 0}},
};

/* Are there counts that do not cover all samples? Then each row says how many they cover. */
static bool tells_counted(const struct hotspots *h)
{
	bool any = h->cycles || h->instructions || h->metrics || h->of_event;
	return any && h->provenance.uncounted > 0;
}

static int tell_columns(const struct hotspots *h, const struct answer *answer)
{
	struct answer_column c[COLUMNS_MAX];
	size_t n = 0;
	for (const struct answer_column *key = key_columns[h->by]; key->name; key++)
		c[n++] = *key;
	if (h->with_process)
		c[n++] = (struct answer_column){"process", "Process", 0};
	c[n++] = (struct answer_column){"self", "Self", MPERF__UNIT__UNIT_SHARE};
	c[n++] = (struct answer_column){"total", "Total", MPERF__UNIT__UNIT_SHARE};
	c[n++] = (struct answer_column){"samples", "Samples", MPERF__UNIT__UNIT_COUNT};
	c[n++] = (struct answer_column){"self_ns", "Time", MPERF__UNIT__UNIT_NS};
	if (h->of_other)
		c[n++] = (struct answer_column){"count", "Count", MPERF__UNIT__UNIT_COUNT};
	if (h->cycles)
		c[n++] = (struct answer_column){"cycles", "Cycles", MPERF__UNIT__UNIT_COUNT};
	if (h->instructions)
		c[n++] = (struct answer_column){
			"instructions", "Instructions", MPERF__UNIT__UNIT_COUNT};
	if (h->cycles && h->instructions)
		c[n++] = (struct answer_column){"ipc", "IPC", MPERF__UNIT__UNIT_RATIO};
	if (h->metrics)
		n += hotspots_metrics_columns(h->metrics, &c[n]);
	if (tells_counted(h))
		c[n++] = (struct answer_column){"counted", "Counted", MPERF__UNIT__UNIT_SHARE};
	if (h->by == QUERY_BY_MODULE) {
		c[n++] = (struct answer_column){"named", "Named", MPERF__UNIT__UNIT_SHARE};
		c[n++] = (struct answer_column){"unnamed", "Unnamed", MPERF__UNIT__UNIT_SHARE};
		c[n++] = (struct answer_column){
			"out_of_symbol", "Out of symbol", MPERF__UNIT__UNIT_SHARE};
	}
	return answer->columns(answer->userdata, c, n);
}

static struct answer_value absent(void)
{
	return (struct answer_value){.kind = ANSWER_ABSENT};
}

static struct answer_value text(const struct hotspots *h, uint64_t id)
{
	const char *t = text_of(&h->texts, (uint32_t)id);
	return t ? (struct answer_value){.kind = ANSWER_TEXT, .text = t} : absent();
}

static struct answer_value integer(int64_t n)
{
	return (struct answer_value){.kind = ANSWER_INTEGER, .integer = n};
}

static struct answer_value count(uint64_t n)
{
	return integer(n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

static struct answer_value ratio(double part, double whole)
{
	return whole > 0 ? (struct answer_value){.kind = ANSWER_REAL, .real = part / whole}
			 : absent();
}

/* Of a process or thread; programs have none. */
static struct answer_value pid(uint64_t boot, uint64_t n)
{
	return boot == HOTSPOT_PROGRAM ? absent() : integer((int32_t)n);
}

/* part: as address_key packs it */
static size_t address_values(const struct hotspots *h, const uint64_t *part, struct answer_value *v)
{
	const char *build_id = text_of(&h->texts, (uint32_t)(part[2] >> 32));
	v[0] = text(h, part[0]);
	v[1] = integer((int64_t)part[3]);
	v[2] = text(h, part[1] >> 32);
	v[3] = (uint32_t)part[1] ? count((uint32_t)part[1]) : absent();
	v[4] = text(h, (uint32_t)part[2]);
	v[5] = build_id && *build_id ? text(h, part[2] >> 32) : absent();
	return 6;
}

/* A task that the segment does not know has pid 0, which is the idle task's and never sampled as
 * such by a clock; it stays without a name. */
static size_t key_values(const struct hotspots *h, uint32_t hot, struct answer_value *v)
{
	const uint64_t *part = h->keys.key[hot].part;
	const struct hotspot *spot = &h->hotspot[hot];
	size_t n = 0;
	switch (h->by) {
	case QUERY_BY_LINE:
		v[n++] = text(h, part[0]);
		v[n++] = text(h, part[1]);
		v[n++] = part[2] ? count(part[2]) : absent();
		v[n++] = text(h, part[3]);
		break;
	case QUERY_BY_FUNCTION:
		v[n++] = text(h, part[0]);
		v[n++] = text(h, part[1]);
		if (h->with_process)
			v[n++] = text(h, spot->name[0]);
		break;
	case QUERY_BY_PROCESS:
		v[n++] = text(h, spot->name[0]);
		v[n++] = pid(part[0], part[1]);
		v[n++] = text(h, spot->name[1]);
		break;
	case QUERY_BY_THREAD:
		v[n++] = text(h, spot->name[0]);
		v[n++] = pid(part[0], part[1]);
		v[n++] = pid(part[0], part[1] >> 32);
		break;
	case QUERY_BY_HART:
		v[n++] = part[0] == UINT64_MAX ? absent() : count(part[0]);
		v[n++] = (struct answer_value){
			.kind = ANSWER_TEXT, .text = rung_says((enum rung)part[1])};
		break;
	case QUERY_BY_ADDRESS:
		return address_values(h, part, v);
	case QUERY_BY_JOB:
		v[n++] = text(h, part[0]);
		v[n++] = part[1] == UINT64_MAX ? absent() : count(part[1]);
		break;
	case QUERY_BY_MODULE:
	case QUERY_BY_CGROUP:
	default:
		v[n++] = text(h, part[0]);
		break;
	}
	return n;
}

static int tell_row(const struct hotspots *h, uint32_t hot, const struct answer *answer)
{
	struct answer_value v[COLUMNS_MAX];
	const struct hotspot *spot = &h->hotspot[hot];
	size_t n = key_values(h, hot, v);
	v[n++] = ratio(spot->self, h->sum);
	v[n++] = ratio(spot->total, h->sum);
	v[n++] = count(spot->samples);
	v[n++] = count(spot->self_ns);
	if (h->of_other)
		v[n++] = integer(integer_of(spot->self));
	if (h->cycles)
		v[n++] = spot->has_cycles ? integer(integer_of(spot->cycles)) : absent();
	if (h->instructions)
		v[n++] =
			spot->has_instructions ? integer(integer_of(spot->instructions)) : absent();
	if (h->cycles && h->instructions)
		v[n++] = spot->has_cycles && spot->has_instructions
				 ? ratio(spot->instructions, spot->cycles)
				 : absent();
	if (h->metrics)
		n += hotspots_metrics_values(h->metrics, hot, &v[n]);
	if (tells_counted(h))
		v[n++] = ratio((double)(spot->samples - spot->uncounted), (double)spot->samples);
	if (h->by == QUERY_BY_MODULE) {
		double samples = (double)spot->samples;
		v[n++] = ratio((double)spot->named, samples);
		v[n++] = ratio((double)spot->unnamed, samples);
		v[n++] = ratio((double)spot->out_of_symbol, samples);
	}
	return answer->row(answer->userdata, v, n);
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

/* By falling self, then total; what is equal stands in order of its name, so that an answer is the
 * same each time. */
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
	if (h->by == QUERY_BY_FUNCTION || h->by == QUERY_BY_LINE || h->by == QUERY_BY_MODULE ||
		h->by == QUERY_BY_CGROUP || h->by == QUERY_BY_JOB)
		r = compare_texts(h, h->keys.key[i].part[0], h->keys.key[j].part[0]);
	for (size_t k = 0; k < 4 && r == 0; k++) {
		uint64_t p = h->keys.key[i].part[k], q = h->keys.key[j].part[k];
		r = (p > q) - (p < q);
	}
	return r;
}

int hotspots_tell(struct hotspots *h, uint32_t limit, const struct answer *answer)
{
	uint32_t n = 0, *order = calloc((size_t)h->keys.n_keys + 1, sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->keys.n_keys; i++)
		if (!is_empty(&h->hotspot[i]))
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), compare, h);
	if (limit != 0 && limit < n)
		n = limit;

	int r = tell_columns(h, answer);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = tell_row(h, order[i], answer);
	free(order);
	return r;
}
