/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counters of harts that go offline are dead, and those of harts that come do not exist: whenever the set
 * changes they are opened again. A segment names its events when it begins, so each change begins one.
 *
 * They are not pinned, as what samples is (sampler/priority.c). Its rule would hardly ever allow it: slots and
 * shares are one counter each, and most trees take more than half of the others. Without a pin they are flexible
 * events of harts, which the kernel puts on counters before those of tasks, and lets take turns with those of other
 * clients of ours: their part of the time gets smaller, and is stored with each count. Only pinned events of
 * other programs can leave them none; then the answer names those that never had a counter.
 * Source: ctx_resched and perf_rotate_context in kernel/events/core.c of Linux 6.12.
 */
#include "daemon/service/service_groups.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "daemon/budget/overhead.h"
#include "daemon/service/keeper.h"
#include "daemon/service/service.h"

#define TRY_AGAIN_NS                                                                               \
	60000000000ull /* retry refused events after this time, since another profiler
				     * may end */

/* Limit of descriptors for all groups: the unit allows 65,536, of which samples need a few for each
 * hart. */
#define GROUP_FDS_MAX 16384

static bool is_wanted(const struct service *s, const struct keeper *k)
{
	return strcmp(s->o.conf->topdown_groups, "none") != 0 && k &&
	       !s->overhead->governor.effort.no_groups && !s->pause.who;
}

static bool is_outdated(const struct service *s)
{
	const struct service_groups *g = &s->groups;
	return strcmp(g->text, s->o.conf->topdown_groups) != 0 ||
	       memcmp(hart_counts_harts(g->counts), &s->walk->sampler->seen,
		       sizeof(struct hart_set)) != 0;
}

void service_close_groups(struct service *s, struct keeper *k)
{
	struct service_groups *g = &s->groups;
	g->next_try_ns = 0;
	s->overhead->groups_part = s->overhead->groups_price = 0;
	if (!g->counts)
		return;
	keeper_count(k, NULL);
	keeper_renew(k);
	g->counts = hart_counts_free(g->counts);
}

/* Each reason is said once. */
static void say_trouble(struct service *s, const char *why)
{
	struct service_groups *g = &s->groups;
	char text[sizeof(g->trouble) + CONF_TEXT_BYTES + 64];
	if (strcmp(g->trouble, why) == 0)
		return;
	snprintf(g->trouble, sizeof(g->trouble), "%.639s", why);
	if (!*why)
		return;
	snprintf(text, sizeof(text), "topdown-groups = %s is not counted: %.639s",
		s->o.conf->topdown_groups, why);
	s->o.say(s->o.userdata, LOG_WARNING, text);
}

static int open_groups(struct service *s, struct keeper *k, uint64_t now_ns)
{
	struct service_groups *g = &s->groups;
	struct machine machine = s->walk->sampler->machine;
	struct event_error error = {""};
	machine.online = s->walk->sampler->seen;
	const struct hart_counts_options o = {
		.kernel = s->walk->sampler->kernel,
		.machine = &machine,
		.cores = s->o.cores,
		.groups = s->o.conf->topdown_groups,
		.fds_max = GROUP_FDS_MAX,
		.serial = ++g->serial,
	};
	g->next_try_ns = now_ns + TRY_AGAIN_NS;
	int r = hart_counts_new(&o, &g->counts, &error);
	if (r == -ENOMEM)
		return r;
	say_trouble(s, r == 0 ? "" : r > 0 ? error.text : strerror(-r));
	if (r != 0)
		return 0;
	snprintf(g->text, sizeof(g->text), "%s", s->o.conf->topdown_groups);
	g->price = hart_counts_part(g->counts);
	keeper_count(k, g->counts);
	keeper_renew(k);
	return 0;
}

int service_tend_groups(struct service *s, struct keeper *k, uint64_t now_ns)
{
	struct service_groups *g = &s->groups;
	int r = 0;
	if (g->counts && (!is_wanted(s, k) || is_outdated(s)))
		service_close_groups(s, k);
	if (!g->counts && is_wanted(s, k) && now_ns >= g->next_try_ns)
		r = open_groups(s, k, now_ns);
	bool is_off = strcmp(s->o.conf->topdown_groups, "none") == 0;
	s->overhead->groups_part = g->counts ? g->price : 0;
	s->overhead->groups_price = is_off || *g->trouble ? 0 : g->price;
	if (is_off)
		g->trouble[0] = '\0';
	return r;
}
