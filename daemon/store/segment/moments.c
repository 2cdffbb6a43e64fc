/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Moments of a window's samples: two bytes for each, in the order in which their rows are written. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/segment/write.h"
#include "proto/base/array.h"

void segment_clear_moments(struct segment *g)
{
	free(g->moments.at);
	free(g->moments.first);
	free(g->moments.out);
	g->moments = (struct moments){};
}

static int compare(const void *a, const void *b)
{
	const uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;
	return (x > y) - (x < y);
}

_Static_assert(
	2 * WINDOW_MOMENTS_MAX <= SEGMENT_VALUE_BYTES_MAX, "readers take values of that size");

/* 0: before the window, since the sample waited for its callers. */
static uint16_t part_of(const struct window *w, uint64_t time_ns)
{
	const uint64_t span = w->end_ns > w->start_ns ? w->end_ns - w->start_ns : 1;
	if (time_ns < w->start_ns)
		return 0;
	const double part = (double)(time_ns - w->start_ns) * (UINT16_MAX + 1.0) / (double)span;
	return part < 1 ? 1 : part < UINT16_MAX ? (uint16_t)part : UINT16_MAX;
}

int segment_begin_moments(struct segment *g, const struct window *w)
{
	struct moments *m = &g->moments;
	segment_clear_moments(g);
	if (w->n_moments == 0)
		return 0;
	m->at = calloc(w->n_moments, sizeof(*m->at));
	m->first = calloc((size_t)w->n_rows + 2, sizeof(*m->first));
	if (!m->at || !m->first) {
		segment_clear_moments(g);
		return -ENOMEM;
	}
	/* by row: their number one place ahead, then where they begin, which moves on as they are put there */
	for (uint32_t i = 0; i < w->n_moments; i++)
		m->first[w->moment[i].row + 2]++;
	for (uint32_t i = 0; i < w->n_rows; i++)
		m->first[i + 2] += m->first[i + 1];
	for (uint32_t i = 0; i < w->n_moments; i++)
		m->at[m->first[w->moment[i].row + 1]++] = part_of(w, w->moment[i].time_ns);
	for (uint32_t i = 0; i < w->n_rows; i++)
		qsort(m->at + m->first[i], m->first[i + 1] - m->first[i], sizeof(*m->at), compare);
	return 0;
}

int segment_take_moments(struct segment *g, const struct window_row *row)
{
	struct moments *m = &g->moments;
	if (!m->at || row->count == 0)
		return 0;
	const uint32_t first = m->first[row->number], n = m->first[row->number + 1] - first;
	if (n != row->count) {
		segment_clear_moments(g); /* then none is known: readers count on their order */
		return 0;
	}
	int r = array_grow_long(&m->out, &m->size_out, m->n_out + 2 * (size_t)n, 1);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		m->out[m->n_out++] = (uint8_t)m->at[first + i];
		m->out[m->n_out++] = (uint8_t)(m->at[first + i] >> 8);
	}
	return r;
}

int segment_write_moments(struct segment *g)
{
	struct moments *m = &g->moments;
	int r = m->n_out ? ROW(g, INSERT_MOMENT, CELL_I(g->n_windows),
				   CELL_B(m->out, (int64_t)m->n_out))
			 : 0;
	segment_clear_moments(g);
	return r;
}
