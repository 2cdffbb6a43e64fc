/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Turns, which end with a pin or without one, and jobs that have none yet since they run. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "daemon/jobs/pinner_private.h"

#define SAY_NS 60000000000ull /* between sentences about jobs that nobody waits for */

void pinner_clear_turn(struct turn *t)
{
	free(t->group);
	free(t->exact);
	free(t->report);
}

void pinner_remove_turn(struct pinner *p, size_t at)
{
	pinner_clear_turn(&p->turn[at]);
	p->n_turns--;
	memmove(&p->turn[at], &p->turn[at + 1], (p->n_turns - at) * sizeof(*p->turn));
}

void pinner_remove_wait(struct pinner *p, size_t at)
{
	free(p->wait[at].group);
	(void)label_set_unref(&p->o.tasks->label_sets, p->wait[at].set);
	p->n_waits--;
	memmove(&p->wait[at], &p->wait[at + 1], (p->n_waits - at) * sizeof(*p->wait));
}

struct turn *pinner_turn_of(const struct pinner *p, uint64_t id)
{
	for (size_t i = 0; i < p->n_turns; i++)
		if (p->turn[i].id == id)
			return &p->turn[i];
	return NULL;
}

/* Each of a user's turns is of another round, the next from the one that is served now. */
void pinner_add_turn(struct pinner *p, const struct turn *t)
{
	struct turn *added = &p->turn[p->n_turns];
	*added = *t;
	added->round = p->round;
	for (size_t i = 0; i < p->n_turns; i++)
		if (!p->turn[i].report && p->turn[i].ask.by == t->ask.by &&
			p->turn[i].round >= added->round)
			added->round = p->turn[i].round + 1;
	p->n_turns++;
}

struct turn *pinner_next_turn(const struct pinner *p)
{
	struct turn *next = NULL;
	for (size_t i = 0; i < p->n_turns; i++)
		if (!p->turn[i].report && (!next || p->turn[i].round < next->round))
			next = &p->turn[i];
	return next;
}

bool pinner_unpin_wants(const struct pinner_unpin *u, uint32_t by, const char *labels)
{
	return (u->all || by == u->by) && store_pin_matches(labels, u->label, u->n_labels);
}

void pinner_say_of_nobody(struct pinner *p, uint64_t now_ns, const char *text)
{
	char line[900];
	if (now_ns < p->next_say_ns) {
		p->n_unsaid++;
		return;
	}
	snprintf(line, sizeof(line), p->n_unsaid > 0 ? "%s; %u more like this before" : "%s", text,
		p->n_unsaid);
	p->o.say(p->o.userdata, LOG_WARNING, line);
	p->next_say_ns = now_ns + SAY_NS;
	p->n_unsaid = 0;
}
