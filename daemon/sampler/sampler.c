/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A session is opened hart by hart, and each hart is independent, with its own plan, ring and
 * events, so that big cores that interrupt and little ones that do not can be in one session. A
 * hart that refuses is left out, with the reason in its plan; the session is refused only if all
 * harts are. Events that the user requested by name must open somewhere, or the session is refused
 * too: figures for part of the request would look like figures for all of it.
 */

#include "daemon/sampler/sampler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/kernel/switch_bpf.h"
#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"
#include "proto/base/memory.h"

DEFINE_CLEANUP(struct sampler *, sampler_free)

/* --- making ----------------------------------------------------------------------------------- */

/* Copy what the caller passed, since harts may come online later. */
static int options_copy(struct sampler *s, const struct sampler_options *o)
{
	s->options = *o;
	if (o->stack_bytes == 0)
		s->options.stack_bytes = SAMPLER_STACK_BYTES_DEFAULT;
	effort_begin(&s->effort, o);
	s->options.pids = NULL;
	s->options.events = NULL;
	s->options.period = 0;
	s->options.own_leader = NULL;
	if (o->n_pids > 0) {
		pid_t *pids = calloc(o->n_pids, sizeof(*pids));
		if (!pids)
			return -ENOMEM;
		memcpy(pids, o->pids, o->n_pids * sizeof(*pids));
		s->options.pids = pids;
	}
	if (o->own_leader && !(s->options.own_leader = strdup(o->own_leader)))
		return -ENOMEM;
	if (o->events && o->events->n_events > 0) {
		s->events = *o->events;
		/* If the kernel is excluded, an event that excludes user mode counts nothing:
		 * refused later. */
		for (int i = 0; o->user_only && i < s->events.n_events; i++)
			if (!s->events.event[i].exclude_user)
				event_exclude_kernel(&s->events.event[i], true);
		s->options.events = &s->events;
		s->options.period = o->period;
	}
	return 0;
}

static bool options_valid(const struct sampler_options *o)
{
	return o->hz >= 1 && o->hz <= SAMPLER_HZ_MAX && o->period <= SAMPLER_PERIOD_MAX &&
	       o->stack_bytes <= SAMPLER_STACK_BYTES_MAX && o->stack_bytes % 8 == 0 &&
	       (!o->per_task || o->n_pids > 0);
}

static int sampler_make(
	const struct kernel *k, const struct sampler_options *o, struct sampler **ret_sampler)
{
	_cleanup_(sampler_freep) struct sampler *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->kernel = k;
	int r = options_copy(s, o);
	if (r == 0)
		r = machine_read(k, &s->machine);
	if (r == 0)
		r = cores_read(o->cores, k, &s->machine);
	if (r < 0)
		return r;
	exec_begin(s);
	rate_begin(s);
	size_t n = (size_t)s->machine.n_harts;
	s->plan = calloc(n, sizeof(*s->plan));
	s->found = calloc(n, sizeof(*s->found));
	s->ring = calloc(n * (o->always ? 3 + RAISES_MAX : 2), sizeof(*s->ring));
	s->exec_ring = calloc(n, sizeof(*s->exec_ring));
	s->lost = calloc(n, sizeof(*s->lost));
	s->lost_ahead = calloc(n, sizeof(*s->lost_ahead));
	s->losses = calloc(n, sizeof(*s->losses));
	s->presence = calloc(n, sizeof(*s->presence));
	s->share = calloc(n, sizeof(*s->share));
	if (!s->plan || !s->found || !s->ring || !s->exec_ring || !s->lost || !s->lost_ahead ||
		!s->losses || !s->presence || !s->share)
		return -ENOMEM;
	copies_begin(s);
	*ret_sampler = TAKE_PTR(s);
	return 0;
}

/* 0: at least one hart samples. HART_*, -errno. */
static int open_all(struct opening *o)
{
	struct sampler *s = o->sampler;
	bool learnt = false;
	int n_open = 0, outcome = HART_GONE;
	s->seen = s->machine.online;
	for (int hart = 0; hart < s->machine.n_harts; hart++) {
		if (!hart_set_has(&s->seen, hart))
			continue;
		int r = learnt ? 0 : sideband_learn(o, hart);
		learnt |= r == 0;
		if (r == 0)
			r = hart_open(o, hart);
		if (r < 0)
			return r;
		n_open += r == 0;
		if (r == HART_REFUSED)
			outcome = r;
		if (r == HART_REFUSED && !learnt)
			break; /* even the dummy is refused: no rights, on any hart */
	}
	return n_open ? 0 : outcome;
}

