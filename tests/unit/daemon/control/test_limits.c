/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/control/limits.c and proto/frame_check.c: what requests repeat. */

#include "daemon/control/limits.h"

#include "proto/base/clock.h"
#include "proto/frame.h"
#include "tests/unit/test.h"

#define PIDS 300000u

static struct frame_buffer buffer;

static void teardown(void)
{
	frame_buffer_clear(&buffer);
}

EACH_TEST(.end = teardown);

/* --- the table -------------------------------------------------------------------------------- */

static unsigned n_repeated;

static void expect_rows(const ProtobufCMessageDescriptor *d)
{
	for (unsigned i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];
		size_t row = 0;
		if (f->type == PROTOBUF_C_TYPE_MESSAGE)
			expect_rows(f->descriptor);
		if (f->label != PROTOBUF_C_LABEL_REPEATED)
			continue;
		n_repeated++;
		while (row < n_field_limits &&
			(strcmp(field_limits[row].message, d->name) != 0 ||
				strcmp(field_limits[row].field, f->name) != 0))
			row++;
		ck_assert_msg(row < n_field_limits, "%s.%s has no limit", d->name, f->name);
		ck_assert_uint_gt(field_limits[row].most, 0);
	}
}

TEST(each_field_that_a_request_can_repeat_has_a_limit)
{
	expect_rows(&mperf__request__descriptor);
	ck_assert_uint_ge(n_repeated, n_field_limits);
}

static Mperf__Target target = MPERF__TARGET__INIT;
static Mperf__StatRequest stat_request = MPERF__STAT_REQUEST__INIT;
static Mperf__Request request = MPERF__REQUEST__INIT;

static void stat_of(int32_t *pid, size_t n)
{
	target.pid = pid;
	target.n_pid = n;
	stat_request.target = &target;
	request.id = 1;
	request.body_case = MPERF__REQUEST__BODY_STAT;
	request.stat = &stat_request;
}

TEST(one_more_than_the_limit_is_named)
{
	int32_t pid[257];
	size_t n = 0;

	for (int i = 0; i < 257; i++)
		pid[i] = i + 1;
	stat_of(pid, 256);
	ck_assert_ptr_null(limits_exceeded(&request.base, &n));
	ck_assert_uint_eq(target.n_pid, 256);
	stat_of(pid, 257);
	const struct field_limit *limit = limits_exceeded(&request.base, &n);
	ck_assert_ptr_nonnull(limit);
	ck_assert_str_eq(limit->field, "pid");
	ck_assert_uint_eq(n, 257);
	ck_assert_uint_eq(limit->most, 256);
}

TEST(what_is_said_twice_is_dropped)
{
	int32_t pid[] = {7, 8, 7, 7, 9, 8};
	size_t n = 0;

	stat_of(pid, 6);
	ck_assert_ptr_null(limits_exceeded(&request.base, &n));
	ck_assert_uint_eq(target.n_pid, 3);
	ck_assert_int_eq(target.pid[0], 7);
	ck_assert_int_eq(target.pid[1], 8);
	ck_assert_int_eq(target.pid[2], 9);
}

TEST(texts_said_twice_are_dropped_and_freed)
{
	char *comm[3] = {strdup("cc"), strdup("ld"), strdup("cc")};
	Mperf__Filter filter = MPERF__FILTER__INIT;
	size_t n = 0;

	filter.comm = comm;
	filter.n_comm = 3;
	ck_assert_ptr_null(limits_exceeded(&filter.base, &n));
	ck_assert_uint_eq(filter.n_comm, 2);
	ck_assert_str_eq(filter.comm[1], "ld");
	free(comm[0]);
	free(comm[1]);
}

TEST(a_body_that_is_not_there_is_not_looked_at)
{
	size_t n = 0;

	request.id = 1;
	request.body_case = MPERF__REQUEST__BODY_STATUS;
	request.status = (Mperf__StatusRequest *)&(Mperf__StatusRequest)MPERF__STATUS_REQUEST__INIT;
	ck_assert_ptr_null(limits_exceeded(&request.base, &n));
}

/* --- frames ----------------------------------------------------------------------------------- */

static void put_raw(const uint8_t *bytes, uint32_t n)
{
	ck_assert_int_eq(frame_buffer_append(&buffer, &n, sizeof(n)), 0);
	ck_assert_int_eq(frame_buffer_append(&buffer, bytes, n), 0);
}

static void put_request(size_t n_pids)
{
	int32_t *pid = calloc(n_pids, sizeof(*pid));
	Mperf__Message m = MPERF__MESSAGE__INIT;

	for (size_t i = 0; i < n_pids; i++)
		pid[i] = 1;
	stat_of(pid, n_pids);
	m.body_case = MPERF__MESSAGE__BODY_REQUEST;
	m.request = &request;
	ck_assert_int_eq(frame_put(&buffer, &m), 0);
	free(pid);
}

