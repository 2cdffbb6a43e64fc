/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The figures of a row, from its sums and its time; the cost of counting on this machine; and impossible hardware
 * counts.
 *
 * Counting slows the counted code. With A accesses, I instructions and U updates of counters, each of which loads
 * and stores, Examem defines
 *
 *      OMAF = A / I
 *      NMAF = (2 U + A) / (2 U + I)
 *      MF = NMAF / OMAF
 *      CF = (I + U MF) / I
 *
 * and estimates the bandwidth without counting as CF times the measured one. A, I and U are counted, bytes too,
 * and the time is that of roofline_time.c; the slowdown by the share of instructions is Examem's estimate. I
 * counts LLVM IR instructions, as the pass sees them. Source: Examem, section III.G, equations 1 to 5.
 *
 * The cost of counting is another estimate: the counted updates and clock reads, times the cost of each on the
 * machine that answers.
 */
#include <math.h>
#include <time.h>

#include "daemon/count/plausible.h"
#include "daemon/query/loops/roofline_private.h"
#include "proto/base/clock.h"

double roof_ops(const struct roof_sums *s, enum roofline_ops ops)
{
	switch (ops) {
	case ROOFLINE_INT:
		return s->value[LOOP_INT_OPS];
	case ROOFLINE_SP:
		return s->value[LOOP_FP32_OPS];
	case ROOFLINE_DP:
		return s->value[LOOP_FP64_OPS];
	default:
		return s->value[LOOP_FP16_OPS] + s->value[LOOP_FP32_OPS] + s->value[LOOP_FP64_OPS] +
		       s->value[LOOP_FP_WIDE_OPS];
	}
}

struct roof_share roof_share_of(const struct roofline *r, uint32_t group)
{
	const bool is_site = r->q.by == ROOFLINE_LOOP || r->q.by == ROOFLINE_FUNCTION;
	uint32_t by = is_site ? loop_facts_counted_by(&r->facts, group + 1) : 0;
	if (by == 0)
		return (struct roof_share){.entries = -1, .counted = -1};
	const double *v = r->groups.self[by - 1].value;
	return (struct roof_share){.entries = v[LOOP_ENTRIES], .counted = v[LOOP_COUNTED_ENTRIES]};
}

double roof_variance_error(double variance, double sum)
{
	return sum > 0 ? sqrt(variance * MPERF_VARIANCE_UNIT) / sum : -1;
}

double roof_correction(double accesses, double instructions, double updates)
{
	if (instructions <= 0 || updates <= 0 || accesses <= 0)
		return 1 + (instructions > 0 && updates > 0 ? updates / instructions : 0);
	double before = accesses / instructions;
	double after = (2 * updates + accesses) / (2 * updates + instructions);
	return (instructions + updates * (after / before)) / instructions;
}

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : -1;
}

/* The relative error of the time. Samples come by chance. In measured nests each clock read may be
 * off by its own cost. If only some entries were measured, the standard deviation of their times is
 * assumed to equal the mean; regions report the actual one. */
static double error_of(const struct roof_sums *s, const struct roof_time *time, double clock_ns)
{
	double timed = s->value[LOOP_TIMED_ENTRIES];
	if (timed <= 0)
		timed = s->value[LOOP_ENTRIES]; /* regions are timed each time */
	if (time->error > 0)
		return time->error;
	if (time->clock == ROOF_SAMPLED)
		return s->samples > 0 ? 1 / sqrt((double)s->samples) : -1;
	if (time->clock != ROOF_MEASURED || timed <= 0 || time->ns <= 0)
		return -1;
	double looks = clock_ns / (time->ns / fmax(s->value[LOOP_ENTRIES], timed));
	double chosen = timed < s->value[LOOP_ENTRIES] ? 1 / sqrt(timed) : 0;
	if (s->value[LOOP_REPRESENTED] > 0)
		chosen = roof_variance_error(s->value[LOOP_TIME_VARIANCE], s->value[LOOP_TIME_NS]);
	return hypot(looks, chosen);
}

