/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rounds of counts made by hand: what follows from them, what is told of what was not measured,
 * and the spread over repetitions.
 */

#include "client/show/counts.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/test.h"

static const struct answers_column columns[] = {
	{"event", "Event", MPERF__UNIT__UNIT_NONE},
	{"value", "Value", MPERF__UNIT__UNIT_COUNT},
	{"scaled", "Scaled", MPERF__UNIT__UNIT_COUNT},
	{"running_share", "Running", MPERF__UNIT__UNIT_SHARE},
	{"reason", "Reason", MPERF__UNIT__UNIT_NONE},
};
#define N_COLUMNS (sizeof(columns) / sizeof(*columns))

static int add(void *reply, const Mperf__Answer *a)
{
	return reply_add(reply, a);
}

static void add_count(struct reply *r, const char *event, double scaled, double share)
{
	Mperf__Value v[] = {answers_text(event), answers_integer((int64_t)(scaled * share)),
		answers_real(scaled), answers_real(share), answers_absent()};
	ck_assert_int_eq(answers_row(add, r, v, N_COLUMNS), 0);
}

static struct reply empty_reply(void)
{
	struct reply r = {0};
	ck_assert_int_eq(answers_columns(add, &r, columns, N_COLUMNS), 0);
	return r;
}

/* What counts_print writes; both are cleared. The caller frees. */
static char *printed(struct counts *c, struct reply *r)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	counts_print(c, "true", f);
	fclose(f);
	counts_clear(c);
	reply_clear(r);
	return text;
}

TEST(instructions_and_cycles_give_ipc)
{
	struct reply r = empty_reply();
	struct counts c = {0};
	add_count(&r, "cycles", 4e9, 1);
	add_count(&r, "instructions", 3.44e9, 1);
	ck_assert_int_eq(counts_add(&c, &r), 0);
	counts_add_times(&c, 2e9, 1.9e9, 0.1e9);
	char *text = printed(&c, &r);
	ck_assert_ptr_nonnull(strstr(text, "3,440,000,000  instructions"));
	ck_assert_ptr_nonnull(strstr(text, "0.86 insn per cycle"));
	ck_assert_ptr_nonnull(strstr(text, "2.000 GHz"));
	ck_assert_ptr_nonnull(strstr(text, "2.000000000 seconds elapsed"));
	ck_assert_ptr_nonnull(strstr(text, "1.900000000 seconds user"));
	ck_assert_ptr_null(strstr(text, "±"));
	free(text);
}

TEST(events_of_different_modes_are_not_divided)
{
	struct reply r = empty_reply();
	struct counts c = {0};
	add_count(&r, "cycles:k", 4e9, 1);
	add_count(&r, "instructions:u", 3e9, 1);
	ck_assert_int_eq(counts_add(&c, &r), 0);
	counts_add_times(&c, 1e9, -1, -1);
	char *text = printed(&c, &r);
	ck_assert_ptr_null(strstr(text, "insn per cycle"));
	ck_assert_ptr_null(strstr(text, "seconds user"));
	free(text);
}

TEST(scaled_counts_say_so)
{
	struct reply r = empty_reply();
	struct counts c = {0};
	add_count(&r, "branches", 1e6, 0.25);
	ck_assert_int_eq(counts_add(&c, &r), 0);
	counts_add_times(&c, 1e9, 0, 0);
	char *text = printed(&c, &r);
	ck_assert_ptr_nonnull(strstr(text, "1,000,000  branches"));
	ck_assert_ptr_nonnull(strstr(text, "scaled: counted 25.0 % of the time"));
	free(text);
}

TEST(scaled_counts_never_say_none_or_all_of_the_time)
{
	static const double shares[] = {0.0001, 0.9994, 0.9996};
	for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		struct reply r = empty_reply();
		struct counts c = {0};
		add_count(&r, "branches", 1e6, shares[i]);
		ck_assert_int_eq(counts_add(&c, &r), 0);
		counts_add_times(&c, 1e9, 0, 0);
		char *text = printed(&c, &r);
		ck_assert_ptr_null(strstr(text, "counted 0.0 %"));
		ck_assert_ptr_null(strstr(text, "counted 100.0 %"));
		ck_assert((strstr(text, "scaled") != NULL) == (i < 2));
		free(text);
	}
}

TEST(what_was_not_measured_has_its_reason_and_no_number)
{
	struct reply r = empty_reply();
	struct counts c = {0};
	Mperf__Value v[] = {answers_text("cycles"), answers_absent(), answers_absent(),
		answers_absent(), answers_text("no \033PMU here")};
	ck_assert_int_eq(answers_row(add, &r, v, N_COLUMNS), 0);
	add_count(&r, "instructions", 1000, 1);
	ck_assert_int_eq(counts_add(&c, &r), 0);
	counts_add_times(&c, 1e9, 0, 0);
	char *text = printed(&c, &r);
	ck_assert_ptr_nonnull(strstr(text, "<not measured>  cycles"));
	ck_assert_ptr_nonnull(strstr(text, "no \\x1bPMU here"));
	ck_assert_ptr_null(strstr(text, "insn per cycle"));
	free(text);
}

TEST(repetitions_give_mean_and_spread)
{
	static const double rounds[] = {90, 100, 110}; /* mean 100, standard deviation 10 */
	struct counts c = {0};
	struct reply r = {0};
	for (int i = 0; i < 3; i++) {
		reply_clear(&r);
		r = empty_reply();
		add_count(&r, "page-faults", rounds[i], 1);
		ck_assert_int_eq(counts_add(&c, &r), 0);
		counts_add_times(&c, 1e9, 0, 0);
	}
	char *text = printed(&c, &r);
	ck_assert_ptr_nonnull(strstr(text, "(3 runs)"));
	ck_assert_ptr_nonnull(strstr(text, " 100  page-faults"));
	ck_assert_ptr_nonnull(strstr(text, "± 10.00 %"));
	free(text);
}

