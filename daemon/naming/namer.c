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
 * tried again for ever, with growing delays; while it is down for long, nobody waits for names;
 * they come when it runs again.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/naming/namer_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

_Static_assert(NAMER_USERS_MAX <= FRAME_LATE, "no user's index is FRAME_LATE");

DEFINE_CLEANUP(struct namer *, namer_free)

/* Start a worker, or schedule the next attempt. -errno: no attempt can succeed. */
static int start(struct namer *n, struct worker *w)
{
	int r = worker_start(w, n->binary, &n->graves, n->now_ns);

	n->off |= worker_is_down(w);
	return r;
}

int namer_new(const struct namer_options *o, struct namer **ret_namer)
{
	_cleanup_(namer_freep) struct namer *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->options = *o;
	if (o->graves)
		graves_visit(o->graves);
	n->opener = worker_of(WORKER_OPENER);
	n->parser = worker_of(WORKER_PARSER);
	n->now_ns = clock_ns(CLOCK_MONOTONIC);
	strings_begin(&n->strings, o->files);
	slots_begin(&n->slots);
	tables_begin(&n->tables);
	jobs_begin(&n->unwinding);
	blames_begin(&n->blames);
	int r = naming_users_begin(&n->users, &n->graves);
	if (r == 0)
		r = worker_find_binary(o->binary, &n->binary);
	if (r == 0)
		r = start(n, &n->opener);
	if (r == 0)
		r = start(n, &n->parser);
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
	n->options.unwound = NULL; /* the owner is freeing us */
	jobs_free(n);
	table_drop_arriving(n);
	slots_free(n);
	tables_end(&n->tables);
	naming_users_clear(&n->users);
	strings_clear(&n->strings);
	graves_leave(&n->graves, n->options.graves);
	request_clear(&n->request);
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
	return slot_want(n, s, naming_user_get(&n->users, uid));
}

bool namer_is_rewritten(struct namer *n, struct file *file)
{
	struct slot *s = file->namer_slot;
	int seen = s ? slot_look(s) : SLOT_SAME;

	file->touched |=
		file->look_again_ns && file->kind == FILE_ELF && n->now_ns >= file->look_again_ns;
	if (s && !file->touched)
		slot_touch(n, s); /* files that are run often stay open */
	return seen == SLOT_REWRITTEN || file->touched;
}

int namer_runs(struct namer *n, struct file *file)
{
	struct slot *s = file->namer_slot;

	if (!s || !s->absent || s->n_late == 0 || s->paused || n->now_ns < s->retry_ns)
		return 0;
	file->state = FILE_UNSEEN;
	return slot_resume(n, s);
}

int namer_hurry(struct namer *n, struct frame *frame, uid_t uid)
{
	struct slot *s = frame->file->namer_slot;

	if (frame->state != FRAME_ASKED || !s || s->paused || slot_grows(s) ||
		queue_entries(n) >= frames_waiting(n) + NAMER_HURRIED_MAX)
		return 0;
	const struct naming_user *first = naming_user_at(&n->users, frame->asker);
	if (!first || first->uid == uid)
		return 0;
	struct naming_user *u = naming_user_get(&n->users, uid);
	if (u == first || !naming_user_is_before(u, first, n->now_ns))
		return 0;
	int r = slot_push(n, s, frame, u);
	return r == 0 && s->queue == QUEUE_OPEN ? slot_want(n, s, u) : r;
}

