/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The namer's two workers side by side. Calls only queue; dispatch receives the workers' answers,
 * kills workers that exceed their time, and sends the next requests, until neither has anything
 * new. Answers are always received before deadlines are checked, so that a delayed daemon does not
 * kill a worker for its own delay.
 *
 * However a worker ends, its current request is the cause, exactly one file or one stack; it is
 * marked and charged (blame.c), a new worker is started, and everything else continues with the
 * descriptors that the daemon kept. A worker that ends without a request, or cannot be started, is
 * tried again for ever, with growing delays; while it is down for long, names are not awaited, but
 * come when it is back.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/naming/namer_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

_Static_assert(NAMER_USERS_MAX <= FRAME_LATE, "no user's index is FRAME_LATE");

DEFINE_CLEANUP(struct namer *, namer_free)

/* Did it fail for lack of a resource that may be available again soon? Source: man fork,
 * socketpair. */
static bool may_come_right(int error)
{
	return error == -EAGAIN || error == -ENOMEM || error == -EMFILE || error == -ENFILE ||
	       error == -ENOBUFS;
}

/* Start a worker, or schedule the next attempt. -errno: no attempt can succeed. */
static int put_up(struct namer *n, struct worker *w)
{
	bool room = n->graves.n < WORKER_GRAVES_MAX;
	int r = room ? worker_start(w, n->binary, n->now_ns) : -EAGAIN;

	if (r == 0)
		return 0;
	w->error = -r;
	worker_schedule(w, false, n->now_ns);
	n->off |= w->failures >= WORKER_FAILURES_MAX;
	return may_come_right(r) ? 0 : r;
}

int namer_new(const struct namer_options *o, struct namer **ret_namer)
{
	_cleanup_(namer_freep) struct namer *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->options = *o;
	n->strings.pool = o->files ? o->files->pool : NULL;
	n->strings.pool_uid = o->files ? o->files->pool_uid : 0;
	if (o->graves)
		graves_visit(o->graves);
	n->opener = (struct worker){.role = WORKER_OPENER, .fd = -1, .deadline_ns = UINT64_MAX};
	n->parser = (struct worker){.role = WORKER_PARSER, .fd = -1, .deadline_ns = UINT64_MAX};
	TAILQ_INIT(&n->slots);
	TAILQ_INIT(&n->held);
	n->wake_ns = UINT64_MAX;
	n->now_ns = clock_ns(CLOCK_MONOTONIC);
	int r = naming_users_begin(n);
	if (r == 0)
		r = worker_find_binary(o->binary, &n->binary);
	if (r == 0)
		r = put_up(n, &n->opener);
	if (r == 0)
		r = put_up(n, &n->parser);
	if (r < 0)
		return r;
	*ret_namer = TAKE_PTR(n);
	return 0;
}

struct namer *namer_free(struct namer *n)
{
	if (!n)
		return NULL;
	worker_kill(&n->opener, &n->graves, (uid_t)-1);
	worker_kill(&n->parser, &n->graves, (uid_t)-1);
	jobs_free(n);
	struct slot *s;
	while ((s = TAILQ_FIRST(&n->slots))) {
		TAILQ_REMOVE(&n->slots, s, by_use);
		s->file->namer_slot = NULL;
		slot_free(n, s);
	}
	naming_users_clear(n);
	strings_clear(&n->strings);
	graves_leave(&n->graves, n->options.graves);
	free(n->forget);
	free(n->binary);
	free(n);
	return NULL;
}

int namer_open(struct namer *n, struct file *file, uid_t uid)
{
	struct slot *s;
	int r = n->off ? 0 : slot_get(n, file, &s);

	if (n->off || r < 0)
		return r;
	return slot_want(n, s, naming_user_get(n, uid));
}

bool namer_is_rewritten(struct namer *n, struct file *file)
{
	struct slot *s = file->namer_slot;
	int seen = s ? slot_look(s) : SLOT_SAME;

	file->touched |=
		file->look_again_ns && file->kind == FILE_ELF && n->now_ns >= file->look_again_ns;
	if (s && !file->touched)
		slot_touch(n, s); /* what is run often stays open */
	return seen == SLOT_REWRITTEN || file->touched;
}

int namer_runs(struct namer *n, struct file *file)
{
	struct slot *s = file->namer_slot;

	if (!s || !s->absent || s->n_late == 0 || s->rests || n->now_ns < s->retry_ns)
		return 0;
	file->state = FILE_UNSEEN;
	return slot_resume(n, s);
}

uint64_t namer_missed_ns(const struct namer *n)
{
	return n->missed_ns;
}

