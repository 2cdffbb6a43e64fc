/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl stat: one run per repetition, all over one link. The command's output stays on stdout;
 * ours goes to stderr or to a file, so both work in a pipe.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/measure/run.h"
#include "client/measure/signals.h"
#include "client/options/command.h"
#include "client/show/counts.h"
#include "client/show/escape.h"
#include "client/show/outfile.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "proto/base/memory.h"

struct counting {
	const struct options *options;
	struct print print;
	struct reply reply; /* of the round, or of the interval */
	struct counts counts;
	uint64_t ready_ns, last_ns;
	bool any;
	struct run run;
};

static int add_round(struct counts *c, const struct reply *r)
{
	int e = counts_add(c, r);
	if (e == COUNTS_MALFORMED)
		say_failure("mperfd sent inconsistent counts",
			"Install mperfctl and mperfd of the same version");
	return e;
}

/* The daemon sends an interval's rows in one message: print them as they come. */
static int print_interval(struct counting *s)
{
	struct counts interval = {0};
	uint64_t now_ns = say_now_ns();

	if (s->reply.n_rows == 0)
		return 0;
	int r = add_round(&interval, &s->reply);
	if (r == 0) {
		counts_add_times(&interval, (double)(now_ns - s->last_ns), -1, -1);
		const double at_ns = (double)(now_ns - s->ready_ns);
		if (s->options->separator)
			counts_print_fields(&interval, at_ns, s->options->separator, s->print.file);
		else
			counts_print_interval(&interval, at_ns, !s->any, s->print.file);
		s->any = true;
		s->last_ns = now_ns;
	}
	counts_clear(&interval);
	return r;
}

static int take(void *userdata, const Mperf__Answer *a)
{
	struct counting *s = userdata;
	if (s->ready_ns == 0)
		s->ready_ns = s->last_ns = s->run.ready_ns;
	int r = reply_take(&s->reply, a);
	if (r == 0 && s->options->sampling.interval_ms > 0 &&
		a->body_case == MPERF__ANSWER__BODY_ROWS)
		r = print_interval(s);
	return r;
}

static int count_once(struct counting *s, struct link *l, int signal_fd, bool again)
{
	const struct options *o = s->options;
	Mperf__StatRequest stat = MPERF__STAT_REQUEST__INIT;
	stat.n_event = o->sampling.n_events;
	stat.event = (char **)o->sampling.event;
	stat.n_metric = o->sampling.n_metrics;
	stat.metric = (char **)o->sampling.metric;
	stat.interval_ms = o->sampling.interval_ms;
	stat.user_only = o->sampling.user_only;
	stat.explain = o->explain;
	stat.per_hart = o->per_hart;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_STAT;
	request.stat = &stat;

	reply_clear(&s->reply);
	s->run = (struct run){.link = l,
		.target = &o->target,
		.signal_fd = signal_fd,
		.answer = take,
		.userdata = s,
		.again = again};
	int r = run_request(&s->run, &request, &stat.target);
	if (r != 0 || o->sampling.interval_ms > 0)
		return r;
	r = add_round(&s->counts, &s->reply);
	if (r != 0)
		s->run.exit_status = EXIT_FAILED;
	bool ended = s->run.workload.ended;
	counts_add_times(&s->counts,
		(double)(ended ? s->run.workload.elapsed_ns : s->run.elapsed_ns),
		ended ? (double)s->run.workload.user_ns : -1,
		ended ? (double)s->run.workload.system_ns : -1);
	return r == 0 ? 0 : RUN_FAILED;
}

/* Print the notes on the counts. */
static void show_notes(const struct counting *s)
{
	const Mperf__Provenance *p = s->reply.provenance;
	FILE *f = s->print.file;
	for (size_t i = 0; p && i < p->n_note; i++) {
		fputs(s->options->sampling.interval_ms > 0 ? "# " : " Note: ", f);
		escape_terminal(f, p->note[i]);
		fputc('\n', f);
	}
	if (p && p->n_note > 0 && s->options->sampling.interval_ms == 0)
		fputc('\n', f);
}

static int show(struct counting *s)
{
	const struct options *o = s->options;
	if (o->look.json)
		return reply_write_json(&s->reply, s->print.file);
	if (o->separator) {
		if (o->sampling.interval_ms == 0)
			counts_print_fields(&s->counts, -1, o->separator, s->print.file);
		return 0;
	}
	if (o->sampling.interval_ms > 0) {
		show_notes(s); /* the counts were shown as they came */
		return 0;
	}
	_cleanup_(freep) char *what = target_text(&o->target);
	counts_print(&s->counts, what ? what : "?", s->print.file);
	show_notes(s);
	return 0;
}

static int count_all(struct counting *s, int signal_fd)
{
	uint32_t repeat = s->options->repeat ? s->options->repeat : 1;
	struct link l;

	int r = link_open(&l);
	if (r != 0)
		return EXIT_FAILED;
	for (uint32_t i = 0; i < repeat && r == 0; i++) {
		r = count_once(s, &l, signal_fd, i > 0);
		if (s->run.interrupted || s->run.workload.signal)
			break; /* an interrupt ends all runs */
	}
	link_close(&l);

	if (r == 0)
		r = show(s);
	if (r < 0)
		ask_say_broken("counting", r);
	return r < 0 ? EXIT_FAILED : s->run.exit_status;
}

/* Count, and print to fd. */
static int count_into(struct counting *s, int fd)
{
	int signal_fd, exit_status = EXIT_FAILED;

	int r = print_open(&s->print, fd,
		options_ask_data(s->options) || fd > STDERR_FILENO ? PRINT_DATA : PRINT_TEXT);
	if (r == 0) {
		if (signals_block(&signal_fd) == 0) {
			exit_status = count_all(s, signal_fd);
			signals_unblock(signal_fd);
		}
		r = print_close(&s->print, 0);
	}
	if (r < 0) {
		print_say_failed(s->options->output ? s->options->output : "stderr", r,
			"name another file with -o");
		exit_status = EXIT_FAILED;
	}
	return exit_status;
}

int client_stat(const struct options *o)
{
	/* Counts of one process ride on its samples, and are cut at context switches: so short processes have
	 * counts, too. */
	if (o->per_process || o->per_cgroup)
		return client_hotspots(o);
	struct counting s = {.options = o};
	struct outfile out = {.fd = -1};

	if (o->output && strcmp(o->output, "-") != 0) {
		int r = outfile_open(&out, o->output, outfile_over_answer(o->force));
		if (r != 0) {
			outfile_say_failed(o->output, r, "name another file with -o");
			return EXIT_FAILED;
		}
	}
	int exit_status = count_into(&s, out.fd >= 0 ? out.fd
					 : o->output ? STDOUT_FILENO
						     : STDERR_FILENO);
	struct stat st;
	bool wrote = out.fd >= 0 && s.print.error == 0 && fstat(out.fd, &st) == 0 &&
		     (!S_ISREG(st.st_mode) || st.st_size > 0);
	int r = wrote ? outfile_commit(&out) : 0;
	if (r < 0) {
		print_say_failed(o->output, r, "name another file with -o");
		exit_status = EXIT_FAILED;
	}
	outfile_clear(&out);
	reply_clear(&s.reply);
	counts_clear(&s.counts);
	return exit_status;
}
