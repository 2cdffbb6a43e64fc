/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Opening an event proves little: there are harts where cycles open and count but never interrupt,
 * groups that open but are never scheduled, siblings that always read 0. So each rung is really
 * tried. First its leader alone, which must write a sample into a ring while the hart is kept busy;
 * then the same with siblings, whose values must rise in those samples. A sibling whose value does
 * not rise is dropped and the rest tried again. Everything opened for a try is closed after it.
 *
 *      rung:  cycles ──▶ own leader ──▶ cpu-clock + siblings ──▶ cpu-clock
 *      each:  leader alone fires? ──▶ with siblings, do their values rise? ──▶ taken
 */

#include "daemon/sampler/ladder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/pmu/event/event_on_core.h"
#include "daemon/sampler/attr.h"
#include "proto/base/memory.h"

/* A leader that fires at TRY_HZ does so in the first slice or two; 60 ms is also six periods at the
 * lowest rate that the kernel's limit allows (100 Hz). */
#define SLICE_NS 2000000u
#define LEADER_SLICES 30
/* if the platform says that the core does not interrupt: eight periods at TRY_HZ */
#define DOUBTED_SLICES 4
#define GROUP_SLICES 15 /* its leader is known to fire by then */
/* A loaded machine, a virtual one above all, may lose the first interrupt of an event, or give it
 * none for a while. So an event is opened again before it is called silent, unless the platform
 * data says that it does not interrupt. */
#define LEADER_ATTEMPTS 3
#define TRY_HZ 1000u
#define TRY_RING_BYTES ((size_t)getpagesize() * 2)

struct climb {
	const struct kernel *kernel;
	const struct machine *machine;
	const struct platform *platform;
	int hart;
	pid_t pid; /* -1: all tasks; 0: this thread, which needs no privilege */
	uint32_t hz;
	bool user_only;
	bool no_switches;
	int leader_slices; /* of the current rung */
	struct trials *trials;
};

/* A step of the ladder. */
struct step {
	enum rung rung;
	const struct platform_event *leader; /* RUNG_LEADER; NULL: own_leader of the options */
};

enum { TRIAL_MEMBERS_MAX = 1 + PLAN_SIBLINGS_MAX + 1 };

/* An opened group: the leader with its ring, siblings, perhaps the switch event. */
struct trial {
	const struct climb *climb;
	int fd[TRIAL_MEMBERS_MAX];
	uint64_t id[TRIAL_MEMBERS_MAX];
	uint64_t value[TRIAL_MEMBERS_MAX]; /* highest seen in a sample */
	int n;
	uint32_t leader_type; /* as it was opened */
	uint64_t leader_config;
	struct ring ring;
	uint64_t n_samples;
};

enum {
	TRIAL_REFUSED = 1, /* an open failed; *ret_member and *ret_error say which and how */
	TRIAL_SILENT,      /* opened but did not fire */
	TRIAL_BUSY,        /* opened but never scheduled: another user has the counters */
	TRIAL_DEAD,        /* fired, but *ret_member delivered nothing */
	TRIAL_NO_RING,     /* *ret_error: no room for even a small ring */
	TRIAL_NO_HART,     /* *ret_error: we may not run there, so it could not be tested */
};

static void trial_close(struct trial *t)
{
	const struct kernel *k = t->climb->kernel;
	if (t->ring.map)
		k->ring_unmap(k->userdata, t->ring.map, t->ring.data_bytes);
	t->ring.map = NULL;
	ring_clear(&t->ring);
	while (t->n > 0)
		k->event_close(k->userdata, t->fd[--t->n]);
}

