/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a child made is noted when it ends, however it ends: the report is in memory that both have, and a row
 * is counted once its file has its name. Only then goes what it takes the place of.
 */
#include "daemon/service/pinner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <syslog.h>

#include "daemon/service/offload.h"
#include "daemon/service/pin_make.h"
#include "daemon/store/pin_rule.h"
#include "daemon/store/rollup/rollup.h"
#include "proto/clock.h"
#include "proto/memory.h"

#define LOOK_NS 1000000000ull /* between looks for jobs that have ended */
#define SAY_NS 60000000000ull /* between sentences about jobs that nobody waits for */

/* A request, or a job that has ended (exact). */
struct turn {
	struct pin_ask ask;
	char *group; /* JSON */
	char *exact; /* JSON of the one job; NULL: what `ask` says */
	uint32_t exact_uid;
	uint64_t id, since_ns;
	struct pin_report *report; /* NULL: not done yet */
	bool nobody_waits;
};

/* A job that is pinned when it ends. */
struct wait {
	struct pin_ask ask;
	char *group, *labels; /* JSON */
	uint32_t uid;
};

/* What a child and we have in common. */
struct shared {
	struct pin_report report;
	char making[STORE_NAME_BYTES];
};

struct pinner {
	struct pinner_options o;
	struct pin_limits limits;
	struct turn *
		turn; /* in the order of arrival; those that are done stay until they are forgotten */
	size_t n_turns;
	struct wait *wait;
	size_t n_waits;
	struct offload *child;
	uint64_t child_id; /* of its turn */
	struct shared *shared;
	uint64_t last_id, next_look_ns;
	char *rules_text;
	struct pin_rules rules;
	uint32_t last_set; /* label sets up to this id have been compared with the rules */
	uint64_t next_say_ns;
	unsigned n_unsaid;
};

const char *pin_state_says(enum pin_state state)
{
	static const char *const says[] = {
		[PIN_MADE] = "pinned", [PIN_KNOWN] = "pinned before", [PIN_RUNS] = "when it ends"};
	return says[state];
}

static void turn_clear(struct turn *t)
{
	free(t->group);
	free(t->exact);
	free(t->report);
}

static void wait_clear(struct wait *w)
{
	free(w->group);
	free(w->labels);
}

static void remove_turn(struct pinner *p, size_t at)
{
	turn_clear(&p->turn[at]);
	p->n_turns--;
	memmove(&p->turn[at], &p->turn[at + 1], (p->n_turns - at) * sizeof(*p->turn));
}

static void remove_wait(struct pinner *p, size_t at)
{
	wait_clear(&p->wait[at]);
	p->n_waits--;
	memmove(&p->wait[at], &p->wait[at + 1], (p->n_waits - at) * sizeof(*p->wait));
}

static struct turn *turn_of(const struct pinner *p, uint64_t id)
{
	for (size_t i = 0; i < p->n_turns; i++)
		if (p->turn[i].id == id)
			return &p->turn[i];
	return NULL;
}

/* The first that is not done. */
static struct turn *next_turn(const struct pinner *p)
{
	for (size_t i = 0; i < p->n_turns; i++)
		if (!p->turn[i].report)
			return &p->turn[i];
	return NULL;
}

int pinner_new(const struct pinner_options *o, struct pinner **ret_pinner)
{
	struct pinner *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->o = *o;
	p->last_id = clock_ns(CLOCK_MONOTONIC); /* no id of one that was before */
	p->turn = calloc(PIN_ASKS_MAX + PIN_WAITS_MAX, sizeof(*p->turn));
	p->wait = calloc(PIN_WAITS_MAX, sizeof(*p->wait));
	void *shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	p->shared = shared == MAP_FAILED ? NULL : shared;
	if (!p->turn || !p->wait || !p->shared) {
		pinner_free(p);
		return -ENOMEM;
	}
	*ret_pinner = p;
	return 0;
}

