/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Events are trusted to come in order only as far as LLVM's runtime sends them so: an end without a
 * begin does nothing, and a level that is left takes with it what was begun in it and not ended.
 */
#include "runtime/ompt/strand.h"

static void write_begin(struct strand *s)
{
	__atomic_store_n(&s->sequence, s->sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void write_end(struct strand *s)
{
	__atomic_store_n(&s->sequence, s->sequence + 1, __ATOMIC_RELEASE);
}

static void add(uint64_t *to, uint64_t more)
{
	__atomic_store_n(to, *to + more, __ATOMIC_RELAXED);
}

static uint64_t between(uint64_t since_ns, uint64_t until_ns)
{
	return until_ns > since_ns ? until_ns - since_ns : 0;
}

/* --- tallies ---------------------------------------------------------------------------------- */

static uint32_t chain_of(const struct place *place)
{
	return (uint32_t)(((uintptr_t)place / sizeof(*place)) % STRAND_CHAINS);
}

/* NULL: no room. */
static struct tally *tally_get(struct strand *s, struct place *place, uint64_t now_ns)
{
	if (!place)
		return NULL;
	struct tally **chain = &s->chain[chain_of(place)];
	struct tally *t = *chain;
	while (t && t->place != place)
		t = t->chain;
	if (t)
		return t;
	t = s->memory(s->userdata, sizeof(*t));
	if (!t)
		return place->kind == MPERF_PLACE_PARALLEL ? s->other : NULL;
	t->place = place;
	t->from_ns = now_ns;
	t->chain = *chain;
	*chain = t;
	t->next = s->all;
	__atomic_store_n(&s->all, t, __ATOMIC_RELEASE);
	return t;
}

bool strand_init(struct strand *s, void *(*memory)(void *userdata, size_t bytes), void *userdata,
	uint64_t now_ns)
{
	s->memory = memory;
	s->userdata = userdata;
	s->other = tally_get(s, place_other(), now_ns);
	return s->other != NULL;
}

/* The number of levels that are stored. */
static uint32_t kept(const struct strand *s)
{
	return s->depth < STRAND_LEVELS_MAX ? s->depth : STRAND_LEVELS_MAX;
}

struct place *strand_place(const struct strand *s)
{
	uint32_t n = kept(s);
	return n ? s->level[n - 1].team->place : NULL;
}

/* --- regions ---------------------------------------------------------------------------------- */

/* When a level ended, or now if it is open. */
static uint64_t level_until(const struct level *l, uint64_t now_ns)
{
	uint64_t end_ns = __atomic_load_n(&l->team->end_ns, __ATOMIC_ACQUIRE);
	return end_ns && end_ns < now_ns ? end_ns : now_ns;
}

struct team *strand_begin(struct strand *s, const void *address)
{
	struct team *team = NULL;
	if (s->n_begun < STRAND_LEVELS_MAX) {
		team = team_begin(place_get(MPERF_PLACE_PARALLEL, address, strand_place(s)));
		s->begun[s->n_begun] = team;
	}
	s->n_begun++;
	return team;
}

void strand_end(struct strand *s, uint64_t now_ns)
{
	if (s->n_begun > 0 && --s->n_begun < STRAND_LEVELS_MAX && s->begun[s->n_begun])
		team_end(s->begun[s->n_begun], now_ns);
}

void strand_enter(struct strand *s, struct team *team, bool first, uint64_t now_ns)
{
	struct tally *t = s->depth < STRAND_LEVELS_MAX ? tally_get(s, team->place, now_ns) : NULL;
	write_begin(s);
	if (s->depth < STRAND_LEVELS_MAX) {
		team_ref(team);
		s->level[s->depth] = (struct level){team, t, now_ns};
		if (t)
			add(&t->entries, 1);
		if (t && first)
			add(&t->calls, 1);
	}
	s->depth++;
	write_end(s);
}

/* Add a wait up to that time, to its own tally and its region's. */
static void wait_add(struct strand *s, struct wait *w, uint64_t now_ns)
{
	const struct level *l = w->depth ? &s->level[w->depth - 1] : NULL;
	uint64_t ns = w->since_ns ? between(w->since_ns, l ? level_until(l, now_ns) : now_ns) : 0;
	if (w->tally)
		add(&w->tally->time_ns, ns);
	if (l && l->tally)
		add(w == &s->lock ? &l->tally->lock_ns : &l->tally->wait_ns, ns);
}

/* Duration of a worksharing construct up to that time: it ends with its region at the latest. */
static uint64_t work_ns(const struct strand *s, const struct work *w, uint64_t now_ns)
{
	const struct level *l =
		w->depth && w->depth <= STRAND_LEVELS_MAX ? &s->level[w->depth - 1] : NULL;
	return between(w->since_ns, l && l->team ? level_until(l, now_ns) : now_ns);
}

static void work_add(const struct strand *s, const struct work *w, uint64_t now_ns)
{
	if (w->tally)
		add(&w->tally->time_ns, work_ns(s, w, now_ns));
}

void strand_leave(struct strand *s, uint64_t now_ns)
{
	if (s->depth == 0)
		return;
	write_begin(s);
	if (s->depth <= STRAND_LEVELS_MAX) {
		struct level l = s->level[s->depth - 1];
		while (s->n_waits && s->wait[s->n_waits - 1].depth == s->depth)
			wait_add(s, &s->wait[--s->n_waits], now_ns);
		while (s->n_works && s->work[s->n_works - 1].depth == s->depth)
			work_add(s, &s->work[--s->n_works], now_ns);
		if (l.tally)
			add(&l.tally->time_ns, between(l.since_ns, level_until(&l, now_ns)));
		team_unref(l.team);
	}
	s->depth--;
	write_end(s);
}

/* --- work ------------------------------------------------------------------------------------- */

void strand_work_begin(struct strand *s, uint32_t kind, const void *address, uint64_t now_ns)
{
	if (s->n_works == STRAND_WORKS_MAX)
		return;
	struct tally *t = tally_get(s, place_get(kind, address, strand_place(s)), now_ns);
	write_begin(s);
	s->work[s->n_works++] = (struct work){t, kept(s), now_ns};
	if (t)
		add(&t->entries, 1);
	write_end(s);
}

void strand_work_end(struct strand *s, uint64_t now_ns)
{
	if (s->n_works == 0)
		return;
	write_begin(s);
	work_add(s, &s->work[--s->n_works], now_ns);
	write_end(s);
}

/* --- waits ------------------------------------------------------------------------------------ */

void strand_wait_begin(
	struct strand *s, uint32_t kind, const void *address, const void *task, uint64_t now_ns)
{
	if (s->n_waits == STRAND_WAITS_MAX)
		return;
	struct tally *t = tally_get(s, place_get(kind, address, strand_place(s)), now_ns);
	write_begin(s);
	s->wait[s->n_waits++] = (struct wait){task, t, kept(s), now_ns};
	if (t)
		add(&t->entries, 1);
	write_end(s);
}

/* The wait of that task; NULL: it has none. Waits inside it belong to tasks that ended elsewhere.
 * */
static struct wait *wait_of(struct strand *s, const void *task)
{
	uint32_t n = s->n_waits;
	while (n > 0 && s->wait[n - 1].task != task)
		n--;
	return n ? &s->wait[n - 1] : NULL;
}

void strand_wait_end(struct strand *s, const void *task, uint64_t now_ns)
{
	struct wait *w = wait_of(s, task);
	if (!w)
		return;
	write_begin(s);
	wait_add(s, w, now_ns);
	s->n_waits = (uint32_t)(w - s->wait);
	write_end(s);
}

void strand_switch(struct strand *s, const void *from, const void *to, uint64_t now_ns)
{
	if (s->n_waits == 0)
		return;
	struct wait *left = wait_of(s, from), *entered = wait_of(s, to);
	write_begin(s);
	if (left) {
		wait_add(s, left, now_ns);
		left->since_ns = 0;
	}
	if (entered && entered->since_ns == 0)
		entered->since_ns = now_ns;
	write_end(s);
}

/* --- locks ------------------------------------------------------------------------------------ */

void strand_lock_begin(
	struct strand *s, uint32_t kind, const void *address, const void *lock, uint64_t now_ns)
{
	struct tally *t = tally_get(s, place_get(kind, address, strand_place(s)), now_ns);
	write_begin(s);
	s->lock = (struct wait){lock, t, kept(s), now_ns};
	write_end(s);
}

void strand_lock_end(struct strand *s, const void *lock, uint64_t now_ns)
{
	if (!s->lock.task || s->lock.task != lock)
		return;
	write_begin(s);
	if (s->lock.tally)
		add(&s->lock.tally->entries, 1);
	if (s->lock.depth <= kept(s))
		wait_add(s, &s->lock, now_ns);
	s->lock.task = NULL;
	write_end(s);
}

/* ---------------------------------------------------------------------------------------------- */

void strand_forked(struct strand *s, uint64_t now_ns)
{
	s->sequence = s->depth = s->n_begun = s->n_works = s->n_waits = 0;
	s->lock.task = NULL;
	for (struct tally *t = s->all; t; t = t->next) {
		t->entries = t->calls = t->time_ns = t->wait_ns = t->lock_ns = 0;
		t->sent = (struct tally_sum){0};
		t->from_ns = now_ns;
	}
}

/* --- reading ---------------------------------------------------------------------------------- */

#define READ_TRIES 8u

/* Add a wait to a tally as if it ended now. */
static void add_open_wait(const struct strand *s, const struct wait *w, const struct tally *t,
	uint64_t now_ns, struct tally_sum *sum)
{
	if (w->since_ns == 0 || w->depth > STRAND_LEVELS_MAX)
		return;
	const struct level *l = w->depth ? &s->level[w->depth - 1] : NULL;
	if (l && !l->team)
		return;
	uint64_t ns = between(w->since_ns, l ? level_until(l, now_ns) : now_ns);
	if (w->tally == t)
		sum->time_ns += ns;
	if (l && l->tally == t)
		*(w == &s->lock ? &sum->lock_ns : &sum->wait_ns) += ns;
}

/* Read a tally. The values may be half-written, and are then discarded; so follow only pointers to
 * teams, which are never unmapped. */
static void read(
	const struct strand *s, const struct tally *t, uint64_t now_ns, struct tally_sum *sum)
{
	*sum = (struct tally_sum){
		.entries = __atomic_load_n(&t->entries, __ATOMIC_RELAXED),
		.calls = __atomic_load_n(&t->calls, __ATOMIC_RELAXED),
		.time_ns = __atomic_load_n(&t->time_ns, __ATOMIC_RELAXED),
		.wait_ns = __atomic_load_n(&t->wait_ns, __ATOMIC_RELAXED),
		.lock_ns = __atomic_load_n(&t->lock_ns, __ATOMIC_RELAXED),
	};
	for (uint32_t i = 0; i < kept(s); i++)
		if (s->level[i].tally == t && s->level[i].team)
			sum->time_ns +=
				between(s->level[i].since_ns, level_until(&s->level[i], now_ns));
	for (uint32_t i = 0; i < s->n_works && i < STRAND_WORKS_MAX; i++)
		if (s->work[i].tally == t)
			sum->time_ns += work_ns(s, &s->work[i], now_ns);
	for (uint32_t i = 0; i < s->n_waits && i < STRAND_WAITS_MAX; i++)
		add_open_wait(s, &s->wait[i], t, now_ns, sum);
	if (s->lock.task)
		add_open_wait(s, &s->lock, t, now_ns, sum);
}

bool strand_sum(
	const struct strand *s, const struct tally *t, uint64_t now_ns, struct tally_sum *ret_sum)
{
	for (unsigned i = 0; i < READ_TRIES; i++) {
		struct tally_sum sum;
		uint32_t before = __atomic_load_n(&s->sequence, __ATOMIC_ACQUIRE);
		if (before % 2)
			continue;
		read(s, t, now_ns, &sum);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&s->sequence, __ATOMIC_RELAXED) != before)
			continue;
		*ret_sum = sum;
		return true;
	}
	return false;
}
