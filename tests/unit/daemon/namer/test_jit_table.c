/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Unwinding records of jitdump: as CPython and V8 write them, of code that moves and is replaced, and forged. */

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "daemon/unwind/table.h"
#include "tests/unit/test.h"

#define TABLE_BYTES_MAX (1u << 20)
#define HEAD_BYTES 20u /* .eh_frame_hdr */

/* Recorded: CPython 3.13.0, a trampoline of 11 bytes: sub $8,%rsp; call *%rcx; add $8,%rsp; ret. */
static const uint8_t cpython[] = {0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 0x10, 1, 0x1b,
	0x0c, 7, 8, 0x90, 1, 0, 0, 0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff, 0x0b, 0, 0,
	0, 0, 0x44, 0x0e, 0x10, 0x46, 0x0e, 8, 0, /* and .eh_frame_hdr: */ 1, 0x1b, 3, 0x3b, 0xcc,
	0xff, 0xff, 0xff, 1, 0, 0, 0, 0xc0, 0xff, 0xff, 0xff, 0xe8, 0xff, 0xff, 0xff};
#define CPYTHON_BYTES 11u

/* Recorded: V8 11.3 (node 20), optimised code of 784 bytes, of which 781 are instructions. */
static const uint8_t v8[] = {0x18, 0, 0, 0, 0, 0, 0, 0, 3, 'z', 'L', 'R', 0, 1, 0x78, 0x10, 2, 0xff,
	0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0x20, 0, 0, 0, 0x20, 0, 0, 0, 0xcc, 0xfc, 0xff, 0xff,
	0x0d, 3, 0, 0, 0, 0x4f, 0x0e, 0x10, 0x86, 2, 0x43, 0x0d, 6, 2, 0x56, 0x0d, 7, 0x41, 0x0e, 8,
	0x52, 0x0c, 6, 0x10, 0, 0, 0, 0, /* and .eh_frame_hdr: */ 1, 0x1b, 3, 0x3b, 0xb8, 0xff,
	0xff, 0xff, 1, 0, 0, 0, 0xac, 0xfc, 0xff, 0xff, 0xd8, 0xff, 0xff, 0xff};
#define V8_BYTES 784u

struct dump {
	uint8_t bytes[65536];
	size_t n;
};

static void put(struct dump *d, const void *bytes, size_t n)
{
	ck_assert_uint_le(d->n + n, sizeof(d->bytes));
	memcpy(d->bytes + d->n, bytes, n);
	d->n += n;
}

static void put_header(struct dump *d, uint32_t machine)
{
	const uint32_t word[] = {0x4A695444, 1, 40, machine, 0, 1234, 0, 0, 0, 0};

	d->n = 0;
	put(d, word, sizeof(word));
}

static void put_unwinding(struct dump *d, const uint8_t *bytes, size_t n, size_t n_head)
{
	const size_t padded = (n + 15) & ~(size_t)15;
	const uint32_t prefix[] = {4, (uint32_t)(40 + padded), 0, 0};
	const uint64_t sizes[] = {n, n_head, padded};
	static const uint8_t padding[16];

	put(d, prefix, sizeof(prefix));
	put(d, sizes, sizeof(sizes));
	put(d, bytes, n);
	put(d, padding, padded - n);
}

static void put_load(struct dump *d, uint64_t addr, uint64_t size, uint64_t index)
{
	static uint8_t code[1024];
	const uint32_t prefix[] = {0, (uint32_t)(56 + 2 + size), 0, 0, 1234, 1234};
	const uint64_t rest[] = {addr, addr, size, index};
	const char name[2] = {(char)('a' + index % 20)};

	put(d, prefix, sizeof(prefix));
	put(d, rest, sizeof(rest));
	put(d, name, sizeof(name));
	put(d, code, size);
}

static void put_trampoline(struct dump *d, uint64_t addr, uint64_t index)
{
	put_unwinding(d, cpython, sizeof(cpython), HEAD_BYTES);
	put_load(d, addr, CPYTHON_BYTES, index);
}

static void put_move(struct dump *d, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	const uint32_t prefix[] = {1, 64, 0, 0, 1234, 1234};
	const uint64_t rest[] = {to, from, to, size, index};

	put(d, prefix, sizeof(prefix));
	put(d, rest, sizeof(rest));
}

