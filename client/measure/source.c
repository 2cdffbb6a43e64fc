/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * hotspots and flamegraph read a file or the service's store. To measure, we first record into a
 * temporary file, so that every query is answered the same way. A daemon of our own reads the file,
 * with our rights: the service opens none for its clients. We say on stderr which source we chose
 * if the user named none, so that two people who look at different data notice it.
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/measure/capture.h"
#include "client/measure/signals.h"
#include "client/show/print.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* How far back queries of the store look without --since: long enough to see why the machine has
 * just been slow. */
#define KEPT_NS (3600 * 1000000000ll)

char *source_absolute(const char *path)
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

static bool of_time(const struct source_request *q)
{
	return q->narrowing->since_ns || q->narrowing->until_ns;
}

/* --pid means measure, unless it narrows an existing source. */
static bool measures(const struct source_request *q)
{
	bool process = q->target->n_pids > 0 && !of_time(q) && !q->sampling->loops;
	return !q->input && (q->target->all || process || q->target->command_line);
}

static int record_temporary(struct source *s, const struct source_request *q)
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

	r = q->sampling->loops && s->link.daemon_pid > 0 ? feed_socket_make(&s->feed) : 0;
	if (r != 0)
		return r;
	r = capture_run(&c, &s->link, q, s->signal_fd, &s->temporary, s->feed.path);
	s->exit_status = c.run.exit_status;
	capture_clear(&c);
	return r;
}

static int open_file(struct source *s, const char *path)
{
	s->path = source_absolute(path);
	return s->path && link_open_private(&s->link) == 0 ? 0 : EXIT_FAILED;
}

/* Several files, a folder or a pattern. */
static bool is_several(const struct source_request *q)
{
	struct stat s;
	if (q->n_inputs != 1)
		return q->n_inputs > 1;
	return stat(q->input, &s) == 0 ? S_ISDIR(s.st_mode) : strpbrk(q->input, "*?[") != NULL;
}

static int open_files(struct source *s, const struct source_request *q)
{
	s->files = calloc(1, sizeof(*s->files));
	if (!s->files)
		return EXIT_FAILED;
	for (size_t i = 0; i < q->n_inputs; i++) {
		if (recordings_add_or_say(s->files, q->inputs[i], "the sum") != 0)
			return EXIT_FAILED;
	}
	if (s->files->n_twice > 0)
		say_note("%zu recording%s given twice: %s once", s->files->n_twice,
			s->files->n_twice == 1 ? " was" : "s were",
			s->files->n_twice == 1 ? "it counts" : "they count");
	return link_open_private(&s->link) == 0 ? 0 : EXIT_FAILED;
}

#define GIVE                                                                                       \
	"Give -i FILE, start the service with `systemctl start mperfd`, "                          \
	"or give something to measure: -- CMD, --pid N or -a"
#define GIVE_LOOPS                                                                                 \
	"Start the service with `systemctl start mperfd` and then the program, or run it with "    \
	"-- CMD"
#define GIVE_LIVE "Start the service with `systemctl start mperfd`, or leave out --live"

/* Read the service's store; if no service answers, say `absent` and `remedy`. */
static int open_kept(struct source *s, const char *absent, const char *remedy, int absent_exit)
{
	int r = link_open_service(&s->link);
	if (r == LINK_ABSENT) {
		say_failure(absent, remedy);
		return absent_exit;
	}
	s->kept = true;
	s->path = strdup("");
	return r == 0 && s->path ? 0 : EXIT_FAILED;
}

static int open_measured(struct source *s, const struct source_request *q)
{
	if (signals_block(&s->signal_fd) < 0 || link_open(&s->link) != 0)
		return EXIT_FAILED;
	if (record_temporary(s, q) != 0)
		return s->exit_status ? s->exit_status : EXIT_FAILED;
	if (s->link.daemon_pid > 0)
		return 0;
	link_close(&s->link);
	return link_open_private(&s->link) == 0 ? 0 : EXIT_FAILED;
}

/* Open the default source: ./mperf.mprf, else the service's store. */
static int open_default(struct source *s)
{
	if (access(SOURCE_DEFAULT, F_OK) == 0) {
		say_note("reading ./" SOURCE_DEFAULT);
		return open_file(s, SOURCE_DEFAULT);
	}
	int r = open_kept(s,
		"there is nothing to read: no -i FILE, no " SOURCE_DEFAULT
		" here, and no mperfd service answers",
		GIVE, EXIT_USAGE);
	if (r == 0)
		say_note("reading the last hour of the service's store; choose another time with "
			 "--since and --until");
	return r;
}

int source_start(struct source *s, const struct source_request *q, int *ret_exit)
{
	*s = (struct source){.link.fd = -1, .temporary.fd = -1, .signal_fd = -1};
	bool running = q->sampling->loops && (q->target->n_pids > 0 || q->live);
	int exit_status = is_several(q) ? open_files(s, q)
			  : q->input    ? open_file(s, q->input)
			  : measures(q) ? open_measured(s, q)
			  : running     ? open_kept(s,
						  "no mperfd service answers, and running "
						      "programs report only to the service",
                                              q->live ? GIVE_LIVE : GIVE_LOOPS, EXIT_FAILED)
			  : of_time(q)  ? open_kept(s,
						  "no mperfd service answers, so there is no "
						   "store to read",
						  GIVE, EXIT_FAILED)
					: open_default(s);
	if (exit_status == 0)
		return 0;
	*ret_exit = exit_status;
	return RUN_FAILED;
}