struct pinner *pinner_free(struct pinner *p)
{
	if (!p)
		return NULL;
	offload_free(p->child);
	while (p->n_turns > 0)
		remove_turn(p, p->n_turns - 1);
	while (p->n_waits > 0)
		remove_wait(p, p->n_waits - 1);
	free(p->turn);
	free(p->wait);
	free(p->rules_text);
	if (p->shared)
		munmap(p->shared, sizeof(*p->shared));
	free(p);
	return NULL;
}

void pinner_allow(struct pinner *p, const struct pin_limits *limits)
{
	p->limits = *limits;
}

/* --- asking ----------------------------------------------------------------------------------- */

static bool has_room(const struct pinner *p, uint32_t by)
{
	size_t n = 0, own = 0;
	for (size_t i = 0; i < p->n_turns; i++) {
		n += !p->turn[i].nobody_waits;
		own += !p->turn[i].nobody_waits && p->turn[i].ask.by == by;
	}
	return n < PIN_ASKS_MAX && own < PIN_ASKS_USER_MAX &&
	       p->n_turns < PIN_ASKS_MAX + PIN_WAITS_MAX;
}

bool pinner_has(const struct pinner *p, uint64_t id)
{
	return turn_of(p, id) != NULL;
}

const struct pin_report *pinner_report(const struct pinner *p, uint64_t id)
{
	const struct turn *t = turn_of(p, id);
	return t ? t->report : NULL;
}

void pinner_forget(struct pinner *p, uint64_t id)
{
	struct turn *t = turn_of(p, id);
	if (t && (t->report || id != p->child_id))
		remove_turn(p, (size_t)(t - p->turn));
	else if (t)
		t->nobody_waits = true;
}

uint64_t pinner_wants_flush(const struct pinner *p)
{
	const struct turn *t = p->child ? NULL : next_turn(p);
	return t ? t->since_ns : 0;
}

/* --- jobs that run ---------------------------------------------------------------------------- */

static bool is_running(const struct pinner *p, uint32_t uid, const char *labels)
{
	for (const struct task *t = p->o.tasks->live; t; t = t->hh.next)
		if (t->process == t && t->labels && t->labels->uid == uid &&
			strcmp(t->labels->labels, labels) == 0)
			return true;
	return false;
}

static size_t find_wait(const struct pinner *p, uint32_t uid, const char *labels)
{
	size_t i = 0;
	while (i < p->n_waits && (p->wait[i].uid != uid || strcmp(p->wait[i].labels, labels) != 0))
		i++;
	return i;
}

bool pinner_awaits(const struct pinner *p, const struct label_set *set)
{
	return find_wait(p, set->uid, set->labels) < p->n_waits;
}

/* 0; PINNER_BUSY; -ENOMEM. */
static int add_wait(struct pinner *p, const struct turn *t, const struct label_set *set)
{
	size_t own = 0, at = find_wait(p, set->uid, set->labels);
	for (size_t i = 0; i < p->n_waits; i++)
		own += p->wait[i].ask.by == t->ask.by;
	if (at == p->n_waits && (p->n_waits == PIN_WAITS_MAX || own >= PIN_WAITS_USER_MAX))
		return PINNER_BUSY;
	struct wait w = {.ask = t->ask,
		.group = strdup(t->group),
		.labels = strdup(set->labels),
		.uid = set->uid};
	if (!w.group || !w.labels) {
		wait_clear(&w);
		return -ENOMEM;
	}
	if (at < p->n_waits)
		remove_wait(p, at); /* what was asked for last counts */
	p->wait[p->n_waits++] = w;
	return 0;
}

static bool is_in_report(const struct pin_report *r, const struct label_set *set)
{
	for (uint32_t i = 0; i < r->n_jobs; i++)
		if (r->job[i].uid == set->uid && strcmp(r->job[i].labels, set->labels) == 0)
			return true;
	return false;
}

