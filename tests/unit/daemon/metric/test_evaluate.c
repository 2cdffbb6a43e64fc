/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Values of a small tree by hand: of all shares `lost` and `done`, and of what is lost a `known` part; and a ratio
 * beside them.
 */
#include "daemon/metric/evaluate.h"

#include <math.h>
#include <string.h>

#include "daemon/count/jackknife.h"
#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

#define ORIGIN "\"source\": \"s\", \"verified\": \"no\""
#define EVENT(name, code)                                                                          \
	"{\"name\": \"" name "\", \"code\": " code ", \"topic\": \"t\", " ORIGIN "}"
#define METRIC(name, formula, group)                                                               \
	"{\"MetricName\": \"" name "\", \"MetricExpr\": \"" formula                                \
	"\", \"MetricGroup\": \"" group "\", \"ScaleUnit\": \"100%\", " ORIGIN "}"
#define N_STRETCHES 6

/* Columns: `all` is counted in two passes. */
enum { ALL_FIRST, LOST, DONE, ALL_SECOND, KNOWN, N_COLUMNS };
/* Metrics, in the order of the tree. */
enum { METRIC_LOST, METRIC_KNOWN, METRIC_DONE, N_METRICS };

static struct made_folder folder;
static struct platform_db *db;
static struct metric_tree *tree;
static struct metric_inputs *inputs;
static struct metric_value value[N_METRICS], residual[N_METRICS + 1];
static double whole[N_COLUMNS], running[N_COLUMNS], without[N_STRETCHES][N_COLUMNS];
static struct metric_counts counts;

static void begin(void)
{
	folder = made_folder_new();
	made_file(&folder, "mine.json",
		"{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"riscv\", " ORIGIN
		", \"cpus\": [{\"arch\": \"riscv\", \"mvendorid\": \"0x1\", " ORIGIN
		"}],\n\"events\": [" EVENT("all", "1") ", " EVENT("gone", "2") ", " EVENT(
			"used", "3") ", " EVENT("seen", "4") "],\n\"metrics\": [" METRIC("lost",
			"gone / all", "TopdownL1") ",\n" METRIC("done", "used / all",
			"TopdownL1") ",\n" METRIC("known", "seen / all", "lost_group") "]}");
	db = made_load(folder.path, NULL);
	must_be_clean(db);
	const struct platform *mine = platform_db_find(db, "mine");
	ck_assert_int_eq(metric_tree_new(mine, METRIC_TREE_TOP, 0, &tree), 0);
	ck_assert_uint_eq(tree->n_nodes, N_METRICS);
	const struct metric_core core = {.platform = mine};
	struct metric_choice chosen = {.n = tree->n_nodes};
	struct event_error error;
	for (size_t i = 0; i < tree->n_nodes; i++)
		chosen.metric[i] = tree->node[i].metric;
	ck_assert_int_eq(metric_inputs_new(&core, &chosen, &inputs, &error), 0);
	static const int column[N_METRICS][2] = {
		[METRIC_LOST] = {LOST, ALL_FIRST},
		[METRIC_KNOWN] = {KNOWN, ALL_SECOND},
		[METRIC_DONE] = {DONE, ALL_FIRST},
	};
	for (size_t i = 0; i < N_METRICS; i++)
		for (size_t k = 0; k < 2; k++)
			metric_inputs_read_from(inputs, i, k, column[i][k]);
	memcpy(whole, (double[N_COLUMNS]){1000, 300, 600, 1000, 100}, sizeof(whole));
	for (size_t i = 0; i < N_COLUMNS; i++)
		running[i] = 0.5;
	for (size_t s = 0; s < N_STRETCHES; s++)
		for (size_t i = 0; i < N_COLUMNS; i++)
			without[s][i] = whole[i] * (1 + 0.01 * (double)((s + 1) * (i + 1) % 5));
	counts = (struct metric_counts){.n = N_COLUMNS,
		.whole = whole,
		.running = running,
		.without = &without[0][0],
		.n_stretches = N_STRETCHES};
}

static void end(void)
{
	metric_inputs_free(inputs);
	metric_tree_free(tree);
	platform_db_free(db);
	made_folder_remove(&folder);
}

EACH_TEST(.begin = begin, .end = end);

static void evaluate(void)
{
	metric_evaluate(inputs, tree, &counts, value, residual);
}

