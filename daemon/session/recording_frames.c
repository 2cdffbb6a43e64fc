/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include <string.h>

#include "daemon/session/recording_private.h"

/* Replace the kernel's frames of a stack by one frame, which does not show where in the kernel the sample
 * was. The two arrays may not be the same. */
static uint32_t hide_kernel(
	const struct recording *g, const struct attribution *a, struct frame **frame)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->n_frames; i++) {
		enum file_kind kind = a->frame[i]->file->kind;
		if (kind != FILE_KERNEL && kind != FILE_MODULE)
			frame[n++] = a->frame[i];
		else if (n == 0 || frame[n - 1] != g->hidden)
			frame[n++] = g->hidden;
	}
	return n;
}

void recording_choose_frames(struct recording *g, struct attribution *a, struct frame **room)
{
	struct frame *with_waker[STACK_FRAMES_MAX];
	if (a->waker && !g->no_callers) {
		a->n_frames = recording_put_waker(&g->wakers, g->walk, &g->targets, a, with_waker);
		memcpy(room, with_waker, a->n_frames * sizeof(struct frame *));
		a->frame = g->hidden ? with_waker : room;
	}
	if (g->hidden) {
		a->n_frames = hide_kernel(g, a, room);
		a->frame = room;
	}
	if (g->no_callers && a->n_frames > 1)
		a->n_frames = 1;
}
