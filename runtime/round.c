/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Only their thread adds to counters, so the round keeps a second number beside each, the amount
 * already sent, and sends the difference. It updates that number only after the message was sent.
 *
 * Time that is still running (an open outermost loop or region) counts up to now, so that a reader
 * sees time and counts together. When it ends, its final time replaces that; if this is slightly
 * less than the time sent, nothing is sent until it is more.
 *
 * A round that fills the socket continues where it stopped, and does not revisit what it had sent
 * by then. So a thread that ends in between is gone in the next round.
 */
#include <poll.h>
#include <string.h>

#include "runtime/ask.h"
#include "runtime/grant.h"
#include "runtime/message.h"
#include "runtime/object.h"
#include "runtime/region.h"
#include "runtime/round.h"
#include "runtime/state.h"
#include "runtime/table.h"
#include "runtime/timed_loop.h"

#define DELTAS_MAX                                                                                 \
	((MPERF_PACKET_BYTES_MAX - sizeof(struct mperf_feed_deltas)) / sizeof(struct mperf_delta))
#define CURSOR_DONE UINT32_MAX

/* One thread's part of a round. */
struct turn {
	struct thread *thread;
	uint64_t now_ns;
	bool gone;
};

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* Time up to now: the ended entries, in time_ns, plus the entry open since *open_ns. Read that
 * before and after, since the entry may end meanwhile. A thread that has ended never closed it. */
static uint64_t time_until(const struct turn *turn, const uint64_t *time_ns, const uint64_t *open)
{
	uint64_t since = mperf_timed_open(__atomic_load_n(open, __ATOMIC_ACQUIRE));
	uint64_t total = __atomic_load_n(time_ns, __ATOMIC_ACQUIRE);
	if (since == 0 || turn->gone || turn->now_ns <= since ||
		mperf_timed_open(__atomic_load_n(open, __ATOMIC_ACQUIRE)) != since)
		return total;
	return total + (turn->now_ns - since);
}

/* The amount of counter i to send; 0: nothing. */
static uint64_t delta_of(const struct turn *turn, const struct block *b, const uint8_t *uses,
	const uint64_t *sent, uint32_t i)
{
	const uint64_t *c = &b->area->counters[i];
	if (uses[i] == MPERF_USE_SUM)
		return load(c) - sent[i];
	if (uses[i] == MPERF_USE_NONE)
		return 0;
	const uint64_t *open = c - (MPERF_TIMED_NS - MPERF_TIMED_OPEN_NS);
	uint64_t delta = time_until(turn, c, open) - sent[i];
	return (int64_t)delta > 0 ? delta : 0;
}

/* Put as many deltas as fit into a packet, from counter *at on, which moves past them. */
static uint32_t deltas_fill(struct state *s, const struct turn *turn, const struct block *b,
	const struct object *object, uint32_t *at)
{
	const uint8_t *uses = object->uses;
	const uint64_t *counters = b->area->counters;
	const uint64_t *sent = mperf_area_sent(b->area, object->n_counters);
	struct mperf_delta *out =
		(struct mperf_delta *)(s->packet + sizeof(struct mperf_feed_deltas));
	uint32_t n = 0;
	uint32_t i = *at;
	for (; i < object->n_counters && n < DELTAS_MAX; i++) {
		/* most counters of a large program never move */
		if (uses[i] == MPERF_USE_SUM && load(&counters[i]) == sent[i])
			continue;
		uint64_t delta = delta_of(turn, b, uses, sent, i);
		if (delta)
			out[n++] = (struct mperf_delta){.counter = i, .delta = delta};
	}
	*at = i;
	return n;
}

