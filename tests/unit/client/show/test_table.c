/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Replies put together by hand, printed into memory: alignment, cutting, absence, JSON, and the
 * provenance line.
 */
#include <jansson.h>
#include <locale.h>
#include <math.h>

#include "client/show/escape.h"
#include "client/show/reply.h"
#include "client/show/table.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/test.h"

static int add(void *reply, const Mperf__Answer *a)
{
	return reply_add(reply, a);
}

static const struct answers_column hotspots[] = {
	{"function", "Function", MPERF__UNIT__UNIT_NONE},
	{"module", "Module", MPERF__UNIT__UNIT_NONE},
	{"self", "Share", MPERF__UNIT__UNIT_SHARE},
	{"samples", "Samples", MPERF__UNIT__UNIT_COUNT},
	{"ipc", "IPC", MPERF__UNIT__UNIT_RATIO},
};
#define N_HOTSPOTS (sizeof(hotspots) / sizeof(*hotspots))

static void add_hotspot(
	struct reply *r, Mperf__Value name, const char *module, double share, Mperf__Value ipc)
{
	Mperf__Value v[] = {name, answers_text(module), answers_real(share),
		answers_integer((int64_t)(10000 * share)), ipc};
	ck_assert_int_eq(answers_row(add, r, v, N_HOTSPOTS), 0);
}

static struct reply two_hotspots(Mperf__Value ipc)
{
	struct reply r = {0};
	setlocale(LC_CTYPE, "C.UTF-8");
	ck_assert_int_eq(answers_columns(add, &r, hotspots, N_HOTSPOTS), 0);
	add_hotspot(&r, answers_text("sqlite3VdbeExec"), "/usr/bin/speedtest1", 0.1844, ipc);
	add_hotspot(&r, answers_text("f"), "/x", 0.01, answers_absent());
	return r;
}

/* What table_print writes; the reply is cleared. The caller frees. */
static char *printed(struct reply *r, const struct table_options *o)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	ck_assert_int_eq(table_print(r, o, f), 0);
	fclose(f);
	reply_clear(r);
	return text;
}

TEST(numbers_are_aligned_and_names_last)
{
	struct reply r = two_hotspots(answers_real(0.86));
	char *text = printed(&r, &(struct table_options){0});
	ck_assert_str_eq(text, "  Share  Samples   IPC  Function         Module\n"
			       "18.44 %    1,844  0.86  sqlite3VdbeExec  /usr/bin/speedtest1\n"
			       " 1.00 %      100     -  f                /x\n");
	free(text);
}

TEST(a_column_without_measurements_is_left_out)
{
	struct reply r = two_hotspots(answers_absent());
	char *text = printed(&r, &(struct table_options){0});
	ck_assert_ptr_null(strstr(text, "IPC"));
	free(text);
}

TEST(hidden_columns_are_not_shown)
{
	struct reply r = two_hotspots(answers_real(1));
	static const char *const hide[] = {"samples", "no such", NULL};
	char *text = printed(&r, &(struct table_options){.hide = hide});
	ck_assert_ptr_null(strstr(text, "Samples"));
	ck_assert_ptr_nonnull(strstr(text, "IPC"));
	free(text);
}

TEST(columns_are_shown_in_the_order_asked_for)
{
	struct reply r = two_hotspots(answers_real(0.86));
	static const char *const show[] = {"function", "no such", "ipc", "self", NULL};
	char *text = printed(&r, &(struct table_options){.show = show});
	ck_assert_str_eq(text, "Function          IPC    Share\n"
			       "sqlite3VdbeExec  0.86  18.44 %\n"
			       "f                   -   1.00 %\n");
	free(text);
}

