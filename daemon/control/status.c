/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * status: what the service takes, keeps and loses, and what it costs. There is nobody's name in it,
 * so everybody may ask; of the users for whom naming rests, each sees only themselves. Samples add
 * up: taken = stored + in hand + lost, as far as a cause counts samples.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/budget/usage.h"
#include "daemon/conf/conf.h"
#include "daemon/control/status_private.h"

#define DAY_NS (86400ll * 1000000000ll)

static const struct answer_column account_columns[] = {
	{"period", "Period", MPERF__UNIT__UNIT_NONE},
	{"duration_ns", "Over", MPERF__UNIT__UNIT_NS},
	{"taken", "Taken", MPERF__UNIT__UNIT_COUNT},
	{"stored", "Stored", MPERF__UNIT__UNIT_COUNT},
	{"in_hand", "In hand", MPERF__UNIT__UNIT_COUNT},
	{"lost", "Lost", MPERF__UNIT__UNIT_COUNT},
};
static const struct answer_column rate_columns[] = {
	{"hz", "Rate", MPERF__UNIT__UNIT_HZ},
	{"wanted_hz", "Wanted", MPERF__UNIT__UNIT_HZ},
	{"lowered", "Last lowered", MPERF__UNIT__UNIT_TIME},
	{"counted_share", "Counters active", MPERF__UNIT__UNIT_SHARE},
	{"switches", "Switches", MPERF__UNIT__UNIT_NONE},
	{"trouble", "Trouble", MPERF__UNIT__UNIT_NONE},
};
static const struct answer_column process_columns[] = {
	{"pid", "PID", MPERF__UNIT__UNIT_NONE},
	{"what", "Process", MPERF__UNIT__UNIT_NONE},
	{"cpu_ns", "CPU time", MPERF__UNIT__UNIT_NS},
	{"cpu_minute", "Of one CPU, last minute", MPERF__UNIT__UNIT_SHARE},
	{"rss", "Memory", MPERF__UNIT__UNIT_BYTES},
	{"peak", "Peak", MPERF__UNIT__UNIT_BYTES},
};
static const struct answer_column loss_columns[] = {
	{"hart", "Hart", MPERF__UNIT__UNIT_NONE},
	{"cause", "Cause", MPERF__UNIT__UNIT_NONE},
	{"count", "Since start", MPERF__UNIT__UNIT_COUNT},
	{"minute", "Last minute", MPERF__UNIT__UNIT_COUNT},
	{"samples", "Sample missing", MPERF__UNIT__UNIT_NONE},
};
static const struct answer_column feed_columns[] = {
	{"path", "Socket", MPERF__UNIT__UNIT_NONE},
	{"programs", "Programs", MPERF__UNIT__UNIT_COUNT},
	{"accepted", "Since start", MPERF__UNIT__UNIT_COUNT},
	{"hung_up", "Disconnected", MPERF__UNIT__UNIT_COUNT},
	{"rounds", "Rounds", MPERF__UNIT__UNIT_COUNT},
	{"loops", "Loops known", MPERF__UNIT__UNIT_COUNT},
	{"bytes", "Memory", MPERF__UNIT__UNIT_BYTES},
	{"trouble", "Trouble", MPERF__UNIT__UNIT_NONE},
};
static const struct answer_column fault_columns[] = {
	{"cause", "Cause", MPERF__UNIT__UNIT_NONE},
	{"count", "Since start", MPERF__UNIT__UNIT_COUNT},
	{"effect", "Effect", MPERF__UNIT__UNIT_NONE},
};
static const struct answer_column granted_columns[] = {
	{"event", "In regions", MPERF__UNIT__UNIT_NONE},
	{"granted", "Threads", MPERF__UNIT__UNIT_COUNT},
	{"refused", "Refused", MPERF__UNIT__UNIT_COUNT},
	{"trouble", "Trouble", MPERF__UNIT__UNIT_NONE},
};
static const struct answer_column limit_columns[] = {
	{"limit", "Shared by users", MPERF__UNIT__UNIT_NONE},
	{"all", "Total", MPERF__UNIT__UNIT_COUNT},
	{"held", "Held", MPERF__UNIT__UNIT_COUNT},
	{"own", "Yours", MPERF__UNIT__UNIT_COUNT},
	{"room", "You may take", MPERF__UNIT__UNIT_COUNT},
	{"refused", "Refused", MPERF__UNIT__UNIT_COUNT},
};
static const struct answer_column loop_columns[] = {
	{"turns", "Turns", MPERF__UNIT__UNIT_COUNT},
	{"long", "Over 50 ms", MPERF__UNIT__UNIT_COUNT},
	{"longest_ns", "Longest", MPERF__UNIT__UNIT_NS},
	{"lately_ns", "Lately", MPERF__UNIT__UNIT_NS},
};
static const struct answer_column store_columns[] = {
	{"path", "Path", MPERF__UNIT__UNIT_NONE},
	{"bytes", "Used", MPERF__UNIT__UNIT_BYTES},
	{"budget", "Budget", MPERF__UNIT__UNIT_BYTES},
	{"free", "Free on disc", MPERF__UNIT__UNIT_BYTES},
	{"minute_bytes", "Written per minute", MPERF__UNIT__UNIT_BYTES},
	{"flush_ns", "Written every", MPERF__UNIT__UNIT_NS},
	{"oldest", "Since", MPERF__UNIT__UNIT_TIME},
	{"corrupt", "Set aside", MPERF__UNIT__UNIT_COUNT},
	{"recovered", "Recovered", MPERF__UNIT__UNIT_COUNT},
	{"trouble", "Trouble", MPERF__UNIT__UNIT_NONE},
};

