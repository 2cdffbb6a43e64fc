/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/wakers.c: which wait has which waker. The file is included, with a ring and callers made by
 * hand. */

#include "daemon/session/wakers.h"

static int make_ring(const struct offcpu_bpf *offcpu, struct wakers_bpf **ret, int *ret_error);
static void read_ring(struct wakers_bpf *w, wakers_bpf_take *see, void *userdata);
static uint64_t lost_of_ring(const struct wakers_bpf *w);
static struct wakers_bpf *free_ring(struct wakers_bpf *w);
static int find_callers(
	struct attribute *a, const struct record *r, uint64_t number, struct task **ret_task);

#define wakers_bpf_new make_ring
#define wakers_bpf_read read_ring
#define wakers_bpf_lost lost_of_ring
#define wakers_bpf_free free_ring
#define attribute_waker find_callers
#include "daemon/session/wakers.c"
#undef attribute_waker

#include "tests/unit/test.h"

static struct offcpu_waking ring[16];
static size_t n_bytes[16], n_ring, at_ring;
static struct wakers *wakers;
static struct task sleeper = {.tid = 41}, waker = {.tid = 50};
static uint64_t asked; /* number of the last stack that was asked for */
static struct found_wait kept;
static struct given {
	uint32_t number;
	uint64_t count;
	bool has_waker;
	enum waker_kind kind;
	uint32_t n_frames;
} given[16];
static size_t n_given;

static int make_ring(const struct offcpu_bpf *offcpu, struct wakers_bpf **ret, int *ret_error)
{
	(void)offcpu, (void)ret_error;
	*ret = NULL;
	return 0;
}

static void read_ring(struct wakers_bpf *w, wakers_bpf_take *see, void *userdata)
{
	(void)w;
	while (at_ring < n_ring && see(userdata, (const uint8_t *)&ring[at_ring], n_bytes[at_ring]))
		at_ring++;
}

static uint64_t lost_of_ring(const struct wakers_bpf *w)
{
	(void)w;
	return 3;
}

static struct wakers_bpf *free_ring(struct wakers_bpf *w)
{
	(void)w;
	return NULL;
}

static int find_callers(
	struct attribute *a, const struct record *r, uint64_t number, struct task **ret_task)
{
	(void)a;
	asked = number;
	*ret_task = r->tid == (uint32_t)waker.tid ? &waker : NULL;
	return 0;
}

static struct found_wait *find_kept(void *userdata, pid_t tid)
{
	(void)userdata;
	return kept.count > 0 && tid == kept.tid ? &kept : NULL;
}

static void take_given(void *userdata, const struct found_wait *wait, const struct waker *of_waker)
{
	(void)userdata;
	given[n_given++] = (struct given){.number = wait->number,
		.count = wait->count,
		.has_waker = of_waker != NULL,
		.kind = of_waker ? of_waker->kind : WAKER_TASK,
		.n_frames = of_waker ? of_waker->n_frames : 0};
}

static void begin(void)
{
	static const struct wakers_options o = {.find = find_kept, .give = take_given};
	int error;
	n_ring = at_ring = n_given = 0;
	asked = 0;
	kept = (struct found_wait){.count = 0};
	ck_assert_int_eq(wakers_new(&o, &wakers, &error), 0);
}

static void end(void)
{
	wakers = wakers_free(wakers);
}

EACH_TEST(.begin = begin, .end = end);

static struct found_wait wait_of(uint32_t number)
{
	return (struct found_wait){.tid = sleeper.tid,
		.number = number,
		.kind = OFFCPU_LOCK,
		.is_found = true,
		.task = &sleeper,
		.count = 2,
		.weight_ns = 200,
		.last_ns = 10};
}

