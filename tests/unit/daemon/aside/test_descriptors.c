/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/aside/descriptors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/aside/aside.h"
#include "proto/base/clock.h"
#include "tests/unit/test.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#define AT_ONCE (500 * MS)

static int pair[2]; /* ours, which the kernel does not protect, and theirs */
static struct aside *closers;

static void begin(void)
{
	ck_assert_int_eq(aside_new(4, 1, &closers), 0);
}

EACH_TEST(.begin = begin);

static void connect_pair(int type)
{
	ck_assert_int_eq(socketpair(AF_UNIX, type, 0, pair), 0);
}

/* A TCP socket that takes 30 s to close: its peer, which stays open, never reads. */
static int make_lingering(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), tiny = 4096;
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &tiny, sizeof(tiny));
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&address, &n);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_ge(accept(listener, NULL, NULL), 0);
	static const char bytes[65536];
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		continue;
	struct linger linger = {1, 30};
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

/* Send text with a descriptor, of which the sender keeps none. */
static void send_with(int fd, const char *text, size_t n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec piece = {(void *)text, n};
	struct msghdr m = {.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	ck_assert_int_eq(sendmsg(pair[1], &m, 0), n);
	close(fd);
}

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* That what is sent does take a while, where nobody takes care. */
TEST(a_read_without_room_for_descriptors_waits_for_as_long_as_their_sender_says)
{
	connect_pair(SOCK_STREAM);
	int fd = make_lingering();
	struct linger linger = {1, 1};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	send_with(fd, "x", 1);
	char bytes[8];
	uint64_t began = now();
	ck_assert_int_eq(recv(pair[0], bytes, sizeof(bytes), 0), 1);
	ck_assert_uint_ge(now() - began, 900 * MS);
}

static void expect_refused(int type)
{
	connect_pair(type);
	send_with(make_lingering(), "with", 4);
	char bytes[8];
	uint64_t began = now();
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, sizeof(bytes)), -EBADMSG);
	ck_assert(descriptors_close(closers, pair[0], true, 1000));
	ck_assert_uint_lt(now() - began, AT_ONCE);
	usleep(100000);
	ck_assert_uint_eq(aside_count(closers, 1000), 1); /* it is still at it */
	ck_assert_uint_eq(aside_count(closers, 1001), 0);
}

TEST(a_descriptor_on_a_stream_is_not_read_and_closed_by_another_thread)
{
	expect_refused(SOCK_STREAM);
}

TEST(a_descriptor_with_a_packet_is_not_read_and_closed_by_another_thread)
{
	expect_refused(SOCK_SEQPACKET);
}

TEST(bytes_before_and_after_a_descriptor_do_not_hide_it)
{
	connect_pair(SOCK_STREAM);
	ck_assert_int_eq(send(pair[1], "before", 6, 0), 6);
	send_with(make_lingering(), "with", 4);
	ck_assert_int_eq(send(pair[1], "after", 5, 0), 5);
	char bytes[64];
	uint64_t began = now();
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, sizeof(bytes)), -EBADMSG);
	/* the kernel looks ahead: also where there is no room for all that comes before */
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, 3), -EBADMSG);
	ck_assert_uint_lt(now() - began, AT_ONCE);
}

TEST(an_empty_packet_with_a_descriptor_is_seen_behind_one_without)
{
	connect_pair(SOCK_SEQPACKET);
	ck_assert_int_eq(send(pair[1], "", 0, 0), 0);
	send_with(make_lingering(), "", 0);
	char bytes[8];
	uint64_t began = now();
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, sizeof(bytes)), 0);
	ck_assert(descriptors_close(closers, pair[0], true, 1000));
	ck_assert_uint_lt(now() - began, AT_ONCE);
}

TEST(what_is_sent_without_descriptors_is_read_as_ever)
{
	char bytes[8];
	connect_pair(SOCK_STREAM);
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, sizeof(bytes)), -EAGAIN);
	ck_assert_int_eq(send(pair[1], "0123456789", 10, 0), 10);
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, sizeof(bytes)), 8);
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, sizeof(bytes)), 2);
	shutdown(pair[1], SHUT_WR);
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, sizeof(bytes)), 0);
	ck_assert(!descriptors_close(closers, pair[0], true, 1000));

	connect_pair(SOCK_SEQPACKET);
	ck_assert_int_eq(send(pair[1], "01234567", 8, 0), 8);
	ck_assert_int_eq(send(pair[1], "0123456789", 10, 0), 10);
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, sizeof(bytes)), 8);
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, sizeof(bytes)), -EMSGSIZE);
}

TEST(a_socket_with_unread_bytes_is_closed_by_another_thread)
{
	connect_pair(SOCK_STREAM);
	send_with(make_lingering(), "x", 1);
	uint64_t began = now();
	ck_assert(descriptors_close(closers, pair[0], true, 1000));
	ck_assert_uint_lt(now() - began, AT_ONCE);
}

TEST(credentials_are_not_taken_for_descriptors)
{
	int yes = 1;
	char bytes[8];
	connect_pair(SOCK_STREAM);
	setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));
	(void)descriptors_may_come(pair[0]);
	ck_assert_int_eq(send(pair[1], "x", 1, 0), 1);
	ck_assert_int_eq(descriptors_receive(pair[0], true, bytes, sizeof(bytes)), 1);
}

TEST(the_kernel_refuses_them_where_it_can)
{
	int passes;
	socklen_t n = sizeof(passes);
	connect_pair(SOCK_STREAM);
	if (getsockopt(pair[0], SOL_SOCKET, SO_PASSRIGHTS, &passes, &n) < 0) {
		printf("SKIP the_kernel_refuses_them_where_it_can: needs Linux 6.16\n");
		return;
	}
	ck_assert(descriptors_may_come(pair[0])); /* there may be some already */
	ck_assert(!descriptors_may_come(pair[0]));
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec piece = {(void *)"x", 1};
	struct msghdr m = {.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	*CMSG_FIRSTHDR(&m) = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int))};
	ck_assert_int_eq(sendmsg(pair[1], &m, MSG_NOSIGNAL), -1);
	ck_assert_int_eq(errno, EPERM);
}
