/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/pmu/trials.h"

static bool same_key(const struct trial_key *a, const struct trial_key *b)
{
	return a->kind == b->kind && a->hart == b->hart && a->type == b->type &&
	       a->config == b->config && a->exclude_kernel == b->exclude_kernel;
}

bool trials_find(
	const struct trials *t, const struct trial_key *key, uint64_t now_ns, bool *ret_works)
{
	for (size_t i = 0; t && i < TRIALS_MAX; i++) {
		if (t->trial[i].until_ns <= now_ns || !same_key(&t->trial[i].key, key))
			continue;
		*ret_works = t->trial[i].works;
		return true;
	}
	return false;
}

void trials_keep(struct trials *t, const struct trial_key *key, uint64_t now_ns, bool works)
{
	if (!t)
		return;
	t->trial[t->next].key = *key;
	t->trial[t->next].works = works;
	t->trial[t->next].until_ns = now_ns + TRIALS_KEEP_NS;
	t->next = (t->next + 1) % TRIALS_MAX;
}
