/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Files that describe generated code while it is made: they are read on where reading ended. Some
 * writers begin anew with all that there is at present, in the same file. That shows in the bytes
 * before that place, or in a shorter file; what it says is then taken as said later than all before.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/namer/image_private.h"

static size_t read_tail(int fd, uint64_t at, uint8_t *tail, size_t n)
{
	ssize_t got;

	do
		got = pread(fd, tail, n, (off_t)(at - n));
	while (got < 0 && errno == EINTR);
	return got < 0 ? 0 : (size_t)got;
}

void read_mark_check(struct read_mark *r, int fd)
{
	uint8_t tail[sizeof(r->tail)];

	if (read_tail(fd, r->at, tail, r->n_tail) != r->n_tail ||
		memcmp(tail, r->tail, r->n_tail) != 0)
		*r = (struct read_mark){.n_anew = r->n_anew + 1};
}

void read_mark_note(struct read_mark *r, int fd, uint64_t at)
{
	size_t n = at < sizeof(r->tail) ? (size_t)at : sizeof(r->tail);

	r->at = at;
	r->n_tail = (uint8_t)read_tail(fd, at, r->tail, n);
	if (r->n_tail != n) /* it was cut just now */
		r->at = r->n_tail = 0;
}
