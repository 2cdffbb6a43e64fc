/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Writing a window
 *
 * One transaction per flush: either all of a window is in the file, with every task, stack and file
 * that it needs, or nothing of it. If the disc is full, the transaction is rolled back with our
 * memory of it, and the same window can be flushed again once there is space.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/segment/write.h"

#include "daemon/store/segment/note.h"
#include "proto/base/array.h"
#include "proto/base/memory.h"

static int write_reads(struct segment *g, const struct window_row *row)
{
	bool own = false;
	for (uint32_t i = 0; i < row->n_reads; i++) {
		const struct window_read *read = &row->read[i];
		if (read->event < 0 || read->event >= g->n_events)
			continue;
		own = own || read->event == row->key.event;
		if (g->clock[read->event] || (read->value == 0 && read->enabled_ns == 0))
			continue;
		bool partly = read->running_ns != read->enabled_ns;
		int r = ROW(g, INSERT_READING, CELL_I(g->n_samples), CELL_I(g->event[read->event]),
			CELL_I(read->value), CELL_I(read->enabled_ns),
			CELL_I_OR_NULL(partly, read->running_ns));
		if (r != 0)
			return r;
	}
	/* if its group has no counts, it alone would have one */
	if (own || g->clock[row->key.event] || row->period == 0 || row->n_uncounted)
		return 0;
	return ROW(g, INSERT_READING, CELL_I(g->n_samples), CELL_I(g->event[row->key.event]),
		CELL_I(row->period), CELL_I_OR_NULL(false, 0), CELL_I_OR_NULL(false, 0));
}

/* The way of cutting counts at switches has changed since the file was created. */
static int write_cut(struct segment *g, unsigned cut)
{
	if ((g->cut | cut) == g->cut)
		return 0;
	g->cut |= cut;
	return ROW(g, INSERT_META, CELL_T("switches"), CELL_I(g->cut));
}

static int write_row(struct segment *g, const struct segment_flush *f, const struct window_row *row)
{
	int event = row->key.event;
	if (event < 0 || event >= g->n_events)
		return -EINVAL;
	g->payer = task_account(row->who);
	int r = segment_write_hart(g, row->key.hart, row);
	/* it tells readers to use the column uncounted */
	if (r == 0 && row->n_uncounted && !(g->cut & (CUT_COUNT | CUT_NONE)))
		r = write_cut(g, CUT_COUNT);
	if (r == 0 && row->who)
		r = segment_write_task(g, f, row->who);
	if (r == 0)
		r = segment_write_stack(g, f->stacks, row->key.stack);
	if (r != 0)
		return r;

	g->n_samples++;
	r = ROW(g, INSERT_SAMPLE, CELL_I(g->n_samples), CELL_I(g->n_windows), CELL_I(row->key.hart),
		CELL_I(row->key.task), CELL_I(row->key.stack), CELL_I(g->event[event]),
		CELL_I(row->key.rung), CELL_I(row->count), CELL_I(row->weight_ns),
		CELL_I(row->n_truncated), CELL_I(row->n_uncounted));
	if (r == 0)
		r = segment_take_moments(g, row);
	return r != 0 ? r : write_reads(g, row);
}

/* Losses are written as what they grew by since the last commit. */
static int write_losses(struct segment *g, const struct segment_flush *f)
{
	size_t size = (size_t)g->n_harts;
	int r = array_grow_long(&g->lost, &size, (size_t)f->n_harts, sizeof(*g->lost));
	if (r < 0)
		return r;
	g->n_harts = (int)size;
	for (int hart = 0; hart < f->n_harts; hart++)
		for (int cause = 0; cause < N_LOSSES; cause++) {
			uint64_t grown = f->lost[hart][cause] - g->lost[hart][cause];
			if (grown == 0)
				continue;
			r = ROW(g, INSERT_LOSS, CELL_I(g->n_windows), CELL_I(hart),
				CELL_T(loss_kinds[cause].name), CELL_I(grown));
			if (r != 0)
				return r;
		}
	return 0;
}

