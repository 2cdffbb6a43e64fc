/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* jitdump files of either byte order, whole, half written and forged. */

#include <byteswap.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "tests/unit/test.h"

struct dump {
	uint8_t bytes[16384];
	size_t n;
	bool swapped;
};

static void put_u32(struct dump *d, uint32_t value)
{
	value = d->swapped ? bswap_32(value) : value;
	memcpy(d->bytes + d->n, &value, 4);
	d->n += 4;
}

static void put_u64(struct dump *d, uint64_t value)
{
	value = d->swapped ? bswap_64(value) : value;
	memcpy(d->bytes + d->n, &value, 8);
	d->n += 8;
}

static void put_text(struct dump *d, const char *text)
{
	memcpy(d->bytes + d->n, text, strlen(text) + 1);
	d->n += strlen(text) + 1;
}

static void put_header(struct dump *d)
{
	put_u32(d, 0x4A695444);
	put_u32(d, 1);
	put_u32(d, 40);
	put_u32(d, 62);
	put_u32(d, 0);
	put_u32(d, 1234);
	put_u64(d, 1);
	put_u64(d, 0);
}

static void put_prefix(struct dump *d, uint32_t type, size_t payload)
{
	put_u32(d, type);
	put_u32(d, (uint32_t)(16 + payload));
	put_u64(d, 99);
}

static void put_load(struct dump *d, uint64_t addr, uint64_t size, uint64_t index, const char *name)
{
	put_prefix(d, 0, 40 + strlen(name) + 1 + size);
	put_u32(d, 1234);
	put_u32(d, 1234);
	put_u64(d, addr);
	put_u64(d, addr);
	put_u64(d, size);
	put_u64(d, index);
	put_text(d, name);
	memset(d->bytes + d->n, 0xcc, size);
	d->n += size;
}

static void put_move(struct dump *d, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	put_prefix(d, 1, 48);
	put_u32(d, 1234);
	put_u32(d, 1234);
	put_u64(d, to);
	put_u64(d, from);
	put_u64(d, to);
	put_u64(d, size);
	put_u64(d, index);
}

/* Three entries: app.js:10, app.js:11 (name not repeated), lib.js:7. */
static void put_debug(struct dump *d, uint64_t addr)
{
	put_prefix(d, 2, 16 + 3 * 16 + 7 + 2 + 7);
	put_u64(d, addr);
	put_u64(d, 3);
	put_u64(d, addr);
	put_u32(d, 10);
	put_u32(d, 0);
	put_text(d, "app.js");
	put_u64(d, addr + 8);
	put_u32(d, 11);
	put_u32(d, 0);
	put_text(d, "\xff");
	put_u64(d, addr + 16);
	put_u32(d, 7);
	put_u32(d, 0);
	put_text(d, "lib.js");
}

static int dump_open(const struct dump *d, size_t n, struct image **ret_image)
{
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, d->bytes, n), (ssize_t)n);
	int r = image_open_jitdump(fd, ret_image);
	close(fd);
	return r;
}

static struct image *image_of(const struct dump *d)
{
	struct image *i = NULL;

	ck_assert_int_eq(dump_open(d, d->n, &i), 0);
	return i;
}

static const char *name_at(struct image *i, uint64_t addr)
{
	static char text[256];
	struct image_naming naming;

	image_name(i, addr, &naming);
	if (naming.outcome != IMAGE_NAMED)
		return "(out)";
	ck_assert_uint_eq(naming.n_places, 1);
	const struct image_place *p = &naming.place[0];
	if (!p->source)
		return p->function;
	snprintf(text, sizeof(text), "%s %s:%u", p->function, p->source, p->line);
	return text;
}

TEST(loaded_code_is_named_in_either_byte_order, .times = 2)
{
	struct dump d = {.swapped = _i};

	put_header(&d);
	put_load(&d, 0x1000, 0x40, 1, "first");
	put_load(&d, 0x2000, 0x10, 2, "second");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x1000), "first");
	ck_assert_str_eq(name_at(i, 0x103f), "first");
	ck_assert_str_eq(name_at(i, 0x1040), "(out)");
	ck_assert_str_eq(name_at(i, 0x200f), "second");
	image_free(i);
}

TEST(debug_entries_give_file_and_line, .times = 2)
{
	struct dump d = {.swapped = _i};

	put_header(&d);
	put_debug(&d, 0x1000);
	put_load(&d, 0x1000, 0x40, 1, "run");
	put_load(&d, 0x3000, 0x40, 2, "other");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x1000), "run app.js:10");
	ck_assert_str_eq(name_at(i, 0x1007), "run app.js:10");
	ck_assert_str_eq(name_at(i, 0x1008), "run app.js:11");
	ck_assert_str_eq(name_at(i, 0x103f), "run lib.js:7");
	ck_assert_str_eq(name_at(i, 0x3000), "other");
	image_free(i);
}

