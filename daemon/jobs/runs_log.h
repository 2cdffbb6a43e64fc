/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The log of runs: recordings of schedules, and why others were skipped
 *
 * A run is one recording of a schedule, or its omission. Runs are kept in memory and in a file of the
 * schedules' folder, one JSON object a line: a changed run is appended again, and the last line of an
 * id counts. A line with times 0 says that the run was dropped. The file is rewritten when half of its lines
 * are outdated. So the list outlives a restart, and a crash loses at most the last line.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/syntax/schedule.h"

/* Limits of runs without a recording, in total and of one user: some weeks of them. */
#define RUNS_WITHOUT_FILE_MAX 512
#define RUN_JOB_BYTES 200
#define RUN_WHY_BYTES 256
#define RUN_FILE_BYTES 128
/* A line of a run: each byte of a text may be a quote, which takes two. */
#define RUN_LINE_BYTES 2048
/* With all schedules at their Keep=. */
#define RUNS_MAX (SCHEDULES_MAX * 100 + RUNS_WITHOUT_FILE_MAX)

enum run_outcome {
	RUN_GOES_ON,
	RUN_WHOLE,   /* as the schedule says */
	RUN_ENDED,   /* ended earlier; the samples so far are kept */
	RUN_SKIPPED, /* not started */
	RUN_FAILED,  /* its recording is lost */
	N_RUN_OUTCOMES,
};
const char *run_outcome_says(enum run_outcome outcome); /* "recorded"; stored under that name */

struct run_entry {
	uint64_t id; /* from 1; ids are never reused */
	char schedule[SCHEDULE_NAME_BYTES_MAX + 1];
	char job[RUN_JOB_BYTES]; /* its unit, or its labels; "": the whole system */
	uid_t uid;               /* the user who may read it, besides root and the group; 0: no one
				  * else */
	enum run_outcome outcome;
	char why[RUN_WHY_BYTES];   /* the reason, for RUN_ENDED, SKIPPED and FAILED; or what was
				    * given up */
	char file[RUN_FILE_BYTES]; /* in the folder: "nightly/20261121T020000Z-12.mprf"; "": none */
	int64_t start_ns, end_ns;  /* CLOCK_REALTIME */
	uint32_t hz;               /* asked for */
	uint64_t n_samples, bytes; /* of the file */
	uint32_t times;            /* number of times in a row, for the same reason */
};

struct runs_log {
	char *path;
	int fd;                  /* -1: it cannot be written */
	struct run_entry *entry; /* by id */
	size_t n;
	uint32_t size;
	uint64_t last_id;
	size_t n_lines; /* in the file */
	int error;      /* errno of the last write; 0: it worked */
	/* the file exists but could not be read: do not write it, and remove none of its recordings
	 * */
	bool is_unread;
};

/* Read the log at `path`, or begin one. Invalid lines are skipped; runs that were still running
 * have failed. 0, also if it cannot be read or written, which `error` says; -ENOMEM. */
int runs_log_open(const char *path, struct runs_log *ret_log);
void runs_log_close(struct runs_log *log);

/* Add a run; its id and times are set here. If it was skipped like the last one of its schedule and
 * user, that one counts once more instead. Makes room by dropping the oldest run without a file of
 * the user who has most. Returns the id; 0: no memory. */
uint64_t runs_log_add(struct runs_log *log, const struct run_entry *run);
/* By id; borrowed until the next add or drop. NULL: there is none. */
struct run_entry *runs_log_find(struct runs_log *log, uint64_t id);
/* Write a changed run. */
void runs_log_changed(struct runs_log *log, const struct run_entry *run);
/* Forget a run. */
void runs_log_drop(struct runs_log *log, uint64_t id);
/* Forget all runs for which the function is true; it is called once for each, in time linear in the
 * log. */
void runs_log_drop_if(struct runs_log *log, bool (*is)(const struct run_entry *run, void *userdata),
	void *userdata);

/* Count a schedule's complete recordings and their bytes; uid: of this user, NULL: of all. */
struct runs_kept {
	size_t n;
	uint64_t bytes;
};
struct runs_kept runs_log_kept(const struct runs_log *log, const char *schedule, const uid_t *uid);
/* The recording of a schedule to remove first if there are too many, or too many bytes: the oldest
 * of the user who has most. Root's are removed only while other users together have at most half.
 * 0: none. */
enum runs_bound { RUNS_NUMBER, RUNS_BYTES };
uint64_t runs_log_first_to_go(
	const struct runs_log *log, const char *schedule, enum runs_bound bound);
/* The oldest recording of that schedule and user. 0: none. */
uint64_t runs_log_oldest_of(const struct runs_log *log, const char *schedule, uid_t uid);