static struct image *image;
static struct unwind_table *table;
static int fd;

static void setup(void)
{
	image = NULL;
	table = NULL;
	fd = memfd_create("jitdump", MFD_CLOEXEC);
	ck_assert_int_ge(fd, 0);
}

static void teardown(void)
{
	image_free(image);
	free(table);
	close(fd);
}

EACH_TEST(.begin = setup, .end = teardown);

/* Write the first n bytes of the dump, and make the table of what is there. */
static int make_of(const struct dump *d, size_t n)
{
	ck_assert_int_eq(pwrite(fd, d->bytes, n, 0), (ssize_t)n);
	ck_assert_int_eq(image ? image_read_on(image, fd) : image_open_jitdump(fd, &image), 0);
	free(table);
	table = NULL;
	int r = image_table(image, EM_X86_64, TABLE_BYTES_MAX, &table);
	ck_assert(r < 0 || unwind_table_check_counts(table) == 0);
	ck_assert(r < 0 || unwind_table_check(table) == 0);
	return r;
}

static void make(const struct dump *d)
{
	ck_assert_int_eq(make_of(d, d->n), 0);
}

/* CFA = sp + this many bytes; 0: not described; -1: fp. */
static int cfa_at(uint64_t addr)
{
	const struct unwind_rule *rule = unwind_table_at(table, addr);

	if (!rule)
		return 0;
	ck_assert_int_eq(rule->ra, UNWIND_AT_CFA);
	ck_assert_int_eq(rule->ra_offset, -8);
	return rule->cfa == UNWIND_IN_FP ? -1 : rule->cfa_offset;
}

static void check_trampoline(uint64_t addr)
{
	ck_assert_int_eq(cfa_at(addr - 1), 0);
	ck_assert_int_eq(cfa_at(addr), 8);
	ck_assert_int_eq(cfa_at(addr + 3), 8);
	ck_assert_int_eq(cfa_at(addr + 4), 16);
	ck_assert_int_eq(cfa_at(addr + 9), 16);
	ck_assert_int_eq(cfa_at(addr + 10), 8);
	ck_assert_int_eq(cfa_at(addr + 11), 0);
}

/* CPython leaves the machine 0. */
TEST(code_of_cpython_is_described, .times = 2)
{
	struct dump d;

	put_header(&d, _i ? EM_X86_64 : 0);
	put_trampoline(&d, 0x7faf32beb110, 1);
	put_trampoline(&d, 0x7faf32beb220, 2);
#if !defined(__x86_64__)
	if (!_i)
		return; /* it is taken for the machine that this is */
#endif
	make(&d);
	check_trampoline(0x7faf32beb110);
	check_trampoline(0x7faf32beb220);
	ck_assert_uint_eq(table->n_segments, 1);
}

TEST(code_of_v8_is_described)
{
	struct dump d;
	const uint64_t at = 0x7ff0befc6200;

	put_header(&d, EM_X86_64);
	put_unwinding(&d, v8, sizeof(v8), HEAD_BYTES);
	put_load(&d, at, V8_BYTES, 1);
	make(&d);
	ck_assert_int_eq(cfa_at(at), 8);
	ck_assert_int_eq(cfa_at(at + 15), 16);
	ck_assert_int_eq(cfa_at(at + 18), -1);
	ck_assert_int_eq(cfa_at(at + 18 + 0x56), 16);
	ck_assert_int_eq(cfa_at(at + 19 + 0x56), 8);
	ck_assert_int_eq(cfa_at(at + 780), -1);
	ck_assert_int_eq(cfa_at(at + 781), 0);
}

TEST(code_that_is_not_described_has_no_table)
{
	struct dump d;

	put_header(&d, EM_X86_64);
	put_unwinding(&d, v8 + sizeof(v8) - HEAD_BYTES, HEAD_BYTES, HEAD_BYTES); /* V8's, of none */
	put_load(&d, 0x1000, 16, 1);
	ck_assert_int_eq(make_of(&d, d.n), -EBADMSG);
}

TEST(a_description_is_of_the_next_code_alone)
{
	struct dump d;

	put_header(&d, EM_X86_64);
	put_trampoline(&d, 0x1000, 1);
	put_load(&d, 0x2000, CPYTHON_BYTES, 2);
	make(&d);
	check_trampoline(0x1000);
	ck_assert_int_eq(cfa_at(0x2004), 0);
}

