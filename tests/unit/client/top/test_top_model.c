/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Frames and keys without a terminal: what is shown, in which order, and what is asked for next.
 */

#include <math.h>

#include "client/top/keys.h"
#include "client/top/model.h"
#include "tests/unit/client/frames.h"
#include "tests/unit/test.h"

static struct top_model m;
static int result; /* of the last answer that was taken */

static int take(void *userdata, const Mperf__Answer *a)
{
	result = top_model_take(userdata, a, 42);
	return result;
}

static const struct frames_function three[] = {
	{"alpha", "/lib/one.so", 0.5, 0.6, 0.9},
	{"beta", "/lib/two.so", 0.3, 0.9, -1},
	{"gamma", "/lib/one.so", 0.2, 0.2, 1.5},
};

static void begin_frame(const char *by)
{
	ck_assert_int_eq(frames_columns(take, &m, "harts", frames_harts, FRAMES_N_HARTS), 0);
	ck_assert_int_eq(frames_hart(take, &m, 0, 0.5, "d: cpu-clock alone"), 0);
	ck_assert_int_eq(frames_columns(take, &m, by, frames_functions, FRAMES_N_FUNCTIONS), 0);
}

static void add_frame(const struct frames_function *f, size_t n)
{
	begin_frame("function");
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(frames_function(take, &m, &f[i]), 0);
	ck_assert_int_eq(frames_provenance(take, &m, 100), TOP_FRAME);
}

static void set_up(void)
{
	top_model_open(&m, "function", 0);
	m.page = 10;
}

static void tear_down(void)
{
	top_model_clear(&m);
}

EACH_TEST(.begin = set_up, .end = tear_down);

/* The function on the i-th line; "-" without one. */
static const char *line(size_t i)
{
	const struct reply *rows = top_model_rows(&m);
	ck_assert_ptr_nonnull(rows);
	ck_assert_uint_lt(i, m.n_order);
	const char *name = reply_text(rows, m.order[i], reply_column(rows, "function"));
	return name ? name : "-";
}

static void press_all(const char *keys)
{
	for (; *keys; keys++)
		top_keys_press(&m, (unsigned char)*keys);
}

TEST(a_frame_is_shown_once_it_is_whole)
{
	begin_frame("function");
	frames_function(take, &m, &three[0]);
	ck_assert_ptr_null(top_model_rows(&m));
	ck_assert_int_eq(frames_provenance(take, &m, 7), TOP_FRAME);
	ck_assert_str_eq(line(0), "alpha");
	ck_assert_uint_eq(top_model_harts(&m)->n_rows, 1);
	ck_assert_uint_eq(m.n_frames, 1);

	begin_frame("function"); /* the next is under way: the last stays */
	ck_assert_uint_eq(m.n_order, 1);
	ck_assert_str_eq(line(0), "alpha");
}

TEST(a_frame_without_its_rows_is_malformed)
{
	begin_frame("module");
	ck_assert_int_eq(frames_provenance(take, &m, 7), REPLY_MALFORMED);
	ck_assert_ptr_null(top_model_rows(&m));
}

TEST(rows_before_columns_are_malformed)
{
	ck_assert_int_eq(frames_function(take, &m, &three[0]), REPLY_MALFORMED);
	ck_assert_int_eq(frames_provenance(take, &m, 7), REPLY_MALFORMED);
}

TEST(rows_of_another_length_are_malformed)
{
	frames_columns(take, &m, "harts", frames_harts, FRAMES_N_HARTS);
	frames_function(take, &m, &three[0]);
	ck_assert_int_eq(result, REPLY_MALFORMED);
}

TEST(tables_without_end_are_too_large)
{
	char name[16];
	for (int i = 0; i < REPLIES_MAX; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		ck_assert_int_eq(frames_columns(take, &m, name, frames_harts, 1), 0);
	}
	ck_assert_int_eq(frames_columns(take, &m, "one more", frames_harts, 1), REPLY_TOO_LARGE);
}

