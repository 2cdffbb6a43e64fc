/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Metrics in files: what they say is kept, what is wrong with one is reported with its line, and
 * no metric needs itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform-db/expression.h"
#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define ORIGIN "\"source\": \"me\", \"verified\": \"no\""
#define PLATFORM(metrics)                                                                          \
	"{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"riscv\", " ORIGIN ",\n"         \
	"\"events\": [\n"                                                                          \
	"{\"name\": \"SLOTS_LOST\", \"code\": 1, \"topic\": \"t\", " ORIGIN "},\n"                 \
	"{\"name\": \"CLOCK\", \"code\": 2, \"topic\": \"t\", \"aliases\": [\"clk\"], " ORIGIN     \
	"}],\n\"metrics\": [\n" metrics "]}\n"
#define METRIC(name, text)                                                                         \
	"{\"MetricName\": \"" name "\", \"MetricExpr\": \"" text "\", " ORIGIN "}"

static struct made_folder f;

static void setup(void)
{
	f = made_folder_new();
}

static void teardown(void)
{
	made_folder_remove(&f);
}

EACH_TEST(.begin = setup, .end = teardown);

TEST(a_metric_has_what_its_row_says)
{
	made_file(&f, "mine.json",
		PLATFORM("{\"MetricName\": \"lost\", \"MetricExpr\": \"SLOTS_LOST / (clk * "
			 "#slots)\", "
			 "\"MetricGroup\": \"TopdownL1;Default\", \"ScaleUnit\": \"100%\", "
			 "\"BriefDescription\": \"Slots lost.\", " ORIGIN
			 "},\n" METRIC("both", "lost + cycles + r1a8 + LOST")));
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	must_be_clean(db);
	const struct platform *p = platform_db_find(db, "mine");
	const struct platform_metric *m = platform_metric_find(p, "LOST");
	ck_assert_uint_eq(p->n_metrics, 2);
	ck_assert_str_eq(m->name, "lost");
	ck_assert_str_eq(m->says, "Slots lost.");
	ck_assert_str_eq(m->text, "SLOTS_LOST / (clk * #slots)");
	ck_assert_uint_eq(m->n_groups, 2);
	ck_assert_str_eq(m->group[1], "Default");
	ck_assert_double_eq(m->scale, 100);
	ck_assert_str_eq(m->unit, "%");
	ck_assert_int_eq(m->expression->kind, EXPRESSION_DIVIDE);
	ck_assert_int_eq(m->origin.line, 6);
	ck_assert_ptr_null(platform_metric_find(p, "none"));
}

TEST(a_core_says_which_metrics_it_cannot_have)
{
	static const char head[] = PLATFORM(METRIC("lost", "SLOTS_LOST"));
	char text[2048];
	const char *const names[] = {"\"flops\", \"bytes\"", "\"flops\", \"LOST\""};
	for (int i = 0; i < 2; i++) {
		/* before the bracket that ends the file */
		snprintf(text, sizeof(text),
			"%.*s,\n\"quirks\": [\n{\"quirk\": \"missing\", \"metrics\": [%s], "
			"\"says\": "
			"\"no event counts it\", " ORIGIN "}]}\n",
			(int)strlen(head) - 2, head, names[i]);
		made_file(&f, "mine.json", text);
		_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
		if (i == 1) {
			must_complain(db, "mine.json:8: mine lacks the metric lost, and has it");
			continue;
		}
		must_be_clean(db);
		const struct platform *p = platform_db_find(db, "mine");
		ck_assert_str_eq(platform_lacks(p, "FLOPS"), "no event counts it");
		ck_assert_str_eq(platform_lacks(p, "bytes"), "no event counts it");
		ck_assert_ptr_null(platform_lacks(p, "lost"));
	}
}

