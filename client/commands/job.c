/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl job: labels for a command, or for what a shell starts. A build must not fail because nobody
 * profiles it: `job run` runs the command also without a service, and says that it has no labels.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/commands/job_report.h"
#include "client/commands/tables.h"
#include "client/compare/selection.h"
#include "client/measure/signals.h"
#include "client/measure/workload.h"
#include "client/options/command.h"
#include "client/show/say.h"
#include "client/wire/ask.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"
#include "proto/syntax/label.h"

/* Labels that mperfctl adds to those of --label: the job's name and its run. */
#define OWN_LABELS 2

struct labels {
	char *text[LABELS_MAX];
	char name[sizeof(LABEL_JOB) + LABEL_VALUE_BYTES_MAX + 2];
	char run[64];
	size_t n;
};

static bool has_key(const struct options *o, const char *key)
{
	size_t n = strlen(key);
	for (size_t i = 0; i < o->narrowing.n_labels; i++)
		if (strncmp(o->narrowing.label[i], key, n) == 0 && o->narrowing.label[i][n] == '=')
			return true;
	return false;
}

/* Name the run by the time and mperfctl's process id, unless the user names it. */
static void add_run(struct labels *l)
{
	char when[32] = "";
	struct tm tm;
	time_t now = time(NULL);
	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(l->run, sizeof(l->run), "run=%s-%d", when, (int)getpid());
	l->text[l->n++] = l->run;
}

/* Collect the job's labels. 0, or an exit status after a message. */
static int fill_labels(const struct options *o, struct labels *l)
{
	struct label_fault fault;
	struct label label;
	_Static_assert(LABELS_MAX - OWN_LABELS == 14, "as the message says");
	if (o->narrowing.n_labels > LABELS_MAX - OWN_LABELS) {
		say_failure("a job takes at most 14 labels beside its name", "Leave some out");
		return EXIT_USAGE;
	}
	if (label_make(LABEL_JOB, o->job, &label, &fault) != 0) {
		say_failure(fault.text, "Choose another name for the job");
		return EXIT_USAGE;
	}
	if (!*o->job) {
		say_failure("the job's name is empty",
			"Give it a name to find it by later: mperfctl job run build -- make");
		return EXIT_USAGE;
	}
	if (has_key(o, LABEL_JOB)) {
		say_failure("--label gives the job another name than the first argument",
			"Leave out the label 'job'");
		return EXIT_USAGE;
	}
	snprintf(l->name, sizeof(l->name), LABEL_JOB "=%s", o->job);
	l->text[l->n++] = l->name;
	for (size_t i = 0; i < o->narrowing.n_labels; i++)
		l->text[l->n++] = o->narrowing.label[i];
	if (!has_key(o, "run"))
		add_run(l);
	return 0;
}

/* Send one request about jobs. Returns the exit status. */
static int send_job(struct link *link, Mperf__JobRequest *job)
{
	Mperf__Request request = MPERF__REQUEST__INIT;
	struct ask ask = {.link = link};
	request.body_case = MPERF__REQUEST__BODY_JOB;
	request.job = job;
	for (size_t i = 0; i < ASK_WATCHES_MAX; i++)
		ask.watch[i].fd = -1;
	int r = ask_run(&ask, &request);
	if (r < 0)
		ask_say_broken("labelling", r);
	return r == 0 ? ask.status : r > 0 ? ask.exit_status : EXIT_FAILED;
}

static int send(struct link *link, Mperf__JobAction action, int32_t pid, struct labels *l)
{
	Mperf__JobRequest job = MPERF__JOB_REQUEST__INIT;
	job.action = action;
	job.pid = pid;
	job.n_label = l ? l->n : 0;
	job.label = l ? l->text : NULL;
	return send_job(link, &job);
}

/* --- start, end ------------------------------------------------------------------------------- */

/* The process to label: the shell that runs us, unless --pid names another. */
static int32_t whom(const struct options *o)
{
	return o->target.n_pids ? o->target.pid[0] : (int32_t)getppid();
}

static int change(const struct options *o, Mperf__JobAction action)
{
	struct labels l = {.n = 0};
	struct link link;
	int r = action == MPERF__JOB_ACTION__JOB_START ? fill_labels(o, &l) : 0;
	if (r == 0) {
		r = link_open_service(&link);
		if (r == LINK_ABSENT)
			link_say_no_service("no process can be labelled");
		if (r != 0)
			return EXIT_FAILED;
		r = send(&link, action, whom(o), &l);
		link_close(&link);
	}
	return r;
}

/* --- pin -------------------------------------------------------------------------------------- */

/* A selection of jobs: NAME, or KEY=VALUE[,KEY=VALUE...][,last=N] as in client/compare/selection.h. A name is the
 * label job=NAME; stretches of time and users are refused. 0, or an exit status after a message. */
static int pin_selection(const char *text, struct selection *ret_selection)
{
	_cleanup_(freep) char *named = NULL;
	struct selection_fault fault = {"jobs are pinned by labels, and not by time or user"};
	struct selection s;
	bool is_named = !memchr(text, '=', strcspn(text, ","));
	if (is_named && asprintf(&named, LABEL_JOB "=%s", text) < 0)
		named = NULL;
	const char *meant = is_named ? named : text;
	int r = meant ? selection_parse(meant, (int64_t)clock_ns(CLOCK_REALTIME), &s, &fault)
		      : -ENOMEM;
	if (r == 0 && (s.n_labels == 0 || s.since_ns || s.until_ns || s.n_uids)) {
		selection_clear(&s);
		r = SELECTION_WRONG;
	}
	if (r < 0) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	if (r > 0) {
		say_failure(fault.text, "Write NAME, or KEY=VALUE[,KEY=VALUE...][,last=N]");
		return EXIT_USAGE;
	}
	*ret_selection = s;
	return 0;
}

