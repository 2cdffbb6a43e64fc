/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rings of a few bytes, so that every record meets the end of the ring in every way it can, and
 * rings that no kernel would write.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include "daemon/kernel/ring.h"
#include "tests/unit/test.h"

/* A ring whose data lies right behind its control page's struct. */
static struct ring ring_make(size_t data_bytes)
{
	struct perf_event_mmap_page *page = calloc(1, sizeof(*page) + data_bytes);
	ck_assert_ptr_nonnull(page);
	page->data_offset = sizeof(*page);
	return (struct ring){.map = page, .data_bytes = data_bytes, .fd = -1};
}

static void ring_drop(struct ring *r)
{
	free(r->map);
	ring_clear(r);
	ck_assert_ptr_null(r->map);
	ck_assert_int_eq(r->fd, -1);
}

static struct perf_event_mmap_page *page_of(struct ring *r)
{
	return r->map;
}

/* Write as the kernel does: bytes around the end, then data_head. */
static void put(struct ring *r, const void *bytes, size_t n)
{
	struct perf_event_mmap_page *page = page_of(r);
	uint8_t *data = (uint8_t *)page + page->data_offset;
	for (size_t i = 0; i < n; i++)
		data[(page->data_head + i) % r->data_bytes] = ((const uint8_t *)bytes)[i];
	page->data_head += n;
}

/* A record of size bytes, filled with its type. */
static void put_record(struct ring *r, uint8_t type, uint16_t size)
{
	_Alignas(8) static uint8_t record[RECORD_BYTES_MAX + 1];
	struct perf_event_header header = {.type = type, .size = size};
	memset(record, type, size);
	memcpy(record, &header, sizeof(header));
	put(r, record, size);
}

static void expect(struct ring *r, uint8_t type, uint16_t size)
{
	const uint8_t *bytes = NULL;
	size_t n = 0;
	ck_assert_int_eq(ring_peek(r, &bytes, &n), 0);
	struct perf_event_header header;
	ck_assert_uint_eq(n, size);
	memcpy(&header, bytes, sizeof(header));
	ck_assert_uint_eq(header.type, type);
	ck_assert_uint_eq(header.size, size);
	for (size_t i = sizeof(header); i < n; i++)
		ck_assert_uint_eq(bytes[i], type);
}

static int peek(struct ring *r)
{
	const uint8_t *bytes = (const uint8_t *)"untouched";
	size_t n = 77;
	int outcome = ring_peek(r, &bytes, &n);
	ck_assert(outcome == 0 || (n == 77 && strcmp((const char *)bytes, "untouched") == 0));
	return outcome;
}

TEST(an_empty_ring_is_empty)
{
	struct ring r = ring_make(64);
	ck_assert_int_eq(peek(&r), RING_EMPTY);
	ring_snapshot(&r);
	ck_assert_int_eq(peek(&r), RING_EMPTY);
	ring_advance(&r);
	ck_assert_uint_eq(r.tail, 0);
	ring_drop(&r);
}

TEST(a_closed_ring_is_empty)
{
	struct ring r = {.fd = -1};
	ring_snapshot(&r);
	ck_assert_int_eq(peek(&r), RING_EMPTY);
	ring_release(&r);
	ring_clear(&r);
}

TEST(records_wrap_at_every_offset)
{
	for (uint64_t start = 0; start < 64; start += 8)
		for (uint16_t size = 8; size <= 64; size += 8) {
			struct ring r = ring_make(64);
			r.tail = page_of(&r)->data_head = start;
			put_record(&r, 5, size);
			ring_snapshot(&r);
			expect(&r, 5, size);
			expect(&r, 5, size); /* peeking takes nothing */
			ring_advance(&r);
			ck_assert_int_eq(peek(&r), RING_EMPTY);
			ring_drop(&r);
		}
}

TEST(a_record_that_does_not_wrap_is_read_in_place)
{
	struct ring r = ring_make(64);
	put_record(&r, 1, 64);
	ring_snapshot(&r);
	const uint8_t *bytes;
	size_t n;
	ck_assert_int_eq(ring_peek(&r, &bytes, &n), 0);
	ck_assert_ptr_eq(bytes, (uint8_t *)r.map + page_of(&r)->data_offset);
	ck_assert_ptr_null(r.wrapped);
	ring_drop(&r);
}

TEST(the_largest_record_wraps_whole)
{
	struct ring r = ring_make(1u << 17);
	r.tail = page_of(&r)->data_head = (1u << 17) - 8;
	put_record(&r, 9, 65528);
	ring_snapshot(&r);
	expect(&r, 9, 65528);
	ring_drop(&r);
}

