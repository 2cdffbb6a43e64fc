/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* At a switch, the BPF program writes its record first and the sibling second, both for the
 * outgoing task. Such a pair ends a stretch that began with the previous pair, and gives two counts
 * for it. If one record of a pair is missing, or records were lost, the stretch up to the next pair
 * is charged to nobody, by both ways.
 *
 * When the kernel throttles the leader, it stops the whole group, including the sibling, until the
 * next tick. BPF still writes records, of counters that do not advance. So single records during
 * that time are not counted as a disagreement. Source: perf_event_throttle_group in
 * kernel/events/core.c of Linux 6.18; before 6.16 the leader alone is stopped. Nor does the sibling
 * report every switch from the idle task, which BPF then reports alone: on all harts but the first,
 * seen on Linux 6.18. The next pair then ends a stretch that includes the idle time, by both ways.
 *
 * The two readings are some microseconds apart, and the counters run on in between, so the counts
 * differ by the difference of the gaps at both ends of a stretch. An emulated machine may stand
 * still in a gap for milliseconds, or translate new code, while its counters follow the host's
 * clock. So a clock that is read together with the counters measures the gaps. A stretch with too
 * long a gap at either end proves nothing. It is left out, but counted: so if a reading is always
 * late, the result is no proof, instead of agreement.
 */

#include "daemon/doctor/switch_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/hash_table.h"

struct reading {
	struct record_read_value read[RECORD_READ_VALUES_MAX];
	uint32_t n_read, tid;
};

/* State of a group: its last pair, and BPF's record without the sibling's yet. */
struct pairing {
	uint64_t leader;
	int hart;
	bool begun, waits;
	bool paired;                 /* there has been a pair */
	uint64_t n_alone;            /* single records since the last pair */
	bool stopped;                /* the kernel throttles the group */
	bool was_stopped;            /* the kernel has throttled it since the last pair */
	uint64_t gap_ns;             /* time between the two records of the last pair */
	struct reading bpf, sibling; /* of the last pair */
	struct reading waiting;
	UT_hash_handle hh;
};

struct sum_key {
	uint32_t tid;
	int event;
};
_Static_assert(sizeof(struct sum_key) == 8, "hashed as bytes");

struct sum {
	struct sum_key key;
	struct switch_sum is;
	/* of its stretches; 0: no clock was read */
	uint64_t ran_ns, gaps_ns;
	UT_hash_handle hh;
};

struct switch_check {
	const struct stream_table *streams;
	const struct event_list *events;
	struct pairing *pairings; /* uthash by leader */
	struct sum *sums;         /* uthash by key */
	uint64_t n_switches, n_unpaired, n_left_out, n_apart_too_long;
};

int switch_check_new(const struct stream_table *streams, const struct event_list *events,
	struct switch_check **ret_check)
{
	struct switch_check *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;

	c->streams = streams;
	c->events = events;
	*ret_check = c;
	return 0;
}

/* NULL in *ret_pairing: there are too many. */
static int pairing_get(
	struct switch_check *c, uint64_t leader, int hart, struct pairing **ret_pairing)
{
	struct pairing *p;

	HASH_FIND(hh, c->pairings, &leader, sizeof(leader), p);
	if (!p && HASH_COUNT(c->pairings) < SWITCH_CHECK_GROUPS_MAX) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		p->leader = leader;
		p->hart = hart;
		HASH_ADD(hh, c->pairings, leader, sizeof(p->leader), p);
		if (!p->hh.tbl) {
			free(p);
			return -ENOMEM;
		}
	}
	*ret_pairing = p;
	return 0;
}

static int sum_get(struct switch_check *c, const struct sum_key *key, struct sum **ret_sum)
{
	struct sum *s;

	HASH_FIND(hh, c->sums, key, sizeof(*key), s);
	if (!s && HASH_COUNT(c->sums) < SWITCH_CHECK_SUMS_MAX) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->key = *key;
		s->is.tid = key->tid;
		s->is.event = key->event;
		HASH_ADD(hh, c->sums, key, sizeof(s->key), s);
		if (!s->hh.tbl) {
			free(s);
			return -ENOMEM;
		}
	}
	*ret_sum = s;
	return 0;
}