/* job pin, job unpin: ask, and print what was done. Returns the exit status. */
static int pin_ask(const struct options *o, Mperf__JobAction action)
{
	bool pins = action == MPERF__JOB_ACTION__JOB_PIN;
	const struct tables_heading headings[] = {
		{.table = "pin", .says = pins ? "Pinned" : "No longer pinned"}, {.table = NULL}};
	Mperf__JobRequest job = MPERF__JOB_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	struct selection s;
	int r = pin_selection(o->job, &s);
	if (r != 0)
		return r;
	job.action = action;
	job.label = s.label;
	job.n_label = s.n_labels;
	job.last = s.last;
	job.keep = o->keep;
	request.body_case = MPERF__REQUEST__BODY_JOB;
	request.job = &job;
	r = tables_ask(o, &request, headings);
	selection_clear(&s);
	return r;
}

/* --- run -------------------------------------------------------------------------------------- */

/* Wait for the command's end. Pass on signals, except Ctrl-C, which the terminal sends to the
 * command too. */
static int outlast(struct workload *w, int signal_fd)
{
	while (!w->ended) {
		struct pollfd p[] = {
			{.fd = w->end_fd, .events = POLLIN},
			{.fd = signal_fd, .events = POLLIN},
		};
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		int number = p[1].revents ? signals_take(signal_fd) : 0;
		if (number != 0 && number != SIGINT)
			kill(w->pid, number);
		int r = p[0].revents ? workload_wait(w) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* Write a label in the form of a selection. */
static char *escaped(const char *label, char *text, size_t size)
{
	const size_t n = strcspn(label, "=") + 1;
	snprintf(text, size, "%.*s", (int)n, label);
	label_escape(label + n, text + n, size - n);
	return text;
}

/* Ask to pin the job at its end: as part of the given selection, or by all of its own labels. */
static void pin(struct link *link, const struct options *o, int32_t pid, struct labels *l,
	struct selection *s)
{
	Mperf__JobRequest job = MPERF__JOB_REQUEST__INIT;
	char text[LABELS_MAX][LABEL_KEY_BYTES_MAX + 2 * LABEL_VALUE_BYTES_MAX + 2];
	char *wanted[LABELS_MAX];
	for (size_t i = 0; i < l->n; i++)
		wanted[i] = escaped(l->text[i], text[i], sizeof(text[i]));
	job.action = MPERF__JOB_ACTION__JOB_PIN;
	job.pid = pid;
	job.n_label = o->pin ? s->n_labels : l->n;
	job.label = o->pin ? s->label : wanted;
	job.keep = o->keep;
	if (send_job(link, &job) != 0)
		say_note("the job will not be pinned");
}

static void label(
	const struct options *o, struct workload *w, struct labels *l, struct selection *s)
{
	struct link link;
	int r = link_open_service(&link);
	if (r == LINK_ABSENT)
		say_note("the command runs without labels, since no mperfd service answers");
	if (r != 0)
		return;
	if (send(&link, MPERF__JOB_ACTION__JOB_START, w->pid, l) != 0)
		say_note("the command runs without labels");
	else if (o->pins)
		pin(&link, o, w->pid, l, s);
	link_close(&link);
}

static int run(const struct options *o)
{
	struct workload w = {.pid = 0};
	struct labels l = {.n = 0};
	_cleanup_(selection_clear) struct selection s = {.n_labels = 0};
	int signal_fd, exit_status = fill_labels(o, &l);
	if (exit_status == 0 && o->pin)
		exit_status = pin_selection(o->pin, &s);
	if (exit_status != 0)
		return exit_status;
	if (signals_block(&signal_fd) < 0)
		return EXIT_FAILED;
	int r = workload_fork(&w, o->target.command_line);
	if (r == 0) {
		label(o, &w, &l, &s);
		r = workload_release(&w);
	}
	if (r == 0)
		r = outlast(&w, signal_fd);
	if (r < 0)
		ask_say_broken("running the command", r);
	exit_status = r < 0 ? EXIT_FAILED : w.exit_status;
	workload_clear(&w);
	signals_unblock(signal_fd);
	return exit_status;
}

/* ---------------------------------------------------------------------------------------------- */

static int list(const struct options *o)
{
	static const char *const spare[] = {"until", "by", "file", NULL};
	static const struct tables_heading headings[] = {
		{.table = "job", .says = "Jobs that have processes"},
		{.table = "pin", .says = "Pinned jobs", .spare = spare}, {.table = NULL}};
	Mperf__JobRequest job = MPERF__JOB_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_JOB;
	request.job = &job;
	return tables_ask(o, &request, headings);
}

int client_job(const struct options *o)
{
	if (!o->topic || strcmp(o->topic, "list") == 0)
		return list(o);
	if (strcmp(o->topic, "run") == 0)
		return run(o);
	if (strcmp(o->topic, "pin") == 0)
		return pin_ask(o, MPERF__JOB_ACTION__JOB_PIN);
	if (strcmp(o->topic, "unpin") == 0)
		return pin_ask(o, MPERF__JOB_ACTION__JOB_UNPIN);
	if (strcmp(o->topic, "report") == 0)
		return job_report(o);
	return change(o, strcmp(o->topic, "start") == 0 ? MPERF__JOB_ACTION__JOB_START
							: MPERF__JOB_ACTION__JOB_END);
}
