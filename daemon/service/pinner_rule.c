/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A job that matches a rule waits for its end like one that was asked for. Label sets have ascending ids, so
 * that each is compared once with the rules in force.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/service/pinner_private.h"
#include "proto/memory.h"

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
	p->last_set = 0;
}

/* 0 or -ENOMEM. */
static int take_by_rules(struct pinner *p, const struct label_set *set, uint64_t now_ns)
{
	_cleanup_(freep) char *group = NULL;
	const struct pin_rule *rule = pin_rules_find(&p->rules, set->labels, &group);
	char text[160];
	/* what its user asked for stands */
	if (!rule || pinner_awaits(p, set))
		return 0;
	if (!group)
		return -ENOMEM;
	const struct turn t = {
		.ask = {.by = set->uid, .keep = rule->keep},
		.group = group,
	};
	int r = pinner_add_wait(p, &t, set);
	if (r != PINNER_WAITS)
		return r;
	snprintf(text, sizeof(text),
		"a job of user %u is not pinned by pin-jobs: more jobs run than may wait for "
		"their end: " PIN_WAITS_SAYS,
		set->uid, PIN_WAITS_USER_MAX, PIN_WAITS_MAX);
	pinner_say_of_nobody(p, now_ns, text);
	return 0;
}

/* A set outlives its job by the time for which ended processes are kept, so that short jobs are met too. */
int pinner_look_at_rules(struct pinner *p, uint64_t now_ns)
{
	const struct label_sets *sets = &p->o.tasks->label_sets;
	int r = 0;
	if (p->rules.n == 0 || p->limits.all_bytes == 0)
		return 0;
	for (const struct label_set *set = sets->set; set && r == 0; set = set->hh.next)
		if (set->id > p->last_set)
			r = take_by_rules(p, set, now_ns);
	p->last_set = sets->last_id;
	return r;
}