TEST(sorting_goes_through_the_columns_and_can_be_reversed)
{
	add_frame(three, 3);
	ck_assert_str_eq(line(0), "alpha"); /* by self */
	press_all("s");                     /* by total */
	ck_assert_str_eq(top_model_view(&m)->sort, "total");
	ck_assert_str_eq(line(0), "beta");
	ck_assert_str_eq(line(2), "gamma");
	press_all("r");
	ck_assert_str_eq(line(0), "gamma");
	press_all("<<<"); /* self, module, function: never what is hidden */
	ck_assert_str_eq(top_model_view(&m)->sort, "function");
	ck_assert(!top_model_view(&m)->reverse);
	ck_assert_str_eq(line(0), "alpha");
	press_all("r");
	ck_assert_str_eq(line(0), "gamma");
	press_all("<"); /* round to the last column */
	ck_assert_str_eq(top_model_view(&m)->sort, "process");
}

TEST(the_hidden_time_is_no_order_to_choose)
{
	add_frame(three, 3);
	for (int i = 0; i < 20; i++) {
		press_all("s");
		ck_assert_str_ne(top_model_view(&m)->sort, "self_ns");
	}
}

TEST(what_was_not_measured_stands_last_in_both_directions)
{
	add_frame(three, 3);
	strcpy(top_model_view(&m)->sort, "ipc");
	ck_assert_int_eq(top_model_arrange(&m), 0);
	ck_assert_str_eq(line(0), "gamma");
	ck_assert_str_eq(line(2), "beta");
	press_all("r");
	ck_assert_str_eq(line(0), "alpha");
	ck_assert_str_eq(line(2), "beta");
}

TEST(an_order_that_the_frame_does_not_know_is_the_daemons)
{
	add_frame(three, 3);
	strcpy(top_model_view(&m)->sort, "no such column");
	ck_assert_int_eq(top_model_arrange(&m), 0);
	ck_assert_str_eq(line(0), "alpha");
	ck_assert_str_eq(line(2), "gamma");
}

TEST(a_filter_is_typed_live_and_in_any_case)
{
	add_frame(three, 3);
	press_all("/Q"); /* a letter of the filter, not the key that quits */
	ck_assert_str_eq(m.filter, "Q");
	ck_assert_uint_eq(m.n_order, 0);
	top_keys_press(&m, TOP_KEY_BACKSPACE);
	press_all("ONE.");
	ck_assert_uint_eq(m.n_order, 2); /* both of one.so */
	top_keys_press(&m, TOP_KEY_ENTER);
	ck_assert(!m.typing);
	ck_assert_str_eq(m.filter, "ONE.");
	add_frame(three, 3); /* it outlives the frame */
	ck_assert_uint_eq(m.n_order, 2);
	ck_assert_int_eq(top_keys_press(&m, TOP_KEY_ESCAPE), TOP_DRAW);
	ck_assert_uint_eq(m.n_order, 3);
}

TEST(a_filter_is_bounded_and_keeps_letters_whole)
{
	add_frame(three, 3);
	press_all("/");
	for (int i = 0; i < 3 * TOP_FILTER_BYTES; i++)
		top_keys_press(&m, 0x95a2); /* three bytes */
	ck_assert_uint_le(strlen(m.filter), TOP_FILTER_BYTES - 1);
	ck_assert_uint_eq(strlen(m.filter) % 3, 0);
	top_keys_press(&m, TOP_KEY_BACKSPACE);
	ck_assert_uint_eq(strlen(m.filter) % 3, 0);
	top_keys_press(&m, 0xe9);
	top_keys_press(&m, 0x1f600);
	top_keys_press(&m, 0x1b); /* controls are none of it */
	top_keys_press(&m, TOP_KEY_OTHER);
	size_t n = strlen(m.filter);
	for (size_t i = 0; i < n; i++)
		ck_assert_int_ge((unsigned char)m.filter[i], ' ');
}

