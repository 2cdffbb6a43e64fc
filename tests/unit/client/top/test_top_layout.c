/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Columns on screens of every width, harts on few lines, frames as text and as JSON.
 */
#include <jansson.h>
#include <locale.h>
#include <math.h>

#include "client/show/escape.h"
#include "client/top/harts.h"
#include "client/top/layout.h"
#include "client/top/text.h"
#include "tests/unit/client/frames.h"
#include "tests/unit/test.h"

static int add(void *reply, const Mperf__Answer *a)
{
	return reply_add(reply, a);
}

static const struct frames_function functions[] = {
	{"std::vector<größe, 関数>::push_back", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 0.5, 1,
		0.86},
	{"\033[2J", NULL, 0.25, 0.3, -1},
	{NULL, "/opt/stripped", 0, 0, 0.1},
};
#define N_FUNCTIONS (sizeof(functions) / sizeof(*functions))

static struct reply table(void)
{
	struct reply r = {0};
	setlocale(LC_CTYPE, "C.UTF-8");
	frames_columns(add, &r, "function", frames_functions, FRAMES_N_FUNCTIONS);
	for (size_t i = 0; i < N_FUNCTIONS; i++)
		ck_assert_int_eq(frames_function(add, &r, &functions[i]), 0);
	return r;
}

static size_t total(const struct top_layout *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		n += l->column[i].width + (i > 0 ? TOP_GAP : 0);
	return n;
}

static bool has(const struct reply *r, const struct top_layout *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if ((int)l->column[i].index == reply_column(r, name))
			return true;
	return false;
}

TEST(columns_fill_every_width_exactly)
{
	struct reply r = table();
	for (size_t width = 40; width < 300; width++) {
		size_t grown[REPLY_COLUMNS_MAX] = {0};
		struct top_layout l;
		top_layout(&r, width, grown, &l);
		ck_assert_uint_eq(total(&l), width);
		ck_assert(has(&r, &l, "self") && has(&r, &l, "function"));
		ck_assert(!has(&r, &l, "self_ns"));
	}
	reply_clear(&r);
}

TEST(figures_stand_before_names)
{
	struct reply r = table();
	size_t grown[REPLY_COLUMNS_MAX] = {0};
	struct top_layout l;
	top_layout(&r, 120, grown, &l);
	for (size_t i = 1; i < l.n; i++)
		ck_assert(l.column[i].name >= l.column[i - 1].name);
	ck_assert(l.column[l.n - 1].name);
	reply_clear(&r);
}

TEST(a_narrow_screen_keeps_the_share_and_the_function)
{
	struct reply r = table();
	size_t grown[REPLY_COLUMNS_MAX] = {0};
	struct top_layout l;
	top_layout(&r, 40, grown, &l);
	ck_assert(!has(&r, &l, "process") && !has(&r, &l, "samples"));
	for (size_t width = 0; width < 40; width++) /* not shown, and yet no harm */
		top_layout(&r, width, grown, &l);
	reply_clear(&r);
}

TEST(ipc_is_not_shown_without_the_share_of_samples_that_it_covers)
{
	static const struct answers_column columns[] = {
		{"function", "Function", MPERF__UNIT__UNIT_NONE},
		{"module", "Module", MPERF__UNIT__UNIT_NONE},
		{"self", "Self", MPERF__UNIT__UNIT_SHARE},
		{"total", "Total", MPERF__UNIT__UNIT_SHARE},
		{"ipc", "IPC", MPERF__UNIT__UNIT_RATIO},
		{"counted", "Counted", MPERF__UNIT__UNIT_SHARE},
	};
	struct reply r = {0};
	int n_with = 0, n_without = 0;
	frames_columns(add, &r, "function", columns, sizeof(columns) / sizeof(*columns));
	for (size_t width = 10; width < 120; width++) {
		size_t grown[REPLY_COLUMNS_MAX] = {0};
		struct top_layout l;
		top_layout(&r, width, grown, &l);
		ck_assert(!has(&r, &l, "ipc") || has(&r, &l, "counted"));
		n_with += has(&r, &l, "ipc");
		n_without += !has(&r, &l, "ipc");
	}
	ck_assert(n_with > 0 && n_without > 0);
	reply_clear(&r);
}

