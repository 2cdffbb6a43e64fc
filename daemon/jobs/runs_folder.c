/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The folder of runs, below the store's: one folder for each schedule, and the log. Each schedule
 * has its own limits, separate from the store's budget; min-free applies to both.
 *
 *      MaxUse= of a schedule
 *      ├─ kept: all of it; the oldest of the user who has most goes, root's only above a half
 *      └─ one user, kept and running: a quarter; root: what the others keep leaves, at least a half
 *           └─ for what runs the user's own go, down to half of that; then it ends
 *
 * So a running recording never removes kept recordings of another user, and users' recordings
 * during root's recording of the whole system do not remove everything that root has kept. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "daemon/jobs/schedules_private.h"
#include "proto/base/memory.h"

DEFINE_CLEANUP(DIR *, closedir)

#define SECOND_NS 1000000000
/* Limit of other files in a folder, after which we stop searching. */
#define ENTRIES_MAX 65536

int runs_folder_make(const char *path, const char *schedule)
{
	if (mkdir(path, 0750) < 0 && errno != EEXIST)
		return -errno;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (mkdirat(fd, schedule, 0750) < 0 && errno != EEXIST))
		return -errno;
	return 0;
}

void runs_folder_name(const char *schedule, int64_t realtime_ns, uint64_t id,
	char ret_file[static RUN_FILE_BYTES])
{
	char when[32] = "";
	struct tm tm;
	time_t seconds = (time_t)(realtime_ns / SECOND_NS);
	if (gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(ret_file, RUN_FILE_BYTES, "%s/%s-%llu.mprf", schedule, when,
		(unsigned long long)id);
}

/* 0, also if it does not exist; -errno. */
static int remove_file(const char *path, const char *file)
{
	_cleanup_(freep) char *whole = NULL;
	if (asprintf(&whole, "%s/%s", path, file) < 0) {
		whole = NULL;
		return -ENOMEM;
	}
	return unlink(whole) < 0 && errno != ENOENT ? -errno : 0;
}

static bool log_has(const struct runs_log *log, const char *schedule, const char *name)
{
	for (size_t i = 0; i < log->n; i++) {
		const char *slash = strchr(log->entry[i].file, '/');
		if (slash && strcmp(slash + 1, name) == 0 &&
			strcmp(log->entry[i].schedule, schedule) == 0)
			return true;
	}
	return false;
}

/* SQLite's files of an unfinished segment are next to it: remove everything that is not in the log.
 * */
static void tidy_folder(int parent, const char *name, const struct runs_log *log)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(closedirp) DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	if (!d && fd >= 0)
		close(fd);
	for (unsigned n = 0; d && n < ENTRIES_MAX && (e = readdir(d)); n++)
		if (strstr(e->d_name, ".mprf") && !log_has(log, name, e->d_name))
			(void)unlinkat(fd, e->d_name, 0);
	(void)unlinkat(parent, name, AT_REMOVEDIR); /* if it is empty */
}

static bool is_gone(const struct run_entry *e, void *userdata)
{
	const char *path = userdata;
	_cleanup_(freep) char *whole = NULL;
	if (!*e->file || asprintf(&whole, "%s/%s", path, e->file) < 0) {
		whole = NULL;
		return false;
	}
	return access(whole, F_OK) < 0 && errno == ENOENT;
}

void runs_folder_tidy(const char *path, struct runs_log *log)
{
	_cleanup_(closedirp) DIR *d = opendir(path);
	const struct dirent *e;
	for (unsigned n = 0; d && n < ENTRIES_MAX && (e = readdir(d)); n++)
		if (schedule_is_name(e->d_name, strlen(e->d_name)))
			tidy_folder(dirfd(d), e->d_name, log);
	if (d)
		runs_log_drop_if(log, is_gone, (void *)path);
}

static int remove_run(const char *path, struct runs_log *log, uint64_t id)
{
	const struct run_entry *e = runs_log_find(log, id);
	int r = e ? remove_file(path, e->file) : -ENOENT;
	if (r < 0)
		return r;
	runs_log_drop(log, id);
	return 0;
}

int runs_folder_retain(
	const char *path, struct runs_log *log, const char *schedule, size_t keep, uint64_t max_use)
{
	struct runs_kept kept;
	while ((kept = runs_log_kept(log, schedule, NULL)).n > 0 &&
		(kept.n > keep || (kept.n > 1 && kept.bytes > max_use))) {
		int r = remove_run(path, log,
			runs_log_first_to_go(
				log, schedule, kept.n > keep ? RUNS_NUMBER : RUNS_BYTES));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Bytes that a user's recordings of that schedule may take, kept and running. */
static uint64_t share_of(const struct runs_log *log, const struct schedule *of, uid_t uid)
{
	if (uid != 0)
		return of->max_use / RUNS_USER_PART;
	uint64_t others =
		runs_log_kept(log, of->name, NULL).bytes - runs_log_kept(log, of->name, &uid).bytes;
	return of->max_use - (others < of->max_use / 2 ? others : of->max_use / 2);
}

int runs_folder_make_room(const char *path, struct runs_log *log, const struct schedule *of,
	uid_t uid, uint64_t bytes)
{
	const uint64_t share = share_of(log, of, uid);
	const uint64_t left = bytes < share / 2 ? share - bytes : share / 2;
	uint64_t kept;
	while ((kept = runs_log_kept(log, of->name, &uid).bytes) > left) {
		int r = remove_run(path, log, runs_log_oldest_of(log, of->name, uid));
		if (r < 0)
			return r;
	}
	return bytes >= share || bytes + kept > share ? RUNS_FOLDER_FULL : 0;
}

bool runs_folder_is_full(const char *path, uint64_t min_free_bytes)
{
	struct statvfs fs;
	return statvfs(path, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < min_free_bytes;
}

uint64_t runs_folder_bytes(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}
