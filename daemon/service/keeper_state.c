/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What others ask of a keeper: what it has, and how fresh that is. */

#include "daemon/service/keeper_private.h"

bool keeper_is_writing(const struct keeper *k)
{
	return k->recording && recording_is_writing(k->recording);
}

bool keeper_has_more(const struct keeper *k)
{
	for (size_t i = 0; i < ENDING_MAX; i++)
		if (k->ending[i] && recording_is_writing(k->ending[i]))
			return true;
	return keeper_is_writing(k) || (k->pinner && pinner_has_more(k->pinner));
}

void keeper_count(struct keeper *k, struct hart_counts *counts)
{
	if (k->recording)
		recording_count_no_more(k->recording);
	k->counts = counts;
}

uint64_t keeper_fresh_ns(const struct keeper *k)
{
	return k->recording ? k->flushed_ns + KEEPER_FRESH_NS : 0;
}

void keeper_account(const struct keeper *k, struct keeper_samples *ret_samples)
{
	*ret_samples = (struct keeper_samples){.stored = k->n_stored, .passed = k->n_passed};
	for (size_t i = 0; i <= ENDING_MAX; i++) {
		const struct recording *g = i < ENDING_MAX ? k->ending[i] : k->recording;
		struct recording_state state;
		if (!g)
			continue;
		recording_state(g, &state);
		ret_samples->stored += state.n_stored;
		ret_samples->in_hand += state.n_in_hand;
		ret_samples->passed += state.n_passed;
	}
}

const struct shares *keeper_shares(const struct keeper *k)
{
	return &k->shares;
}

uint64_t (*keeper_lost(struct keeper *k))[N_LOSSES]
{
	return k->lost;
}

void keeper_renew(struct keeper *k)
{
	if (k)
		k->rotate = k->recording != NULL;
}
