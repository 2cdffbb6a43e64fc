/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * hotspots and flamegraph ask of a file. Where there is none yet, one is recorded into a temporary
 * place first, over the same link, so that there is one way to answer a query.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/capture.h"
#include "client/print.h"
#include "client/signals.h"
#include "proto/memory.h"

/* The daemon may have another working directory than we. */
static char *absolute(const char *path)
{
	_cleanup_(freep) char *folder = NULL;
	char *joined;
	if (*path == '/')
		return strdup(path);
	folder = getcwd(NULL, 0);
	if (!folder || asprintf(&joined, "%s/%s", folder, path) < 0)
		return NULL;
	return joined;
}

static bool measures(const struct options *o)
{
	return !o->input && (o->all || o->n_pids > 0 || o->command_line);
}

static int record_temporary(struct source *s, const struct options *o)
{
	struct capture c;
	int r = outfile_open_temporary(&s->temporary);
	if (r < 0) {
		const char *folder = outfile_temporary_folder();
		print_say_failed(folder, r, "set TMPDIR to a folder that you may write to");
		return RUN_FAILED;
	}
	s->path = strdup(s->temporary.temporary);
	if (!s->path)
		return RUN_FAILED;

	r = capture_run(&c, &s->link, o, s->signal_fd, &s->temporary);
	s->exit_status = c.run.exit_status;
	capture_clear(&c);
	return r;
}

static int failed(int *ret_exit, int exit_status)
{
	*ret_exit = exit_status;
	return RUN_FAILED;
}

int source_open(struct source *s, const struct options *o, int *ret_exit)
{
	*s = (struct source){.link.fd = -1, .temporary.fd = -1, .signal_fd = -1};
	const char *input = o->input ? o->input : SOURCE_DEFAULT;

	if (!measures(o)) {
		if (!o->input && access(input, F_OK) < 0) {
			say_failure("there is nothing to read: no -i FILE, and no " SOURCE_DEFAULT
				    " here",
				"Give -i FILE, or something to measure: -- CMD, --pid N or -a");
			return failed(ret_exit, EXIT_USAGE);
		}
		s->path = absolute(input);
		if (!s->path)
			return failed(ret_exit, EXIT_FAILED);
	} else {
		if (signals_block(&s->signal_fd) < 0)
			return failed(ret_exit, EXIT_FAILED);
	}

	if (link_open(&s->link) != 0)
		return failed(ret_exit, EXIT_FAILED);
	if (measures(o) && record_temporary(s, o) != 0)
		return failed(ret_exit, s->exit_status ? s->exit_status : EXIT_FAILED);
	return 0;
}

struct question {
	struct ask ask;
	int signal_fd;
	int n_signals;
	int (*answer)(void *userdata, const Mperf__Answer *a);
	void *userdata;
};

static int on_signal(void *userdata)
{
	struct question *q = userdata;
	if (signals_take(q->signal_fd) == 0)
		return 0;
	return q->n_signals++ == 0 ? ask_cancel(&q->ask) : -EINTR;
}

static int take_answer(void *userdata, const Mperf__Answer *a)
{
	struct question *q = userdata;
	return q->answer(q->userdata, a);
}

int source_ask(struct source *s, Mperf__Request *request,
	int (*answer)(void *userdata, const Mperf__Answer *a), void *userdata)
{
	struct question q = {.signal_fd = s->signal_fd, .answer = answer, .userdata = userdata};
	q.ask = (struct ask){.link = &s->link, .answer = take_answer, .userdata = &q};
	q.ask.watch[0] = (struct ask_watch){
		.fd = s->signal_fd, .ready = s->signal_fd >= 0 ? on_signal : NULL};

	int r = ask_run(&q.ask, request);
	if (r == ASK_FAILED)
		return q.ask.exit_status;
	if (r == ASK_CANCELLED || r == -EINTR)
		return EXIT_SIGNAL_BASE + SIGINT;
	if (r < 0) {
		ask_say_broken("asking", r);
		return EXIT_FAILED;
	}
	return q.ask.status;
}

void source_filter(const struct options *o, Mperf__Filter *ret_filter)
{
	*ret_filter = (Mperf__Filter)MPERF__FILTER__INIT;
	if (o->input) { /* else they were the target */
		ret_filter->n_pid = o->n_pids;
		ret_filter->pid = (int32_t *)o->pid;
	}
	ret_filter->n_comm = o->n_comms;
	ret_filter->comm = (char **)o->comm;
	ret_filter->n_cgroup = o->n_cgroups;
	ret_filter->cgroup = (char **)o->cgroup;
	ret_filter->n_cpu = o->n_cpus;
	ret_filter->cpu = (uint32_t *)o->cpu;
	ret_filter->since_ns = o->since_ns;
	ret_filter->until_ns = o->until_ns;
	if (o->of_event)
		ret_filter->event = o->of_event;
}

void source_clear(struct source *s)
{
	link_close(&s->link);
	outfile_clear(&s->temporary);
	free(TAKE_PTR(s->path));
	if (s->signal_fd >= 0)
		signals_unblock(TAKE_FD(s->signal_fd));
}
