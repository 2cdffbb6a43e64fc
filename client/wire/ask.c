/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One poll loop serves every command. Requests are tiny and the daemon reads them at once, so
 * sending blocks; receiving never does, because a command may end or a key may be pressed while a
 * segment streams in.
 */
#include "client/wire/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "client/wire/older.h"

/* If the daemon has not read a request after this time, it never will. */
#define SEND_PATIENCE_MS 10000

static int send_request(struct ask *k, Mperf__Request *request)
{
	struct link *l = k->link;
	Mperf__Message m = MPERF__MESSAGE__INIT;
	m.body_case = MPERF__MESSAGE__BODY_REQUEST;
	m.request = request;

	int r = frame_put(&l->out, &m);
	while (r == 0 && frame_buffer_filled(&l->out) > 0) {
		int64_t left = frame_buffer_write(&l->out, l->fd);
		if (left < 0)
			return (int)left;
		struct pollfd p = {.fd = l->fd, .events = POLLOUT};
		if (left > 0 && poll(&p, 1, SEND_PATIENCE_MS) == 0)
			return -ETIMEDOUT;
	}
	return r;
}

int ask_finish(struct ask *k)
{
	Mperf__Finish finish = MPERF__FINISH__INIT;
	finish.request = k->id;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.id = ++k->link->last_id;
	request.body_case = MPERF__REQUEST__BODY_FINISH;
	request.finish = &finish;
	return send_request(k, &request);
}

int ask_cancel(struct ask *k)
{
	Mperf__Cancel cancel = MPERF__CANCEL__INIT;
	cancel.request = k->id;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.id = ++k->link->last_id;
	request.body_case = MPERF__REQUEST__BODY_CANCEL;
	request.cancel = &cancel;
	k->cancelled = true;
	return send_request(k, &request);
}

static void before_say(struct ask *k)
{
	say_progress_end(&k->progress);
	if (k->before_say)
		k->before_say(k->userdata);
}

static int take_failure(struct ask *k, const Mperf__Failure *f)
{
	if (k->cancelled)
		return ASK_CANCELLED;
	k->exit_status = EXIT_FAILED;
	if (k->failed) {
		k->failed(k->userdata, f);
		return ASK_FAILED;
	}
	before_say(k);
	say_failure(f->what && *f->what ? f->what : "mperfd failed and gave no reason", f->remedy);
	k->exit_status = f->kind == MPERF__FAILURE_KIND__FAILURE_USAGE ? EXIT_USAGE : EXIT_FAILED;
	return ASK_FAILED;
}

/* Handle one answer. 0 go on, 1 with *ret_result at the end. */
static int take_answer(struct ask *k, const Mperf__Answer *a, int *ret_result)
{
	int r = 0;
	switch (a->body_case) {
	case MPERF__ANSWER__BODY_DONE:
		k->status = a->done->status;
		*ret_result = 0;
		return 1;
	case MPERF__ANSWER__BODY_FAILURE:
		*ret_result = take_failure(k, a->failure);
		return 1;
	case MPERF__ANSWER__BODY_PROGRESS:
		say_progress(
			&k->progress, a->progress->what, a->progress->done, a->progress->total);
		return 0;
	case MPERF__ANSWER__BODY__NOT_SET:
		return 0; /* from a newer minor version */
	default:
		if (k->answer && !k->cancelled)
			r = k->answer(k->userdata, a);
	}
	if (r == 0)
		return 0;
	k->exit_status = EXIT_FAILED;
	*ret_result = r > 0 ? ASK_FAILED : r;
	return 1;
}

static int lost(struct ask *k)
{
	before_say(k);
	link_say_lost(k->link);
	k->exit_status = EXIT_FAILED;
	return ASK_FAILED;
}

/* Is this answer for our request? A failure without a request is, too: it says why the daemon hangs up. */
static bool is_for_us(const struct ask *k, const Mperf__Answer *a)
{
	return a->id == k->id || (a->id == 0 && a->body_case == MPERF__ANSWER__BODY_FAILURE);
}