static bool is_wanted(const struct turn *t, const struct label_set *set)
{
	if (t->exact)
		return set->uid == t->exact_uid && strcmp(set->labels, t->exact) == 0;
	return (t->ask.all_users || set->uid == t->ask.by) &&
	       store_pin_matches(set->labels, t->ask.label, t->ask.n_labels);
}

static void add_running(struct pin_report *report, const struct label_set *set)
{
	struct pin_job *row = &report->job[report->n_jobs++];
	*row = (struct pin_job){.state = PIN_RUNS, .uid = set->uid};
	snprintf(row->labels, sizeof(row->labels), "%s", set->labels);
}

/* Those that run are pinned later; the report has them. */
static int take_running(struct pinner *p, const struct turn *t)
{
	struct pin_report *report = &p->shared->report;
	uint32_t most = t->ask.last > 0 && t->ask.last < PIN_JOBS_MAX ? t->ask.last : PIN_JOBS_MAX;
	for (const struct task *task = p->o.tasks->live; task && report->n_jobs < most;
		task = task->hh.next) {
		const struct label_set *set = task->labels;
		if (task->process != task || !set || is_in_report(report, set) ||
			!is_wanted(t, set))
			continue;
		int r = add_wait(p, t, set);
		if (r != 0)
			return r;
		add_running(report, set);
	}
	return 0;
}

/* The one running job that is meant is pinned when it ends, and there is no more to do now. */
static int wait_for_one(struct pinner *p, struct turn *t, const struct label_set *set)
{
	t->report = calloc(1, sizeof(*t->report));
	int r = t->report ? add_wait(p, t, set) : -ENOMEM;
	if (r == 0) {
		t->report->outcome = PIN_WELL;
		add_running(t->report, set);
	}
	return r;
}

int pinner_ask(struct pinner *p, const struct pin_ask *ask, uint64_t *ret_id)
{
	struct label_fault fault;
	if (!has_room(p, ask->by))
		return PINNER_BUSY;
	struct turn t = {.ask = *ask, .id = ++p->last_id, .since_ns = clock_ns(CLOCK_MONOTONIC)};
	t.ask.only = NULL; /* it may be freed at any time */
	int r = labels_write(ask->label, ask->n_labels, &t.group, &fault);
	if (r > 0)
		r = -EINVAL; /* the caller has parsed them */
	if (r == 0 && ask->only)
		r = wait_for_one(p, &t, ask->only);
	if (r != 0) {
		turn_clear(&t);
		return r;
	}
	p->turn[p->n_turns++] = t;
	*ret_id = t.id;
	return 0;
}

size_t pinner_unpin(struct pinner *p, uint32_t by, bool all, const struct label *label, size_t n)
{
	size_t n_removed = 0;
	for (size_t i = p->n_waits; i-- > 0;)
		if ((all || p->wait[i].ask.by == by) &&
			store_pin_matches(p->wait[i].labels, label, n)) {
			remove_wait(p, i);
			n_removed++;
		}
	/* jobs that have ended, and whose turn has not come */
	for (size_t i = p->n_turns; i-- > 0;) {
		const struct turn *t = &p->turn[i];
		if (t->exact && t->id != p->child_id && (all || t->ask.by == by) &&
			store_pin_matches(t->exact, label, n)) {
			remove_turn(p, i);
			n_removed++;
		}
	}
	return n_removed;
}

/* Jobs that have ended get a turn. */
static void look_at_waits(struct pinner *p, uint64_t now_ns)
{
	for (size_t i = 0; i < p->n_waits;) {
		struct wait *w = &p->wait[i];
		if (is_running(p, w->uid, w->labels) ||
			p->n_turns == PIN_ASKS_MAX + PIN_WAITS_MAX) {
			i++;
			continue;
		}
		struct turn *t = &p->turn[p->n_turns++];
		*t = (struct turn){.ask = w->ask,
			.exact_uid = w->uid,
			.id = ++p->last_id,
			.since_ns = now_ns,
			.nobody_waits = true};
		t->group = TAKE_PTR(w->group);
		t->exact = TAKE_PTR(w->labels);
		remove_wait(p, i);
	}
}