TEST(the_first_column_is_indented_by_another)
{
	static const struct answers_column column[] = {
		{"name", "Name", MPERF__UNIT__UNIT_NONE},
		{"depth", "Depth", MPERF__UNIT__UNIT_COUNT},
	};
	static const char *const show[] = {"name", NULL};
	static const int64_t depth[] = {0, 2, -5, INT64_MAX};
	struct reply r = {0};
	answers_columns(add, &r, column, 2);
	for (size_t i = 0; i < 4; i++) {
		Mperf__Value v[] = {answers_text("f"), answers_integer(depth[i])};
		answers_row(add, &r, v, 2);
	}
	char *text = printed(&r, &(struct table_options){.show = show, .indent = "depth"});
	ck_assert_str_eq(text, "Name\nf\n    f\nf\n                                f\n");
	free(text);
}

TEST(a_name_loses_its_middle_where_asked)
{
	static const struct answers_column column[] = {
		{"name", "Name", MPERF__UNIT__UNIT_NONE},
		{"n", "N", MPERF__UNIT__UNIT_COUNT},
	};
	static const char *const show[] = {"name", "n", NULL};
	struct reply r = {0};
	setlocale(LC_CTYPE, "C.UTF-8");
	answers_columns(add, &r, column, 2);
	Mperf__Value v[] = {
		answers_text("vector<pair<int, größer>>::push_back()"), answers_integer(7)};
	answers_row(add, &r, v, 2);
	char *text =
		printed(&r, &(struct table_options){.show = show, .cut_middle = true, .width = 23});
	ck_assert_str_eq(text, "Name                  N\n"
			       "vector<pai…sh_back()  7\n");
	free(text);
}

TEST(raw_values_are_unrounded_and_tab_separated)
{
	struct reply r = two_hotspots(answers_absent());
	char *text = printed(&r, &(struct table_options){.raw = true, .width = 20});
	ck_assert_ptr_nonnull(strstr(text, "self\tsamples\tipc\tfunction\tmodule\n"));
	ck_assert_ptr_nonnull(strstr(text, "\t1844\t-\tsqlite3VdbeExec\t/usr/bin/speedtest1\n"));
	free(text);
}

TEST(times_are_shown_without_their_offset_and_kept_in_raw)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
		{"2026-11-21T15:00:00+01:00", "2026-11-21 15:00:00"},
		{"2026-11-21T15:00:00", "2026-11-21T15:00:00"}, /* by no clock that we know */
		{"2026-11-21 15:00:00+01:00", "2026-11-21 15:00:00+01:00"},
		{"2026-11-2\x1bT15:00:00+01:00", "2026-11-2\\x1bT15:00:00+01:00"},
		{"yesterday", "yesterday"},
		{"", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		Mperf__Value v = answers_text(cases[i].text);
		char *shown = table_cell(&v, MPERF__UNIT__UNIT_TIME, false);
		char *raw = table_cell(&v, MPERF__UNIT__UNIT_TIME, true);
		ck_assert_str_eq(shown, cases[i].shown);
		ck_assert_uint_eq(strchr(raw, 'T') != NULL, strchr(cases[i].text, 'T') != NULL);
		free(shown);
		free(raw);
	}
}

