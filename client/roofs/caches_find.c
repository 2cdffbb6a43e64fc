/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/roofs/caches.h"
#include "client/roofs/question.h"
#include "client/show/reply.h"

static int receive(struct link *l, struct reply *reply)
{
	Mperf__RoofsRequest roofs = MPERF__ROOFS_REQUEST__INIT;
	roofs.caches = true;
	return roofs_rows(l, &roofs, reply);
}

/* Rows come by kind of hart, and by level within it. */
static void write_text(const struct reply *r, char ret_text[static CACHES_TEXT_BYTES])
{
	const char *before = NULL;
	size_t at = 0;
	*ret_text = '\0';
	for (size_t i = 0; i < r->n_rows && at < CACHES_TEXT_BYTES; i++) {
		const char *harts = reply_text(r, i, reply_column(r, "harts"));
		double bytes, shared;
		if (!harts || !reply_number(r, i, reply_column(r, "bytes"), &bytes) ||
			!reply_number(r, i, reply_column(r, "shared_by"), &shared))
			continue;
		if (!before || strcmp(before, harts) != 0)
			at += (size_t)snprintf(ret_text + at, CACHES_TEXT_BYTES - at,
				"%s%s:", before ? ";" : "", harts);
		else
			at += (size_t)snprintf(ret_text + at, CACHES_TEXT_BYTES - at, ",");
		if (at < CACHES_TEXT_BYTES)
			at += (size_t)snprintf(
				ret_text + at, CACHES_TEXT_BYTES - at, "%.0f/%.0f", bytes, shared);
		before = harts;
	}
	if (at >= CACHES_TEXT_BYTES)
		*ret_text = '\0';
}

int caches_find(char ret_text[static CACHES_TEXT_BYTES])
{
	struct reply reply = {.columns = NULL};
	struct link l;
	*ret_text = '\0';
	if (link_try(&l) != 0)
		return 0;
	int r = receive(&l, &reply);
	link_close(&l);
	if (r == 0 && reply.columns)
		write_text(&reply, ret_text);
	reply_clear(&reply);
	return r == -ENOMEM ? r : 0;
}