static bool is(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

TEST(values_and_what_is_left_by_hand)
{
	evaluate();
	ck_assert(is(value[METRIC_LOST].value, 30));
	ck_assert(is(value[METRIC_KNOWN].value, 10));
	ck_assert(is(value[METRIC_DONE].value, 60));
	ck_assert(is(residual[METRIC_LOST].value, 20));
	ck_assert(isnan(residual[METRIC_KNOWN].value));
	ck_assert(is(residual[N_METRICS].value, 10));
}

/* The interval of a difference is not that of its parts: it is of the differences. */
TEST(intervals_are_of_the_values_without_each_stretch)
{
	const double part[N_STRETCHES] = {0.1, 0.2, 0.2, 0.2, 0.2, 0.1};
	double lost[N_STRETCHES], left[N_STRETCHES];
	for (size_t s = 0; s < N_STRETCHES; s++) {
		lost[s] = 100 * without[s][LOST] / without[s][ALL_FIRST];
		left[s] = lost[s] - 100 * without[s][KNOWN] / without[s][ALL_SECOND];
	}
	evaluate();
	ck_assert(is(value[METRIC_LOST].error, jackknife_error(lost, NULL, N_STRETCHES, 0.5)));
	ck_assert(is(residual[METRIC_LOST].error, jackknife_error(left, NULL, N_STRETCHES, 0.5)));
	counts.part = part;
	evaluate();
	ck_assert(is(value[METRIC_LOST].error, jackknife_error(lost, part, N_STRETCHES, 0.5)));
	counts.n_stretches = 3;
	evaluate();
	ck_assert(isnan(value[METRIC_LOST].error));
}

/* What raises a ratio, and what lowers it: the larger of both. The count of `all` is another one in each pass, and each
 * may be off by itself. */
TEST(rotation_puts_each_count_off_by_itself)
{
	struct metric_value calm[N_METRICS], calm_residual[N_METRICS + 1];
	evaluate();
	memcpy(calm, value, sizeof(value));
	memcpy(calm_residual, residual, sizeof(residual));
	counts.rotation = 0.01;
	evaluate();
	const double by_all = 1 - 1 / 1.01;
	ck_assert(is(value[METRIC_LOST].error - calm[METRIC_LOST].error, 30 * 0.01));
	/* lost up by `gone`, known down by its own `all`; lost down by its own, known up by `seen` */
	ck_assert(is(residual[METRIC_LOST].error - calm_residual[METRIC_LOST].error,
		fmax(30 * 0.01 + 10 * by_all, 30 * by_all + 10 * 0.01)));
	ck_assert(is(residual[N_METRICS].error - calm_residual[N_METRICS].error,
		fmax(30 * 0.01 + 60 * 0.01, 90 * by_all)));
}

TEST(what_was_counted_all_the_time_is_exact)
{
	counts.rotation = 0.01;
	running[ALL_FIRST] = running[LOST] = 1;
	evaluate();
	ck_assert_double_eq(value[METRIC_LOST].running, 1);
	ck_assert_double_eq(value[METRIC_LOST].error, 0);
	ck_assert_double_eq(value[METRIC_KNOWN].running, 0.5);
	ck_assert(value[METRIC_KNOWN].error > 0);
	ck_assert_double_eq(residual[METRIC_LOST].running, 0.5);
}

/* Nobody knows for how long what rides on samples was counted: nothing of it is exact. */
TEST(samples_are_a_small_part)
{
	double lost[N_STRETCHES];
	for (size_t s = 0; s < N_STRETCHES; s++)
		lost[s] = 100 * without[s][LOST] / without[s][ALL_FIRST];
	counts.running = NULL;
	metric_evaluate(inputs, NULL, &counts, value, NULL);
	ck_assert(is(value[METRIC_LOST].error, jackknife_error(lost, NULL, N_STRETCHES, 0)));
}

TEST(what_is_missing_is_named_with_its_column)
{
	whole[KNOWN] = NAN;
	running[KNOWN] = 0;
	metric_inputs_read_from(inputs, METRIC_DONE, 0, -1);
	evaluate();
	const struct metric_value *known = &value[METRIC_KNOWN], *done = &value[METRIC_DONE];
	ck_assert(isnan(known->value) && isnan(known->error));
	ck_assert_str_eq(known->missing, "seen");
	ck_assert_int_eq(known->missing_column, KNOWN);
	ck_assert_str_eq(known->reason, "seen was not counted");
	ck_assert(isnan(done->value));
	ck_assert_str_eq(done->missing, "used");
	ck_assert_int_eq(done->missing_column, -1);
	ck_assert(isnan(residual[METRIC_LOST].value));
	ck_assert(isnan(residual[N_METRICS].value));
	ck_assert(is(value[METRIC_LOST].value, 30));
	/* what has no value says nothing of how long the others were counted */
	ck_assert_double_eq(residual[METRIC_LOST].running, 0.5);
}

TEST(a_division_by_zero_is_no_missing_count)
{
	whole[ALL_SECOND] = 0;
	evaluate();
	ck_assert(isnan(value[METRIC_KNOWN].value));
	ck_assert_ptr_null(value[METRIC_KNOWN].missing);
	ck_assert_str_eq(value[METRIC_KNOWN].reason, "nothing to divide by: a count in it is 0");
}

/* An input of no metric, and one that is known: neither is counted in the other's place. */
TEST(each_metric_knows_its_columns)
{
	ck_assert_int_eq(metric_inputs_column(inputs, METRIC_LOST, "ALL"), ALL_FIRST);
	ck_assert_int_eq(metric_inputs_column(inputs, METRIC_KNOWN, "all"), ALL_SECOND);
	ck_assert_int_eq(metric_inputs_column(inputs, METRIC_KNOWN, "gone"), -1);
	const struct metric_needs needs = metric_inputs_needs(inputs, METRIC_KNOWN);
	ck_assert_uint_eq(needs.n, 2);
	ck_assert_str_eq(metric_inputs_name(inputs, needs.input[0]), "seen");
	ck_assert_str_eq(metric_inputs_name(inputs, needs.input[1]), "all");
}
