/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The same copied stacks of programs of this machine, unwound by tables and by elfutils: frame by frame the same. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/unit/daemon/namer/callers.h"
#include "tests/unit/daemon/namer/sampled.h"
#include "tests/unit/test.h"

#ifdef SAMPLED_MACHINE

EACH_TEST(.seconds = 120);

/* A program runs for so long; sanitizers look at less of the same. */
#ifdef __SANITIZE_ADDRESS__
#define RUN_SECONDS 1
#else
#define RUN_SECONDS 2
#endif

static struct sampled s;

struct comparison {
	struct callers *callers;
	uint32_t n_readings;
	unsigned int n, n_same, n_longer, n_by_elfutils, n_whole, n_whole_elfutils;
	uint64_t tables_ns, elfutils_ns;
	struct unwound ours, theirs;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void show(const struct comparison *c)
{
	const struct unwound *x = &c->ours, *y = &c->theirs;

	printf("by tables %zu frames%s, by elfutils %zu%s\n", x->n_frames,
		x->truncated ? ", cut" : "", y->n_frames, y->truncated ? ", cut" : "");
	for (size_t i = 0; i < x->n_frames || i < y->n_frames; i++) {
		if (i < x->n_frames)
			printf("  %" PRIuPTR "+%" PRIx64, x->frame[i].file, x->frame[i].offset);
		if (i < y->n_frames)
			printf("  elfutils %" PRIuPTR "+%" PRIx64, y->frame[i].file,
				y->frame[i].offset);
		printf("\n");
	}
}

static void compare(void *userdata, const struct sampled *sample)
{
	struct comparison *c = userdata;

	if (!c->callers || c->n_readings != sample->n_readings) {
		callers_free(c->callers);
		ck_assert_int_eq(
			callers_new(sample->maps, sample->n_maps, SAMPLED_MACHINE, &c->callers), 0);
		c->n_readings = sample->n_readings;
	}
	const struct unwind_sample taken = {.regs = sample->regs,
		.regs_mask = SAMPLED_REGS,
		.stack = sample->stack,
		.n_stack = sample->n_stack};
	/* once for what either makes at first */
	ck_assert_int_ge(callers_by_elfutils(c->callers, &taken, &c->theirs), 0);
	(void)callers_by_tables(c->callers, &taken, &c->ours);

	uint64_t begin = cpu_ns();
	const bool did = callers_by_tables(c->callers, &taken, &c->ours);
	const uint64_t end = cpu_ns();
	ck_assert_int_ge(callers_by_elfutils(c->callers, &taken, &c->theirs), 0);
	c->n++;
	if (!did) {
		c->n_by_elfutils++;
		return;
	}
	c->tables_ns += end - begin;
	c->elfutils_ns += cpu_ns() - end;
	c->n_whole += !c->ours.truncated;
	c->n_whole_elfutils += !c->theirs.truncated;
	const size_t n =
		c->ours.n_frames < c->theirs.n_frames ? c->ours.n_frames : c->theirs.n_frames;
	const bool same = memcmp(c->ours.frame, c->theirs.frame, n * sizeof(c->ours.frame[0])) == 0;
	if (same && c->ours.n_frames == c->theirs.n_frames &&
		c->ours.truncated == c->theirs.truncated) {
		c->n_same++;
		return;
	}
	if (same && c->ours.n_frames > c->theirs.n_frames && c->theirs.truncated)
		c->n_longer++;
	else
		show(c);
}

static void compare_on(const char *test, char *const argv[])
{
	struct comparison c = {};

	sampled_begin(&s);
	const char *reason = sampled_run(&s, argv, RUN_SECONDS, compare, &c);
	sampled_end(&s);
	callers_free(c.callers);
	if (reason || c.n == 0) {
		printf("SKIP %s: %s\n", test, reason ? reason : "it had no samples");
		return;
	}
	printf("%s: %u stacks, %u the same, %u go on where elfutils ends, %u left to elfutils; "
	       "whole %u, by elfutils %u; "
	       "%.2f us and %.2f us by elfutils\n",
		test, c.n, c.n_same, c.n_longer, c.n_by_elfutils, c.n_whole, c.n_whole_elfutils,
		1e-3 * (double)c.tables_ns / c.n, 1e-3 * (double)c.elfutils_ns / c.n);
	ck_assert_uint_eq(c.n_same + c.n_longer + c.n_by_elfutils, c.n);
}

TEST(python)
{
	compare_on(__func__, (char *const[]){"/usr/bin/python3", "-c",
				     "import json, re\nwhile True: "
				     "json.loads(json.dumps(list(map(str, range(999))))); "
				     "re.sub('(a|b)*c', '', 'ab' * 99)",
				     NULL});
}

TEST(perl)
{
	compare_on(__func__, (char *const[]){"perl", "-e",
				     "while (1) { my %h = map { $_ => \"x$_\" } 1..999; join ',', "
				     "sort values %h; }",
				     NULL});
}

TEST(xz)
{
	compare_on(__func__, (char *const[]){"sh", "-c",
				     "exec xz -9 -c </usr/lib/x86_64-linux-gnu/libc.so.6", NULL});
}

TEST(sqlite)
{
	compare_on(__func__, (char *const[]){"sqlite3", ":memory:",
				     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n "
				     "WHERE i < 9000000) "
				     "SELECT "
				     "sum(length(printf('%d', i * 7))) FROM n",
				     NULL});
}

TEST(git)
{
	compare_on(__func__, (char *const[]){"git", "log", "--stat", NULL});
}

TEST(bash)
{
	compare_on(__func__,
		(char *const[]){"bash", "-c",
			"while :; do for i in 1 2 3; do x=$((i * 7)); y=${x//2/3}; done; done",
			NULL});
}

TEST(openssl)
{
	compare_on(__func__, (char *const[]){"openssl", "speed", "-seconds", "1", "sha256",
				     "aes-256-cbc", NULL});
}

TEST(cc1)
{
	compare_on(__func__, (char *const[]){"sh", "-c",
				     "exec $(cc -print-prog-name=cc1) -O2 -quiet -imultiarch $(cc "
				     "-print-multiarch) -D_GNU_SOURCE -I. -o /dev/null "
				     "daemon/namer/dwarf_lines.c",
				     NULL});
}

#else
TEST(tables_and_elfutils)
{
	printf("SKIP: no registers are known for this machine\n");
}
#endif