static struct offcpu_head *add(uint64_t time_ns, uint32_t number)
{
	struct offcpu_waking *w = &ring[n_ring];
	n_bytes[n_ring++] = sizeof(*w);
	*w = (struct offcpu_waking){.time_ns = time_ns,
		.record.head = {
			.pid = 50, .tid = 50, .flags = OFFCPU_WAKER, .wait = number, .wakee = 41}};
	return &w->record.head;
}

static void find_callers_of(pid_t tid, uint64_t number)
{
	static struct frame *frame[2];
	const struct attribution a = {.task = tid == waker.tid ? &waker : &sleeper,
		.waker_of = number,
		.frame = frame,
		.n_frames = 2};
	ck_assert(wakers_found(wakers, &a));
}

TEST(a_wait_is_given_with_its_waker_when_that_ones_callers_are_there)
{
	struct found_wait wait = wait_of(7);
	wakers_take_wait(wakers, &wait);
	ck_assert_uint_eq(wait.count, 0);
	add(20, 7);
	ck_assert_int_eq(wakers_end_look(wakers, 30), 0);
	ck_assert_uint_eq(n_given, 0);
	ck_assert(wakers_await(wakers));
	find_callers_of(waker.tid, asked);
	ck_assert_uint_eq(n_given, 1);
	ck_assert(given[0].has_waker && given[0].kind == WAKER_TASK);
	ck_assert_uint_eq(given[0].count, 2);
	ck_assert_uint_eq(given[0].n_frames, 2);
	ck_assert(!wakers_await(wakers));
}

TEST(a_wait_under_way_is_found_and_a_later_record_stays)
{
	kept = wait_of(7);
	add(20, 7)->flags |= OFFCPU_INTERRUPT;
	ring[0].record.head.pid = ring[0].record.head.tid = 0;
	ck_assert_int_eq(wakers_end_look(wakers, 19), 0);
	ck_assert_uint_eq(n_given, 0);
	ck_assert_int_eq(wakers_end_look(wakers, 20), 0);
	ck_assert_uint_eq(n_given, 1);
	ck_assert_int_eq(given[0].kind, WAKER_INTERRUPT);
	ck_assert_uint_eq(kept.count, 0);
}

TEST(records_of_other_waits_unknown_threads_and_forged_ones_change_nothing)
{
	struct found_wait wait = wait_of(7);
	kept = wait_of(9);
	wakers_take_wait(wakers, &wait);
	add(20, 11);
	add(20, 7)->wakee = 99;
	add(20, 7)->n_stack = 16384; /* which is not there */
	add(20, 7)->n_stack = 1u << 31;
	add(20, 7);
	n_bytes[n_ring - 1] = 12;
	ck_assert_int_eq(wakers_end_look(wakers, 30), 0);
	ck_assert_uint_eq(at_ring, n_ring);
	/* it has ended, and nobody knows by whom */
	ck_assert_uint_eq(n_given, 1);
	ck_assert_uint_eq(given[0].number, 7);
	ck_assert(!given[0].has_waker);
	ck_assert_uint_eq(kept.count, 2);
	ck_assert_uint_eq(wakers_lost(wakers), 3);
}

TEST(who_is_gone_or_has_no_callers_in_time_has_no_stack)
{
	struct found_wait wait = wait_of(7), other = wait_of(9);
	wakers_take_wait(wakers, &wait);
	wakers_take_wait(wakers, &other);
	add(20, 7)->tid = 51;
	add(20, 9);
	ck_assert_int_eq(wakers_end_look(wakers, 30), 0);
	ck_assert_uint_eq(n_given, 1);
	ck_assert(given[0].has_waker && given[0].n_frames == 0);
	wakers_expire(wakers, 20 + WAIT_CALLERS_NS);
	ck_assert_uint_eq(n_given, 1);
	wakers_expire(wakers, 21 + WAIT_CALLERS_NS);
	ck_assert_uint_eq(n_given, 2);
	ck_assert(given[1].has_waker && given[1].n_frames == 0);
	find_callers_of(waker.tid, asked); /* too late */
	ck_assert_uint_eq(n_given, 2);
}