/* Errors of our own process, not of the machine. */
static bool our_trouble(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

/* Under load the kernel lowers its limit, and then refuses a rate that was right a moment ago. Lower
 * the rate to the limit in force; false if it was not above it. */
static bool lower_rate(const struct climb *c, struct perf_event_attr *attr)
{
	struct machine now = *c->machine;
	if (!attr->freq || machine_refresh(c->kernel, &now) < 0 ||
		attr->sample_freq <= machine_rate_max(&now))
		return false;
	attr->sample_freq = machine_rate_max(&now);
	return true;
}

static int open_as(struct trial *t, const struct event *e, bool grouped)
{
	const struct climb *c = t->climb;
	bool leads = t->n == 0;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | (grouped ? PERF_SAMPLE_READ : 0),
		.read_format =
			grouped ? GROUP_READ_FORMAT
				: PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = leads,
	};
	event_to_attr(e, &attr);
	if (leads)
		attr_set_rate(&attr, e, c->hz, 0);
	const struct event_place place = {
		.kernel = c->kernel,
		.platform = c->platform,
		.pid = c->pid,
		.hart = c->hart,
		.group_fd = leads ? -1 : t->fd[0],
	};
	int fd = event_open_at(&place, e, &attr);
	while (fd == -EINVAL && leads && lower_rate(c, &attr))
		fd = event_open_at(&place, e, &attr);
	if (fd >= 0 && leads) {
		t->leader_type = attr.type;
		t->leader_config = attr.config;
	} else if (fd >= 0 && event_by_raw(e, &attr) && attr.type == t->leader_type &&
		   attr.config == t->leader_config) {
		/* The sibling repeats the leader: some PMUs use one counter for both, and then one
		 * reads 0. */
		c->kernel->event_close(c->kernel->userdata, fd);
		return -ENOENT;
	}
	return fd;
}

/* Open with the requested exclusion, and with the opposite if the kernel refuses just that: without
 * the right to see the kernel (EACCES, EPERM), or if the counter cannot count modes apart (EINVAL).
 * e is set to what was opened. A descriptor or -errno; an error of rights is preferred to
 * others. */
static int open_excluding(struct trial *t, struct event *e, bool grouped)
{
	int fd = open_as(t, e, grouped);
	bool forbidden = fd == -EACCES || fd == -EPERM;
	if (e->exclude_kernel ? fd != -EINVAL : !forbidden)
		return fd;

	struct event other = *e;
	event_exclude_kernel(&other, !e->exclude_kernel);
	int second = open_as(t, &other, grouped);
	if (second >= 0)
		*e = other;
	return second >= 0 || our_trouble(second) ? second : fd;
}

static int trial_add(struct trial *t, struct event *e, bool grouped)
{
	const struct kernel *k = t->climb->kernel;
	int fd = open_excluding(t, e, grouped);
	if (fd < 0)
		return fd;
	int r = k->event_ioctl(k->userdata, fd, PERF_EVENT_IOC_ID, (uintptr_t)&t->id[t->n]);
	if (r < 0) {
		k->event_close(k->userdata, fd);
		return r;
	}
	t->value[t->n] = 0;
	t->fd[t->n++] = fd;
	return 0;
}

/* Take the values of one sample. Its layout follows from open_as: identifier, then with siblings {
 * nr, enabled, running, { value, id } × nr }. Source: man perf_event_open, "Reading results". */
static void trial_see(struct trial *t, const uint8_t *bytes, size_t n)
{
	uint64_t word[2 + 3 + 2 * TRIAL_MEMBERS_MAX] = {0};
	struct perf_event_header header;
	memcpy(&header, bytes, sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE)
		return;
	t->n_samples++;
	memcpy(word, bytes, n < sizeof(word) ? n : sizeof(word));
	if (t->n == 1 || n < 5 * sizeof(*word))
		return;
	for (uint64_t i = 0; i < word[2] && i < TRIAL_MEMBERS_MAX; i++)
		for (int member = 0; member < t->n; member++)
			if (t->id[member] == word[6 + 2 * i] && word[5 + 2 * i] > t->value[member])
				t->value[member] = word[5 + 2 * i];
}

static int trial_read(struct trial *t)
{
	const uint8_t *bytes;
	size_t n;
	int r;
	ring_snapshot(&t->ring);
	while ((r = ring_peek(&t->ring, &bytes, &n)) == 0) {
		trial_see(t, bytes, n);
		ring_advance(&t->ring);
	}
	ring_release(&t->ring);
	return r < 0 ? r : 0;
}