TEST(backspace_on_an_empty_filter_ends_typing)
{
	add_frame(three, 3);
	press_all("/");
	top_keys_press(&m, TOP_KEY_BACKSPACE);
	ck_assert(!m.typing);
	ck_assert_str_eq(m.filter, "");
}

TEST(the_chosen_row_stays_chosen_when_others_overtake_it)
{
	struct frames_function later[] = {three[1], three[2], three[0]};
	add_frame(three, 3);
	top_keys_press(&m, TOP_KEY_DOWN);
	ck_assert_str_eq(line(m.selected), "beta");
	later[0].self = 0.9;
	later[2].self = 0.01;
	add_frame(later, 3);
	ck_assert_str_eq(line(m.selected), "beta");
	ck_assert_uint_eq(m.selected, 0);
}

TEST(a_selection_that_is_gone_stays_within_the_rows)
{
	add_frame(three, 3);
	top_keys_press(&m, TOP_KEY_END);
	ck_assert_uint_eq(m.selected, 2);
	add_frame(three, 1);
	ck_assert_uint_eq(m.selected, 0);
	add_frame(three, 0);
	ck_assert_uint_eq(m.selected, 0);
	ck_assert_int_eq(top_keys_press(&m, TOP_KEY_ENTER), TOP_DRAW);
}

TEST(moving_scrolls_and_never_leaves_the_rows)
{
	struct frames_function many[50];
	for (size_t i = 0; i < 50; i++)
		many[i] = (struct frames_function){"f", "/m", 1.0 / (double)(i + 1), 1, -1};
	add_frame(many, 50);
	for (int i = 0; i < 3; i++)
		top_keys_press(&m, TOP_KEY_PAGE_DOWN);
	ck_assert_uint_eq(m.selected, 27);
	ck_assert_uint_eq(m.first, 18);
	top_keys_press(&m, TOP_KEY_END);
	top_keys_press(&m, TOP_KEY_DOWN);
	ck_assert_uint_eq(m.selected, 49);
	ck_assert_uint_eq(m.first, 40);
	m.page = 30; /* the screen grew: no empty lines */
	top_model_move(&m, 0);
	ck_assert_uint_eq(m.first, 20);
	top_keys_press(&m, TOP_KEY_HOME);
	top_keys_press(&m, TOP_KEY_UP);
	ck_assert_uint_eq(m.selected, 0);
	ck_assert_uint_eq(m.first, 0);
}

TEST(enter_opens_the_callers_and_escape_goes_back)
{
	add_frame(three, 3);
	top_keys_press(&m, TOP_KEY_DOWN);
	ck_assert_int_eq(top_keys_press(&m, TOP_KEY_ENTER), TOP_ASK);
	ck_assert_str_eq(top_model_view(&m)->callers_of, "beta");
	ck_assert_str_eq(top_model_view(&m)->callers_module, "/lib/two.so");
	ck_assert_ptr_null(top_model_rows(&m)); /* the old frame is not these */
	ck_assert_ptr_nonnull(top_model_harts(&m));
	add_frame(three, 2);
	ck_assert_str_eq(line(0), "beta"); /* by total */
	ck_assert_int_eq(top_keys_press(&m, TOP_KEY_ESCAPE), TOP_ASK);
	ck_assert_ptr_null(top_model_view(&m)->callers_of);
	ck_assert_int_eq(top_keys_press(&m, TOP_KEY_ESCAPE), TOP_DRAW);
}

TEST(a_row_without_a_function_cannot_be_opened)
{
	static const struct frames_function odd[] = {
		{NULL, "/m", 0.5, 0.5, -1}, {"[no caller]", NULL, 0.4, 0.4, -1}};
	add_frame(odd, 2);
	ck_assert_int_eq(top_keys_press(&m, TOP_KEY_ENTER), TOP_DRAW);
	ck_assert_str_ne(m.message, "");
	top_keys_press(&m, TOP_KEY_DOWN);
	ck_assert_str_eq(m.message, "");
	ck_assert_int_eq(top_keys_press(&m, TOP_KEY_ENTER), TOP_DRAW);
	ck_assert_uint_eq(m.n_views, 1);
}