/* --- rules ------------------------------------------------------------------------------------ */

void pinner_set_rules(struct pinner *p, const char *text)
{
	if (p->rules_text && strcmp(p->rules_text, text) == 0)
		return;
	char *copy = strdup(text);
	if (!copy || pin_rules_parse(text, &p->rules) != 0) {
		free(copy); /* without memory: the next call tries again */
		return;
	}
	free(p->rules_text);
	p->rules_text = copy;
	p->last_set = 0;
}

/* Users' jobs can fail as often as they like: a sentence a minute. */
static void say_of_nobody(struct pinner *p, uint64_t now_ns, const char *text)
{
	char line[900];
	if (now_ns < p->next_say_ns) {
		p->n_unsaid++;
		return;
	}
	snprintf(line, sizeof(line), p->n_unsaid > 0 ? "%s; %u more like this before" : "%s", text,
		p->n_unsaid);
	p->o.say(p->o.userdata, LOG_WARNING, line);
	p->next_say_ns = now_ns + SAY_NS;
	p->n_unsaid = 0;
}

/* 0 or -ENOMEM. */
static int take_by_rules(struct pinner *p, const struct label_set *set, uint64_t now_ns)
{
	_cleanup_(freep) char *group = NULL;
	const struct pin_rule *rule = pin_rules_find(&p->rules, set->labels, &group);
	char text[160];
	/* what its user asked for stands */
	if (!rule || pinner_awaits(p, set))
		return 0;
	if (!group)
		return -ENOMEM;
	const struct turn t = {
		.ask = {.by = set->uid, .keep = rule->keep},
		.group = group,
	};
	int r = add_wait(p, &t, set);
	if (r != PINNER_BUSY)
		return r;
	snprintf(text, sizeof(text),
		"a job of user %u is not pinned by pin-jobs: %d jobs of a user, and %d in all, "
		"may wait for their end",
		set->uid, PIN_WAITS_USER_MAX, PIN_WAITS_MAX);
	say_of_nobody(p, now_ns, text);
	return 0;
}

/* A set outlives its job by the time for which ended processes are kept, so that short jobs are met too. */
static int look_at_rules(struct pinner *p, uint64_t now_ns)
{
	const struct label_sets *sets = &p->o.tasks->label_sets;
	int r = 0;
	if (p->rules.n == 0 || p->limits.all_bytes == 0)
		return 0;
	for (const struct label_set *set = sets->set; set && r == 0; set = set->hh.next)
		if (set->id > p->last_set)
			r = take_by_rules(p, set, now_ns);
	p->last_set = sets->last_id;
	return r;
}

/* Once a second. 0 or -ENOMEM. */
static int look(struct pinner *p, uint64_t now_ns)
{
	if (now_ns < p->next_look_ns)
		return 0;
	p->next_look_ns = now_ns + LOOK_NS;
	int r = look_at_rules(p, now_ns);
	look_at_waits(p, now_ns);
	return r;
}

/* --- the child -------------------------------------------------------------------------------- */

static int run_child(void *userdata)
{
	struct pinner *p = userdata;
	const struct turn *t = turn_of(p, p->child_id);
	struct pin_making m = {
		.store = p->o.store,
		.ask = &t->ask,
		.exact = t->exact,
		.exact_uid = t->exact_uid,
		.group = t->group,
		.limits = p->limits,
		.report = &p->shared->report,
		.making = &p->shared->making,
	};
	pin_make(&m);
	return 0;
}

static void fail(struct pin_report *r, const char *text, const char *remedy)
{
	r->outcome = PIN_FAILED;
	snprintf(r->text, sizeof(r->text), "%s", text);
	snprintf(r->remedy, sizeof(r->remedy), "%s", remedy);
}

