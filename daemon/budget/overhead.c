/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Every two seconds we take rates, multiply them by the measured costs, and let the governor
 * decide. The kernel's work is known per hart; the time of our processes is divided equally over
 * all harts, since they run anywhere. The budget is for always-on sampling: it excludes the loop's
 * time for clients. While a client has raised the rate, samples count at the always-on rate, and
 * our own CPU time as before.
 */

#include "daemon/budget/overhead.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <syslog.h>

#include "daemon/budget/overhead_private.h"
#include "daemon/sampler/attr.h"
#include "daemon/sampler/effort.h"
#include "daemon/session/walk.h"
#include "proto/base/memory.h"

#define PPM 1e6
/* Time between two steps of a measurement, which take 3 ms each: until the first figures are known,
 * and afterwards. Until the other harts are measured, they are assumed to cost the same as the
 * first, so there is time: 10 s, less with many harts. */
#define MEASURE_SOON_NS 50000000u
#define MEASURE_NS 10000000000u
#define MEASURE_NS_MIN 1000000000u
#define MEASURE_AGAIN_NS 3600000000000u
#define MEASURE_RETRY_NS 10000000000u
/* A tick with fewer records is not used to find the cost of one. */
#define PRICED_RECORDS_MIN 200
#define SAY_NS 60000000000u /* at most one line in this time */

#define PRICES_BYTES (N_TASK_WORKS * sizeof(struct sideband_price))

