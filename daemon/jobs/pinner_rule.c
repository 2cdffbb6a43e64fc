/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A job that matches a rule waits for its end like one that was asked for. A set of labels outlives its job by the
 * time for which ended processes are kept, so that short jobs are met too, and of many that end at once each is
 * tried until there is a place. Labels that get a process again after their job has ended are another run: it is
 * pinned, too, with what the store has of both.
 *
 * Sets have ascending ids, in the order of their list, so that two looks are compared side by side.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/budget/turns.h"
#include "daemon/jobs/pinner_private.h"
#include "proto/base/memory.h"

void pinner_set_rules(struct pinner *p, const char *text)
{
	if (p->rules_text && strcmp(p->rules_text, text) == 0)
		return;
	char *copy = strdup(text);
	if (!copy || pin_rules_parse(text, &p->rules) != 0) {
		free(copy); /* without memory: the next call tries again */
		return;
	}
	free(p->rules_text);
	p->rules_text = copy;
	/* all that run are compared again */
	free(TAKE_PTR(p->met));
	p->n_met = 0;
}

/* 0; PINNER_WAITS; -ENOMEM. */
static int take_by_rules(struct pinner *p, struct label_set *set, struct met_set *met)
{
	_cleanup_(freep) char *group = NULL;
	struct pin_ask ask = {.by = set->uid};
	/* an explicit request takes precedence over a rule */
	if (pinner_awaits(p, set))
		return 0;
	if (met->matches && !pinner_has_place(p, set->uid, NULL))
		return PINNER_WAITS;
	const struct pin_rule *rule = pin_rules_find(&p->rules, set->labels, &group);
	met->matches = rule != NULL;
	if (!rule)
		return 0;
	if (!group)
		return -ENOMEM;
	ask.keep = rule->keep;
	return pinner_await(p, &ask, group, set, NULL);
}

static int compare_id(const void *key, const void *of)
{
	const uint32_t id = *(const uint32_t *)key, other = ((const struct met_set *)of)->id;
	return id < other ? -1 : id > other;
}

/* NULL: it is new. */
static struct met_set *find_met(struct met_set *met, size_t n, uint32_t id)
{
	return n > 0 ? bsearch(&id, met, n, sizeof(*met), compare_id) : NULL;
}

/* All sets as they are now. 0 or -ENOMEM. */
static int meet(const struct pinner *p, struct met_set **ret_met, size_t *ret_n)
{
	const struct label_set *set = p->o.tasks->label_sets.set;
	size_t n = 0;
	struct met_set *met = calloc(HASH_COUNT(set) + 1, sizeof(*met));
	if (!met)
		return -ENOMEM;
	for (; set; set = set->hh.next)
		met[n++] = (struct met_set){.id = set->id,
			.uid = set->uid,
			.n_given = set->n_given,
			.runs = set->n_live > 0,
			.due = true};
	*ret_met = met;
	*ret_n = n;
	return 0;
}

/* See which sets have a new run. Returns how many of those that were due are no longer there; *ret_uid: a user of
 * one. */
static size_t compare(const struct pinner *p, struct met_set *met, size_t n, uid_t *ret_uid)
{
	size_t n_lost = 0, k = 0;
	for (size_t i = 0; i <= n; i++) {
		for (; k < p->n_met && (i == n || p->met[k].id < met[i].id); k++) {
			n_lost += p->met[k].due;
			*ret_uid = p->met[k].due ? p->met[k].uid : *ret_uid;
		}
		if (i == n || k == p->n_met || p->met[k].id != met[i].id)
			continue;
		const struct met_set *was = &p->met[k++];
		met[i].matches = was->due && was->matches;
		met[i].due =
			was->due || (!was->runs && (met[i].runs || met[i].n_given != was->n_given));
	}
	return n_lost;
}

static void say_lost(struct pinner *p, size_t n, uid_t uid, uint64_t now_ns)
{
	char text[200];
	snprintf(text, sizeof(text),
		"pin-jobs skipped %zu finished jobs (for example, of user %u): the wait list is "
		"full (" PIN_WAITS_SAYS ")",
		n, uid, PIN_WAITS_USER_MAX, PIN_WAITS_MAX);
	pinner_say_of_nobody(p, now_ns, text);
}

int pinner_look_at_rules(struct pinner *p, uint64_t now_ns, bool *ret_more)
{
	const uint64_t until_ns = slice_begin();
	struct met_set *met;
	size_t n, at = 0;
	uid_t uid = 0;
	if (p->rules.n == 0 || p->limits.all_bytes == 0)
		return 0;
	int r = meet(p, &met, &n);
	if (r < 0)
		return r;
	size_t n_lost = compare(p, met, n, &uid);
	struct label_set *set = p->o.tasks->label_sets.set;
	for (; set && r >= 0 && !*ret_more; set = set->hh.next, at++)
		if (met[at].due) {
			r = take_by_rules(p, set, &met[at]);
			met[at].due = r == PINNER_WAITS;
			*ret_more = slice_is_over(until_ns);
		}
	free(p->met);
	p->met = met;
	p->n_met = n;
	if (n_lost > 0)
		say_lost(p, n_lost, uid, now_ns);
	return r < 0 ? r : 0;
}

bool pinner_forget_due(struct pinner *p, struct pinner_unpin *u, uint64_t until_ns)
{
	const struct label_set *set = p->o.tasks->label_sets.set;
	for (; set; set = set->hh.next) {
		struct met_set *of = set->id > u->at ? find_met(p->met, p->n_met, set->id) : NULL;
		if (!of || !of->due)
			continue;
		u->at = set->id;
		if (pinner_unpin_wants(u, of->uid, set->labels)) {
			of->due = false;
			u->n_removed++;
		}
		if (slice_is_over(until_ns))
			return true;
	}
	return false;
}
