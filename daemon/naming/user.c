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
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <stdlib.h>

#define STUCK_LOOK_NS 1000000000u /* how often to check whether stuck workers have ended */

static void naming_user_clear(struct naming_user *u, uid_t uid, uint32_t index)
{
	*u = (struct naming_user){
		.uid = uid, .index = (uint8_t)index, .budget_ns = NAMER_BUDGET_NS};
	TAILQ_INIT(&u->to_open);
	TAILQ_INIT(&u->to_name);
	TAILQ_INIT(&u->jobs);
}

static struct naming_user *naming_user_add(struct namer *n, uid_t uid)
{
	struct naming_user *u = malloc(sizeof(*u));

	if (!u)
		return NULL;
	naming_user_clear(u, uid, n->n_users);
	n->user[n->n_users++] = u;
	return u;
}

int naming_users_begin(struct namer *n)
{
	return naming_user_add(n, (uid_t)-1) ? 0 : -ENOMEM;
}

void naming_users_clear(struct namer *n)
{
	while (n->n_users > 0)
		free(n->user[--n->n_users]);
}

struct naming_user *naming_user_find(const struct namer *n, uid_t uid)
{
	for (uint32_t i = 0; i < n->n_users; i++)
		if (n->user[i]->uid == uid)
			return n->user[i];
	return NULL;
}

static bool is_at_rest(const struct namer *n, const struct naming_user *u)
{
	return TAILQ_EMPTY(&u->to_open) && TAILQ_EMPTY(&u->jobs) && u->n_wishes == 0 &&
	       n->asked_user != u && !(n->opening && n->opening->opens == u);
}

static uint32_t debts(const struct naming_user *u)
{
	return u->opens.deaths + u->files.deaths + u->stacks.deaths;
}

/* The user to forget: one with nothing queued who owes the least. NULL: all have something
 * queued. */
static struct naming_user *naming_user_spare(const struct namer *n)
{
	struct naming_user *least = NULL;

	for (uint32_t i = 1; i < n->n_users; i++)
		if (is_at_rest(n, n->user[i]) && (!least || debts(n->user[i]) < debts(least)))
			least = n->user[i];
	return least;
}

struct naming_user *naming_user_get(struct namer *n, uid_t uid)
{
	struct naming_user *u = naming_user_find(n, uid);

	if (!u && n->n_users < NAMER_USERS_MAX)
		u = naming_user_add(n, uid);
	else if (!u && (u = naming_user_spare(n)))
		naming_user_clear(u, uid, u->index);
	return u ? u : n->user[0];
}

void naming_user_joins(struct namer *n, struct naming_user *u)
{
	if (TAILQ_EMPTY(&u->to_open) && u->open_ns < n->open_floor_ns)
		u->open_ns = n->open_floor_ns;
	if (u->n_wishes == 0 && TAILQ_EMPTY(&u->jobs) && n->asked_user != u &&
		u->parse_ns < n->parse_floor_ns)
		u->parse_ns = n->parse_floor_ns;
}

/* --- who is next ------------------------------------------------------------------------------ */

/* Update the user's budget to now. */
static int64_t budget(const struct namer *n, const struct naming_user *u)
{
	uint64_t past_ns = n->now_ns > u->budget_at_ns ? n->now_ns - u->budget_at_ns : 0;
	uint64_t back_ns = past_ns / NAMER_BUDGET_SHARE;

	return back_ns >= (uint64_t)(NAMER_BUDGET_NS - u->budget_ns)
		       ? NAMER_BUDGET_NS
		       : u->budget_ns + (int64_t)back_ns;
}

static uint32_t n_stuck(const struct namer *n, const struct naming_user *u)
{
	uint32_t found = 0;

	for (size_t i = 0; i < n->graves.n; i++)
		found += n->graves.worker[i].uid == u->uid;
	return found;
}

bool naming_user_may_open(const struct namer *n, const struct naming_user *u)
{
	return !account_is_refused(&u->opens, n->now_ns) && n_stuck(n, u) < NAMER_STUCK_USER_MAX;
}