static int deltas_put(struct state *s, const struct turn *turn,
	const struct region_instance *instance, const struct block *b, uint32_t n)
{
	const struct object *object = b->object;
	struct mperf_feed_deltas m = {.thread = turn->thread->id,
		.object = object->id,
		.region = instance->region ? instance->region->id : 0,
		.n = n,
		.from_ns = b->from_ns,
		.until_ns = b->until_ns};
	memcpy((char *)s->packet + sizeof(m.head), (char *)&m + sizeof(m.head),
		sizeof(m) - sizeof(m.head));
	int r = mperf_message_put(s, MPERF_DELTAS, sizeof(m) + n * sizeof(struct mperf_delta));
	if (r != 0)
		return r;

	uint64_t *sent = mperf_area_sent(b->area, object->n_counters);
	const struct mperf_delta *out = (const struct mperf_delta *)(s->packet + sizeof(m));
	for (uint32_t i = 0; i < n; i++)
		sent[out[i].counter] += out[i].delta;
	return 0;
}

static int announce(
	struct state *s, const struct turn *turn, const struct region_instance *instance)
{
	int r = mperf_message_thread(s, turn->thread);
	return r != 0 ? r : mperf_message_region(s, instance->region);
}

static int block_send(struct state *s, const struct turn *turn,
	const struct region_instance *instance, struct block *b)
{
	struct object *object = __atomic_load_n(&b->object, __ATOMIC_ACQUIRE);
	if (!object || !mperf_object_uses(object))
		return 0;
	if (b->round != s->round) {
		b->round = s->round;
		b->cursor = 0;
		b->until_ns = turn->now_ns > b->from_ns ? turn->now_ns : b->from_ns;
	}
	while (b->cursor != CURSOR_DONE) {
		/* Before the packet is filled: an announcement uses the same memory. */
		uint32_t at = b->cursor;
		uint32_t n = deltas_fill(s, turn, b, object, &at);
		if (n > 0 &&
			(turn->thread->serial != s->sink.serial ||
				(instance->region && instance->region->serial != s->sink.serial) ||
				object->serial != s->sink.serial ||
				object->n_tables != object->n_modules)) {
			int r = announce(s, turn, instance);
			r = r != 0 ? r : mperf_message_object(s, object);
			if (r != 0)
				return r;
			continue;
		}
		int r = n > 0 ? deltas_put(s, turn, instance, b, n) : 0;
		if (r != 0)
			return r;
		b->cursor = at < object->n_counters ? at : CURSOR_DONE;
	}
	b->from_ns = b->until_ns;
	return 0;
}

/* Put time up to now, with the open entry's time multiplied by the entries that it represents. As
 * above, an entry is open if it was open before and after. */
static void put_time(
	const struct turn *turn, const struct region_instance *instance, struct spent *ret_spent)
{
	const struct spent *now = &instance->spent;
	uint64_t since = __atomic_load_n(&instance->open_ns, __ATOMIC_ACQUIRE);
	uint64_t stands_for = load(&instance->open_for);
	uint64_t represented = load(&now->represented);
	uint64_t time_ns = __atomic_load_n(&now->time_ns, __ATOMIC_ACQUIRE);
	bool open = since != 0 && !turn->gone && turn->now_ns > since &&
		    __atomic_load_n(&instance->open_ns, __ATOMIC_ACQUIRE) == since;
	ret_spent->time_ns = time_ns + (open ? (turn->now_ns - since) * stands_for : 0);
	ret_spent->represented = represented + (open ? stands_for : 0);
}

/* Entries up to now. A measured entry raises both numbers, the passes first: meanwhile we see too
 * few, never too many. */
static uint64_t entries_until(const struct region_instance *instance)
{
	uint64_t entries = __atomic_load_n(&instance->spent.entries, __ATOMIC_ACQUIRE);
	entries -= (uint64_t)__atomic_load_n(&instance->passes, __ATOMIC_RELAXED);
	return (int64_t)(entries - instance->sent.entries) > 0 ? entries : instance->sent.entries;
}

