/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A job that matches a rule waits for its end like one that was asked for. A set of labels outlives its job by the
 * time for which ended processes are kept, so that short jobs are met too, and of many that end at once each is
 * tried until there is a place. Labels that get a process again after their job has ended are another run: it is
 * pinned, too, with what the store has of both.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/budget/loop_latency.h"
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
	/* compare all running jobs again */
	struct label_sets *sets = &p->o.tasks->label_sets;
	for (struct label_set *set = sets->set; set; set = set->hh.next)
		set->look = (struct label_look){.due = false};
	sets->n_due_freed = 0;
}

/* 0; PINNER_WAITS; -ENOMEM. */
static int take_by_rules(struct pinner *p, struct label_set *set)
{
	_cleanup_(freep) char *group = NULL;
	struct pin_ask ask = {.by = set->uid};
	/* an explicit request takes precedence over a rule */
	if (pinner_awaits(p, set))
		return 0;
	if (set->look.matches && !pinner_has_place(p, set->uid, NULL))
		return PINNER_WAITS;
	const struct pin_rule *rule = pin_rules_find(&p->rules, set->labels, &group);
	set->look.matches = rule != NULL;
	if (!rule)
		return 0;
	if (!group)
		return -ENOMEM;
	ask.keep = rule->keep;
	return pinner_await(p, &ask, group, set, NULL);
}

/* Check whether the set has a new run. */
static void look_at(struct label_set *set)
{
	struct label_look *look = &set->look;
	const bool runs = set->n_live > 0;
	if (!look->due) {
		look->matches = false;
		look->due =
			!look->is_known || (!look->ran && (runs || set->n_given != look->n_given));
	}
	look->is_known = true;
	look->ran = runs;
	look->n_given = set->n_given;
}

static void say_lost(struct pinner *p, uint32_t n, uint32_t uid, uint64_t now_ns)
{
	char text[200];
	snprintf(text, sizeof(text),
		"pin-jobs skipped %u finished jobs (for example, of user %u): the wait list is "
		"full (" PIN_WAITS_SAYS ")",
		n, uid, PIN_WAITS_USER_MAX, PIN_WAITS_MAX);
	pinner_say_of_nobody(p, now_ns, text);
}

int pinner_look_at_rules(struct pinner *p, uint64_t now_ns, bool *ret_more)
{
	const uint64_t until_ns = slice_begin();
	struct label_sets *sets = &p->o.tasks->label_sets;
	int r = 0;
	if (p->rules.n == 0 || p->limits.all_bytes == 0)
		return 0;
	for (struct label_set *set = sets->set; set; set = set->hh.next) {
		look_at(set);
		if (!set->look.due || r < 0 || *ret_more)
			continue;
		r = take_by_rules(p, set);
		set->look.due = r == PINNER_WAITS;
		*ret_more = slice_is_over(until_ns);
	}
	if (sets->n_due_freed > 0)
		say_lost(p, sets->n_due_freed, sets->due_freed_uid, now_ns);
	sets->n_due_freed = 0;
	return r < 0 ? r : 0;
}

bool pinner_forget_due(struct pinner *p, struct pinner_unpin *u, uint64_t until_ns)
{
	struct label_set *set = p->o.tasks->label_sets.set;
	for (; set; set = set->hh.next) {
		if (set->id <= u->at || !set->look.due)
			continue;
		u->at = set->id;
		if (pinner_unpin_wants(u, set->uid, set->labels)) {
			set->look.due = false;
			u->n_removed++;
		}
		if (slice_is_over(until_ns))
			return true;
	}
	return false;
}
