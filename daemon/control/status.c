/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * status: the samples that the service takes, stores and loses, and its cost. The answer names no
 * user, so anyone may ask. If naming is paused for some users, each sees only their own entry.
 * Samples add up: taken = stored + in hand + lost, as far as a cause counts samples.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/answer/row.h"
#include "daemon/budget/overhead.h"
#include "daemon/budget/usage.h"
#include "daemon/conf/conf.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/sampler/effort.h"
#include "daemon/service/roofs_kept.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"
#include "proto/syntax/unit.h"

#define DAY_NS (86400ll * 1000000000ll)

struct status {
	const struct service *service;
	const struct peer *peer;
	const struct answer *to;
	struct service_account account;
	uint64_t now_ns;
};

/* --- samples ---------------------------------------------------------------------------------- */

static uint64_t lost_samples(uint64_t (*lost)[N_LOSSES], int n_harts)
{
	uint64_t n = 0;
	for (int hart = 0; lost && hart < n_harts; hart++)
		for (int cause = 0; cause < N_LOSSES; cause++)
			n += loss_kinds[cause].samples ? lost[hart][cause] : 0;
	return n;
}

#define ACCOUNT_TABLE(COLUMN, KNOWN_IF)                                                            \
	COLUMN(period, "Period", text, p->says)                                                    \
	COLUMN(duration_ns, "Over", ns, p->ns)                                                     \
	COLUMN(taken, "Taken", count, p->taken)                                                    \
	COLUMN(stored, "Stored", count, p->stored)                                                 \
	KNOWN_IF(in_hand, "In hand", count, p->is_whole, s->account.in_hand)                       \
	COLUMN(lost, "Lost", count, p->lost)

struct period {
	const char *says;
	bool is_whole;
	uint64_t ns, taken, stored, lost;
};

static int tell_account(const struct status *s)
{
	const struct service_account *a = &s->account;
	const uint64_t lost = lost_samples(a->lost, a->n_harts);
	const struct period periods[] = {
		{"since start", true, s->now_ns - s->service->started_ns, a->taken, a->stored,
			lost},
		{"last minute", false, a->minute_ns, a->taken - a->taken_before,
			a->stored - a->stored_before,
			lost - lost_samples(a->lost_before, a->n_harts)},
	};
	const struct period *p = periods;
	int r = TABLE_BEGIN(s->to, "account", ACCOUNT_TABLE);
	for (; p < periods + (a->minute_ns ? 2 : 1) && r == 0; p++)
		r = TABLE_ROW(s->to, ACCOUNT_TABLE);
	return r;
}

/* Share on the hart that had counters for the least time; NAN where no hart has counters. */
static double counted_share(const struct service *service)
{
	const struct sampler *p = service->walk ? service->walk->sampler : NULL;
	double least = 1;
	bool any = false;
	for (int hart = 0; p && hart < p->machine.n_harts; hart++) {
		any |= sampler_has_counters(p, hart);
		double share = sampler_counted_share(p, hart);
		least = share < least ? share : least;
	}
	return any ? least : NAN;
}

/* Harts that sample without counters, since other programs use these: the reason of the first. */
static const char *yield_trouble(const struct service *service, char *text, size_t n)
{
	const struct sampler *p = service->walk ? service->walk->sampler : NULL;
	struct hart_set harts = {0};
	char says[64];
	int first = -1;
	for (int hart = 0; p && hart < p->machine.n_harts; hart++) {
		if (!p->plan[hart].yields)
			continue;
		hart_set_add(&harts, hart);
		first = first < 0 ? hart : first;
	}
	if (first < 0)
		return "";
	hart_set_says(&harts, says, sizeof(says));
	snprintf(text, n, "harts %s: %s", says, p->plan[first].reason);
	return text;
}

#define RATE_TABLE(COLUMN, KNOWN_IF)                                                               \
	KNOWN_IF(hz, "Rate", hz, a->rate, a->rate)                                                 \
	COLUMN(wanted_hz, "Wanted", hz, a->rate_wanted)                                            \
	COLUMN(lowered, "Last lowered", time, a->rate_lowered_ns)                                  \
	COLUMN(counted_share, "Counters active", share, counted_share(service))                    \
	KNOWN_IF(switches, "Switches", text, *switches, switches)                                  \
	COLUMN(waiting, "Threads that wait", text, waiting)                                        \
	KNOWN_IF(trouble, "Trouble", text, *trouble, trouble)

