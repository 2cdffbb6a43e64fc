/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/pmu/trials.h"

bool trials_find(
	const struct trials *t, const struct trial_key *key, uint64_t now_ns, bool *ret_works)
{
	const struct event *e = key->event;

	for (size_t i = 0; t && i < TRIALS_MAX; i++) {
		if (t->trial[i].until_ns <= now_ns || t->trial[i].kind != key->kind ||
			t->trial[i].hart != key->hart || t->trial[i].type != e->type ||
			t->trial[i].config != e->config ||
			t->trial[i].exclude_kernel != e->exclude_kernel)
			continue;
		*ret_works = t->trial[i].works;
		return true;
	}
	return false;
}

void trials_keep(struct trials *t, const struct trial_key *key, uint64_t now_ns, bool works)
{
	const struct event *e = key->event;

	if (!t)
		return;
	t->trial[t->next].kind = key->kind;
	t->trial[t->next].hart = key->hart;
	t->trial[t->next].type = e->type;
	t->trial[t->next].config = e->config;
	t->trial[t->next].exclude_kernel = e->exclude_kernel;
	t->trial[t->next].works = works;
	t->trial[t->next].until_ns = now_ns + TRIALS_KEEP_NS;
	t->next = (t->next + 1) % TRIALS_MAX;
}
