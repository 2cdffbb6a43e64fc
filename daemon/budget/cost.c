/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Samples come every 50 µs for a millisecond, since ten a second would take long. First, some at a longer period
 * show whether that is safe: if a sample takes longer than its period, the hart would do nothing else. The time of a
 * sample is in its record, and says which gap between two readings of the clock is its own: ticks, other events, and
 * other threads have gaps of their own. The kernel may throttle, so samples are counted.
 *
 *      SWITCH    two threads give way to each other, and a group is read at each switch
 *      SUMS      the same, and BPF adds what the group counted to a sum
 *      COUNTED   the leader fires, and the group is read at each sample
 *      SAMPLE    the leader fires alone
 *      CLOCK     cpu-clock fires alone
 *
 * Groups are pinned. Otherwise, on a hart without counters for a second group, the session's group
 * would keep them, since the kernel rotates groups only every few ms. A group that came on during
 * the work gave one or two samples, and the cost of the rotation was taken for theirs.
 *
 * Switches are measured by CPU time, since the kernel charges them to the threads, and other threads may run in
 * between.
 */

#include "daemon/budget/cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pmu/event/event_on_core.h"
#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

#define READ_NS 1000000u /* of reading the clock in a round */
#define SWITCHES 128u
#define ROUGH_PERIOD_NS 250000u
#define FINE_PERIOD_NS 50000u
/* A sample that takes longer than this comes at the longer period. */
#define FINE_NS_MAX 20000.0
/* Half of the 95 % interval of a median, in ranks, for each root of the number of figures. Source: the normal
 * approximation of the binomial distribution. */
#define MEDIAN_RANKS 0.98
#define NEVER_PERIOD_NS                                                                            \
	1000000000u /* the period of a leader whose group is read only at switches
				     * */
/* Cycles per ns, for the period of a leader that counts cycles. Samples are counted, so a different
 * clock only changes their number. */
#define CYCLES_PER_NS 2u
#define RING_BYTES 65536u /* SWITCHES records of a group, or READ_NS of samples */
#define MEMBERS_MAX (1 + PLAN_SIBLINGS_MAX + 1)
/* Sums are preferred to the sibling below this ratio: medians on the same machine differed by less.
 * */
#define SUMS_PART 0.9

struct trial {
	const struct kernel *kernel;
	struct sampler *sampler;
	int hart;
	int fd[MEMBERS_MAX];
	int n;
	bool watched; /* read by the session's BPF program, after n_watched other groups */
	int n_watched;
	struct ring ring;
};

static void trial_close(struct trial *t)
{
	const struct kernel *k = t->kernel;
	if (t->watched)
		k->switch_forget(k->userdata, sampler_switch_program(t->sampler, SWITCH_SUMS),
			t->hart, t->n_watched);
	t->watched = false;
	if (t->ring.map)
		k->ring_unmap(k->userdata, t->ring.map, t->ring.data_bytes);
	t->ring.map = NULL;
	ring_clear(&t->ring);
	while (t->n > 0)
		k->event_close(k->userdata, t->fd[--t->n]);
}

static int trial_add(struct trial *t, const struct event *e, struct perf_event_attr *attr)
{
	const struct event_place place = {
		.kernel = t->kernel,
		.platform = cores_platform(t->sampler->options.cores, t->hart),
		.pid = -1,
		.hart = t->hart,
		.group_fd = t->n > 0 ? t->fd[0] : -1,
	};
	int fd = event_open_at(&place, e, attr);
	if (fd < 0)
		return fd;
	t->fd[t->n++] = fd;
	return 0;
}

static uint64_t period_of(const struct event *e, uint64_t period_ns)
{
	return event_is_clock(e) ? period_ns : period_ns * CYCLES_PER_NS;
}

static bool switches(enum cost_kind kind)
{
	return kind == COST_SWITCH || kind == COST_SUMS;
}

static bool has_counters(enum cost_kind kind)
{
	return switches(kind) || kind == COST_COUNTED;
}

static int leader_add(struct trial *t, const struct cost_measure *m)
{
	struct event leader = m->plan.leader;
	struct perf_event_attr attr;
	if (m->kind == COST_CLOCK && !event_is_clock(&leader)) {
		leader = event_cpu_clock();
		event_exclude_kernel(&leader, m->plan.leader.exclude_kernel);
	}
	attr_sampler(t->sampler, &leader, has_counters(m->kind), &attr);
	attr.freq = 0;
	attr.pinned = has_counters(m->kind);
	attr.sample_period = period_of(&leader, switches(m->kind) ? NEVER_PERIOD_NS : m->period_ns);
	return trial_add(t, &leader, &attr);
}

