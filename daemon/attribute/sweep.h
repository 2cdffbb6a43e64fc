/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The sweep: free objects that are no longer referenced, and reuse their ids
 *
 * A daemon that runs for weeks sees more tasks, files and addresses than it can keep. This room marks
 * the objects that it needs (those that are alive, waiting or mapped). Other holders of tasks or frames
 * mark those in a callback. All other objects are freed. Ids are keys in segments that are being written:
 * an id that such a segment contains is reserved, which frees the object but not the id.
 *
 *      mark ─▶ keep            kept
 *           ─▶ reserve         freed; its id stays taken until a later sweep finds it unreserved
 *           ─▶ (nothing)       freed; its id is given to the next object
 */

#include "daemon/attribute/attribute.h"

/* Ancestors kept for each kept task: they show whether it belongs to a target. Limited, so that a
 * program that restarts itself for ever does not keep all its predecessors. */
#define SWEEP_ANCESTORS_MAX 64
/* A file or frame is freed after it was not seen for at least this long; if it comes back, it must
 * be named again. */
#define SWEEP_IDLE_NS 120000000000u
/* If a user has more frames than this, recently seen ones are freed too unless they are marked. */
#define SWEEP_FRAMES_CROWDED (FRAMES_MAX / 16)
/* Total size of the arguments of all kept tasks; above it, arguments longer than SWEEP_ARGV_SHORT
 * are cut to that length. 10,000 processes with 200 bytes each take 2 MB. */
#define SWEEP_ARGV_BYTES_MAX (64u << 20)
#define SWEEP_ARGV_SHORT 512u
/* A reserved task stays for this long after its end: the segments that contain it store the end
 * with their next flush. */
#define SWEEP_ENDED_NS 120000000000u
/* Cgroup folders checked in one sweep to see whether the cgroup is gone. */
#define SWEEP_CGROUPS_MAX 4096

/* Marks of each id (the values are in naming/file.h). */
struct sweep {
	uint8_t *task; /* at [id - 1] */
	uint32_t n_tasks;
	struct file_marks code;
};

/* Call in the callback. Skips NULL and objects that are not in the tables. */
static inline void sweep_keep_task(struct sweep *s, const struct task *task)
{
	if (task)
		mark_raise(s->task, s->n_tasks, task->id, SWEEP_KEPT);
}

static inline void sweep_keep_frame(struct sweep *s, const struct frame *frame)
{
	file_marks_keep_frame(&s->code, frame);
}

void sweep_reserve_task(struct sweep *s, uint32_t id);
void sweep_reserve_frame(struct sweep *s, uint32_t id);
void sweep_reserve_file(struct sweep *s, uint32_t id);

/* Sweep this room's tables and its namer's. Call between drains, not from a callback of attribute
 * or namer. Every task and frame that will be used again must be marked: those of windows' rows,
 * stack trees' nodes, and deferred attributions. Tasks whose parent is freed have task.parent NULL.
 * Linear in the tables. 0; -ENOMEM: nothing was freed. */
int attribute_sweep(
	struct attribute *a, void (*mark)(void *userdata, struct sweep *s), void *userdata);
