/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/commands/hotspots_tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/flamegraph/call_tree.h"
#include "client/measure/capture.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "client/show/say.h"
#include "client/show/table.h"
#include "proto/base/memory.h"

#define LEAST_PPM 10000      /* 1 %: what perf's and pprof's readers are used to */
#define LABEL_BYTES 4096     /* mperfd writes names of 1 KB */
#define INDENT_LEVELS_MAX 30 /* deeper ones stand no further to the right */
#define ALIKE_MAX 3

struct answered {
	struct flame *flame;
	Mperf__Provenance *provenance; /* a copy */
};

static int take(void *userdata, const Mperf__Answer *a)
{
	struct answered *x = userdata;
	if (a->body_case == MPERF__ANSWER__BODY_PROVENANCE && !x->provenance) {
		x->provenance = reply_copy_provenance(a->provenance);
		return x->provenance ? 0 : -ENOMEM;
	}
	int r = flame_add(x->flame, a);
	if (r == FLAME_TOO_LARGE)
		say_failure("the call tree is too large",
			"Narrow it with --pid, --comm, --cpu, --since or --until");
	else if (r == FLAME_MALFORMED)
		say_failure("mperfd sent a malformed call tree",
			"Install mperfctl and mperfd of the same version");
	return r;
}

static int say_no_memory(void)
{
	say_failure("out of memory", "Free some memory, and try again");
	return EXIT_FAILED;
}

/* An unknown function is answered with those that the user may have meant. */
static int say_no_function(const struct flame *f, const char *function)
{
	const char *alike[ALIKE_MAX];
	const size_t n = call_tree_like(f, function, alike, ALIKE_MAX);
	char what[LABEL_BYTES],
		advice[LABEL_BYTES] = "hotspots -n 0 shows the functions that have samples";
	if (n > 0)
		snprintf(advice, sizeof(advice), "Did you mean %.140s%s%.140s%s%.140s?", alike[0],
			n > 1 ? ", " : "", n > 1 ? alike[1] : "", n > 2 ? ", " : "",
			n > 2 ? alike[2] : "");
	snprintf(what, sizeof(what), "no sample has a function '%.300s'", function);
	say_failure(what, advice);
	return EXIT_FAILED;
}

/* Columns of both forms; people read the shares. */
enum { TOTAL, SELF, TOTAL_VALUE, SELF_VALUE, DEPTH, FUNCTION, MODULE, N_COLUMNS };

static int make_reply(struct reply *r, const struct call_tree *t, const struct flame *f,
	bool is_text, bool of_callers)
{
	const Mperf__Unit unit = flame_unit(f);
	const struct reply_heading heading[N_COLUMNS] = {
		[TOTAL] = {"total", "Total", MPERF__UNIT__UNIT_SHARE},
		[SELF] = {"self", "Self", MPERF__UNIT__UNIT_SHARE},
		[TOTAL_VALUE] = {"total_value", unit == MPERF__UNIT__UNIT_NS ? "Time" : "Count",
			unit},
		[SELF_VALUE] = {"self_value",
			unit == MPERF__UNIT__UNIT_NS ? "Self time" : "Self count", unit},
		[DEPTH] = {"depth", "Depth", MPERF__UNIT__UNIT_NONE},
		[FUNCTION] = {"function", "Function", MPERF__UNIT__UNIT_NONE},
		[MODULE] = {"module", "Module", MPERF__UNIT__UNIT_NONE},
	};
	int result = reply_head(r, heading, N_COLUMNS);
	for (size_t i = 0; i < t->n_rows && result == 0; i++) {
		const struct call_tree_row *row = &t->row[i];
		const bool has_self = t->whole > 0 && (!of_callers || row->depth == 0);
		char label[LABEL_BYTES], text[LABEL_BYTES + 2 * INDENT_LEVELS_MAX];
		const uint32_t levels =
			row->depth < INDENT_LEVELS_MAX ? row->depth : INDENT_LEVELS_MAX;
		flame_label(row->node, label, sizeof(label));
		snprintf(text, sizeof(text), "%*s%s", is_text ? 2 * (int)levels : 0, "", label);
		const Mperf__Value value[N_COLUMNS] = {
			[TOTAL] = reply_value_of_real(t->whole > 0 ? row->total / t->whole : 0),
			[SELF] = reply_value_of_real(has_self ? row->self / t->whole : NAN),
			[TOTAL_VALUE] = reply_value_of_real(row->total),
			[SELF_VALUE] = reply_value_of_real(has_self ? row->self : NAN),
			[DEPTH] = reply_value_of_integer(row->depth),
			[FUNCTION] = reply_value_of_text(text),
			[MODULE] = reply_value_of_text(row->node->module),
		};
		result = reply_append(r, value, N_COLUMNS);
	}
	return result;
}

