/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The current rate: the highest that always-on sampling, clients and schedules request. Schedules
 * make requests like clients, with the budget of mperf.conf. */

#include "daemon/budget/overhead.h"
#include "daemon/jobs/schedules.h"
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
	(void)raises_want(s->walk, uid, hz > service_rate(s) ? hz : 0);
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