/* An event that was requested by name and opened nowhere. */
static const struct event_error *asked_refusal(const struct opening *o)
{
	for (int i = 0; o->sampler->options.events && i < o->sampler->events.n_events; i++)
		if (!(o->asked_opened >> i & 1) && o->asked_error[i].text[0])
			return &o->asked_error[i];
	return NULL;
}

static int full(int error, struct event_error *ret_error)
{
	struct rlimit limit = {0};
	getrlimit(RLIMIT_NOFILE, &limit);
	if (error == -EMFILE)
		snprintf(ret_error->text, sizeof(ret_error->text),
			"out of descriptors: the hard limit RLIMIT_NOFILE is %llu; raise it "
			"(LimitNOFILE= of the service, ulimit -Hn) or record fewer threads",
			(unsigned long long)limit.rlim_max);
	else
		snprintf(ret_error->text, sizeof(ret_error->text),
			"the system is out of open files; raise the sysctl fs.file-max");
	return SAMPLER_FULL;
}

int sampler_new(const struct kernel *k, const struct sampler_options *o,
	struct sampler **ret_sampler, struct event_error *ret_error)
{
	_cleanup_(sampler_freep) struct sampler *s = NULL;
	_cleanup_(freep) struct opening *opening = calloc(1, sizeof(*opening));
	_cleanup_(freep) pid_t *tasks = NULL;
	if (!options_valid(o))
		return -EINVAL;
	if (!opening)
		return -ENOMEM;
	int r = sampler_make(k, o, &s);
	if (r < 0)
		return r;
	opening->sampler = s;
	r = tasks_read(s, &tasks, &opening->n_tasks);
	opening->tasks = tasks;
	if (r == 0)
		r = open_all(opening);
	if (r == HART_GONE) {
		snprintf(ret_error->text, sizeof(ret_error->text), "%s",
			o->per_task ? "the process to record has ended" : "no hart is online");
		return SAMPLER_GONE;
	}
	if (r == -EMFILE || r == -ENFILE)
		return full(r, ret_error);
	if (r < 0)
		return r;
	plan_reserve(s);
	const struct event_error *refused = asked_refusal(opening);
	if (r == HART_REFUSED || refused) {
		*ret_error = refused ? *refused : opening->error;
		return SAMPLER_REFUSED;
	}
	*ret_sampler = TAKE_PTR(s);
	return 0;
}

int sampler_start(struct sampler *s)
{
	if (s->started)
		return 0;
	int r = hart_enable(s, -1, true);
	s->started = r == 0;
	return r;
}

int sampler_stop(struct sampler *s)
{
	if (!s->started)
		return 0;
	s->started = false;
	return hart_enable(s, -1, false);
}

unsigned sampler_cut(const struct sampler *s)
{
	unsigned cut = 0;
	for (int hart = 0; s->plan && hart < s->machine.n_harts; hart++)
		cut |= s->plan[hart].cut;
	return cut;
}

const char *sampler_cut_says(const struct sampler *s)
{
	const unsigned cut = sampler_cut(s);
	bool summed = false;
	for (int hart = 0; hart < s->machine.n_harts; hart++)
		summed |= s->plan[hart].cut & CUT_BPF && s->plan[hart].summed;
	if (!summed)
		return cut_name(cut);
	return cut == CUT_BPF ? "bpf, as sums" : "bpf, as sums; others on some harts";
}

struct sampler *sampler_free(struct sampler *s)
{
	if (!s)
		return NULL;
	for (int hart = 0; s->plan && hart < s->machine.n_harts; hart++)
		hart_close(s, hart);
	switch_programs_free(s);
	exec_end(s);
	stream_table_clear(&s->streams);
	free(s->plan);
	free(s->found);
	free(s->ring);
	free(s->exec_ring);
	free(s->lost);
	free(s->lost_ahead);
	free(s->losses);
	free(s->presence);
	free(s->share);
	free((pid_t *)s->options.pids);
	free((char *)s->options.own_leader);
	free(s);
	return NULL;
}
