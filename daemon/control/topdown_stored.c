/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * topdown of a file, or of the counts in a service's store. The counts of harts are of all users' processes, so
 * a service shows them only to peers that see all.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/peer.h"
#include "daemon/control/question.h"
#include "daemon/control/topdown.h"
#include "daemon/query/stored_tree.h"
#include "proto/base/memory.h"

#define TURN_IT_ON                                                                                 \
	"Set topdown-groups = TopdownL1 in mperf.conf (mperf.conf(5)), and ask again after a "     \
	"while"

/* --- as tables -------------------------------------------------------------------------------- */

static void stored_passes(
	const struct topdown_tree *view, size_t node, char text[static METRIC_PASSES_BYTES])
{
	const struct stored_tree *t = view->userdata;
	text[0] = '\0';
	if (t->pass[node] != STORED_ALL_PASSES)
		snprintf(text, METRIC_PASSES_BYTES, "%d", t->pass[node] + 1);
}

static int send_events(const struct topdown_tree *view, const struct answer *answer)
{
	const struct stored_tree *t = view->userdata;
	int r = 0;
	for (size_t i = 0; i < t->counted->n_events && r == 0; i++) {
		const struct counted_event *e = &t->counted->event[i];
		double scaled = counted_scaled(&e->all);
		if (!stored_tree_reads(t, e))
			continue;
		struct answer_value v[N_STAT_COLUMNS] = {
			answer_text(stored_tree_event(t, e)), answer_real(e->all.value)};
		if (isfinite(scaled)) {
			v[2] = answer_real(scaled);
			v[3] = answer_real(e->all.enabled_ns);
			v[4] = answer_real(e->all.running_ns);
			v[5] = answer_real(counted_part(&e->all));
		} else {
			v[1] = (struct answer_value){.kind = ANSWER_ABSENT};
			v[STAT_COLUMN_REASON] = answer_text("it never got a counter");
		}
		r = topdown_send_event(view, v, e->pass + 1, answer);
	}
	return r;
}

static struct topdown_tree stored_view(const struct stored_tree *t)
{
	return (struct topdown_tree){
		.core = t->title,
		.harts = t->harts,
		.tree = t->tree,
		.n_passes = t->n_passes,
		.turns = t->n_passes > 1 ? "the kernel rotates the passes" : "no",
		.value = t->node,
		.residual = t->residual,
		.inputs = t->inputs,
		.passes = stored_passes,
		.send_events = send_events,
		.userdata = t,
	};
}

/* --- trees of all cores ----------------------------------------------------------------------- */

/* The reason why a kind of core has no tree; the first reason is sent if no kind has one. */
struct refusal_of_trees {
	struct event_error error;
	char note[512];
};

static void note_refusal(
	struct refusal_of_trees *why, const struct stored_tree *t, const struct event_error *error)
{
	size_t n = strlen(why->note);
	if (!*why->error.text)
		why->error = *error;
	snprintf(why->note + n, sizeof(why->note) - n, "%sharts %s are left out: %.200s",
		n ? "; " : "", t->harts, error->text);
}

static int send_trees(struct stored_tree *tree, size_t n, struct counted *c, const char *note,
	const struct answer *to)
{
	struct topdown_tree view[COUNTED_CORES_MAX];
	struct provenance provenance = c->provenance;
	for (size_t i = 0; i < n; i++)
		view[i] = stored_view(&tree[i]);
	int r = topdown_send(view, n, to->userdata, to);
	if (r == 0 && *note && provenance.n_notes < PROVENANCE_NOTES_MAX)
		r = text_get(&c->texts, note, &provenance.note[provenance.n_notes++]);
	return r == 0 ? provenance_tell(&provenance, &c->texts, to) : r;
}

/* 0, QUERY_FAILED with *ret_error, an answer's value, -errno. */
static int answer_trees(struct counted *c, const struct stored_wish *wish, const struct answer *to,
	struct query_error *ret_error)
{
	_cleanup_(freep) struct stored_tree *tree = calloc(c->n_cores + 1, sizeof(*tree));
	struct refusal_of_trees why = {{""}, ""};
	size_t n = 0;
	int r = 0;
	if (!tree)
		return -ENOMEM;
	for (unsigned core = 0; core < c->n_cores && r >= 0; core++) {
		struct event_error error = {""};
		r = stored_tree_make(&tree[n], c, core, wish, &error);
		if (r > 0)
			note_refusal(&why, &tree[n], &error);
		if (r == 0)
			n++;
		else
			stored_tree_clear(&tree[n]);
	}
	if (r >= 0 && n == 0)
		r = query_fail(ret_error, MPERF__FAILURE_KIND__FAILURE_MISSING,
			c->of_samples ? "Record the events of the metric, as siblings of the event "
					"that samples: `mperfctl hotspots -M METRIC -- CMD`"
				      : "Leave out -l and -M to see everything that was counted",
			"%s", *why.error.text ? why.error.text : "nothing was counted");
	else if (r >= 0)
		r = send_trees(tree, n, c, why.note, to);
	for (size_t i = 0; i < n; i++)
		stored_tree_clear(&tree[i]);
	return r;
}

static int run(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	const Mperf__StatRequest *m = a->request->topdown;
	const struct stored_wish wish = {
		.cores = a->cores,
		.top = m->n_metric ? m->metric[0] : NULL,
		.levels = (int)m->levels,
	};
	_cleanup_(counted_freep) struct counted *c = NULL;
	int r = query_counted(a->source, a->n_sources, &a->filter, &c, ret_error);
	if (r != 0)
		return r;
	if (c->n_events == 0 && *m->path)
		return query_fail(ret_error, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Record with counters, such as `mperfctl hotspots -M METRIC -- CMD`",
			"%s has no counts of events: its samples carried none", m->path);
	if (c->n_events == 0)
		return query_fail(ret_error, MPERF__FAILURE_KIND__FAILURE_MISSING, TURN_IT_ON,
			"no metrics were counted continuously at that time");
	return answer_trees(c, &wish, to, ret_error);
}

static int make(struct request *q, struct question *a)
{
	const Mperf__StatRequest *m = a->request->topdown;
	struct machine machine; /* reads the platform database, of which a child has a copy */
	question_about(q, a, &m->path, m->filter);
	a->coarsest = a->filter.n_cpus ? TIER_MINUTE : TIER_HOUR;
	a->run = run;
	if (question_is_of_store(q, a) && !q->peer->sees_all)
		return request_refuse_group(q, "counts of whole harts include all users") ?: 1;
	return request_read_machine(q, &machine);
}

int topdown_stored(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make);
}
