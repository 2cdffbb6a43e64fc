/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl flamegraph: the call tree as a page, as SVG, or as folded stacks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/flamegraph/flame.h"
#include "client/flamegraph/page.h"
#include "client/measure/capture.h"
#include "client/options/command.h"
#include "client/show/page.h"
#include "client/show/reply.h"
#include "proto/base/memory.h"

struct drawing {
	const struct options *options;
	struct source_request from;
	struct flame *flame;
	char *provenance_line, *event;
	double counted; /* share of the samples */
	bool kept;      /* by the service */
	bool folded;    /* as text: --folded, or export --as folded */
};

static int take(void *userdata, const Mperf__Answer *a)
{
	struct drawing *d = userdata;
	if (a->body_case == MPERF__ANSWER__BODY_PROVENANCE) {
		free(d->provenance_line);
		free(d->event);
		d->provenance_line = reply_provenance_line(a->provenance);
		d->event = strdup(a->provenance->event);
		d->counted = 1 - a->provenance->uncounted_share;
		return d->provenance_line && d->event ? 0 : -ENOMEM;
	}

	int r = flame_add(d->flame, a);
	if (r == FLAME_TOO_LARGE)
		say_failure("the call tree is too large to draw",
			"Narrow it with --pid, --comm, --cpu, --since or --until");
	else if (r == FLAME_MALFORMED)
		say_failure("mperfd sent a malformed call tree",
			"Install mperfctl and mperfd of the same version");
	return r;
}

/* baseline: the recording of --diff; NULL: the source. */
static int ask(struct source *s, struct drawing *d, char *baseline)
{
	Mperf__Filter filter;
	Mperf__FlamegraphRequest flamegraph = MPERF__FLAMEGRAPH_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_FLAMEGRAPH;
	request.flamegraph = &flamegraph;
	flamegraph.wall = d->options->wall;
	source_narrow(s, &d->from, &request, &filter);
	if (baseline) {
		flamegraph.path = &baseline;
		flamegraph.n_path = 1;
	}
	return source_ask(s, &request, take, d);
}

/* Ask for the recording of --diff, if it is given, and then for the source. */
static int ask_all(struct source *s, struct drawing *d)
{
	_cleanup_(freep) char *path = NULL, *event = NULL;
	if (!d->options->earlier)
		return ask(s, d, NULL);
	path = source_absolute(d->options->earlier);
	if (!path)
		return EXIT_FAILED;
	flame_begin_baseline(d->flame);
	int exit_status = ask(s, d, path);
	if (exit_status != 0)
		return exit_status;
	flame_end_baseline(d->flame);
	event = d->event;
	d->event = NULL;
	exit_status = ask(s, d, NULL);
	if (exit_status != 0)
		return exit_status;
	if (!event || !d->event || strcmp(event, d->event) != 0) {
		say_failure("the two recordings were sampled by different events",
			"Record both with the same -e");
		return EXIT_USAGE;
	}
	return 0;
}

struct file {
	const struct drawing *drawing;
	const char *path;
	size_t n_cut; /* boxes not drawn */
};

static int write_into(void *userdata, FILE *f)
{
	struct file *file = userdata;
	const struct drawing *d = file->drawing;
	const struct options *o = d->options;
	_cleanup_(freep) char *title = source_title(o, d->kept, "Flame graph");
	if (!title)
		return -ENOMEM;
	struct flame_page page = {
		.title = title,
		.event = o->narrowing.of_event ? o->narrowing.of_event
			 : o->wall             ? "wall time"
			 : d->event            ? d->event
					       : "",
		.provenance = d->provenance_line,
		.counted = d->counted,
		.plain = page_is_plain(file->path),
		.baseline = o->earlier,
	};
	return d->folded ? flame_write_folded(d->flame, f)
			 : flame_page_write(d->flame, &page, f, &file->n_cut);
}

static void say_written(const struct drawing *d, const char *path, size_t n_cut)
{
	char more[64] = "";
	size_t n_nodes, n_boxes = 0;
	const struct flame_node *node = flame_nodes(d->flame, &n_nodes);

	/* in a comparison: boxes that only the baseline has, which are not drawn */
	for (size_t i = 0; i < n_nodes; i++)
		n_boxes += i == 0 || node[i].total > 0;
	n_boxes -= n_cut;
	if (n_cut > 0)
		snprintf(more, sizeof(more), ", %zu more %s too narrow to draw", n_cut,
			n_cut == 1 ? "is" : "are");
	say_note("wrote %s: %zu box%s%s; %s", path, n_boxes, n_boxes == 1 ? "" : "es", more,
		d->provenance_line ? d->provenance_line : "");
}

static int write_somewhere(const struct drawing *d)
{
	const struct options *o = d->options;
	const char *path = o->output ? o->output : d->folded ? "-" : "flame.html";
	struct file file = {.drawing = d, .path = path};

	if (flame_finish(d->flame) < 0) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	int exit_status = page_save(path, o->force, write_into, &file);
	if (exit_status == 0 && strcmp(path, "-") != 0)
		say_written(d, path, file.n_cut);
	return exit_status;
}

int client_flamegraph(const struct options *o)
{
	struct drawing d = {.options = o,
		.from = source_request_of(o),
		.folded = o->folded || (o->as && strcmp(o->as, "folded") == 0)};
	struct source s;
	int exit_status;

	if (flame_new(&d.flame) < 0) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	if (source_start(&s, &d.from, &exit_status) == 0)
		exit_status = ask_all(&s, &d);
	d.kept = s.kept;
	source_clear(&s);
	if (exit_status == 0)
		exit_status = write_somewhere(&d);
	flame_free(d.flame);
	free(d.provenance_line);
	free(d.event);
	return exit_status;
}
