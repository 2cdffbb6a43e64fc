/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Files that describe generated code while it is made: we continue reading where we ended. Some writers
 * begin again with all present code, in the same file. Then the bytes before that place are different, or
 * the file is shorter; all its code then counts as later than the code that was read before.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/namer/growing.h"

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
		*r = (struct read_mark){.n_rewrites = r->n_rewrites + 1};
}

void read_mark_take(struct read_mark *r, const char *bytes, size_t n)
{
	const size_t taken = n < sizeof(r->tail) ? n : sizeof(r->tail);
	size_t kept = sizeof(r->tail) - taken;

	if (kept > r->n_tail)
		kept = r->n_tail;
	memmove(r->tail, r->tail + r->n_tail - kept, kept);
	memcpy(r->tail + kept, bytes + n - taken, taken);
	r->n_tail = (uint8_t)(kept + taken);
}

/* FNV-1a: the same in each parser, unlike that of keys. Source:
 * https://datatracker.ietf.org/doc/html/draft-eastlake-fnv-17 */
static uint64_t hash_of(const uint8_t *tail, size_t n)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ tail[i]) * 0x100000001b3;
	return hash;
}

uint64_t read_mark_hash(const struct read_mark *r)
{
	return hash_of(r->tail, r->n_tail);
}

bool read_mark_holds(int fd, uint64_t at, uint64_t hash)
{
	uint8_t tail[sizeof(((struct read_mark *)NULL)->tail)];
	size_t n = at < sizeof(tail) ? (size_t)at : sizeof(tail);

	return at <= INT64_MAX && read_tail(fd, at, tail, n) == n && hash_of(tail, n) == hash;
}

void read_mark_note(struct read_mark *r, int fd, uint64_t at)
{
	size_t n = at < sizeof(r->tail) ? (size_t)at : sizeof(r->tail);

	r->at = at;
	r->n_tail = (uint8_t)read_tail(fd, at, r->tail, n);
	if (r->n_tail != n) /* it was cut just now */
		r->at = r->n_tail = 0;
}