int namer_hurry(struct namer *n, struct frame *frame, uid_t uid)
{
	struct slot *s = frame->file->namer_slot;

	if (frame->state != FRAME_ASKED || !s || s->rests || slot_grows(s) ||
		frame->asker >= n->n_users || n->user[frame->asker]->uid == uid ||
		n->n_entries >= n->n_waiting_frames + NAMER_HURRIED_MAX)
		return 0;
	struct naming_user *u = naming_user_get(n, uid), *first = n->user[frame->asker];
	if (u == first || !naming_user_is_before(n, u, first))
		return 0;
	int r = slot_push(n, s, frame, u);
	return r == 0 && s->queue == QUEUE_OPEN ? slot_want(n, s, u) : r;
}

int namer_name(struct namer *n, struct frame *frame, uid_t uid)
{
	struct file *file = frame->file;
	struct slot *s;

	if (frame->state == FRAME_ASKED)
		return namer_hurry(n, frame, uid);
	if (frame->state != FRAME_NEW)
		return 0;
	int r = namer_open(n, file, uid);
	if (r == 0)
		r = slot_get(n, file, &s);
	if (r == 0)
		r = slot_push(n, s, frame, naming_user_get(n, uid));
	if (r < 0)
		return r;
	n->n_waiting_frames++;
	if (file->kind == FILE_PERF_MAP && file->state == FILE_VANISHED && n->now_ns >= s->retry_ns)
		file->state = FILE_UNSEEN;
	if (s->queue == QUEUE_NONE)
		slot_enqueue_name(n, s);
	return 0;
}

int namer_name_as(struct namer *n, struct frame *frame, const char *function)
{
	if (frame->state != FRAME_NEW)
		return 0;
	const char *name = strings_intern(&n->strings, function, strlen(function), n->user[0]);
	if (!name)
		return NAMER_FULL;
	struct place *place = calloc(1, sizeof(*place));
	if (!place)
		return -ENOMEM;
	place->function = name;
	frame->place = place;
	frame->n_places = 1;
	frame->state = FRAME_NAMED;
	return 0;
}

