/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Parts of a profile: what refers to nothing is refused, before a format sees it. */

#include "client/export/pair.h"
#include "client/export/profile.h"
#include "tests/unit/test.h"

static struct profile p;
static uint64_t n_taken;

static void begin(void)
{
	ck_assert_int_eq(profile_init(&p), 0);
	n_taken = 0;
}

static void end(void)
{
	profile_clear(&p);
}

EACH_TEST(.begin = begin, .end = end);

static int take(void *userdata, const struct profile_sample *s)
{
	(void)userdata;
	ck_assert_uint_lt(s->stack, p.n_stacks);
	n_taken++;
	return 0;
}

static int add(const Mperf__Profile *part)
{
	return profile_add(&p, part, take, NULL);
}

static int add_texts(size_t n, char **text)
{
	Mperf__Profile part = MPERF__PROFILE__INIT;
	part.n_text = n;
	part.text = text;
	return add(&part);
}

static int add_module(uint32_t path)
{
	Mperf__ProfileModule m = MPERF__PROFILE_MODULE__INIT, *list[] = {&m};
	Mperf__Profile part = MPERF__PROFILE__INIT;
	m.path = path;
	m.kind = PROFILE_ELF;
	part.n_module = 1;
	part.module = list;
	return add(&part);
}

static int add_frame(uint32_t module, size_t n_function, size_t n_line)
{
	uint32_t one[] = {1, 1, 1, 1};
	Mperf__ProfileFrame m = MPERF__PROFILE_FRAME__INIT, *list[] = {&m};
	Mperf__Profile part = MPERF__PROFILE__INIT;
	m.module = module;
	m.offset = 4096;
	m.function = m.source = m.line = one;
	m.n_function = m.n_source = n_function;
	m.n_line = n_line;
	part.n_frame = 1;
	part.frame = list;
	return add(&part);
}

static int add_stack(uint32_t caller, uint32_t frame)
{
	Mperf__Profile part = MPERF__PROFILE__INIT;
	part.n_stack_caller = part.n_stack_frame = 1;
	part.stack_caller = &caller;
	part.stack_frame = &frame;
	return add(&part);
}

static int add_sample(uint32_t stack, uint32_t task, uint32_t hart, uint64_t cycles)
{
	uint32_t none = 0;
	uint64_t one = 1;
	Mperf__Profile part = MPERF__PROFILE__INIT;
	part.n_sample_window = part.n_sample_task = part.n_sample_stack = 1;
	part.n_sample_hart = part.n_sample_event = part.n_sample_count = part.n_sample_ns = 1;
	part.n_sample_value = part.n_sample_cycles = part.n_sample_instructions = 1;
	part.sample_window = part.sample_event = &none;
	part.sample_task = &task;
	part.sample_stack = &stack;
	part.sample_hart = &hart;
	part.sample_count = part.sample_ns = part.sample_value = &one;
	part.sample_cycles = part.sample_instructions = &cycles;
	return add(&part);
}

static void add_one_of_each(void)
{
	char *text[] = {"/bin/prog"};
	ck_assert_int_eq(add_texts(1, text), 0);
	ck_assert_int_eq(add_module(1), 0);
	ck_assert_int_eq(add_frame(1, 2, 2), 0);
	ck_assert_int_eq(add_stack(0, 1), 0);
}

TEST(entries_are_numbered_as_they_come)
{
	add_one_of_each();
	ck_assert_int_eq(add_stack(1, 1), 0);
	ck_assert_int_eq(add_sample(2, 0, 1, 0), 0);
	ck_assert_uint_eq(n_taken, 1);
	ck_assert_uint_eq(p.n_stacks, 3);
	ck_assert_str_eq(profile_module_name(&p, 1), "prog");
	ck_assert_str_eq(profile_module_name(&p, 0), "[unknown]");
	ck_assert_uint_eq(p.module[1].offset_max, 4096);
	ck_assert_uint_eq(p.frame[1].n_places, 2);
}