/* How often threads that wait are looked for, or why they are not. */
static void say_waiting(const struct service *service, char *text, size_t n)
{
	int error = 0;
	const struct offcpu_looks_state looks =
		service->walk ? walk_offcpu(service->walk, &error) : (struct offcpu_looks_state){0};
	char every[UNIT_TEXT_BYTES];
	if (error == ENOMEM)
		snprintf(text, n, "off: the machine has too little memory");
	else if (error)
		snprintf(text, n,
			"off: BPF cannot be loaded (%s); it needs Linux 5.18 with BTF, CAP_BPF and "
			"CAP_PERFMON. Recordings of processes follow their switches",
			strerror(error));
	else if (looks.has_ended)
		snprintf(text, n, "off: sampling them failed too often; restart mperfd");
	else if (looks.interval_ns == 0)
		snprintf(text, n, "off: waiting = no in mperf.conf, or nothing is sampled");
	else {
		unit_text(MPERF__UNIT__UNIT_NS, (double)looks.interval_ns, every);
		snprintf(text, n, "sampled every %s; %llu looks, %llu failed, %llu incomplete",
			every, (unsigned long long)looks.n_looks,
			(unsigned long long)looks.n_broken, (unsigned long long)looks.n_cut);
	}
}

static int tell_rate(const struct status *s)
{
	char yields[EVENT_ERROR_BYTES + 80];
	const struct service_account *a = &s->account;
	const struct service *service = s->service;
	const char *trouble = service->walk ? walk_trouble(service->walk) : "";
	const char *switches = service->walk ? sampler_cut_says(service->walk->sampler) : "";
	char waiting[200];
	say_waiting(service, waiting, sizeof(waiting));
	if (!*trouble)
		trouble = *service->trouble ? service->trouble : service->short_trouble;
	if (!*trouble)
		trouble = yield_trouble(service, yields, sizeof(yields));
	return TABLE_OF_ONE(s->to, "rate", RATE_TABLE);
}

#define LOSS_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(hart, "Hart", number, hart)                                                         \
	COLUMN(cause, "Cause", text, loss_kinds[cause].name)                                       \
	COLUMN(count, "Since start", count, n)                                                     \
	COLUMN(minute, "Last minute", count, n - before)                                           \
	COLUMN(samples, "Sample missing", text, loss_kinds[cause].samples ? "yes" : "no")

static int tell_losses(const struct status *s)
{
	const struct service_account *a = &s->account;
	int r = TABLE_BEGIN(s->to, "loss", LOSS_TABLE);
	for (int hart = 0; a->lost && hart < a->n_harts && r == 0; hart++)
		for (int cause = 0; cause < N_LOSSES && r == 0; cause++) {
			uint64_t n = a->lost[hart][cause];
			uint64_t before = a->lost_before ? a->lost_before[hart][cause] : 0;
			if (n > 0 && cause != LOSS_COST)
				r = TABLE_ROW(s->to, LOSS_TABLE);
		}
	return r;
}

/* --- what it costs ---------------------------------------------------------------------------- */

#define PROCESS_TABLE(COLUMN, KNOWN_IF)                                                            \
	KNOWN_IF(pid, "PID", number, p->pid, p->pid)                                               \
	COLUMN(what, "Process", text, p->what)                                                     \
	COLUMN(cpu_ns, "CPU time", ns, p->cpu_ns)                                                  \
	KNOWN_IF(cpu_minute, "Of one CPU, last minute", share, p->minute_share >= 0,               \
		p->minute_share)                                                                   \
	KNOWN_IF(rss, "Memory", bytes, p->rss_bytes, p->rss_bytes)                                 \
	KNOWN_IF(peak, "Peak", bytes, p->peak_bytes, p->peak_bytes)

/* Its own, and last their sum. */
static int tell_processes(const struct status *s)
{
	struct usage_process process[USAGE_PROCESSES_MAX + 1];
	struct usage_process sum = {.what = "all"};
	const struct namer *namer = s->service->walk ? s->service->walk->namer : NULL;
	const pid_t looks = s->service->walk ? walk_offcpu(s->service->walk, NULL).pid : 0;
	size_t n = usage_read(&s->service->usage, namer, looks, s->now_ns, process);
	for (size_t i = 0; i < n; i++) {
		sum.cpu_ns += process[i].cpu_ns;
		if (process[i].minute_share < 0)
			sum.minute_share = -1;
		else if (sum.minute_share >= 0)
			sum.minute_share += process[i].minute_share;
		sum.rss_bytes += process[i].rss_bytes;
		sum.peak_bytes += process[i].peak_bytes;
	}
	process[n++] = sum;
	int r = TABLE_BEGIN(s->to, "process", PROCESS_TABLE);
	for (const struct usage_process *p = process; p < process + n && r == 0; p++)
		r = TABLE_ROW(s->to, PROCESS_TABLE);
	return r;
}