/* Keep the report for who waits for it. */
static void end_turn(struct pinner *p, struct turn *t)
{
	const struct pin_report *r = &p->shared->report;
	if (t->nobody_waits) {
		if (r->outcome == PIN_FULL || r->outcome == PIN_FAILED)
			say_of_nobody(p, clock_ns(CLOCK_MONOTONIC), r->text);
		remove_turn(p, (size_t)(t - p->turn));
		return;
	}
	t->report = malloc(sizeof(*t->report));
	if (t->report)
		*t->report = *r;
	else
		remove_turn(p, (size_t)(t - p->turn));
}

static int start(struct pinner *p, struct turn *t)
{
	memset(p->shared, 0, sizeof(*p->shared));
	p->shared->report.outcome = PIN_FAILED;
	int r = take_running(p, t);
	if (r == PINNER_BUSY) {
		fail(&p->shared->report, "too many jobs wait for their end to be pinned",
			"Pin fewer of those that run, or unpin some.");
		end_turn(p, t);
		return 0;
	}
	/* the one that is meant runs: nothing is to be looked for */
	if (r == 0 && t->exact && p->shared->report.n_jobs > 0) {
		p->shared->report.outcome = PIN_WELL;
		end_turn(p, t);
		return 0;
	}
	if (r < 0)
		return r;
	p->child_id = t->id;
	/* for want of processes or memory: the next dispatch tries again */
	if (offload_run(run_child, p, &p->child) != 0)
		p->child_id = 0;
	return 0;
}

/* The same job's pins of the same user that this one has the rows of, and what its group has too many. */
static void remove_replaced(struct pinner *p, const struct turn *t, const char *name)
{
	struct store *s = p->o.store;
	size_t at, made = store_pin_find(s, name);
	if (made == s->n_pins)
		return;
	for (size_t i = s->n_pins; i-- > 0;) {
		const struct store_pin *new = &s->pin[store_pin_find(s, name)], *old = &s->pin[i];
		if (old != new && old->by == new->by &&
			old->uid == new->uid &&strcmp(old->labels, new->labels) == 0 &&
			(old->keep > 0 || new->keep == 0) && old->start_ns >= new->start_ns &&
			old->end_ns <= new->end_ns)
			(void)store_pin_remove(s, i);
	}
	while ((at = store_pin_surplus(s, t->ask.by, t->group, t->ask.keep, 0)) < s->n_pins)
		if (store_pin_remove(s, at) < 0)
			break;
}

static void take_end(struct pinner *p, const struct offload_end *end)
{
	struct turn *t = turn_of(p, p->child_id);
	struct pin_report *r = &p->shared->report;
	char left[STORE_NAME_BYTES + sizeof(ROLLUP_NEW_SUFFIX)];
	if (end->signal != 0)
		fail(r,
			"the process that pins was ended, since it took too long or too much "
			"memory",
			"Pin fewer jobs at once.");
	for (uint32_t i = 0; i < r->n_jobs && i < PIN_JOBS_MAX; i++)
		if (r->job[i].state == PIN_MADE && store_pin_note(p->o.store, r->job[i].name) == 0)
			remove_replaced(p, t, r->job[i].name);
	/* of one that was killed */
	snprintf(left, sizeof(left), "%s" ROLLUP_NEW_SUFFIX, p->shared->making);
	if (*p->shared->making)
		store_pin_remove_unfinished(p->o.store, left);
	p->child = offload_free(p->child);
	p->child_id = 0;
	end_turn(p, t);
}

int pinner_dispatch(struct pinner *p, uint64_t now_ns, bool written)
{
	if (p->child) {
		struct offload_end end;
		int r = offload_poll(p->child, &end);
		if (r != 0)
			return r < 0 ? r : 0;
		take_end(p, &end);
	}
	int r = look(p, now_ns);
	struct turn *t = next_turn(p);
	return r == 0 && t && written ? start(p, t) : r;
}

size_t pinner_fds(const struct pinner *p, struct pollfd *fds, size_t n)
{
	if (!p->child || n == 0)
		return 0;
	fds[0] = (struct pollfd){.fd = offload_fd(p->child), .events = POLLIN};
	return 1;
}