static int show(const struct options *o, const struct reply *r, FILE *f)
{
	static const char *const shown[] = {
		"total", "self", "total_value", "function", "module", NULL};
	struct table_options look = {.raw = o->look.raw, .show = o->look.raw ? NULL : shown};
	if (o->look.json)
		return reply_write_json(r, f);
	table_look(stdout, o->look.no_color, &look);
	int result = table_print(r, &look, f);
	if (result == 0 && !o->look.raw)
		reply_write_provenance(r->provenance, f);
	return result;
}

static int print_tree(const struct options *o, const struct call_tree *t, const struct answered *x)
{
	struct reply reply = {0};
	struct print p;
	int r = make_reply(&reply, t, x->flame, !o->look.json && !o->look.raw, o->callers != NULL);
	if (r == 0 && x->provenance)
		r = reply_append_provenance(
			&reply, x->provenance, x->provenance->note, x->provenance->n_note);
	if (r != 0) {
		reply_clear(&reply);
		return say_no_memory();
	}
	r = print_open_answer(&p, options_ask_data(o));
	if (r == 0)
		r = show(o, &reply, p.file);
	int exit_status = print_close_answer(&p, r);
	if (exit_status == 0 && t->n_rows == 0)
		say_note("no samples match; choose another time, record longer, or relax the "
			 "filters");
	else if (exit_status == 0 && t->n_left_out > 0)
		say_note("%zu smaller row%s left out; --min-share 0.0001%% shows more",
			t->n_left_out, t->n_left_out == 1 ? " is" : "s are");
	reply_clear(&reply);
	return exit_status;
}

static int answer(const struct options *o, const struct answered *x)
{
	const enum call_tree_way way = o->callers   ? CALL_TREE_CALLERS
				       : o->callees ? CALL_TREE_CALLEES
						    : CALL_TREE_DOWN;
	const char *function = o->callers ? o->callers : o->callees;
	const double least = (o->min_share_ppm ? o->min_share_ppm : LEAST_PPM) * 1e-6;
	struct call_tree tree;
	if (flame_finish(x->flame) < 0)
		return say_no_memory();
	int r = call_tree_make(&tree, x->flame, way, function, least);
	int exit_status = r == -ENOENT ? say_no_function(x->flame, function)
			  : r < 0      ? say_no_memory()
				       : print_tree(o, &tree, x);
	call_tree_clear(&tree);
	return exit_status;
}

int hotspots_tree(const struct options *o)
{
	struct answered x = {0};
	const struct source_request from = source_request_of(o);
	Mperf__FlamegraphRequest flamegraph = MPERF__FLAMEGRAPH_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_FLAMEGRAPH;
	request.flamegraph = &flamegraph;
	flamegraph.wall = o->wall;
	if (flame_new(&x.flame) < 0)
		return say_no_memory();
	int exit_status = source_query(&from, &request, take, &x, NULL);
	if (exit_status == 0)
		exit_status = answer(o, &x);
	flame_free(x.flame);
	if (x.provenance)
		mperf__provenance__free_unpacked(x.provenance, NULL);
	return exit_status;
}