#define BUDGET_TABLE(COLUMN, KNOWN_IF)                                                             \
	KNOWN_IF(budget, "Budget per hart", share, h->o.conf->overhead_ppm,                        \
		h->o.conf->overhead_ppm / 1e6)                                                     \
	KNOWN_IF(spent, "Spent", share, spent >= 0, spent)                                         \
	COLUMN(step, "Step", number, h->governor.step)                                             \
	COLUMN(given_up, "Given up", text, *says ? says : "nothing")                               \
	KNOWN_IF(over, "Over", text, *over, over)                                                  \
	KNOWN_IF(reason, "Reason", text, *h->governor.reason, h->governor.reason)                  \
	KNOWN_IF(since_ns, "For", ns, h->governor.changed_ns, s->now_ns - h->governor.changed_ns)

/* The cost next to its budget. */
static int tell_budget(const struct status *s, const struct overhead_spent *now)
{
	const double spent = overhead_spent_of_budget(now);
	const struct overhead *h = s->service->overhead;
	char says[EFFORT_TEXT_BYTES + MEASURES_TEXT_BYTES + 2], put_off[MEASURES_TEXT_BYTES];
	char over[256];
	effort_says(&h->governor.effort, says);
	size_t n = strlen(says);
	measures_say(&h->measures, put_off);
	snprintf(says + n, sizeof(says) - n, "%s%s", n && *put_off ? ", " : "", put_off);
	overhead_says_over(h, now, over, sizeof(over));
	return TABLE_OF_ONE(s->to, "budget", BUDGET_TABLE);
}

#define OVERHEAD_TABLE(COLUMN, KNOWN_IF)                                                           \
	COLUMN(cause, "Cause", text, c->cause)                                                     \
	KNOWN_IF(per_second, "A second", count, c->per_second >= 0, c->per_second + 0.5)           \
	KNOWN_IF(each_ns, "Each", ns, c->each_ns >= 0, c->each_ns + 0.5)                           \
	KNOWN_IF(machine_share, "Of the machine", share, c->part >= 0, c->part)                    \
	KNOWN_IF(hart_share, "Of the busiest hart", share, c->hart >= 0, c->hart)                  \
	KNOWN_IF(part_of, "Part of", text, c->part_of, c->part_of)

/* A row of costs as shown: negative figures are not known. */
struct cost_row {
	const char *cause;
	double per_second, each_ns, part, hart;
	const char *part_of; /* cause that includes this one; NULL: none but all */
};

#define OWN_PROCESSES "mperfd and its namer"
#define CLIENTS "clients and programs"

/* The hart is not known. */
static struct cost_row sideband_row(
	const char *cause, const struct overhead_spent *s, enum task_work what)
{
	return (struct cost_row){cause, s->sideband[what].per_second, s->sideband[what].ns,
		s->sideband[what].part, -1, NULL};
}

/* CPU time of our processes, which run anywhere. */
static struct cost_row own_row(const char *cause, double part, const char *part_of)
{
	return (struct cost_row){cause, -1, -1, part, part, part_of};
}

static int tell_cost_rows(const struct status *s, const struct cost_row *rows, size_t n)
{
	int r = 0;
	for (const struct cost_row *c = rows; c < rows + n && r == 0; c++)
		r = TABLE_ROW(s->to, OVERHEAD_TABLE);
	return r;
}

/* Our own CPU time by what it is for. */
static int tell_own_costs(const struct status *s, const struct overhead_spent *now)
{
	struct cost_row rows[N_CAUSES + 3];
	size_t n = 0;
	rows[n++] = own_row(OWN_PROCESSES, now->own_part, NULL);
	for (int cause = 0; cause < N_CAUSES; cause++)
		if (cause != CAUSE_CLIENTS)
			rows[n++] = own_row(cause == CAUSE_SAMPLES ? "records of samples"
								   : cause_says((enum cause)cause),
				now->cause_part[cause], OWN_PROCESSES);
	rows[n++] = own_row(CLIENTS, now->clients_part, NULL);
	rows[n++] = own_row("naming for users", now->users_naming_part, CLIENTS);
	rows[n++] = own_row("queries and roll-ups", now->others_part, NULL);
	return tell_cost_rows(s, rows, n);
}

