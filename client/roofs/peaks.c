/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/roofs/peaks.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/roofs/question.h"
#include "client/show/reply.h"
#include "proto/base/memory.h"

static int receive(struct link *l, struct reply *reply)
{
	Mperf__RoofsRequest roofs = MPERF__ROOFS_REQUEST__INIT;
	roofs.peaks = true;
	return roofs_rows(l, &roofs, reply);
}

/* False: the row is not valid. */
static bool read_row(const struct reply *r, size_t row, struct peak *ret_peak)
{
	const char *harts = reply_text(r, row, reply_column(r, "harts"));
	const char *precision = reply_text(r, row, reply_column(r, "precision"));
	const char *unit = reply_text(r, row, reply_column(r, "unit"));
	const char *source = reply_text(r, row, reply_column(r, "source"));
	struct peak p = {.hart = harts ? (uint32_t)strtoul(harts, NULL, 10) : 0};
	if (!harts || !precision || !unit || !source ||
		!reply_number(r, row, reply_column(r, "ops_per_cycle"), &p.ops_per_cycle) ||
		!isfinite(p.ops_per_cycle) || p.ops_per_cycle <= 0)
		return false;
	snprintf(p.precision, sizeof(p.precision), "%s", precision);
	snprintf(p.unit, sizeof(p.unit), "%s", unit);
	snprintf(p.source, sizeof(p.source), "%s", source);
	*ret_peak = p;
	return true;
}

static int read_rows(const struct reply *r, struct peak **ret_peak, size_t *ret_n)
{
	size_t most = r->n_rows < PEAKS_MAX ? r->n_rows : PEAKS_MAX, n = 0;
	struct peak *peak = calloc(most + 1, sizeof(*peak));
	if (!peak)
		return -ENOMEM;
	for (size_t i = 0; i < most; i++)
		n += read_row(r, i, &peak[n]);
	*ret_peak = peak;
	*ret_n = n;
	return 0;
}

int peaks_find(struct peak **ret_peak, size_t *ret_n)
{
	struct reply reply = {.columns = NULL};
	struct link l;
	*ret_peak = NULL;
	*ret_n = 0;
	if (link_try(&l) != 0)
		return 0;
	int r = receive(&l, &reply);
	link_close(&l);
	if (r == 0 && reply.columns)
		r = read_rows(&reply, ret_peak, ret_n);
	reply_clear(&reply);
	return r == -ENOMEM ? r : 0;
}