TEST(views_that_are_opened_are_bounded)
{
	for (int i = 0; i < 2 * TOP_VIEWS_MAX; i++) {
		add_frame(three, 3);
		top_keys_press(&m, TOP_KEY_ENTER);
	}
	ck_assert_uint_eq(m.n_views, TOP_VIEWS_MAX);
	ck_assert_str_ne(m.message, "");
}

TEST(a_process_opens_into_its_functions)
{
	static const struct answers_column columns[] = {
		{"comm", "Process", MPERF__UNIT__UNIT_NONE},
		{"pid", "PID", MPERF__UNIT__UNIT_NONE},
		{"self", "Self", MPERF__UNIT__UNIT_SHARE},
	};
	Mperf__Value v[] = {answers_text("cc1"), answers_integer(4711), answers_real(1)};
	char title[80];

	ck_assert_int_eq(top_keys_press(&m, 'p'), TOP_ASK);
	frames_columns(take, &m, "process", columns, 3);
	answers_row(take, &m, v, 3);
	ck_assert_int_eq(frames_provenance(take, &m, 1), TOP_FRAME);
	press_all("/4711");
	ck_assert_uint_eq(m.n_order, 1); /* a pid is a name */
	top_keys_press(&m, TOP_KEY_ENTER);
	ck_assert_int_eq(top_keys_press(&m, TOP_KEY_ENTER), TOP_ASK);
	ck_assert_int_eq(top_model_view(&m)->pid, 4711);
	ck_assert_str_eq(top_model_view(&m)->by, "function");
	top_view_title(top_model_view(&m), title, sizeof(title));
	ck_assert_str_eq(title, "functions of process 4711");
}

TEST(a_title_that_does_not_fit_is_cut)
{
	char title[12];
	struct top_view v = {.by = "function", .callers_of = (char *)"a_long_name", .pid = 3};
	top_view_title(&v, title, sizeof(title));
	ck_assert_str_eq(title, "callers of ");
}

TEST(letters_switch_between_the_views)
{
	static const char keys[] = "mptcf";
	static const char *const by[] = {"module", "process", "thread", "cgroup", "function"};
	for (size_t i = 0; i < 5; i++) {
		ck_assert_int_eq(top_keys_press(&m, (unsigned char)keys[i]), TOP_ASK);
		ck_assert_str_eq(top_model_view(&m)->by, by[i]);
		ck_assert_int_eq(top_keys_press(&m, (unsigned char)keys[i]), TOP_DRAW);
	}
}

TEST(a_pause_keeps_the_frame_and_another_view_ends_it)
{
	press_all(" ");
	ck_assert(!m.paused); /* there is nothing to keep yet */
	add_frame(three, 3);
	press_all(" ");
	add_frame(three, 1);
	ck_assert_uint_eq(m.n_order, 3);
	ck_assert_uint_eq(m.n_frames, 2);
	press_all(" ");
	add_frame(three, 1);
	ck_assert_uint_eq(m.n_order, 1);
	press_all(" m");
	ck_assert(!m.paused);
}

TEST(the_interval_goes_in_steps_between_its_bounds)
{
	ck_assert_uint_eq(m.interval_ms, 1000);
	ck_assert_int_eq(top_keys_press(&m, '+'), TOP_ASK);
	ck_assert_uint_eq(m.interval_ms, 2000);
	for (int i = 0; i < 20; i++)
		top_keys_press(&m, '+');
	ck_assert_uint_eq(m.interval_ms, 60000);
	ck_assert_int_eq(top_keys_press(&m, '+'), TOP_DRAW);
	for (int i = 0; i < 20; i++)
		top_keys_press(&m, '-');
	ck_assert_uint_eq(m.interval_ms, 100);
	ck_assert_int_eq(top_keys_press(&m, '-'), TOP_DRAW);
	m.interval_ms = 1500; /* of -d: between two steps */
	top_keys_press(&m, '+');
	ck_assert_uint_eq(m.interval_ms, 2000);
	m.interval_ms = 1500;
	top_keys_press(&m, '-');
	ck_assert_uint_eq(m.interval_ms, 1000);
}

