/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Schedules: recordings that begin by themselves
 *
 * A file NAME.schedule of a folder, /etc/mperf/schedules.d, is one schedule (mperf-schedule(5)). It
 * has either a time, for which mperf-generator makes a systemd timer, or the jobs to record, which
 * mperfd looks for. mperfd, mperfctl and the generator read it with this parser. A time is not
 * parsed here: systemd parses it (systemd.time(7)).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/syntax/label.h"

#define SCHEDULES_PATH "/etc/mperf/schedules.d"
#define SCHEDULE_SUFFIX ".schedule"
/* Schedules of a folder; each is compared with every job that starts. */
#define SCHEDULES_MAX 64
/* In a unit's name, which has 255 bytes, and in those of files. */
#define SCHEDULE_NAME_BYTES_MAX 64
#define SCHEDULE_CALENDARS_MAX 8
#define SCHEDULE_LABELS_MAX 8
/* Bytes of a time and of a pattern of units; a unit's name has at most 255. */
#define SCHEDULE_TEXT_BYTES 256

enum schedule_kind { SCHEDULE_CALENDAR, SCHEDULE_JOBS };

struct schedule {
	char name[SCHEDULE_NAME_BYTES_MAX + 1];
	enum schedule_kind kind;
	char calendar[SCHEDULE_CALENDARS_MAX][SCHEDULE_TEXT_BYTES]; /* OnCalendar=, as written */
	size_t n_calendars;
	/* of jobs: those of units with such a name, fnmatch(3), or ""; or those with all of these
	 * labels, whose values are patterns; or, without either, all that have labels */
	char unit[SCHEDULE_TEXT_BYTES];
	struct label label[SCHEDULE_LABELS_MAX];
	size_t n_labels;
	uint32_t share_ppm;   /* share of these jobs that is recorded, in millionths */
	uint64_t duration_ns; /* of a recording, at most */
	uint32_t hz;          /* 0: as mperfd samples all the time */
	bool callers;         /* with call graphs, by frame pointers */
	uint32_t keep;        /* recordings, */
	uint64_t max_use;     /* and bytes of all of them */
};

struct schedule_error {
	char text
		[512]; /* "/etc/mperf/schedules.d/x.schedule:3: unknown key …", without a full stop */
};

enum {
	SCHEDULE_WRONG = 1, /* *ret_error names file and line */
	SCHEDULE_MASKED,    /* an empty file, or /dev/null: no schedule has this name */
};

/* Is it the name of a schedule: letters, digits, and any of _ . - but not first? */
bool schedule_is_name(const char *name, size_t n);

/* Parse text (n bytes, not NUL-terminated) of the file `path`, which the error names. 0; SCHEDULE_WRONG;
 * SCHEDULE_MASKED. *ret_schedule is untouched unless 0. Exported for tests. */
int schedule_parse(const char *text, size_t n, const char *path, struct schedule *ret_schedule,
	struct schedule_error *ret_error);

/* The same of a file, whose name must end in SCHEDULE_SUFFIX. -ENOMEM. */
int schedule_read(
	const char *path, struct schedule *ret_schedule, struct schedule_error *ret_error);

/* All schedules of a folder, by name; a faulty one is reported, and does not affect others. */
struct schedule_list {
	struct schedule *schedule;
	size_t n;
	struct schedule_error *error;
	size_t n_errors;
};
/* A folder that does not exist has no schedules. 0, -ENOMEM; other failures are reported as errors
 * of the folder. */
int schedules_read(const char *folder, struct schedule_list *ret_list);
void schedules_clear(struct schedule_list *l);

/* Describe what a schedule records, for people: "each job of unit ci-*.service, at 999 Hz with
 * stacks". Returns text. */
const char *schedule_says(const struct schedule *s, char *text, size_t size);
