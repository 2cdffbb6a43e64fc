/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Letters are those of top, htop and perf top where these have the function. While a filter is
 * being typed, every character belongs to it.
 */
#include "client/top/keys.h"

#include <string.h>

static const char *const help[] = {
	"f p t c m   functions, processes, threads, control groups, modules",
	"arrows, PgUp, PgDn, Home, End   select a row",
	"Enter       open the row: a function's callers, a process's functions",
	"Esc         go back; also Backspace",
	"s > <       sort by the next column, by the previous one",
	"r           reverse the order",
	"/           show only rows with this text in a name; Esc clears it",
	"H           show history: the load of each hart, and how many harts each row kept busy",
	"space       pause, continue",
	"+ -         lengthen, shorten the interval between frames",
	"?           this help",
	"q           quit",
	NULL,
};

const char *const *top_keys_help(void)
{
	return help;
}

static void arrange(struct top_model *m)
{
	if (top_model_arrange(m) < 0)
		strcpy(m->message, "out of memory: the rows are not sorted");
}

/* Append a character in UTF-8, if it fits. */
static void type(struct top_model *m, uint32_t c)
{
	size_t n = strlen(m->filter);
	char bytes[4];
	size_t length = 0;

	if (c < 0x80) {
		bytes[length++] = (char)c;
	} else if (c < 0x800) {
		bytes[length++] = (char)(0xc0 | c >> 6);
		bytes[length++] = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		bytes[length++] = (char)(0xe0 | c >> 12);
		bytes[length++] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[length++] = (char)(0x80 | (c & 0x3f));
	} else {
		bytes[length++] = (char)(0xf0 | c >> 18);
		bytes[length++] = (char)(0x80 | (c >> 12 & 0x3f));
		bytes[length++] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[length++] = (char)(0x80 | (c & 0x3f));
	}
	if (n + length >= sizeof(m->filter))
		return;
	memcpy(m->filter + n, bytes, length);
	m->filter[n + length] = '\0';
}

static void untype(struct top_model *m)
{
	size_t n = strlen(m->filter);
	while (n > 0 && (m->filter[n - 1] & 0xc0) == 0x80)
		n--;
	m->filter[n > 0 ? n - 1 : 0] = '\0';
}

static enum top_action press_while_typing(struct top_model *m, uint32_t key)
{
	if (key == TOP_KEY_ENTER) {
		m->typing = false;
	} else if (key == TOP_KEY_ESCAPE) {
		m->typing = false;
		m->filter[0] = '\0';
	} else if (key == TOP_KEY_BACKSPACE) {
		m->typing = *m->filter;
		untype(m);
	} else if (key >= ' ' && key < TOP_KEY_UP && key != 0x7f) {
		type(m, key);
	}
	arrange(m);
	return TOP_DRAW;
}

/* The next longer (1) or shorter (-1) interval. */
static enum top_action change_interval(struct top_model *m, int step)
{
	static const uint32_t steps[] = {100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000};
	const int n = sizeof(steps) / sizeof(*steps);
	int at = 0;

	while (at < n - 1 && steps[at] < m->interval_ms)
		at++;
	if (step > 0 && steps[at] > m->interval_ms)
		step = 0; /* it is between two steps: take the longer one */
	at += step;
	if (at < 0 || at >= n || steps[at] == m->interval_ms)
		return TOP_DRAW;
	m->interval_ms = steps[at];
	return TOP_ASK;
}

static enum top_action sum_by(struct top_model *m, const char *by)
{
	if (m->n_views == 1 && strcmp(m->view[0].by, by) == 0)
		return TOP_DRAW;
	top_model_sum_by(m, by);
	return TOP_ASK;
}

static enum top_action go_back(struct top_model *m)
{
	if (*m->filter) {
		m->filter[0] = '\0';
		arrange(m);
		return TOP_DRAW;
	}
	return top_model_back(m) ? TOP_ASK : TOP_DRAW;
}

static enum top_action press_letter(struct top_model *m, uint32_t key)
{
	static const struct {
		char key;
		const char *by;
	} views[] = {{'f', "function"}, {'p', "process"}, {'t', "thread"}, {'c', "cgroup"},
		{'m', "module"}};
	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++)
		if (key == (uint32_t)views[i].key)
			return sum_by(m, views[i].by);

	switch (key) {
	case 'q':
		return TOP_LEAVE;
	case '?':
	case 'h':
		m->help = true;
		return TOP_DRAW;
	case 'H':
		m->shows_history = !m->shows_history;
		return TOP_DRAW;
	case ' ':
		m->paused = !m->paused && m->has_frame;
		return TOP_DRAW;
	case 's':
	case '>':
		top_model_sort_next(m, 1);
		arrange(m);
		return TOP_DRAW;
	case '<':
		top_model_sort_next(m, -1);
		arrange(m);
		return TOP_DRAW;
	case 'r':
		top_model_view(m)->reverse = !top_model_view(m)->reverse;
		arrange(m);
		return TOP_DRAW;
	case '/':
		m->typing = true;
		return TOP_DRAW;
	case '+':
	case '=': /* + without the shift key */
		return change_interval(m, 1);
	case '-':
		return change_interval(m, -1);
	default:
		return TOP_DRAW;
	}
}

enum top_action top_keys_press(struct top_model *m, uint32_t key)
{
	long page = m->page > 1 ? (long)m->page - 1 : 1, all = (long)m->n_order;

	m->message[0] = '\0';
	if (m->help) {
		m->help = false; /* any key closes it */
		return key == 'q' ? TOP_LEAVE : TOP_DRAW;
	}
	if (m->typing && key != TOP_KEY_UP && key != TOP_KEY_DOWN)
		return press_while_typing(m, key);

	switch (key) {
	case TOP_KEY_UP:
	case TOP_KEY_DOWN:
		top_model_move(m, key == TOP_KEY_UP ? -1 : 1);
		return TOP_DRAW;
	case TOP_KEY_PAGE_UP:
	case TOP_KEY_PAGE_DOWN:
		top_model_move(m, key == TOP_KEY_PAGE_UP ? -page : page);
		return TOP_DRAW;
	case TOP_KEY_HOME:
	case TOP_KEY_END:
		top_model_move(m, key == TOP_KEY_HOME ? -all : all);
		return TOP_DRAW;
	case TOP_KEY_ENTER:
		return top_model_open_row(m) ? TOP_ASK : TOP_DRAW;
	case TOP_KEY_ESCAPE:
	case TOP_KEY_BACKSPACE:
		return go_back(m);
	default:
		return press_letter(m, key);
	}
}
