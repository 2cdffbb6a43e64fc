/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The namer's two workers side by side. Calls only queue; dispatch hears what the workers have to
 * say, ends those that are over their time, and asks the next questions, until neither has
 * anything new. An answer is always heard before its deadline is looked at, so that a daemon that
 * was held up itself does not kill a worker for it.
 *
 * However a worker ends, the question that it was at is at fault, exactly one file or one stack;
 * it is marked, a new worker is started, and everybody else goes on from the descriptors that the
 * daemon kept.
 */
#include "daemon/attribute/worker.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/clock.h"
#include "proto/memory.h"

DEFINE_CLEANUP(struct namer *, namer_free)

int namer_new(const struct namer_options *o, struct namer **ret_namer)
{
	_cleanup_(namer_freep) struct namer *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->options = *o;
	n->opener = (struct worker){.role = WORKER_OPENER, .fd = -1, .deadline_ns = UINT64_MAX};
	n->parser = (struct worker){.role = WORKER_PARSER, .fd = -1, .deadline_ns = UINT64_MAX};
	TAILQ_INIT(&n->slots);
	TAILQ_INIT(&n->to_open);
	TAILQ_INIT(&n->to_name);
	TAILQ_INIT(&n->jobs);
	int r = worker_find_binary(o->binary, &n->binary);
	if (r == 0)
		r = worker_start(&n->opener, n->binary, clock_ns(CLOCK_MONOTONIC));
	if (r == 0)
		r = worker_start(&n->parser, n->binary, clock_ns(CLOCK_MONOTONIC));
	if (r < 0)
		return r;
	*ret_namer = TAKE_PTR(n);
	return 0;
}

struct namer *namer_free(struct namer *n)
{
	if (!n)
		return NULL;
	worker_kill(&n->opener, &n->graves);
	worker_kill(&n->parser, &n->graves);
	if (!TAILQ_EMPTY(&n->jobs) || n->asked_job)
		jobs_free(n);
	struct slot *s;
	while ((s = TAILQ_FIRST(&n->slots))) {
		TAILQ_REMOVE(&n->slots, s, by_use);
		s->file->namer_slot = NULL;
		slot_free(s);
	}
	strings_clear(&n->strings);
	graves_leave(&n->graves);
	free(n->forget);
	free(n->binary);
	free(n);
	return NULL;
}

int namer_open(struct namer *n, struct file *file)
{
	struct slot *s;
	int r = n->off ? 0 : slot_get(n, file, &s);

	if (n->off || r < 0)
		return r;
	return slot_want(n, s);
}

bool namer_is_rewritten(struct namer *n, struct file *file)
{
	struct slot *s = file->namer_slot;

	(void)n;
	return s && slot_is_rewritten(s);
}

int namer_name(struct namer *n, struct frame *frame)
{
	struct file *file = frame->file;
	struct slot *s;

	if (frame->state != FRAME_NEW)
		return 0;
	int r = slot_get(n, file, &s);
	if (r == 0)
		r = slot_push(n, s, frame);
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
	const char *name = strings_intern(&n->strings, function, strlen(function));
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

/* --- the workers' lives ---------------------------------------------------------------------- */

static int give_up(struct namer *n)
{
	n->off = true;
	worker_kill(&n->opener, &n->graves);
	worker_kill(&n->parser, &n->graves);
	int r = opener_ended(n, WORKER_OFF);
	int error = parser_ended(n, WORKER_OFF);
	return r < 0 ? r : error;
}

static int restart(struct namer *n, struct worker *w, enum worker_end end)
{
	worker_kill(w, &n->graves);
	int r = w == &n->opener ? opener_ended(n, end) : parser_ended(n, end);
	if (r < 0)
		return r;
	if (w == &n->parser)
		n->n_forget = 0; /* the next one has nothing to forget */
	if (w->restarts == NAMER_RESTARTS_MAX)
		return give_up(n);
	w->restarts++;
	return worker_start(w, n->binary, n->now_ns) < 0 ? give_up(n) : 0;
}

/* Take one answer. *ret_heard: there was something, perhaps its end. */
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
		return 0;
	}
	*ret_heard = true;
	if (bytes == 0)
		return restart(n, w, worker_autopsy(w));
	if (bytes < 0)
		return restart(n, w, WORKER_LIED);

	int r = w == &n->opener ? opener_hear(n, n->buffer, (size_t)bytes, fd)
				: parser_hear(n, n->buffer, (size_t)bytes);
	if (r == -EBADMSG)
		return restart(n, w, WORKER_LIED);
	if (r == 0 && w->state == WORKER_BUSY) {
		w->state = WORKER_IDLE;
		w->deadline_ns = UINT64_MAX;
	}
	return r < 0 ? r : 0;
}

static int expire(struct namer *n, struct worker *w, bool *ret_fed)
{
	if (w->state == WORKER_DEAD || n->now_ns < w->deadline_ns)
		return 0;
	*ret_fed = true;
	return restart(n, w, WORKER_OVER_TIME);
}

/* Without workers everything that waits is answered: unnamed, failed. */
static void drain(struct namer *n)
{
	struct slot *s;

	while ((s = TAILQ_FIRST(&n->to_open)) || (s = TAILQ_FIRST(&n->to_name))) {
		slot_dequeue(n, s);
		if (s->file->state == FILE_OPENING)
			s->file->state = FILE_UNSEEN;
		slot_finish(n, s);
	}
	jobs_fail(n);
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
	if (r == 0 && n->off)
		drain(n);
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
	for (uint32_t i = 0; i < NAMER_ROUNDS_MAX; i++) {
		bool busy = false;
		int r = turn(n, &busy);
		if (r < 0)
			return r;
		if (!busy) {
			/* What a callback queued was seen by the feeding after it. */
			n->fresh = false;
			return 0;
		}
	}
	n->fresh = true;
	return 0;
}

/* --- what the owner's loop needs ------------------------------------------------------------- */

int namer_fds(const struct namer *n, struct pollfd ret_fds[NAMER_FDS_MAX])
{
	int n_fds = 0;

	if (n->opener.fd >= 0)
		ret_fds[n_fds++] = (struct pollfd){.fd = n->opener.fd, .events = POLLIN};
	if (n->parser.fd >= 0)
		ret_fds[n_fds++] = (struct pollfd){.fd = n->parser.fd, .events = POLLIN};
	return n_fds;
}

uint64_t namer_deadline_ns(const struct namer *n)
{
	if (n->fresh || n->opener.state == WORKER_BROKEN || n->parser.state == WORKER_BROKEN)
		return 0;
	return n->opener.deadline_ns < n->parser.deadline_ns ? n->opener.deadline_ns
							     : n->parser.deadline_ns;
}

bool namer_idle(const struct namer *n)
{
	return n->n_waiting_frames == 0 && n->n_waiting_jobs == 0 && TAILQ_EMPTY(&n->to_open) &&
	       !n->opening && n->opener.state != WORKER_BUSY && n->parser.state != WORKER_BUSY;
}

size_t namer_waiting(const struct namer *n)
{
	return n->n_waiting_frames + n->n_waiting_jobs;
}

void namer_status(const struct namer *n, struct namer_status *ret_status)
{
	*ret_status = (struct namer_status){
		.opener_pid = n->opener.pid,
		.parser_pid = n->parser.pid,
		.opener_restarts = n->opener.restarts,
		.parser_restarts = n->parser.restarts,
		.off = n->off,
		.n_named = n->n_named,
		.n_unwound = n->n_unwound,
	};
}
