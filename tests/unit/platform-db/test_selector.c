/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Raw codes by their fields: those of XiangShan Kunminghu by hand from its guide's table, and a made core.
 */
#include <string.h>

#include "platform-db/selector.h"
#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define FRONTEND UINT64_C(0x7f8)
#define BACKEND UINT64_C(0x7f800)

static struct platform_db *db;
static const struct platform *kunminghu;

static void setup(void)
{
	db = made_load_data();
	kunminghu = platform_db_find(db, "xiangshan-kunminghu");
	ck_assert_ptr_nonnull(kunminghu);
}

static void teardown(void)
{
	db = platform_db_free(db);
}

EACH_TEST(.begin = setup, .end = teardown);

static void must_compose(const char *bank, const char *text, uint64_t code, uint64_t counters)
{
	struct selector_code got = {0, 0};
	struct selector_error error = {0, ""};
	int r = selector_compose(kunminghu, bank, text, &got, &error);
	ck_assert_msg(r == 0, "%s: %s", text, error.text);
	ck_assert_msg(got.code == code, "%s: 0x%llx", text, (unsigned long long)got.code);
	ck_assert_uint_eq(got.counters, counters);
}

static void must_refuse(const char *bank, const char *text, size_t at, const char *says)
{
	struct selector_code got = {7, 7};
	struct selector_error error = {0, ""};
	ck_assert_msg(selector_compose(kunminghu, bank, text, &got, &error) == SELECTOR_WRONG, "%s",
		text);
	ck_assert_msg(strstr(error.text, says) != NULL, "%s: '%s'", text, error.text);
	ck_assert_msg(error.at == at, "%s: at %zu", text, error.at);
	ck_assert_uint_eq(got.code, 7);
}

/* The guide's own example: EVENT0 of a frontend counter is 22. */
TEST(one_event_is_its_index)
{
	must_compose("frontend", "Fetch_Latency_Bound", 22, FRONTEND);
	must_compose("backend", "inst_spec", 7, BACKEND);
	must_compose("backend", "(INST_SPEC)", 7, BACKEND);
	must_compose("backend", "0x7", 7, BACKEND);
}

/* OP_TYPE0 is in bits 44 to 40: OR 0, AND 1, XOR 2, ADD 4. EVENT1 begins at bit 10. */
TEST(two_events_need_one_operation)
{
	const uint64_t both = 7 | UINT64_C(8) << 10;
	must_compose("backend", "INST_SPEC|RECOVERY_BUBBLE", both, BACKEND);
	must_compose("backend", "INST_SPEC&RECOVERY_BUBBLE", both | UINT64_C(1) << 40, BACKEND);
	must_compose("backend", "INST_SPEC^RECOVERY_BUBBLE", both | UINT64_C(2) << 40, BACKEND);
	must_compose("backend", "INST_SPEC+RECOVERY_BUBBLE", UINT64_C(0x40000002007), BACKEND);
	ck_assert_uint_eq(platform_event_find(kunminghu, "INST_SPEC_AND_RECOVERY")->code,
		UINT64_C(0x40000002007));
}

/* OP_TYPE1 in 49 to 45 joins EVENT2 (from bit 20) and EVENT3 (30), OP_TYPE2 in 54 to 50 the results. */
TEST(four_events_need_three)
{
	const uint64_t events = 1 | UINT64_C(2) << 10 | UINT64_C(3) << 20 | UINT64_C(4) << 30;
	const uint64_t adds = UINT64_C(4) << 40 | UINT64_C(4) << 45 | UINT64_C(4) << 50;
	must_compose("backend", "1+2+3+4", events | adds, BACKEND);
	must_compose("backend", "(1+2)+(3+4)", events | adds, BACKEND);
	must_compose(
		"backend", "(1&2)|(3^4)", events | UINT64_C(1) << 40 | UINT64_C(2) << 45, BACKEND);
	must_compose("backend", "1+2+3",
		1 | UINT64_C(2) << 10 | UINT64_C(3) << 20 | UINT64_C(4) << 40 | UINT64_C(4) << 50,
		BACKEND);
	/* One event beside two: the first result is EVENT0, passed on by OP_TYPE0 as it is. */
	must_compose("backend", "1&(2+3)",
		1 | UINT64_C(2) << 20 | UINT64_C(3) << 30 | UINT64_C(4) << 45 | UINT64_C(1) << 50,
		BACKEND);
}

