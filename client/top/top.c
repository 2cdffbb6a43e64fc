/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl top: one request whose frames are shown as they arrive. When a key asks for other rows
 * or another interval, we cancel the request and send the next one over the same link. We restore
 * the terminal before anything is printed on stderr, by whatever function.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "client/measure/signals.h"
#include "client/options/command.h"
#include "client/options/options.h"
#include "client/show/print.h"
#include "client/top/screen.h"
#include "client/top/text.h"
#include "client/wire/ask.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define NS_PER_S 1000000000ull
#define WAKES_WITHOUT_KEY_MAX 8 /* a readable but empty stdin is closed */

struct top {
	const struct options *options;
	struct link link;
	struct ask ask;
	struct top_model model;
	struct top_screen *screen; /* NULL: text into print */
	struct print print;
	int signal_fd, timer_fd;
	unsigned n_wakes;
	bool leave;      /* the user quits */
	bool again;      /* another request follows */
	int print_error; /* -errno of writing a frame */
};

/* From a watch: end ask_run at once. After a hang-up we need no answer. */
static int leave(struct top *t)
{
	t->leave = true;
	return -ECANCELED;
}

static int show(struct top *t)
{
	if (t->screen) {
		top_screen_draw(t->screen, &t->model);
		return 0;
	}
	t->print_error = top_text_write(&t->model, t->options, t->print.file);
	return t->print_error < 0 ? leave(t) : 0;
}

static int on_frame(struct top *t)
{
	uint32_t max = t->options->frames;
	int r = show(t);
	return r == 0 && max > 0 && t->model.n_frames >= max ? leave(t) : r;
}

static void before_say(void *userdata)
{
	struct top *t = userdata;
	t->screen = top_screen_free(t->screen);
}

static int take_answer(void *userdata, const Mperf__Answer *a)
{
	struct top *t = userdata;
	if (a->body_case == MPERF__ANSWER__BODY_READY) {
		snprintf(t->model.message, sizeof(t->model.message), "%s", a->ready->note);
		return 0;
	}
	int r = top_model_take(&t->model, a, clock_ns(CLOCK_REALTIME));
	if (r == TOP_FRAME)
		return on_frame(t);
	if (r > 0) {
		before_say(t);
		say_failure("mperfd sent frames that top cannot show",
			"Install mperfctl and mperfd of the same version");
	}
	return r;
}

/* --- what happens meanwhile ------------------------------------------------------------------- */

static int on_signal(void *userdata)
{
	struct top *t = userdata;
	return signals_take(t->signal_fd) ? leave(t) : 0;
}

static int on_timer(void *userdata)
{
	return leave(userdata);
}

static int on_terminal(void *userdata)
{
	struct top *t = userdata;
	if (!t->screen)
		return 0;
	if (!top_screen_notice(t->screen))
		return leave(t);
	return show(t);
}

/* The user wants other rows: drop those still arriving. */
static int ask_again(struct top *t)
{
	if (t->again)
		return 0; /* already cancelled, and the next request applies it */
	t->again = true;
	return ask_cancel(&t->ask);
}

static int on_keys(void *userdata)
{
	struct top *t = userdata;
	uint32_t key;
	bool any = false;

	while (t->screen && top_screen_key(t->screen, &key)) {
		any = true;
		enum top_action action = top_keys_press(&t->model, key);
		if (action == TOP_LEAVE)
			return leave(t);
		int r = action == TOP_ASK ? ask_again(t) : 0;
		if (r < 0)
			return r;
	}
	t->n_wakes = any ? 0 : t->n_wakes + 1;
	if (t->n_wakes > WAKES_WITHOUT_KEY_MAX)
		return leave(t);
	return any ? show(t) : 0;
}

/* --- the requests ----------------------------------------------------------------------------- */

/* Targets: --pid names targets, with all their children. A service measures everything, so there an
 * opened process is a filter; a daemon of our own measures only its targets. */
static void fill_target(
	const struct top *t, Mperf__Target *target, Mperf__Filter *filter, int32_t *opened_pid)
{
	const struct options *o = t->options;
	bool service = t->link.daemon_pid == 0;

	if (*opened_pid) {
		filter->n_pid = 1;
		filter->pid = opened_pid;
	}
	target->all = o->target.n_pids == 0 || (*opened_pid && service);
	target->n_pid = target->all ? 0 : o->target.n_pids;
	target->pid = (int32_t *)o->target.pid;
}

