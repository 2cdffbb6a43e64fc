/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The state of a keeper for others: the samples it has, how fresh they are, and whether pins may
 * begin.
 *
 * A pin copies the contents of the files when its child begins. So the samples of its job that are
 * still in memory are written first: a moment after the job's end, once its last samples have been
 * drained and have names. */

#include "daemon/service/keeper_private.h"

#define SECOND_NS 1000000000ull
/* The walk drains four times a second. */
#define DRAINED_NS (SECOND_NS / 2)
/* Limit of the wait for names of the last windows, and for the sealing of an ended segment. */
#define PIN_NAMES_NS (30 * SECOND_NS)

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

uint64_t keeper_window_ns(const struct keeper *k)
{
	uint64_t usual_ns = k->o.conf->flush_ns;
	return k->flush_ns > usual_ns ? k->flush_ns : usual_ns;
}

void keeper_flush_every(struct keeper *k, uint64_t flush_ns)
{
	if (k->flush_ns == flush_ns)
		return;
	k->flush_ns = flush_ns;
	if (k->recording)
		recording_set_window(k->recording, keeper_window_ns(k));
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

/* --- pins ------------------------------------------------------------------------------------- */

bool keeper_awaits_pin(const struct keeper *k)
{
	return k->pinner && pinner_wants_flush(k->pinner) != 0;
}

bool keeper_any_ending(const struct keeper *k)
{
	for (size_t i = 0; i < ENDING_MAX; i++)
		if (k->ending[i])
			return true;
	return false;
}

/* Do the files have all samples up to since_ns? *ret_r: 0 or -errno. */
static bool is_written(struct keeper *k, uint64_t since_ns, uint64_t now_ns, int *ret_r)
{
	bool patient = now_ns < since_ns + PIN_NAMES_NS;
	if (now_ns < since_ns + DRAINED_NS ||
		(patient && (namer_waiting(k->o.walk->namer) > 0 || keeper_any_ending(k))))
		return false;
	if (!k->recording)
		return true;
	if (k->pin_flushed_ns < since_ns + DRAINED_NS) {
		k->pin_flushed_ns = k->flushed_ns = now_ns;
		*ret_r = recording_flush(k->recording, now_ns);
	}
	return *ret_r == 0 && !recording_is_writing(k->recording);
}

int keeper_tend_pins(struct keeper *k, uint64_t now_ns)
{
	uint64_t since_ns = pinner_wants_flush(k->pinner);
	int r = 0;
	bool written = since_ns != 0 && is_written(k, since_ns, now_ns, &r);
	return r == 0 ? pinner_dispatch(k->pinner, now_ns, written) : r;
}

struct pinner *keeper_pinner(const struct keeper *k)
{
	return k->pinner;
}