static void remember_losses(struct segment *g, const struct segment_flush *f)
{
	if (f->lost && f->n_harts > 0 && g->n_harts >= f->n_harts)
		memcpy(g->lost, f->lost, (size_t)f->n_harts * sizeof(*g->lost));
}

/* Store the highest rate since the segment began; and the lowest rate that the kernel allowed. */
static int write_rate(struct segment *g, const struct segment_flush *f)
{
	if (f->hz > g->hz) {
		g->hz = f->hz;
		int r = ROW(g, INSERT_META, CELL_T("hz"), CELL_I(f->hz));
		if (r != 0)
			return r;
	}
	if (f->hz_lowest == 0 || f->hz_lowest == g->hz_lowest)
		return 0;
	g->hz_lowest = f->hz_lowest;
	return ROW(g, INSERT_META, CELL_T("hz_lowest"), CELL_I(f->hz_lowest));
}

/* The same sentence again replaces itself. */
static int write_note(struct segment *g, const struct segment_flush *f)
{
	char key[NOTE_KEY_BYTES_MAX];
	if (!f->note || !*f->note)
		return 0;
	const struct note note = {.harts = *f->note_harts, .says = f->note};
	return ROW(g, INSERT_META, CELL_T(note_key(&note, key)), CELL_I(1));
}

/* A row of one pass on one hart, from `row` on; *ret_n: the number of its counts. */
static int write_pass(struct segment *g, const struct hart_count *row, size_t n, size_t *ret_n)
{
	size_t i = 0;
	unsigned rung = RUNG_COUNTED + row->pass;
	bool is_written = rung <= RUNG_COUNTED_LAST; /* no plan has as many passes */
	g->n_samples += is_written;
	int r = is_written
			? ROW(g, INSERT_SAMPLE, CELL_I(g->n_samples), CELL_I(g->n_windows),
				  CELL_I(row->hart), CELL_I(0), CELL_I(0), CELL_I(g->counted_row),
				  CELL_I(rung), CELL_I(0), CELL_I(0), CELL_I(0), CELL_I(0))
			: 0;
	for (; r == 0 && i < n && row[i].hart == row->hart && row[i].pass == row->pass; i++) {
		const struct hart_count *c = &row[i];
		if (is_written && c->event >= 0 && c->event < g->n_counted)
			r = ROW(g, INSERT_READING, CELL_I(g->n_samples),
				CELL_I(g->counted[c->event]), CELL_I(c->value),
				CELL_I(c->enabled_ns),
				CELL_I_OR_NULL(c->running_ns != c->enabled_ns, c->running_ns));
	}
	*ret_n = i;
	return r;
}

/* Counts of whole harts in the window, of all processes. */
static int write_counted(struct segment *g, const struct hart_count_rows *rows)
{
	int r = 0;
	if (!g->counted_row || rows->serial != g->counted_serial)
		return 0;
	for (size_t i = 0, n = 0; i < rows->n && r == 0; i += n)
		r = write_pass(g, &rows->row[i], rows->n - i, &n);
	return r;
}

static int write_times(struct segment *g, const struct segment_flush *f)
{
	int r = 0;
	for (uint32_t i = 0; r == 0 && i < f->window->n_times; i++) {
		const struct window_time *time = &f->window->time[i];
		if (!segment_may_write(f, time->who))
			continue;
		g->payer = task_account(time->who);
		r = segment_write_task(g, f, time->who);
		if (r == 0)
			r = ROW(g, INSERT_THREAD_TIME, CELL_I(g->n_windows), CELL_I(time->who->id),
				CELL_I(time->lived_ns), CELL_I(time->ran_ns),
				CELL_I(time->ready_ns), CELL_I(time->unsplit_ns));
	}
	return r;
}

static int begin_window(struct segment *g, const struct segment_flush *f)
{
	const struct window *w = f->window;
	g->n_windows++;
	g->next_row = w->rows;
	g->next_loop = w->loops.rows;
	g->next_ended = 0;
	int r = ROW(g, INSERT_WINDOW, CELL_I(g->n_windows), CELL_I(w->start_ns), CELL_I(w->end_ns),
		CELL_I(f->realtime_ns));
	if (r == 0)
		r = write_cut(g, f->cut);
	if (r == 0)
		r = write_note(g, f);
	if (r == 0)
		r = write_counted(g, &f->counted);
	return r == 0 ? write_rate(g, f) : r;
}

