/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Sampling and storing fail independently. Without a store the walk goes on, for top and for clients' recordings, and
 * samples that cannot be stored are counted. Without a walk (no permission, say) requests fail with the reason. Each is
 * tried again every RETRY_NS, and each change logged once.
 */
#include "daemon/service/service.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "daemon/budget/overhead.h"
#include "daemon/jobs/schedules.h"
#include "daemon/service/debug_search.h"
#include "daemon/service/keeper.h"
#include "daemon/service/naming_news.h"
#include "daemon/session/listener.h"
#include "daemon/session/walk.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define SECOND_NS 1000000000u
#define RETRY_NS (10ull * SECOND_NS)
/* Losses are remembered this often, so that "the last minute" is 60 to 70 seconds. */
#define PAST_NS USAGE_TICK_NS
#define PASTS 7
/* Time between two sweeps, which cost about 20 ns for each task and frame; or this many new tasks, of half a KiB each. */
#define SWEEP_NS (60ull * SECOND_NS)
#define SWEEP_TASKS 8192u
/* After descriptors ran out: time until we try again what failed; time for which status reports the shortage. */
#define SHORT_PAUSE_NS (SECOND_NS / 10)
#define SHORT_SAID_NS (60ull * SECOND_NS)

/* Counts at one moment in the past. */
struct past {
	uint64_t at_ns;
	uint64_t taken, stored;
	uint64_t (*lost)[N_LOSSES];
};

struct service_inner {
	struct keeper *keeper;
	struct listener listener; /* for programs; fd -1: none */
	uint64_t next_try_ns, next_past_ns, next_sweep_ns, next_naming_ns;
	struct naming_said naming_said;
	struct debug_search debug_search;
	uint32_t tasks_swept, rate_before; /* after the last sweep; at the last look */
	struct past past[PASTS];           /* oldest first; at_ns 0: not filled yet */
	uint64_t (*lost)[N_LOSSES];
	int n_harts;
	uint64_t rate_lowered_ns, paused_until_ns;
	bool rate_was_lowered, was_troubled;
	uint64_t n_short, short_ns; /* descriptors: how often none was there, and when last */
	bool reported_refusal[MPERF_GRANTS_MAX];
};

static void __attribute__((format(printf, 3, 4))) say(
	const struct service *s, int level, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	s->o.say(s->o.userdata, level, text);
}

/* --- programs that count themselves ----------------------------------------------------------- */

static struct feed_limits feed_limits_of(const struct conf *c)
{
	return (struct feed_limits){
		.programs_max = c->feed_programs_max,
		.programs_per_user_max = c->feed_programs_per_user_max,
		.program_bytes_max = c->feed_program_bytes_max,
		.bytes_max = c->feed_bytes_max,
		.period_ms = (uint32_t)(c->feed_period_ns / 1000000),
	};
}

/* Without the socket, counts of programs are not received; everything else continues. */
static int open_listener(struct service *s)
{
	struct listener *l = &s->inner->listener;
	struct listener_error error = {"", ""};
	l->fd = -1;
	if (!s->o.listen)
		return 0;
	int r = s->o.feed_fd >= 0 ? listener_adopt(l, LISTENER_FEED, s->o.feed_fd, &error)
				  : listener_bind(l, LISTENER_FEED, s->o.conf->feed_path, &error);
	if (r == -ENOMEM || r == 0)
		return r;
	snprintf(s->feed_trouble, sizeof(s->feed_trouble), "%s", r > 0 ? error.text : strerror(-r));
	say(s, LOG_WARNING, "instrumented programs cannot reach mperfd: %s%s%s", s->feed_trouble,
		*error.remedy ? ". " : "", error.remedy);
	return 0;
}

static int listen_to_programs(struct service *s)
{
	struct feed_limits limits = feed_limits_of(s->o.conf);
	int fd = s->inner->listener.fd;
	struct event_error error;
	const char *events = s->o.conf->region_events;
	int r = fd >= 0 ? walk_listen(s->walk, fd, &limits, events, &error) : 0;
	if (r == WALK_NO_GRANTS)
		say(s, LOG_WARNING,
			"nothing is counted in regions, since region-events is '%s': %s", events,
			error.text);
	memset(s->inner->reported_refusal, 0, sizeof(s->inner->reported_refusal));
	return r < 0 ? r : 0;
}