int overhead_new(const struct overhead_options *o, struct overhead **ret_overhead)
{
	struct overhead *h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->o = *o;
	h->measure.hart = -1;
	h->started_ns = o->kernel->now_ns(o->kernel->userdata);
	h->next_tick_ns = h->started_ns + GOVERNOR_TICK_NS;
	h->next_measure_ns = h->started_ns + MEASURE_SOON_NS;
	h->measure_again_ns = h->started_ns + MEASURE_AGAIN_NS;
	void *shared =
		mmap(NULL, PRICES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	h->price = shared == MAP_FAILED ? NULL : shared;
	if (o->brief) /* it may end before a second tick */
		h->governor.n_over = GOVERNOR_OVER_TICKS - 1;
	*ret_overhead = h;
	return 0;
}

static void close_switches(struct overhead *h, struct overhead_hart *hart)
{
	if (hart->switch_fd >= 0)
		h->o.kernel->event_close(h->o.kernel->userdata, hart->switch_fd);
	hart->switch_fd = -1;
	hart->n_switches = 0;
}

static void forget_harts(struct overhead *h)
{
	for (int i = 0; i < h->n_harts; i++)
		close_switches(h, &h->hart[i]);
	free(h->hart);
	h->hart = NULL;
	h->n_harts = 0;
	h->measure.hart = -1;
}

struct overhead *overhead_free(struct overhead *h)
{
	if (!h)
		return NULL;
	forget_harts(h);
	if (h->price)
		munmap(h->price, PRICES_BYTES);
	free(h);
	return NULL;
}

/* There is a new walk. */
static int follow_walk(struct overhead *h, const struct walk *w)
{
	if (h->walk == w)
		return 0;
	forget_harts(h);
	h->walk = NULL;
	h->hart = calloc((size_t)w->sampler->machine.n_harts, sizeof(*h->hart));
	if (!h->hart)
		return -ENOMEM;
	h->n_harts = w->sampler->machine.n_harts;
	for (int i = 0; i < h->n_harts; i++) {
		h->hart[i].cost = HART_COST_UNKNOWN;
		h->hart[i].switch_fd = -1;
		h->hart[i].n_samples = walk_samples(w, i);
		h->hart[i].n_hotplugs = w->sampler->lost[i][LOSS_HOTPLUG];
		h->hart[i].n_throttles = w->sampler->lost[i][LOSS_THROTTLE];
	}
	memcpy(h->n_sideband, w->n_sideband, sizeof(h->n_sideband));
	h->ticked_ns = 0;
	h->walk = w;
	return 0;
}

/* --- measuring -------------------------------------------------------------------------------- */

/* Until a hart is measured, use the costs of another hart with the same rung. */
static void share_cost(struct overhead *h, const struct sampler *s, int from)
{
	for (int i = 0; i < h->n_harts; i++)
		if (!h->hart[i].measured && s->found[i].rung == s->found[from].rung)
			h->hart[i].cost = h->hart[from].cost;
}

static int unmeasured_hart(const struct overhead *h, const struct sampler *s)
{
	for (int i = 0; i < h->n_harts; i++)
		if (!h->hart[i].measured && is_open(s, i))
			return i;
	return -1;
}

static bool is_priced(const struct hart_cost *c)
{
	return c->ns[COST_CLOCK] >= 0 || c->ns[COST_SAMPLE] >= 0;
}

static uint64_t pace_ns(const struct overhead *h, bool soon)
{
	uint64_t each_ns = MEASURE_NS / (uint64_t)(h->n_harts > 0 ? h->n_harts : 1);
	if (soon)
		return MEASURE_SOON_NS;
	return each_ns > MEASURE_NS_MIN ? each_ns : MEASURE_NS_MIN;
}

/* Measure harts without known costs. If a measurement fails for lack of descriptors or memory, it
 * is repeated later, since other work needs these more. */
static void measure(struct overhead *h, struct sampler *s, bool raised, uint64_t now_ns)
{
	struct cost_measure *m = &h->measure;
	if (now_ns >= h->measure_again_ns) {
		h->measure_again_ns = now_ns + MEASURE_AGAIN_NS;
		for (int i = 0; i < h->n_harts; i++)
			h->hart[i].measured = false;
	}
	int hart = m->hart >= 0 ? m->hart : unmeasured_hart(h, s);
	bool priced = hart >= 0 && is_priced(&h->hart[hart].cost);
	h->next_measure_ns = now_ns + pace_ns(h, hart >= 0 && !priced);
	if (hart < 0 || (raised && priced) || !s->started)
		return;
	if (!is_open(s, hart)) {
		m->hart = -1;
		return;
	}
	if (m->hart < 0)
		cost_begin(m, &s->found[hart], hart);
	struct hart_cost cost;
	int r = cost_step(m, s, &cost);
	h->measured_now |= !priced; /* 20 steps a second, and later one at most */
	if (r == 0) {
		h->hart[hart].cost = cost;
		h->hart[hart].measured = true;
		share_cost(h, s, hart);
	}
	if (r < 0)
		h->next_measure_ns = now_ns + MEASURE_RETRY_NS;
}

/* --- rates ------------------------------------------------------------------------------------ */

/* If it does not open, the hart's switches are not known, and the next tick tries again. */
static void open_switches(struct overhead *h, struct overhead_hart *to, int hart)
{
	const struct kernel *k = h->o.kernel;
	const struct event e = event_switches();
	struct perf_event_attr attr = {.size = sizeof(attr)};
	event_to_attr(&e, &attr);
	int fd = k->event_open(k->userdata, &attr, -1, hart, -1, PERF_FLAG_FD_CLOEXEC);
	to->switch_fd = fd >= 0 ? fd : -1;
}

/* An event of a hart that was offline is dead. */
static void follow_hotplug(struct overhead *h, const struct sampler *s, int i)
{
	struct overhead_hart *hart = &h->hart[i];
	if (hart->n_hotplugs != s->lost[i][LOSS_HOTPLUG] || !hart_set_has(&s->seen, i))
		close_switches(h, hart);
	hart->n_hotplugs = s->lost[i][LOSS_HOTPLUG];
	if (hart->switch_fd < 0 && hart_set_has(&s->seen, i))
		open_switches(h, hart, i);
}

static uint64_t read_switches(const struct overhead *h, const struct overhead_hart *hart)
{
	uint64_t n = 0;
	if (hart->switch_fd < 0 || h->o.kernel->event_read(h->o.kernel->userdata, hart->switch_fd,
					   &n, sizeof(n)) != sizeof(n))
		return hart->n_switches;
	return n;
}

static double sample_price(const struct overhead_hart *hart, const struct plan *p)
{
	bool counted = p->n_siblings > 0;
	return cost_of_sample(&hart->cost, counted, !counted && event_is_clock(&p->leader));
}

static double switch_price(const struct overhead_hart *hart, const struct plan *p)
{
	return is_cut(p) ? cost_of_switch(&hart->cost, p->summed) : 0;
}

/* Compute the cost of that hart's samples and switches over dt_ns. */
static void price_hart(struct overhead *h, const struct walk *w, int i, double dt_ns)
{
	struct overhead_hart *hart = &h->hart[i];
	const struct plan *p = &w->sampler->plan[i];
	uint64_t samples = walk_samples(w, i), switches = read_switches(h, hart);
	double n_samples = (double)(samples - hart->n_samples);
	double n_switches = switches > hart->n_switches ? (double)(switches - hart->n_switches) : 0;
	uint64_t throttles = w->sampler->lost[i][LOSS_THROTTLE];
	hart->throttles = (double)(throttles - hart->n_throttles) / dt_ns * NS_PER_S;
	hart->n_throttles = throttles;
	hart->n_samples = samples;
	hart->n_switches = switches;
	hart->samples = n_samples / dt_ns * NS_PER_S;
	hart->switches = n_switches / dt_ns * NS_PER_S;
	hart->samples_part = n_samples * sample_price(hart, p) / dt_ns;
	hart->switches_part = n_switches * switch_price(hart, p) / dt_ns;
	if (!is_priced(&hart->cost)) {
		hart->early_samples += n_samples;
		hart->early_switches += is_cut(p) ? n_switches : 0;
	}
}

static void read_cpu(const struct overhead *h, const struct walk *w, struct usage_cpu *ret_cpu)
{
	const struct offcpu_looks_state looks = walk_offcpu(w, NULL);
	(h->o.cpu ? h->o.cpu : usage_cpu)(w->namer, ret_cpu);
	ret_cpu->own_ns += looks.cpu_ns - looks.caller_ns; /* its process is not our child */
}

static struct overhead_own *take_own(struct overhead *h, const struct walk *w, uint64_t dt_ns)
{
	struct usage_cpu cpu;
	uint64_t clients_ns = clients_ns_of(h, w);
	read_cpu(h, w, &cpu);
	uint64_t all_ns = less(cpu.own_ns, h->cpu.own_ns);
	struct overhead_own *own = &h->own[h->next_own];
	h->next_own = (h->next_own + 1) % OVERHEAD_OWN_TICKS;
	*own = (struct overhead_own){
		.time_ns = dt_ns,
		.clients_ns = less(clients_ns, h->clients_seen_ns),
		.others_ns = less(cpu.others_ns, h->cpu.others_ns),
	};
	own->own_ns = less(all_ns, own->clients_ns);
	overhead_take_causes(h, w, own, less(cpu.namer_ns, h->cpu.namer_ns));
	h->cpu = cpu;
	h->clients_seen_ns = clients_ns;
	return own;
}

/* In a session of a client's own all cost is taken to be that of its records: the lowest so far is the best
 * estimate. */
static void price_record(
	struct overhead *h, const struct sampler *s, const struct overhead_own *own)
{
	double n = 0;
	for (int i = 0; i < h->n_harts; i++) {
		n += h->hart[i].samples;
		bool records = is_cut(&s->plan[i]) && !s->plan[i].summed;
		n += records ? h->hart[i].switches : 0;
	}
	n *= (double)own->time_ns / NS_PER_S;
	const double for_records_ns = (double)less(own->own_ns, own->cause_ns[CAUSE_WAITING]);
	double each_ns = n >= PRICED_RECORDS_MIN && !h->measured_now ? for_records_ns / n : 0;
	h->measured_now = false; /* that is CPU time of ours, too */
	if (each_ns > 0 && (h->record_ns <= 0 || each_ns < h->record_ns))
		h->record_ns = each_ns;
}

double overhead_record_ns(const struct overhead *h)
{
	double cpu_ns = 0, n = 0;
	for (unsigned i = 0; i < OVERHEAD_OWN_TICKS; i++) {
		cpu_ns += (double)h->own[i].cause_ns[CAUSE_SAMPLES];
		n += (double)h->own[i].n_samples;
	}
	return n >= PRICED_RECORDS_MIN && !h->o.brief ? cpu_ns / n : h->record_ns;
}

/* In µs; once the cost is known. */
static double early_cost(struct overhead_hart *hart, const struct plan *p)
{
	if (!is_priced(&hart->cost))
		return 0;
	double ns = hart->early_samples * sample_price(hart, p) +
		    hart->early_switches * switch_price(hart, p);
	hart->early_samples = hart->early_switches = 0;
	return ns / 1e3;
}

/* Are the hart's costs known, as far as possible? Events that the kernel refuses have none. */
static bool is_known(const struct overhead_hart *hart)
{
	return hart->measured || is_priced(&hart->cost);
}

static bool all_known(const struct overhead *h, const struct sampler *s)
{
	for (int i = 0; i < h->n_harts; i++)
		if (is_open(s, i) && !is_known(&h->hart[i]))
			return false;
	return true;
}

/* Store the cost with the losses, in whole microseconds of each hart. If a brief walk ends before
 * its costs are known, store nothing, since a partial figure would look complete. */
static void count_cost(struct overhead *h, struct sampler *s, const struct overhead_own *own)
{
	double own_us =
		(double)(own->own_ns + own->clients_ns + own->others_ns) / 1e3 / n_open(h, s);
	for (int i = 0; i < h->n_harts; i++) {
		struct overhead_hart *hart = &h->hart[i];
		double part = hart->samples_part + hart->switches_part + h->groups_part;
		if (!is_open(s, i))
			continue;
		hart->unreported_us += own_us + part * (double)own->time_ns / 1e3;
		hart->unreported_us += early_cost(hart, &s->plan[i]);
		if (h->o.brief && !is_known(hart))
			continue;
		uint64_t whole = (uint64_t)hart->unreported_us;
		s->lost[i][LOSS_COST] += whole;
		hart->unreported_us -= (double)whole;
	}
}

/* --- the budget ------------------------------------------------------------------------------- */

struct governor_hart overhead_load_of(const struct overhead *h, const struct sampler *s, int i)
{
	const struct overhead_hart *hart = &h->hart[i];
	const struct plan *found = &s->found[i];
	double busy = hart->samples / (s->hz ? s->hz : 1);
	bool wished =
		sampler_switches_asked(s) == SAMPLER_SWITCHES_SUMS || sampler_prefers_sums(s, i);
	/* an open group keeps its way until it is reopened, whatever was refused on other harts */
	bool sums = s->plan[i].cut & CUT_BPF ? s->plan[i].summed : wished && sampler_may_sum(s);
	return (struct governor_hart){
		.number = i,
		.busy = busy > 1 ? 1 : busy,
		.switches = hart->switches,
		.cost = hart->cost,
		.counts = found->n_siblings > 0,
		.cuts = found->switches || sampler_switches_asked(s) == SAMPLER_SWITCHES_BPF ||
			sampler_switches_asked(s) == SAMPLER_SWITCHES_SUMS || sums,
		.sums = sums,
		.by_clock = event_is_clock(&found->leader),
	};
}

double overhead_own_by_records(const struct overhead *h, double records)
{
	return records * overhead_record_ns(h) / NS_PER_S / n_open(h, h->walk->sampler);
}

static void judge_anew(struct overhead *h, uint64_t now_ns)
{
	h->judged_from_ns = now_ns + OVERHEAD_SETTLE_NS;
	for (unsigned i = 0; i < OVERHEAD_OWN_TICKS; i++)
		h->own[i].counts = false;
}

/* 0, OVERHEAD_STEPPED, -ENOMEM. */
static int govern(struct overhead *h, const struct sampler *s, uint64_t now_ns)
{
	int n = 0;
	_cleanup_(freep) struct governor_hart *hart =
		calloc((size_t)(unsigned)h->n_harts, sizeof(*hart));
	if (!hart)
		return -ENOMEM;
	for (int i = 0; i < h->n_harts; i++)
		if (is_open(s, i))
			hart[n++] = overhead_load_of(h, s, i);
	if (n == 0)
		return 0;
	struct governor_load load = {
		.budget = h->o.conf->overhead_ppm / PPM,
		.hz = h->o.conf->rate,
		.own = overhead_own_of_budget(h) / n,
		.record_ns = overhead_record_ns(h),
		.hart = hart,
		.n_harts = n,
		.callers = sampler_stacks_asked(s) != SAMPLER_STACKS_NONE,
		.groups = h->groups_price,
	};
	if (h->o.brief)
		load.own = overhead_own_by_records(h, governor_records(&load, h->governor.step));
	else if (overhead_measure(h, &load, now_ns)) {
		judge_anew(h, now_ns);
		return 0;
	}
	if (!governor_tick(&h->governor, &load, now_ns))
		return 0;
	judge_anew(h, now_ns);
	return OVERHEAD_STEPPED;
}

/* A line for each step, at most one in SAY_NS; then the step of that time. */
static void say_step(struct overhead *h, uint64_t now_ns)
{
	const struct governor *g = &h->governor;
	char text[EFFORT_TEXT_BYTES + sizeof(g->reason) + 128], says[EFFORT_TEXT_BYTES];
	if (!h->o.say || g->step == h->said || now_ns < h->next_say_ns)
		return;
	if (g->step == STEP_ALL)
		snprintf(text, sizeof(text), "overhead no longer limits sampling");
	else
		snprintf(text, sizeof(text), "to keep overhead within %g %%: %s%s%s",
			h->o.conf->overhead_ppm / 1e4, effort_says(&g->effort, says),
			g->step > h->said ? "; " : " (less than before)",
			g->step > h->said ? g->reason : "");
	h->said = g->step;
	h->next_say_ns = now_ns + SAY_NS;
	h->o.say(h->o.userdata, LOG_NOTICE, text);
}

/* Cut counts on each hart in the cheaper way. 0; OVERHEAD_STEPPED: one changed; -errno. */
static int choose_cut(struct overhead *h, struct walk *w)
{
	int r = 0;
	bool changed = false;
	if (sampler_switches_asked(w->sampler) != SAMPLER_SWITCHES_CHEAPEST ||
		!sampler_may_sum(w->sampler))
		return 0;
	for (int i = 0; i < h->n_harts && r == 0; i++) {
		bool sums = cost_prefers_sums(&h->hart[i].cost);
		if (sums == sampler_prefers_sums(w->sampler, i))
			continue;
		/* records of events that are about to be closed could not be read later */
		if (!changed)
			r = walk_catch_up(w, h->o.kernel->now_ns(h->o.kernel->userdata));
		if (r == 0)
			r = sampler_prefer_sums(w->sampler, i, sums);
		changed = true;
	}
	return r == 0 && changed ? OVERHEAD_STEPPED : r;
}

static void take_told(struct overhead *h, const struct walk *w, uint64_t dt_ns)
{
	for (int what = 0; what < N_TASK_WORKS; what++) {
		uint64_t n = w->n_sideband[what] - h->n_sideband[what];
		h->sideband[what] = dt_ns ? (double)n / (double)dt_ns * NS_PER_S : 0;
		h->n_sideband[what] = w->n_sideband[what];
	}
}

enum { TICK_FIRST = 1 };

/* Take the figures of the time since the last tick. 0; TICK_FIRST: there was none. */
static int take_figures(struct overhead *h, struct walk *w, bool raised, uint64_t now_ns)
{
	struct sampler *s = w->sampler;
	uint64_t dt_ns = h->ticked_ns ? now_ns - h->ticked_ns : 0;
	h->ticked_ns = now_ns;
	for (int i = 0; i < h->n_harts; i++) {
		follow_hotplug(h, s, i);
		if (dt_ns > 0)
			price_hart(h, w, i, (double)dt_ns);
		else
			h->hart[i].n_switches = read_switches(h, &h->hart[i]);
	}
	take_told(h, w, dt_ns);
	if (dt_ns == 0) {
		read_cpu(h, w, &h->cpu);
		h->clients_seen_ns = clients_ns_of(h, w);
		overhead_begin_causes(h, w);
		return TICK_FIRST;
	}
	h->n_ticks++;
	struct overhead_own *own = take_own(h, w, dt_ns);
	own->counts = !raised && now_ns >= h->started_ns + OVERHEAD_START_NS &&
		      now_ns >= h->judged_from_ns;
	own->n_samples = less(w->n_sample_records, h->n_sample_records);
	h->n_sample_records = w->n_sample_records;
	price_record(h, s, own);
	count_cost(h, s, own);
	return 0;
}

static int tick(struct overhead *h, struct walk *w, bool raised, uint64_t now_ns)
{
	if (take_figures(h, w, raised, now_ns) == TICK_FIRST)
		return 0;
	if (h->o.brief && !all_known(h, w->sampler))
		return 0;
	int r = govern(h, w->sampler, now_ns);
	if (r < 0)
		return r;
	int chosen = choose_cut(h, w);
	int set = chosen < 0 ? chosen : walk_set_effort(w, &h->governor.effort);
	say_step(h, now_ns);
	return set < 0 ? set : chosen > 0 ? chosen : r;
}

int overhead_dispatch(struct overhead *h, struct walk *w, bool raised, uint64_t now_ns)
{
	bool first = h->o.brief && h->walk != w;
	int r = follow_walk(h, w);
	if (r == 0 && now_ns >= h->next_measure_ns)
		measure(h, w->sampler, raised, now_ns);
	if (r < 0 || (now_ns < h->next_tick_ns && !first))
		return r;
	h->next_tick_ns = now_ns + GOVERNOR_TICK_NS;
	return tick(h, w, raised, now_ns);
}

void overhead_stop(struct overhead *h, struct walk *w, uint64_t now_ns)
{
	if (h->walk == w && now_ns > h->ticked_ns)
		(void)take_figures(h, w, false, now_ns);
}

uint64_t overhead_deadline_ns(const struct overhead *h, uint64_t next_ns)
{
	bool unpriced = h->n_harts > 0 && h->measure.hart >= 0 &&
			!is_priced(&h->hart[h->measure.hart].cost);
	return unpriced && h->next_measure_ns < next_ns ? h->next_measure_ns : next_ns;
}

uint32_t overhead_rate(const struct overhead *h)
{
	return governor_rate(h->governor.step, h->o.conf->rate);
}