TEST(widths_of_names_only_grow)
{
	struct reply r = table(), small = {0};
	size_t grown[REPLY_COLUMNS_MAX] = {0};
	struct top_layout first, second;
	static const struct frames_function short_one = {"f", "/m", 1, 1, 1};

	top_layout(&r, 250, grown, &first);
	frames_columns(add, &small, "function", frames_functions, FRAMES_N_FUNCTIONS);
	frames_function(add, &small, &short_one);
	top_layout(&small, 250, grown, &second);
	ck_assert_uint_eq(first.n, second.n);
	for (size_t i = 0; i < first.n; i++)
		ck_assert_uint_eq(first.column[i].width, second.column[i].width);
	reply_clear(&r);
	reply_clear(&small);
}

TEST(a_table_without_rows_or_columns_is_laid_out)
{
	struct reply r = {0};
	size_t grown[REPLY_COLUMNS_MAX] = {0};
	struct top_layout l;
	frames_columns(add, &r, "function", frames_functions, FRAMES_N_FUNCTIONS);
	top_layout(&r, 80, grown, &l);
	ck_assert_uint_gt(l.n, 2);
	frames_columns(add, &r, "function", frames_functions, 0);
	top_layout(&r, 80, grown, &l);
	ck_assert_uint_eq(l.n, 0);
	reply_clear(&r);
}

static void cut_is(const char *text, size_t width, const char *wanted)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	char *cut = top_cut(text, width, "~");
	ck_assert_str_eq(cut, wanted);
	free(cut);
}

TEST(a_path_loses_its_front_and_a_name_its_end)
{
	cut_is("/usr/lib/libc.so.6", 18, "/usr/lib/libc.so.6");
	cut_is("/usr/lib/libc.so.6", 17, "~/lib/libc.so.6");
	cut_is("/usr/lib/libc.so.6", 12, "~/libc.so.6");
	cut_is("/usr/lib/libc.so.6", 8, "~bc.so.6");
	cut_is("push_back", 5, "push~");
	cut_is("/bin/cc -c /tmp/a.c", 12, "/bin/cc -c ~"); /* a command line */
	cut_is("関数関数", 6, "関数~");
	cut_is("関数関数", 8, "関数関数");
	cut_is("abc", 1, "~");
	cut_is("abc", 0, "");
	cut_is("/", 0, "");
}

