/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl flamegraph: the call tree as a page, as SVG, or as folded stacks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/commands/flamegraph_ask.h"
#include "client/options/command.h"
#include "client/show/page.h"
#include "proto/base/memory.h"
#include "proto/syntax/event_name.h"
#include "proto/syntax/unit.h"

static bool is_folded(const struct options *o)
{
	return o->folded || (o->as && strcmp(o->as, "folded") == 0);
}

static const char *path_of(const struct options *o)
{
	return o->output ? o->output : is_folded(o) ? "-" : "flame.html";
}

struct file {
	const struct flamegraph *graph;
	const char *path;
	size_t n_cut; /* boxes not drawn */
};

static int write_into(void *userdata, FILE *f)
{
	struct file *file = userdata;
	const struct flamegraph *g = file->graph;
	const struct options *o = g->options;
	struct flame_view view[N_VIEWS];
	_cleanup_(freep) char *title = source_title(o, g->kept, "Flame graph");
	if (!title)
		return -ENOMEM;
	struct flame_page page = {
		.title = title,
		.view = view,
		.n_views = flamegraph_views(g, view),
		.first = g->has_views ? g->first : 0,
		.plain = page_is_plain(file->path),
		.baseline = o->earlier,
	};
	if (!g->has_views && o->narrowing.of_event)
		view[0].event = o->narrowing.of_event;
	return is_folded(o) ? flame_write_folded(g->tree[g->first].flame, f)
			    : flame_page_write(&page, f, &file->n_cut);
}

static void say_written(const struct flamegraph *g, const char *path, size_t n_cut)
{
	const struct flamegraph_tree *t = &g->tree[g->first];
	char more[64] = "";
	size_t n_nodes, n_boxes = 0;
	const struct flame_node *node = flame_nodes(t->flame, &n_nodes);

	/* in a comparison: boxes that only the baseline has, which are not drawn */
	for (size_t i = 0; i < n_nodes; i++)
		n_boxes += i == 0 || node[i].total > 0;
	n_boxes -= n_cut;
	if (n_cut > 0)
		snprintf(more, sizeof(more), ", %zu more %s too narrow to draw", n_cut,
			n_cut == 1 ? "is" : "are");
	say_note("wrote %s: %zu box%s%s; %s", path, n_boxes, n_boxes == 1 ? "" : "es", more,
		t->provenance_line ? t->provenance_line : "");
}

/* Say what each picture of the page adds up to, and of waits for what: "CPU time 2.06 s; Waiting 6.10 s (lock 6.10 s)". */
static int write_totals(const struct flamegraph *g, FILE *f)
{
	struct flame_view view[N_VIEWS];
	struct flame_wait_sum sum[FLAME_WAITS];
	const size_t n_views = flamegraph_views(g, view);
	const char *before = "";
	for (size_t i = 0; i < n_views; i++) {
		char text[UNIT_TEXT_BYTES];
		size_t n_nodes;
		if (!view[i].flame)
			continue;
		const Mperf__Unit unit = flame_unit(view[i].flame);
		unit_text(unit, flame_nodes(view[i].flame, &n_nodes)[0].total, text);
		fprintf(f, "%s%s %s", before, view[i].label, text);
		const size_t n_waits = i == VIEW_WAITING ? flame_waits(view[i].flame, sum) : 0;
		for (size_t k = 0; k < n_waits; k++) {
			unit_text(unit, sum[k].value, text);
			fprintf(f, "%s%s %s", k > 0 ? ", " : " (", sum[k].name + strlen("waiting:"),
				text);
		}
		fputs(n_waits > 0 ? ")" : "", f);
		before = "; ";
	}
	return ferror(f) ? -EIO : 0;
}

static void say_totals(const struct flamegraph *g)
{
	size_t n_trees = 0;
	for (int i = 0; i < N_VIEWS; i++)
		n_trees += g->tree[i].flame != NULL;
	if (n_trees < 2)
		return;
	_cleanup_(freep) char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return;
	const int r = write_totals(g, f);
	if (fclose(f) == 0 && r == 0)
		say_note("%s", text);
}

static int write_somewhere(const struct flamegraph *g)
{
	const char *path = path_of(g->options);
	struct file file = {.graph = g, .path = path};
	int exit_status = page_save(path, g->options->force, write_into, &file);
	if (exit_status == 0 && strcmp(path, "-") != 0) {
		say_written(g, path, file.n_cut);
		say_totals(g);
	}
	return exit_status;
}

static bool asks_for_waiting(const struct options *o)
{
	return o->narrowing.of_event && event_name_is_all_waiting(o->narrowing.of_event);
}

/* A page has all pictures, unless it is of another event, or of a comparison. */
static bool has_views(const struct options *o)
{
	return !is_folded(o) && !page_is_plain(path_of(o)) && !o->earlier &&
	       o->sampling.n_events == 0 && (!o->narrowing.of_event || asks_for_waiting(o)) &&
	       !(o->wall && o->narrowing.of_event); /* refused */
}

int client_flamegraph(const struct options *o)
{
	struct flamegraph g = {.options = o,
		.from = source_request_of(o),
		.first = o->wall               ? VIEW_WALL
			 : asks_for_waiting(o) ? VIEW_WAITING
					       : VIEW_CPU,
		.has_views = has_views(o)};
	struct source s;
	int exit_status;

	if (source_start(&s, &g.from, &exit_status) == 0)
		exit_status = flamegraph_ask(&g, &s);
	g.kept = s.kept;
	source_clear(&s);
	if (exit_status == 0)
		exit_status = write_somewhere(&g);
	flamegraph_clear(&g);
	return exit_status;
}