static struct spent spent_until(const struct turn *turn, const struct region_instance *instance)
{
	const struct spent *now = &instance->spent;
	struct spent spent = {
		.entries = entries_until(instance),
		.measured = load(&now->measured),
		.inner = load(&now->inner),
		.time_variance = load(&now->time_variance),
		.granted_ns = load(&now->granted_ns),
	};
	for (unsigned i = 0; i < MPERF_GRANTS_MAX; i++) {
		spent.granted[i] = load(&now->granted[i]);
		spent.granted_variance[i] = load(&now->granted_variance[i]);
	}
	put_time(turn, instance, &spent);
	const struct spent *sent = &instance->sent;
	if (spent.time_ns < sent->time_ns)
		spent.time_ns = sent->time_ns;
	if (spent.represented < sent->represented)
		spent.represented = sent->represented;
	return spent;
}

static struct mperf_feed_spent spent_message(const struct spent *spent, const struct spent *sent)
{
	const uint64_t *now = spent->granted, *before = sent->granted;
	const uint64_t *variance = spent->granted_variance, *known = sent->granted_variance;
	return (struct mperf_feed_spent){
		.entries = spent->entries - sent->entries,
		.counted_entries = spent->entries - sent->entries,
		.time_ns = spent->time_ns - sent->time_ns,
		.counted_ns = spent->time_ns - sent->time_ns,
		.granted = now[0] - before[0],
		.granted_1 = now[1] - before[1],
		.granted_2 = now[2] - before[2],
		.granted_3 = now[3] - before[3],
		.granted_ns = spent->granted_ns - sent->granted_ns,
		.measured_entries = spent->measured - sent->measured,
		.represented = spent->represented - sent->represented,
		.inner_entries = spent->inner - sent->inner,
		.time_variance = spent->time_variance - sent->time_variance,
		.granted_variance = variance[0] - known[0],
		.granted_variance_1 = variance[1] - known[1],
		.granted_variance_2 = variance[2] - known[2],
		.granted_variance_3 = variance[3] - known[3],
	};
}

static int instance_send(struct state *s, const struct turn *turn, struct region_instance *instance)
{
	if (!instance->region || instance->round == s->round)
		return 0;
	struct spent spent = spent_until(turn, instance);
	if (memcmp(&spent, &instance->sent, sizeof(spent)) == 0)
		return 0;
	int r = announce(s, turn, instance);
	if (r != 0)
		return r;

	struct mperf_feed_spent m = spent_message(&spent, &instance->sent);
	m.thread = turn->thread->id;
	m.region = instance->region->id;
	m.from_ns = instance->from_ns;
	m.until_ns = turn->now_ns > m.from_ns ? turn->now_ns : m.from_ns;
	const bool all = s->regions_one_in == 1;
	memcpy(s->packet, &m, sizeof(m));
	r = mperf_message_put(s, MPERF_SPENT, all ? MPERF_SPENT_SHORT_BYTES : sizeof(m));
	if (r != 0)
		return r;
	instance->sent = spent;
	instance->from_ns = m.until_ns;
	instance->round = s->round;
	return 0;
}

int mperf_round_gone(struct state *s, uint32_t kind, uint32_t id)
{
	if (s->sink.fd < 0)
		return MPERF_SINK_NONE;
	struct mperf_feed_gone m = {.kind = kind, .id = id};
	memcpy(s->packet, &m, sizeof(m));
	return mperf_message_put(s, MPERF_GONE, sizeof(m));
}

/* Counts of a thread that wait for an answer stay with it. */
static int thread_send(struct state *s, struct thread *t)
{
	bool late = false;
	/* Check once per round, before sending its figures: if the thread has ended, they are its
	 * last. */
	if (t->round != s->round) {
		t->round = s->round;
		t->gone = mperf_thread_gone(s, t);
	}
	struct turn turn = {.thread = t, .now_ns = mperf_now_ns(), .gone = t->gone};
	struct region_instance *instance = __atomic_load_n(&t->instances, __ATOMIC_ACQUIRE);
	for (; instance; instance = instance->next) {
		int r = instance_send(s, &turn, instance);
		struct block *b = __atomic_load_n(&instance->blocks, __ATOMIC_ACQUIRE);
		for (; b && r == 0; b = b->next) {
			r = block_send(s, &turn, instance, b);
			late = late || r == MPERF_SINK_LATER;
			r = r == MPERF_SINK_LATER ? 0 : r;
		}
		if (r != 0)
			return r;
	}
	s->late = s->late || late;
	int r = s->tallies ? s->tallies->send(s, t, turn.now_ns) : 0;
	if (r != 0 || !turn.gone || late)
		return r;
	r = t->serial == s->sink.serial ? mperf_round_gone(s, MPERF_GONE_THREAD, t->id) : 0;
	if (r == 0) {
		mperf_thread_forget(t);
		s->n_forgotten++;
	}
	return r;
}

