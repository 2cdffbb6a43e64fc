/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/control/top_harts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/base/memory.h"

static const struct answer_column hart_columns[] = {
	{"hart", "Hart", MPERF__UNIT__UNIT_NONE},
	{"load", "Load", MPERF__UNIT__UNIT_SHARE},
	{"user", "User", MPERF__UNIT__UNIT_SHARE},
	{"kernel", "Kernel", MPERF__UNIT__UNIT_SHARE},
	{"rung", "Sampled by", MPERF__UNIT__UNIT_NONE},
	{"hz", "Rate", MPERF__UNIT__UNIT_HZ},
	{"ipc", "IPC", MPERF__UNIT__UNIT_RATIO},
	{"samples", "Samples", MPERF__UNIT__UNIT_COUNT},
};
#define N_HART_COLUMNS (sizeof(hart_columns) / sizeof(hart_columns[0]))

struct hart_sum {
	uint64_t samples;
	double cycles, instructions;
};

static void add_reads(
	const struct event_list *events, const struct window_row *row, struct hart_sum *sum)
{
	for (uint32_t i = 0; i < row->n_reads; i++) {
		const struct window_read *read = &row->read[i];
		if (read->event < 0 || read->event >= events->n_events || read->running_ns == 0)
			continue;
		const struct event *e = &events->event[read->event];
		double value =
			(double)read->value * (double)read->enabled_ns / (double)read->running_ns;
		/* the upper half of config names the PMU on machines with unlike cores */
		if (e->type == PERF_TYPE_HARDWARE &&
			(uint32_t)e->config == PERF_COUNT_HW_CPU_CYCLES)
			sum->cycles += value;
		if (e->type == PERF_TYPE_HARDWARE &&
			(uint32_t)e->config == PERF_COUNT_HW_INSTRUCTIONS)
			sum->instructions += value;
	}
}

static struct answer_value share(const struct hart_time *t, uint64_t part)
{
	if (!t->known)
		return (struct answer_value){.kind = ANSWER_ABSENT};
	return (struct answer_value){.kind = ANSWER_REAL, .real = (double)part / (double)t->total};
}

static struct answer_value integer(uint64_t n)
{
	return (struct answer_value){.kind = ANSWER_INTEGER, .integer = (int64_t)n};
}

static int tell_hart(
	const struct top_feed *f, int hart, const struct hart_sum *sum, const struct answer *answer)
{
	const struct sampler *s = f->walk->sampler;
	const struct hart_time *t = &f->last.time[hart];
	enum rung rung = s->plan ? s->plan[hart].rung : RUNG_NONE;
	char text[128];
	snprintf(text, sizeof(text), "%s: %s", rung_letter(rung), rung_says(rung));
	struct answer_value v[N_HART_COLUMNS] = {
		integer((uint64_t)hart),
		share(t, t->user + t->kernel),
		share(t, t->user),
		share(t, t->kernel),
	};
	if (rung != RUNG_NONE) {
		v[4] = (struct answer_value){.kind = ANSWER_TEXT, .text = text};
		v[5] = integer(top_feed_rate(f));
	}
	if (sum->cycles > 0 && sum->instructions > 0)
		v[6] = (struct answer_value){
			.kind = ANSWER_REAL, .real = sum->instructions / sum->cycles};
	v[7] = integer(sum->samples);
	return answer->row(answer->userdata, v, N_HART_COLUMNS);
}

/* How busy a hart is can be read in /proc/stat. */
int top_tell_harts(const struct top_feed *f, bool with_ipc, const struct answer *answer)
{
	const struct sampler *s = f->walk->sampler;
	int n = f->n_harts;
	_cleanup_(freep) struct hart_sum *sum = calloc((size_t)n + 1, sizeof(*sum));
	if (!sum)
		return -ENOMEM;
	const struct window_row *row = f->last.window.rows;
	for (; row; row = row->hh.next) {
		if (row->key.hart < 0 || row->key.hart >= n)
			continue;
		sum[row->key.hart].samples += row->count;
		if (with_ipc)
			add_reads(&s->events, row, &sum[row->key.hart]);
	}
	int r = answer->columns(answer->userdata, hart_columns, N_HART_COLUMNS);
	for (int hart = 0; hart < n && r == 0; hart++)
		if (hart_set_has(&s->machine.online, hart))
			r = tell_hart(f, hart, &sum[hart], answer);
	return r;
}
