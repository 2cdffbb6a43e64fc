/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/control/top_harts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/answer/row.h"
#include "proto/base/memory.h"

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

#define HART_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(hart, "Hart", number, hart)                                                         \
	KNOWN_IF(load, "Load", share, t->known, (double)(t->user + t->kernel) / (double)t->total)  \
	KNOWN_IF(user, "User", share, t->known, (double)t->user / (double)t->total)                \
	KNOWN_IF(kernel, "Kernel", share, t->known, (double)t->kernel / (double)t->total)          \
	KNOWN_IF(rung, "Sampled by", text, rung != RUNG_NONE, says)                                \
	KNOWN_IF(hz, "Rate", hz, rung != RUNG_NONE, top_feed_rate(f))                              \
	KNOWN_IF(ipc, "IPC", ratio, sum->cycles > 0 && sum->instructions > 0,                      \
		sum->instructions / sum->cycles)                                                   \
	COLUMN(samples, "Samples", count, sum->samples)

static int tell_hart(
	const struct top_feed *f, int hart, const struct hart_sum *sum, const struct answer *to)
{
	const struct sampler *s = f->walk->sampler;
	const struct hart_time *t = &f->last.time[hart];
	enum rung rung = s->plan ? s->plan[hart].rung : RUNG_NONE;
	char says[128];
	snprintf(says, sizeof(says), "%s: %s", rung_letter(rung), rung_says(rung));
	return TABLE_ROW(to, HART_TABLE);
}

/* Send all harts, also to peers that see only their own processes: /proc/stat shows every user how
 * busy a hart is. */
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
		sum[row->key.hart].samples += row->is_offcpu ? 0 : row->count;
		if (with_ipc)
			add_reads(&s->events, row, &sum[row->key.hart]);
	}
	int r = TABLE_BEGIN(answer, "harts", HART_TABLE);
	for (int hart = 0; hart < n && r == 0; hart++)
		if (hart_set_has(&s->machine.online, hart))
			r = tell_hart(f, hart, &sum[hart], answer);
	return r;
}