static struct reading reading_of(const struct record *r)
{
	struct reading to = {.n_read = r->sample.n_read, .tid = r->tid};

	memcpy(to.read, r->sample.read, to.n_read * sizeof(*to.read));
	return to;
}

/* Count of a group's member; false if the reading does not have it. */
static bool value_of(const struct reading *r, uint64_t id, uint64_t *ret_value)
{
	for (uint32_t i = 0; i < r->n_read; i++) {
		if (r->read[i].id != id)
			continue;
		*ret_value = r->read[i].value;
		return true;
	}
	return false;
}

/* The time that passed from one reading to another, by a clock in both; 0 if there is none. */
static uint64_t ns_between(
	const struct switch_check *c, const struct reading *from, const struct reading *to)
{
	uint64_t now;
	for (uint32_t i = 0; i < from->n_read; i++) {
		const struct stream *s = stream_table_find(c->streams, from->read[i].id);
		if (s && s->event >= 0 && s->event < c->events->n_events &&
			event_is_clock(&c->events->event[s->event]) &&
			value_of(to, from->read[i].id, &now) && now > from->read[i].value)
			return now - from->read[i].value;
	}
	return 0;
}

/* Charge the outgoing task with one member's count since the last pair, by both ways. */
static int charge_member(struct switch_check *c, const struct pairing *p,
	const struct reading *sibling, const struct record_read_value *bpf, uint64_t gap_ns)
{
	const struct stream *stream = stream_table_find(c->streams, bpf->id);
	uint64_t bpf_before, sibling_before, sibling_now;
	struct sum *sum;

	if (!stream || stream->event < 0 || stream->event >= c->events->n_events ||
		!value_of(&p->bpf, bpf->id, &bpf_before) ||
		!value_of(&p->sibling, bpf->id, &sibling_before) ||
		!value_of(sibling, bpf->id, &sibling_now))
		return 0;

	struct sum_key key = {.tid = p->waiting.tid, .event = stream->event};
	int r = sum_get(c, &key, &sum);
	if (r < 0)
		return r;
	if (!sum) {
		c->n_left_out++;
		return 0;
	}
	sum->is.n_switches++;
	sum->is.by_bpf += bpf->value - bpf_before;
	sum->is.by_sibling += sibling_now - sibling_before;
	sum->ran_ns += ns_between(c, &p->bpf, &p->waiting);
	sum->gaps_ns += p->gap_ns + gap_ns;
	return 0;
}

static int take_pair(struct switch_check *c, struct pairing *p, const struct record *record)
{
	struct reading sibling = reading_of(record);
	uint64_t gap_ns = ns_between(c, &p->waiting, &sibling);
	bool too_long = gap_ns > SWITCH_CHECK_GAP_NS || p->gap_ns > SWITCH_CHECK_GAP_NS;
	int r = 0;

	for (uint32_t i = 0; p->begun && !too_long && r == 0 && i < p->waiting.n_read; i++)
		r = charge_member(c, p, &sibling, &p->waiting.read[i], gap_ns);
	c->n_switches += p->begun && !too_long;
	c->n_apart_too_long += p->begun && too_long;
	p->gap_ns = gap_ns;
	if (p->paired && !p->was_stopped)
		c->n_unpaired += p->n_alone;
	p->was_stopped = p->stopped;
	p->paired = true;
	p->n_alone = 0;
	p->bpf = p->waiting;
	p->sibling = sibling;
	p->begun = true;
	p->waits = false;
	return r;
}

static void break_chain(struct pairing *p)
{
	p->begun = p->waits = false;
}

/* Note that records were lost. One may have been the other record of a pair, or the message that
 * the group counts again. */
static void lose_some(struct pairing *p)
{
	break_chain(p);
	p->stopped = false;
	p->n_alone = 0;
}

static void take_bpf(struct pairing *p, const struct record *record)
{
	bool alone = p->waits && p->waiting.tid != 0;

	p->n_alone += alone;
	if (alone || record->sample.n_missed)
		break_chain(p);
	p->waiting = reading_of(record);
	p->waits = true;
}

