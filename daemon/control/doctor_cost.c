/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The section of `doctor` on the cost of mperf on this machine. */

#include <stdio.h>
#include <string.h>

#include "daemon/budget/overhead.h"
#include "daemon/control/doctor_private.h"
#include "daemon/service/service.h"

/* "0.8 µs", "21 µs" */
static void cost_text(double ns, char ret_text[static 32])
{
	snprintf(ret_text, 32,
		ns < 50     ? "less than 0.1 µs"
		: ns < 9950 ? "%.1f µs"
			    : "%.0f µs",
		ns / 1e3);
}

/* The same of a price that may be known only as a bound. */
static void bounded_text(const struct hart_cost *c, enum cost_kind kind, char ret_text[static 32])
{
	if (c->most_ns[kind] > 0)
		snprintf(ret_text, 32, "less than %.1f µs",
			c->most_ns[kind] > 100 ? c->most_ns[kind] / 1e3 : 0.1);
	else
		cost_text(c->ns[kind], ret_text);
}

#define PRICE_TEXT_BYTES 112

/* "21 µs (20 µs to 22 µs)", "less than 0.4 µs" */
static void price_text(const struct sideband_price *p, char ret_text[static PRICE_TEXT_BYTES])
{
	char ns[32], low[32], high[32];
	cost_text(p->ns, ns);
	cost_text(p->low_ns, low);
	cost_text(p->high_ns, high);
	if (!p->known)
		snprintf(ret_text, PRICE_TEXT_BYTES, "an unknown time");
	else if (p->low_ns <= 0)
		snprintf(ret_text, PRICE_TEXT_BYTES, "less than %.1f µs",
			p->high_ns > 100 ? p->high_ns / 1e3 : 0.1);
	else
		snprintf(ret_text, PRICE_TEXT_BYTES, "%s (%s to %s)", ns, low, high);
}

/* Measure, and store the result for `status` of the service. False: refused, and the client was
 * sent the reason. */
static bool measure_sideband(struct examination *x, struct sideband_price *kept,
	struct sideband_price price[static N_TASK_WORKS])
{
	int r = sideband_price_measure(&kernel_real, price);
	if (r == 0 && kept)
		memcpy(kept, price, N_TASK_WORKS * sizeof(*price));
	if (r != 0)
		doctor_tell(x, (struct finding){-1, "side band", "warn", NULL},
			"the cost of records of forks, execs and mappings could not be "
			"measured%s%s",
			r < 0 ? ": " : "", r < 0 ? strerror(-r) : "");
	return r == 0;
}

/* Report the records of forks, execs and mappings, without which samples have no names. */
void doctor_sideband(struct examination *x)
{
	const struct service *service = x->request->peer->options->service;
	struct sideband_price *kept =
		service && service->overhead ? service->overhead->price : NULL;
	struct sideband_price price[N_TASK_WORKS] = {0};
	char fork[PRICE_TEXT_BYTES], exec[PRICE_TEXT_BYTES], mapping[PRICE_TEXT_BYTES];
	if (!x->machine.may_see_all)
		return;
	if (doctor_measures(x)) {
		if (!measure_sideband(x, kept, price))
			return;
	} else if (kept && kept[TASK_FORK].known) {
		memcpy(price, kept, sizeof(price));
	} else {
		doctor_tell(x,
			(struct finding){-1, "side band", "info",
				"run mperfctl doctor as root or as a member of the group"},
			"the cost of records of forks, execs and mappings is not known yet: "
			"measuring slows all programs, so only root and the group may do it");
		return;
	}
	price_text(&price[TASK_FORK], fork);
	price_text(&price[TASK_EXEC], exec);
	price_text(&price[TASK_MAPPING], mapping);
	doctor_tell(x, (struct finding){-1, "side band", "ok", NULL},
		"each further session adds %s to a fork and exit, %s to a fork, exec and exit, %s "
		"to a mapping of code",
		fork, exec, mapping);
}

/* Describe how counts are now cut at switches on that hart. found: the plan with nothing given
 * up. */
static const char *way_in_force(const struct plan *p, const struct plan *found)
{
	if (p->n_siblings == 0)
		return found->n_siblings ? "; now samples have no counters" : "";
	if (p->cut & CUT_BPF)
		return p->summed ? "; now BPF sums them up"
				 : "; now BPF cuts them, whose cost is not measured";
	return p->cut & CUT_SIBLING ? "; now the event context-switches cuts them"
				    : "; now they are not cut";
}

void doctor_cost(struct examination *x, int hart)
{
	const struct service *service = x->request->peer->options->service;
	const struct overhead *h = service ? service->overhead : NULL;
	if (!h || hart >= h->n_harts)
		return;
	const struct sampler *s = service->walk ? service->walk->sampler : NULL;
	const struct hart_cost *c = &h->hart[hart].cost;
	bool counted = c->ns[COST_COUNTED] >= 0, cuts = c->ns[COST_SWITCH] >= 0;
	bool sums = c->ns[COST_SUMS] >= 0;
	enum cost_kind of_sample = counted ? COST_COUNTED : COST_SAMPLE;
	char sample[32], cut[32], sum[32];
	if (c->ns[of_sample] < 0 || !s) {
		doctor_tell(x, (struct finding){hart, "cost", "info", "try again in a minute"},
			"the cost of a sample has not been measured yet");
		return;
	}
	bounded_text(c, of_sample, sample);
	bounded_text(c, COST_SWITCH, cut);
	bounded_text(c, COST_SUMS, sum);
	const struct plan *p = &s->plan[hart];
	doctor_tell(x, (struct finding){hart, "cost", "ok", NULL},
		"a sample%s takes %s%s%s%s%s%s%s", counted ? " with its counters" : "", sample,
		cuts ? ", cutting counts at a switch " : "", cuts ? cut : "",
		sums ? ", summing counts up by BPF " : "", sums ? sum : "",
		way_in_force(p, &s->found[hart]),
		h->governor.step == STEP_ALL ? "" : " (`mperfctl status` says what is given up)");
}
