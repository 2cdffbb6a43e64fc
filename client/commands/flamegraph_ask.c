/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The tree that is shown first must be there, as if it were alone. The others are tried: where mperfd says why it has
 * none, that becomes the title of a button that does nothing.
 */
#include "client/commands/flamegraph_ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/options/command.h"
#include "client/show/reply.h"
#include "proto/base/memory.h"

/* Bounds of wall time that differ by more are a guess, as in its line of provenance. */
#define WALL_DIFFERS 1.01

static const struct view_row {
	const char *name, *label, *says;
	const char *event; /* of the filter; "": of the samples */
	bool wall, by_wait;
	const char *missing; /* if the source has no such event; NULL: as mperfd says */
} rows[N_VIEWS] = {
	[VIEW_CPU] = {"cpu", "CPU time", "Where threads had a CPU, summed up over CPUs", "", false,
		false, NULL},
	[VIEW_WAITING] = {"waiting", "Waiting",
		"Where threads waited, and for what, summed up over threads", "waiting", false,
		true,
		"there are no samples of waiting threads, which need BPF or a recording of a "
		"command, without -e"},
	[VIEW_READY] = {"ready", "Waiting for a CPU",
		"Where threads were ready to run and had no CPU, summed up over threads",
		"waiting:hart", false, true, "no sample found a thread that waited for a CPU"},
	[VIEW_WALL] = {"wall", "Wall time",
		"CPU time in which each moment counts once: code that runs alone weighs more", "",
		true, false, NULL},
};

static const char too_large[] = "the call tree is too large to draw";
static const char guess[] =
	"it is only known within bounds, since the service's store does not say what "
	"ran at the same time; --wall shows a guess";

/* One question, and what becomes of the answer. */
struct asked {
	struct flamegraph_tree *tree;
	bool is_tried;       /* errors are reasons */
	const char *missing; /* as in view_row */
};

static int leave_out(struct flamegraph_tree *t, const char *why)
{
	free(t->absent);
	t->absent = strdup(why);
	return t->absent ? 0 : -ENOMEM;
}

static int take_provenance(struct flamegraph_tree *t, const Mperf__Provenance *p)
{
	free(t->provenance_line);
	free(t->event);
	t->provenance_line = reply_provenance_line(p);
	t->event = strdup(p->event);
	t->counted = 1 - p->uncounted_share;
	t->is_wall_guess = p->wall && p->wall->most > p->wall->least * WALL_DIFFERS;
	return t->provenance_line && t->event ? 0 : -ENOMEM;
}

static int take(void *userdata, const Mperf__Answer *a)
{
	struct asked *q = userdata;
	if (a->body_case == MPERF__ANSWER__BODY_PROVENANCE)
		return take_provenance(q->tree, a->provenance);

	int r = flame_add(q->tree->flame, a);
	if (r == FLAME_TOO_LARGE && q->is_tried)
		return leave_out(q->tree, too_large) == 0 ? r : -ENOMEM;
	if (r == FLAME_TOO_LARGE)
		say_failure(too_large, "Narrow it with --pid, --comm, --cpu, --since or --until");
	else if (r == FLAME_MALFORMED)
		say_failure("mperfd sent a malformed call tree",
			"Install mperfctl and mperfd of the same version");
	return r;
}

static void take_failure(void *userdata, const Mperf__Failure *f)
{
	struct asked *q = userdata;
	const bool is_missing = f->kind == MPERF__FAILURE_KIND__FAILURE_MISSING && q->missing;
	leave_out(q->tree, is_missing            ? q->missing
			   : f->what && *f->what ? f->what
						 : "mperfd gave no reason");
}

/* The first of the page has the event that was asked for; the others have theirs. */
static void choose(const struct flamegraph *f, enum flamegraph_view v,
	Mperf__FlamegraphRequest *request, Mperf__Filter *filter)
{
	request->wall = f->has_views ? rows[v].wall : f->options->wall;
	if (!f->has_views)
		return;
	request->by_wait = rows[v].by_wait;
	filter->event = (char *)rows[v].event;
}

/* baseline: the recording of --diff; NULL: the source. */
static int ask(struct flamegraph *f, struct source *s, enum flamegraph_view v, char *baseline)
{
	Mperf__Filter filter;
	Mperf__FlamegraphRequest flamegraph = MPERF__FLAMEGRAPH_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_FLAMEGRAPH;
	request.flamegraph = &flamegraph;
	source_narrow(s, &f->from, &request, &filter);
	choose(f, v, &flamegraph, &filter);
	if (baseline) {
		flamegraph.path = &baseline;
		flamegraph.n_path = 1;
	}
	struct asked q = {
		.tree = &f->tree[v], .is_tried = v != f->first, .missing = rows[v].missing};
	return source_try(s, &request, take, q.is_tried ? take_failure : NULL, &q);
}

