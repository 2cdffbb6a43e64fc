/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The sweep: what nobody refers to any more is freed, and its id used again
 *
 * A daemon that runs for weeks sees more tasks, files and addresses than it can keep. The station
 * marks what it needs itself (what lives, what waits, what is mapped); whoever else holds tasks or
 * frames marks those in a callback; the rest goes. Ids are keys in segments that are being written:
 * an id that such a segment knows is reserved, which frees what bore it but not the id.
 *
 *      mark ─▶ keep            stays
 *           ─▶ reserve         goes, its id stays taken until a later sweep finds it unreserved
 *           ─▶ (nothing)       goes, its id is given to the next that comes
 */

#include "daemon/attribute/attribute.h"

/* Ancestors that are kept for whoever is kept: who belongs to a target is found through them. A
 * program that restarts itself for ever must not keep all that it was. */
#define SWEEP_ANCESTORS_MAX 64
/* A file or frame that was not seen for this long goes, at the earliest; then it must be named
 * again when it comes back. */
#define SWEEP_IDLE_NS 120000000000u
/* With more frames than this, also those that were seen lately go, but for those that are marked.
 */
#define SWEEP_FRAMES_CROWDED (FRAMES_MAX / 16)
/* Arguments of all tasks that are kept, together; above it those longer than SWEEP_ARGV_SHORT are
 * cut to that. 10,000 processes with 200 bytes each have 2 MB. */
#define SWEEP_ARGV_BYTES_MAX (64u << 20)
#define SWEEP_ARGV_SHORT 512u
/* A task that ended this lately, and is reserved, stays: the segments that know it are to be told
 * of its end with their next flush. */
#define SWEEP_TOLD_NS 120000000000u
/* Folders of cgroups that are looked for, in one sweep, to see whether the group is gone. */
#define SWEEP_CGROUPS_MAX 4096

enum { SWEEP_FREE = 0, SWEEP_RESERVED = 1, SWEEP_KEPT = 2 };

/* Marks of each id, at [id - 1]; the higher one counts. */
struct sweep {
	uint8_t *task, *frame, *file;
	uint32_t n_tasks, n_frames, n_files;
	bool tasks_only;
};

/* To be called in the callback. What is NULL or not in the tables is passed over. */
void sweep_keep_task(struct sweep *s, const struct task *task);
void sweep_keep_frame(struct sweep *s, const struct frame *frame);
/* Leave all frames and files as they are: who holds many spares himself the marking. */
void sweep_keep_all_frames(struct sweep *s);
void sweep_reserve_task(struct sweep *s, uint32_t id);
void sweep_reserve_frame(struct sweep *s, uint32_t id);
void sweep_reserve_file(struct sweep *s, uint32_t id);

/* Sweep the station's tables and its namer's. Not from within a callback of attribute or namer, and
 * between drains. Every task and frame that somebody will use again must be marked: those of
 * windows' rows, of stack trees' nodes, of attributions that were put by. Parents that go become
 * unknown (task.parent NULL). Cost: linear in the tables. 0; -ENOMEM: nothing was freed. */
int attribute_sweep(
	struct attribute *a, void (*mark)(void *userdata, struct sweep *s), void *userdata);