TEST(a_frame_of_a_great_many_numbers_is_too_much)
{
	put_request(10000);
	ck_assert_int_eq(frame_check(&buffer), 0);
	frame_buffer_clear(&buffer);
	put_request(PIDS);
	ck_assert_int_eq(frame_check(&buffer), FRAME_TOO_MUCH);
}

/* The same field again and again, of each wire type, in Message, in Request and in its bodies. */
TEST(a_frame_that_says_one_thing_again_and_again_is_too_much, .times = 3)
{
	/* a Hello with no text; one that is not known; a number that is not known */
	static const uint8_t piece[][4] = {{0x0a, 2, 0x1a, 0}, {0x7a, 2, 0, 0}, {0x78, 1, 0x78, 1}};
	static uint8_t bytes[1u << 20];

	for (size_t i = 0; i < sizeof(bytes); i += 4)
		memcpy(bytes + i, piece[_i], 4);
	put_raw(bytes, sizeof(bytes));
	ck_assert_int_eq(frame_check(&buffer), FRAME_TOO_MUCH);
}

TEST(what_does_not_parse_is_left_to_unpacking)
{
	static const uint8_t cut[] = {0x12, 0x7f, 8};
	static const uint8_t group[] = {0x0b};
	static const uint8_t endless[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};

	ck_assert_int_eq(frame_check(&buffer), 0); /* nothing is there */
	put_raw(cut, sizeof(cut));
	ck_assert_int_eq(frame_check(&buffer), 0);
	frame_buffer_clear(&buffer);
	put_raw(group, sizeof(group));
	ck_assert_int_eq(frame_check(&buffer), 0);
	frame_buffer_clear(&buffer);
	put_raw(endless, sizeof(endless));
	ck_assert_int_eq(frame_check(&buffer), 0);
}

TEST(messages_in_messages_without_end_stop)
{
	uint8_t bytes[512];

	/* Request in Message, then what is no field of Request but nests */
	for (size_t i = 0; i < sizeof(bytes); i += 2) {
		bytes[i] = 0x12;
		bytes[i + 1] = (uint8_t)(i + 2 < sizeof(bytes) ? 126 : 0);
	}
	put_raw(bytes, sizeof(bytes));
	ck_assert_int_eq(frame_check(&buffer), 0);
}

/* The costliest frames that pass are unpacked within what a turn of the loop may take. */
TEST(what_passes_unpacks_in_a_moment)
{
	static uint8_t bytes[1u << 20];
	size_t n = 0;
	Mperf__Message *m = NULL;

	/* Message{request{stat{target{pid: 1 × 30,000} target{} target{} …}}}: each is merged */
	static uint8_t inner[1u << 19];
	size_t n_inner = 0;
	for (; n_inner < 2 * 20000; n_inner += 2)
		memcpy(inner + n_inner, "\x10\x01", 2);
	uint8_t *at = bytes + 16;
	*at++ = 0x0a; /* StatRequest.target */
	*at++ = (uint8_t)(n_inner | 128), *at++ = (uint8_t)(n_inner >> 7 | 128);
	*at++ = (uint8_t)(n_inner >> 14);
	memcpy(at, inner, n_inner);
	at += n_inner;
	for (int i = 0; i < 150; i++, at += 4)
		memcpy(at, "\x0a\x02\x10\x02", 4);
	n = (size_t)(at - bytes - 16);
	uint8_t head[16] = {0x2a}; /* Request.stat */
	head[1] = (uint8_t)(n | 128), head[2] = (uint8_t)(n >> 7 | 128),
	head[3] = (uint8_t)(n >> 14);
	memmove(bytes + 16 - 4, head, 4);
	n += 4;
	head[0] = 0x12; /* Message.request */
	head[1] = (uint8_t)(n | 128), head[2] = (uint8_t)(n >> 7 | 128),
	head[3] = (uint8_t)(n >> 14);
	memmove(bytes + 16 - 8, head, 4);
	put_raw(bytes + 8, (uint32_t)n + 4);

	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	ck_assert_int_eq(frame_check(&buffer), 0);
	ck_assert_int_eq(frame_take(&buffer, &m), 0);
	uint64_t took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	ck_assert_uint_eq(m->request->stat->target->n_pid, 20000 + 150);
	mperf__message__free_unpacked(m, NULL);
	ck_assert_uint_lt(took_ns, 500000000); /* some 5 ms; sanitizers are slow */
}