TEST(the_last_code_over_an_address_wins)
{
	struct dump d = {0};

	put_header(&d);
	put_load(&d, 0x1000, 0x100, 1, "old");
	put_load(&d, 0x1040, 0x20, 2, "new");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x103f), "old");
	ck_assert_str_eq(name_at(i, 0x1040), "new");
	ck_assert_str_eq(name_at(i, 0x1060), "old");
	image_free(i);
}

TEST(moved_code_keeps_its_name_and_lines)
{
	struct dump d = {0};

	put_header(&d);
	put_debug(&d, 0x1000);
	put_load(&d, 0x1000, 0x40, 7, "run");
	put_move(&d, 0x1000, 0x9000, 0x40, 7);
	put_load(&d, 0x1000, 0x40, 8, "tenant");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x9008), "run app.js:11");
	ck_assert_str_eq(name_at(i, 0x1008), "tenant");
	image_free(i);
}

TEST(moves_of_unknown_code_are_ignored)
{
	struct dump d = {0};

	put_header(&d);
	put_move(&d, 0x1000, 0x9000, 0x40, 7);
	put_load(&d, 0x1000, 0x40, 8, "run");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x9000), "(out)");
	ck_assert_str_eq(name_at(i, 0x1000), "run");
	image_free(i);
}

TEST(unknown_and_unwinding_records_are_skipped)
{
	struct dump d = {0};

	put_header(&d);
	put_prefix(&d, 4, 24);
	d.n += 24;
	put_prefix(&d, 77, 8);
	d.n += 8;
	put_load(&d, 0x1000, 0x40, 1, "run");
	put_prefix(&d, 3, 0);
	put_load(&d, 0x2000, 0x40, 2, "after_close");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x1000), "run");
	ck_assert_str_eq(name_at(i, 0x2000), "(out)");
	image_free(i);
}

TEST(a_longer_header_is_skipped_by_its_size)
{
	struct dump d = {0};
	uint32_t size = 48;

	put_header(&d);
	memcpy(d.bytes + 8, &size, 4);
	put_u64(&d, 0);
	put_load(&d, 0x1000, 0x40, 1, "run");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x1000), "run");
	image_free(i);
}

TEST(truncation_at_every_length_keeps_whole_records)
{
	struct dump d = {0};

	put_header(&d);
	put_debug(&d, 0x1000);
	put_load(&d, 0x1000, 0x20, 1, "run");
	size_t whole = d.n;
	put_move(&d, 0x1000, 0x5000, 0x20, 1);
	for (size_t n = 0; n <= d.n; n++) {
		struct image *i = NULL;
		int r = dump_open(&d, n, &i);
		ck_assert_int_eq(r, n < 40 ? IMAGE_MALFORMED : 0);
		if (r)
			continue;
		ck_assert_str_eq(name_at(i, 0x1008), n >= whole ? "run app.js:11" : "(out)");
		ck_assert_str_eq(name_at(i, 0x5008), n == d.n ? "run app.js:11" : "(out)");
		image_free(i);
	}
}

TEST(wrong_headers_are_malformed, .times = 6)
{
	static const struct {
		size_t at;
		uint32_t value;
	} wrong[] = {{0, 0}, {0, 0x464c457f}, {4, 0}, {4, 2}, {8, 0}, {8, 39}};
	struct dump d = {0};
	struct image *i = NULL;

	put_header(&d);
	memcpy(d.bytes + wrong[_i].at, &wrong[_i].value, 4);
	ck_assert_int_eq(dump_open(&d, d.n, &i), IMAGE_MALFORMED);
	ck_assert_ptr_null(i);
}

TEST(records_shorter_than_their_kind_are_ignored)
{
	struct dump d = {0};

	put_header(&d);
	for (uint32_t type = 0; type < 3; type++)
		for (size_t payload = 0; payload < 40; payload += 4) {
			put_prefix(&d, type, payload);
			memset(d.bytes + d.n, 0x11, payload);
			d.n += payload;
		}
	put_load(&d, 0x1000, 0x40, 1, "run");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x1000), "run");
	ck_assert_str_eq(name_at(i, 0x1111111111111111), "(out)");
	image_free(i);
}

TEST(a_record_without_room_for_its_prefix_ends_the_file)
{
	for (uint32_t size = 0; size < 16; size++) {
		struct dump d = {0};
		put_header(&d);
		put_load(&d, 0x1000, 0x40, 1, "run");
		put_u32(&d, 0);
		put_u32(&d, size);
		put_u64(&d, 0);
		struct image *i = image_of(&d);
		ck_assert_str_eq(name_at(i, 0x1000), "run");
		image_free(i);
	}
}