TEST(no_line_is_wider_than_the_terminal)
{
	for (size_t width = 60; width < 90; width++) {
		struct reply r = {0};
		setlocale(LC_CTYPE, "C.UTF-8");
		answers_columns(add, &r, hotspots, N_HOTSPOTS);
		add_hotspot(&r,
			answers_text("std::vector<std::pair<int, größer>>::push_back(関数)"),
			"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 0.5, answers_absent());
		char *text = printed(&r, &(struct table_options){.width = width}), *rest = text;
		for (char *line; (line = strsep(&rest, "\n"));)
			ck_assert_uint_le(escape_width(line), width);
		ck_assert_ptr_nonnull(strstr(text, "Share"));
		free(text);
	}
}

TEST(a_cut_path_keeps_its_end)
{
	struct reply r = two_hotspots(answers_absent());
	char *text = printed(&r, &(struct table_options){.width = 46});
	ck_assert_ptr_nonnull(strstr(text, "…n/speedtest1\n"));
	free(text);
}

TEST(a_terminal_too_narrow_for_anything_still_gets_lines)
{
	struct reply r = two_hotspots(answers_absent());
	char *text = printed(&r, &(struct table_options){.width = 1});
	ck_assert_ptr_nonnull(strstr(text, "18.44 %"));
	free(text);
}

TEST(hostile_names_are_escaped_in_cells_and_headings)
{
	static const struct answers_column column[] = {
		{"topic", "Topic", MPERF__UNIT__UNIT_NONE},
		{"event", "\033[5mEvent", MPERF__UNIT__UNIT_NONE},
	};
	struct reply r = {0};
	answers_columns(add, &r, column, 2);
	Mperf__Value v[] = {answers_text("\033[2J"), answers_text("\033]0;x\007\xff")};
	answers_row(add, &r, v, 2);
	char *text = printed(&r, &(struct table_options){.group = "topic"});
	ck_assert_ptr_null(strchr(text, '\033'));
	ck_assert_ptr_null(strchr(text, '\xff'));
	ck_assert_ptr_nonnull(strstr(text, "\\x1b[2J\n"));
	free(text);
}

TEST(colour_comes_only_when_asked_for)
{
	struct reply r = two_hotspots(answers_absent());
	char *text = printed(&r, &(struct table_options){.colour = true});
	ck_assert_ptr_nonnull(strstr(text, "\033[1;31m18.44 %\033[0m"));
	free(text);
	r = two_hotspots(answers_absent());
	text = printed(&r, &(struct table_options){0});
	ck_assert_ptr_null(strchr(text, '\033'));
	free(text);
}

TEST(a_reply_without_columns_prints_nothing)
{
	struct reply r = {0};
	char *text = printed(&r, &(struct table_options){0});
	ck_assert_str_eq(text, "");
	free(text);
}

TEST(a_reply_without_rows_prints_its_header)
{
	struct reply r = {0};
	answers_columns(add, &r, hotspots, N_HOTSPOTS);
	char *text = printed(&r, &(struct table_options){0});
	ck_assert_str_eq(text, "Share  Samples  IPC  Function  Module\n");
	free(text);
}

TEST(rows_that_do_not_fit_are_refused)
{
	struct reply r = {0};
	Mperf__Value v[] = {answers_integer(1), answers_integer(2)};
	ck_assert_int_eq(answers_row(add, &r, v, 2), REPLY_MALFORMED); /* no columns yet */
	answers_columns(add, &r, hotspots, N_HOTSPOTS);
	ck_assert_int_eq(answers_row(add, &r, v, 2), REPLY_MALFORMED);
	ck_assert_int_eq(answers_row(add, &r, v, 0), REPLY_MALFORMED);
	ck_assert_uint_eq(r.n_rows, 0);
	reply_clear(&r);
}

TEST(too_many_columns_are_refused)
{
	struct answers_column many[REPLY_COLUMNS_MAX + 1];
	struct reply r = {0};
	for (size_t i = 0; i <= REPLY_COLUMNS_MAX; i++)
		many[i] = hotspots[0];
	ck_assert_int_eq(answers_columns(add, &r, many, REPLY_COLUMNS_MAX + 1), REPLY_TOO_LARGE);
	ck_assert_int_eq(answers_columns(add, &r, many, REPLY_COLUMNS_MAX), 0);
	reply_clear(&r);
}

TEST(new_columns_forget_old_rows)
{
	struct reply r = two_hotspots(answers_absent());
	answers_columns(add, &r, hotspots, 1);
	ck_assert_uint_eq(r.n_rows, 0);
	ck_assert_int_eq(reply_column(&r, "module"), -1);
	ck_assert_ptr_null(reply_value(&r, 0, 0));
	reply_clear(&r);
}

static Mperf__Provenance provenance(void)
{
	Mperf__Provenance p = MPERF__PROVENANCE__INIT;
	p.event = (char *)"cpu-clock";
	p.rung = (char *)"d: cpu-clock alone";
	p.hz = 99;
	p.samples = 1204;
	p.seconds = 12.13;
	p.named_share = 0.987;
	return p;
}

TEST(provenance_is_one_line)
{
	Mperf__Provenance p = provenance();
	char *line = reply_provenance_line(&p);
	ck_assert_str_eq(line,
		"cpu-clock, rung d (cpu-clock alone), 99 Hz; 1,204 samples in 12.1 s; "
		"lost: none; 98.7 % named");
	free(line);
}

TEST(provenance_tells_losses_rungs_and_notes)
{
	Mperf__Provenance p = provenance();
	Mperf__Loss full = MPERF__LOSS__INIT, none = MPERF__LOSS__INIT, *loss[3] = {&full, &none};
	full.cause = (char *)"ring \033overrun";
	full.count = 1200;
	full.samples = true;
	none.cause = (char *)"throttled";
	Mperf__Loss late = MPERF__LOSS__INIT;
	late.cause = (char *)"late record";
	late.count = 3;
	char *note = (char *)"IPC mixes modes";
	p.loss = loss;
	loss[2] = &late;
	p.n_loss = 3;
	p.note = &note;
	p.n_note = 1;
	p.rung = (char *)"a: cycles; d: cpu-clock alone";
	char *line = reply_provenance_line(&p);
	ck_assert_ptr_nonnull(strstr(line, "rung a (cycles), rung d (cpu-clock alone), 99 Hz"));
	ck_assert_ptr_nonnull(
		strstr(line, "lost: ring \\x1boverrun (1,200); besides: late record (3); 98.7"));
	ck_assert_ptr_nonnull(strstr(line, "; IPC mixes modes"));
	free(line);
}

TEST(empty_provenance_claims_nothing)
{
	Mperf__Provenance p = MPERF__PROVENANCE__INIT;
	char *line = reply_provenance_line(&p);
	ck_assert_str_eq(line, "no event; 0 samples; lost: none");
	free(line);
}

static json_t *json_of(struct reply *r)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	ck_assert_int_eq(reply_write_json(r, f), 0);
	fclose(f);
	reply_clear(r);
	json_t *root = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(root);
	free(text);
	return root;
}

