/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The names of OpenMP's places. A place is a site like those of loops, but its name comes from the namer
 * like that of a frame, and mostly after its row was written, which is changed then.
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/segment/write.h"
#include "proto/base/array.h"

static bool is_named(const struct frame *frame)
{
	return frame->state != FRAME_NEW && frame->state != FRAME_ASKED;
}

/* The innermost function, with its line, and the symbol that it is compiled into, where that is
 * another. Of users over their share only the symbol. */
static int name_site(struct segment *g, uint64_t site, const struct frame *frame)
{
	const struct place none = {0};
	const struct place *symbol = frame->n_places ? &frame->place[frame->n_places - 1] : &none;
	bool whole = share_level(g->shares, g->payer) == SHARE_WHOLE;
	const struct place *place = whole && frame->n_places ? &frame->place[0] : symbol;
	const char *source = whole ? place->source : NULL;
	if (!place->function)
		return 0;
	segment_charge(g, strlen(place->function) + (source ? strlen(source) : 0));
	return ROW(g, UPDATE_LOOP_SITE, CELL_I(site), CELL_T(place->function), CELL_T(source),
		CELL_I_OR_NULL(source && place->line, place->line),
		CELL_T(place != symbol ? symbol->function : NULL));
}

int segment_name_sites(struct segment *g, const struct frame *frame)
{
	struct unnamed_sites *u = &g->unnamed_sites;
	int r = 0;
	for (size_t i = 0; i < u->n && r == 0;) {
		if (u->site[i].frame != frame->id) {
			i++;
			continue;
		}
		r = name_site(g, u->site[i].site, frame);
		u->site[i] = u->site[--u->n];
	}
	return r;
}

int segment_name_site(struct segment *g, uint64_t site, const struct frame *frame)
{
	struct unnamed_sites *u = &g->unnamed_sites;
	if (is_named(frame))
		return name_site(g, site, frame);
	int r = array_grow_long(&u->site, &u->size, u->n + 1, sizeof(*u->site));
	if (r == 0)
		u->site[u->n++] = (struct unnamed_site){site, frame->id};
	return r;
}