TEST(names_without_an_end_are_ignored)
{
	struct dump d = {0};

	put_header(&d);
	put_load(&d, 0x1000, 0x10, 1, "run");
	memset(d.bytes + 40 + 56, 'x', 4 + 0x10);
	put_load(&d, 0x2000, 0x10, 2, "next");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x1000), "(out)");
	ck_assert_str_eq(name_at(i, 0x2000), "next");
	image_free(i);
}

TEST(sizes_that_wrap_and_empty_code_are_ignored, .times = 3)
{
	static const struct {
		uint64_t addr, size;
	} bad[] = {{UINT64_MAX, 2}, {0x1000, UINT64_MAX}, {0x1000, 0}};
	struct dump d = {0};

	put_header(&d);
	put_load(&d, 0x1000, 0, 1, "bad");
	memcpy(d.bytes + 40 + 32, &bad[_i].addr, 8);
	memcpy(d.bytes + 40 + 40, &bad[_i].size, 8);
	put_load(&d, 0x2000, 0x10, 2, "next");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x1000), "(out)");
	ck_assert_str_eq(name_at(i, UINT64_MAX), "(out)");
	ck_assert_str_eq(name_at(i, 0x2000), "next");
	image_free(i);
}

TEST(entry_counts_beyond_the_record_are_not_believed)
{
	uint64_t n = UINT64_MAX;
	struct dump d = {0};

	put_header(&d);
	put_debug(&d, 0x1000);
	memcpy(d.bytes + 40 + 24, &n, 8);
	put_load(&d, 0x1000, 0x40, 1, "run");
	struct image *i = image_of(&d);
	ck_assert_str_eq(name_at(i, 0x1008), "run app.js:11");
	ck_assert_str_eq(name_at(i, 0x103f), "run lib.js:7");
	image_free(i);
}

TEST(any_single_byte_may_be_wrong)
{
	struct dump d = {0};
	struct image_naming naming;

	put_header(&d);
	put_debug(&d, 0x1000);
	put_load(&d, 0x1000, 0x20, 1, "run");
	put_move(&d, 0x1000, 0x5000, 0x20, 1);
	for (size_t k = 0; k < d.n; k++) {
		struct dump bad = d;
		struct image *i = NULL;
		bad.bytes[k] ^= 0xff;
		int r = dump_open(&bad, bad.n, &i);
		ck_assert(r == 0 || r == IMAGE_MALFORMED);
		if (r)
			continue;
		image_name(i, 0x1008, &naming);
		ck_assert_uint_le(naming.n_places, 1);
		image_free(i);
	}
}

TEST(code_larger_than_the_window_is_skipped)
{
	size_t code = 300000, n;
	uint8_t *bytes = calloc(1, code + 4096);
	struct dump d = {0};

	ck_assert_ptr_nonnull(bytes);
	put_header(&d);
	put_load(&d, 0x100000, 0, 1, "large");
	uint64_t size = code;
	uint32_t total = (uint32_t)(16 + 40 + 6 + code);
	memcpy(d.bytes + 40 + 40, &size, 8);
	memcpy(d.bytes + 40 + 4, &total, 4);
	memcpy(bytes, d.bytes, d.n);
	n = d.n + code;
	d.n = 0;
	put_load(&d, 0x1000, 0x10, 2, "next");
	memcpy(bytes + n, d.bytes, d.n);
	n += d.n;

	int fd = memfd_create("jitdump", MFD_CLOEXEC);
	struct image *i = NULL;
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	ck_assert_int_eq(image_open_jitdump(fd, &i), 0);
	ck_assert_str_eq(name_at(i, 0x100000 + code - 1), "large");
	ck_assert_str_eq(name_at(i, 0x1000), "next");
	image_free(i);
	close(fd);
	free(bytes);
}

static const char *name_by(struct image *i, uint64_t addr, uint32_t order)
{
	struct image_naming naming;

	image_name_by(i, addr, order, &naming);
	return naming.outcome == IMAGE_NAMED ? naming.place[0].function : "(out)";
}

static void set_u64(struct dump *d, size_t at, uint64_t value)
{
	memcpy(d->bytes + at, &value, sizeof(value));
}

/* The first n bytes of a dump, then all of it, are in a file. */
static struct image *grown_from(const struct dump *d, size_t n)
{
	struct image *i = NULL;
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, d->bytes, n), (ssize_t)n);
	int r = image_open_jitdump(fd, &i);
	ck_assert_int_eq(r, n < 40 ? IMAGE_MALFORMED : 0);
	if (i) {
		ck_assert_int_eq(pwrite(fd, d->bytes, d->n, 0), (ssize_t)d->n);
		ck_assert_int_eq(image_read_on(i, fd), 0);
		ck_assert_int_eq(image_read_on(i, fd), 0);
	}
	close(fd);
	return i;
}

