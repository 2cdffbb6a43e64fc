/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The parser's loop. A file is received first and parsed only when a name in it is requested, since
 * unwinding needs many files of which few are ever named. Requests come from our own daemon but are
 * checked anyway: a malformed one ends the parser, which the daemon notices and counts.
 */
#include "daemon/namer/parser.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/parser_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Longer than an image must be idle, so that it is noticed. */
#define RUN_IDLE_MS 6000

static int add_file(struct parser *p, uint32_t id, int fd, struct parsed_file **ret_file)
{
	parser_forget_file(p, id); /* a new descriptor for an old id: the daemon opened it again */
	if (p->n_files == PARSER_FILES_MAX)
		return -ENFILE;
	p->file[p->n_files] = (struct parsed_file){
		.id = id, .fd = {fd, -1, -1, -1, -1}, .used = ++p->clock, .used_ns = p->now_ns};
	*ret_file = &p->file[p->n_files++];
	return 0;
}

static int take_file(struct parser *p, const void *bytes, size_t n, int fd)
{
	_cleanup_(closep) int given = fd;
	struct message_file m;

	if (n != sizeof(m) || given < 0)
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.file == 0 || m.part >= N_PARTS)
		return -EBADMSG;

	struct parsed_file *f = NULL;
	if (m.part == PART_MAIN) {
		int r = add_file(p, m.file, given, &f);
		if (r == 0)
			TAKE_FD(given);
		return parser_done(p, &m.head, r);
	}
	f = parser_file(p, m.file);
	if (m.part == PART_SPLIT)
		return parser_add_split(p, &m, f, given);
	if (f && f->image && f->fd[m.part] < 0)
		f->fd[m.part] = TAKE_FD(given);
	return parser_add_part(p, &m, f);
}

static int take_forget(struct parser *p, const void *bytes, size_t n)
{
	struct message_file m;

	if (n != sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	parser_forget_file(p, m.file);
	return parser_done(p, &m.head, 0);
}

int parser_take(struct parser *p, const void *bytes, size_t n, int fd)
{
	_cleanup_(closep) int given = fd;
	struct message head;

	if (n < sizeof(head))
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	switch (head.type) {
	case MESSAGE_FILE:
		return take_file(p, bytes, n, TAKE_FD(given));
	case MESSAGE_FORGET:
		return take_forget(p, bytes, n);
	case MESSAGE_LOAD:
		return parser_take_load(p, bytes, n);
	case MESSAGE_NAME:
		return parser_take_name(p, bytes, n);
	case MESSAGE_GROW:
		return parser_take_grow(p, bytes, n);
	case MESSAGE_TABLE:
		return parser_take_table(p, bytes, n);
	case MESSAGE_SPACE:
		return parser_take_space(p, bytes, n);
	case MESSAGE_UNWIND:
		return parser_take_unwind(p, bytes, n);
	}
	return -EBADMSG;
}

int parser_new(parser_send *send, void *userdata, struct parser **ret_parser)
{
	struct parser *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->send = send;
	p->userdata = userdata;
	*ret_parser = p;
	return 0;
}

struct parser *parser_free(struct parser *p)
{
	if (!p)
		return NULL;
	parser_forget_spaces_of(p, 0);
	free(p->arriving.map);
	for (uint32_t i = 0; i < p->n_files; i++)
		parser_file_clear(&p->file[i]);
	kallsyms_unref(p->kallsyms);
	free(p);
	return NULL;
}

DEFINE_CLEANUP(struct parser *, parser_free)

static int send_to_socket(void *userdata, const void *bytes, size_t n)
{
	struct iovec iov = {(void *)bytes, n};

	return message_send(*(int *)userdata, &iov, 1, -1);
}

/* Wait for a request. If none comes, the parser releases memory, and then sleeps. */
static void wait_for_request(struct parser *p, int socket)
{
	struct pollfd fd = {.fd = socket, .events = POLLIN};
	int idle_ms = RUN_IDLE_MS;

	while (poll(&fd, 1, idle_ms) == 0) {
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
		idle_ms = parser_rest(p, now_ns) ? RUN_IDLE_MS : parser_rest_ms(p, now_ns);
	}
}

int parser_run(int socket)
{
	_cleanup_(freep) uint8_t *buffer = malloc(MESSAGE_BYTES_MAX);
	_cleanup_(parser_freep) struct parser *p = NULL;
	int r = buffer ? parser_new(send_to_socket, &socket, &p) : -ENOMEM;

	while (r == 0) {
		int fd = -1;
		wait_for_request(p, socket);
		ssize_t n = message_receive(socket, buffer, MESSAGE_BYTES_MAX, 0, &fd);
		if (n <= 0)
			return (int)n;
		p->now_ns = clock_ns(CLOCK_MONOTONIC);
		r = parser_take(p, buffer, (size_t)n, fd);
		explicit_bzero(buffer, (size_t)n); /* a stack holds secrets */
		if (r == 0)
			parser_rest(p, p->now_ns);
	}
	return r;
}
