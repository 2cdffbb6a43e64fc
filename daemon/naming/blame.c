/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The user to charge for a parser that died, or took too long.
 *
 * For a file it is its author: the owner, if nobody else can write to it. Charging the user in
 * whose process it was found would let the owner of a library deprive all its users of names. A
 * file that others can also write to, or whose owner is known only from a remote or user-mounted
 * file system, has no proven author; then the user in whose process it was found is charged. Root's
 * files are charged to nobody: they are shared libraries of all users, and their number is limited.
 * For a stack it is the process's user.
 *
 * A file may kill the parser at once, or corrupt it so that it dies on the next file. So a death
 * counts only if the parser held no files of other authors. If it did, the same request goes to the
 * next parser, first and alone.
 *
 * The file is remembered by device, inode, size and time, since its other data is freed with the
 * last process that maps it.
 */
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <unistd.h>

static bool is_author(const void *slot, uid_t uid)
{
	const struct slot *s = slot;

	for (enum message_part part = PART_MAIN; part < N_PARTS; part++)
		if ((part == PART_MAIN || s->joined & 1u << part) && slot_author(s, part) == uid)
			return true;
	return false;
}

bool slot_is_proven(const struct namer *n, const struct slot *s)
{
	return parser_saw_only(n, is_author, s);
}

/* Is it the user of the stack, or the author of a file in it? */
static bool is_in_stack(const void *job, uid_t uid)
{
	const struct job *j = job;
	const struct snapshot *shot = j->snapshot;

	if (j->user->uid == uid)
		return true;
	for (uint32_t i = 0; i < shot->n_maps; i++) {
		const struct slot *s = shot->map[i].file ? shot->map[i].file->namer_slot : NULL;
		if (s && slot_author(s, PART_MAIN) == uid)
			return true;
	}
	return false;
}

bool job_is_proven(const struct namer *n, const struct job *j)
{
	return parser_saw_only(n, is_in_stack, j);
}

/* --- files ------------------------------------------------------------------------------------ */

static bool is_same(const struct origin *a, const struct origin *b)
{
	return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
	       a->changed_ns == b->changed_ns;
}

bool origin_is_faulty(const struct namer *n, const struct origin *o, enum file_state *ret_state)
{
	for (uint32_t i = 0; i < n->blames.n_faulty; i++)
		if (is_same(&n->blames.faulty[i].origin, o)) {
			*ret_state = n->blames.faulty[i].state;
			return true;
		}
	return false;
}

static void origin_blame(struct namer *n, const struct origin *o, enum file_state state)
{
	enum file_state known;

	if (o->inode == 0 || origin_is_faulty(n, o, &known))
		return;
	n->blames.faulty[n->blames.next_faulty] = (struct faulty){.origin = *o, .state = state};
	n->blames.next_faulty = (n->blames.next_faulty + 1) % NAMER_FAULTY_MAX;
	if (n->blames.n_faulty < NAMER_FAULTY_MAX)
		n->blames.n_faulty++;
}

void blame_count(struct namer *n)
{
	n->blames.n_deaths++;
}

static void charge(struct namer *n, uid_t uid)
{
	blame_count(n);
	if (uid != 0)
		account_charge(
			&naming_user_get(&n->users, uid)->files, NAMER_DEATHS_USER_MAX, n->now_ns);
}

/* Try the file without its debug file: one of the two was the cause, perhaps the debug file. */
static void drop_debug(struct namer *n, struct slot *s)
{
	s->no_debug = true;
	s->joined = 0;
	for (enum message_part part = PART_DEBUG; part < N_PARTS; part++)
		slot_drop(n, s, part);
	slot_enqueue_first(n, s);
}

int slot_blame(struct namer *n, struct slot *s, enum file_state state)
{
	uid_t author = slot_author(s, PART_MAIN);

	if (s->joined) {
		enum message_part part = PART_SPLIT; /* the part that was joined last */
		while (!(s->joined & 1u << part))
			part--;
		if (slot_part_is_fetched(s, part))
			blame_count(n); /* nobody who runs the program is to blame */
		else
			charge(n, slot_author(s, part) == author ? author : s->asker);
		drop_debug(n, s);
		return 0;
	}
	charge(n, author);
	origin_blame(n, &s->origin[PART_MAIN], state);
	return slot_fail(n, s, state);
}

/* --- a user who is refused -------------------------------------------------------------------- */

static const struct account *account_of(const struct namer *n, const struct slot *s)
{
	uid_t uid = slot_author(s, PART_MAIN);
	const struct naming_user *u = uid ? naming_user_find(&n->users, uid) : NULL;

	return u ? &u->files : NULL;
}

bool slot_is_refused(const struct namer *n, const struct slot *s)
{
	const struct account *a = account_of(n, s);

	return a && account_is_refused(a, n->now_ns);
}

int slot_pause(struct namer *n, struct slot *s)
{
	const struct account *a = account_of(n, s);
	uint64_t until_ns = a && a->until_ns > n->now_ns ? a->until_ns : UINT64_MAX;

	slot_dequeue(n, s);
	if (n->ending) {
		slot_finish(n, s);
		return 0;
	}
	int r = slot_postpone(n, s);
	if (r < 0)
		return r;
	s->paused = true;
	if (until_ns < n->blames.wake_ns)
		n->blames.wake_ns = until_ns;
	return 0;
}

int slots_wake(struct namer *n)
{
	int r = 0;

	if (n->now_ns < n->blames.wake_ns || n->off)
		return 0;
	n->blames.wake_ns = UINT64_MAX;
	for (struct slot *s = slots_next(n, NULL); s && r == 0; s = slots_next(n, s)) {
		const struct account *a = s->paused ? account_of(n, s) : NULL;
		if (a && account_is_refused(a, n->now_ns)) {
			n->blames.wake_ns =
				a->until_ns < n->blames.wake_ns ? a->until_ns : n->blames.wake_ns;
			continue;
		}
		if (s->paused)
			r = slot_resume(n, s);
	}
	return r;
}

uint64_t slots_wake_ns(const struct namer *n)
{
	return n->blames.wake_ns;
}

void slots_wake_soon(struct namer *n)
{
	n->blames.wake_ns = 0;
}

void blames_begin(struct blames *b)
{
	b->wake_ns = UINT64_MAX;
}

void blames_status(const struct blames *b, struct namer_status *status)
{
	status->n_deaths = b->n_deaths;
	status->n_faulty = b->n_faulty;
}