/* Log each event that a thread was refused, once. */
static void tell_refusals(struct service *s)
{
	for (unsigned i = 0; s->walk && i < s->walk->grants.n_events; i++) {
		const struct grant_event *e = &s->walk->grants.event[i];
		if (!*e->trouble || s->inner->reported_refusal[i])
			continue;
		s->inner->reported_refusal[i] = true;
		say(s, LOG_NOTICE, "%s is not counted in regions: %s", e->event.name, e->trouble);
	}
}

/* --- sampling --------------------------------------------------------------------------------- */

static int pasts_make(struct service_inner *in, int n_harts)
{
	in->n_harts = n_harts;
	in->lost = calloc((size_t)n_harts, sizeof(*in->lost));
	for (int i = 0; i < PASTS; i++) {
		in->past[i].lost = calloc((size_t)n_harts, sizeof(*in->past[i].lost));
		if (!in->past[i].lost)
			return -ENOMEM;
	}
	return in->lost ? 0 : -ENOMEM;
}

/* Rate by which rings are sized: samples between two drains at the highest rate. They have room for twice as many. */
static uint32_t ring_rate(const struct conf *c)
{
	uint32_t hz = c->rate_max / (uint32_t)(SECOND_NS / WALK_DRAIN_NS);
	return hz > c->rate ? hz : c->rate;
}

static int walk_begin(struct service *s)
{
	const struct conf *c = s->o.conf;
	/* conf/conf.c accepted it */
	(void)label_variables_parse(c->job_environment, &s->variables);
	struct walk_options o = {
		.sampler =
			{
				.hz = service_rate(s),
				.ring_hz = ring_rate(c),
				.stacks = c->callers == CONF_CALLERS_TABLES ? SAMPLER_STACKS_DWARF
					  : c->callers == CONF_CALLERS_FP   ? SAMPLER_STACKS_FP
									    : SAMPLER_STACKS_NONE,
				.stack_bytes = SERVICE_STACK_BYTES,
				.may_copy_more = true,
				.switches = s->o.switches,
				.always = true,
				.cores = s->o.cores,
			},
		.all = true,
		.always = true,
		.offcpu_ppm = c->waiting ? OFFCPU_ALWAYS_PPM : 0,
		.namer = s->o.namer,
		.graves = s->o.graves,
		.starts = s->o.starts,
		.variables = &s->variables,
		.reader = s->o.reader,
	};
	struct event_error error = {""};
	int r = walk_new(&o, &s->walk, &error);
	if (r == 0) {
		*s->trouble = '\0';
		s->inner->rate_before = s->walk->sampler->hz;
		r = s->inner->lost ? 0 : pasts_make(s->inner, s->walk->sampler->machine.n_harts);
		if (r == 0)
			r = listen_to_programs(s);
		if (r < 0)
			s->walk = walk_free(s->walk); /* all of it is tried again */
		return r;
	}
	if (r == -ENOMEM)
		return r;
	char before[sizeof(s->trouble)];
	memcpy(before, s->trouble, sizeof(before));
	snprintf(s->trouble, sizeof(s->trouble), "%s",
		r > 0          ? error.text
		: r == -ENOENT ? "mperf-namer was not found beside mperfd"
			       : strerror(-r));
	snprintf(s->store_trouble, sizeof(s->store_trouble), "nothing can be sampled");
	if (strcmp(before, s->trouble) != 0)
		say(s, LOG_ERR, "nothing can be sampled: %s; trying again every %llu s", s->trouble,
			(unsigned long long)(RETRY_NS / SECOND_NS));
	return 0;
}

/* Log that the rate changed: the kernel lowers its limit if sampling takes too long, and we follow. */
static void notice_rate(struct service *s)
{
	struct service_inner *in = s->inner;
	const struct sampler *p = s->walk->sampler;
	if (!p->rate_lowered && in->rate_was_lowered)
		say(s, LOG_NOTICE, "sampling at %u Hz again", p->hz);
	in->rate_was_lowered = p->rate_lowered;
	if (p->rate_lowered && p->hz != in->rate_before) {
		in->rate_lowered_ns = clock_ns(CLOCK_REALTIME);
		say(s, LOG_WARNING,
			"sampling at %u Hz instead of %u: the kernel throttles more "
			"(kernel.perf_event_max_sample_rate is %u)",
			p->hz, p->options.hz, p->machine.max_sample_rate);
	}
	in->rate_before = p->hz;
}