static int finish(struct flamegraph_tree *t)
{
	if (flame_finish(t->flame) == 0)
		return 0;
	say_failure("out of memory", "Free some memory, and try again");
	return EXIT_FAILED;
}

static int begin(struct flamegraph_tree *t)
{
	if (flame_new(&t->flame) == 0)
		return 0;
	say_failure("out of memory", "Free some memory, and try again");
	return EXIT_FAILED;
}

/* Ask for the recording of --diff, if it is given, and then for the source. */
static int ask_first(struct flamegraph *f, struct source *s)
{
	_cleanup_(freep) char *path = NULL, *event = NULL;
	struct flamegraph_tree *t = &f->tree[f->first];
	if (begin(t) != 0)
		return EXIT_FAILED;
	if (f->options->earlier) {
		path = source_absolute(f->options->earlier);
		if (!path)
			return EXIT_FAILED;
		flame_begin_baseline(t->flame);
		int exit_status = ask(f, s, f->first, path);
		if (exit_status != 0)
			return exit_status;
		flame_end_baseline(t->flame);
		event = TAKE_PTR(t->event);
	}
	int exit_status = ask(f, s, f->first, NULL);
	if (exit_status != 0)
		return exit_status;
	if (path && (!event || !t->event || strcmp(event, t->event) != 0)) {
		say_failure("the two recordings were sampled by different events",
			"Record both with the same -e");
		return EXIT_USAGE;
	}
	return finish(t);
}

static int drop(struct flamegraph_tree *t, const char *why)
{
	t->flame = flame_free(t->flame);
	if (!why || leave_out(t, why) == 0)
		return 0;
	say_failure("out of memory", "Free some memory, and try again");
	return EXIT_FAILED;
}

static int ask_other(struct flamegraph *f, struct source *s, enum flamegraph_view v)
{
	struct flamegraph_tree *t = &f->tree[v];
	if (rows[v].wall && s->kept)
		return drop(t, guess);
	if (v == VIEW_READY && f->tree[VIEW_WAITING].absent) /* it has no waits at all */
		return drop(t, f->tree[VIEW_WAITING].absent);
	if (begin(t) != 0)
		return EXIT_FAILED;
	int exit_status = ask(f, s, v, NULL);
	if (exit_status != 0 && t->absent)
		return drop(t, NULL);
	if (exit_status != 0)
		return exit_status;
	if (rows[v].wall && t->is_wall_guess)
		return drop(t, guess);
	exit_status = finish(t);
	size_t n_nodes;
	const bool is_empty = exit_status == 0 && flame_nodes(t->flame, &n_nodes)[0].total <= 0;
	return is_empty ? drop(t, "no sample found any") : exit_status;
}

int flamegraph_ask(struct flamegraph *f, struct source *s)
{
	int exit_status = ask_first(f, s);
	for (int v = 0; f->has_views && v < N_VIEWS && exit_status == 0; v++)
		if (v != (int)f->first)
			exit_status = ask_other(f, s, (enum flamegraph_view)v);
	return exit_status;
}

/* Samples of another event than time are shown under its name. */
static void name_counts(struct flame_view *view)
{
	if (!view->flame || flame_unit(view->flame) == MPERF__UNIT__UNIT_NS || !*view->event)
		return;
	view->label = view->event;
	view->says = "The event of the samples";
}

size_t flamegraph_views(const struct flamegraph *f, struct flame_view ret_view[static N_VIEWS])
{
	size_t n = 0;
	for (int i = 0; i < N_VIEWS; i++) {
		const struct flamegraph_tree *t = &f->tree[i];
		if (!f->has_views && i != (int)f->first)
			continue;
		ret_view[n++] = (struct flame_view){
			.name = rows[i].name,
			.label = rows[i].label,
			.says = rows[i].says,
			.flame = t->flame,
			.absent = t->absent,
			.event = i == VIEW_WALL ? "wall time"
				 : t->event     ? t->event
						: "",
			.provenance = t->provenance_line,
			.counted = t->counted,
		};
		name_counts(&ret_view[n - 1]);
	}
	return n;
}

void flamegraph_clear(struct flamegraph *f)
{
	for (int i = 0; i < N_VIEWS; i++) {
		struct flamegraph_tree *t = &f->tree[i];
		t->flame = flame_free(t->flame);
		free(t->provenance_line);
		free(t->event);
		free(t->absent);
	}
}
