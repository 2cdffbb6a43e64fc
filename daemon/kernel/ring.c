/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Records are read where the kernel wrote them. Only a record that wraps around the end is copied, into
 * a buffer as large as the largest record, allocated when the first record wraps.
 *
 * The kernel keeps the ring well-formed, but a ring may also come from a file. There, we would read
 * forever at a size of 0, and beyond the map at a size beyond the head. So we use no header before its
 * size was compared with the data that is there.
 */
#include "daemon/kernel/ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(struct perf_event_header) == 8, "type, misc, size");

static struct perf_event_mmap_page *control(const struct ring *r)
{
	return r->map;
}

/* Since Linux 4.1 the kernel gives the data offset. Source: man perf_event_open, data_offset. */
static const uint8_t *data(const struct ring *r)
{
	uint64_t offset = control(r)->data_offset;
	if (!offset)
		offset = (uint64_t)sysconf(_SC_PAGESIZE);
	return (const uint8_t *)r->map + offset;
}

/* Copy n bytes from position at, wrapping at the end. n ≤ data_bytes. */
static void copy_out(const struct ring *r, uint64_t at, void *to, size_t n)
{
	size_t start = (size_t)(at & (r->data_bytes - 1));
	size_t first = r->data_bytes - start;
	if (first > n)
		first = n;
	memcpy(to, data(r) + start, first);
	memcpy((uint8_t *)to + first, data(r), n - first);
}

void ring_snapshot(struct ring *r)
{
	if (r->map)
		r->head = __atomic_load_n(&control(r)->data_head, __ATOMIC_ACQUIRE);
}

static int broken(struct ring *r)
{
	r->tail = r->head;
	r->peeked = 0;
	return RING_BROKEN;
}

int ring_peek(struct ring *r, const uint8_t **ret_bytes, size_t *ret_n)
{
	if (!r->map || r->tail == r->head)
		return RING_EMPTY;
	uint64_t there = r->head - r->tail;
	struct perf_event_header header;
	if (there > r->data_bytes || there < sizeof(header))
		return broken(r);
	copy_out(r, r->tail, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size > there)
		return broken(r);

	size_t start = (size_t)(r->tail & (r->data_bytes - 1));
	const uint8_t *bytes = data(r) + start;
	r->wraps = header.size > r->data_bytes - start;
	if (r->wraps) {
		if (!r->wrapped)
			r->wrapped = malloc(RECORD_BYTES_MAX + 1);
		if (!r->wrapped)
			return -ENOMEM;
		copy_out(r, r->tail, r->wrapped, header.size);
		bytes = r->wrapped;
	}
	r->peeked = header.size;
	*ret_bytes = bytes;
	*ret_n = header.size;
	return 0;
}

/* The kernel's pages cannot be written to. */
void ring_advance(struct ring *r)
{
	if (r->wraps && r->peeked)
		explicit_bzero(r->wrapped, r->peeked); /* a copied stack holds secrets */
	r->tail += r->peeked;
	r->peeked = 0;
}

void ring_release(struct ring *r)
{
	if (r->map)
		__atomic_store_n(&control(r)->data_tail, r->tail, __ATOMIC_RELEASE);
}

void ring_clear(struct ring *r)
{
	free(r->wrapped);
	*r = (struct ring){.fd = -1};
}
