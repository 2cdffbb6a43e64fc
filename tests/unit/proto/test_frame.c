/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Frames meet every boundary: cut at each byte, over-long, empty, malformed, and through a socket
 * that takes little at a time.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/frame.h"
#include "tests/unit/test.h"

/* A frame with a Hello whose software is n letters. */
static void put_hello(struct frame_buffer *b, uint32_t minor, size_t n)
{
	char *software = calloc(n + 1, 1);
	memset(software, 'x', n);
	Mperf__Hello hello = MPERF__HELLO__INIT;
	hello.major = PROTOCOL_MAJOR;
	hello.minor = minor;
	hello.software = software;
	Mperf__Message m = MPERF__MESSAGE__INIT;
	m.body_case = MPERF__MESSAGE__BODY_HELLO;
	m.hello = &hello;
	ck_assert_int_eq(frame_put(b, &m), 0);
	free(software);
}

static void put_length(struct frame_buffer *b, uint32_t length)
{
	length = htole32(length);
	ck_assert_int_eq(frame_buffer_append(b, &length, sizeof(length)), 0);
}

/* Take a Hello and return its minor, which the tests number frames by. */
static uint32_t take_hello(struct frame_buffer *b)
{
	Mperf__Message *m = NULL;
	ck_assert_int_eq(frame_take(b, &m), 0);
	ck_assert_int_eq(m->body_case, MPERF__MESSAGE__BODY_HELLO);
	uint32_t minor = m->hello->minor;
	mperf__message__free_unpacked(m, NULL);
	return minor;
}

static void assert_takes(struct frame_buffer *b, int outcome)
{
	Mperf__Message *m = (Mperf__Message *)b;
	ck_assert_int_eq(frame_take(b, &m), outcome);
	ck_assert_ptr_eq(m, b); /* untouched */
}

TEST(a_frame_survives_every_split)
{
	struct frame_buffer whole = {0};
	put_hello(&whole, 7, 40);
	size_t n = frame_buffer_filled(&whole);

	for (size_t cut = 0; cut < n; cut++) {
		struct frame_buffer b = {0};
		ck_assert_int_eq(frame_buffer_append(&b, whole.bytes, cut), 0);
		assert_takes(&b, FRAME_NONE);
		ck_assert_int_eq(frame_buffer_append(&b, whole.bytes + cut, n - cut), 0);
		ck_assert_uint_eq(take_hello(&b), 7);
		assert_takes(&b, FRAME_NONE);
		frame_buffer_clear(&b);
	}
	frame_buffer_clear(&whole);
}

TEST(frames_come_out_in_order_byte_by_byte)
{
	struct frame_buffer whole = {0}, b = {0};
	for (uint32_t i = 0; i < 20; i++)
		put_hello(&whole, i, i);

	uint32_t next = 0;
	for (size_t i = 0; i < frame_buffer_filled(&whole); i++) {
		Mperf__Message *m;
		ck_assert_int_eq(frame_buffer_append(&b, whole.bytes + i, 1), 0);
		if (frame_take(&b, &m) == 0) {
			ck_assert_uint_eq(m->hello->minor, next++);
			mperf__message__free_unpacked(m, NULL);
		}
	}
	ck_assert_uint_eq(next, 20);
	ck_assert_uint_eq(frame_buffer_filled(&b), 0);
	frame_buffer_clear(&whole);
	frame_buffer_clear(&b);
}

TEST(a_buffer_that_moves_and_grows_keeps_its_bytes)
{
	struct frame_buffer b = {0};
	uint32_t put = 0, taken = 0;
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 3; i++)
			put_hello(&b, put++, (size_t)(round * 7 % 500));
		ck_assert_uint_eq(take_hello(&b), taken);
		taken++;
	}
	while (taken < put) {
		ck_assert_uint_eq(take_hello(&b), taken);
		taken++;
	}
	frame_buffer_clear(&b);
}

TEST(four_gigabytes_are_refused_at_once)
{
	struct frame_buffer b = {0};
	put_length(&b, UINT32_MAX);
	assert_takes(&b, FRAME_TOO_LARGE);
	assert_takes(&b, FRAME_TOO_LARGE); /* and stay refused */
	frame_buffer_clear(&b);
}