TEST(help_is_closed_by_any_key_and_q_quits_everywhere_else)
{
	add_frame(three, 3);
	press_all("?");
	ck_assert(m.help);
	press_all("m");
	ck_assert(!m.help);
	ck_assert_str_eq(top_model_view(&m)->by, "function"); /* the key did nothing else */
	press_all("?");
	ck_assert_int_eq(top_keys_press(&m, 'q'), TOP_LEAVE);
	press_all("/");
	ck_assert_int_eq(top_keys_press(&m, 'q'), TOP_DRAW);
	top_keys_press(&m, TOP_KEY_ESCAPE);
	ck_assert_int_eq(top_keys_press(&m, 'q'), TOP_LEAVE);
}

TEST(keys_without_a_frame_do_no_harm)
{
	for (uint32_t key = 1; key < 0x180; key++)
		if (key != 'q')
			top_keys_press(&m, key);
	for (uint32_t key = TOP_KEY_UP; key <= TOP_KEY_OTHER; key++)
		top_keys_press(&m, key);
	ck_assert_uint_eq(m.selected, 0);
}

/* --- history ---------------------------------------------------------------------------------- */

static float hart_before(size_t back)
{
	float value[TOP_HISTORY_FRAMES];
	top_history_harts(m.history, 0, 0, value, TOP_HISTORY_FRAMES);
	return value[TOP_HISTORY_FRAMES - 1 - back];
}

static float row_before(const char *function, size_t back)
{
	float value[TOP_HISTORY_FRAMES];
	const struct reply *rows = top_model_rows(&m);
	for (size_t i = 0; i < rows->n_rows; i++)
		if (strcmp(reply_text(rows, i, reply_column(rows, "function")), function) == 0) {
			char view[TOP_MESSAGE_BYTES];
			top_view_title(top_model_view(&m), view, sizeof(view));
			top_history_row(m.history, rows, i, view, value, TOP_HISTORY_FRAMES);
			return value[TOP_HISTORY_FRAMES - 1 - back];
		}
	ck_abort_msg("no %s", function);
}

TEST(history_has_the_frames_before_and_gaps)
{
	add_frame(three, 3);
	add_frame(three, 1);
	add_frame(three, 3);
	ck_assert_float_eq_tol(hart_before(0), 0.5f, 1e-6f);
	ck_assert_float_eq_tol(hart_before(2), 0.5f, 1e-6f);
	ck_assert(isnan(hart_before(3)));
	ck_assert(!isnan(row_before("alpha", 0)) && !isnan(row_before("alpha", 1)));
	ck_assert(!isnan(row_before("gamma", 0)) && isnan(row_before("gamma", 1)));
	ck_assert(!isnan(row_before("gamma", 2)) && isnan(row_before("gamma", 3)));
}

TEST(history_forgets_what_has_not_come_for_long)
{
	add_frame(three, 3);
	for (unsigned i = 0; i < TOP_HISTORY_FRAMES; i++)
		add_frame(three, 2);
	ck_assert(!isnan(hart_before(TOP_HISTORY_FRAMES - 1)));
	add_frame(three, 3); /* gamma begins again */
	ck_assert(!isnan(row_before("gamma", 0)));
	for (size_t back = 1; back < TOP_HISTORY_FRAMES; back++)
		ck_assert(isnan(row_before("gamma", back)));
}

TEST(history_goes_on_while_the_screen_is_paused)
{
	add_frame(three, 3);
	m.paused = true;
	add_frame(three, 3);
	ck_assert(!isnan(hart_before(1)));
	ck_assert_int_eq(top_keys_press(&m, 'H'), TOP_DRAW);
	ck_assert(m.shows_history);
}