/* Also if that code has no name, has no place, or is no code; or if another description cannot be read. */
TEST(a_description_is_not_left_for_later_code, .times = 4)
{
	struct dump d;
	const uint64_t nowhere = UINT64_MAX - 1;
	const uint32_t none = 4, short_bytes = 16;

	put_header(&d, EM_X86_64);
	put_trampoline(&d, 0x1000, 1);
	put_unwinding(&d, cpython, sizeof(cpython), HEAD_BYTES);
	const size_t load = d.n;
	if (_i < 3)
		put_load(&d, 0x3000, CPYTHON_BYTES, 2);
	if (_i == 0) /* its name does not end */
		memset(d.bytes + load + 56, 'x', 2 + CPYTHON_BYTES);
	if (_i == 1)
		memcpy(d.bytes + load + 32, &nowhere, sizeof(nowhere));
	if (_i == 2) { /* shorter than a LOAD */
		memcpy(d.bytes + load + 4, &short_bytes, sizeof(short_bytes));
		d.n = load + short_bytes;
	}
	if (_i == 3) { /* shorter than an UNWINDING_INFO */
		const uint32_t record[] = {none, short_bytes, 0, 0};
		put(&d, record, sizeof(record));
	}
	put_load(&d, 0x2000, CPYTHON_BYTES, 3);
	make(&d);
	check_trampoline(0x1000);
	ck_assert_int_eq(cfa_at(0x2004), 0);
}

/* Its relative address, which holds at a multiple of eight behind the code, misses it. */
TEST(a_description_of_other_code_is_not_used)
{
	struct dump d;

	put_header(&d, EM_X86_64);
	put_unwinding(&d, cpython, sizeof(cpython), HEAD_BYTES);
	put_load(&d, 0x1000, 64, 1);
	ck_assert_int_eq(make_of(&d, d.n), 0);
	ck_assert_int_eq(cfa_at(0x1000), 0);
	ck_assert_int_eq(cfa_at(0x1000 + 48 + 4),
		16); /* it says so: within its own code, a hostile program may lie */
	put_header(&d, EM_X86_64);
	put_unwinding(&d, cpython, sizeof(cpython), HEAD_BYTES);
	put_load(&d, 0x8000, 1, 2);
	image = image_free(image);
	ck_assert_int_eq(make_of(&d, d.n), -EBADMSG);
}

TEST(code_that_moves_keeps_its_description)
{
	struct dump d;

	put_header(&d, EM_X86_64);
	put_trampoline(&d, 0x1000, 1);
	put_move(&d, 0x1000, 0x9000, CPYTHON_BYTES, 1);
	put_load(&d, 0x1000, CPYTHON_BYTES, 2);
	make(&d);
	check_trampoline(0x9000);
	ck_assert_int_eq(cfa_at(0x1004), 0);
}

/* .eh_frame of 16 KiB of code, with rows at 0, 0x400, 0x800 and 0x2000. */
static const uint8_t large[] = {0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 0x10, 1, 0x1b,
	0x0c, 7, 8, 0x90, 1, 0, 0, 0x1c, 0, 0, 0, 0x1c, 0, 0, 0, 0xe0, 0xbf, 0xff, 0xff, 0, 0x40, 0,
	0, 0, 3, 0, 4, 0x0e, 16, 3, 0, 4, 0x0e, 24, 3, 0, 0x18, 0x0e, 32, 0, 0};
#define LARGE_BYTES 0x4000u

/* The bytes of its code, which nobody reads, are left out. */
static void put_large(struct dump *d, uint64_t addr, uint64_t index)
{
	put_unwinding(d, large, sizeof(large), 0);
	const size_t load = d->n;
	put_load(d, addr, 0, index);
	const uint64_t size = LARGE_BYTES;
	memcpy(d->bytes + load + 40, &size, sizeof(size));
}

/* To the last addresses, where not all of its rows have room. */
TEST(code_that_moves_may_end_before_its_description)
{
	struct dump d;
	const uint64_t at = UINT64_MAX - 0xfff;

	put_header(&d, EM_X86_64);
	put_large(&d, 0x10000, 1);
	put_move(&d, 0x10000, at, 0xfff, 1);
	make(&d);
	ck_assert_int_eq(cfa_at(at - 1), 0);
	ck_assert_int_eq(cfa_at(at), 8);
	ck_assert_int_eq(cfa_at(at + 0x400), 16);
	ck_assert_int_eq(cfa_at(at + 0xffe), 24);
	ck_assert_int_eq(cfa_at(at + 0xfff), 0);
	ck_assert_int_eq(cfa_at(0x12000), 32);
}