TEST(counts_are_told_in_few_letters)
{
	static const struct answers_column column = {"n", "N", MPERF__UNIT__UNIT_COUNT};
	static const struct {
		int64_t n;
		const char *text;
	} cases[] = {{0, "0"}, {99999, "99,999"}, {100000, "100 k"}, {999499, "999 k"},
		{999500, "1.00 M"}, {12345678, "12.3 M"}, {1600000000, "1.60 G"},
		{INT64_MAX, "9.22 E"}, {-1, "-"}, {INT64_MIN, "-"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct reply r = {0};
		Mperf__Value v = answers_integer(cases[i].n);
		answers_columns(add, &r, &column, 1);
		answers_row(add, &r, &v, 1);
		char *text = top_cell(&r, 0, 0);
		ck_assert_str_eq(text, cases[i].text);
		free(text);
		reply_clear(&r);
	}
}

/* --- harts ------------------------------------------------------------------------------------ */

static struct reply harts(int n, const char *other_rung)
{
	struct reply r = {0};
	frames_columns(add, &r, "harts", frames_harts, FRAMES_N_HARTS);
	for (int i = 0; i < n; i++)
		frames_hart(add, &r, i, i % 2 ? 1.0 : 0.5,
			i == n - 1 && other_rung ? other_rung : "d: cpu-clock alone");
	return r;
}

TEST(each_hart_has_a_line_while_there_is_room)
{
	struct reply r = harts(3, NULL);
	struct top_hart line[8];
	char label[16];

	ck_assert_uint_eq(top_harts(&r, line, 8), 3);
	ck_assert_double_eq(line[1].load, 1.0);
	ck_assert_str_eq(line[2].rung, "d");
	ck_assert(line[0].has_ipc && line[0].has_hz);
	top_hart_label(&line[2], label, sizeof(label));
	ck_assert_str_eq(label, "2");
	reply_clear(&r);
}

TEST(harts_without_room_share_the_last_line)
{
	struct reply r = harts(64, NULL);
	struct top_hart line[4];
	char label[16];

	ck_assert_uint_eq(top_harts(&r, line, 4), 4);
	ck_assert_int_eq(line[3].first, 3);
	ck_assert_int_eq(line[3].last, 63);
	/* 31 of 1.0 and 30 of 0.5 */
	ck_assert_double_eq_tol(line[3].load, (31 + 15) / 61.0, 1e-9);
	ck_assert(!line[3].has_ipc && line[3].has_hz);
	ck_assert_str_eq(line[3].rung, "d");
	top_hart_label(&line[3], label, sizeof(label));
	ck_assert_str_eq(label, "3-63");
	reply_clear(&r);
}

TEST(harts_of_different_rungs_are_mixed)
{
	struct reply r = harts(4, "a: cycles");
	struct top_hart line[2];
	ck_assert_uint_eq(top_harts(&r, line, 2), 2);
	ck_assert_str_eq(line[1].rung, "mixed");
	reply_clear(&r);
}

TEST(harts_with_nothing_known_are_told_without_figures)
{
	static const struct answers_column column = {"other", "Other", MPERF__UNIT__UNIT_NONE};
	struct reply r = {0};
	struct top_hart line[1];
	Mperf__Value v = answers_text("x");

	answers_columns(add, &r, &column, 1);
	ck_assert_uint_eq(top_harts(&r, line, 1), 0);
	answers_row(add, &r, &v, 1);
	answers_row(add, &r, &v, 1);
	ck_assert_uint_eq(top_harts(&r, line, 1), 1);
	ck_assert(!line[0].has_load && !line[0].has_hz && !line[0].has_ipc);
	ck_assert_str_eq(line[0].rung, "");
	reply_clear(&r);
}

TEST(shares_that_are_none_are_not_known)
{
	struct reply r = {0};
	struct top_hart line[4];
	frames_columns(add, &r, "harts", frames_harts, FRAMES_N_HARTS);
	frames_hart(add, &r, 0, 1e300, "d");
	frames_hart(add, &r, -5, -0.1, "d");
	frames_hart(add, &r, 2, NAN, "d");
	ck_assert_uint_eq(top_harts(&r, line, 4), 3);
	for (int i = 0; i < 3; i++)
		ck_assert(!line[i].has_load && !line[i].has_user && line[i].load == 0);
	ck_assert_int_eq(line[1].first, 0);
	reply_clear(&r);
}

TEST(a_rung_that_is_too_long_is_cut)
{
	char rung[200];
	memset(rung, 'x', sizeof(rung) - 1);
	rung[sizeof(rung) - 1] = '\0';
	struct reply r = harts(2, rung);
	struct top_hart line[2];
	top_harts(&r, line, 2);
	ck_assert_uint_eq(strlen(line[1].rung), TOP_RUNG_BYTES - 1);
	reply_clear(&r);
}

/* --- frames as text --------------------------------------------------------------------------- */

static int take(void *model, const Mperf__Answer *a)
{
	return top_model_take(model, a, 1795274368000000000);
}

/* The frame as these options write it. The caller frees. */
static char *written(const struct options *o, uint64_t samples)
{
	struct top_model m;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	setlocale(LC_CTYPE, "C.UTF-8");
	top_model_open(&m, "function", 0);
	ck_assert_int_eq(top_text_write(&m, o, f), 0); /* without a frame: nothing */
	frames_columns(take, &m, "harts", frames_harts, FRAMES_N_HARTS);
	frames_hart(take, &m, 0, 0.5, "d: cpu-clock alone");
	frames_columns(take, &m, "function", frames_functions, FRAMES_N_FUNCTIONS);
	for (size_t i = 0; i < N_FUNCTIONS; i++)
		frames_function(take, &m, &functions[i]);
	ck_assert_int_eq(frames_provenance(take, &m, samples), TOP_FRAME);
	ck_assert_int_eq(top_text_write(&m, o, f), 0);
	fclose(f);
	top_model_clear(&m);
	return text;
}

TEST(text_says_that_names_are_still_coming)
{
	struct options o = {.narrowing.n_comms = 0};
	char *text = written(&o, FRAMES_SAMPLES_EARLY);
	ck_assert_ptr_nonnull(strstr(text, "  0.0 % named (97 % are still coming)\n"));
	free(text);
}

TEST(text_says_what_a_screen_says)
{
	struct options o = {
		.narrowing = {.n_comms = 2, .comm = {(char *)"cc1", (char *)"\033[2J"}}};
	char *text = written(&o, 100);
	ck_assert_ptr_nonnull(strstr(text, "99 Hz  100 samples/s  lost 0  100.0 % named; named "
					   "cc1, \\x1b[2J\n"));
	ck_assert_ptr_nonnull(strstr(text, "hart  0"));
	ck_assert_ptr_nonnull(strstr(text, "user  25.00 %  kernel  25.00 %  d  99 Hz  IPC 0.50"));
	ck_assert_ptr_nonnull(strstr(text, "50.00 %  100.00 %"));
	ck_assert_ptr_nonnull(strstr(text, "\ncpu-clock, rung d (cpu-clock alone), 99 Hz; 100 "));
	ck_assert_ptr_null(strchr(text, '\033'));
	free(text);
}

TEST(raw_is_both_tables_in_tabs)
{
	struct options o = {.look.raw = true};
	char *text = written(&o, 100);
	ck_assert_ptr_nonnull(strstr(text, "load\tuser\tkernel"));
	ck_assert_ptr_nonnull(strstr(text, "\n\nself\ttotal\tsamples\tself_ns\tipc\tfunction"));
	ck_assert_ptr_null(strstr(text, "lost"));
	free(text);
}

TEST(json_is_one_line_with_time_harts_and_rows)
{
	struct options o = {.look.json = true};
	char *text = written(&o, 100);
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
	json_t *root = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(root);
	ck_assert_str_eq(json_string_value(json_object_get(root, "by")), "function");
	ck_assert_double_eq_tol(json_real_value(json_object_get(root, "time")), 1795274368, 0.01);
	ck_assert_uint_eq(json_array_size(json_object_get(root, "harts")), 1);
	json_t *rows = json_object_get(root, "rows");
	ck_assert_uint_eq(json_array_size(rows), N_FUNCTIONS);
	ck_assert(json_is_null(json_object_get(json_array_get(rows, 1), "ipc")));
	ck_assert_int_eq(
		json_integer_value(json_object_get(json_object_get(root, "provenance"), "samples")),
		100);
	json_decref(root);
	free(text);
}

TEST(what_was_left_out_is_named)
{
	struct options o = {.target = {.n_pids = 2, .pid = {12, 13}, .n_cpus = 2, .cpu = {0, 7}},
		.narrowing = {.n_cgroups = 1, .cgroup = {(char *)"/a/"}}};
	char *text = top_text_narrowed(&o);
	ck_assert_str_eq(text, "; process 12, 13; in /a/; on hart 0,7");
	free(text);
	text = top_text_narrowed(&(struct options){0});
	ck_assert_str_eq(text, "");
	free(text);
}
