/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A pin has what the files have when its child begins, so what its job left in memory is written first: a
 * moment after the job's end, when its last samples have been drained, and when names have come.
 */
#include "daemon/service/keeper_private.h"

#define SECOND_NS 1000000000ull
/* The walk drains four times a second. */
#define DRAINED_NS (SECOND_NS / 2)
/* Names of the last windows, and the sealing of a segment that ended: later they are not waited for. */
#define PIN_NAMES_NS (30 * SECOND_NS)
#define PPM 1000000u

int keeper_begin_pins(struct keeper *k)
{
	const struct pinner_options o = {
		.store = k->store,
		.tasks = &k->o.walk->tasks,
		.say = k->o.say,
		.userdata = k->o.userdata,
	};
	return pinner_new(&o, &k->pinner);
}

void keeper_allow_pins(struct keeper *k)
{
	const struct conf *c = k->o.conf;
	const struct store *s = k->store;
	uint64_t all = c->budget_bytes / PPM * c->pinned_ppm;
	const struct pin_limits limits = {
		.all_bytes = all,
		.user_bytes = all / PIN_USER_PART,
		.free_bytes =
			s->free_bytes > c->min_free_bytes ? s->free_bytes - c->min_free_bytes : 0,
		.min_free_bytes = c->min_free_bytes,
	};
	if (!k->pinner)
		return;
	pinner_allow(k->pinner, &limits);
	pinner_set_rules(k->pinner, c->pin_jobs);
}

static bool any_ending(const struct keeper *k)
{
	for (size_t i = 0; i < ENDING_MAX; i++)
		if (k->ending[i])
			return true;
	return false;
}

/* Is in the files what was sampled until since_ns? *ret_r: 0 or -errno. */
static bool is_written(struct keeper *k, uint64_t since_ns, uint64_t now_ns, int *ret_r)
{
	bool patient = now_ns < since_ns + PIN_NAMES_NS;
	if (now_ns < since_ns + DRAINED_NS ||
		(patient && (namer_waiting(k->o.walk->namer) > 0 || any_ending(k))))
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