/* Names of the architecture's generic events are events there, and nothing elsewhere. */
TEST(riscv_names_are_events_on_riscv_alone)
{
	static const char metric[] = PLATFORM(METRIC("ipc", "riscv_instret / RISCV_CYCLES"));
	char arm[sizeof(metric)];
	made_file(&f, "mine.json", metric);
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	must_be_clean(db);
	ck_assert_ptr_nonnull(platform_metric_find(platform_db_find(db, "mine"), "ipc"));
	db = platform_db_free(db);

	snprintf(arm, sizeof(arm), "%s", metric);
	char *arch = strstr(arm, "riscv");
	memcpy(arch, "arm64", strlen("arm64"));
	made_file(&f, "mine.json", arm);
	db = made_load(f.path, NULL);
	must_complain(db, "riscv_instret is neither an event nor a metric of mine");
}

TEST(a_metric_leads_to_groups_and_metrics)
{
	made_file(&f, "mine.json",
		PLATFORM("{\"MetricName\": \"a\", \"MetricExpr\": \"1\", \"next\": \"Second; "
			 "b\", " ORIGIN "},\n{\"MetricName\": \"b\", \"MetricExpr\": \"1\", "
			 "\"MetricGroup\": \"second\", " ORIGIN "}"));
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	must_be_clean(db);
	const struct platform_metric *m = platform_metric_find(platform_db_find(db, "mine"), "a");
	ck_assert_uint_eq(m->n_next, 2);
	ck_assert_str_eq(m->next[0], "Second");
	ck_assert_str_eq(m->next[1], "b");
}

TEST(what_is_wrong_with_a_metric_is_reported_with_its_line)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{PLATFORM(METRIC("m", "CLOCK +")), "wrong.json:6: 'MetricExpr' of m, column 8: a "
						   "value is missing before the end"},
		{PLATFORM(METRIC("m", "CLOCK + GONE")),
			"wrong.json:6: the metric m, column 9: GONE is neither an event nor a "
			"metric of mine"},
		{PLATFORM(METRIC("m", "m + 1")),
			"wrong.json:6: the metric m, column 1: m needs m itself"},
		{PLATFORM(METRIC("m", "a") ",\n" METRIC("a", "1 + b") ",\n" METRIC("b", "2 * M")),
			"wrong.json:6: the metric m, column 1: a needs m itself"},
		{PLATFORM(METRIC("m", "1") ",\n" METRIC("M", "2")),
			"wrong.json:7: a second metric named M; the first is at "},
		{PLATFORM("{\"MetricName\": \"m\", " ORIGIN "}"),
			"wrong.json:6: a metric lacks its 'MetricExpr'"},
		{PLATFORM("{\"MetricName\": \"m\", \"MetricExpr\": \"1\", \"verified\": \"no\"}"),
			"wrong.json:6: the metric m lacks 'source', and so does its list"},
		{PLATFORM("{\"MetricName\": \"m\", \"MetricExpr\": \"1\",\n\"ScaleUnit\": "
			  "\"%\", " ORIGIN "}"),
			"wrong.json:7: 'ScaleUnit' is not a number and a unit, such as 100%: '%'"},
		{PLATFORM("{\"MetricName\": \"m\", \"MetricExpr\": \"1\", \"ScaleUnit\": "
			  "\"-1%\", " ORIGIN "}"),
			"wrong.json:6: 'ScaleUnit' is not a number"},
		{PLATFORM("{\"MetricName\": \"m\", \"MetricExpr\": 1, " ORIGIN "}"),
			"wrong.json:6: 'MetricExpr' is not a text"},
		{PLATFORM("{\"MetricName\": \"m\", \"MetricExpr\": \"1\", \"Metric\": \"\", " ORIGIN
			  "}"),
			"wrong.json:6: unknown key 'Metric'; a metric has: MetricName"},
		{PLATFORM("{\"MetricName\": \"m\", \"MetricExpr\": \"1\", \"next\": "
			  "\"gone\", " ORIGIN "}"),
			"wrong.json:6: the metric m, 'next': gone is neither a metric nor a group "
			"of mine"},
		{PLATFORM("{\"MetricName\": \"m\", \"MetricExpr\": \"1\",\n\"next\": "
			  "\"a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;q\", " ORIGIN "}"),
			"wrong.json:7: 'next' has more than 16 groups"},
		{PLATFORM("{\"MetricName\": \"m\", \"MetricExpr\": \"1\", \"next\": [], " ORIGIN
			  "}"),
			"wrong.json:6: 'next' is not a text"},
		{PLATFORM("7"), "wrong.json:6: a metric must be an object in braces"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		made_file(&f, "wrong.json", rows[i].text);
		_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
		must_complain(db, rows[i].says);
		ck_assert_ptr_null(platform_db_find(db, "mine"));
	}
}