/* The sibling's record of a reaped thread has no tid; the program's may have it. */
static bool same_task(const struct pairing *p, const struct record *record)
{
	return p->waiting.tid == record->tid || record->tid == RECORD_TID_GONE;
}

static int take_sibling(struct switch_check *c, struct pairing *p, const struct record *record)
{
	if (p->waits && same_task(p, record))
		return take_pair(c, p, record);
	p->n_alone += 1u + p->waits;
	break_chain(p);
	return 0;
}

/* Take a throttle record. Ignore groups without earlier records: their records would not be counted
 * anyway. */
static void take_throttle(struct switch_check *c, const struct record *r)
{
	struct pairing *p;

	if (!r->stream)
		return;
	HASH_FIND(hh, c->pairings, &r->stream->leader, sizeof(r->stream->leader), p);
	if (!p)
		return;
	p->stopped = r->kind == RECORD_THROTTLE;
	p->was_stopped = true;
}

int switch_check_record(struct switch_check *c, const struct record *r, int hart)
{
	struct pairing *p;

	if (r->kind == RECORD_LOST)
		for (p = c->pairings; p; p = p->hh.next)
			if (p->hart == hart)
				lose_some(p);
	if (r->kind == RECORD_THROTTLE || r->kind == RECORD_UNTHROTTLE)
		take_throttle(c, r);
	if (r->kind != RECORD_SAMPLE || !r->stream ||
		(r->stream->role != STREAM_SWITCH && r->stream->role != STREAM_SWITCH_BPF))
		return 0;

	int result = pairing_get(c, r->stream->leader, hart, &p);
	if (result < 0)
		return result;
	if (!p) {
		c->n_left_out++;
		return 0;
	}
	if (r->stream->role == STREAM_SWITCH)
		return take_sibling(c, p, r);
	take_bpf(p, r);
	return 0;
}

static bool is_apart(const struct event *e, const struct sum *sum, double difference)
{
	const struct switch_sum *s = &sum->is;
	double most = (double)(s->by_bpf > s->by_sibling ? s->by_bpf : s->by_sibling);
	bool by_kernel = e->type == PERF_TYPE_SOFTWARE || e->type == PERF_TYPE_TRACEPOINT;
	double allowed = most * SWITCH_CHECK_SHARE;

	allowed += by_kernel ? SWITCH_CHECK_SOFTWARE
			     : (double)s->n_switches * SWITCH_CHECK_HARDWARE_EACH;
	if (!by_kernel && sum->ran_ns > 0)
		allowed += most / (double)sum->ran_ns * (double)sum->gaps_ns;
	return difference > allowed;
}

void switch_check_judge(const struct switch_check *c, struct switch_verdict *ret_verdict)
{
	struct switch_verdict v = {
		.n_switches = c->n_switches,
		.n_unpaired = c->n_unpaired,
		.n_left_out = c->n_left_out,
		.n_apart_too_long = c->n_apart_too_long,
	};

	for (const struct sum *s = c->sums; s; s = s->hh.next) {
		const struct event *e = &c->events->event[s->is.event];
		uint64_t a = s->is.by_bpf, b = s->is.by_sibling;
		double difference = (double)(a > b ? a - b : b - a);
		double share = difference > 0 ? difference / (double)(a > b ? a : b) : 0;

		if (event_is_clock(e))
			continue;
		bool apart = is_apart(e, s, difference);
		/* a sum that is too far apart takes precedence over all others */
		if (v.n_sums == 0 || (apart && !v.n_apart) ||
			(apart == (v.n_apart > 0) && share > v.worst_share)) {
			v.worst = s->is;
			v.worst_share = share;
		}
		v.n_sums++;
		v.n_apart += apart;
	}
	*ret_verdict = v;
}

struct switch_check *switch_check_free(struct switch_check *c)
{
	struct pairing *p, *next_pairing;
	struct sum *s, *next_sum;

	if (!c)
		return NULL;
	HASH_ITER (hh, c->pairings, p, next_pairing) {
		HASH_DEL(c->pairings, p);
		free(p);
	}
	HASH_ITER (hh, c->sums, s, next_sum) {
		HASH_DEL(c->sums, s);
		free(s);
	}
	free(c);
	return NULL;
}