int namer_name(struct namer *n, struct frame *frame, uid_t uid)
{
	struct file *file = frame->file;
	struct slot *s = file->namer_slot;

	if (s)
		s->n_samples++;
	if (frame->state == FRAME_ASKED)
		return namer_hurry(n, frame, uid);
	if (frame->state != FRAME_NEW || (s && slot_knows_answer(n, s, frame)))
		return 0;
	int r = namer_open(n, file, uid);
	if (r == 0)
		r = slot_get(n, file, &s);
	if (r == 0)
		r = slot_await(n, s, frame, naming_user_get(&n->users, uid));
	if (r < 0)
		return r;
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
	const char *name = strings_intern(
		&n->strings, function, strlen(function), naming_user_at(&n->users, 0));
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

int namer_look(struct namer *n, uint64_t now_ns)
{
	n->now_ns = now_ns;
	return growing_look(n);
}

void namer_pace(struct namer *n, double share)
{
	naming_users_pace(&n->users, share);
}

int namer_ask_again(struct namer *n)
{
	n->ending = true;
	n->patient = false;
	naming_users_unlimit(&n->users);
	return slots_ask_again(n);
}

/* --- the workers' lives ----------------------------------------------------------------------- */

/* The user of its request. NULL: no request. */
static struct naming_user *asker(const struct namer *n, const struct worker *w)
{
	if (w == &n->opener)
		return naming_users_served(&n->users, WORKER_OPENER);
	return parser_is_asked(n) ? naming_users_served(&n->users, WORKER_PARSER) : NULL;
}

/* Charge the worker's request to its user. */
static void pay(struct namer *n, const struct worker *w, struct naming_user *u)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t wall_ns = worker_wall_ns(w, now_ns);

	if (u && w == &n->opener)
		naming_user_pay_open(&n->users, u, wall_ns);
	else if (u)
		naming_user_pay_parse(&n->users, u, wall_ns, worker_used_ns(w, now_ns), n->now_ns);
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
	if (!opens)
		parser_begins(n);
	worker_ended(w, u != NULL, n->now_ns);
	n->off |= worker_is_down(w);
	return 0;
}

/* Both workers run again: continue with what waited for them. */
static void continue_both(struct namer *n)
{
	if (!n->off || !worker_runs(&n->opener) || !worker_runs(&n->parser))
		return;
	n->off = false;
	slots_wake_soon(n);
	worker_recovered(&n->opener);
	worker_recovered(&n->parser);
}

/* Take one answer. *ret_heard: something was received, perhaps the worker's end. */
static int hear(struct namer *n, struct worker *w, bool *ret_heard)
{
	int fd = -1;

	if (worker_state(w) == WORKER_DEAD)
		return 0;
	if (worker_state(w) == WORKER_BROKEN) {
		*ret_heard = true;
		return restart(n, w, WORKER_DIED);
	}
	enum worker_state before = worker_state(w);
	ssize_t bytes = worker_hear(w, n->buffer, sizeof(n->buffer), &fd);
	if (bytes == -EAGAIN) {
		*ret_heard |= worker_state(w) != before;
		continue_both(n);
		return 0;
	}
	*ret_heard = true;
	if (bytes == 0)
		return restart(n, w, worker_autopsy(w));
	if (bytes < 0)
		return restart(n, w, WORKER_INVALID);

	struct naming_user *u = asker(n, w);
	int r = w == &n->opener ? opener_hear(n, n->buffer, (size_t)bytes, fd)
				: parser_hear(n, n->buffer, (size_t)bytes);
	if (r == -EBADMSG)
		return restart(n, w, WORKER_INVALID);
	if (r == 0 && worker_state(w) == WORKER_BUSY) {
		pay(n, w, u);
		worker_answered(w);
	}
	return r < 0 ? r : 0;
}

static int expire(struct namer *n, struct worker *w, bool *ret_fed)
{
	const struct namer_options *o = &n->options;
	bool parses = w == &n->parser;
	uint64_t limit_ns = parses ? namer_timeout(o->parse_timeout_ns, NAMER_PARSE_TIMEOUT_NS)
				   : namer_timeout(o->open_timeout_ns, NAMER_OPEN_TIMEOUT_NS);
	uint64_t wall_ns = parses ? NAMER_WALL_TIMES * limit_ns : 0;

	if (worker_state(w) == WORKER_DEAD) {
		*ret_fed |= n->now_ns >= worker_deadline_ns(w);
		if (n->now_ns >= worker_deadline_ns(w))
			(void)start(n, w); /* the next attempt may succeed */
		return 0;
	}
	if (!worker_is_over_time(w, limit_ns, wall_ns, n->now_ns))
		return 0;
	*ret_fed = true;
	return restart(n, w, WORKER_OVER_TIME);
}

/* Stop waiting while a worker is down: frames are named later, stacks are not unwound. */
static int drain(struct namer *n)
{
	const struct naming_user *u;
	struct slot *s;
	int r = 0;

	for (uint32_t i = 0; r == 0 && (u = naming_user_at(&n->users, i)); i++)
		while (r == 0 && (s = slot_queued(u))) {
			if (s->file->state == FILE_OPENING)
				s->file->state = FILE_UNSEEN;
			r = slot_pause(n, s);
		}
	jobs_fail(n);
	return r;
}

