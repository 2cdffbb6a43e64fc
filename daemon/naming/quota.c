/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A user has an entry while it holds something, so there are at most as many entries as places in the
 * table. We remember the entry used last, since samples of one user come one after the other.
 */
#include "daemon/naming/quota.h"

#include <stdlib.h>

#include "proto/base/hash_table.h"

struct quota_user {
	uid_t uid;
	uint64_t held;
	UT_hash_handle hh;
};

static struct quota_user *find(struct quota *q, uid_t uid)
{
	struct quota_user *u = q->last;

	if (u && u->uid == uid)
		return u;
	HASH_FIND(hh, q->users, &uid, sizeof(uid), u);
	if (u)
		q->last = u;
	return u;
}

/* Find or add the entry of a user. NULL: unknown user, or no memory. */
static struct quota_user *get(struct quota *q, uid_t uid)
{
	struct quota_user *u = uid == (uid_t)-1 ? NULL : find(q, uid);

	if (u || uid == (uid_t)-1)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	HASH_ADD(hh, q->users, uid, sizeof(u->uid), u);
	if (!u->hh.tbl) {
		free(u);
		return NULL;
	}
	return q->last = u;
}

static void drop(struct quota *q, struct quota_user *u)
{
	if (q->last == u)
		q->last = NULL;
	HASH_DEL(q->users, u);
	free(u);
}

bool quota_take(struct quota *q, uid_t uid, uint64_t max, uint64_t n)
{
	if (n == 0)
		return true;
	struct quota_user *u = get(q, uid);
	uint64_t *held = u ? &u->held : &q->unknown;
	uint64_t most = uid == 0 ? max : max - max / QUOTA_ROOT_PART;
	uint64_t others = q->held - *held;
	/* as much as is left when it has this: held + n ≤ most - others - (held + n) */
	uint64_t left = most > others ? most - others : 0;

	if (*held + n <= (uid == 0 ? left : left / 2)) {
		*held += n;
		q->held += n;
		return true;
	}
	if (u && u->held == 0)
		drop(q, u);
	q->n_refused++;
	return false;
}

void quota_give(struct quota *q, uid_t uid, uint64_t n)
{
	struct quota_user *u = uid == (uid_t)-1 ? NULL : find(q, uid);
	uint64_t *held = u ? &u->held : &q->unknown;

	if (n > *held)
		n = *held; /* it took this as nobody, when there was no memory for its entry */
	*held -= n;
	q->held -= n;
	if (u && u->held == 0)
		drop(q, u);
}

uint64_t quota_held(struct quota *q, uid_t uid)
{
	struct quota_user *u = uid == (uid_t)-1 ? NULL : find(q, uid);

	return u ? u->held : uid == (uid_t)-1 ? q->unknown : 0;
}

void quota_clear(struct quota *q)
{
	while (q->users)
		drop(q, q->users);
	*q = (struct quota){0};
}
