/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Scheduling of users. A request is made on behalf of the user whose process had the frame, the
 * file or the stack, and its cost is charged to that user. Of the waiting users, the one who has
 * used the least time is served; a user who returns after a pause starts level with the others, so
 * a pause gives no credit. So a user with many slow files delays others by one request at a time.
 * Each user also has a budget of parser CPU time, and waits when it is used up.
 *
 * Deaths of workers are charged to accounts. Some are free; after that nothing of the user is tried
 * for a while, which doubles with each further death and is forgiven over time.
 */
#include "daemon/naming/user.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/naming/worker.h"

#define STUCK_LOOK_NS 1000000000u /* interval of checks whether stuck workers have ended */

static void naming_user_clear(struct naming_user *u, uid_t uid, uint32_t index)
{
	*u = (struct naming_user){
		.uid = uid, .index = (uint8_t)index, .budget_ns = NAMER_BUDGET_NS};
	TAILQ_INIT(&u->to_open);
	TAILQ_INIT(&u->to_name);
	TAILQ_INIT(&u->jobs);
}

static struct naming_user *naming_user_add(struct naming_users *s, uid_t uid)
{
	struct naming_user *u = malloc(sizeof(*u));

	if (!u)
		return NULL;
	naming_user_clear(u, uid, s->n_users);
	s->user[s->n_users++] = u;
	return u;
}

int naming_users_begin(struct naming_users *s, const struct graves *graves)
{
	s->graves = graves;
	return naming_user_add(s, (uid_t)-1) ? 0 : -ENOMEM;
}

void naming_users_clear(struct naming_users *s)
{
	while (s->n_users > 0)
		free(s->user[--s->n_users]);
}

struct naming_user *naming_user_find(const struct naming_users *s, uid_t uid)
{
	for (uint32_t i = 0; i < s->n_users; i++)
		if (s->user[i]->uid == uid)
			return s->user[i];
	return NULL;
}

struct naming_user *naming_user_at(const struct naming_users *s, uint32_t index)
{
	return index < s->n_users ? s->user[index] : NULL;
}

static bool is_idle(const struct naming_users *s, const struct naming_user *u)
{
	return u->n_queued[QUEUED_OPEN] == 0 && u->n_queued[QUEUED_STACK] == 0 &&
	       u->n_queued[QUEUED_WISH] == 0 && s->served[WORKER_PARSER] != u &&
	       s->served[WORKER_OPENER] != u;
}

static uint32_t debts(const struct naming_user *u)
{
	return u->opens.deaths + u->files.deaths + u->stacks.deaths;
}

/* The user to forget: one with nothing queued who owes the least. NULL: all have something
 * queued. */
static struct naming_user *naming_user_spare(const struct naming_users *s)
{
	struct naming_user *least = NULL;

	for (uint32_t i = 1; i < s->n_users; i++)
		if (is_idle(s, s->user[i]) && (!least || debts(s->user[i]) < debts(least)))
			least = s->user[i];
	return least;
}

struct naming_user *naming_user_get(struct naming_users *s, uid_t uid)
{
	struct naming_user *u = naming_user_find(s, uid);

	if (!u && s->n_users < NAMER_USERS_MAX)
		u = naming_user_add(s, uid);
	else if (!u && (u = naming_user_spare(s)))
		naming_user_clear(u, uid, u->index);
	return u ? u : s->user[0];
}

void naming_user_joins(struct naming_users *s, struct naming_user *u)
{
	if (u->n_queued[QUEUED_OPEN] == 0 && u->open_ns < s->open_floor_ns)
		u->open_ns = s->open_floor_ns;
	if (u->n_queued[QUEUED_WISH] == 0 && u->n_queued[QUEUED_STACK] == 0 &&
		s->served[WORKER_PARSER] != u && u->parse_ns < s->parse_floor_ns)
		u->parse_ns = s->parse_floor_ns;
}

void naming_user_queued(struct naming_users *s, struct naming_user *u, enum queued kind)
{
	u->n_queued[kind]++;
	s->n_queued[kind]++;
}