TEST(rounds_that_differ_in_events_are_refused)
{
	struct counts c = {0};
	struct reply r = empty_reply();
	add_count(&r, "cycles", 1, 1);
	ck_assert_int_eq(counts_add(&c, &r), 0);
	reply_clear(&r);

	r = empty_reply();
	add_count(&r, "branches", 1, 1);
	ck_assert_int_eq(counts_add(&c, &r), COUNTS_MALFORMED);
	add_count(&r, "cycles", 1, 1);
	ck_assert_int_eq(counts_add(&c, &r), COUNTS_MALFORMED);
	reply_clear(&r);
	counts_clear(&c);
}

TEST(a_round_without_event_names_is_refused)
{
	static const struct answers_column wrong = {"pid", "", MPERF__UNIT__UNIT_NONE};
	struct counts c = {0};
	struct reply r = {0};
	Mperf__Value v[] = {answers_integer(1)};
	ck_assert_int_eq(answers_columns(add, &r, &wrong, 1), 0);
	ck_assert_int_eq(answers_row(add, &r, v, 1), 0);
	ck_assert_int_eq(counts_add(&c, &r), COUNTS_MALFORMED);
	reply_clear(&r);
	counts_clear(&c);
}

TEST(clocks_are_told_in_time)
{
	struct reply r = empty_reply();
	struct counts c = {0};
	add_count(&r, "task-clock", 1.5e9, 1);
	add_count(&r, "context-switches", 3000, 1);
	ck_assert_int_eq(counts_add(&c, &r), 0);
	counts_add_times(&c, 1e9, 0, 0);
	char *text = printed(&c, &r);
	ck_assert_ptr_nonnull(strstr(text, "1500.00 msec  task-clock"));
	ck_assert_ptr_nonnull(strstr(text, "1.500 CPUs utilized"));
	ck_assert_ptr_nonnull(strstr(text, "2.000 K/sec"));
	free(text);
}

/* A metric of one round has an error; of several rounds, a spread says more. */
TEST(a_scaled_metric_says_how_far_it_may_be_off)
{
	static const struct answers_column metric[] = {{"event", "", MPERF__UNIT__UNIT_NONE},
		{"scaled", "", MPERF__UNIT__UNIT_COUNT},
		{"running_share", "", MPERF__UNIT__UNIT_SHARE},
		{"unit", "", MPERF__UNIT__UNIT_NONE}, {"error", "", MPERF__UNIT__UNIT_NONE}};
	const struct {
		double share;
		Mperf__Value error;
		const char *says;
	} rows[] = {
		{0.4, answers_real(1.25), "(scaled: counted 40.0 % of the time, ± 1.2)\n"},
		{0.4, answers_absent(), "(scaled: counted 40.0 % of the time)\n"},
		{1, answers_real(0), "12.00 %  miss_rate\n"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct reply r = {0};
		struct counts c = {0};
		Mperf__Value v[] = {answers_text("miss_rate"), answers_real(12),
			answers_real(rows[i].share), answers_text("%"), rows[i].error};
		ck_assert_int_eq(answers_columns(add, &r, metric, 5), 0);
		ck_assert_int_eq(answers_row(add, &r, v, 5), 0);
		ck_assert_int_eq(counts_add(&c, &r), 0);
		char *text = printed(&c, &r);
		ck_assert_msg(strstr(text, rows[i].says) != NULL, "%s", text);
		free(text);
	}
}

TEST(fields_are_as_perf_prints_them)
{
	static const struct answers_column heading[] = {{"event", "", MPERF__UNIT__UNIT_NONE},
		{"scaled", "", MPERF__UNIT__UNIT_COUNT},
		{"running_share", "", MPERF__UNIT__UNIT_SHARE}};
	struct reply r = {0};
	struct counts c = {0};
	char *text = NULL;
	size_t size;
	Mperf__Value clock[] = {answers_text("task-clock"), answers_real(2500000), answers_real(1)};
	Mperf__Value faults[] = {answers_text("a,b"), answers_real(7), answers_real(0.5)};
	Mperf__Value cycles[] = {answers_text("cycles"), answers_absent(), answers_absent()};
	ck_assert_int_eq(answers_columns(add, &r, heading, 3), 0);
	ck_assert_int_eq(answers_row(add, &r, clock, 3), 0);
	ck_assert_int_eq(answers_row(add, &r, faults, 3), 0);
	ck_assert_int_eq(answers_row(add, &r, cycles, 3), 0);
	ck_assert_int_eq(counts_add(&c, &r), 0);
	FILE *f = open_memstream(&text, &size);
	counts_print_fields(&c, -1, ",", f);
	counts_print_fields(&c, 1e8, ";", f);
	fclose(f);
	ck_assert_str_eq(text, "2.500000,msec,task-clock,,100.00\n"
			       "7,,a b,,50.00\n"
			       "<not counted>,,cycles,,0.00\n"
			       "0.100000000;2.500000;msec;task-clock;;100.00\n"
			       "0.100000000;7;;a,b;;50.00\n"
			       "0.100000000;<not counted>;;cycles;;0.00\n");
	free(text);
	counts_clear(&c);
	reply_clear(&r);
}