TEST(what_the_selector_cannot_say_is_refused)
{
	must_refuse("backend", "", 0, "an event is missing");
	must_refuse("backend", "+1", 0, "an event is missing");
	must_refuse("backend", "1+", 2, "an event is missing");
	must_refuse("backend", "1+2|3", 3, "'|' after '+': use brackets to say which comes first");
	must_refuse("backend", "(1+2", 0, "this '(' has no ')'");
	must_refuse("backend", "1+2)", 3, "this ')' closes nothing");
	must_refuse("backend", "()", 1, "an event is missing");
	must_refuse("backend", "(((((1)))))", 4, "nested too deeply");
	must_refuse("backend", "1+2+3+4+5", 0, "5 events, but codes of XiangShan Kunminghu");
	must_refuse("backend", "1+2+3+4+5+6+7+8+9", 16, "more than 8 events");
	must_refuse("backend", "1&(2|(3+4))", 0,
		"cannot express this: OP_TYPE0 joins EVENT0 and EVENT1, OP_TYPE1 joins EVENT2 and "
		"EVENT3, OP_TYPE2 joins OP_TYPE0 and OP_TYPE1");
	must_refuse("backend", "1024", 0, "'1024' is not a number from 1 up that fits into EVENT0");
	must_refuse("backend", "1+0+2", 2, "'0' is not a number from 1 up");
	must_refuse("backend", "1+0xz", 2, "'0xz' is not a number");
	must_refuse(
		"backend", "1+Front_Bubble", 2, "no event 'Front_Bubble' among those of backend");
	must_refuse("backend", "INST_SPEC_AND_RECOVERY+1", 0, "is itself a combination");
	must_refuse("middle", "1", 0, "has no bank of counters 'middle'");
}

TEST(fields_are_set_by_number_and_by_name)
{
	struct selector_error error = {0, ""};
	uint64_t code = 0;
	ck_assert_int_eq(selector_set(kunminghu, "EVENT0", "7", &code, &error), 0);
	ck_assert_int_eq(selector_set(kunminghu, "event1", "0x8", &code, &error), 0);
	ck_assert_int_eq(selector_set(kunminghu, "OP_TYPE0", "add", &code, &error), 0);
	ck_assert_uint_eq(code, UINT64_C(0x40000002007));
	ck_assert_int_eq(selector_set(kunminghu, "OP_TYPE0", "SUB", &code, &error), SELECTOR_WRONG);
	ck_assert_ptr_nonnull(strstr(error.text, "'SUB' is neither a number of 5 bits nor a name"));
	ck_assert_int_eq(selector_set(kunminghu, "EVENT0", "1024", &code, &error), SELECTOR_WRONG);
	ck_assert_int_eq(selector_set(kunminghu, "EVENT4", "1", &code, &error), SELECTOR_WRONG);
	ck_assert_ptr_nonnull(strstr(error.text, "no field 'EVENT4'; they have: EVENT0, EVENT1"));
	ck_assert_uint_eq(code, UINT64_C(0x40000002007));
}

static const struct platform_field *field_named(const struct platform *p, const char *name)
{
	for (size_t i = 0; i < p->n_fields; i++)
		if (strcmp(p->field[i].name, name) == 0)
			return &p->field[i];
	ck_abort_msg("no field %s", name);
	return NULL;
}

TEST(a_code_is_said_in_words)
{
	const uint64_t code = UINT64_C(0x40000002007);
	char text[SELECTOR_TEXT_BYTES], bits[SELECTOR_BITS_BYTES];
	const struct platform_field *f = field_named(kunminghu, "OP_TYPE0");
	ck_assert_uint_eq(selector_value(f, code), 4);
	ck_assert_str_eq(selector_bits_say(f->mask, bits), "44-40");
	ck_assert_str_eq(selector_means(kunminghu, f, code, text), "ADD of EVENT0 and EVENT1");
	ck_assert_str_eq(selector_means(kunminghu, field_named(kunminghu, "EVENT2"), code, text),
		"no event");
	ck_assert_ptr_nonnull(
		strstr(selector_means(kunminghu, field_named(kunminghu, "EVENT0"), code, text),
			"backend:INST_SPEC, "));
	ck_assert_str_eq(selector_says(kunminghu, "backend", code, text),
		"backend:INST_SPEC+RECOVERY_BUBBLE");
	ck_assert_ptr_eq(selector_field_of(kunminghu, 62), field_named(kunminghu, "MINH"));
	ck_assert_ptr_null(selector_field_of(kunminghu, 56));
	ck_assert_str_eq(selector_bits_say(0xff | UINT64_C(0xf) << 32, bits), "7-0,35-32");
	ck_assert_str_eq(selector_bits_say(UINT64_MAX, bits), "63-0");
}

