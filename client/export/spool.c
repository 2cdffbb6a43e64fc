/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* One array of rows for all threads, chained by thread: there are many threads, with uneven numbers
 * of rows. */

#include "client/export/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/array.h"

static int grow_threads(struct spool *s, uint32_t task)
{
	return array_grow(&s->thread, &s->n_threads, task + 1, sizeof(*s->thread));
}

static int grow_rows(struct spool *s)
{
	const uint32_t size = s->size ? 2 * s->size : 4096;
	if (s->n < s->size)
		return 0;
	if (s->n >= SPOOL_ROWS_MAX)
		return EXPORT_TOO_LARGE;
	struct spool_row *row = reallocarray(s->row, size, sizeof(*row));
	if (!row)
		return -ENOMEM;
	s->row = row;
	s->size = size;
	return 0;
}

int spool_add(struct spool *s, const struct profile_sample *sample)
{
	int r = grow_threads(s, sample->task);
	if (r == 0)
		r = grow_rows(s);
	if (r != 0)
		return r;
	struct spool_thread *t = &s->thread[sample->task];
	struct spool_row *last = t->last ? &s->row[t->last - 1] : NULL;
	t->value += sample->value;
	if (last && last->stack == sample->stack && last->window == sample->window &&
		((last->at_ns < 0 && sample->at_ns < 0) || s->n > SPOOL_ROWS_MAX / 2)) {
		last->value += sample->value;
		return 0;
	}
	s->row[s->n++] = (struct spool_row){.stack = sample->stack,
		.window = sample->window,
		.value = sample->value,
		.at_ns = sample->at_ns};
	if (last)
		last->next = s->n;
	else
		t->first = s->n;
	t->last = s->n;
	t->n++;
	return 0;
}

void spool_clear(struct spool *s)
{
	free(s->row);
	free(s->thread);
	*s = (struct spool){0};
}