static const struct answer_column naming_columns[] = {
	{"state", "State", MPERF__UNIT__UNIT_NONE},
	{"waiting", "Waiting", MPERF__UNIT__UNIT_COUNT},
	{"named", "Named", MPERF__UNIT__UNIT_COUNT},
	{"deaths", "Workers lost on files", MPERF__UNIT__UNIT_COUNT},
	{"faulty", "Files set aside", MPERF__UNIT__UNIT_COUNT},
	{"refused", "Users refused", MPERF__UNIT__UNIT_COUNT},
};
static const struct answer_column worker_columns[] = {
	{"worker", "Worker", MPERF__UNIT__UNIT_NONE},
	{"pid", "PID", MPERF__UNIT__UNIT_NONE},
	{"state", "State", MPERF__UNIT__UNIT_NONE},
	{"restarts", "Restarts", MPERF__UNIT__UNIT_COUNT},
	{"ended_ns", "Last ended", MPERF__UNIT__UNIT_NS},
	{"again_ns", "Retried in", MPERF__UNIT__UNIT_NS},
	{"trouble", "Trouble", MPERF__UNIT__UNIT_NONE},
};
static const struct answer_column refused_columns[] = {
	{"uid", "UID", MPERF__UNIT__UNIT_NONE},
	{"what", "Not named", MPERF__UNIT__UNIT_NONE},
	{"deaths", "Workers lost", MPERF__UNIT__UNIT_COUNT},
	{"rest_ns", "For", MPERF__UNIT__UNIT_NS},
};

static uint64_t lost_samples(uint64_t (*lost)[N_LOSSES], int n_harts)
{
	uint64_t n = 0;
	for (int hart = 0; lost && hart < n_harts; hart++)
		for (int cause = 0; cause < N_LOSSES; cause++)
			n += loss_kinds[cause].samples ? lost[hart][cause] : 0;
	return n;
}

static int tell_account(struct status *s)
{
	const struct service_account *a = &s->account;
	uint64_t lost = lost_samples(a->lost, a->n_harts);
	uint64_t before = lost_samples(a->lost_before, a->n_harts);
	struct answer_value ever[] = {
		TEXT("since start"),
		NUMBER(s->now_ns - s->service->started_ns),
		NUMBER(a->taken),
		NUMBER(a->stored),
		NUMBER(a->in_hand),
		NUMBER(lost),
	};
	struct answer_value minute[] = {
		TEXT("last minute"),
		NUMBER(a->minute_ns),
		NUMBER(a->taken - a->taken_before),
		NUMBER(a->stored - a->stored_before),
		ABSENT,
		NUMBER(lost - before),
	};
	int r = status_table(s, "account", account_columns, LENGTH(account_columns));
	if (r == 0)
		r = status_row(s, ever, LENGTH(ever));
	return r == 0 && a->minute_ns ? status_row(s, minute, LENGTH(minute)) : r;
}

