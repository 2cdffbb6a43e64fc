/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Only the daemon knows which jobs still have processes, so it notes these jobs when it chooses the files of the store.
 * The child ignores runs that began after that moment, so a run whose job is not noted has ended.
 */
#include "daemon/control/run_selection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/attribute/label_set.h"
#include "daemon/control/peer.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"
#include "proto/syntax/label.h"

static int check_uids(struct request *q, const Mperf__RunSelection *m)
{
	char what[80];
	for (size_t i = 0; i < m->n_uid; i++) {
		if (q->peer->sees_all || m->uid[i] == q->peer->uid)
			continue;
		snprintf(what, sizeof(what), "jobs of uid %u are not yours", m->uid[i]);
		int r = request_refuse_group(q, what);
		return r < 0 ? r : 1;
	}
	return 0;
}

int run_selection_check(struct request *q, const Mperf__RunSelection *m)
{
	struct label_fault fault = {""};
	struct label label;
	for (size_t i = 0; i < m->n_label && !*fault.text; i++)
		(void)label_parse(m->label[i], &label, &fault);
	if (m->n_label == 0 && m->since_ns <= 0)
		snprintf(fault.text, sizeof(fault.text), "a stretch of time needs its begin");
	else if (m->n_label == 0 && (m->last || m->n_uid))
		snprintf(fault.text, sizeof(fault.text),
			"only jobs can be counted and have users, not a stretch of time");
	else if (m->until_ns && m->until_ns <= m->since_ns)
		snprintf(fault.text, sizeof(fault.text), "a selection ends before it begins");
	if (!*fault.text)
		return check_uids(q, m);
	int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
		"Write KEY=VALUE, with since=, until=, last= and user=; mperfctl-gate(1) says how.",
		"%s", fault.text);
	return r < 0 ? r : 1;
}

/* With room for n sets. NULL without memory. */
static struct known_runs *make_known(size_t n)
{
	struct known_runs *k = calloc(1, sizeof(*k) + n * sizeof(*k->alive));
	if (k)
		k->text = calloc(n + 1, sizeof(*k->text));
	if (!k || !k->text) {
		free(k);
		return NULL;
	}
	return k;
}

static bool is_alive(const struct request *q, const struct label_set *set)
{
	return set->n_live > 0 && (q->peer->sees_all || set->uid == q->peer->uid);
}

int run_selection_know(struct request *q, struct question *a)
{
	struct walk *w = q->peer->options->service->walk;
	/* take all records so far, which include the ends of processes */
	int r = w ? walk_catch_up(w, clock_ns(CLOCK_MONOTONIC)) : 0;
	const size_t n_sets = w ? HASH_COUNT(w->tasks.label_sets.set) : 0;
	struct known_runs *k = r < 0 ? NULL : make_known(n_sets);
	if (!k)
		return r < 0 ? r : -ENOMEM;
	k->until_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	const struct label_set *set = w ? w->tasks.label_sets.set : NULL;
	for (; set; set = set->hh.next)
		if (is_alive(q, set)) {
			k->alive[k->n_alive] = (struct query_job){set->uid, set->labels};
			k->text[k->n_alive++] = label_text_ref(set->text);
		}
	a->known = k;
	return 0;
}

void run_selection_forget(void *known)
{
	struct known_runs *k = known;
	for (size_t i = 0; i < k->n_alive; i++)
		label_text_unref(k->text[i]);
	free(k->text);
	free(k);
}
