/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What the replayed kernel writes: samples with every field that the station asks for, in the
 * order of the manual, and LOST where a ring was full. The figures are made up and easy to tell:
 * an instruction pointer of the task, a chain of three callers, registers that count up, a stack
 * of one repeated byte. Source: man perf_event_open, "MMAP layout".
 */

#include <string.h>

#include "tests/unit/replay_part.h"

#define RECORD_BYTES 65536u
#define CHAIN_FRAMES 3u

static bool group_starves(const struct replay *r, int leader_fd)
{
	for (unsigned i = 0; i < r->n_live; i++)
		if (r->event[r->live[i]].leader_fd == leader_fd &&
			r->event[r->live[i]].rule.starves)
			return true;
	return false;
}

static bool needs_counter(const struct replay *r, int leader_fd)
{
	for (unsigned i = 0; i < r->n_live; i++) {
		const struct replay_event *e = &r->event[r->live[i]];
		if (e->leader_fd == leader_fd && e->attr.type != PERF_TYPE_SOFTWARE &&
			e->attr.type != PERF_TYPE_TRACEPOINT)
			return true;
	}
	return false;
}

bool replay_has_counters(const struct replay *r, const struct replay_event *e)
{
	const struct replay_event *leader = replay_event(r, e->leader_fd);
	bool turn = r->now_ns / REPLAY_STEP_NS % 100 >= 100 - r->taken_percent;
	bool taken = leader->attr.pinned ? leader->displaced : turn || r->taken_pinned;
	return !e->starved && !(taken && e->needs_counter);
}

void replay_learn_counters(struct replay *r)
{
	r->n_live = 0;
	for (unsigned i = 0; i < r->n_events; i++) {
		r->event[i].starved = r->event[i].needs_counter = false;
		if (r->event[i].open)
			r->live[r->n_live++] = i;
	}
	for (unsigned i = 0; i < r->n_live; i++) {
		struct replay_event *e = &r->event[r->live[i]];
		e->starved = group_starves(r, e->leader_fd);
		e->needs_counter = needs_counter(r, e->leader_fd);
		if (e->enabled && e->attr.pinned && e->needs_counter)
			e->displaced |= r->taken_pinned;
	}
}

void replay_take_counters(struct replay *r, unsigned percent)
{
	r->taken_percent = percent;
}

void replay_pin_counters(struct replay *r, bool pinned)
{
	r->taken_pinned = pinned;
	replay_learn_counters(r);
}

struct record_buffer {
	uint8_t bytes[RECORD_BYTES];
	size_t n;
};

static void put_word(struct record_buffer *b, uint64_t word)
{
	if (b->n + sizeof(word) > sizeof(b->bytes))
		return;
	memcpy(b->bytes + b->n, &word, sizeof(word));
	b->n += sizeof(word);
}

static void put_pair(struct record_buffer *b, uint32_t low, uint32_t high)
{
	put_word(b, low | (uint64_t)high << 32);
}

static void begin(struct record_buffer *b, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc};
	memcpy(b->bytes, &header, sizeof(header));
	b->n = sizeof(header);
}

static void finish(struct record_buffer *b)
{
	struct perf_event_header header;
	memcpy(&header, b->bytes, sizeof(header));
	header.size = (uint16_t)b->n;
	memcpy(b->bytes, &header, sizeof(header));
}

size_t replay_read_values(const struct replay *r, const struct replay_event *e, uint64_t *words)
{
	const uint64_t format = e->attr.read_format;
	size_t n = 0;
	if (!(format & PERF_FORMAT_GROUP)) {
		words[n++] = (uint64_t)e->value;
		if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
			words[n++] = e->enabled_ns;
		if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
			words[n++] = e->running_ns;
		if (format & PERF_FORMAT_ID)
			words[n++] = e->id;
		if (format & PERF_FORMAT_LOST)
			words[n++] = e->n_lost_own;
		return n;
	}

	const struct replay_event *leader = replay_event(r, e->leader_fd);
	words[n++] = 0;
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		words[n++] = leader->enabled_ns;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		words[n++] = leader->running_ns;
	for (unsigned i = 0; i < r->n_events && words[0] < 64; i++) {
		const struct replay_event *member = &r->event[i];
		if (!member->open || member->leader_fd != e->leader_fd)
			continue;
		words[0]++;
		words[n++] = (uint64_t)member->value;
		if (format & PERF_FORMAT_ID)
			words[n++] = member->id;
		if (format & PERF_FORMAT_LOST)
			words[n++] = member->n_lost_own;
	}
	return n;
}

bool replay_put(struct replay_event *e, const void *bytes, size_t n)
{
	struct perf_event_mmap_page *page = e->map;
	uint8_t *data = (uint8_t *)e->map + page->data_offset;
	uint64_t head = page->data_head;
	uint64_t tail = __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
	if (head - tail + n > e->data_bytes)
		return false;
	const size_t at = head & (e->data_bytes - 1);
	const size_t first =
		n < e->data_bytes - at ? n : e->data_bytes - at; /* up to the ring's end */
	memcpy(data + at, bytes, first);
	memcpy(data, (const uint8_t *)bytes + first, n - first);
	__atomic_store_n(&page->data_head, head + n, __ATOMIC_RELEASE);
	return true;
}