static int tell_costs(const struct status *s)
{
	struct overhead_spent now;
	overhead_spent(s->service->overhead, &now);
	int r = tell_budget(s, &now);
	if (r == 0)
		r = TABLE_BEGIN(s->to, "overhead", OVERHEAD_TABLE);
	if (r != 0 || now.own_part < 0)
		return r;
	const struct cost_row kernel[] = {
		{"samples", now.samples, now.sample_ns, now.samples_part, now.worst_samples_part,
			NULL},
		{"cuts at switches", now.switches, now.switch_ns, now.switches_part,
			now.worst_switches_part, NULL},
		own_row("turns of topdown-groups", now.groups_part, NULL),
		{"throttles", now.throttles, -1, -1, -1, NULL},
		sideband_row("forks", &now, TASK_FORK),
		sideband_row("execs", &now, TASK_EXEC),
		sideband_row("mappings", &now, TASK_MAPPING),
	};
	const struct cost_row all = {"all", -1, -1, now.all_part,
		now.own_part + now.clients_part + now.others_part + now.worst_samples_part +
			now.worst_switches_part + now.groups_part,
		NULL};
	r = tell_cost_rows(s, kernel, sizeof(kernel) / sizeof(*kernel));
	if (r == 0)
		r = tell_own_costs(s, &now);
	return r == 0 ? tell_cost_rows(s, &all, 1) : r;
}

#define LOOP_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(turns, "Turns", count, t->n_turns)                                                  \
	COLUMN(long, "Over 50 ms", count, t->n_long)                                               \
	COLUMN(longest_ns, "Longest", ns, t->longest_ns)                                           \
	COLUMN(lately_ns, "Lately", ns, loop_latency_lately_ns(t))

/* Report the time that rounds of the loop take, over all clients. */
static int tell_turns(const struct status *s)
{
	const struct loop_latency *t = &s->service->loop_latency;
	return TABLE_OF_ONE(s->to, "loop", LOOP_TABLE);
}

/* --- names ------------------------------------------------------------------------------------ */

#define NAMING_TABLE(COLUMN, KNOWN_IF)                                                             \
	COLUMN(state, "State", text, n.off ? "off: a worker does not start" : "on")                \
	COLUMN(waiting, "Waiting", count, n.n_waiting)                                             \
	COLUMN(named, "Named", count, n.n_named)                                                   \
	COLUMN(placed, "By place", count, n.n_placed)                                              \
	COLUMN(deaths, "Workers lost on files", count, n.n_deaths)                                 \
	COLUMN(faulty, "Files set aside", count, n.n_faulty)                                       \
	COLUMN(refused, "Users refused", count, n.n_refused)

#define WORKER_TABLE(COLUMN, KNOWN_IF)                                                             \
	COLUMN(worker, "Worker", text, i ? "parser" : "opener")                                    \
	KNOWN_IF(pid, "PID", number, w->pid, w->pid)                                               \
	COLUMN(state, "State", text, w->state)                                                     \
	COLUMN(restarts, "Restarts", count, w->restarts)                                           \
	KNOWN_IF(ended_ns, "Last ended", ns, w->ended_ns && w->ended_ns < s->now_ns,               \
		s->now_ns - w->ended_ns)                                                           \
	KNOWN_IF(again_ns, "Retried in", ns, w->start_ns > s->now_ns, w->start_ns - s->now_ns)     \
	KNOWN_IF(trouble, "Trouble", text, w->error, strerror(w->error))

#define REFUSED_TABLE(COLUMN, KNOWN_IF)                                                            \
	KNOWN_IF(uid, "UID", number, u->uid != (uid_t) - 1, u->uid)                                \
	COLUMN(what, "Not named", text, u->what)                                                   \
	COLUMN(deaths, "Workers lost", count, u->deaths)                                           \
	COLUMN(rest_ns, "For", ns, u->until_ns > s->now_ns ? u->until_ns - s->now_ns : 0)

/* The service's own namer: recordings with a walk of their own have another. If it is paused for
 * some users, each sees only their own entry, unless the peer sees all. */