/* On the hart that had them least; absent where no hart has counters. */
static struct answer_value counted_share(const struct service *service)
{
	const struct sampler *p = service->walk ? service->walk->sampler : NULL;
	double least = 1;
	bool any = false;
	for (int hart = 0; p && hart < p->machine.n_harts; hart++) {
		any |= p->watch[hart].wanted_ns > 0;
		double share = sampler_counted_share(p, hart);
		least = share < least ? share : least;
	}
	return any ? SHARE(least) : ABSENT;
}

/* Harts that sample without counters, since others count with them: the reason of the first. */
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

static int tell_rate(struct status *s)
{
	char yields[EVENT_ERROR_BYTES + 80];
	const struct service_account *a = &s->account;
	struct answer_moment moment;
	const struct service *service = s->service;
	const char *trouble = service->walk ? walk_trouble(service->walk) : "";
	const char *switches = service->walk ? sampler_cut_says(service->walk->sampler) : "";
	if (!*trouble)
		trouble = *service->trouble ? service->trouble : service->short_trouble;
	if (!*trouble)
		trouble = yield_trouble(service, yields, sizeof(yields));
	struct answer_value v[] = {
		a->rate ? NUMBER(a->rate) : ABSENT,
		NUMBER(a->rate_wanted),
		answer_moment(&moment, (int64_t)a->rate_lowered_ns),
		counted_share(s->service),
		*switches ? TEXT(switches) : ABSENT,
		*trouble ? TEXT(trouble) : ABSENT,
	};
	int r = status_table(s, "rate", rate_columns, LENGTH(rate_columns));
	return r == 0 ? status_row(s, v, LENGTH(v)) : r;
}

static struct answer_value known(uint64_t n)
{
	return n ? NUMBER(n) : ABSENT;
}

static int tell_process(struct status *s, const struct usage_process *p)
{
	struct answer_value v[] = {
		p->pid ? NUMBER(p->pid) : ABSENT,
		TEXT(p->what),
		NUMBER(p->cpu_ns),
		p->minute_share >= 0 ? SHARE(p->minute_share) : ABSENT,
		known(p->rss_bytes),
		known(p->peak_bytes),
	};
	return status_row(s, v, LENGTH(v));
}

/* The service's history of its own costs. */
static const struct usage *usage_of(const struct service *service)
{
	return &service->usage;
}

static int tell_processes(struct status *s)
{
	struct usage_process process[USAGE_PROCESSES_MAX];
	struct usage_process sum = {.what = "all"};
	const struct namer *namer = s->service->walk ? s->service->walk->namer : NULL;
	size_t n = usage_read(usage_of(s->service), namer, s->now_ns, process);
	int r = status_table(s, "process", process_columns, LENGTH(process_columns));
	for (size_t i = 0; i < n && r == 0; i++) {
		r = tell_process(s, &process[i]);
		sum.cpu_ns += process[i].cpu_ns;
		if (process[i].minute_share < 0)
			sum.minute_share = -1;
		else if (sum.minute_share >= 0)
			sum.minute_share += process[i].minute_share;
		sum.rss_bytes += process[i].rss_bytes;
		sum.peak_bytes += process[i].peak_bytes;
	}
	return r == 0 ? tell_process(s, &sum) : r;
}

/* What the loop does in one go, for all. */
static int tell_turns(struct status *s)
{
	const struct turns *t = &s->service->turns;
	struct answer_value v[] = {
		NUMBER(t->n_turns),
		NUMBER(t->n_long),
		NUMBER(t->longest_ns),
		NUMBER(turns_lately_ns(t)),
	};
	int r = status_table(s, "loop", loop_columns, LENGTH(loop_columns));
	return r == 0 ? status_row(s, v, LENGTH(v)) : r;
}

static int tell_losses(struct status *s)
{
	const struct service_account *a = &s->account;
	int r = status_table(s, "loss", loss_columns, LENGTH(loss_columns));
	for (int hart = 0; a->lost && hart < a->n_harts && r == 0; hart++)
		for (int cause = 0; cause < N_LOSSES && r == 0; cause++) {
			uint64_t n = a->lost[hart][cause];
			uint64_t before = a->lost_before ? a->lost_before[hart][cause] : 0;
			struct answer_value v[] = {
				NUMBER(hart),
				TEXT(loss_kinds[cause].name),
				NUMBER(n),
				NUMBER(n - before),
				TEXT(loss_kinds[cause].samples ? "yes" : "no"),
			};
			if (n > 0 && cause != LOSS_COST)
				r = status_row(s, v, LENGTH(v));
		}
	return r;
}

