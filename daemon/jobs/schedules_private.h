/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Schedules' internals: one run, and the folder of runs */

#include "daemon/jobs/schedules.h"
#include "daemon/session/recording.h"

struct schedule_run {
	struct schedule schedule;
	uint64_t id;
	uid_t uid;
	struct watched_job *job; /* NULL: the schedule has a time. It counts as a user of the job,
				  * so that the job is not freed */
	struct recording *recording;
	uint64_t until_ns, next_look_ns; /* CLOCK_MONOTONIC */
	enum run_outcome outcome;        /* once it is finishing, and: */
	int64_t end_ns;                  /* CLOCK_REALTIME */
	char why[RUN_WHY_BYTES];
	bool finishing, wants_rate;
	uint32_t given_hz; /* the lowest rate that it got; 0: always the requested rate */
};

/* --- runs_folder.c ---------------------------------------------------------------------------- */

/* Make the folder and one for that schedule. 0 or -errno. */
int runs_folder_make(const char *path, const char *schedule);
/* The name of a new file in it, "nightly/20261121T020000Z-12.mprf". */
void runs_folder_name(const char *schedule, int64_t realtime_ns, uint64_t id,
	char ret_file[static RUN_FILE_BYTES]);
/* Remove recordings that are not in the log, and runs whose file is gone. */
void runs_folder_tidy(const char *path, struct runs_log *log);
/* Remove recordings of that schedule until `keep` remain and their bytes fit max_use, or one is left. 0; -errno: one cannot be
 * removed, which stays in the log, as do all after it. */
int runs_folder_retain(const char *path, struct runs_log *log, const char *schedule, size_t keep,
	uint64_t max_use);
/* Make room for that user's running recordings of the schedule, which take `bytes`: remove kept
 * ones of the same user, down to half of that user's share. 0; RUNS_FOLDER_FULL: they still exceed
 * the share; -errno as in runs_folder_retain. */
#define RUNS_USER_PART 4 /* of MaxUse=, of one user other than root */
enum { RUNS_FOLDER_FULL = 1 };
int runs_folder_make_room(const char *path, struct runs_log *log, const struct schedule *of,
	uid_t uid, uint64_t bytes);
/* Has that file system less than min_free_bytes free? False if that is not known. */
bool runs_folder_is_full(const char *path, uint64_t min_free_bytes);

/* Bytes of the file at that path; 0 if it is gone. */
uint64_t runs_folder_bytes(const char *path);

/* --- schedule_run.c --------------------------------------------------------------------------- */

/* Begin a run, whose folder exists, and which the log does not have yet. 0 with *ret_run; SCHEDULE_RUN_FAILED, and
 * entry->why says why; -ENOMEM. */
enum { SCHEDULE_RUN_FAILED = 1 };
struct schedule_run_options {
	const struct schedule *schedule;
	struct watched_job *job; /* NULL: the whole system */
	struct walk *walk;
	const struct conf *conf;
	const char *path;
	struct run_entry *entry; /* with its id, user and job */
	uint64_t now_ns;
};
int schedule_run_new(const struct schedule_run_options *o, struct schedule_run **ret_run);
/* End it: later dispatches seal it. 0 or -errno. */
int schedule_run_finish(
	struct schedule_run *run, enum run_outcome outcome, const char *why, uint64_t now_ns);
/* Go on writing and sealing. 0; SCHEDULE_RUN_OVER: run->outcome says how; -errno. */
enum { SCHEDULE_RUN_OVER = 1 };
int schedule_run_dispatch(struct schedule_run *run, uint64_t now_ns);
/* Removes its file unless it was sealed. */
struct schedule_run *schedule_run_free(struct schedule_run *run);