static int round_end(struct state *s, bool last)
{
	struct mperf_feed_round m = {.until_ns = mperf_now_ns(),
		.last = last,
		.threads_lost = __atomic_load_n(&s->threads_lost, __ATOMIC_RELAXED)};
	memcpy(s->packet, &m, sizeof(m));
	return mperf_message_put(s, MPERF_ROUND, sizeof(m));
}

static bool answers_due(const struct state *s)
{
	for (const struct object *i = s->objects; i; i = i->next)
		if (i->open && !i->answered && i->serial == s->sink.serial)
			return true;
	return false;
}

/* Once per connection: wait a moment for the answer whether the tables are wanted; without one they
 * are sent. */
static void answers_await(struct state *s)
{
	uint64_t begin_ns = mperf_now_ns();
	if (s->hurried == s->sink.serial)
		return;
	s->hurried = s->sink.serial;
	(void)mperf_ask_read(s);
	while (answers_due(s)) {
		uint64_t waited_ms = (mperf_now_ns() - begin_ns) / UINT64_C(1000000);
		struct pollfd p = {.fd = s->sink.fd, .events = POLLIN};
		if (waited_ms >= MPERF_ANSWER_WAIT_MS || s->sink.fd < 0 ||
			poll(&p, 1, (int)(MPERF_ANSWER_WAIT_MS - waited_ms)) <= 0)
			break;
		(void)mperf_ask_read(s);
	}
}

static int send_all(struct state *s, bool last)
{
	if (s->sink.fd < 0) {
		int r = mperf_sink_open(&s->sink, mperf_now_ns());
		if (r != 0)
			return r;
	}
	int r = mperf_message_hello(s);
	if (r == 0 && !s->sink.is_file)
		r = mperf_message_objects(s);
	if (r == 0 && s->hurry)
		answers_await(s);
	if (r != 0)
		return r;
	struct thread *t = __atomic_load_n(&s->threads, __ATOMIC_ACQUIRE);
	for (; t; t = t->next) {
		if (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) != MPERF_THREAD_LIVES)
			continue;
		r = thread_send(s, t);
		if (r != 0)
			return r;
	}
	return round_end(s, last);
}

int mperf_round(struct state *s, bool last)
{
	if (!s->unfinished) {
		s->round++;
		s->n_forgotten = 0;
		s->late = false;
	}
	int r = send_all(s, last);
	s->unfinished = r == MPERF_SINK_FULL;
	if (r == MPERF_SINK_NONE && !s->sink.busy)
		s->n_forgotten += mperf_threads_forget_gone(s);
	mperf_grant_sweep(s);
	return r;
}

void mperf_round_through(struct state *s, bool last)
{
	s->unfinished = false;
	s->hurry = true;
	s->sink.patient = last && !s->sink.waited;
	uint64_t begin_ns = mperf_now_ns();
	while (mperf_round(s, last) == MPERF_SINK_FULL) {
		struct pollfd p = {.fd = s->sink.fd, .events = POLLOUT};
		if (s->sink.is_file || s->sink.stalled)
			break;
		s->sink.stalled = poll(&p, 1, MPERF_WAIT_MS) <= 0;
		if (mperf_now_ns() - begin_ns > MPERF_WAIT_TOTAL_MS * UINT64_C(1000000))
			break;
	}
	s->sink.waited |= s->sink.patient && s->sink.busy;
	s->unfinished = s->hurry = s->sink.patient = false;
}