/* "m0" needs "m1", which needs "m2" …, n of them. */
static void made_chain(size_t n)
{
	char text[8192];
	size_t at = 0;
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
			"%s{\"MetricName\": \"m%zu\", \"MetricExpr\": \"1 + %c%zu\"}",
			i ? ",\n" : "[", i, i + 1 < n ? 'm' : 'r', i + 1);
	snprintf(text + at, sizeof(text) - at, "]\n");
	made_file(&f, "v/mapfile.csv", "0x123-0x1-0x1,v1,core,core\n");
	made_file(&f, "v/core/a.json", text);
}

static const struct platform *load_chain(size_t n, struct platform_db **ret_db)
{
	made_chain(n);
	*ret_db = made_load(f.path, NULL);
	return platform_db_find(*ret_db, "core");
}

TEST(a_chain_of_metrics_has_a_limit)
{
	_cleanup_(platform_db_freep) struct platform_db *short_db = NULL, *long_db = NULL;
	ck_assert_uint_eq(load_chain(32, &short_db)->n_metrics, 32);
	must_be_clean(short_db);
	const struct platform *p = load_chain(33, &long_db);
	must_complain(long_db, "the metric m0 needs a chain of more than 32 others");
	/* The others stay. */
	ck_assert_uint_eq(p->n_metrics, 32);
	ck_assert_ptr_null(platform_metric_find(p, "m0"));
}

/* Each names the next twice: 2^24 names, which would take minutes. */
TEST(metrics_that_double_at_each_level_have_a_limit)
{
	char text[4096];
	size_t at = 0;
	for (size_t i = 0; i < 24; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
			"%s{\"MetricName\": \"m%zu\", \"MetricExpr\": \"m%zu + m%zu\"}",
			i ? ",\n" : "[", i, i + 1, i + 1);
	snprintf(text + at, sizeof(text) - at, "]\n");
	made_file(&f, "v/mapfile.csv", "0x123-0x1-0x1,v1,core,core\n");
	made_file(&f, "v/core/a.json", text);
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	const struct platform *p = platform_db_find(db, "core");
	ck_assert_ptr_nonnull(
		strstr(platform_db_error(db, 0), "the metric m0 leads to more than 100000 names"));
	ck_assert_ptr_null(platform_metric_find(p, "m0"));
	ck_assert_ptr_nonnull(platform_metric_find(p, "m23"));
}

