/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The opener's loop: requests in, descriptors out. */

#include "daemon/namer/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/memory.h"

int opener_decode(const void *bytes, size_t n, struct opener_question *ret_question)
{
	struct message_open o;

	if (n < sizeof(o))
		return -EBADMSG;
	memcpy(&o, bytes, sizeof(o));
	if (o.head.type != MESSAGE_OPEN || o.part >= N_PARTS || o.n_path > MESSAGE_PATH_BYTES_MAX ||
		o.n_link > MESSAGE_LINK_BYTES_MAX || o.fetched > 1 ||
		o.n_build_id > sizeof(o.build_id) || n != sizeof(o) + o.n_path + o.n_link)
		return -EBADMSG;

	const char *strings = (const char *)bytes + sizeof(o);
	if (memchr(strings, 0, (size_t)o.n_path + o.n_link))
		return -EBADMSG;
	ret_question->open = o;
	memcpy(ret_question->path, strings, o.n_path);
	ret_question->path[o.n_path] = 0;
	memcpy(ret_question->link, strings + o.n_path, o.n_link);
	ret_question->link[o.n_link] = 0;
	return 0;
}

static int answer(int socket, uint32_t serial, struct opener_answer *a)
{
	size_t n_path = a->fd >= 0 ? strnlen(a->path, sizeof(a->path)) : 0;
	struct message_opened m = {
		.head = {.magic = MESSAGE_MAGIC,
			.type = MESSAGE_OPENED,
			.serial = serial,
			.bytes = (uint32_t)(sizeof(m) + n_path)},
		.state = a->state,
		.error = a->error,
		.first = a->first,
		.copied = a->copied,
		.bytes = a->bytes,
		.written_ns = a->written_ns,
		.status_ns = a->status_ns,
		.inode = a->inode,
		.major = a->major,
		.minor = a->minor,
		.changed_ns = a->changed_ns,
		.owner = a->owner,
		.sole = a->sole,
		.leaves = a->leaves,
		.n_path = (uint32_t)n_path,
	};
	struct iovec iov[] = {{&m, sizeof(m)}, {a->path, n_path}};
	int r = message_send(socket, iov, n_path ? 2 : 1, a->fd);

	if (a->fd >= 0)
		close(a->fd);
	return r;
}

int opener_run(int socket, struct mapped *mapped)
{
	_cleanup_(freep) uint8_t *buffer = malloc(MESSAGE_BYTES_MAX);
	_cleanup_(freep) struct opener_question *q = calloc(1, sizeof(*q));
	_cleanup_(freep) struct opener_answer *a = calloc(1, sizeof(*a));

	if (!buffer || !q || !a)
		return -ENOMEM;
	for (;;) {
		ssize_t n = message_receive(socket, buffer, MESSAGE_BYTES_MAX, 0, NULL);
		if (n <= 0)
			return (int)n;
		int r = opener_decode(buffer, (size_t)n, q);
		if (r < 0)
			return r;
		opener_find(q, mapped, a);
		r = answer(socket, q->open.head.serial, a);
		if (r < 0)
			return r;
	}
}