TEST(what_refers_to_nothing_is_malformed)
{
	add_one_of_each();
	ck_assert_int_eq(add_module(2), PROFILE_MALFORMED);
	ck_assert_int_eq(add_frame(2, 1, 1), PROFILE_MALFORMED);
	ck_assert_int_eq(add_stack(0, 2), PROFILE_MALFORMED);
	ck_assert_int_eq(add_stack(0, 0), PROFILE_MALFORMED);
	ck_assert_int_eq(add_stack(2, 1), PROFILE_MALFORMED); /* its own number: no circle */
	ck_assert_int_eq(add_sample(2, 0, 0, 0), PROFILE_MALFORMED);
	ck_assert_int_eq(add_sample(1, 1, 0, 0), PROFILE_MALFORMED);
	ck_assert_uint_eq(n_taken, 0);
	ck_assert_int_eq(add_sample(1, 0, 0, 0), 0);
}

TEST(arrays_of_unlike_length_are_malformed)
{
	add_one_of_each();
	ck_assert_int_eq(add_frame(1, 2, 1), PROFILE_MALFORMED);
	Mperf__Profile part = MPERF__PROFILE__INIT;
	uint32_t one = 1;
	part.n_sample_window = 1;
	part.sample_window = &one;
	ck_assert_int_eq(add(&part), PROFILE_MALFORMED);
	part = (Mperf__Profile)MPERF__PROFILE__INIT;
	part.n_stack_caller = 1;
	part.stack_caller = &one;
	ck_assert_int_eq(add(&part), PROFILE_MALFORMED);
}

static int keep(void *userdata, const struct profile_sample *s)
{
	*(struct profile_sample *)userdata = *s;
	return 0;
}

TEST(absurd_numbers_are_clamped)
{
	struct profile_sample s;
	uint32_t none = 0, hart = UINT32_MAX;
	uint64_t most = UINT64_MAX, zero = 0;
	Mperf__Profile part = MPERF__PROFILE__INIT;
	part.n_sample_window = part.n_sample_task = part.n_sample_stack = 1;
	part.n_sample_hart = part.n_sample_event = part.n_sample_count = part.n_sample_ns = 1;
	part.n_sample_value = part.n_sample_cycles = part.n_sample_instructions = 1;
	part.sample_window = part.sample_task = part.sample_stack = part.sample_event = &none;
	part.sample_hart = &hart;
	part.sample_count = part.sample_ns = part.sample_value = part.sample_cycles = &most;
	part.sample_instructions = &zero;
	ck_assert_int_eq(profile_add(&p, &part, keep, &s), 0);
	ck_assert_uint_eq(s.ns, INT64_MAX);
	ck_assert_int_eq(s.hart, -1);
	ck_assert(s.has_cycles && s.cycles == INT64_MAX && !s.has_instructions);
}

TEST(texts_are_harmless_once_they_are_in)
{
	char *text[] = {"\x1b[31m\n", "\xff\xfe", "caf\xc3\xa9", "\xe2\x80\xae"};
	ck_assert_int_eq(add_texts(4, text), 0);
	ck_assert_str_eq(p.text[1], "\\x1b[31m\\x0a");
	ck_assert_str_eq(p.text[2], "\\xff\\xfe");
	ck_assert_str_eq(p.text[3], "caf\xc3\xa9");
	ck_assert_str_eq(p.text[4], "\\u{202e}");
}

TEST(pairs_get_dense_numbers_that_stay)
{
	enum { N = 5000 };
	struct pair_table t = {0};
	uint32_t number;
	for (uint32_t i = 0; i < N; i++) {
		ck_assert_int_eq(pair_get(&t, i % 70, i, &number), 0);
		ck_assert_uint_eq(number, i);
	}
	for (uint32_t i = 0; i < N; i++) {
		ck_assert_int_eq(pair_get(&t, i % 70, i, &number), 0);
		ck_assert_uint_eq(number, i);
	}
	ck_assert_uint_eq(t.n, N);
	pair_clear(&t);
}
