/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The store: a folder of segments per tier, under one byte budget
 *
 *      /var/lib/mperf/lock
 *                     window/20261121T140000Z-<boot>.mprf     one an hour, as sampled
 *                     minute/20261121T000000Z-….mprf          one a day: sums per minute, process
 *                     hour/20261116T000000Z-….mprf            one a week: sums per hour, program
 *                     pinned/20261121T143000Z-….mprf          one a job that is kept (pin.h)
 *                     corrupt/                                set aside, never read, but counted
 *
 * A file's name says its tier and when it starts; size, end and state come from the file. Window
 * files are written by the daemon and sealed; files of the coarser tiers grow by whole windows
 * (rollup.h), in one transaction each, and are sealed when their period is over. Retention unlinks
 * whole files, but not pinned ones. No function here waits, forks or logs.
 */

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/segment/trailer.h"

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

/* meta key under which a coarser file notes each source added to it: this prefix and the source's
 * name without its folder ("source:20261121T140000Z-1f3a.mprf"), value 1. */
#define STORE_SOURCE_KEY "source:"

struct store_file {
	enum tier tier;
	/* relative to the store: "window/20261121T140000Z-1f3a.mprf" */
	char name[STORE_NAME_BYTES];
	int64_t start_ns, end_ns; /* CLOCK_REALTIME; end 0: still written (ask the clock) */
	uint64_t bytes;           /* including -wal and -journal */
	bool sealed;
	bool corrupt;       /* below corrupt/ */
	bool other_version; /* format version is not ours: kept and counted, not read */
	bool left;          /* a window file whose writer ended without sealing it */
	bool unread;        /* could not be read at the last check: the entry has its earlier state
			     * */
	uint8_t rolled;     /* bits by tier: it is a source of a file of that tier */
	struct segment_identity verified; /* its identity when a query last verified its seal */
};

struct store_limits {
	uint64_t budget_bytes, min_free_bytes;
	uint64_t keep_ns[N_TIERS];
};

struct store_pin;

struct store {
	char *path;
	int fd, lock_fd;
	bool read_only;
	struct store_file *file; /* corrupt ones first, then by tier and start */
	size_t n_files, size;
	struct store_pin *pin; /* by age (pin.h) */
	size_t n_pins;
	uint32_t size_pins;
	bool pins_unread;           /* some are not in the list, since they could not be read */
	size_t next_pin_look;       /* the one of them at which the next try begins */
	uint64_t bytes, free_bytes; /* as of the last store_measure */
	/* for status: what was done so far */
	uint64_t n_unlinked, bytes_unlinked, n_corrupt, n_recovered;
	char last_unlinked[STORE_NAME_BYTES];
	const char *last_reason; /* "age", "budget", "free space", "number of files"; static */
	/* CLOCK_MONOTONIC before which unreadable or unsealed files are not tried again */
	uint64_t again_ns;
	size_t next_look; /* index of the file at which the next try begins */
};

struct store_error {
	char text[512]; /* a sentence that names the thing */
	char remedy[256];
};

enum {
	STORE_BUSY = 1,  /* another daemon uses it: the error names its pid */
	STORE_REFUSED,   /* may not be created or entered */
	STORE_READ_ONLY, /* file system or folder cannot be written */
	STORE_NO_SPACE,
	STORE_CORRUPT,
};

/* Create missing folders, lock, list the files. Files that a dead daemon left unsealed are
 * recovered from SQLite's log and sealed; unreadable ones are moved to corrupt/ and counted. 0,
 * STORE_* with *ret_error, -errno. */
int store_open(const char *path, struct store **ret_store, struct store_error *ret_error);
struct store *store_free(struct store *s);

/* Absolute path of the window segment to create for a period that starts at realtime_ns; no file of
 * that name exists. The caller frees it. 0, -errno. */
int store_new_path(struct store *s, int64_t realtime_ns, const char *boot_id, char **ret_path);