static int tell_naming(const struct status *s)
{
	const struct peer *p = s->peer;
	struct namer_status n;
	if (!s->service->walk)
		return 0;
	namer_status(s->service->walk->namer, &n);
	const struct namer_worker_status *const workers[] = {&n.opener, &n.parser};
	int r = TABLE_OF_ONE(s->to, "naming", NAMING_TABLE);
	if (r == 0)
		r = TABLE_BEGIN(s->to, "namer", WORKER_TABLE);
	for (int i = 0; i < 2 && r == 0; i++) {
		const struct namer_worker_status *w = workers[i];
		r = TABLE_ROW(s->to, WORKER_TABLE);
	}
	if (r == 0)
		r = TABLE_BEGIN(s->to, "naming_refused", REFUSED_TABLE);
	for (uint32_t i = 0; i < n.n_refused && i < NAMER_REFUSED_SHOWN_MAX && r == 0; i++) {
		const struct namer_refused *u = &n.refused[i];
		if (p->sees_all || u->uid == p->uid)
			r = TABLE_ROW(s->to, REFUSED_TABLE);
	}
	return r;
}

/* --- programs that count themselves ----------------------------------------------------------- */

#define FEED_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(path, "Socket", text, service->o.conf->feed_path)                                   \
	KNOWN_IF(programs, "Programs", count, feed, f.n_programs)                                  \
	COLUMN(accepted, "Since start", count, f.n_accepted)                                       \
	COLUMN(hung_up, "Disconnected", count, f.n_hung_up)                                        \
	COLUMN(rounds, "Rounds", count, f.n_rounds)                                                \
	COLUMN(loops, "Loops known", count, f.n_sites)                                             \
	COLUMN(bytes, "Memory", bytes, f.bytes)                                                    \
	KNOWN_IF(trouble, "Trouble", text, *trouble, trouble)

#define FAULT_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(cause, "Cause", text, feed_causes[cause].name)                                      \
	COLUMN(count, "Since start", count, f.causes[cause])                                       \
	COLUMN(effect, "Effect", text, effects[feed_causes[cause].severity])

/* Report the socket of programs. If it was inherited, its path is the unit's. */
static int tell_feed(const struct status *s)
{
	static const char *const effects[] = {
		[FEED_HANG_UP] = "disconnected",
		[FEED_PASS_OVER] = "skipped",
		[FEED_NOTE] = "noted",
	};
	const struct service *service = s->service;
	const struct feed *feed = service->walk ? service->walk->feed : NULL;
	struct feed_status f = {.causes = NULL};
	if (feed)
		feed_status(feed, &f);
	const char *trouble = *service->feed_trouble ? service->feed_trouble : service->trouble;
	int r = TABLE_OF_ONE(s->to, "feed", FEED_TABLE);
	if (r == 0)
		r = TABLE_BEGIN(s->to, "feed_fault", FAULT_TABLE);
	for (int cause = FEED_TAKEN + 1; f.causes && cause < N_FEED_CAUSES && r == 0; cause++)
		if (f.causes[cause] > 0)
			r = TABLE_ROW(s->to, FAULT_TABLE);
	return r;
}

#define GRANT_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(event, "In regions", text, e->event.name)                                           \
	COLUMN(granted, "Threads", count, e->n_granted)                                            \
	COLUMN(refused, "Refused", count, e->n_refused)                                            \
	KNOWN_IF(trouble, "Trouble", text, *e->trouble, e->trouble)

/* Report the events that threads of these programs are given to count in regions. */
static int tell_grants(const struct status *s)
{
	const struct walk *w = s->service->walk;
	int r = TABLE_BEGIN(s->to, "feed_event", GRANT_TABLE);
	for (unsigned i = 0; w && w->feed && i < w->grants.n_events && r == 0; i++) {
		const struct grant_event *e = &w->grants.event[i];
		r = TABLE_ROW(s->to, GRANT_TABLE);
	}
	return r;
}

/* --- what users share ------------------------------------------------------------------------- */

#define LIMIT_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(limit, "Shared by users", text, user_hold_name((enum user_hold)i))                  \
	KNOWN_IF(all, "Total", count, l->all != UINT64_MAX, l->all)                                \
	KNOWN_IF(held, "Held", count, s->peer->sees_all, l->held)                                  \
	COLUMN(own, "Yours", count, u->held[i])                                                    \
	KNOWN_IF(room, "You may take", count, l->all != UINT64_MAX,                                \
		u->held[i] + user_room(u, (enum user_hold)i))                                      \
	KNOWN_IF(refused, "Refused", count, s->peer->sees_all, l->n_refused)

/* Only peers that see all see the resources of other users. */
static int tell_limits(const struct status *s)
{
	const struct user *u = s->peer->user;
	int r = u ? TABLE_BEGIN(s->to, "limit", LIMIT_TABLE) : 0;
	for (int i = 0; u && i < N_USER_HOLDS && r == 0; i++) {
		const struct user_limit *l = &u->users->limit[i];
		r = TABLE_ROW(s->to, LIMIT_TABLE);
	}
	return r;
}