/* Take all complete frames. 0 go on, 1 with *ret_result. */
static int take_frames(struct ask *k, int *ret_result)
{
	for (;;) {
		Mperf__Message *m;
		int r = frame_take(&k->link->in, &m);
		if (r == FRAME_NONE)
			return 0;
		if (r != 0) {
			before_say(k);
			if (r > 0 && !k->link->quiet)
				say_failure("mperfd sent a malformed protocol message",
					"Install mperfctl and mperfd of the same version");
			k->exit_status = EXIT_FAILED;
			*ret_result = r > 0 ? ASK_FAILED : r;
			return 1;
		}

		int end = 0;
		if (m->body_case == MPERF__MESSAGE__BODY_ANSWER && is_for_us(k, m->answer))
			end = take_answer(k, m->answer, ret_result);
		mperf__message__free_unpacked(m, NULL);
		if (end)
			return 1;
	}
}

static int take_socket(struct ask *k, int *ret_result)
{
	int64_t n = frame_buffer_read(&k->link->in, k->link->fd);
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n == 0 || n == -ECONNRESET || n == -EPIPE) {
		*ret_result = lost(k);
		return 1;
	}
	if (n < 0) {
		*ret_result = (int)n;
		return 1;
	}
	return take_frames(k, ret_result);
}

static int take_watches(struct ask *k, const struct pollfd *polled)
{
	for (int i = 0; i < ASK_WATCHES_MAX; i++) {
		if (!polled[i].revents || polled[i].fd != k->watch[i].fd)
			continue;
		int r = k->watch[i].ready(k->userdata);
		if (r < 0)
			return r;
	}
	return 0;
}

static int loop(struct ask *k)
{
	int result;
	if (take_frames(k, &result)) /* that arrived with the hello */
		return result;
	for (;;) {
		struct pollfd polled[ASK_WATCHES_MAX + 1];
		for (int i = 0; i < ASK_WATCHES_MAX; i++)
			polled[i] = (struct pollfd){
				.fd = k->watch[i].ready ? k->watch[i].fd : -1, .events = POLLIN};
		polled[ASK_WATCHES_MAX] = (struct pollfd){.fd = k->link->fd, .events = POLLIN};
		if (poll(polled, ASK_WATCHES_MAX + 1, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}

		int r;
		if (polled[ASK_WATCHES_MAX].revents && take_socket(k, &result))
			return result;
		r = take_watches(k, polled);
		if (r == -EPIPE || r == -ECONNRESET)
			continue; /* the daemon exits; read its last messages first */
		if (r < 0)
			return r;
	}
}

void ask_say_broken(const char *what, int error)
{
	char text[256];
	snprintf(text, sizeof(text), "cannot continue %s: %s", what, strerror(-error));
	say_failure(text, error == -ENOMEM ? "Free some memory, or ask for less"
			  : error == -ETIMEDOUT
				  ? "mperfd does not respond: restart it"
				  : "Try again; `mperfctl doctor` may show the cause");
}

/* An older daemon would answer another question. */
static int refuse(struct ask *k, const char *lacks)
{
	char what[256];
	Mperf__Failure failure = MPERF__FAILURE__INIT;
	snprintf(what, sizeof(what), "'%.64s' is older than this mperfctl and does not know %s",
		k->link->software, lacks);
	failure.kind = MPERF__FAILURE_KIND__FAILURE_VERSION;
	failure.what = what;
	failure.remedy =
		(char *)"Update mperfd and restart it, or use the mperfctl that came with it";
	return take_failure(k, &failure);
}

int ask_run(struct ask *k, Mperf__Request *request)
{
	const char *lacks = older_lacks(k->link->minor, request);
	if (lacks)
		return refuse(k, lacks);
	k->id = request->id = ++k->link->last_id;
	k->cancelled = false;
	k->status = 0;
	k->exit_status = EXIT_FAILED;
	say_progress_start(&k->progress);

	int r = send_request(k, request);
	if (r == -EPIPE || r == -ECONNRESET)
		r = 0; /* the daemon has hung up; read its last messages first */
	if (r == 0)
		r = loop(k);
	say_progress_end(&k->progress);
	return r;
}
