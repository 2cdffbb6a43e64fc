/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* One bit of a sealed segment is flipped: it is refused, or every answer is what it was. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/stored.h"
#include "tests/unit/test.h"

/* Of a file of some ten thousand bytes; the step is odd, so that all bits of a byte come up. */
#define FLIPS 2400
/* All ways to group, and the call tree. */
#define ANSWERS (N_QUERY_BY + 1)

static struct stored s;
static struct stored_answer before[ANSWERS], after[ANSWERS];

static void begin(void)
{
	stored_begin_group(&s);
	for (int i = 0; i < 30; i++) {
		char name[64];
		struct task *task = stored_task(&s, 100 + i, 100 + i, i % 2 ? "make" : "cc1plus");
		snprintf(name, sizeof(name), "std::vector<int>::part_%d@vector.h:%d", i, 10 + i);
		struct frame *leaf = stored_function(&s, "/usr/bin/program", name);
		struct frame *root = stored_function(&s, "/usr/bin/program", "main@main.c:3");
		stored_add(&s, &(struct stored_sample){.task = task,
				       .hart = i % STORED_HARTS,
				       .count = (uint64_t)(i + 1),
				       .weight_ns = (uint64_t)(i + 1) * 1000,
				       .frame = {leaf, root},
				       .n_reads = 2,
				       .read = {{1, 1000, 10, 10}, {2, 500, 10, 10}}});
	}
	sqlite3_close(stored_seal(&s));
	s.db = NULL;
}

static void end(void)
{
	stored_end(&s);
}

EACH_TEST(.begin = begin, .end = end);

/* Ask everything. 0, or what the first question that failed said. */
static int ask(sqlite3 *db, struct stored_answer *answer)
{
	int r = 0;
	memset(answer, 0, ANSWERS * sizeof(*answer));
	for (int by = 0; by < N_QUERY_BY && r == 0; by++)
		r = stored_hotspots(db, query_by_name((enum query_by)by), NULL, &answer[by]);
	return r == 0 ? stored_flamegraph(db, NULL, &answer[N_QUERY_BY]) : r;
}

/* 0: refused, when it was opened or when it was read. */
static int open_and_ask(struct stored_answer *answer, struct segment_error *error)
{
	sqlite3 *db = NULL;
	if (segment_open(s.path, &db, error) != 0)
		return 0;
	int r = ask(db, answer);
	sqlite3_close(db);
	return r == 0;
}

static void flip(int fd, off_t at, unsigned bit)
{
	uint8_t byte;
	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= (uint8_t)(1u << bit);
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
}

TEST(no_bit_is_another_in_silence)
{
	struct segment_error error;
	struct stat st;
	int n_refused = 0, n_other = 0;
	int fd = open(s.path, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_msg(open_and_ask(before, &error) == 1, "%s", error.text);
	uint64_t n_bits = (uint64_t)st.st_size * 8, step = n_bits / FLIPS | 1;
	for (uint64_t bit = 0; bit < n_bits; bit += step) {
		flip(fd, (off_t)(bit / 8), bit % 8);
		if (!open_and_ask(after, &error))
			n_refused++;
		else if (memcmp(before, after, sizeof(before)) != 0)
			n_other++;
		flip(fd, (off_t)(bit / 8), bit % 8);
	}
	close(fd);
	ck_assert_msg(n_other == 0, "%d of %llu flips gave another answer, %d were refused",
		n_other, (unsigned long long)((n_bits + step - 1) / step), n_refused);
	ck_assert_msg(open_and_ask(after, &error) == 1, "%s", error.text);
	ck_assert_int_eq(memcmp(before, after, sizeof(before)), 0);
}
