/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Big machines have more harts than a screen has lines. The first get a line each and the rest
 * share one; values without a meaning for several harts (a ratio) are left out rather than
 * averaged.
 */
#include "client/top/harts.h"

#include <stdio.h>
#include <string.h>

struct columns {
	int hart, load, user, kernel, rung, hz, ipc;
};

/* A share that is absent is unknown. */
static bool read_share(const struct reply *r, size_t row, int column, double *ret_share)
{
	double share;
	if (!reply_number(r, row, column, &share) || !(share >= 0 && share <= 100))
		return false;
	*ret_share = share;
	return true;
}

static struct top_hart read_hart(const struct reply *r, const struct columns *c, size_t row)
{
	struct top_hart h = {0};
	double number;

	if (reply_number(r, row, c->hart, &number) && number >= 0 && number <= INT32_MAX)
		h.first = h.last = (int)number;
	h.has_load = read_share(r, row, c->load, &h.load);
	h.has_user = read_share(r, row, c->user, &h.user);
	h.has_kernel = read_share(r, row, c->kernel, &h.kernel);
	h.has_hz = reply_number(r, row, c->hz, &h.hz);
	h.has_ipc = reply_number(r, row, c->ipc, &h.ipc);
	const char *rung = reply_text(r, row, c->rung);
	/* "d: cpu-clock alone": the letter is enough beside each hart */
	snprintf(h.rung, sizeof(h.rung), "%.*s", rung ? (int)strcspn(rung, ":") : 0,
		rung ? rung : "");
	return h;
}

/* Add one value to a running mean; if one value is missing, so is the mean. */
static void take_mean(double *mean, bool *has, double value, bool has_value, size_t n)
{
	*has &= has_value;
	*mean += (value - *mean) / (double)n;
}

/* Add the n-th hart to a line. */
static void add_hart(struct top_hart *line, const struct top_hart *h, size_t n)
{
	line->last = h->last;
	take_mean(&line->load, &line->has_load, h->load, h->has_load, n);
	take_mean(&line->user, &line->has_user, h->user, h->has_user, n);
	take_mean(&line->kernel, &line->has_kernel, h->kernel, h->has_kernel, n);
	line->has_hz &= h->has_hz && h->hz == line->hz;
	line->has_ipc = false;
	if (strcmp(line->rung, h->rung) != 0)
		strcpy(line->rung, "mixed");
}

size_t top_harts(const struct reply *harts, struct top_hart *ret_hart, size_t max)
{
	const struct columns c = {
		.hart = reply_column(harts, "hart"),
		.load = reply_column(harts, "load"),
		.user = reply_column(harts, "user"),
		.kernel = reply_column(harts, "kernel"),
		.rung = reply_column(harts, "rung"),
		.hz = reply_column(harts, "hz"),
		.ipc = reply_column(harts, "ipc"),
	};
	size_t n = harts->n_rows < max ? harts->n_rows : max;

	for (size_t i = 0; i < harts->n_rows; i++) {
		struct top_hart h = read_hart(harts, &c, i);
		if (i < n)
			ret_hart[i] = h;
		else
			add_hart(&ret_hart[n - 1], &h, i - n + 2);
	}
	return n;
}

void top_hart_label(const struct top_hart *h, char *ret_text, size_t n)
{
	if (h->first == h->last)
		snprintf(ret_text, n, "%d", h->first);
	else
		snprintf(ret_text, n, "%d-%d", h->first, h->last);
}