TEST(a_dump_that_grows_is_read_on_from_any_byte)
{
	struct dump d = {0};

	put_header(&d);
	put_load(&d, 0x1000, 0x40, 1, "a");
	put_debug(&d, 0x1000);
	put_load(&d, 0x1000, 0x40, 2, "b");
	put_move(&d, 0x1000, 0x5000, 0x40, 2);
	put_load(&d, 0x1000, 0x40, 3, "c");
	for (size_t n = 40; n <= d.n; n++) {
		struct image *i = grown_from(&d, n);
		ck_assert_uint_eq(image_order(i), 4);
		ck_assert_str_eq(name_by(i, 0x1008, 1), "a");
		ck_assert_str_eq(name_by(i, 0x1008, 3), "b");
		ck_assert_str_eq(name_at(i, 0x1008), "c");
		ck_assert_str_eq(name_at(i, 0x5008), "b app.js:11");
		image_free(i);
	}
}

TEST(changes_have_the_time_of_their_record, .times = 2)
{
	struct dump d = {0};
	struct image_change change[4];

	put_header(&d);
	put_load(&d, 0x1000, 0x40, 1, "a");
	size_t second = d.n;
	put_load(&d, 0x1000, 0x40, 2, "b");
	size_t third = d.n;
	put_move(&d, 0x1000, 0x1020, 0x40, 1);
	set_u64(&d, second + 8, 1234);
	set_u64(&d, third + 8, 5678);
	set_u64(&d, 32, (uint64_t)_i); /* 1: times of the processor's own clock */
	struct image *i = image_of(&d);
	ck_assert_uint_eq(image_changes(i, 0, change, 4), 2);
	ck_assert_uint_eq(change[0].from_ns, _i ? 0 : 1234);
	ck_assert_uint_eq(change[1].from_ns, _i ? 0 : 5678);
	ck_assert_uint_eq(change[1].start, 0x1020);
	ck_assert_uint_eq(change[1].end, 0x1060);
	ck_assert_uint_eq(change[1].order, 3);
	image_free(i);
}

/* As a writer leaves it that made room first. */
TEST(zeros_are_read_again_when_they_were_written_over)
{
	struct dump d = {0};
	struct image *i = NULL;
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	put_header(&d);
	put_load(&d, 0x1000, 0x40, 1, "a");
	const size_t n = d.n;
	put_load(&d, 0x2000, 0x40, 2, "b");
	ck_assert_int_eq(write(fd, d.bytes, n), (ssize_t)n);
	ck_assert_int_eq(ftruncate(fd, 4096), 0);
	ck_assert_int_eq(image_open_jitdump(fd, &i), 0);
	ck_assert_str_eq(name_at(i, 0x1000), "a");
	ck_assert_int_eq(pwrite(fd, d.bytes, d.n, 0), (ssize_t)d.n);
	ck_assert_int_eq(image_read_on(i, fd), 0);
	ck_assert_str_eq(name_at(i, 0x2000), "b");
	image_free(i);
	close(fd);
}

TEST(nothing_comes_after_a_close)
{
	struct dump d = {0};

	put_header(&d);
	put_load(&d, 0x1000, 0x40, 1, "a");
	put_prefix(&d, 3, 0);
	size_t n = d.n;
	put_load(&d, 0x1000, 0x40, 2, "b");
	struct image *i = grown_from(&d, n);
	ck_assert_str_eq(name_at(i, 0x1000), "a");
	image_free(i);
}

TEST(a_dump_that_becomes_something_else_keeps_its_names)
{
	struct dump d = {0}, other = {0};
	struct image *i = NULL;
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	put_header(&d);
	put_load(&d, 0x1000, 0x40, 1, "a");
	put_header(&other);
	put_load(&other, 0x1000, 0x40, 1, "b");
	ck_assert_int_eq(write(fd, d.bytes, d.n), (ssize_t)d.n);
	ck_assert_int_eq(image_open_jitdump(fd, &i), 0);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(pwrite(fd, "no dump", 7, 0), 7);
	ck_assert_int_eq(image_read_on(i, fd), 0);
	ck_assert_str_eq(name_at(i, 0x1000), "a");
	ck_assert_int_eq(pwrite(fd, other.bytes, other.n, 0), (ssize_t)other.n);
	ck_assert_int_eq(image_read_on(i, fd), 0);
	ck_assert_str_eq(name_at(i, 0x1000), "b");
	ck_assert_str_eq(name_by(i, 0x1000, 1), "a");
	image_free(i);
	close(fd);
}
