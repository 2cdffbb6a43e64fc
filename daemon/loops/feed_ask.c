/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Requests to instrumented programs: to report at an interval, to report now, to count certain
 * functions. Each request reaches only the programs of one user, unless its sender sees all
 * users.
 */
#include "daemon/loops/feed_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool reaches(const struct feed_reach *reach, uid_t uid)
{
	return reach->all || reach->uid == uid;
}

uint32_t feed_period_ms(const struct feed *f, uid_t uid)
{
	uint32_t least = f->o.limits.period_ms;
	for (size_t i = 0; i < f->wants.n; i++)
		if (f->wants.want[i].period_ms < least && reaches(&f->wants.want[i].reach, uid))
			least = f->wants.want[i].period_ms;
	return least < MPERF_PERIOD_MS_MIN ? MPERF_PERIOD_MS_MIN : least;
}

/* A program that does not read keeps its period; the request is repeated when it sends (feed.c). */
static void send_ask(struct connection *c, bool now)
{
	const struct mperf_feed_ask message = {
		.head = {.type = MPERF_ASK, .bytes = sizeof(message)},
		.period_ms = c->user->period_ms,
		.now = now,
	};
	if (send(c->fd, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		c->sent_ms = message.period_ms;
}

void feed_send_period(struct connection *c)
{
	if (c->program->greeted && c->sent_ms == 0)
		c->sent_ms = c->program->period_ms;
	if (c->program->greeted && c->sent_ms != c->user->period_ms)
		send_ask(c, false);
}

/* A program that does not read sends the tables in any case. */
void feed_send_want(struct connection *c, uint32_t object, bool wanted)
{
	const struct mperf_feed_want message = {
		.head = {.type = MPERF_WANT, .bytes = sizeof(message)},
		.object = object,
		.wanted = wanted,
	};
	(void)send(c->fd, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Send the new period to programs for which it differs: requests or the limit changed. */
void feed_send_periods(struct feed *f)
{
	struct feed_user *user, *next;
	HASH_ITER (hh, f->users, user, next) {
		user->period_ms = feed_period_ms(f, user->uid);
	}
	for (struct connection *c = f->connections; c; c = c->next)
		feed_send_period(c);
}

int feed_want_period(
	struct feed *f, const void *who, const struct feed_reach *reach, uint32_t wanted_ms)
{
	size_t i = 0;
	while (i < f->wants.n && f->wants.want[i].who != who)
		i++;
	if (wanted_ms == 0 && i < f->wants.n)
		f->wants.want[i] = f->wants.want[--f->wants.n];
	if (wanted_ms > 0 && i == f->wants.n) {
		if (i >= FEED_WANTS_MAX)
			return 0; /* this client gets the period that others have requested */
		if (i == f->wants.size) {
			size_t size = i ? 2 * i : 8;
			struct feed_want *grown = reallocarray(f->wants.want, size, sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			f->wants.want = grown;
			f->wants.size = size;
		}
		f->wants.n++;
	}
	if (wanted_ms > 0)
		f->wants.want[i] = (struct feed_want){who, *reach, wanted_ms};
	feed_send_periods(f);
	return 0;
}

uint32_t feed_ask(struct feed *f, const struct feed_reach *reach, pid_t pid)
{
	uint32_t n = 0;
	for (struct connection *c = f->connections; c; c = c->next) {
		if (!c->program->greeted || c->paused || (pid && c->pid != pid) ||
			!reaches(reach, c->user->uid))
			continue;
		send_ask(c, true);
		n++;
	}
	return n;
}

/* A message cannot be sent if the program does not read: it is not counted. */
static bool select_in(const struct connection *c, const struct feed_selection *selection)
{
	struct {
		struct mperf_feed_select head;
		char globs[FEED_GLOBS_BYTES_MAX];
	} message = {
		.head = {.head = {.type = MPERF_SELECT,
				 .bytes =
					 (uint32_t)(sizeof(message.head) + selection->globs_bytes)},
			.one_in = selection->one_in,
			.globs_bytes = selection->globs_bytes},
	};
	if (selection->globs_bytes > 0)
		memcpy(message.globs, selection->globs, selection->globs_bytes);
	return send(c->fd, &message, message.head.head.bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

int feed_select(struct feed *f, pid_t pid, uid_t by, const struct feed_selection *selection)
{
	int r = FEED_NO_PROGRAM;
	for (const struct connection *c = f->connections; c; c = c->next) {
		if (!c->program->greeted || c->pid != pid)
			continue;
		if (by != 0 && by != c->user->uid)
			return FEED_NOT_YOURS;
		if (select_in(c, selection))
			r = 0;
	}
	return r;
}