int namer_ask_again(struct namer *n)
{
	n->ending = true;
	for (struct slot *s = TAILQ_FIRST(&n->slots); s; s = TAILQ_NEXT(s, by_use)) {
		int r = s->n_late > 0 ? slot_ask_again(n, s) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- the workers' lives ----------------------------------------------------------------------- */

/* The user of its request. NULL: no request. */
static struct naming_user *asker(const struct namer *n, const struct worker *w)
{
	if (w == &n->opener)
		return n->opening ? n->opening->opens : NULL;
	return n->asked_slot || n->asked_job ? n->asked_user : NULL;
}

/* Charge the worker's request to its user. */
static void pay(struct namer *n, const struct worker *w, struct naming_user *u)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t wall_ns = now_ns > w->asked_ns ? now_ns - w->asked_ns : 0;

	if (u && w == &n->opener)
		naming_user_pay_open(n, u, wall_ns);
	else if (u)
		naming_user_pay_parse(n, u, wall_ns, worker_used_ns(w, now_ns));
}

static int restart(struct namer *n, struct worker *w, enum worker_end end)
{
	bool opens = w == &n->opener;
	struct naming_user *u = asker(n, w);

	pay(n, w, u);
	worker_kill(w, &n->graves, u ? u->uid : (uid_t)-1);
	int r = opens ? opener_ended(n, end) : parser_ended(n, end);
	if (r < 0)
		return r;
	if (!opens) {
		n->n_forget =
			0; /* the next one has nothing to forget, and has seen nobody's files */
		n->n_seen = 0;
	}
	w->restarts++;
	w->ended_ns = n->now_ns;
	worker_schedule(w, u != NULL, n->now_ns);
	n->off |= w->failures >= WORKER_FAILURES_MAX;
	return 0;
}

/* Both workers run again: continue with what waited for them. */
static void come_back(struct namer *n)
{
	if (!n->off || n->opener.state < WORKER_IDLE || n->parser.state < WORKER_IDLE)
		return;
	n->off = false;
	n->wake_ns = 0;
	n->opener.failures = n->parser.failures = 0;
}

/* Take one answer. *ret_heard: something was received, perhaps its end. */
static int hear(struct namer *n, struct worker *w, bool *ret_heard)
{
	int fd = -1;

	if (w->state == WORKER_DEAD)
		return 0;
	if (w->state == WORKER_BROKEN) {
		*ret_heard = true;
		return restart(n, w, WORKER_DIED);
	}
	enum worker_state before = w->state;
	ssize_t bytes = worker_hear(w, n->buffer, sizeof(n->buffer), &fd);
	if (bytes == -EAGAIN) {
		*ret_heard |= w->state != before;
		come_back(n);
		return 0;
	}
	*ret_heard = true;
	if (bytes == 0)
		return restart(n, w, worker_autopsy(w));
	if (bytes < 0)
		return restart(n, w, WORKER_LIED);

	struct naming_user *u = asker(n, w);
	int r = w == &n->opener ? opener_hear(n, n->buffer, (size_t)bytes, fd)
				: parser_hear(n, n->buffer, (size_t)bytes);
	if (r == -EBADMSG)
		return restart(n, w, WORKER_LIED);
	if (r == 0 && w->state == WORKER_BUSY) {
		pay(n, w, u);
		worker_answered(w);
	}
	return r < 0 ? r : 0;
}

/* A worker that got little CPU time on a busy machine gets a later deadline: otherwise a user who
 * keeps all harts busy could prevent the naming of other users' files. An opener that hangs is
 * asleep, and a runnable one does not hang; a parser that spins uses CPU time. */
static bool has_time_left(const struct namer *n, struct worker *w)
{
	bool parses = w == &n->parser;
	uint64_t limit_ns =
		parses ? namer_timeout(n->options.parse_timeout_ns, NAMER_PARSE_TIMEOUT_NS)
		       : namer_timeout(n->options.open_timeout_ns, NAMER_OPEN_TIMEOUT_NS);
	uint64_t used_ns = worker_used_ns(w, n->now_ns);

	if (w->state != WORKER_BUSY || used_ns >= limit_ns)
		return false;
	bool waits = parses && n->now_ns < w->asked_ns + NAMER_WALL_TIMES * limit_ns;
	if (!waits && !worker_is_runnable(w))
		return false;
	w->deadline_ns = n->now_ns + limit_ns - used_ns;
	return true;
}

static int expire(struct namer *n, struct worker *w, bool *ret_fed)
{
	if (w->state == WORKER_DEAD) {
		*ret_fed |= n->now_ns >= w->start_ns;
		if (n->now_ns >= w->start_ns)
			(void)put_up(n, w); /* the next attempt may succeed */
		return 0;
	}
	if (n->now_ns < w->deadline_ns || has_time_left(n, w))
		return 0;
	*ret_fed = true;
	return restart(n, w, WORKER_OVER_TIME);
}

/* Stop waiting while a worker is down: frames are named later, stacks are not unwound. */
static int drain(struct namer *n)
{
	int r = 0;

	for (uint32_t i = 0; i < n->n_users && r == 0; i++) {
		struct naming_user *u = n->user[i];
		while (r == 0 && (!TAILQ_EMPTY(&u->to_open) || !TAILQ_EMPTY(&u->to_name))) {
			struct slot *s = TAILQ_EMPTY(&u->to_open) ? TAILQ_FIRST(&u->to_name)->slot
								  : TAILQ_FIRST(&u->to_open);
			if (s->file->state == FILE_OPENING)
				s->file->state = FILE_UNSEEN;
			r = slot_rest(n, s);
		}
	}
	jobs_fail(n);
	return r;
}

static int turn(struct namer *n, bool *ret_busy)
{
	int r = hear(n, &n->opener, ret_busy);

	if (r == 0)
		r = hear(n, &n->parser, ret_busy);
	if (r == 0)
		r = expire(n, &n->opener, ret_busy);
	if (r == 0)
		r = expire(n, &n->parser, ret_busy);
	if (r == 0)
		r = n->off ? drain(n) : slots_wake(n);
	if (r == 0)
		r = opener_feed(n, ret_busy);
	if (r == 0)
		r = parser_feed(n, ret_busy);
	return r;
}

int namer_dispatch(struct namer *n, uint64_t now_ns)
{
	n->now_ns = now_ns;
	n->fresh = false;
	graves_visit(&n->graves);
	int left = slots_leave(n);
	if (left < 0)
		return left;
	for (uint32_t i = 0; i < NAMER_ROUNDS_MAX; i++) {
		bool busy = false;
		int r = turn(n, &busy);
		if (r < 0)
			return r;
		if (!busy) {
			/* The feeding after a callback has handled what the callback queued. */
			n->fresh = false;
			return 0;
		}
	}
	n->fresh = true;
	return 0;
}

/* --- what the owner's loop needs -------------------------------------------------------------- */

int namer_fds(const struct namer *n, struct pollfd ret_fds[NAMER_FDS_MAX])
{
	int n_fds = 0;

	if (n->opener.fd >= 0)
		ret_fds[n_fds++] = (struct pollfd){.fd = n->opener.fd, .events = POLLIN};
	if (n->parser.fd >= 0)
		ret_fds[n_fds++] = (struct pollfd){.fd = n->parser.fd, .events = POLLIN};
	return n_fds;
}

static uint64_t worker_deadline_ns(const struct worker *w)
{
	return w->state == WORKER_BROKEN ? 0
	       : w->state == WORKER_DEAD ? w->start_ns
					 : w->deadline_ns;
}

uint64_t namer_deadline_ns(const struct namer *n)
{
	uint64_t due[] = {worker_deadline_ns(&n->opener), worker_deadline_ns(&n->parser),
		n->off ? UINT64_MAX : n->wake_ns,
		n->off ? UINT64_MAX : naming_users_deadline_ns(n)};
	uint64_t first = n->fresh ? 0 : UINT64_MAX;

	for (size_t i = 0; i < sizeof(due) / sizeof(*due); i++)
		first = due[i] < first ? due[i] : first;
	return first;
}

bool namer_idle(const struct namer *n)
{
	return n->n_waiting_frames == 0 && n->n_waiting_jobs == 0 && n->n_to_open == 0 &&
	       n->n_to_name == 0 && !n->opening && n->opener.state != WORKER_BUSY &&
	       n->parser.state != WORKER_BUSY;
}

size_t namer_waiting(const struct namer *n)
{
	return n->n_waiting_frames + n->n_waiting_jobs;
}

static struct namer_worker_status worker_status(const struct worker *w)
{
	static const char *const states[] = {
		[WORKER_DEAD] = "failed",
		[WORKER_STARTING] = "starts",
		[WORKER_IDLE] = "waits",
		[WORKER_BUSY] = "works",
		[WORKER_BROKEN] = "failed",
	};

	return (struct namer_worker_status){
		.pid = w->pid,
		.restarts = w->restarts,
		.state = states[w->state],
		.ended_ns = w->ended_ns,
		.start_ns = w->state == WORKER_DEAD ? w->start_ns : 0,
		.error = w->state == WORKER_DEAD ? w->error : 0,
	};
}

void namer_status(const struct namer *n, struct namer_status *ret_status)
{
	*ret_status = (struct namer_status){
		.opener = worker_status(&n->opener),
		.parser = worker_status(&n->parser),
		.off = n->off,
		.n_deaths = n->n_deaths,
		.n_faulty = n->n_faulty,
		.n_waiting = namer_waiting(n),
		.n_named = n->n_named,
		.n_unwound = n->n_unwound,
	};
	naming_users_status(n, ret_status);
}

uint64_t namer_users_ns(const struct namer *n)
{
	const struct naming_user *u = asker(n, &n->parser);

	return n->users_ns + (u && u->uid != 0 ? worker_used_ns(&n->parser, n->now_ns) : 0);
}

static bool is_at_rest(const struct namer *n, const struct slot *s)
{
	return s->queue == QUEUE_NONE && s->n_frames == 0 && s != n->opening && s != n->asked_slot;
}

void namer_sweep_mark(const struct namer *n, struct file_marks *m)
{
	for (uint32_t i = 0; i < n->n_sampled; i++)
		file_marks_keep(m, n->sampled[i]);
	for (const struct slot *slot = TAILQ_FIRST(&n->slots); slot;
		slot = TAILQ_NEXT(slot, by_use)) {
		if (!is_at_rest(n, slot))
			file_marks_keep(m, slot->file);
		const struct wish *w;
		for (w = TAILQ_FIRST(&slot->wishes); w; w = TAILQ_NEXT(w, of_slot))
			for (size_t i = 0; i < w->n; i++)
				file_marks_keep_frame(m, w->frame[i]);
	}
	for (uint32_t i = n->n_answered; i < n->n_batch; i++)
		file_marks_keep_frame(m, n->batch[i]);
	for (const struct snapshot *shot = n->snapshots; shot; shot = shot->hh.next)
		for (uint32_t i = 0; i < shot->n_maps; i++)
			file_marks_keep(m, shot->map[i].file);
}

/* Forget late frames that are not marked: a line may still come for them, but nothing would use it. */
static void forget_late(struct slot *slot, const struct file_marks *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < slot->n_late; i++)
		if (m->frame[slot->late[i]->id - 1] == SWEEP_KEPT)
			slot->late[kept++] = slot->late[i];
	slot->n_late = kept;
}

int namer_sweep_slots(struct namer *n, const struct file_marks *m)
{
	struct slot *next;

	for (struct slot *slot = TAILQ_FIRST(&n->slots); slot; slot = next) {
		next = TAILQ_NEXT(slot, by_use);
		forget_late(slot, m);
		if (m->file[slot->file->id - 1] == SWEEP_KEPT)
			continue;
		int r = slot_release(n, slot);
		if (r < 0)
			return r;
		TAILQ_REMOVE(&n->slots, slot, by_use);
		slot->file->namer_slot = NULL;
		slot_free(n, slot);
	}
	return 0;
}

void namer_sweep_names(struct namer *n)
{
	const struct file_table *t = n->options.files;

	for (uint32_t i = 0; i < t->n_frames; i++) {
		const struct frame *frame = t->frame[i];

		for (uint32_t p = 0; frame && p < frame->n_places; p++) {
			strings_keep(frame->place[p].function);
			strings_keep(frame->place[p].source);
		}
	}
	strings_sweep(&n->strings, n->user, n->n_users);
}