void naming_user_dequeued(struct naming_users *s, struct naming_user *u, enum queued kind)
{
	u->n_queued[kind]--;
	s->n_queued[kind]--;
}

size_t naming_users_queued(const struct naming_users *s, enum queued kind)
{
	return s->n_queued[kind];
}

void naming_users_serve(struct naming_users *s, enum worker_role role, struct naming_user *u)
{
	s->served[role] = u;
}

struct naming_user *naming_users_served(const struct naming_users *s, enum worker_role role)
{
	return s->served[role];
}

/* --- who is next ------------------------------------------------------------------------------ */

/* The user's budget now. */
static int64_t budget(const struct naming_user *u, uint64_t now_ns)
{
	uint64_t past_ns = now_ns > u->budget_at_ns ? now_ns - u->budget_at_ns : 0;
	uint64_t back_ns = past_ns / NAMER_BUDGET_SHARE;

	return back_ns >= (uint64_t)(NAMER_BUDGET_NS - u->budget_ns)
		       ? NAMER_BUDGET_NS
		       : u->budget_ns + (int64_t)back_ns;
}

bool naming_user_may_open(
	const struct naming_users *s, const struct naming_user *u, uint64_t now_ns)
{
	return !account_is_refused(&u->opens, now_ns) &&
	       graves_of(s->graves, u->uid) < NAMER_STUCK_USER_MAX;
}

bool naming_user_opens_before(const struct naming_user *a, const struct naming_user *b)
{
	return a->open_ns < b->open_ns;
}

bool naming_user_is_before(
	const struct naming_user *a, const struct naming_user *b, uint64_t now_ns)
{
	bool a_waits = budget(a, now_ns) < 0, b_waits = budget(b, now_ns) < 0;

	return a_waits != b_waits ? b_waits : a->parse_ns < b->parse_ns;
}

static bool may_be_served(const struct naming_users *s, const struct naming_user *u,
	enum queued kind, uint64_t now_ns)
{
	if (kind == QUEUED_OPEN)
		return naming_user_may_open(s, u, now_ns);
	bool rests = kind == QUEUED_NAME && now_ns < s->rests_until_ns;
	return s->unlimited || (!rests && budget(u, now_ns) >= 0);
}

struct naming_user *naming_users_next(
	const struct naming_users *s, enum queued kind, const bool *passed, uint64_t now_ns)
{
	struct naming_user *next = NULL;
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < s->n_users && s->n_queued[kind] > 0; i++) {
		struct naming_user *u = s->user[i];
		uint64_t used_ns = kind == QUEUED_OPEN ? u->open_ns : u->parse_ns;
		if (u->n_queued[kind] == 0 || used_ns >= least_ns || (passed && passed[i]) ||
			!may_be_served(s, u, kind, now_ns))
			continue;
		next = u;
		least_ns = used_ns;
	}
	return next;
}

void naming_user_pay_open(struct naming_users *s, struct naming_user *u, uint64_t wall_ns)
{
	if (u->open_ns > s->open_floor_ns)
		s->open_floor_ns = u->open_ns;
	u->open_ns += wall_ns > NAMER_CHARGE_MIN_NS ? wall_ns : NAMER_CHARGE_MIN_NS;
}

void naming_user_pay_parse(struct naming_users *s, struct naming_user *u, uint64_t wall_ns,
	uint64_t cpu_ns, uint64_t now_ns)
{
	if (u->parse_ns > s->parse_floor_ns)
		s->parse_floor_ns = u->parse_ns;
	u->parse_ns += wall_ns > NAMER_CHARGE_MIN_NS ? wall_ns : NAMER_CHARGE_MIN_NS;
	u->budget_ns = budget(u, now_ns) - (int64_t)cpu_ns;
	u->budget_at_ns = now_ns;
	s->parser_ns += u->uid == 0 ? 0 : cpu_ns;
	if (s->pace <= 0)
		return;
	/* requests for one file follow each other, and the rest after them is for all */
	double rest_ns = (double)cpu_ns / s->pace;
	uint64_t from_ns = s->rests_until_ns > now_ns ? s->rests_until_ns : now_ns;
	uint64_t last_ns = now_ns + NAMER_REST_NS_MAX;
	s->rests_until_ns =
		rest_ns < (double)(last_ns - from_ns) ? from_ns + (uint64_t)rest_ns : last_ns;
}