static int siblings_add(struct trial *t, const struct cost_measure *m)
{
	struct perf_event_attr attr;
	int r = 0;
	for (int i = 0; i < m->plan.n_siblings && r == 0; i++) {
		attr_sibling(t->sampler, &m->plan.sibling[i], &attr);
		r = trial_add(t, &m->plan.sibling[i], &attr);
	}
	if (r < 0 || m->kind != COST_SWITCH)
		return r;
	const struct event switches = event_switches();
	attr_switch(t->sampler, &attr);
	return trial_add(t, &switches, &attr);
}

static int ring_open(struct trial *t)
{
	const struct kernel *k = t->kernel;
	int error = 0;
	t->ring = (struct ring){.data_bytes = RING_BYTES, .hart = t->hart, .fd = t->fd[0]};
	t->ring.map = k->ring_map(k->userdata, t->fd[0], RING_BYTES, &error);
	if (!t->ring.map)
		return error < 0 ? error : -error;
	int r = 0;
	for (int i = 1; i < t->n && r == 0; i++)
		r = k->event_ioctl(
			k->userdata, t->fd[i], PERF_EVENT_IOC_SET_OUTPUT, (uintptr_t)t->fd[0]);
	return r;
}

/* The sums of a trial are not used: we measure only what they cost. No session has events with
 * these numbers, so the counts of tasks in a trial are dropped when a session sums them up. */
static int watch(struct trial *t)
{
	const struct kernel *k = t->kernel;
	struct switch_bpf *b = sampler_switch_program(t->sampler, SWITCH_SUMS);
	struct switch_group g = {.hart = t->hart, .output_fd = -1, .n_members = t->n};
	for (int i = 0; i < t->n; i++) {
		g.fd[i] = t->fd[i];
		g.event[i] = -1 - i;
	}
	t->n_watched = k->switch_watched(k->userdata, b, t->hart);
	int r = k->switch_watch(k->userdata, b, &g);
	t->watched = r == 0;
	return r > 0 ? -E2BIG : r;
}

static int trial_open(struct trial *t, const struct cost_measure *m)
{
	int r = leader_add(t, m);
	if (r == 0 && has_counters(m->kind))
		r = siblings_add(t, m);
	if (r == 0)
		r = ring_open(t);
	return r == 0 && m->kind == COST_SUMS ? watch(t) : r;
}

/* CLOCK_MONOTONIC of a sample, which follows IDENTIFIER, IP and TID. Source: man perf_event_open, PERF_RECORD_SAMPLE;
 * attr_begin and attr_sampler in daemon/sampler/attr.c. */
static bool sample_time(const uint8_t *bytes, size_t size, uint64_t *ret_ns)
{
	struct perf_event_header header;
	memcpy(&header, bytes, sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE || size < sizeof(header) + 4 * sizeof(uint64_t))
		return false;
	memcpy(ret_ns, bytes + sizeof(header) + 3 * sizeof(uint64_t), sizeof(*ret_ns));
	return true;
}

/* Have each(userdata, time) called for each sample that came. */
static int each_sample(
	struct trial *t, void (*each)(void *userdata, uint64_t time_ns), void *userdata)
{
	const uint8_t *bytes;
	size_t size;
	uint64_t time_ns;
	int r;
	ring_snapshot(&t->ring);
	while ((r = ring_peek(&t->ring, &bytes, &size)) == 0) {
		if (sample_time(bytes, size, &time_ns))
			each(userdata, time_ns);
		ring_advance(&t->ring);
	}
	ring_release(&t->ring);
	return r < 0 ? r : 0;
}

/* --- samples ---------------------------------------------------------------------------------- */

struct matching {
	const struct kernel_gaps *gaps;
	unsigned at;                         /* gap of the last sample */
	unsigned n_samples[KERNEL_GAPS_MAX]; /* of each gap */
	unsigned n_outside;                  /* too short for a gap */
};

