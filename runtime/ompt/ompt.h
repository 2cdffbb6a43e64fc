/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* OMPT: the part of OpenMP's tools interface that we use
 *
 * Declared here, so that neither building nor running the tool needs LLVM. A test compares it with
 * LLVM's omp-tools.h.
 *
 * Source: OpenMP API 5.2, chapter 19: 19.2 (start), 19.4 (types), 19.5 (callbacks).
 */

#include <stdint.h>

union ompt_data {
	uint64_t value;
	void *ptr;
};

typedef void (*ompt_function)(void);
typedef ompt_function (*ompt_lookup)(const char *name);
typedef int (*ompt_set_callback_function)(int which, ompt_function callback);

struct ompt_start {
	int (*initialize)(ompt_lookup lookup, int initial_device, union ompt_data *tool_data);
	void (*finalize)(union ompt_data *tool_data);
	union ompt_data tool_data;
};

/* Numbers of callbacks. */
enum {
	OMPT_PARALLEL_BEGIN = 3,
	OMPT_PARALLEL_END = 4,
	OMPT_TASK_SCHEDULE = 6,
	OMPT_IMPLICIT_TASK = 7,
	OMPT_SYNC_REGION_WAIT = 16,
	OMPT_WORK = 20,
	OMPT_MUTEX_ACQUIRE = 26,
	OMPT_MUTEX_ACQUIRED = 27,
	OMPT_NEST_LOCK = 28,
};

enum { OMPT_SCOPE_BEGIN = 1, OMPT_SCOPE_END = 2 };

enum ompt_sync_region {
	OMPT_SYNC_BARRIER = 1,
	OMPT_SYNC_BARRIER_IMPLICIT = 2, /* of 5.0: at the end of work or of a region */
	OMPT_SYNC_BARRIER_EXPLICIT = 3,
	OMPT_SYNC_BARRIER_IMPLEMENTATION = 4,
	OMPT_SYNC_TASKWAIT = 5,
	OMPT_SYNC_TASKGROUP = 6,
	OMPT_SYNC_REDUCTION = 7,
	OMPT_SYNC_BARRIER_WORKSHARE = 8,
	OMPT_SYNC_BARRIER_PARALLEL = 9,
	OMPT_SYNC_BARRIER_TEAMS = 10,
};

enum ompt_work {
	OMPT_WORK_LOOP = 1,
	OMPT_WORK_SECTIONS = 2,
	OMPT_WORK_SINGLE_EXECUTOR = 3,
	OMPT_WORK_SINGLE_OTHER = 4,
	OMPT_WORK_LOOP_STATIC = 10,
	OMPT_WORK_LOOP_OTHER = 13,
};

enum ompt_mutex {
	OMPT_MUTEX_LOCK = 1,
	OMPT_MUTEX_TEST_LOCK = 2,
	OMPT_MUTEX_TEST_NEST_LOCK = 4,
	OMPT_MUTEX_CRITICAL = 5,
	OMPT_MUTEX_ATOMIC = 6,
	OMPT_MUTEX_ORDERED = 7,
};

#define OMPT_TASK_INITIAL 1 /* in the flags of an implicit task: no region's */