/* Bytes a minute of what was sampled: of the window files that began in the last day. */
static struct answer_value written_a_minute(const struct store *store, int64_t now_ns)
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
	return minutes > 0 ? NUMBER(bytes / minutes) : ABSENT;
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

static int tell_store(struct status *s)
{
	const struct conf *c = s->service->o.conf;
	const struct store *store = s->service->store;
	const char *trouble = s->service->store_trouble;
	struct timespec t;
	struct answer_moment moment;
	clock_gettime(CLOCK_REALTIME, &t);
	struct answer_value v[] = {
		TEXT(c->store_path),
		store ? NUMBER(store->bytes) : ABSENT,
		NUMBER(c->budget_bytes),
		store ? NUMBER(store->free_bytes) : ABSENT,
		store ? written_a_minute(store, (int64_t)t.tv_sec * 1000000000 + t.tv_nsec)
		      : ABSENT,
		NUMBER(c->flush_ns),
		store ? answer_moment(&moment, oldest(store)) : ABSENT,
		store ? NUMBER(store->n_corrupt) : ABSENT,
		store ? NUMBER(store->n_recovered) : ABSENT,
		*trouble ? TEXT(trouble) : ABSENT,
	};
	int r = status_table(s, "store", store_columns, LENGTH(store_columns));
	return r == 0 ? status_row(s, v, LENGTH(v)) : r;
}

/* Programs that count themselves. Of an inherited socket the path is the unit's. */
static int tell_feed(struct status *s)
{
	const struct service *service = s->service;
	const struct feed *feed = service->walk ? service->walk->feed : NULL;
	struct feed_status f = {.causes = NULL};
	if (feed)
		feed_status(feed, &f);
	const char *trouble = *service->feed_trouble ? service->feed_trouble : service->trouble;
	struct answer_value v[] = {
		TEXT(service->o.conf->feed_path),
		feed ? NUMBER(f.n_programs) : ABSENT,
		NUMBER(f.n_accepted),
		NUMBER(f.n_hung_up),
		NUMBER(f.n_rounds),
		NUMBER(f.n_sites),
		NUMBER(f.bytes),
		*trouble ? TEXT(trouble) : ABSENT,
	};
	int r = status_table(s, "feed", feed_columns, LENGTH(feed_columns));
	if (r == 0)
		r = status_row(s, v, LENGTH(v));
	if (r == 0)
		r = status_table(s, "feed_fault", fault_columns, LENGTH(fault_columns));
	static const char *const effects[] = {
		[FEED_HANG_UP] = "disconnected",
		[FEED_PASS_OVER] = "skipped",
		[FEED_NOTE] = "noted",
	};
	for (int cause = FEED_TAKEN + 1; f.causes && cause < N_FEED_CAUSES && r == 0; cause++) {
		struct answer_value fault[] = {
			TEXT(feed_causes[cause].name),
			NUMBER(f.causes[cause]),
			TEXT(effects[feed_causes[cause].severity]),
		};
		if (f.causes[cause] > 0)
			r = status_row(s, fault, LENGTH(fault));
	}
	return r;
}

/* What threads of these programs are given to count in regions. */
static int tell_grants(struct status *s)
{
	const struct walk *w = s->service->walk;
	int r = status_table(s, "feed_event", granted_columns, LENGTH(granted_columns));
	for (unsigned i = 0; w && w->feed && i < w->grants.n_events && r == 0; i++) {
		const struct grant_event *e = &w->grants.event[i];
		struct answer_value v[] = {
			TEXT(e->event.name),
			NUMBER(e->n_granted),
			NUMBER(e->n_refused),
			*e->trouble ? TEXT(e->trouble) : ABSENT,
		};
		r = status_row(s, v, LENGTH(v));
	}
	return r;
}