/* The first of the n siblings without a value; 0 if all have one. */
static int trial_dead_member(const struct trial *t, int n_siblings)
{
	for (int i = 1; i <= n_siblings; i++)
		if (t->value[i] == 0)
			return i;
	return 0;
}

/* Did the leader without a sample ever get a counter? Source: man perf_event_open, "Reading
 * results": enabled and running are second and third in either format. */
static bool trial_ran(const struct trial *t)
{
	const struct kernel *k = t->climb->kernel;
	uint64_t word[3 + 2 * TRIAL_MEMBERS_MAX] = {0};
	ssize_t n = k->event_read(k->userdata, t->fd[0], word, sizeof(word));
	return n < (ssize_t)(3 * sizeof(*word)) || word[1] == 0 || word[2] > 0;
}

/* Let the opened group run until it has delivered or its time is over. */
static int trial_run(struct trial *t, int n_siblings, int *ret_member, int *ret_error)
{
	const struct kernel *k = t->climb->kernel;
	int error;
	t->ring.data_bytes = TRY_RING_BYTES;
	t->ring.hart = t->climb->hart;
	t->ring.fd = t->fd[0];
	t->ring.map = k->ring_map(k->userdata, t->fd[0], t->ring.data_bytes, &error);
	*ret_member = 0;
	if (!t->ring.map) {
		*ret_error = error < 0 ? -error : error;
		return *ret_error == ENOMEM ? -ENOMEM : TRIAL_NO_RING;
	}

	int r = k->event_ioctl(k->userdata, t->fd[0], PERF_EVENT_IOC_ENABLE, 0);
	int dead = n_siblings;
	int n_slices = n_siblings ? GROUP_SLICES : t->climb->leader_slices;
	for (int slice = 0; r == 0 && slice < n_slices && (t->n_samples == 0 || dead); slice++) {
		r = k->spin(k->userdata, t->climb->hart, SLICE_NS);
		if (r == 0)
			r = trial_read(t);
		dead = trial_dead_member(t, n_siblings);
	}
	if (r < 0) {
		*ret_error = -r;
		return our_trouble(r) ? r : TRIAL_NO_HART;
	}
	*ret_member = dead;
	if (t->n_samples == 0)
		return trial_ran(t) ? TRIAL_SILENT : TRIAL_BUSY;
	return dead ? TRIAL_DEAD : 0;
}

/* Try p's leader with its first n_siblings; *ret_switches says whether the switch event came too.
 * Descriptors never outlive this call. */
static int trial_make(
	const struct climb *c, struct plan *p, int n_siblings, int *ret_member, int *ret_error)
{
	struct trial t = {.climb = c};
	int r = trial_add(&t, &p->leader, n_siblings > 0);
	for (int i = 0; r == 0 && i < n_siblings; i++)
		r = trial_add(&t, &p->sibling[i], true);
	bool refused = r < 0;
	bool switches = false;
	if (r == 0 && n_siblings > 0 && p->switches) {
		/* The event happens only in the kernel, so it never fires with the kernel excluded:
		 * open it unchanged or not at all. */
		struct event e = event_switches();
		r = trial_add(&t, &e, true);
		switches = r == 0 && !e.exclude_kernel;
		if (r == 0 && !switches)
			c->kernel->event_close(c->kernel->userdata, t.fd[--t.n]);
		if (r < 0 && !our_trouble(r))
			r = 0;
	}
	if (refused && !our_trouble(r)) {
		*ret_member = t.n;
		*ret_error = -r;
		r = TRIAL_REFUSED;
	} else if (r == 0) {
		r = trial_run(&t, n_siblings, ret_member, ret_error);
	}
	if (r == 0)
		p->switches = switches;
	trial_close(&t);
	return r;
}

/* Append to a sentence as far as it fits. */
__attribute__((format(printf, 2, 3))) static void say(struct rung_try *t, const char *format, ...)
{
	size_t n = strlen(t->says);
	va_list list;
	va_start(list, format);
	vsnprintf(t->says + n, sizeof(t->says) - n, format, list);
	va_end(list);
}