static void match(void *userdata, uint64_t time_ns)
{
	struct matching *m = userdata;
	const struct kernel_gaps *g = m->gaps;
	if (time_ns < g->begin_ns || time_ns >= g->end_ns)
		return;
	while (m->at < g->n && g->gap[m->at].to_ns <= time_ns)
		m->at++;
	if (m->at < g->n && g->gap[m->at].from_ns <= time_ns)
		m->n_samples[m->at]++;
	else
		m->n_outside++;
}

static void find(struct cost_measure *m, double ns)
{
	if (m->n_found < COST_SAMPLES)
		m->found[m->n_found++] = ns;
}

static void take_gaps(struct cost_measure *m, const struct matching *matched)
{
	const struct kernel_gaps *g = matched->gaps;
	for (unsigned i = 0; i < g->n; i++) {
		uint64_t ns = g->gap[i].to_ns - g->gap[i].from_ns;
		if (matched->n_samples[i])
			find(m, ((double)ns - (double)g->usual_ns) / matched->n_samples[i]);
	}
	for (unsigned i = 0; i < matched->n_outside; i++)
		find(m, 0);
}

static int enable(const struct trial *t, bool on)
{
	return t->kernel->event_ioctl(t->kernel->userdata, t->fd[0],
		on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

static int measure_samples(struct cost_measure *m, struct trial *t)
{
	const struct kernel *k = t->kernel;
	struct kernel_gaps gaps;
	struct matching matched = {.gaps = &gaps};
	if (!k->clock_gaps)
		return -ENOSYS;
	int r = trial_open(t, m);
	if (r == 0)
		r = enable(t, true);
	if (r == 0)
		r = k->clock_gaps(k->userdata, m->hart, READ_NS, &gaps);
	if (r == 0)
		r = enable(t, false);
	if (r == 0)
		r = each_sample(t, match, &matched);
	if (r == 0)
		take_gaps(m, &matched);
	return r;
}

/* --- switches --------------------------------------------------------------------------------- */

static void count(void *userdata, uint64_t time_ns)
{
	(void)time_ns;
	++*(unsigned *)userdata;
}

static int do_switches(const struct trial *t, uint64_t *ret_ns)
{
	const struct kernel *k = t->kernel;
	return k->switch_work ? k->switch_work(k->userdata, t->hart, SWITCHES, ret_ns) : -ENOSYS;
}

static int switches_with(
	struct trial *t, const struct cost_measure *m, uint64_t *ret_ns, unsigned *ret_n)
{
	*ret_n = 0;
	int r = trial_open(t, m);
	if (r == 0)
		r = enable(t, true);
	if (r == 0)
		r = do_switches(t, ret_ns);
	if (r == 0)
		r = enable(t, false);
	if (r == 0)
		r = each_sample(t, count, ret_n);
	if (m->kind == COST_SUMS)
		*ret_n = SWITCHES; /* they write no records */
	trial_close(t);
	return r;
}

/* Measure one pair; every other time the side with events comes first. A group that ran for only some of the
 * switches does not give the cost of one; further switches are those of others. */
static int measure_switches(struct cost_measure *m, struct trial *t)
{
	uint64_t with_ns = 0, without_ns = 0;
	unsigned n = 0;
	bool first = m->n_rounds % 2;
	int r = first ? 0 : do_switches(t, &without_ns);
	if (r == 0)
		r = switches_with(t, m, &with_ns, &n);
	if (r == 0 && first)
		r = do_switches(t, &without_ns);
	if (r == 0 && n >= SWITCHES / 2)
		find(m, ((double)with_ns - (double)without_ns) / (n < SWITCHES ? n : SWITCHES));
	return r;
}

/* --- figures ---------------------------------------------------------------------------------- */

static int measure(struct cost_measure *m, struct sampler *s)
{
	struct trial t = {.kernel = s->kernel, .sampler = s, .hart = m->hart};
	int r = switches(m->kind) ? measure_switches(m, &t) : measure_samples(m, &t);
	trial_close(&t);
	m->n_rounds++;
	return r;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* A median below 0 is noise, and becomes 0. Negative: not known, since too few were found. *ret_most_ns: see struct
 * hart_cost. */
static double median(struct cost_measure *m, unsigned least, double *ret_most_ns)
{
	*ret_most_ns = 0;
	if (m->n_found < least)
		return -1;
	qsort(m->found, m->n_found, sizeof(m->found[0]), compare);
	double half = m->n_found / 2.0, low = half - MEDIAN_RANKS * sqrt(m->n_found);
	unsigned lowest = low > 0 ? (unsigned)low : 0;
	double middle = m->found[m->n_found / 2], most = m->found[m->n_found - 1 - lowest];
	if (m->found[lowest] <= 0 && most > 0)
		*ret_most_ns = most;
	return middle > 0 ? middle : 0;
}

/* Can the session sum up? Its program is loaded when that is measured. */
static int sums_load(struct sampler *s)
{
	if (!sampler_may_sum(s))
		return -ENOTSUP;
	int r = switch_bpf_load(s, SWITCH_SUMS);
	return r != 0 ? -ENOTSUP : 0; /* without memory, only this cost stays unknown */
}

static bool is_measured(const struct plan *p, enum cost_kind kind)
{
	if (p->rung == RUNG_NONE || p->rung == RUNG_ASKED)
		return false;
	if (kind == COST_SWITCH)
		return p->n_siblings > 0 && p->switches;
	if (kind == COST_SUMS || kind == COST_COUNTED)
		return p->n_siblings > 0;
	return kind == COST_CLOCK || !event_is_clock(&p->leader);
}

/* The next kind of cost to measure on this hart; N_COSTS: there is none. */
static void next_kind(struct cost_measure *m, int kind)
{
	while (kind < N_COSTS && !is_measured(&m->plan, (enum cost_kind)kind))
		kind++;
	m->kind = (enum cost_kind)kind;
	m->n_rounds = m->n_found = 0;
	m->rough = !switches(m->kind);
	m->period_ns = ROUGH_PERIOD_NS;
}

void cost_begin(struct cost_measure *m, const struct plan *plan, int hart)
{
	*m = (struct cost_measure){.hart = hart, .plan = *plan, .cost = HART_COST_UNKNOWN};
	next_kind(m, COST_SWITCH);
}

static int finish(struct cost_measure *m, struct hart_cost *ret_cost)
{
	if (event_is_clock(&m->plan.leader)) {
		m->cost.ns[COST_SAMPLE] = m->cost.ns[COST_CLOCK];
		m->cost.most_ns[COST_SAMPLE] = m->cost.most_ns[COST_CLOCK];
	}
	*ret_cost = m->cost;
	m->hart = -1;
	return 0;
}

static void take_round(struct cost_measure *m)
{
	double most_ns;
	bool last = m->n_rounds == COST_ROUNDS;
	unsigned wanted = switches(m->kind) ? COST_ROUNDS : COST_SAMPLES;
	if (m->rough && m->n_found > 0) {
		if (median(m, 1, &most_ns) < FINE_NS_MAX) {
			m->period_ns = FINE_PERIOD_NS;
			m->n_found = 0;
		}
		m->rough = false;
		m->n_rounds = 0;
	} else if (m->n_found >= wanted || last) {
		m->cost.ns[m->kind] = median(m, (COST_ROUNDS + 1) / 2, &m->cost.most_ns[m->kind]);
		next_kind(m, (int)m->kind + 1);
	}
}

int cost_step(struct cost_measure *m, struct sampler *s, struct hart_cost *ret_cost)
{
	int r = 0;
	if (m->kind == N_COSTS)
		return finish(m, ret_cost);
	if (m->kind == COST_SUMS)
		r = sums_load(s);
	if (r == 0)
		r = measure(m, s);
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM) {
		m->hart = -1;
		return r;
	}
	if (r < 0)
		next_kind(m, (int)m->kind + 1); /* refused: this one stays unknown */
	else
		take_round(m);
	return COST_MORE;
}

double cost_of_switch(const struct hart_cost *c, bool summed)
{
	double ns = c->ns[summed ? COST_SUMS : COST_SWITCH];
	return ns > 0 ? ns : 0;
}

bool cost_prefers_sums(const struct hart_cost *c)
{
	double sums_ns = c->ns[COST_SUMS], sibling_ns = c->ns[COST_SWITCH];
	return sums_ns >= 0 && (sibling_ns < 0 || sums_ns < sibling_ns * SUMS_PART);
}

double cost_of_sample(const struct hart_cost *c, bool counted, bool by_clock)
{
	double ns = c->ns[by_clock ? COST_CLOCK : counted ? COST_COUNTED : COST_SAMPLE];
	if (ns < 0 && counted)
		ns = c->ns[COST_SAMPLE];
	return ns > 0 ? ns : 0;
}