struct roof_figures roof_figures_of(const struct roof_sums *s, const struct roof_time *time,
	enum roofline_ops ops, const struct roof_costs *costs)
{
	const double *v = s->value;
	double updates = v[LOOP_UPDATES], instructions = v[LOOP_INSTRUCTIONS];
	struct roof_figures f = {
		.clock = time->clock,
		.time_ns = time->clock == ROOF_NO_CLOCK ? -1 : time->ns,
		.ops = roof_ops(s, ops),
		.bytes = v[LOOP_BYTES_LOADED] + v[LOOP_BYTES_STORED],
		.lanes = ratio(v[LOOP_LANES_ACTIVE], v[LOOP_LANES_ISSUED]),
		.error = error_of(s, time, costs->clock_ns),
	};
	f.cost = ratio(updates * costs->update_ns + 2 * costs->clock_ns * v[LOOP_TIMED_ENTRIES],
		f.time_ns);
	f.ops_per_byte = ratio(f.ops, f.bytes);
	f.ops_per_ns = ratio(f.ops, f.time_ns);
	f.bytes_per_ns = ratio(f.bytes, f.time_ns);
	double correction = roof_correction(v[LOOP_LOADS] + v[LOOP_STORES], instructions, updates);
	f.bytes_per_ns_corrected = f.bytes_per_ns < 0 ? -1 : f.bytes_per_ns * correction;
	f.loaded_per_ns = ratio(v[LOOP_BYTES_LOADED], f.time_ns);
	f.stored_per_ns = ratio(v[LOOP_BYTES_STORED], f.time_ns);
	f.loaded_per_ns_corrected = f.loaded_per_ns < 0 ? -1 : f.loaded_per_ns * correction;
	f.stored_per_ns_corrected = f.stored_per_ns < 0 ? -1 : f.stored_per_ns * correction;
	return f;
}

/* --- costs ------------------------------------------------------------------------------------- */

/* Updates of a loop go to several counters, and the processor overlaps them. So we update a row of words one after
 * the other. The shortest of several runs is used: the others were disturbed. */

#define RUNS 8
#define UPDATES 16384
#define LOOKS 512
#define WORDS 8 /* a cache line, as neighbours in a thread's block are */

static double updates_ns(volatile uint64_t *word)
{
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < UPDATES; i += WORDS)
		for (unsigned k = 0; k < WORDS; k++)
			word[k] += 1;
	return (double)(clock_ns(CLOCK_MONOTONIC) - begin_ns);
}

static double looks_ns(void)
{
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), now_ns = begin_ns;
	for (unsigned i = 0; i < LOOKS; i++)
		now_ns = clock_ns(CLOCK_MONOTONIC);
	return (double)(now_ns - begin_ns);
}

struct roof_costs roof_costs_measure(void)
{
	uint64_t words[WORDS] = {0};
	double updates = INFINITY, looks = INFINITY;
	for (unsigned i = 0; i < RUNS; i++) {
		updates = fmin(updates, updates_ns(words));
		looks = fmin(looks, looks_ns());
	}
	return (struct roof_costs){updates / UPDATES, looks / LOOKS};
}

/* --- doubts ------------------------------------------------------------------------------------ */

static uint32_t doubt_granted(const struct roofline *r, uint32_t group)
{
	struct plausible_count counts[MPERF_GRANTS_MAX];
	char text[PLAUSIBLE_TEXT_BYTES];
	const double *value = r->groups.total[group].value;
	unsigned n = r->facts.granted.n;
	uint32_t doubts = 0;
	for (unsigned i = 0; i < n; i++)
		counts[i] = (struct plausible_count){
			.event = granted_name(&r->facts, i),
			.count = value[LOOP_GRANTED + i],
			.ns = value[LOOP_GRANTED_NS],
			.is_scaled =
				true, /* possibly: whether they shared a counter is not known here */
		};
	for (unsigned i = 0; i < n; i++)
		if (plausible_doubt(counts, n, i, text))
			doubts |= 1u << i;
	return doubts;
}

static uint32_t doubt_samples(const struct roofline *r, uint32_t group)
{
	const struct roof_sums *s = &r->groups.total[group];
	const struct plausible_count counts[] = {
		{.event = "cycles", .count = s->cycles, .ns = s->sampled_ns, .is_scaled = true},
		{.event = "instructions",
			.count = s->instructions,
			.ns = s->sampled_ns,
			.is_scaled = true},
	};
	char text[PLAUSIBLE_TEXT_BYTES];
	bool doubted = s->cycles > 0 &&
		       (plausible_doubt(counts, 2, 0, text) || plausible_doubt(counts, 2, 1, text));
	return doubted ? ROOF_DOUBT_SAMPLES : 0;
}

uint32_t roofline_doubts(const struct roofline *r, uint32_t group)
{
	return r->q.by == ROOFLINE_REGION ? doubt_granted(r, group) : doubt_samples(r, group);
}