void naming_users_pace(struct naming_users *s, double share)
{
	s->pace = share;
	s->rests_until_ns = share > 0 ? s->rests_until_ns : 0;
}

uint64_t naming_users_parser_ns(const struct naming_users *s)
{
	return s->parser_ns;
}

void naming_users_unlimit(struct naming_users *s)
{
	s->unlimited = true;
}

uint64_t naming_users_deadline_ns(const struct naming_users *s, uint64_t now_ns)
{
	uint64_t first = UINT64_MAX;

	if (s->n_queued[QUEUED_NAME] > 0 && now_ns < s->rests_until_ns)
		first = s->rests_until_ns;
	for (uint32_t i = 0; i < s->n_users; i++) {
		const struct naming_user *u = s->user[i];
		uint64_t due = UINT64_MAX;
		int64_t left = budget(u, now_ns);
		if (u->n_queued[QUEUED_OPEN] > 0 && !naming_user_may_open(s, u, now_ns))
			due = account_is_refused(&u->opens, now_ns) ? u->opens.until_ns
								    : now_ns + STUCK_LOOK_NS;
		first = due < first ? due : first;
		if (left >= 0 || (u->n_queued[QUEUED_NAME] == 0 && u->n_queued[QUEUED_STACK] == 0))
			continue;
		due = now_ns + (uint64_t)-left * NAMER_BUDGET_SHARE;
		first = due < first ? due : first;
	}
	return first;
}

/* --- accounts --------------------------------------------------------------------------------- */

static void account_forgive(struct account *a, uint64_t now_ns)
{
	while (a->deaths > 0 && now_ns >= a->since_ns + NAMER_FORGIVEN_NS) {
		a->deaths--;
		a->since_ns += NAMER_FORGIVEN_NS;
	}
}

uint32_t account_deaths(struct account *a, uint64_t now_ns)
{
	account_forgive(a, now_ns);
	return a->deaths;
}

void account_charge(struct account *a, uint32_t allowed, uint64_t now_ns)
{
	account_forgive(a, now_ns);
	a->deaths++;
	a->since_ns = a->charged_ns = now_ns;
	if (a->deaths < allowed)
		return;
	uint64_t refused_ns = NAMER_REFUSED_NS;
	for (uint32_t i = allowed; i < a->deaths && refused_ns < NAMER_REFUSED_MAX_NS; i++)
		refused_ns *= 2;
	if (refused_ns > NAMER_REFUSED_MAX_NS)
		refused_ns = NAMER_REFUSED_MAX_NS;
	a->until_ns = a->since_ns = now_ns + refused_ns;
}

static void show(uid_t uid, const struct account *a, const char *what, uint64_t now_ns,
	struct namer_status *status)
{
	if (!account_is_refused(a, now_ns))
		return;
	if (status->n_refused < NAMER_REFUSED_SHOWN_MAX)
		status->refused[status->n_refused] = (struct namer_refused){.uid = uid,
			.what = what,
			.deaths = a->deaths,
			.since_ns = a->charged_ns,
			.until_ns = a->until_ns};
	status->n_refused++;
}

void naming_users_status(const struct naming_users *s, uint64_t now_ns, struct namer_status *status)
{
	for (uint32_t i = 0; i < s->n_users; i++) {
		const struct naming_user *u = s->user[i];
		show(u->uid, &u->files, "files", now_ns, status);
		show(u->uid, &u->stacks, "stacks", now_ns, status);
		show(u->uid, &u->opens, "opening files", now_ns, status);
	}
}