struct question {
	struct ask ask;
	int signal_fd;
	int n_signals;
	int (*answer)(void *userdata, const Mperf__Answer *a);
	void (*failed)(void *userdata, const Mperf__Failure *f);
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

static void take_failure(void *userdata, const Mperf__Failure *f)
{
	struct question *q = userdata;
	q->failed(q->userdata, f);
}

int source_try(struct source *s, Mperf__Request *request,
	int (*answer)(void *userdata, const Mperf__Answer *a),
	void (*failed)(void *userdata, const Mperf__Failure *f), void *userdata)
{
	struct question q = {.signal_fd = s->signal_fd,
		.answer = answer,
		.failed = failed,
		.userdata = userdata};
	q.ask = (struct ask){.link = &s->link,
		.answer = take_answer,
		.failed = failed ? take_failure : NULL,
		.userdata = &q};
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

int source_ask(struct source *s, Mperf__Request *request,
	int (*answer)(void *userdata, const Mperf__Answer *a), void *userdata)
{
	return source_try(s, request, answer, NULL, userdata);
}

void source_stored_filter(const struct source_request *q, Mperf__Filter *ret_filter)
{
	const struct narrowing *n = q->narrowing;
	*ret_filter = (Mperf__Filter)MPERF__FILTER__INIT;
	ret_filter->n_pid = q->target->n_pids;
	ret_filter->pid = (int32_t *)q->target->pid;
	ret_filter->n_comm = n->n_comms;
	ret_filter->comm = (char **)n->comm;
	ret_filter->n_cgroup = n->n_cgroups;
	ret_filter->cgroup = (char **)n->cgroup;
	ret_filter->n_label = n->n_labels;
	ret_filter->label = (char **)n->label;
	ret_filter->since_ns = n->since_ns;
	ret_filter->until_ns = n->until_ns;
}

void source_filter(
	const struct source *s, const struct source_request *q, Mperf__Filter *ret_filter)
{
	const struct target *t = q->target;
	const struct narrowing *n = q->narrowing;
	source_stored_filter(q, ret_filter);
	if (measures(q)) { /* they were the target */
		ret_filter->n_pid = 0;
		ret_filter->pid = NULL;
	}
	ret_filter->n_cpu = t->n_cpus;
	ret_filter->cpu = (uint32_t *)t->cpu;
	if (s->kept && n->since_ns == 0)
		ret_filter->since_ns =
			(n->until_ns ? n->until_ns : (int64_t)clock_ns(CLOCK_REALTIME)) - KEPT_NS;
	if (n->of_event)
		ret_filter->event = n->of_event;
}

/* "a.mprf", "a.mprf and 3 more". */
static char *inputs_text(const struct options *o)
{
	char *text;
	if (o->n_inputs < 2)
		return strdup(o->input);
	return asprintf(&text, "%s and %zu more", o->inputs[0], o->n_inputs - 1) < 0 ? NULL : text;
}

char *source_title(const struct options *o, bool kept, const char *kind)
{
	_cleanup_(freep) char *what = NULL;
	char *title;
	if (o->title)
		return strdup(o->title);
	if (o->input)
		what = inputs_text(o);
	else if (o->target.command_line || o->target.all || (o->target.n_pids > 0 && !kept))
		what = target_text(&o->target);
	else
		what = strdup(kept ? "the service's store" : SOURCE_DEFAULT);
	return what && asprintf(&title, "%s of %s", kind, what) >= 0 ? title : NULL;
}

void source_clear(struct source *s)
{
	link_close(&s->link);
	outfile_clear(&s->temporary);
	free(TAKE_PTR(s->path));
	if (s->files)
		recordings_clear(s->files);
	free(TAKE_PTR(s->files));
	feed_socket_clear(&s->feed);
	if (s->signal_fd >= 0)
		signals_unblock(TAKE_FD(s->signal_fd));
}

void source_narrow(const struct source *s, const struct source_request *q, Mperf__Request *query,
	Mperf__Filter *filter)
{
	source_filter(s, q, filter);
	switch (query->body_case) {
#define QUERY(id, name)                                                                            \
	case MPERF__REQUEST__BODY_##id:                                                            \
		query->name->path = s->path;                                                       \
		query->name->filter = filter;                                                      \
		break;
#define QUERY_FILES(id, name)                                                                      \
	case MPERF__REQUEST__BODY_##id:                                                            \
		query->name->path = s->files ? (char **)s->files->path : (char **)&s->path;        \
		query->name->n_path = s->files ? s->files->n : 1;                                  \
		query->name->filter = filter;                                                      \
		break;
		QUERY_FILES(HOTSPOTS, hotspots)
		QUERY_FILES(FLAMEGRAPH, flamegraph)
		QUERY_FILES(EXPORT, export)
		QUERY_FILES(REPORT, report)
		QUERY_FILES(TIMELINE, timeline)
		QUERY(ROOFLINE, roofline)
		QUERY(BLOCKS, blocks)
		QUERY(PARALLEL, parallel)
		QUERY(TOPDOWN, topdown)
#undef QUERY_FILES
#undef QUERY
	default:
		assert(false);
	}
}

int source_query(const struct source_request *q, Mperf__Request *query,
	int (*answer)(void *userdata, const Mperf__Answer *a), void *userdata, bool *ret_kept)
{
	struct source s;
	Mperf__Filter filter;
	int exit_status;
	if (source_start(&s, q, &exit_status) == 0) {
		source_narrow(&s, q, query, &filter);
		exit_status = source_ask(&s, query, answer, userdata);
	}
	if (ret_kept)
		*ret_kept = s.kept;
	source_clear(&s);
	return exit_status;
}