/* Log news of the namer, and have it look for debug files that were installed, once a second. */
static int tend_naming(struct service *s, uint64_t now_ns)
{
	struct service_inner *in = s->inner;
	struct namer_status status;
	char text[512];
	if (now_ns < in->next_naming_ns)
		return 0;
	in->next_naming_ns = now_ns + SECOND_NS;
	namer_status(s->walk->namer, &status);
	int level = naming_news(&in->naming_said, &status, now_ns, text, sizeof(text));
	if (level != NAMING_NO_NEWS)
		say(s, level, "%s", text);
	int r = debug_search_tend(
		&in->debug_search, s->o.conf, s->walk->namer, now_ns, text, sizeof(text));
	if (*text)
		say(s, LOG_WARNING, "%s", text);
	return r;
}

/* Log that busy harts deliver no samples, and that they do again. */
static void notice_trouble(struct service *s)
{
	const char *says = walk_trouble(s->walk);
	if (!*says != !s->inner->was_troubled)
		say(s, *says ? LOG_WARNING : LOG_NOTICE, "%s",
			*says ? says : "all busy harts deliver samples again");
	s->inner->was_troubled = *says;
}

/* --- descriptors ------------------------------------------------------------------------------ */

void service_ran_short(struct service *s, int error, uint64_t now_ns)
{
	struct service_inner *in = s->inner;
	bool said = *s->short_trouble != '\0';
	in->n_short++;
	in->short_ns = now_ns;
	snprintf(s->short_trouble, sizeof(s->short_trouble),
		"descriptors ran out (%s), %llu times so far; what failed is tried again",
		strerror(error), (unsigned long long)in->n_short);
	if (!said)
		say(s, LOG_WARNING, "%s. Raise %s", s->short_trouble,
			error == ENFILE ? "the sysctl fs.file-max."
					: "LimitNOFILE= of the unit (ulimit -n).");
}

static void notice_descriptors(struct service *s, uint64_t now_ns)
{
	if (!*s->short_trouble || now_ns < s->inner->short_ns + SHORT_SAID_NS)
		return;
	*s->short_trouble = '\0';
	say(s, LOG_NOTICE, "descriptors are available again");
}

/* No part of the service ends because descriptors ran out: it pauses for a moment and continues. */
static int outlive_shortage(struct service *s, int r, uint64_t now_ns)
{
	if (r != -EMFILE && r != -ENFILE)
		return r;
	service_ran_short(s, -r, now_ns);
	s->inner->paused_until_ns = now_ns + SHORT_PAUSE_NS;
	return 0;
}

/* --- counting --------------------------------------------------------------------------------- */

static uint64_t add_samples(uint64_t (*lost)[N_LOSSES], int n_harts)
{
	uint64_t n = 0;
	for (int hart = 0; hart < n_harts; hart++)
		for (int cause = 0; cause < N_LOSSES; cause++)
			n += loss_kinds[cause].samples ? lost[hart][cause] : 0;
	return n;
}

/* All losses so far: the walk's and the keeper's. */
static void sum_losses(const struct service *s)
{
	const struct service_inner *in = s->inner;
	uint64_t(*kept)[N_LOSSES] = in->keeper ? keeper_lost(in->keeper) : NULL;
	for (int hart = 0; hart < in->n_harts; hart++)
		for (int cause = 0; cause < N_LOSSES; cause++)
			in->lost[hart][cause] =
				(s->walk ? s->walk->sampler->lost[hart][cause] : 0) +
				(kept ? kept[hart][cause] : 0);
}

void service_account(const struct service *s, struct service_account *ret_account)
{
	const struct service_inner *in = s->inner;
	*ret_account = (struct service_account){.rate_wanted = service_rate(s)};
	if (!s->walk || !in->lost)
		return;
	sum_losses(s);
	struct service_account a = {
		/* samples lost before they left the rings were still taken by the kernel */
		.taken = s->walk->n_taken + add_samples(s->walk->sampler->lost, in->n_harts),
		.lost = in->lost,
		.n_harts = in->n_harts,
		.rate = s->walk->sampler->hz,
		.rate_wanted = s->walk->sampler->options.hz,
		.rate_lowered_ns = in->rate_lowered_ns,
	};
	struct keeper_samples samples = {0};
	if (in->keeper)
		keeper_account(in->keeper, &samples);
	a.stored = samples.stored;
	a.in_hand = samples.in_hand;
	a.taken -= samples.passed;
	const struct past *past = in->past;
	for (int i = 0; i < PASTS && past->at_ns == 0; i++)
		past = &in->past[i];
	a.lost_before = past->lost;
	a.taken_before = past->taken;
	a.stored_before = past->stored;
	a.minute_ns = clock_ns(CLOCK_MONOTONIC) - (past->at_ns ? past->at_ns : s->started_ns);
	*ret_account = a;
}

