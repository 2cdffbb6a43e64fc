/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/exec_stack.c: stacks of new programs, whole, cut off and forged */

#include <linux/auxvec.h>

#include "daemon/attribute/exec_stack.h"
#include "tests/unit/test.h"

#define SP UINT64_C(0x7ffc12345678)
#define MAX 4096

static uint8_t bytes[16384];
static size_t n, word;
static size_t gap, cut;

static void put(uint64_t value)
{
	uint32_t narrow = (uint32_t)value;
	memcpy(bytes + n, word == 8 ? (void *)&value : (void *)&narrow, word);
	n += word;
}

/* A stack as the kernel lays it out: three arguments, two variables. */
static void make(uint64_t sp)
{
	static const char text[] = "cc1\0-O2\0a b.c\0HOME=/root\0A=1";
	size_t n_vectors = (1 + 3 + 1 + 2 + 1 + 8) * word;
	uint64_t at = sp + n_vectors + gap;

	n = 0;
	put(3), put(at), put(at + 4), put(at + 8), put(0);
	put(at + 14), put(at + 25), put(0);
	put(AT_UID), put(1000), put(AT_SECURE), put(0), put(AT_EUID), put(1000);
	put(AT_NULL), put(0);
	ck_assert_uint_eq(n, n_vectors);
	n += gap;
	memcpy(bytes + n, text, sizeof(text));
	n += sizeof(text);
}

static int parse(uint64_t sp, size_t n_max, struct exec_stack *e)
{
	/* from the heap, so that a sanitizer sees what is read beyond it */
	uint8_t *copy = malloc(n - cut ? n - cut : 1);
	memcpy(copy, bytes, n - cut);
	int r = exec_stack_parse(copy, n - cut, sp, word, n_max, e);
	if (!r) {
		static char kept[MAX + 1];
		memcpy(kept, e->argv, e->n_argv);
		e->argv = kept;
	}
	free(copy);
	return r;
}

static void setup(void)
{
	memset(bytes, 0xee, sizeof(bytes));
	word = 8;
	gap = 100;
	cut = 0;
}

EACH_TEST(.begin = setup);

TEST(arguments_and_owner_are_found, .times = 2)
{
	struct exec_stack e;

	word = _i ? 8 : 4;
	uint64_t sp = _i ? SP : 0xffcd1230;
	make(sp);
	ck_assert_int_eq(parse(sp, MAX, &e), 0);
	ck_assert_uint_eq(e.n_argv, 13);
	ck_assert_int_eq(memcmp(e.argv, "cc1\0-O2\0a b.c", 13), 0);
	ck_assert(e.whole && e.has_uid && !e.secure);
	ck_assert_uint_eq(e.uid, 1000);
}

TEST(a_setuid_program_is_told_apart)
{
	struct exec_stack e;

	make(SP);
	bytes[11 * 8] = 1; /* AT_SECURE's value */
	ck_assert_int_eq(parse(SP, MAX, &e), 0);
	ck_assert(e.secure);
}

TEST(more_arguments_than_wanted_are_cut)
{
	struct exec_stack e;

	make(SP);
	ck_assert_int_eq(parse(SP, 5, &e), 0);
	ck_assert(!e.whole);
	ck_assert_uint_eq(e.n_argv, 5);
	ck_assert_int_eq(memcmp(e.argv, "cc1\0-", 5), 0);
}

TEST(what_lies_behind_the_arguments_is_not_needed)
{
	struct exec_stack e;

	make(SP);
	cut = sizeof("HOME=/root\0A=1") - 1;
	ck_assert_int_eq(parse(SP, MAX, &e), 0);
	ck_assert_uint_eq(e.n_argv, 13);
}

/* Every length of the copy up to the end of the arguments. */
TEST(a_copy_that_ends_early_says_so)
{
	struct exec_stack e = {.n_argv = 77};

	make(SP);
	for (cut = sizeof("HOME=/root\0A=1") + 1; cut <= n; cut++)
		ck_assert_int_eq(parse(SP, MAX, &e), EXEC_STACK_CUT);
	ck_assert_uint_eq(e.n_argv, 77);
}

TEST(no_arguments_are_malformed)
{
	struct exec_stack e;

	make(SP);
	memset(bytes, 0, 8);
	ck_assert_int_eq(parse(SP, MAX, &e), EXEC_STACK_MALFORMED);
	memset(bytes, 0xff, 8);
	ck_assert_int_eq(parse(SP, MAX, &e), EXEC_STACK_MALFORMED);
}

TEST(a_list_that_does_not_end_where_it_says_is_malformed)
{
	struct exec_stack e;

	make(SP);
	bytes[0] = 2;
	ck_assert_int_eq(parse(SP, MAX, &e), EXEC_STACK_MALFORMED);
}

TEST(pointers_outside_the_copy_lead_nowhere)
{
	static const uint64_t wild[] = {0, 8, SP - 1, SP + sizeof(bytes), UINT64_MAX};
	struct exec_stack e;

	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
		make(SP);
		memcpy(bytes + 8, &wild[i], 8); /* the first argument */
		ck_assert_int_ne(parse(SP, MAX, &e), 0);
		make(SP);
		memcpy(bytes + 24, &wild[i], 8); /* the last one */
		ck_assert_int_ne(parse(SP, MAX, &e), 0);
	}
}

TEST(a_vector_without_an_end_is_cut)
{
	struct exec_stack e;

	make(SP);
	memset(bytes + 7 * 8, 0x11, n - 7 * 8); /* the environment goes on and on */
	ck_assert_int_eq(parse(SP, MAX, &e), EXEC_STACK_CUT);
}
