/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The current rate: the highest that always-on sampling, clients and schedules request. Schedules
 * make requests like clients, with the budget of mperf.conf. */

#include "daemon/budget/overhead.h"
#include "daemon/jobs/schedules.h"
#include "daemon/service/keeper.h"
#include "daemon/service/service.h"
#include "daemon/session/raises.h"
#include "daemon/session/walk.h"

uint32_t service_rate(const struct service *s)
{
	uint32_t always = s->pause.who ? PAUSE_HZ : overhead_rate(s->overhead);
	uint32_t hz = rate_requests_highest(&s->rate_requests, always);
	return hz > s->o.conf->rate_max ? s->o.conf->rate_max : hz;
}

/* Raise the rate of a user's tasks, if it is higher than that of the whole system. */
static void follow_user(struct service *s, uid_t uid)
{
	uint32_t hz = rate_requests_highest_for(&s->rate_requests, uid);
	hz = hz > s->o.conf->rate_max ? s->o.conf->rate_max : hz;
	/* beyond RAISES_MAX no rate is raised, and answers say so */
	/* events of their own for each task are not worth a tenth more samples */
	(void)raises_want(s->walk, uid, hz > service_rate(s) + service_rate(s) / 10 ? hz : 0);
}

int service_follow_rates(struct service *s)
{
	if (!s->walk)
		return 0;
	for (size_t i = 0; i < s->rate_requests.n; i++)
		if (s->rate_requests.request[i].uid != (uid_t)-1)
			follow_user(s, s->rate_requests.request[i].uid);
	return walk_set_rate(s->walk, service_rate(s));
}

int service_want_rate(
	struct service *s, const void *who, uid_t uid, uint32_t hz, uint32_t overhead_ppm)
{
	int r = rate_requests_set(&s->rate_requests, who, &uid, hz, overhead_ppm);
	if (r == 0 && s->walk && uid != (uid_t)-1)
		follow_user(s, uid);
	return r == 0 ? service_follow_rates(s) : r;
}

const struct overhead_held *service_held(const struct service *s, const void *who)
{
	return rate_requests_held(&s->rate_requests, who);
}

/* Work that our processes put off: none while clients wait for samples, and no names for a job that is to be pinned. While a
 * file is to be sealed names have the whole budget: it waits for two minutes, and then goes without the rest, which has
 * the fewest samples. */
static void put_off(struct service *s, struct keeper *k, bool unusual)
{
	const struct measures *m = &s->overhead->measures;
	bool names = m->taken[MEASURE_NAMES] && !unusual && !(k && keeper_awaits_pin(k));
	double share = names ? overhead_naming_share(s->overhead) : 0;
	namer_pace(s->walk->namer, k && keeper_any_ending(k) ? share * MEASURES_NAMES_PART : share);
	walk_put_off_execs(s->walk, m->taken[MEASURE_ARGUMENTS] && !unusual);
	walk_put_off_looks(s->walk, m->taken[MEASURE_LOOKS] && !unusual);
	if (k)
		keeper_flush_every(
			k, m->taken[MEASURE_FLUSHES] && !unusual ? MEASURES_FLUSH_NS : 0);
}

/* If the rate or the events change, a new segment begins, since a segment names them for all of its time. */
int service_keep_budget(struct service *s, struct keeper *k, uint64_t now_ns)
{
	const struct pause *p = &s->pause;
	bool unusual = s->rate_requests.n > 0 || p->who || p->changed;
	int r = overhead_dispatch(s->overhead, s->walk, unusual, now_ns);
	if (r < 0)
		return r;
	put_off(s, k, unusual);
	bool renew = service_look_at_pause(s, now_ns) || r == OVERHEAD_STEPPED;
	if (renew)
		keeper_renew(k);
	bool changed = rate_requests_hold(&s->rate_requests, s->overhead, now_ns) || renew;
	return changed ? service_follow_rates(s) : 0;
}

/* --- schedules -------------------------------------------------------------------------------- */

static int want_rate(void *owner, const void *who, uint32_t hz, uint32_t overhead_ppm)
{
	return service_want_rate(owner, who, (uid_t)-1, hz, overhead_ppm);
}

static const struct overhead_held *held(void *owner, const void *who)
{
	return service_held(owner, who);
}

int service_make_schedules(struct service *s)
{
	const struct schedules_options o = {
		.folder = s->o.schedules,
		.conf = s->o.conf,
		.overhead = s->overhead,
		.want_rate = want_rate,
		.held = held,
		.owner = s,
		.say = s->o.say,
		.userdata = s->o.userdata,
	};
	return o.folder ? schedules_new(&o, &s->schedules) : 0;
}

int service_job_began(struct service *s, pid_t pid, uint64_t now_ns)
{
	return s->schedules && s->walk ? schedules_job_began(s->schedules, s->walk, pid, now_ns)
				       : 0;
}
