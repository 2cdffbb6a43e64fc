/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The jobs in the window files of a store
 *
 * They are read from the dictionaries of the files, without samples. For a child process.
 */

#include "daemon/store/store.h"
#include "proto/syntax/label.h"

/* Limit of jobs found at once: a build server has some thousands in the two days for which it keeps
 * windows. */
#define PIN_FOUND_MAX 16384

struct found_job {
	uint32_t uid;
	char *labels;     /* JSON */
	char boot_id[40]; /* of its last process */
	int64_t start_ns,
		end_ns; /* CLOCK_REALTIME: of its first process' start, of its last's end */
	char **source;  /* paths of the files that contain it, oldest first */
	uint32_t n_sources, size;
	bool is_partly_unread; /* a file of its time could not be read now, so it may have more
			        * samples */
};

struct found_jobs {
	struct found_job *job;
	uint32_t n, size;
	bool any_unread; /* a file of any time could not be read now */
};

/* A selection: jobs of this user, or of all users, with all of these labels; exact: with only
 * these. */
struct pin_wanted {
	bool all_users;
	uint32_t uid;
	const struct label *label;
	size_t n_labels;
	const char *exact; /* JSON; NULL: any that match */
};

/* Sorted by their end, the latest first. Damaged files are skipped. 0; -E2BIG: there are more than
 * PIN_FOUND_MAX; -ENOMEM. */
int pin_find(const struct store *s, const struct pin_wanted *w, struct found_jobs *ret_jobs);
void found_jobs_clear(struct found_jobs *jobs);
