/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The seal behind a segment: when it is written, what breaks it, when it is looked at. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/memory.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct segment_error error;

static void begin(void)
{
	stored_begin_clock(&s);
	stored_add(&s, &(struct stored_sample){.task = stored_task(&s, 100, 100, "prog"),
			       .frame = {stored_function(&s, "/bin/prog", "walk")}});
	sqlite3_close(stored_seal(&s));
	s.db = NULL;
}

static void end(void)
{
	stored_end(&s);
}

EACH_TEST(.begin = begin, .end = end);

static off_t size_of(void)
{
	struct stat st;
	ck_assert_int_eq(stat(s.path, &st), 0);
	return st.st_size;
}

static void write_at(off_t at, const void *bytes, size_t n)
{
	int fd = open(s.path, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

static int verify(void)
{
	int fd = open(s.path, O_RDONLY | O_CLOEXEC);
	int r = trailer_verify(fd);
	close(fd);
	return r;
}

static int open_it(void)
{
	sqlite3 *db = NULL;
	int r = segment_open(s.path, &db, &error);
	sqlite3_close(db);
	return r;
}

TEST(sealed_file_has_a_seal_that_fits)
{
	ck_assert_int_eq(size_of() % SEGMENT_PAGE_BYTES, TRAILER_BYTES);
	ck_assert_int_eq(verify(), 0);
	ck_assert_int_eq(segment_seal_is_whole(s.path), 1);
	ck_assert_int_eq(open_it(), 0);
}

TEST(seal_can_be_made_again)
{
	off_t size = size_of();
	ck_assert_int_eq(trailer_write_path(s.path), 0);
	ck_assert_int_eq(size_of(), size);
	ck_assert_int_eq(verify(), 0);
	ck_assert_int_eq(trailer_remove(s.path), 1);
	ck_assert_int_eq(size_of(), size - TRAILER_BYTES);
	ck_assert_int_eq(verify(), TRAILER_NONE);
	ck_assert_int_eq(trailer_remove(s.path), 0);
	ck_assert_int_eq(trailer_write_path(s.path), 0);
	ck_assert_int_eq(verify(), 0);
}

TEST(seal_that_is_written_in_steps_is_the_same)
{
	struct trailer_writer *w;
	int steps = 1, r, fd = open(s.path, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(trailer_begin(fd, &w), 0);
	for (; (r = trailer_step(w, SEGMENT_PAGE_BYTES)) == TRAILER_MORE; steps++)
		ck_assert_int_eq(verify(), TRAILER_NONE); /* until it is whole there is none */
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(steps, (size_of() - TRAILER_BYTES) / SEGMENT_PAGE_BYTES);
	ck_assert_ptr_null(trailer_free(w));
	close(fd);
	ck_assert_int_eq(verify(), 0);
}

TEST(segment_that_is_sealed_in_steps_is_whole_after_the_last)
{
	end();
	stored_begin_clock(&s);
	stored_add(&s, &(struct stored_sample){.task = stored_task(&s, 100, 100, "prog"),
			       .frame = {stored_function(&s, "/bin/prog", "walk")}});
	ck_assert_int_eq(stored_flush(&s, 0, 10), 0);
	struct segment *g = TAKE_PTR(s.segment);
	ck_assert_int_eq(segment_seal_begin(g, 20), 0);
	int r;
	while ((r = segment_seal_step(g, SEGMENT_PAGE_BYTES)) == SEGMENT_MORE)
		ck_assert_int_eq(segment_seal_is_whole(s.path), 0);
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(verify(), 0);
	ck_assert_int_eq(open_it(), 0);
}

TEST(byte_that_no_query_reads_breaks_it)
{
	write_at(SEGMENT_PAGE_BYTES - 1, "x", 1);
	ck_assert_int_eq(verify(), TRAILER_OTHER);
	ck_assert_int_eq(open_it(), SEGMENT_CORRUPT);
	ck_assert_ptr_nonnull(strstr(error.text, "has changed since it was sealed"));
	ck_assert_ptr_nonnull(strstr(error.text, s.path));
}

TEST(seal_of_another_length_is_none_of_this_file)
{
	uint64_t n_bytes = 1024;
	write_at(size_of() - 24, &n_bytes, sizeof(n_bytes));
	ck_assert_int_eq(verify(), TRAILER_OTHER);
	ck_assert_int_eq(open_it(), SEGMENT_CORRUPT);
}

TEST(file_without_its_seal_is_damaged)
{
	ck_assert_int_eq(trailer_remove(s.path), 1);
	ck_assert_int_eq(segment_seal_is_whole(s.path), 0);
	ck_assert_int_eq(open_it(), SEGMENT_CORRUPT);
	ck_assert_ptr_nonnull(strstr(error.text, "seal is gone"));
}

TEST(seal_that_was_half_written_is_made_whole_by_recovery)
{
	for (int left = 0; left < TRAILER_BYTES; left += 7) {
		off_t size = size_of();
		ck_assert_int_eq(truncate(s.path, size - TRAILER_BYTES + left), 0);
		ck_assert_int_eq(open_it(), SEGMENT_CORRUPT);
		ck_assert_msg(segment_recover(s.path, &error) == 0, "%s", error.text);
		ck_assert_int_eq(size_of(), size);
		ck_assert_int_eq(open_it(), 0);
	}
}

TEST(text_that_reads_like_a_seal_at_the_end_of_a_page_is_none)
{
	ck_assert_int_eq(trailer_remove(s.path), 1);
	write_at(size_of() - TRAILER_BYTES, "mPrfSeal", 8);
	ck_assert_int_eq(verify(), TRAILER_NONE);
	ck_assert_int_eq(trailer_remove(s.path), 0);
}

TEST(file_that_is_too_short_has_none)
{
	static const off_t sizes[] = {0, 1, TRAILER_BYTES - 1, TRAILER_BYTES, 100, 512};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		ck_assert_int_eq(truncate(s.path, sizes[i]), 0);
		ck_assert_int_eq(verify(), TRAILER_NONE);
	}
	unlink(s.path);
	ck_assert_int_eq(trailer_write_path(s.path), -ENOENT);
	ck_assert_int_eq(trailer_remove(s.path), -ENOENT);
	ck_assert_int_eq(segment_seal_is_whole(s.path), -ENOENT);
}

TEST(file_that_is_known_is_not_read_again)
{
	struct segment_identity known = {.bytes = 0}, other;
	struct stat st;
	sqlite3 *db = NULL;
	ck_assert_int_eq(stat(s.path, &st), 0);
	ck_assert_int_eq(segment_open_known(s.path, &known, &db, &error), 0);
	sqlite3_close(db);
	ck_assert_uint_eq(known.bytes, (uint64_t)st.st_size);

	/* a disc rots without telling the time */
	write_at(SEGMENT_PAGE_BYTES - 1, "x", 1);
	const struct timespec times[2] = {st.st_atim, st.st_mtim};
	ck_assert_int_eq(utimensat(AT_FDCWD, s.path, times, 0), 0);
	ck_assert_int_eq(segment_open_known(s.path, &known, &db, &error), 0);
	sqlite3_close(db);
	/* each of the four makes it another file */
	for (int i = 0; i < 4; i++) {
		other = known;
		other.device += i == 0;
		other.inode += i == 1;
		other.bytes += i == 2;
		other.modified_ns += i == 3;
		ck_assert_int_eq(segment_open_known(s.path, &other, &db, &error), SEGMENT_CORRUPT);
	}
}