bool naming_user_is_before(struct namer *n, struct naming_user *a, struct naming_user *b)
{
	bool a_waits = budget(n, a) < 0, b_waits = budget(n, b) < 0;

	return a_waits != b_waits ? b_waits : a->parse_ns < b->parse_ns;
}

struct naming_user *naming_user_next_open(struct namer *n)
{
	struct naming_user *next = NULL;

	for (uint32_t i = 0; i < n->n_users && n->n_to_open > 0; i++) {
		struct naming_user *u = n->user[i];
		if (!TAILQ_EMPTY(&u->to_open) && naming_user_may_open(n, u) &&
			(!next || u->open_ns < next->open_ns))
			next = u;
	}
	return next;
}

struct wish *wish_next(struct namer *n)
{
	struct naming_user *next = NULL;

	for (uint32_t i = 0; i < n->n_users && n->n_to_name > 0; i++) {
		struct naming_user *u = n->user[i];
		if (!TAILQ_EMPTY(&u->to_name) && (n->ending || budget(n, u) >= 0) &&
			(!next || u->parse_ns < next->parse_ns))
			next = u;
	}
	return next ? TAILQ_FIRST(&next->to_name) : NULL;
}

struct naming_user *naming_user_next_job(struct namer *n, const bool *passed)
{
	struct naming_user *next = NULL;

	for (uint32_t i = 0; i < n->n_users && n->n_jobs > 0; i++) {
		struct naming_user *u = n->user[i];
		if (!TAILQ_EMPTY(&u->jobs) && !passed[i] && (n->ending || budget(n, u) >= 0) &&
			(!next || u->parse_ns < next->parse_ns))
			next = u;
	}
	return next;
}

void naming_user_pay_open(struct namer *n, struct naming_user *u, uint64_t wall_ns)
{
	if (u->open_ns > n->open_floor_ns)
		n->open_floor_ns = u->open_ns;
	u->open_ns += wall_ns > NAMER_TURN_NS ? wall_ns : NAMER_TURN_NS;
}

void naming_user_pay_parse(
	struct namer *n, struct naming_user *u, uint64_t wall_ns, uint64_t cpu_ns)
{
	if (u->parse_ns > n->parse_floor_ns)
		n->parse_floor_ns = u->parse_ns;
	u->parse_ns += wall_ns > NAMER_TURN_NS ? wall_ns : NAMER_TURN_NS;
	u->budget_ns = budget(n, u) - (int64_t)cpu_ns;
	u->budget_at_ns = n->now_ns;
	n->users_ns += u->uid == 0 ? 0 : cpu_ns;
}

uint64_t naming_users_deadline_ns(const struct namer *n)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < n->n_users; i++) {
		const struct naming_user *u = n->user[i];
		uint64_t due = UINT64_MAX;
		int64_t left = budget(n, u);
		if (!TAILQ_EMPTY(&u->to_open) && !naming_user_may_open(n, u))
			due = account_is_refused(&u->opens, n->now_ns) ? u->opens.until_ns
								       : n->now_ns + STUCK_LOOK_NS;
		first = due < first ? due : first;
		if (left >= 0 || (TAILQ_EMPTY(&u->to_name) && TAILQ_EMPTY(&u->jobs)))
			continue;
		due = n->now_ns + (uint64_t)-left * NAMER_BUDGET_SHARE;
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

static void show(const struct namer *n, const struct naming_user *u, const struct account *a,
	const char *what, struct namer_status *status)
{
	if (!account_is_refused(a, n->now_ns))
		return;
	if (status->n_refused < NAMER_REFUSED_SHOWN_MAX)
		status->refused[status->n_refused] = (struct namer_refused){.uid = u->uid,
			.what = what,
			.deaths = a->deaths,
			.since_ns = a->charged_ns,
			.until_ns = a->until_ns};
	status->n_refused++;
}

void naming_users_status(const struct namer *n, struct namer_status *status)
{
	for (uint32_t i = 0; i < n->n_users; i++) {
		const struct naming_user *u = n->user[i];
		show(n, u, &u->files, "files", status);
		show(n, u, &u->stacks, "stacks", status);
		show(n, u, &u->opens, "opening files", status);
	}
}