static void remember(struct service *s, uint64_t now_ns)
{
	struct service_inner *in = s->inner;
	struct service_account a;
	usage_tick(&s->usage, s->walk->namer, walk_offcpu(s->walk, NULL).pid, now_ns);
	service_account(s, &a);
	if (!a.lost)
		return;
	struct past oldest = in->past[0];
	memmove(in->past, in->past + 1, (PASTS - 1) * sizeof(*in->past));
	oldest.at_ns = now_ns;
	oldest.taken = a.taken;
	oldest.stored = a.stored;
	memcpy(oldest.lost, a.lost, (size_t)in->n_harts * sizeof(*a.lost));
	in->past[PASTS - 1] = oldest;
}

/* --- life ------------------------------------------------------------------------------------- */

static void take_report(void *owner, struct store *store, const char *trouble)
{
	struct service *s = owner;
	s->store = store;
	snprintf(s->store_trouble, sizeof(s->store_trouble), "%s", trouble);
}

static int try_again(struct service *s, uint64_t now_ns)
{
	struct service_inner *in = s->inner;
	in->next_try_ns = now_ns + RETRY_NS;
	int r = s->walk ? 0 : walk_begin(s);
	if (r < 0 || !s->walk || in->keeper)
		return r;
	struct keeper_options o = {
		.conf = s->o.conf,
		.walk = s->walk,
		.report = take_report,
		.owner = s,
		.say = s->o.say,
		.userdata = s->o.userdata,
	};
	r = keeper_new(&o, &in->keeper);
	/* last, so that every sample has a consumer */
	return r == 0 ? walk_start(s->walk, NULL, 0) : r;
}

int service_new(const struct service_options *o, struct service **ret_service)
{
	struct service *s = calloc(1, sizeof(*s));
	struct service_inner *in = calloc(1, sizeof(*in));
	if (!s || !in) {
		free(s);
		free(in);
		return -ENOMEM;
	}
	s->o = *o;
	s->inner = in;
	s->started_ns = clock_ns(CLOCK_MONOTONIC);
	debug_search_begin(&in->debug_search);
	const struct overhead_options spend = {
		.kernel = &kernel_real,
		.conf = o->conf,
		.say = o->say,
		.userdata = o->userdata,
	};
	int r = open_listener(s);
	if (r == 0)
		r = overhead_new(&spend, &s->overhead);
	if (r == 0)
		r = try_again(s, s->started_ns);
	if (r == 0) /* its log is in the store's folder */
		r = service_make_schedules(s);
	if (r < 0) {
		service_free(s);
		return r;
	}
	in->next_past_ns = s->started_ns + PAST_NS;
	*ret_service = s;
	return 0;
}

size_t service_fds(const struct service *s, struct pollfd *fds, size_t n)
{
	if (s->inner->paused_until_ns)
		return 0;
	size_t filled = s->walk ? walk_fds(s->walk, fds, n) : 0;
	if (s->inner->keeper)
		filled += keeper_fds(s->inner->keeper, fds + filled, n - filled);
	return filled;
}

uint64_t service_deadline_ns(const struct service *s)
{
	if (s->inner->paused_until_ns)
		return s->inner->paused_until_ns;
	/* Tasks that are due once a second or less often run at the next drain: no round for that. */
	uint64_t walk = s->walk ? walk_deadline_ns(s->walk) : UINT64_MAX;
	walk = overhead_deadline_ns(s->overhead, walk);
	uint64_t schedules = s->schedules ? schedules_deadline_ns(s->schedules) : UINT64_MAX;
	walk = schedules < walk ? schedules : walk;
	if (s->walk && s->inner->keeper)
		return keeper_has_more(s->inner->keeper) ? 0 : walk;
	return walk < s->inner->next_try_ns ? walk : s->inner->next_try_ns;
}

static uint32_t count_tasks(const struct task_table *t)
{
	return t->n_tasks - t->n_free;
}

static int sweep(struct service *s, uint64_t now_ns)
{
	struct service_inner *in = s->inner;
	uint32_t n_tasks = count_tasks(&s->walk->tasks);
	if (now_ns < in->next_sweep_ns && n_tasks < in->tasks_swept + SWEEP_TASKS)
		return 0;
	int r = walk_sweep(s->walk);
	in->next_sweep_ns = now_ns + SWEEP_NS;
	in->tasks_swept = count_tasks(&s->walk->tasks);
	return r;
}

