/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * As with counters, each tally keeps what was sent beside what there is, and the difference goes out.
 * What is open counts up to now. When it turns out to have ended earlier, with its region, nothing is sent
 * until there is more than was sent.
 */
#include <string.h>

#include "runtime/message.h"
#include "runtime/ompt/strand.h"
#include "runtime/state.h"

static uint64_t more(uint64_t sum, uint64_t sent)
{
	return sum > sent ? sum - sent : 0;
}

static int send_tally(struct state *s, struct thread *t, struct tally *y,
	const struct tally_sum *sum, uint64_t now_ns)
{
	struct mperf_feed_tally m = {
		.thread = t->id,
		.place = place_id(y->place),
		.from_ns = y->from_ns,
		.until_ns = now_ns > y->from_ns ? now_ns : y->from_ns,
		.entries = more(sum->entries, y->sent.entries),
		.calls = more(sum->calls, y->sent.calls),
		.time_ns = more(sum->time_ns, y->sent.time_ns),
		.wait_ns = more(sum->wait_ns, y->sent.wait_ns),
		.lock_ns = more(sum->lock_ns, y->sent.lock_ns),
	};
	if (!(m.entries | m.time_ns | m.wait_ns | m.lock_ns))
		return 0;
	int r = mperf_message_thread(s, t);
	if (r == 0)
		r = place_announce(s, y->place);
	if (r != 0)
		return r;
	memcpy(s->packet, &m, sizeof(m));
	r = mperf_message_put(s, MPERF_TALLY, sizeof(m));
	if (r != 0)
		return r;
	y->sent.entries += m.entries;
	y->sent.calls += m.calls;
	y->sent.time_ns += m.time_ns;
	y->sent.wait_ns += m.wait_ns;
	y->sent.lock_ns += m.lock_ns;
	y->from_ns = m.until_ns;
	return 0;
}

static int send_all(struct state *s, struct thread *t, uint64_t now_ns)
{
	const struct strand *strand = __atomic_load_n(&t->tallies, __ATOMIC_ACQUIRE);
	if (!strand)
		return 0;
	struct tally *y = __atomic_load_n(&strand->all, __ATOMIC_ACQUIRE);
	for (; y; y = y->next) {
		struct tally_sum sum;
		if (y->round == s->round || !strand_sum(strand, y, now_ns, &sum))
			continue;
		int r = send_tally(s, t, y, &sum, now_ns);
		if (r != 0 && r != MPERF_SINK_LATER)
			return r;
		y->round = s->round;
	}
	return 0;
}

static void forked(struct thread *t)
{
	teams_clear();
	strand_forked(t->tallies, mperf_now_ns());
}

const struct tally_calls mperf_tally_calls = {send_all, forked};