/* A code that is no expression of that bank: an index without a name, a bit outside, an unknown operation,
 * a result that AND has nothing to join with. */
TEST(what_is_no_expression_is_not_said_as_one)
{
	char text[SELECTOR_TEXT_BYTES];
	static const uint64_t codes[] = {0, 1023, 7 | UINT64_C(1) << 62, 7 | UINT64_C(8) << 40,
		7 | UINT64_C(1) << 40, UINT64_C(7) << 10};
	for (size_t i = 0; i < N(codes); i++)
		ck_assert_msg(!*selector_says(kunminghu, "backend", codes[i], text), "%s", text);
}

/* All expressions of up to three operations come back as what they were. */
TEST(expressions_come_back)
{
	static const char signs[] = "+|&^";
	for (int i = 0; i < 64; i++) {
		char text[SELECTOR_TEXT_BYTES], whole[SELECTOR_TEXT_BYTES + 16],
			said[SELECTOR_TEXT_BYTES];
		struct selector_code code = {0, 0}, again = {0, 0};
		struct selector_error error = {0, ""};
		snprintf(text, sizeof(text), "(INST_SPEC%crename_in)%c(dispatch_in%cTOTAL_FLUSH)",
			signs[i % 4], signs[i / 4 % 4], signs[i / 16]);
		ck_assert_int_eq(selector_compose(kunminghu, "backend", text, &code, &error), 0);
		snprintf(whole, sizeof(whole), "backend:%s", text);
		ck_assert_str_eq(selector_says(kunminghu, "backend", code.code, said), whole);
		ck_assert_int_eq(selector_compose(kunminghu, "backend", said + strlen("backend:"),
					 &again, &error),
			0);
		ck_assert_uint_eq(again.code, code.code);
	}
}

TEST(the_banks_are_the_topics_that_have_counters_of_their_own)
{
	static const char *const banks[] = {"backend", "cache", "frontend", "memory"};
	for (size_t i = 0; i < N(banks); i++)
		ck_assert_str_eq(selector_bank(kunminghu, i), banks[i]);
	ck_assert_ptr_null(selector_bank(kunminghu, N(banks)));
	ck_assert(selector_has_bank(kunminghu, "Backend"));
	ck_assert(!selector_has_bank(kunminghu, "metrics"));
	ck_assert(!selector_has_bank(platform_db_find(db, "spacemit-x60"), "memory"));
}

TEST(codes_are_written_as_people_write_them)
{
	static const char *const wrong[] = {"", "r", "0x", "22", "r0x", "rg", "0x-1", "r 2",
		"r12345678901234567", "rr2", "0x0x2"};
	uint64_t code = 5;
	for (size_t i = 0; i < N(wrong); i++)
		ck_assert_msg(!selector_code_parse(wrong[i], &code) && code == 5, "%s", wrong[i]);
	ck_assert(selector_code_parse("r22", &code) && code == 0x22);
	ck_assert(selector_code_parse("r0x22", &code) && code == 0x22);
	ck_assert(selector_code_parse("0xffffffffffffffff", &code) && code == UINT64_MAX);
}

/* A bit for each event, and fields of two ranges: not Kunminghu's form. */
TEST(other_cores_have_other_fields)
{
	char text[SELECTOR_TEXT_BYTES];
	const struct platform *u74 = platform_db_find(db, "sifive-u74");
	const struct platform *amd = platform_db_find(db, "x86-amd");
	ck_assert_str_eq(selector_means(u74, field_named(u74, "events"), 0x602, text),
		"DCACHE_MISS_MMIO_ACCESSES or DCACHE_WRITEBACK");
	ck_assert_uint_eq(selector_value(field_named(amd, "event"), UINT64_C(0x1000005a8)), 0x1a8);
	ck_assert_uint_eq(selector_value(field_named(amd, "umask"), UINT64_C(0x1000005a8)), 5);
}
