/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The store: a folder of segments per tier, under one byte budget
 *
 *      /var/lib/mperf/lock
 *                     window/20261121T140000Z-<boot>.mprf     one an hour, as sampled
 *                     minute/20261121T000000Z-….mprf          one a day: sums per minute and
 * process hour/20261116T000000Z-….mprf            one a week: sums per hour and program corrupt/
 * set aside, never read, counts in the budget
 *
 * A file's name says its tier and when it starts; size, end and state come from the file. Window
 * files are written by the daemon and sealed; the coarser tiers grow by whole windows (rollup.h) in
 * one transaction each and are sealed when their period is over. Retention unlinks whole files.
 * Nothing here waits, forks or logs.
 */

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/segment_trailer.h"

#define STORE_FILES_MAX 65536 /* seven years of hours */
#define STORE_NAME_BYTES 96

/* Stored in meta.tier by name: do not rename. */
enum tier { TIER_WINDOW, TIER_MINUTE, TIER_HOUR, N_TIERS };
const char *tier_name(enum tier tier);   /* "window" */
uint64_t tier_period_ns(enum tier tier); /* of one file: an hour, a day, a week */
uint64_t tier_step_ns(enum tier tier);   /* of one window row: 0 as flushed, a minute, an hour */
/* When the file that holds this moment (CLOCK_REALTIME) starts: the hour, the day, the week's
 * Monday, all in UTC. */
int64_t tier_start_ns(enum tier tier, int64_t realtime_ns);

/* meta key under which a coarser file notes a source that was added to it: this and the source's
 * name without its folder ("source:20261121T140000Z-1f3a.mprf"), value 1. */
#define STORE_SOURCE_KEY "source:"

struct store_file {
	enum tier tier;
	char name[STORE_NAME_BYTES]; /* relative to the store: "window/20261121T140000Z-1f3a.mprf"
				      */
	int64_t start_ns, end_ns;    /* CLOCK_REALTIME; end 0: still written (ask the clock) */
	uint64_t bytes;              /* with -wal and the like */
	bool sealed;
	bool corrupt;   /* below corrupt/ */
	bool newer;     /* of a newer mperf: kept and counted, not read */
	bool left;      /* a window file whose writer went without sealing it */
	uint8_t rolled; /* bits by tier: is among the sources of a file of that tier */
	struct segment_identity verified; /* when a query last saw it to be as it was sealed */
};

struct store_limits {
	uint64_t budget_bytes, min_free_bytes;
	uint64_t keep_ns[N_TIERS];
};

struct store {
	char *path;
	int fd, lock_fd;
	bool read_only;
	struct store_file *file; /* corrupt ones first, then by tier and start */
	size_t n_files, size;
	uint64_t bytes, free_bytes; /* as of the last store_measure */
	/* for status: what has been done so far */
	uint64_t n_unlinked, bytes_unlinked, n_corrupt, n_recovered;
	char last_unlinked[STORE_NAME_BYTES];
	const char *last_reason; /* "age", "budget", "free space", "number of files"; static */
	uint64_t recover_ns;     /* CLOCK_MONOTONIC before which no leftover is tried again */
};

struct store_error {
	char text[512]; /* a sentence that names the thing */
	char remedy[256];
};

enum {
	STORE_BUSY = 1,  /* another daemon has it: the error names its pid */
	STORE_REFUSED,   /* may not be made or entered */
	STORE_READ_ONLY, /* file system or folder cannot be written */
	STORE_NO_SPACE,
	STORE_CORRUPT,
};

/* Make the folders where they are missing, lock, list the files. What a daemon that died left
 * unsealed is recovered by SQLite's own log and sealed; what cannot be read is moved to corrupt/
 * and counted. 0, STORE_* with *ret_error, -errno. */
int store_open(const char *path, struct store **ret_store, struct store_error *ret_error);
struct store *store_free(struct store *s);

/* Absolute path of the window segment to create for a stretch that starts at realtime_ns; no file
 * of that name is there. The caller frees. 0, -errno. */
int store_new_path(struct store *s, int64_t realtime_ns, const char *boot_id, char **ret_path);

/* Absolute path of the coarser tier's file that holds this moment, whether it is there already or
 * not. Each boot has its own, since monotonic times of two cannot be told apart. The caller frees.
 * 0, -errno. */
int store_tier_path(
	struct store *s, enum tier tier, int64_t realtime_ns, const char *boot_id, char **ret_path);
/* The same for a roll-up of this window file, whose name says its boot. */
int store_target_path(
	struct store *s, const struct store_file *source, enum tier tier, char **ret_path);

/* Enter a file that was just created, or look at it anew (its end once it is sealed, what a coarser
 * file took in). One that is gone is dropped. An unsealed window file that is noted again has been
 * closed by its writer, who could not seal it: store_measure tries now and then. The path is
 * absolute or relative to the store. 0 or -errno. */
int store_note(struct store *s, const char *path);

/* Of all files of a tier, but those set aside. */
uint64_t store_tier_bytes(const struct store *s, enum tier tier);

/* Look at the sizes of unsealed files and at the free space of the file system. 0 or -errno. */
int store_measure(struct store *s);

/* A query has read this file whole, and it was as it was sealed. */
void store_note_verified(
	struct store *s, const char *name, const struct segment_identity *identity);

/* Set a file aside as corrupt. 0, STORE_*, -errno. */
int store_set_aside(struct store *s, const char *name);

/* Unlink what is too old, then the oldest of the finest tier that has sealed files, until `bytes` +
 * headroom_bytes fits the budget and the free space is kept; the file of `spare` (may be NULL) is
 * never touched. Returns the number of files unlinked; *ret_fits is false when nothing more can go
 * and it still does not fit (then storing must stop). */
int store_retain(struct store *s, const struct store_limits *limits, int64_t now_realtime_ns,
	uint64_t headroom_bytes, const char *spare, bool *ret_fits);

/* The file that would go next, and why; NULL: none. */
const struct store_file *store_next(const struct store *s, const struct store_limits *limits,
	int64_t now_realtime_ns, const char **ret_reason);

/* What will be, if samples keep coming as they did in the last week. */
struct store_forecast {
	const struct store_file *next; /* goes next; borrowed until the store changes; NULL: none */
	const char *reason;            /* as last_reason */
	int64_t next_ns;               /* CLOCK_REALTIME; INT64_MAX: not to be told */
	uint64_t bytes_a_day[N_TIERS]; /* 0: too early to tell */
	uint64_t keeps_ns[N_TIERS];    /* how far back each will reach, age and budget considered */
};
void store_forecast(const struct store *s, const struct store_limits *limits,
	int64_t now_realtime_ns, struct store_forecast *ret_forecast);

/* The files that answer a question about [since_ns, until_ns) (CLOCK_REALTIME; 0: open), each
 * moment by the coarsest tier whose files cover it whole, the edges by finer ones: rows of ret_part
 * say which stretch of which file to read; they do not overlap, so nothing counts twice. finest:
 * never coarser than that (lines and threads are only in windows, processes not in hours). The
 * caller frees. 0 or -ENOMEM. */
struct store_part {
	const struct store_file *file; /* borrowed until the store changes */
	int64_t since_ns, until_ns;    /* of its windows' starts */
};
int store_select(const struct store *s, int64_t since_ns, int64_t until_ns, enum tier coarsest,
	struct store_part **ret_part, size_t *ret_n_parts);
