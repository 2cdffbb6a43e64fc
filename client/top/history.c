/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A line has a ring of values, one for each frame. A frame in which it does not come leaves what its slot had
 * before, so each value has the number of its frame.
 */
#include "client/top/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/hash_table.h"
#include "proto/base/memory.h"

#define KEY_BYTES 512 /* longer names are cut */

struct line {
	char *key;
	uint64_t last; /* the latest frame that had it */
	uint32_t frame[TOP_HISTORY_FRAMES];
	float value[TOP_HISTORY_FRAMES];
	UT_hash_handle hh;
};

struct top_history {
	struct line *line; /* by key */
	uint64_t n_frames;
};

int top_history_new(struct top_history **ret_history)
{
	*ret_history = calloc(1, sizeof(**ret_history));
	return *ret_history ? 0 : -ENOMEM;
}

static void forget(struct top_history *h, struct line *l)
{
	HASH_DEL(h->line, l);
	free(l->key);
	free(l);
}

struct top_history *top_history_free(struct top_history *h)
{
	while (h && h->line)
		forget(h, h->line);
	free(h);
	return NULL;
}

/* "hart 3" */
static void key_of_hart(int hart, char *ret_key)
{
	snprintf(ret_key, KEY_BYTES, "hart %d", hart);
}

/* The view, and the row's names; a function's top process is none of them. */
static void key_of_row(const struct reply *r, size_t row, const char *view, char *ret_key)
{
	size_t n = (size_t)snprintf(ret_key, KEY_BYTES, "%s", view);
	for (size_t c = 0; c < r->columns->n_column && n < KEY_BYTES; c++) {
		const Mperf__Column *column = r->columns->column[c];
		double number;
		if (column->unit != MPERF__UNIT__UNIT_NONE || strcmp(column->name, "process") == 0)
			continue;
		const char *text = reply_text(r, row, (int)c);
		if (text)
			n += (size_t)snprintf(ret_key + n, KEY_BYTES - n, "\n%s", text);
		else if (reply_number(r, row, (int)c, &number))
			n += (size_t)snprintf(ret_key + n, KEY_BYTES - n, "\n%.0f", number);
	}
}

static struct line *find(const struct top_history *h, const char *key)
{
	struct line *l = NULL;
	const size_t n = strlen(key);
	if (h->line)
		HASH_FIND(hh, h->line, key, n, l);
	return l;
}

static int note(struct top_history *h, const char *key, double value)
{
	struct line *l = find(h, key);
	if (!l && HASH_COUNT(h->line) >= TOP_HISTORY_LINES_MAX)
		return 0;
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (l)
			l->key = strdup(key);
		const size_t n = strlen(key);
		if (l && l->key)
			HASH_ADD_KEYPTR(hh, h->line, l->key, n, l);
		if (!l || !l->key || !l->hh.tbl) {
			free(l ? l->key : NULL);
			free(l);
			return -ENOMEM;
		}
	}
	const size_t at = h->n_frames % TOP_HISTORY_FRAMES;
	l->last = h->n_frames;
	l->frame[at] = (uint32_t)h->n_frames;
	l->value[at] = (float)value;
	return 0;
}

int top_history_take(struct top_history *h, const struct reply *harts, const struct reply *rows,
	const char *view, double seconds)
{
	char key[KEY_BYTES];
	double value;
	int r = 0;
	h->n_frames++;
	for (size_t i = 0; harts && i < harts->n_rows && r == 0; i++) {
		double hart;
		if (!reply_number(harts, i, reply_column(harts, "hart"), &hart) ||
			!reply_number(harts, i, reply_column(harts, "load"), &value) || hart < 0 ||
			hart > INT32_MAX)
			continue;
		key_of_hart((int)hart, key);
		r = note(h, key, value);
	}
	for (size_t i = 0; i < rows->n_rows && seconds > 0 && r == 0; i++) {
		if (!reply_number(rows, i, reply_column(rows, "self_ns"), &value))
			continue;
		key_of_row(rows, i, view, key);
		r = note(h, key, value / 1e9 / seconds);
	}
	for (struct line *l = h->line, *next; l; l = next) {
		next = l->hh.next;
		if (l->last + TOP_HISTORY_FRAMES <= h->n_frames)
			forget(h, l);
	}
	return r;
}

/* NAN: it was not in that frame, `back` before the latest. */
static float value_of(const struct top_history *h, const struct line *l, size_t back)
{
	if (!l || back >= h->n_frames)
		return NAN;
	const uint64_t frame = h->n_frames - back;
	const size_t at = frame % TOP_HISTORY_FRAMES;
	return l->frame[at] == (uint32_t)frame ? l->value[at] : NAN;
}

void top_history_harts(const struct top_history *h, int first, int last, float *ret_value, size_t n)
{
	char key[KEY_BYTES];
	for (size_t i = 0; i < n; i++)
		ret_value[i] = NAN;
	int n_harts = 0;
	for (int hart = first; hart <= last; hart++) {
		key_of_hart(hart, key);
		const struct line *l = find(h, key);
		if (!l)
			continue; /* the numbers of harts may have gaps */
		n_harts++;
		for (size_t i = 0; i < n; i++) {
			const float value = value_of(h, l, n - 1 - i);
			const float mean = n_harts == 1 ? 0 : ret_value[i];
			ret_value[i] = mean + (value - mean) / (float)n_harts;
		}
	}
}

void top_history_row(const struct top_history *h, const struct reply *rows, size_t row,
	const char *view, float *ret_value, size_t n)
{
	char key[KEY_BYTES];
	key_of_row(rows, row, view, key);
	const struct line *l = find(h, key);
	for (size_t i = 0; i < n; i++)
		ret_value[i] = value_of(h, l, n - 1 - i);
}
