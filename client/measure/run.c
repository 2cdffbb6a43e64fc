/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A run ends when the command does, when time is up, when the user says so, or when the daemon
 * finds all targets gone. In each case we ask the daemon to finish, once; the results then arrive
 * as usual. Ctrl-C reaches the command too, which may handle it, so while a command runs we let it
 * decide.
 */
#include "client/measure/run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client/measure/signals.h"
#include "proto/base/memory.h"

static bool command_runs(const struct run *n)
{
	return n->workload.pid > 0 && n->ready && !n->not_run && !n->workload.ended;
}

static int finish(struct run *n)
{
	if (n->finishing)
		return 0;
	n->finishing = true;
	n->elapsed_ns = say_now_ns() - n->ready_ns;
	return ask_finish(&n->ask);
}

static int on_signal(void *userdata)
{
	struct run *n = userdata;
	int number = signals_take(n->signal_fd);
	if (number == 0)
		return 0;

	if (command_runs(n)) {
		if (number != SIGINT)
			kill(n->workload.pid, number);
		return 0;
	}
	n->interrupted = true;
	if (n->ready && !n->finishing)
		return finish(n);
	return n->n_signals++ == 0 ? ask_cancel(&n->ask) : -EINTR;
}

static int on_end(void *userdata)
{
	struct run *n = userdata;
	int r = workload_wait(&n->workload);
	n->ask.watch[1].fd = -1;
	say_progress_start(&n->ask.progress); /* the terminal is ours again */
	return r < 0 ? r : finish(n);
}

static int on_timer(void *userdata)
{
	struct run *n = userdata;
	uint64_t expirations;
	if (read(n->timer_fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
		return -errno;
	return finish(n);
}

static int start_timer(struct run *n)
{
	struct itimerspec t = {
		.it_value.tv_sec = (time_t)(n->target->for_ns / 1000000000ull),
		.it_value.tv_nsec = (long)(n->target->for_ns % 1000000000ull),
	};
	n->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (n->timer_fd < 0 || timerfd_settime(n->timer_fd, 0, &t, NULL) < 0)
		return -errno;
	n->ask.watch[2] = (struct ask_watch){.fd = n->timer_fd, .ready = on_timer};
	return 0;
}

/* Let the command run, now that the daemon counts. */
static int on_ready(struct run *n, const Mperf__Ready *ready)
{
	if (n->ready)
		return 0;
	n->ready = true;
	n->ready_ns = say_now_ns();
	if (*ready->note && !n->again)
		say_note("%s", ready->note);

	if (n->workload.pid > 0) {
		int r = workload_release(&n->workload);
		if (r == WORKLOAD_NOT_RUN) {
			n->not_run = true;
			return ask_cancel(&n->ask);
		}
		if (r < 0)
			return r;
		n->ask.progress.silent = true; /* the terminal is the command's */
		n->ask.watch[1] = (struct ask_watch){.fd = n->workload.end_fd, .ready = on_end};
	}
	return n->target->for_ns > 0 ? start_timer(n) : 0;
}

static int take_answer(void *userdata, const Mperf__Answer *a)
{
	struct run *n = userdata;
	if (a->body_case == MPERF__ANSWER__BODY_READY)
		return on_ready(n, a->ready);
	return n->answer ? n->answer(n->userdata, a) : 0;
}

/* Wait for the exit status of a command that outlives the measurement. */
static int outlast(struct run *n)
{
	while (command_runs(n)) {
		struct pollfd p[] = {
			{.fd = n->workload.end_fd, .events = POLLIN},
			{.fd = n->signal_fd, .events = POLLIN},
		};
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents)
			on_signal(n);
		if (p[0].revents)
			return workload_wait(&n->workload);
	}
	return 0;
}

static void fill_target(struct run *n, Mperf__Target *target)
{
	const struct target *t = n->target;
	target->all = t->all;
	if (n->workload.pid > 0) {
		target->n_pid = 1;
		target->pid = &n->workload.pid;
		target->after_exec = true; /* until then it is mperfctl */
	} else {
		target->n_pid = t->n_pids;
		target->pid = (int32_t *)t->pid;
	}
	if (t->all)
		target->n_pid = 0;
}

/* If this machine cannot count the request's events, print the command's own advice. */
static void say_instead(void *userdata, const Mperf__Failure *f)
{
	struct run *n = userdata;
	char remedy[512];
	bool helps = f->kind == MPERF__FAILURE_KIND__FAILURE_USAGE ||
		     f->kind == MPERF__FAILURE_KIND__FAILURE_REFUSED;
	say_progress_end(&n->ask.progress);
	snprintf(remedy, sizeof(remedy), "%.250s%s%.250s", f->remedy,
		*f->remedy && helps ? " " : "", helps ? n->instead : "");
	say_failure(f->what, remedy);
}

/* mperfctl's exit status, derived from the ends of the request and of the command. */
static int settle(struct run *n, int r)
{
	if (n->not_run) {
		n->exit_status = n->workload.exit_status;
		return RUN_FAILED;
	}
	if (r == ASK_CANCELLED || r == -EINTR) {
		say_failure("cancelled; nothing was kept", NULL);
		n->exit_status = EXIT_SIGNAL_BASE + SIGINT;
		return RUN_FAILED;
	}
	if (r < 0) {
		ask_say_broken("measuring", r);
		n->exit_status = EXIT_FAILED;
		return RUN_FAILED;
	}
	if (r == ASK_FAILED) {
		n->exit_status = n->ask.exit_status;
		return RUN_FAILED;
	}
	n->exit_status = n->workload.ended ? n->workload.exit_status : n->ask.status;
	return 0;
}

int run_request(struct run *n, Mperf__Request *request, Mperf__Target **target)
{
	Mperf__Target whom = MPERF__TARGET__INIT;
	int r = 0;

	n->timer_fd = -1;
	n->workload = (struct workload){.end_fd = -1, .hold_fd = -1, .trouble_fd = -1};
	n->ask = (struct ask){.link = n->link, .answer = take_answer, .userdata = n};
	if (n->instead)
		n->ask.failed = say_instead;
	n->ask.watch[0] = (struct ask_watch){.fd = n->signal_fd, .ready = on_signal};
	if (n->target->command_line)
		r = workload_fork(&n->workload, n->target->command_line);
	if (r == 0) {
		fill_target(n, &whom);
		*target = &whom;
		r = ask_run(&n->ask, request);
		*target = NULL;
	}

	if (!n->finishing && n->ready)
		n->elapsed_ns = say_now_ns() - n->ready_ns;
	if (r >= 0 && outlast(n) < 0)
		r = -ECHILD;
	r = settle(n, r);
	workload_clear(&n->workload);
	if (n->timer_fd >= 0)
		close(n->timer_fd);
	return r;
}