TEST(newer_code_hides_what_it_covers)
{
	struct dump d;

	put_header(&d, EM_X86_64);
	put_unwinding(&d, v8, sizeof(v8), HEAD_BYTES);
	put_load(&d, 0x10000, V8_BYTES, 1);
	put_trampoline(&d, 0x10100, 2);
	put_load(&d, 0x10200, 16, 3);
	make(&d);
	ck_assert_int_eq(cfa_at(0x100ff), -1);
	ck_assert_int_eq(cfa_at(0x10104), 16);
	ck_assert_int_eq(cfa_at(0x1010b), -1);
	ck_assert_int_eq(cfa_at(0x101ff), -1);
	ck_assert_int_eq(cfa_at(0x10200), 0);
	ck_assert_int_eq(cfa_at(0x10210), -1);
}

/* More places than there are segments, then all over the address space. */
TEST(code_far_apart_shares_segments, .times = 2)
{
	struct dump d;
	const uint64_t apart = _i ? UINT64_C(1) << 40 : UINT64_C(4) << 20;

	put_header(&d, EM_X86_64);
	for (uint64_t i = 0; i < UNWIND_SEGMENTS_MAX + 8; i++)
		put_trampoline(&d, 0x1000 + apart * i, i);
	if (_i) {
		ck_assert_int_eq(make_of(&d, d.n), -E2BIG);
		return;
	}
	make(&d);
	for (uint64_t i = 0; i < UNWIND_SEGMENTS_MAX + 8; i++)
		check_trampoline(0x1000 + apart * i);
	ck_assert_uint_lt(unwind_table_bytes(table), 100000);
}

TEST(a_description_may_come_before_its_code_is_written)
{
	struct dump d;

	put_header(&d, EM_X86_64);
	put_trampoline(&d, 0x1000, 1);
	const size_t first = d.n;
	put_trampoline(&d, 0x2000, 2);
	for (size_t n = first; n < d.n; n++) {
		setup();
		ck_assert_int_eq(make_of(&d, n), 0);
		check_trampoline(0x1000);
		make(&d);
		check_trampoline(0x2000);
		teardown();
	}
	setup();
}

TEST(a_table_of_another_machine_is_not_made)
{
	struct dump d;

	put_header(&d, EM_S390);
	put_trampoline(&d, 0x1000, 1);
	ck_assert_int_eq(make_of(&d, d.n), -EBADMSG);
	put_header(&d, EM_AARCH64);
	put_trampoline(&d, 0x1000, 1);
	image = image_free(image);
	ck_assert_int_eq(make_of(&d, d.n), -EBADMSG);
}

TEST(sizes_that_exceed_the_record_are_not_believed, .times = 6)
{
	static const uint64_t sizes[][2] = {
		{UINT64_MAX, 20}, {68, UINT64_MAX}, {1000, 20}, {68, 68}, {0, 0}, {20, 68}};
	struct dump d;

	put_header(&d, EM_X86_64);
	put_trampoline(&d, 0x1000, 1);
	put_trampoline(&d, 0x2000, 2);
	memcpy(d.bytes + 40 + 16, sizes[_i], sizeof(sizes[_i]));
	make(&d);
	ck_assert_int_eq(cfa_at(0x1004), 0);
	check_trampoline(0x2000);
}

TEST(any_single_byte_may_be_wrong)
{
	struct dump d;

	put_header(&d, EM_X86_64);
	put_unwinding(&d, v8, sizeof(v8), HEAD_BYTES);
	put_load(&d, 0x1000, V8_BYTES, 1);
	put_trampoline(&d, 0x2000, 2);
	for (size_t i = 40; i < d.n; i++)
		for (int with = 0; with < 3; with++) {
			struct dump bad = d;
			bad.bytes[i] = (uint8_t)(with ? 0xff * (with - 1) : d.bytes[i] ^ 0x80);
			setup();
			(void)make_of(&bad, bad.n);
			teardown();
		}
	setup();
}
