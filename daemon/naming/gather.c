/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/naming/gather.h"

#include "daemon/naming/namer_private.h"

/* The number of wishes; above max: there are more than that, or one of them is urgent. */
static size_t count_wishes(const struct namer *n, size_t max)
{
	const struct naming_user *u;
	const struct wish *w;
	size_t n_wishes = 0;

	for (uint32_t i = 0; (u = naming_user_at(&n->users, i)); i++)
		for (w = TAILQ_FIRST(&u->to_name); w; w = TAILQ_NEXT(w, of_user))
			if (++n_wishes > max || !slot_is_loaded(n, w->slot) || slot_grows(w->slot))
				return max + 1;
	return n_wishes;
}

bool gather_is_trickle(const struct namer *n)
{
	return frames_waiting(n) <= GATHER_FRAMES_MAX &&
	       count_wishes(n, GATHER_FILES_MAX) <= GATHER_FILES_MAX;
}

bool gather_waits(struct namer *n)
{
	struct gathering *g = &n->gathering;

	if (!n->patient || naming_users_queued(&n->users, QUEUED_NAME) == 0 ||
		!gather_is_trickle(n)) {
		*g = (struct gathering){0};
		return false;
	}
	if (g->n > 0)
		return false;
	if (g->until_ns == 0)
		g->until_ns = n->now_ns + GATHER_NS;
	if (n->now_ns < g->until_ns)
		return true;
	g->n = count_wishes(n, GATHER_FILES_MAX);
	return false;
}

void gather_note_served(struct namer *n)
{
	struct gathering *g = &n->gathering;

	if (g->n > 0 && --g->n == 0)
		g->until_ns = 0;
}