/* What users share. Only peers that see all see what others hold. */
static int tell_limits(struct status *s, const struct peer *p)
{
	const struct user *u = p->user;
	int r = u ? status_table(s, "limit", limit_columns, LENGTH(limit_columns)) : 0;
	for (int i = 0; u && i < N_USER_HOLDS && r == 0; i++) {
		const struct user_limit *l = &u->users->limit[i];
		struct answer_value v[] = {
			TEXT(user_hold_name((enum user_hold)i)),
			l->all == UINT64_MAX ? ABSENT : NUMBER(l->all),
			p->sees_all ? NUMBER(l->held) : ABSENT,
			NUMBER(u->held[i]),
			l->all == UINT64_MAX ? ABSENT
					     : NUMBER(u->held[i] + user_room(u, (enum user_hold)i)),
			p->sees_all ? NUMBER(l->n_refused) : ABSENT,
		};
		r = status_row(s, v, LENGTH(v));
	}
	return r;
}

static int tell_worker(struct status *s, const char *name, const struct namer_worker_status *w)
{
	struct answer_value v[] = {
		TEXT(name),
		w->pid ? NUMBER(w->pid) : ABSENT,
		TEXT(w->state),
		NUMBER(w->restarts),
		w->ended_ns && w->ended_ns < s->now_ns ? NUMBER(s->now_ns - w->ended_ns) : ABSENT,
		w->start_ns > s->now_ns ? NUMBER(w->start_ns - s->now_ns) : ABSENT,
		w->error ? TEXT(strerror(w->error)) : ABSENT,
	};
	return status_row(s, v, LENGTH(v));
}

/* Users for whom it rests: each sees only themselves, unless the peer sees all. */
static int tell_refused(struct status *s, const struct namer_status *n)
{
	const struct peer *p = s->peer;
	int r = status_table(s, "naming_refused", refused_columns, LENGTH(refused_columns));
	for (uint32_t i = 0; i < n->n_refused && i < NAMER_REFUSED_SHOWN_MAX && r == 0; i++) {
		const struct namer_refused *u = &n->refused[i];
		struct answer_value v[] = {
			u->uid == (uid_t)-1 ? ABSENT : NUMBER(u->uid),
			TEXT(u->what),
			NUMBER(u->deaths),
			NUMBER(u->until_ns > s->now_ns ? u->until_ns - s->now_ns : 0),
		};
		if (p->sees_all || u->uid == p->uid)
			r = status_row(s, v, LENGTH(v));
	}
	return r;
}

/* The service's own namer: of recordings that need a walk of their own, theirs is another. */
static int tell_naming(struct status *s)
{
	struct namer_status n;
	if (!s->service->walk)
		return 0;
	namer_status(s->service->walk->namer, &n);
	struct answer_value v[] = {
		TEXT(n.off ? "off: a worker does not start" : "on"),
		NUMBER(n.n_waiting),
		NUMBER(n.n_named),
		NUMBER(n.n_deaths),
		NUMBER(n.n_faulty),
		NUMBER(n.n_refused),
	};
	int r = status_table(s, "naming", naming_columns, LENGTH(naming_columns));
	if (r == 0)
		r = status_row(s, v, LENGTH(v));
	if (r == 0)
		r = status_table(s, "namer", worker_columns, LENGTH(worker_columns));
	if (r == 0)
		r = tell_worker(s, "opener", &n.opener);
	if (r == 0)
		r = tell_worker(s, "parser", &n.parser);
	return r == 0 ? tell_refused(s, &n) : r;
}

int control_status(struct request *q, const Mperf__Request *m)
{
	(void)m;
	struct service *service = q->peer->options->service;
	if (!service)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Run `systemctl start mperfd`, and try again.",
			"this mperfd has no status: it serves only one client");

	struct status s = {.service = service, .peer = q->peer, .now_ns = kernel_real.now_ns(NULL)};
	s.answer = row_stream_answer(&s.stream, q);
	service_account(service, &s.account);
	int r = tell_account(&s);
	if (r == 0)
		r = tell_rate(&s);
	if (r == 0)
		r = tell_processes(&s);
	if (r == 0)
		r = status_cost(&s);
	if (r == 0)
		r = tell_turns(&s);
	if (r == 0)
		r = tell_losses(&s);
	if (r == 0)
		r = tell_naming(&s);
	if (r == 0)
		r = tell_feed(&s);
	if (r == 0)
		r = tell_grants(&s);
	if (r == 0)
		r = tell_limits(&s, q->peer);
	if (r == 0)
		r = tell_store(&s);
	if (r == 0)
		r = status_roofs(&s);
	int ended = row_stream_end(&s.stream);
	r = r == 0 ? ended : r;
	if (r == 0)
		r = request_done(q, 0);
	return r < 0 ? r : 0;
}