TEST(the_limit_itself_is_waited_for)
{
	struct frame_buffer b = {0};
	put_length(&b, FRAME_BYTES_MAX);
	assert_takes(&b, FRAME_NONE);
	frame_buffer_clear(&b);
	put_length(&b, FRAME_BYTES_MAX + 1);
	assert_takes(&b, FRAME_TOO_LARGE);
	frame_buffer_clear(&b);
}

TEST(a_message_above_the_limit_is_not_put)
{
	struct frame_buffer b = {0};
	Mperf__Hello hello = MPERF__HELLO__INIT;
	Mperf__Message m = MPERF__MESSAGE__INIT;
	m.body_case = MPERF__MESSAGE__BODY_HELLO;
	m.hello = &hello;
	hello.software = calloc(FRAME_BYTES_MAX + 1, 1);
	memset(hello.software, 'x', FRAME_BYTES_MAX);
	ck_assert_int_eq(frame_put(&b, &m), -EMSGSIZE);
	ck_assert_uint_eq(frame_buffer_filled(&b), 0);
	free(hello.software);
	frame_buffer_clear(&b);
}

TEST(half_a_header_is_no_frame)
{
	struct frame_buffer b = {0};
	assert_takes(&b, FRAME_NONE);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(frame_buffer_append(&b, "\xff", 1), 0);
		assert_takes(&b, FRAME_NONE);
	}
	frame_buffer_clear(&b);
}

TEST(an_empty_frame_is_a_message_without_a_body)
{
	struct frame_buffer b = {0};
	Mperf__Message *m;
	put_length(&b, 0);
	ck_assert_int_eq(frame_take(&b, &m), 0);
	ck_assert_int_eq(m->body_case, MPERF__MESSAGE__BODY__NOT_SET);
	mperf__message__free_unpacked(m, NULL);
	frame_buffer_clear(&b);
}

TEST(bytes_that_are_no_message_are_malformed)
{
	static const char *const payloads[] = {"\xff\xff\xff\xff", "\x0a\x7f",
		"\x0a\xff\xff\xff\x0f", "\x08", "\x0b", "\x0a\x02\x08"};
	for (size_t i = 0; i < sizeof(payloads) / sizeof(*payloads); i++) {
		struct frame_buffer b = {0};
		put_length(&b, (uint32_t)strlen(payloads[i]));
		ck_assert_int_eq(frame_buffer_append(&b, payloads[i], strlen(payloads[i])), 0);
		assert_takes(&b, FRAME_MALFORMED);
		ck_assert_uint_eq(frame_buffer_filled(&b), 0);
		frame_buffer_clear(&b);
	}
}

TEST(a_frame_cut_short_by_its_length_is_malformed)
{
	struct frame_buffer whole = {0};
	put_hello(&whole, 1, 30);
	size_t n = frame_buffer_filled(&whole) - FRAME_HEADER_BYTES;
	for (size_t cut = 1; cut < n; cut++) {
		struct frame_buffer b = {0};
		put_length(&b, (uint32_t)cut);
		frame_buffer_append(&b, whole.bytes + FRAME_HEADER_BYTES, cut);
		assert_takes(&b, FRAME_MALFORMED);
		frame_buffer_clear(&b);
	}
	frame_buffer_clear(&whole);
}

TEST(a_slow_socket_gets_everything)
{
	int pair[2], small = 4096;
	struct frame_buffer out = {0}, in = {0};
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	put_hello(&out, 3, 700000);

	int64_t left;
	int n_partial = 0;
	while ((left = frame_buffer_write(&out, pair[0])) > 0) {
		n_partial++;
		ck_assert_int_gt(frame_buffer_read(&in, pair[1]), 0);
	}
	ck_assert_int_eq(left, 0);
	ck_assert_int_gt(n_partial, 1);
	while (frame_buffer_read(&in, pair[1]) > 0)
		;
	ck_assert_uint_eq(take_hello(&in), 3);
	frame_buffer_clear(&in);
	frame_buffer_clear(&out);
	close(pair[0]);
	close(pair[1]);
}

TEST(nothing_there_and_nobody_there_are_told_apart)
{
	int pair[2];
	struct frame_buffer b = {0};
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert_int_eq(frame_buffer_read(&b, pair[1]), -EAGAIN);
	close(pair[0]);
	ck_assert_int_eq(frame_buffer_read(&b, pair[1]), 0);
	put_hello(&b, 0, 1);
	ck_assert_int_eq(frame_buffer_write(&b, pair[1]), -EPIPE); /* and no SIGPIPE */
	frame_buffer_clear(&b);
	close(pair[1]);
}