TEST(records_beyond_the_snapshot_wait_for_the_next)
{
	struct ring r = ring_make(64);
	put_record(&r, 1, 16);
	ring_snapshot(&r);
	put_record(&r, 2, 16);
	expect(&r, 1, 16);
	ring_advance(&r);
	ck_assert_int_eq(peek(&r), RING_EMPTY);
	ring_snapshot(&r);
	expect(&r, 2, 16);
	ring_drop(&r);
}

TEST(space_is_given_back_at_release_only)
{
	struct ring r = ring_make(64);
	put_record(&r, 1, 24);
	put_record(&r, 2, 16);
	ring_snapshot(&r);
	expect(&r, 1, 24);
	ring_advance(&r);
	ck_assert_uint_eq(page_of(&r)->data_tail, 0);
	ring_release(&r);
	ck_assert_uint_eq(page_of(&r)->data_tail, 24);
	expect(&r, 2, 16);
	ring_advance(&r);
	ring_advance(&r); /* nothing was peeked: no step */
	ring_release(&r);
	ck_assert_uint_eq(page_of(&r)->data_tail, 40);
	ring_drop(&r);
}

TEST(positions_wrap_around_64_bits)
{
	struct ring r = ring_make(64);
	r.tail = page_of(&r)->data_head = UINT64_MAX - 7;
	put_record(&r, 3, 24);
	put_record(&r, 4, 24);
	ring_snapshot(&r);
	expect(&r, 3, 24);
	ring_advance(&r);
	expect(&r, 4, 24);
	ring_advance(&r);
	ck_assert_int_eq(peek(&r), RING_EMPTY);
	ring_drop(&r);
}

TEST(a_kernel_that_tells_no_offset_has_a_page_before_the_data)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *page = aligned_alloc(page_bytes, page_bytes * 2);
	ck_assert_ptr_nonnull(page);
	memset(page, 0, page_bytes * 2);
	struct perf_event_header header = {.type = 6, .size = 8};
	memcpy((uint8_t *)page + page_bytes, &header, sizeof(header));
	page->data_head = 8;
	struct ring r = {.map = page, .data_bytes = page_bytes, .fd = -1};
	ring_snapshot(&r);
	expect(&r, 6, 8);
	ring_drop(&r);
}

/* The ring must be reset to its head, and go on with what comes next. */
static void expect_broken(struct ring *r)
{
	ring_snapshot(r);
	ck_assert_int_eq(peek(r), RING_BROKEN);
	ck_assert_int_eq(peek(r), RING_EMPTY);
	ring_advance(r);
	ck_assert_uint_eq(r->tail, r->head);
	ring_release(r);
	put_record(r, 8, 16);
	ring_snapshot(r);
	expect(r, 8, 16);
	ring_drop(r);
}

TEST(a_header_of_size_0_breaks_the_ring)
{
	struct ring r = ring_make(64);
	put(&r, &(struct perf_event_header){.type = 1, .size = 0}, 8);
	expect_broken(&r);
}

TEST(a_header_smaller_than_a_header_breaks_the_ring)
{
	struct ring r = ring_make(64);
	put(&r, &(struct perf_event_header){.type = 1, .size = 7}, 8);
	expect_broken(&r);
}

TEST(a_header_beyond_the_head_breaks_the_ring)
{
	struct ring r = ring_make(64);
	put(&r, &(struct perf_event_header){.type = 1, .size = 9}, 8);
	expect_broken(&r);
	r = ring_make(64);
	put(&r, &(struct perf_event_header){.type = 1, .size = UINT16_MAX}, 8);
	expect_broken(&r);
}

TEST(half_a_header_breaks_the_ring)
{
	for (size_t n = 1; n < 8; n++) {
		struct ring r = ring_make(64);
		put(&r, &(struct perf_event_header){.type = 1, .size = 8}, n);
		expect_broken(&r);
	}
}

TEST(a_head_beyond_the_ring_breaks_it)
{
	struct ring r = ring_make(64);
	put_record(&r, 1, 16);
	page_of(&r)->data_head = 65;
	expect_broken(&r);
	r = ring_make(64);
	r.tail = 8; /* a head that went backwards */
	expect_broken(&r);
}

TEST(any_first_header_is_survived)
{
	for (uint32_t size = 0; size <= UINT16_MAX; size++) {
		struct ring r = ring_make(64);
		r.tail = page_of(&r)->data_head = 40;
		put_record(&r, 1, 48);
		uint8_t *data = (uint8_t *)r.map + page_of(&r)->data_offset;
		uint16_t small = (uint16_t)size;
		memcpy(data + 40 + offsetof(struct perf_event_header, size), &small, sizeof(small));
		ring_snapshot(&r);
		ck_assert_int_eq(peek(&r), size >= 8 && size <= 48 ? 0 : RING_BROKEN);
		ring_drop(&r);
	}
}