TEST(json_has_columns_rows_and_provenance)
{
	struct reply r = two_hotspots(answers_real(0.86));
	Mperf__Provenance p = provenance();
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_PROVENANCE;
	a.provenance = &p;
	ck_assert_int_eq(reply_add(&r, &a), 0);

	json_t *root = json_of(&r);
	json_t *rows = json_object_get(root, "rows");
	ck_assert_uint_eq(json_array_size(rows), 2);
	json_t *first = json_array_get(rows, 0);
	ck_assert_int_eq(json_integer_value(json_object_get(first, "samples")), 1844);
	ck_assert(json_real_value(json_object_get(first, "self")) == 0.1844);
	ck_assert(json_is_null(json_object_get(json_array_get(rows, 1), "ipc")));
	json_t *column = json_array_get(json_object_get(root, "columns"), 2);
	ck_assert_str_eq(json_string_value(json_object_get(column, "unit")), "share");
	json_t *from = json_object_get(root, "provenance");
	ck_assert_str_eq(json_string_value(json_object_get(from, "event")), "cpu-clock");
	json_decref(root);
}

TEST(json_survives_hostile_text_and_numbers)
{
	struct reply r = {0};
	answers_columns(add, &r, hotspots, N_HOTSPOTS);
	add_hotspot(
		&r, answers_text("\"},\033\xff</script>"), "\xed\xa0\x80", 0.5, answers_real(NAN));
	json_t *root = json_of(&r);
	json_t *row = json_array_get(json_object_get(root, "rows"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(row, "function")),
		"\"},\033\xef\xbf\xbd</script>");
	ck_assert(json_is_null(json_object_get(row, "ipc")));
	ck_assert(json_is_null(json_object_get(root, "provenance")));
	json_decref(root);
}

TEST(a_full_disc_is_an_error)
{
	struct reply r = two_hotspots(answers_absent());
	FILE *f = fopen("/dev/full", "w");
	ck_assert_ptr_nonnull(f);
	setvbuf(f, NULL, _IONBF, 0);
	ck_assert_int_lt(table_print(&r, &(struct table_options){0}, f), 0);
	clearerr(f);
	ck_assert_int_lt(reply_write_json(&r, f), 0);
	fclose(f);
	reply_clear(&r);
}
