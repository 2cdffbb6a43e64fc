/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Records put together field by field, as the kernel's header lists them: support code of the unit
 * tests. Every maker leaves one whole record in `made`, of task 100/101, hart 3, at 123456789 ns.
 */

#include "daemon/decode/record.h"
#include "tests/unit/recording.h"

/* Ids of the streams that made_streams sets up. */
enum {
	MADE_SIDE = 7,
	MADE_PLAIN = 8,
	MADE_FULL = 9,
	MADE_GROUP = 10,
	MADE_DEEP = 11,
	MADE_ODD = 12
};

extern struct recording_writer made;

/* Where the last record has what hostile tests overwrite. */
struct made_at {
	size_t n_callchain, n_raw, n_branches, stack_size, dyn_size, aux_size;
};
extern struct made_at made_at;

/* Fill an empty table with the streams above. */
void made_streams(struct stream_table *t);

void made_mmap(void);
void made_mmap2(bool build_id);
void made_mmap2_inode(void);
void made_mmap2_build_id(void);
void made_comm(void);
void made_fork(uint32_t type); /* PERF_RECORD_FORK or _EXIT */
void made_cgroup(void);
void made_ksymbol(void);
void made_lost(void);
void made_lost_samples(void);
void made_throttle(void);
void made_deferred(void);
void made_plain(void); /* samples: of the stream of that name */
void made_group(void);
void made_full(void);
void made_deep(void);

/* All of them, in a row. */
extern void (*const made_all[])(void);
#define N_MADE 16

/* Parts, for records that differ from the above. */
void made_finish_side(void); /* sample_id and size */
void made_put_task_time(void);
void made_put_cpu(void);
void made_put_chain(void);