/* The trailer of sample_id_all, in the manual's order. */
static void put_sample_id(
	const struct replay *r, const struct replay_event *e, pid_t pid, struct record_buffer *b)
{
	const uint64_t type = e->attr.sample_type;
	if (!e->attr.sample_id_all)
		return;
	if (type & PERF_SAMPLE_TID)
		put_pair(b, (uint32_t)pid, (uint32_t)pid);
	if (type & PERF_SAMPLE_TIME)
		put_word(b, r->now_ns);
	if (type & PERF_SAMPLE_CPU)
		put_pair(b, (uint32_t)e->hart, 0);
	if (type & PERF_SAMPLE_IDENTIFIER)
		put_word(b, e->id);
}

/* Write a finished record to e's ring, behind a LOST record if some found it full before. */
static void emit(struct replay *r, struct replay_event *e, pid_t pid, const struct record_buffer *b)
{
	struct replay_event *to = replay_event(r, e->output_fd);
	if (!to->map)
		return; /* without a ring a sample goes nowhere */
	if (to->n_lost > 0) {
		struct record_buffer lost;
		begin(&lost, PERF_RECORD_LOST, 0);
		put_word(&lost, to->id);
		put_word(&lost, to->n_lost);
		put_sample_id(r, to, pid, &lost);
		finish(&lost);
		if (replay_put(to, lost.bytes, lost.n))
			to->n_lost = 0;
	}
	if (to->n_lost > 0 || !replay_put(to, b->bytes, b->n)) {
		to->n_lost++;
		e->n_lost_own++;
	}
}

/* Source: perf_log_throttle in kernel/events/core.c of Linux 6.12. */
void replay_tell_throttled(struct replay *r, struct replay_event *e, pid_t pid, bool begins)
{
	struct record_buffer b;
	begin(&b, begins ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE, 0);
	put_word(&b, r->now_ns);
	put_word(&b, e->id);
	put_word(&b, e->id);
	put_sample_id(r, e, pid, &b);
	finish(&b);
	emit(r, e, pid, &b);
}

static void put_user_state(const struct replay_event *e, uint64_t ip, struct record_buffer *b)
{
	const uint64_t type = e->attr.sample_type;
	if (type & PERF_SAMPLE_REGS_USER) {
		put_word(b, PERF_SAMPLE_REGS_ABI_64);
		for (unsigned i = 0; i < 64; i++)
			if (e->attr.sample_regs_user >> i & 1)
				put_word(b, ip + i);
	}
	if (type & PERF_SAMPLE_STACK_USER) {
		/* The kernel cuts the copy so that the record stays within its 16-bit size. */
		size_t n = e->attr.sample_stack_user;
		if (n > RECORD_BYTES - 64 - b->n)
			n = (RECORD_BYTES - 64 - b->n) & ~(size_t)7;
		put_word(b, n);
		if (n == 0)
			return;
		memset(b->bytes + b->n, 0x5a, n);
		b->n += n;
		put_word(b, n);
	}
}

void replay_sample(struct replay *r, struct replay_event *e, pid_t pid)
{
	const uint64_t type = e->attr.sample_type;
	const uint64_t ip = 0x400000 + 16 * (uint64_t)pid;
	uint64_t words[REPLAY_READ_WORDS_MAX];
	struct record_buffer b;
	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	if (type & PERF_SAMPLE_IDENTIFIER)
		put_word(&b, e->id);
	if (type & PERF_SAMPLE_IP)
		put_word(&b, ip);
	if (type & PERF_SAMPLE_TID)
		put_pair(&b, (uint32_t)pid, (uint32_t)pid);
	if (type & PERF_SAMPLE_TIME)
		put_word(&b, r->now_ns);
	if (type & PERF_SAMPLE_CPU)
		put_pair(&b, (uint32_t)e->hart, 0);
	if (type & PERF_SAMPLE_PERIOD)
		put_word(&b, e->attr.freq ? (uint64_t)(e->rule.per_us * 1e6 /
						       (double)e->attr.sample_freq)
					  : e->attr.sample_period);
	if (type & PERF_SAMPLE_READ) {
		size_t n = replay_read_values(r, e, words);
		for (size_t i = 0; i < n; i++)
			put_word(&b, words[i]);
	}
	if (type & PERF_SAMPLE_CALLCHAIN) {
		put_word(&b, 1 + CHAIN_FRAMES);
		put_word(&b, (uint64_t)PERF_CONTEXT_USER);
		for (unsigned i = 0; i < CHAIN_FRAMES; i++)
			put_word(&b, ip + 4096 * i);
	}
	put_user_state(e, ip, &b);
	if (type & PERF_SAMPLE_CGROUP)
		put_word(&b, 1);
	finish(&b);
	emit(r, e, pid, &b);
}