static int ask_once(struct top *t)
{
	const struct options *o = t->options;
	const struct top_view *v = top_model_view(&t->model);
	Mperf__Target target = MPERF__TARGET__INIT;
	Mperf__Filter filter = MPERF__FILTER__INIT;
	Mperf__TopRequest top = MPERF__TOP_REQUEST__INIT;
	int32_t pid = v->pid;
	char *cgroup = v->cgroup;

	fill_target(t, &target, &filter, &pid);
	filter.event = o->narrowing.of_event ? o->narrowing.of_event : filter.event;
	filter.n_comm = o->narrowing.n_comms;
	filter.comm = (char **)o->narrowing.comm;
	filter.n_cgroup = cgroup ? 1 : o->narrowing.n_cgroups;
	filter.cgroup = cgroup ? &cgroup : (char **)o->narrowing.cgroup;
	filter.n_label = o->narrowing.n_labels;
	filter.label = (char **)o->narrowing.label;
	filter.n_cpu = o->target.n_cpus;
	filter.cpu = (uint32_t *)o->target.cpu;
	top.interval_ms = t->model.interval_ms;
	top.hz = o->sampling.hz;
	top.overhead_ppm = o->sampling.overhead_ppm;
	top.by = (char *)v->by;
	top.filter = &filter;
	top.target = &target;
	top.limit = o->limit ? o->limit : t->screen ? TOP_SCREEN_ROWS : TOP_TEXT_ROWS;
	if (v->callers_of)
		top.callers_of = v->callers_of;
	if (v->callers_module)
		top.callers_module = v->callers_module;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_TOP;
	request.top = &top;
	return ask_run(&t->ask, &request);
}

/* 0 after the user quit or the daemon had no more to send; else as ask_run. */
static int ask_all(struct top *t)
{
	int r;
	do {
		t->again = false;
		top_model_restart(&t->model);
		r = ask_once(t);
	} while (!t->leave && t->again && (r == 0 || r == ASK_CANCELLED));
	return t->leave ? 0 : r;
}

static int start_timer(struct top *t)
{
	uint64_t ns = t->options->target.for_ns;
	struct itimerspec in = {.it_value = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)}};

	if (ns == 0)
		return 0;
	t->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return t->timer_fd < 0 || timerfd_settime(t->timer_fd, 0, &in, NULL) < 0 ? -errno : 0;
}

static int say_broken(struct top *t, int error)
{
	before_say(t);
	ask_say_broken("watching", error);
	return EXIT_FAILED;
}

static int watch(struct top *t)
{
	t->ask = (struct ask){.link = &t->link,
		.answer = take_answer,
		.before_say = before_say,
		.userdata = t,
		.watch = {{.fd = t->signal_fd, .ready = on_signal},
			{.fd = t->timer_fd, .ready = on_timer}, {.fd = -1}, {.fd = -1}}};
	if (t->screen) {
		t->ask.watch[2] = (struct ask_watch){STDIN_FILENO, on_keys};
		t->ask.watch[3] = (struct ask_watch){top_screen_fd(t->screen), on_terminal};
		top_screen_draw(t->screen, &t->model);
	}
	return ask_all(t);
}

static int watch_on_link(struct top *t)
{
	int r = start_timer(t);
	if (r < 0)
		return say_broken(t, r);
	if (link_open(&t->link) != 0)
		return EXIT_FAILED;

	const struct options *o = t->options;
	bool screen = !o->batch && !o->look.json && !o->look.raw && isatty(STDIN_FILENO) &&
		      isatty(STDOUT_FILENO);
	r = screen ? top_screen_open(o, &t->screen) : 0;
	if (r == TOP_SCREEN_UNABLE)
		say_note("TERM is unknown or cannot move the cursor, so frames follow as text");
	if (r >= 0)
		r = watch(t);
	t->screen = top_screen_free(t->screen);
	int exit_status = r == 0            ? t->ask.status
			  : r == ASK_FAILED ? t->ask.exit_status
					    : say_broken(t, r);
	link_close(&t->link);
	return exit_status;
}

int client_top(const struct options *o)
{
	struct top t = {.options = o, .link.fd = -1, .timer_fd = -1};

	int r = print_open(&t.print, STDOUT_FILENO, options_ask_data(o) ? PRINT_DATA : PRINT_TEXT);
	if (r < 0 || signals_block(&t.signal_fd) < 0)
		return EXIT_FAILED;
	top_model_open(&t.model, o->by ? o->by : "function", o->sampling.interval_ms);
	int exit_status = watch_on_link(&t);
	top_model_clear(&t.model);
	if (t.timer_fd >= 0)
		close(t.timer_fd);
	r = print_close(&t.print, t.print_error);
	if (r < 0) {
		print_say_failed(NULL, r, "send stdout elsewhere");
		exit_status = EXIT_FAILED;
	}
	signals_unblock(t.signal_fd);
	return exit_status;
}