/* Why this event cannot sample, according to the platform; NULL: it may. */
static const char *doubt(const struct climb *c, const struct event *e)
{
	bool hardware = e->type == PERF_TYPE_HARDWARE;
	if (c->platform->overflow == PLATFORM_OVERFLOW_NONE && e->type != PERF_TYPE_SOFTWARE)
		return "this core's counters have no overflow interrupt";
	if (c->platform->overflow == PLATFORM_OVERFLOW_PROGRAMMABLE && hardware)
		return "this core's fixed counters of cycles and instructions have no overflow "
		       "interrupt, but its programmable ones do";
	return NULL;
}

static void say_refused(
	const struct climb *c, const struct event *e, bool leads, struct rung_try *t)
{
	struct refusal why = refusal_explain(e, t->error, leads, c->machine);
	const char *known = leads && t->error == EOPNOTSUPP ? doubt(c, e) : NULL;
	t->says[0] = '\0';
	say(t, "%s: %s (%s)", e->name, known ? known : why.says, known ? "core" : why.layer);
}

/* Explain why the leader alone failed. */
static void say_failed(
	const struct climb *c, const struct event *e, int outcome, struct rung_try *t)
{
	if (outcome == TRIAL_REFUSED)
		say_refused(c, e, true, t);
	else if (outcome == TRIAL_NO_RING)
		say(t, "%s: no locked memory is left for a ring (kernel.perf_event_mlock_kb): %s",
			e->name, strerror(t->error));
	else if (outcome == TRIAL_NO_HART)
		say(t, "%s: mperfd may not run on hart %d to test it (cpuset): %s", e->name,
			c->hart, strerror(t->error));
	else if (outcome == TRIAL_BUSY)
		say(t, "%s opens but never gets a counter: another profiler or a watchdog has it",
			e->name);
	else
		say(t, "%s opens but never interrupts: no sample in %d ms (%s%s)", e->name,
			c->leader_slices * (int)(SLICE_NS / 1000000u) *
				(t->doubted ? 1 : LEADER_ATTEMPTS),
			t->doubted ? "core: " : "driver", t->doubted ? doubt(c, e) : "");
}

static void drop_sibling(struct plan *p, int i)
{
	p->n_siblings--;
	memmove(&p->sibling[i], &p->sibling[i + 1],
		(size_t)(p->n_siblings - i) * sizeof(p->sibling[0]));
}

/* Find the largest set of siblings that runs with a leader known to fire. Each round drops one, or
 * the switch event, so there are at most PLAN_SIBLINGS_MAX + 2. */
static int add_siblings(const struct climb *c, struct plan *p, struct rung_try *t)
{
	while (p->n_siblings > 0) {
		int member = 0, error = 0;
		int r = trial_make(c, p, p->n_siblings, &member, &error);
		if (r <= 0)
			return r;
		if ((r == TRIAL_SILENT || r == TRIAL_BUSY) && p->switches) {
			p->switches = false;
			continue;
		}

		/* The leader alone opened and fired: if it does not fire now, a sibling is the
		 * cause. */
		int i = member > 0 ? member - 1 : p->n_siblings - 1;
		t->dead_sibling = true;
		if (r == TRIAL_REFUSED && member > 0) {
			t->error = error;
			say_refused(c, &p->sibling[i], false, t);
		} else {
			t->says[0] = '\0';
			say(t, "%s beside %s %s (driver)", p->sibling[i].name, p->leader.name,
				r == TRIAL_DEAD ? "opens but counts nothing"
						: "keeps the whole group from running");
		}
		drop_sibling(p, i);
	}
	p->switches = false;
	return 0;
}

/* Describe what was taken, then what was dropped. */
static void say_taken(const struct climb *c, const struct plan *p, struct rung_try *t)
{
	char lost[sizeof(t->says)];
	memcpy(lost, t->says, sizeof(lost));
	bool modeless = !p->leader.exclude_kernel;
	for (int i = 0; i < p->n_siblings; i++)
		modeless |= !p->sibling[i].exclude_kernel;

	t->says[0] = '\0';
	say(t, "%s fires", p->leader.name);
	for (int i = 0; i < p->n_siblings; i++)
		say(t, "%s%s", i == 0 ? ", beside it " : " and ", p->sibling[i].name);
	if (c->user_only && modeless)
		say(t, "; the core refuses exclude_kernel, so the counts include the kernel");
	if (t->dead_sibling)
		say(t, "; %s", lost);
}