static int write_rows(struct segment *g, const struct segment_flush *f)
{
	for (; g->next_row && !segment_step_is_over(g); g->next_row = g->next_row->hh.next) {
		int r = segment_may_write(f, g->next_row->who) ? write_row(g, f, g->next_row) : 0;
		if (r != 0)
			return r;
	}
	return g->next_row ? SEGMENT_MORE : 0;
}

/* Users over their share keep only the processes that have samples. */
static int write_ended(struct segment *g, const struct segment_flush *f)
{
	const struct window *w = f->window;
	int r = 0;
	for (; r == 0 && g->next_ended < w->n_ended && !segment_step_is_over(g); g->next_ended++) {
		struct task *process = w->ended[g->next_ended];
		g->payer = task_account(process);
		if (segment_may_write(f, process) &&
			share_level(g->shares, g->payer) == SHARE_WHOLE)
			r = segment_write_task(g, f, process);
	}
	return r == 0 && g->next_ended < w->n_ended ? SEGMENT_MORE : r;
}

/* Write the rest of a window, besides its rows: names, changed tasks, losses. */
static int end_window(struct segment *g, const struct segment_flush *f)
{
	int r = segment_write_moments(g);
	if (r == 0)
		r = segment_write_seconds(g, f);
	if (r == 0)
		r = write_times(g, f);
	if (r == 0)
		r = segment_write_names(g, f);
	if (r == 0)
		r = segment_write_changed(g, f);
	return r == 0 && f->lost ? write_losses(g, f) : r;
}

int segment_flush_begin(struct segment *g, const struct segment_flush *f)
{
	int r = segment_begin(g);
	g->shares = f->shares;
	if (r == 0)
		r = segment_begin_moments(g, f->window);
	if (r == 0)
		r = begin_window(g, f);
	return r == 0 ? 0 : segment_end(g, r);
}

int segment_flush_step(struct segment *g, const struct segment_flush *f, uint64_t n_rows)
{
	g->run_max = n_rows ? g->n_run + n_rows : UINT64_MAX;
	g->shares = f->shares;
	int r = write_rows(g, f);
	if (r == 0)
		r = segment_write_loops(g, f);
	if (r == 0)
		r = write_ended(g, f);
	/* the end has a step of its own: names can be many */
	if (r == 0 && segment_step_is_over(g))
		return SEGMENT_MORE;
	if (r == SEGMENT_MORE)
		return r;
	if (r == 0)
		r = end_window(g, f);
	r = segment_end(g, r);
	if (r == 0)
		remember_losses(g, f);
	return r;
}

int segment_flush(struct segment *g, const struct segment_flush *f)
{
	int r = segment_flush_begin(g, f);
	return r == 0 ? segment_flush_step(g, f, 0) : r;
}

int segment_update(struct segment *g, const struct segment_flush *f)
{
	int r = segment_begin(g);
	g->shares = f->shares;
	if (r == 0)
		r = segment_write_names(g, f);
	if (r == 0)
		r = segment_write_changed(g, f);
	/* what was lost since the last window (names that did not come) counts to that window */
	bool losses = f->lost && g->n_windows > 0;
	if (r == 0 && losses)
		r = write_losses(g, f);
	r = segment_end(g, r);
	if (r == 0 && losses)
		remember_losses(g, f);
	return r;
}

size_t segment_unnamed(const struct segment *g)
{
	return g->unnamed.n_awaited;
}

int64_t segment_bytes(const struct segment *g)
{
	struct stat st;
	int64_t bytes = fstat(g->fd, &st) == 0 ? st.st_size : 0;
	_cleanup_(freep) char *log = NULL;
	if (asprintf(&log, "%s-wal", g->path) < 0)
		log = NULL;
	return log && stat(log, &st) == 0 ? bytes + st.st_size : bytes;
}
