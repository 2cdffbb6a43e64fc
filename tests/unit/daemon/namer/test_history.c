/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Code at addresses, one after the other, against a list that is searched from its end. */

#include <stdlib.h>

#include "daemon/namer/history.h"
#include "tests/unit/test.h"

#define N_CODE 3000u

static struct history h;

static void end(void)
{
	history_clear(&h);
}

EACH_TEST(.end = end, .seconds = 60);

static void add(uint64_t start, uint64_t bytes, const char *name)
{
	ck_assert_int_eq(history_add(&h, (struct generated){start, start + bytes, name}, NULL), 0);
}

static const char *at(uint64_t addr, uint32_t order)
{
	const struct generated *code = history_find(&h, addr, order);

	return code ? code->name : "(none)";
}

TEST(nothing_is_at_an_address_where_nothing_was)
{
	ck_assert_str_eq(at(0x1000, 7), "(none)");
	add(0x1000, 0x10, "a");
	add(0x1000, 0, "empty");
	add(UINT64_MAX - 1, 1, "last");
	ck_assert_uint_eq(h.n, 2);
	ck_assert_str_eq(at(0xfff, 7), "(none)");
	ck_assert_str_eq(at(0x1010, 7), "(none)");
	ck_assert_str_eq(at(UINT64_MAX - 1, 7), "last");
	ck_assert_str_eq(at(UINT64_MAX, 7), "(none)");
}

TEST(the_last_one_is_taken_back_while_it_can_be)
{
	history_drop_last(&h);
	add(0x1000, 0x10, "a");
	add(0x1000, 0x10, "b");
	history_drop_last(&h);
	ck_assert_uint_eq(h.n, 1);
	ck_assert_str_eq(at(0x1000, UINT32_MAX), "a");
}

TEST(what_is_added_again_has_the_new_tag)
{
	for (uint32_t tag = 1; tag < 4; tag++)
		ck_assert_int_eq(
			history_add(&h, (struct generated){0x1000, 0x1010, "a", .tag = tag}, NULL),
			0);
	ck_assert_uint_eq(h.n, 1);
	ck_assert_uint_eq(h.code[0].tag, 3);
}

TEST(the_last_one_of_any_number_is_taken_back)
{
	for (uint32_t i = 0; i < 100; i++) {
		add(0x1000 + 0x10 * i, 0x10, "whole");
		add(0x9000, 0x10, "cut");
		history_drop_last(&h);
		ck_assert_uint_eq(h.n, i + 1);
		ck_assert_str_eq(at(0x9000, UINT32_MAX), "(none)");
	}
	for (uint32_t i = 0; i < 100; i++)
		ck_assert_str_eq(at(0x1000 + 0x10 * i, UINT32_MAX), "whole");
}

static uint32_t number(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* By going through all that there is. */
static const struct generated *slowly(uint64_t addr, uint32_t order)
{
	for (uint32_t i = order < h.n ? order : h.n; i > 0; i--)
		if (h.code[i - 1].start <= addr && addr < h.code[i - 1].end)
			return &h.code[i - 1];
	for (uint32_t i = order; i < h.n; i++)
		if (h.code[i].start <= addr && addr < h.code[i].end)
			return &h.code[i];
	return NULL;
}

TEST(each_address_has_the_name_of_each_time, .times = 4)
{
	static const uint32_t wide[] = {40, 400, 40000, 400000};
	static char name[N_CODE][8];
	uint32_t state = (uint32_t)_i + 1;

	for (uint32_t i = 0; i < N_CODE; i++) {
		uint64_t start = number(&state) % wide[_i];
		snprintf(name[i], sizeof(name[i]), "%u", i);
		bool was = false;
		uint64_t bytes = 1 + number(&state) % 30;
		for (uint64_t addr = start; addr < start + bytes; addr++)
			was |= slowly(addr, h.n) != NULL;
		add(start, bytes, name[i]);
		ck_assert_uint_eq(h.code[h.n - 1].covers, was);
	}
	for (uint32_t i = 0; i < 4 * N_CODE; i++) {
		uint64_t addr = number(&state) % (wide[_i] + 40);
		uint32_t order = number(&state) % (N_CODE + 2);
		ck_assert_ptr_eq(history_find(&h, addr, order), slowly(addr, order));
	}
}

/* What a hostile file may do: each line at the same address. Seconds, if each looked at all before. */
TEST(a_hundred_thousand_names_of_one_address_take_no_time)
{
	static char name[100000][8];

	for (uint32_t i = 0; i < 100000; i++) {
		snprintf(name[i], sizeof(name[i]), "%x", i);
		add(0x1000, 0x10, name[i]);
	}
	ck_assert_uint_eq(h.n, 100000);
	ck_assert_str_eq(at(0x1008, UINT32_MAX), "1869f");
	ck_assert_str_eq(at(0x1008, 1), "0");
}
