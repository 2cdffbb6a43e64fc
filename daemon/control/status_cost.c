/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The part of `status` that says what mperf costs the machine: by cause, and beside its budget. */

#include "daemon/budget/overhead.h"
#include "daemon/control/status_private.h"
#include "daemon/sampler/effort.h"

static const struct answer_column overhead_columns[] = {
	{"cause", "Cause", MPERF__UNIT__UNIT_NONE},
	{"per_second", "A second", MPERF__UNIT__UNIT_COUNT},
	{"each_ns", "Each", MPERF__UNIT__UNIT_NS},
	{"machine_share", "Of the machine", MPERF__UNIT__UNIT_SHARE},
	{"hart_share", "Of the busiest hart", MPERF__UNIT__UNIT_SHARE},
};
static const struct answer_column budget_columns[] = {
	{"budget", "Budget per hart", MPERF__UNIT__UNIT_SHARE},
	{"spent", "Spent", MPERF__UNIT__UNIT_SHARE},
	{"step", "Step", MPERF__UNIT__UNIT_NONE},
	{"given_up", "Given up", MPERF__UNIT__UNIT_NONE},
	{"reason", "Reason", MPERF__UNIT__UNIT_NONE},
	{"since_ns", "For", MPERF__UNIT__UNIT_NS},
};

/* As shown: what is negative is not known. */
struct cost_row {
	const char *cause;
	double per_second, each_ns, part, hart;
};

static int tell_spent(struct status *s, const struct cost_row *c)
{
	const double part = c->part, hart = c->hart;
	struct answer_value v[] = {
		TEXT(c->cause),
		c->per_second >= 0 ? NUMBER(c->per_second + 0.5) : ABSENT,
		c->each_ns >= 0 ? NUMBER(c->each_ns + 0.5) : ABSENT,
		part >= 0 ? SHARE(part) : ABSENT,
		hart >= 0 ? SHARE(hart) : ABSENT,
	};
	return status_row(s, v, LENGTH(v));
}

/* On which hart is not known. */
static struct cost_row told_row(
	const char *cause, const struct overhead_spent *s, enum task_work what)
{
	return (struct cost_row){
		cause, s->told[what].per_second, s->told[what].ns, s->told[what].part, -1};
}

int status_cost(struct status *s)
{
	const struct overhead *h = s->service->overhead;
	struct overhead_spent now;
	char says[EFFORT_TEXT_BYTES];
	overhead_spent(h, &now);
	bool known = now.own_part >= 0;
	double own = now.own_part,
	       worst_kernel = now.worst_samples_part + now.worst_switches_part + now.groups_part;
	effort_says(&h->governor.effort, says);
	struct answer_value v[] = {
		h->o.conf->overhead_ppm ? SHARE(h->o.conf->overhead_ppm / 1e6) : ABSENT,
		known ? SHARE(own + worst_kernel) : ABSENT,
		NUMBER(h->governor.step),
		*says ? TEXT(says) : TEXT("nothing"),
		*h->governor.reason ? TEXT(h->governor.reason) : ABSENT,
		h->governor.changed_ns ? NUMBER(s->now_ns - h->governor.changed_ns) : ABSENT,
	};
	int r = status_table(s, "budget", budget_columns, LENGTH(budget_columns));
	if (r == 0)
		r = status_row(s, v, LENGTH(v));
	if (r == 0)
		r = status_table(s, "overhead", overhead_columns, LENGTH(overhead_columns));
	if (r != 0 || !known)
		return r;
	const struct cost_row rows[] = {
		{"samples", now.samples, now.sample_ns, now.samples_part, now.worst_samples_part},
		{"cuts at switches", now.switches, now.switch_ns, now.switches_part,
			now.worst_switches_part},
		{"turns of topdown-groups", -1, -1, now.groups_part, now.groups_part},
		{"throttles", now.throttles, -1, -1, -1},
		told_row("forks", &now, TASK_FORK),
		told_row("execs", &now, TASK_EXEC),
		told_row("mappings", &now, TASK_MAPPING),
		{"mperfd and its namer", -1, -1, own, own},
		{"clients and programs", -1, -1, now.clients_part, now.clients_part},
		{"queries and roll-ups", -1, -1, now.others_part, now.others_part},
		{"all", -1, -1, now.all_part,
			own + now.clients_part + now.others_part + worst_kernel},
	};
	for (size_t i = 0; i < LENGTH(rows) && r == 0; i++)
		r = tell_spent(s, &rows[i]);
	return r;
}