/* Called once for each tick that asked for it. */
static void notice_tick(struct service *s, uint64_t now_ns)
{
	int *short_of = &s->walk->sampler->short_of;
	if (*short_of)
		service_ran_short(s, *short_of, now_ns);
	*short_of = 0;
}

static int write_samples(struct service *s, uint64_t now_ns)
{
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int r = keeper_dispatch(s->inner->keeper, now_ns);
	s->overhead->writing_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	return r;
}

static int dispatch(struct service *s, uint64_t now_ns)
{
	struct service_inner *in = s->inner;
	if ((!s->walk || !in->keeper) && now_ns >= in->next_try_ns)
		return try_again(s, now_ns);
	if (!s->walk)
		return 0;
	int r = walk_dispatch(s->walk, now_ns);
	if (r < 0)
		return r;
	r = service_keep_budget(s, in->keeper, now_ns);
	if (r == 0)
		r = service_tend_groups(s, in->keeper, now_ns);
	if (r == 0)
		r = tend_naming(s, now_ns);
	notice_rate(s);
	notice_tick(s, now_ns);
	notice_trouble(s);
	if (r == 0 && in->keeper)
		r = write_samples(s, now_ns);
	if (r == 0 && s->schedules)
		r = schedules_dispatch(s->schedules, s->walk, now_ns);
	if (r == 0)
		r = sweep(s, now_ns);
	if (now_ns >= in->next_past_ns) {
		in->next_past_ns = now_ns + PAST_NS;
		remember(s, now_ns);
		tell_refusals(s);
	}
	return r;
}

int service_dispatch(struct service *s, uint64_t now_ns)
{
	struct service_inner *in = s->inner;
	if (now_ns < in->paused_until_ns)
		return 0;
	in->paused_until_ns = 0;
	notice_descriptors(s, now_ns);
	return outlive_shortage(s, dispatch(s, now_ns), now_ns);
}

void service_stop(struct service *s)
{
	if (s->schedules)
		schedules_stop(s->schedules);
	if (s->inner->keeper)
		keeper_stop(s->inner->keeper);
}

int service_reload(struct service *s)
{
	int r = service_follow_rates(s);
	struct feed_limits limits = feed_limits_of(s->o.conf);
	service_close_groups(s, s->inner->keeper); /* formulas may have changed, too */
	if (s->walk && s->walk->feed)
		feed_set_limits(s->walk->feed, &limits);
	if (r == 0 && s->walk)
		r = namer_look_for_debug(s->walk->namer, true);
	if (r == 0 && s->inner->keeper)
		r = keeper_reload(s->inner->keeper);
	if (r == 0 && s->schedules)
		r = schedules_reload(s->schedules, s->walk);
	return outlive_shortage(s, r, clock_ns(CLOCK_MONOTONIC));
}

int service_select(struct service *s, int64_t since_ns, int64_t until_ns, enum tier coarsest,
	struct store_part **ret_part, size_t *ret_n_parts)
{
	if (s->inner->keeper)
		return keeper_select(
			s->inner->keeper, since_ns, until_ns, coarsest, ret_part, ret_n_parts);
	*ret_part = NULL;
	*ret_n_parts = 0;
	return 0;
}

struct pinner *service_pinner(const struct service *s)
{
	return s->inner->keeper ? keeper_pinner(s->inner->keeper) : NULL;
}

const struct shares *service_shares(const struct service *s)
{
	return s->inner->keeper ? keeper_shares(s->inner->keeper) : NULL;
}

bool service_is_writing(const struct service *s)
{
	return s->inner->keeper && keeper_is_writing(s->inner->keeper);
}

uint64_t service_fresh_ns(const struct service *s)
{
	return s->inner->keeper ? keeper_fresh_ns(s->inner->keeper) : 0;
}

struct service *service_free(struct service *s)
{
	if (!s)
		return NULL;
	struct service_inner *in = s->inner;
	schedules_free(s->schedules, s->walk);
	keeper_free(in->keeper);
	hart_counts_free(s->groups.counts);
	walk_free(s->walk);
	listener_clear(&in->listener);
	debug_search_end(&in->debug_search);
	overhead_free(s->overhead);
	for (int i = 0; i < PASTS; i++)
		free(in->past[i].lost);
	free(in->lost);
	rate_requests_clear(&s->rate_requests);
	free(in);
	free(s);
	return NULL;
}