/* --- what is kept ----------------------------------------------------------------------------- */

/* Bytes of stored samples per minute, by the window files that began in the last day; NAN: there
 * are none. */
static double written_a_minute(const struct store *store, int64_t now_ns)
{
	double bytes = 0, minutes = 0;
	for (size_t i = 0; i < store->n_files; i++) {
		const struct store_file *f = &store->file[i];
		int64_t end_ns = f->end_ns ? f->end_ns : now_ns;
		if (f->corrupt || f->tier != TIER_WINDOW || f->start_ns < now_ns - DAY_NS ||
			end_ns <= f->start_ns)
			continue;
		bytes += (double)f->bytes;
		minutes += (double)(end_ns - f->start_ns) / 60e9;
	}
	return minutes > 0 ? bytes / minutes : NAN;
}

static int64_t oldest(const struct store *store)
{
	int64_t start_ns = 0;
	for (size_t i = 0; i < store->n_files; i++)
		if (!store->file[i].corrupt &&
			(start_ns == 0 || store->file[i].start_ns < start_ns))
			start_ns = store->file[i].start_ns;
	return start_ns;
}

#define STORE_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(path, "Path", text, c->store_path)                                                  \
	KNOWN_IF(bytes, "Used", bytes, store, store->bytes)                                        \
	COLUMN(budget, "Budget", bytes, c->budget_bytes)                                           \
	KNOWN_IF(free, "Free on disc", bytes, store, store->free_bytes)                            \
	KNOWN_IF(minute_bytes, "Written per minute", bytes, minute_bytes >= 0, minute_bytes)       \
	COLUMN(flush_ns, "Written every", ns, c->flush_ns)                                         \
	KNOWN_IF(oldest, "Since", time, store, oldest(store))                                      \
	KNOWN_IF(corrupt, "Set aside", count, store, store->n_corrupt)                             \
	KNOWN_IF(recovered, "Recovered", count, store, store->n_recovered)                         \
	KNOWN_IF(trouble, "Trouble", text, *trouble, trouble)

static int tell_store(const struct status *s)
{
	const struct conf *c = s->service->o.conf;
	const struct store *store = s->service->store;
	const char *trouble = s->service->store_trouble;
	const double minute_bytes =
		store ? written_a_minute(store, (int64_t)clock_ns(CLOCK_REALTIME)) : NAN;
	return TABLE_OF_ONE(s->to, "store", STORE_TABLE);
}

#define ROOFS_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(kept, "Kept", count, kept.n)                                                        \
	COLUMN(newest, "Newest", time, kept.newest_ns)                                             \
	COLUMN(pauses, "Sampling lowered", count, p->n)                                            \
	COLUMN(paused, "Last", time, p->realtime_ns)                                               \
	KNOWN_IF(paused_ns, "For", ns, p->n, p->who ? s->now_ns - p->began_ns : p->took_ns)        \
	KNOWN_IF(now, "Now", text, p->who, now)

/* The roofs that are stored for all users, and how often sampling was lowered for them. */
static int tell_roofs(const struct status *s)
{
	const struct pause *p = &s->service->pause;
	struct roofs_kept kept;
	char now[64];
	roofs_kept_look(s->service->o.conf->store_path, &kept);
	snprintf(now, sizeof(now), "lowered to %u Hz while roofs are measured", PAUSE_HZ);
	return TABLE_OF_ONE(s->to, "roofs", ROOFS_TABLE);
}

int control_status(struct request *q, const Mperf__Request *m)
{
	static int (*const tell[])(const struct status *s) = {tell_account, tell_rate,
		tell_processes, tell_costs, tell_turns, tell_losses, tell_naming, tell_feed,
		tell_grants, tell_limits, tell_store, tell_roofs};
	struct service *service = q->peer->options->service;
	(void)m;
	if (!service)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Run `systemctl start mperfd`, and try again.",
			"this mperfd has no status: it serves only one client");

	struct row_stream stream;
	const struct answer to = row_stream_answer(&stream, q);
	struct status s = {
		.service = service, .peer = q->peer, .to = &to, .now_ns = kernel_real.now_ns(NULL)};
	service_account(service, &s.account);
	int r = 0;
	for (size_t i = 0; i < sizeof(tell) / sizeof(*tell) && r == 0; i++)
		r = tell[i](&s);
	return row_stream_done(&stream, r);
}