enum { RUNG_REFUSED = 1 };

/* Try one rung. 0: taken, *p is the plan. RUNG_REFUSED, with *t. -errno for an internal failure. */
static int try_rung(const struct climb *c, struct plan *p, struct rung_try *t)
{
	event_exclude_kernel(&p->leader, c->user_only || p->leader.exclude_kernel);
	t->doubted = doubt(c, &p->leader) != NULL;
	const struct event wanted = p->leader; /* opening it may change it */
	uint64_t now_ns = c->kernel->now_ns(c->kernel->userdata);
	int member, error = 0, r = TRIAL_SILENT;
	const struct trial_key key = {
		TRIAL_FIRES, c->hart, wanted.type, wanted.config, wanted.exclude_kernel};
	/* Only silence is remembered: an event that fires must be opened again, with its ring. */
	bool works, known = trials_find(c->trials, &key, now_ns, &works);
	for (int i = 0; r == TRIAL_SILENT && !known && i < (t->doubted ? 1 : LEADER_ATTEMPTS); i++)
		r = trial_make(c, p, 0, &member, &error);
	if (r == TRIAL_SILENT && !known)
		trials_keep(c->trials, &key, now_ns, false);
	if (r < 0)
		return r;
	if (r > 0) {
		t->error = error;
		t->silent = r == TRIAL_SILENT || r == TRIAL_BUSY;
		t->busy = r == TRIAL_BUSY;
		say_failed(c, &p->leader, r, t);
		return RUNG_REFUSED;
	}

	/* The siblings count in the leader's modes, so that their ratios are meaningful. */
	for (int i = 0; i < p->n_siblings; i++)
		event_exclude_kernel(&p->sibling[i], c->user_only || p->leader.exclude_kernel);
	p->switches = p->n_siblings > 0 && !c->no_switches;
	r = add_siblings(c, p, t);
	if (r < 0)
		return r;
	if (t->rung == RUNG_CLOCK_LEADER && p->n_siblings == 0)
		/* without siblings it is cpu-clock alone, which has its own rung */
		return RUNG_REFUSED;
	p->user_only = p->leader.exclude_kernel;
	say_taken(c, p, t);
	return 0;
}

/* The event that platform-db names as this core's leader. */
static bool own_leader(
	const struct climb *c, const char *name, struct event *ret_event, struct rung_try *t)
{
	struct event_list list = {0};
	struct event_error error = {0};
	if (event_parse(c->kernel, name, &list, &error) != 0) {
		say(t, "%s, the core's own leader, is not a valid event: %s", name, error.text);
		return false;
	}
	if (list.n_events != 1) {
		say(t, "%s, the core's own leader, is more than one event", name);
		return false;
	}
	*ret_event = list.event[0];
	ret_event->group = -1;
	return true;
}

/* Set a rung's leader and siblings. False, with a sentence, if the leader is not valid. */
static bool rung_fill(const struct climb *c, const struct ladder_options *o,
	const struct step *step, struct plan *p, struct rung_try *t)
{
	if (t->rung == RUNG_LEADER && step->leader) {
		event_of_platform(step->leader, &p->leader);
	} else if (t->rung == RUNG_LEADER) {
		if (!own_leader(c, o->own_leader, &p->leader, t))
			return false;
	} else {
		p->leader = t->rung == RUNG_CYCLES ? event_cycles() : event_cpu_clock();
	}
	/* Never repeat the leader as its own sibling: see open_as. */
	p->n_siblings = 0;
	if (t->rung == RUNG_LEADER || t->rung == RUNG_CLOCK_LEADER)
		p->sibling[p->n_siblings++] = event_cycles();
	if (t->rung != RUNG_CLOCK)
		p->sibling[p->n_siblings++] = event_instructions();
	return true;
}