TEST(third_party_metrics_are_read_and_a_bad_one_costs_no_other)
{
	made_file(&f, "v/mapfile.csv", "0x123-0x1-0x1,v1,core,core\n");
	made_file(&f, "v/standard.json",
		"[{\"MetricName\": \"retiring\", \"MetricExpr\": \"OP_RETIRED / (#slots * "
		"CPU_CYCLES)\", "
		"\"ScaleUnit\": \"100%\", \"BriefDescription\": \"Of all cores.\"}]\n");
	made_file(&f, "v/core/a.json",
		"[{\"ArchStdEvent\": \"RETIRING\", \"MetricExpr\": \"OP_SPEC / CPU_CYCLES\"},\n"
		"{\"MetricName\": \"bad\", \"MetricExpr\": \"A ! B\"},\n"
		"{\"MetricName\": \"round\", \"MetricExpr\": \"trip\"},\n"
		"{\"MetricName\": \"trip\", \"MetricExpr\": \"round\"},\n"
		"{\"MetricName\": \"far\", \"MetricExpr\": \"cha@event\\\\=0x36@ / 2\", "
		"\"MetricGroup\": \"a;b\"},\n"
		"{\"EventName\": \"E\", \"EventCode\": \"0x7\"}]\n");
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	must_complain(db, "v/core/a.json:2: 'MetricExpr' of bad, column 3: '!' is not allowed in "
			  "an expression");
	const struct platform *p = platform_db_find(db, "core");
	ck_assert_ptr_nonnull(p);
	/* The circle shows when the platform is put together. */
	ck_assert_ptr_nonnull(strstr(platform_db_error(db, 1), "a.json:3: the metric round"));
	ck_assert_ptr_nonnull(strstr(platform_db_error(db, 2), "a.json:4: the metric trip"));
	ck_assert_uint_eq(p->n_metrics, 2);
	ck_assert_uint_eq(platform_event_find(p, "E")->code, 7);
	const struct platform_metric *m = platform_metric_find(p, "retiring");
	ck_assert_str_eq(m->text, "OP_SPEC / CPU_CYCLES");
	ck_assert_str_eq(m->says, "Of all cores.");
	ck_assert_str_eq(m->unit, "%");
	m = platform_metric_find(p, "far");
	ck_assert_str_eq(m->expression->operand[0]->name, "cha@event=0x36@");
}

TEST(a_later_folder_replaces_a_metric)
{
	struct made_folder over = made_folder_new();
	made_file(&f, "mine.json", PLATFORM(METRIC("a", "1") ",\n" METRIC("b", "a + 1")));
	made_file(&over, "mine.json",
		"{\"platform\": \"mine\", " ORIGIN ", \"metrics\": [" METRIC("A", "CLOCK") "]}\n");
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, over.path);
	must_be_clean(db);
	const struct platform *p = platform_db_find(db, "mine");
	ck_assert_uint_eq(p->n_metrics, 2);
	ck_assert_str_eq(platform_metric_find(p, "a")->text, "CLOCK");
	made_folder_remove(&over);
}

/* Linux's own files beside ours: one tree, by their formulas, with our marks. */
TEST(a_third_partys_metric_has_the_place_of_ours)
{
	made_file(&f, "ours/mine.json",
		"{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"x86\", " ORIGIN
		",\n\"cpus\": [{\"arch\": \"x86\", \"vendor\": \"GenuineIntel\", \"family\": 6, "
		"\"model\": 85, " ORIGIN "}],\n\"metrics\": [\n"
		"{\"MetricName\": \"tma_retiring\", \"MetricExpr\": \"1 / cycles\", "
		"\"MetricGroup\": \"TopdownL1;Useful\", \"next\": \"other\", " ORIGIN
		"},\n" METRIC("other", "2 / cycles") "]}\n");
	made_file(&f, "theirs/mapfile.csv", "GenuineIntel-6-55,v1,theirs,core\n");
	made_file(&f, "theirs/theirs/metrics.json",
		"[{\"MetricName\": \"TMA_Retiring\", \"MetricExpr\": \"3 / cycles\", "
		"\"MetricGroup\": \"PipelineL1\"}]\n");
	char ours[80], theirs[80];
	snprintf(ours, sizeof(ours), "%s/ours", f.path);
	snprintf(theirs, sizeof(theirs), "%s/theirs", f.path);
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(ours, theirs);
	const struct platform_identity id = {.arch = PLATFORM_ARCH_X86,
		.read = true,
		.vendor = "GenuineIntel",
		.family = 6,
		.model = 85};
	must_be_clean(db);
	const struct platform *p = platform_match(db, &id);
	const struct platform_metric *m = platform_metric_find(p, "tma_retiring");
	ck_assert_uint_eq(p->n_metrics, 2);
	ck_assert_str_eq(m->text, "3 / cycles");
	ck_assert(platform_metric_is_in(m, "PipelineL1"));
	ck_assert(platform_metric_is_in(m, "TopdownL1") && platform_metric_is_in(m, "Useful"));
	ck_assert_uint_eq(m->n_next, 1);
	ck_assert_str_eq(m->next[0], "other");
}
