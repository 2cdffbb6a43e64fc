/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What events cost on a replayed machine: the clock moves on at each sample and each counter that is
 * read. So a PMU whose registers trap to a host is a line of JSON.
 */

#include <errno.h>

#include "tests/unit/replay_part.h"

/* Hardware counters that a sample of e reads: of its group, or itself, which is set again. */
static unsigned counters_read(const struct replay *r, const struct replay_event *e)
{
	unsigned n = 0;
	for (unsigned i = 0; i < r->n_events; i++) {
		const struct replay_event *other = &r->event[i];
		bool read = e->attr.sample_type & PERF_SAMPLE_READ
				    ? other->leader_fd == e->leader_fd
				    : other == e;
		n += other->open && read && other->attr.type != PERF_TYPE_SOFTWARE;
	}
	return n;
}

static bool is_switches(const struct replay_event *e)
{
	return e->attr.type == PERF_TYPE_SOFTWARE &&
	       e->attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES;
}

void replay_interrupt(struct replay *r, uint64_t from_ns)
{
	struct kernel_gaps *g = r->gaps;
	if (!g || g->n == KERNEL_GAPS_MAX || r->now_ns == from_ns)
		return;
	g->gap[g->n].from_ns = from_ns;
	g->gap[g->n++].to_ns = r->now_ns;
}

void replay_charge(struct replay *r, const struct replay_event *e)
{
	uint64_t from_ns = r->now_ns;
	r->now_ns += is_switches(e) ? r->cost.record_ns : r->cost.sample_ns;
	r->now_ns += counters_read(r, e) * r->cost.counter_ns;
	replay_interrupt(r, from_ns);
}

/* A reading of the clock takes no time. */
int replay_clock_gaps(void *u, int hart, uint64_t ns, struct kernel_gaps *ret_gaps)
{
	struct replay *r = u;
	*ret_gaps = (struct kernel_gaps){.begin_ns = r->now_ns};
	r->gaps = ret_gaps;
	int outcome = r->kernel.spin(u, hart, ns);
	r->gaps = NULL;
	ret_gaps->end_ns = r->now_ns;
	return outcome;
}

static bool counts(const struct replay *r, const struct replay_event *e, int hart)
{
	const struct replay_event *leader = replay_event(r, e->leader_fd);
	return e->open && e->enabled && !e->dead && e->hart == hart && leader->open &&
	       leader->enabled && is_switches(e) && !e->starved;
}

int replay_switch_work(void *u, int hart, unsigned n, uint64_t *ret_ns)
{
	struct replay *r = u;
	uint64_t begin_ns = r->now_ns;
	int outcome = r->kernel.spin(u, hart, 0);
	replay_learn_counters(r);
	for (unsigned i = 0; i < n && outcome == 0; i++) {
		r->now_ns += r->cost.switch_ns;
		for (unsigned j = 0; j < r->n_events; j++) {
			struct replay_event *e = &r->event[j];
			if (!counts(r, e, hart))
				continue;
			e->value++;
			if (e->attr.sample_period == 0 || !e->rule.fires)
				continue;
			replay_sample(r, e, 0);
			replay_charge(r, e);
		}
	}
	*ret_ns = r->now_ns - begin_ns;
	return outcome;
}

void replay_set_costs(struct replay *r, uint64_t sample_ns, uint64_t record_ns, uint64_t counter_ns)
{
	r->cost.sample_ns = sample_ns;
	r->cost.record_ns = record_ns;
	r->cost.counter_ns = counter_ns;
}

void replay_charge_read(struct replay *r)
{
	if (r->cost.read_ns)
		replay_run(r, -1, 0, r->cost.read_ns);
}

void replay_set_read_cost(struct replay *r, uint64_t read_ns)
{
	r->cost.read_ns = read_ns;
}