/* One round: answers, deadlines, requests. */
static int round_of_both(struct namer *n, bool *ret_busy)
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
		jobs_walk(n);
	if (r == 0)
		r = opener_feed(n, ret_busy);
	if (r == 0)
		r = parser_feed(n, ret_busy);
	return r;
}

int namer_dispatch(struct namer *n, uint64_t now_ns)
{
	n->now_ns = now_ns;
	(void)queue_take_note(n);
	graves_visit(&n->graves);
	int left = slots_leave(n);
	if (left < 0)
		return left;
	for (uint32_t i = 0; i < NAMER_ROUNDS_MAX; i++) {
		bool busy = false;
		int r = round_of_both(n, &busy);
		if (r < 0)
			return r;
		if (!busy) {
			/* Requests that callbacks queued were sent in the last round. */
			(void)queue_take_note(n);
			return 0;
		}
	}
	queue_note(n);
	return 0;
}

/* --- what the owner's loop needs -------------------------------------------------------------- */

/* Answers of names come in a trickle as long as programs run, each a turn of the owner's loop. One that comes later
 * lets frames of the same file join the next request, so there are fewer. A backlog, a file that is new, and a stack,
 * whose sample waits for it, are not delayed. */
static bool answer_can_wait(const struct namer *n)
{
	return worker_state(&n->parser) == WORKER_BUSY && parser_asked(n) == MESSAGE_NAME &&
	       jobs_waiting(n) == 0 && gather_is_trickle(n);
}

void namer_be_patient(struct namer *n, bool is_patient)
{
	n->patient = is_patient && !n->ending;
}

int namer_fds(const struct namer *n, struct pollfd ret_fds[NAMER_FDS_MAX])
{
	int n_fds = 0;

	if (worker_fd(&n->opener) >= 0)
		ret_fds[n_fds++] = (struct pollfd){.fd = worker_fd(&n->opener), .events = POLLIN};
	if (worker_fd(&n->parser) >= 0 && !(n->patient && answer_can_wait(n)))
		ret_fds[n_fds++] = (struct pollfd){.fd = worker_fd(&n->parser), .events = POLLIN};
	return n_fds;
}

uint64_t namer_deadline_ns(const struct namer *n)
{
	uint64_t due[] = {worker_deadline_ns(&n->opener), worker_deadline_ns(&n->parser),
		n->off ? UINT64_MAX : slots_wake_ns(n),
		n->off ? UINT64_MAX : naming_users_deadline_ns(&n->users, n->now_ns)};
	uint64_t first = queue_is_noted(n) ? 0 : UINT64_MAX;

	for (size_t i = 0; i < sizeof(due) / sizeof(*due); i++)
		first = due[i] < first ? due[i] : first;
	return first;
}

bool namer_idle(const struct namer *n)
{
	return namer_waiting(n) == 0 && naming_users_queued(&n->users, QUEUED_OPEN) == 0 &&
	       naming_users_queued(&n->users, QUEUED_NAME) == 0 && !opener_is_asked(n) &&
	       worker_state(&n->opener) != WORKER_BUSY && worker_state(&n->parser) != WORKER_BUSY;
}

size_t namer_waiting(const struct namer *n)
{
	return frames_waiting(n) + jobs_waiting(n);
}

void namer_status(const struct namer *n, struct namer_status *ret_status)
{
	*ret_status = (struct namer_status){
		.opener = worker_status(&n->opener),
		.parser = worker_status(&n->parser),
		.off = n->off,
		.n_waiting = namer_waiting(n),
		.n_named = frames_named(n),
		.n_placed = frames_placed(n),
		.n_unwound = jobs_unwound(n),
	};
	blames_status(&n->blames, ret_status);
	naming_users_status(&n->users, n->now_ns, ret_status);
}

uint64_t namer_users_ns(const struct namer *n)
{
	const struct naming_user *u = asker(n, &n->parser);

	return naming_users_parser_ns(&n->users) +
	       (u && u->uid != 0 ? worker_used_ns(&n->parser, n->now_ns) : 0);
}

void namer_sweep_mark(const struct namer *n, struct file_marks *m)
{
	growing_sweep_mark(n, m);
	slots_sweep_mark(n, m);
	parsing_sweep_mark(n, m);
	jobs_sweep_mark(n, m);
}

int namer_sweep_slots(struct namer *n, const struct file_marks *m)
{
	return slots_sweep(n, m);
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
	slots_keep_names(n);
	strings_sweep(&n->strings, &n->users);
}