/* Add the core's own event as a leader to try, once. */
static int add_leader(
	const struct platform_event **leaders, int n, const struct platform_event *leader)
{
	for (int i = 0; i < n; i++)
		if (leaders[i] == leader)
			return n;
	if (leader)
		leaders[n++] = leader;
	return n;
}

int ladder_leaders(const struct platform *p, bool user_only,
	const struct platform_event *ret_leader[static PLAN_LEADERS_MAX])
{
	const struct platform_event *all = platform_all_modes(p);
	if (user_only)
		return add_leader(ret_leader, 0, platform_leader(p, PLATFORM_MODE_USER));
	int n = add_leader(ret_leader, 0, all == p->leader_kernel ? all : NULL);
	n = add_leader(ret_leader, n, platform_leader(p, PLATFORM_MODES_ALL));
	n = add_leader(ret_leader, n, p->leader_kernel);
	return add_leader(ret_leader, n, p->leader_machine);
}

/* The steps of rung b. */
static int add_leaders(const struct climb *c, const struct ladder_options *o, struct step *steps)
{
	const struct platform_event *leader[PLAN_LEADERS_MAX];
	if (o->own_leader) {
		steps[0] = (struct step){.rung = RUNG_LEADER};
		return 1;
	}
	int n = ladder_leaders(c->platform, c->user_only, leader);
	for (int i = 0; i < n; i++)
		steps[i] = (struct step){RUNG_LEADER, leader[i]};
	return n;
}

/* Taps rely on the session's list of events from its start, so no new event can be added. */
static bool may_lead(const struct ladder_options *o, struct plan *p, struct rung_try *t)
{
	if (!o->may_lead || o->may_lead(o->userdata, &p->leader))
		return true;
	t->says[0] = '\0';
	say(t, "%s fires, but this session began without it; restart the session", p->leader.name);
	return false;
}

static int try_step(const struct climb *climb, const struct ladder_options *o,
	const struct step *step, struct plan *p)
{
	struct climb c = *climb;
	struct rung_try *t = &p->tries[p->n_tries++];
	t->rung = step->rung;
	if (!rung_fill(&c, o, step, p, t))
		return RUNG_REFUSED;
	c.leader_slices = doubt(&c, &p->leader) ? DOUBTED_SLICES : LEADER_SLICES;
	int r = try_rung(&c, p, t);
	return r == 0 && !may_lead(o, p, t) ? RUNG_REFUSED : r;
}

int ladder_probe(const struct kernel *k, const struct machine *m, int hart,
	const struct ladder_options *o, struct plan *ret_plan)
{
	struct climb c = {
		.kernel = k,
		.machine = m,
		.platform = o->platform ? o->platform : cores_platform(NULL, hart),
		.hart = hart,
		.pid = m->may_see_all ? -1 : 0,
		.hz = o->hz > TRY_HZ ? o->hz : TRY_HZ,
		.user_only = o->user_only || !m->may_see_kernel,
		.no_switches = o->no_switches,
		.trials = o->trials,
	};
	if (c.hz > machine_rate_max(m))
		c.hz = machine_rate_max(m);

	struct step steps[PLAN_TRIES_MAX] = {{.rung = RUNG_CYCLES}};
	int n_steps = 1 + add_leaders(&c, o, steps + 1);
	steps[n_steps++] = (struct step){.rung = RUNG_CLOCK_LEADER};
	steps[n_steps++] = (struct step){.rung = RUNG_CLOCK};

	struct plan p = {.rung = RUNG_NONE};
	for (int i = 0; i < n_steps && p.rung == RUNG_NONE; i++) {
		int r = try_step(&c, o, &steps[i], &p);
		if (r < 0)
			return r;
		if (r == 0)
			p.rung = steps[i].rung;
		snprintf(p.reason, sizeof(p.reason), "%s", p.tries[p.n_tries - 1].says);
	}
	if (p.rung == RUNG_NONE) {
		p.leader = (struct event){.group = -1};
		p.n_siblings = 0;
		p.switches = p.user_only = false;
	}
	*ret_plan = p;
	return 0;
}