/* Absolute path of the coarser tier's file that holds this moment, whether it exists or not. Each
 * boot has its own, since monotonic times of two boots cannot be told apart. The caller frees it.
 * 0, -errno. Exported for tests. */
int store_tier_path(
	struct store *s, enum tier tier, int64_t realtime_ns, const char *boot_id, char **ret_path);
/* The same for a roll-up of this window file, whose name says its boot. */
int store_target_path(
	struct store *s, const struct store_file *source, enum tier tier, char **ret_path);

/* Are two files of windows or of a coarser tier of the same boot, by their names or paths? */
bool store_is_same_boot(const char *path, const char *other);

/* Enter a file that was just created, or look at it again (its end once it is sealed, new sources
 * of a coarser file). A file that no longer exists is dropped. An unsealed window file that is
 * noted again was closed by its writer, which could not seal it: store_measure retries from time to
 * time. So it does with a file that cannot be read for the moment (no descriptor, no permission),
 * which is entered as it was known. The path is absolute or relative to the store. 0, -EINVAL: no
 * file of a store is called so; STORE_* if it is damaged and cannot be set aside; -ENOMEM. */
int store_note(struct store *s, const char *path);

/* Bytes of all files of a tier, except those set aside. */
uint64_t store_tier_bytes(const struct store *s, enum tier tier);

/* Bytes of all pins (pin.h). */
uint64_t store_pins_bytes(const struct store *s);

/* Read the sizes of unsealed files and the free space of the file system; from time to time, retry
 * files that could not be read or sealed. 0 or -errno. */
int store_measure(struct store *s);

/* Note that a query has read this whole file and verified its seal. */
void store_note_verified(
	struct store *s, const char *name, const struct segment_identity *identity);

/* Set a file aside as corrupt. 0, STORE_*, -errno. */
int store_set_aside(struct store *s, const char *name);

/* Unlink files that are too old, then the oldest of the finest tier that has sealed files, until
 * `bytes` + headroom_bytes fits the budget and enough space is free; the file `spare` (may be NULL)
 * is never touched. Returns the number of files unlinked; *ret_fits is false if nothing more can be
 * removed and it still does not fit (then storing must stop). */
int store_retain(struct store *s, const struct store_limits *limits, int64_t now_realtime_ns,
	uint64_t headroom_bytes, const char *spare, bool *ret_fits);

/* A forecast, if samples keep coming as in the last week. */
struct store_forecast {
	/* removed next; borrowed until the store changes; NULL: none */
	const struct store_file *next;
	const char *reason;            /* as last_reason */
	int64_t next_ns;               /* CLOCK_REALTIME; INT64_MAX: not known */
	uint64_t bytes_a_day[N_TIERS]; /* 0: too early to tell */
	/* how far back each tier will reach, given age and budget */
	uint64_t keeps_ns[N_TIERS];
};
void store_forecast(const struct store *s, const struct store_limits *limits,
	int64_t now_realtime_ns, struct store_forecast *ret_forecast);

/* For store_select: read each moment from the finest tier that has it, for queries that must
 * separate runs as well as possible. Where two tiers meet, up to one step of the coarser may be
 * missing. */
#define STORE_FINEST_FIRST N_TIERS

/* The files that answer a query of [since_ns, until_ns) (CLOCK_REALTIME; 0: open): each moment from
 * the coarsest tier whose files cover it completely, the edges from finer ones. Rows of ret_part
 * say which part of which file to read; they do not overlap, so nothing counts twice. coarsest: use
 * no coarser tier (lines and threads are only in windows, processes not in hours). The caller frees
 * *ret_part. 0 or -ENOMEM. */
struct store_part {
	const struct store_file *file; /* borrowed until the store changes */
	int64_t since_ns, until_ns;    /* of its windows' starts */
};
int store_select(const struct store *s, int64_t since_ns, int64_t until_ns, enum tier coarsest,
	struct store_part **ret_part, size_t *ret_n_parts);
