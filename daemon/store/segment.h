/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Segments: one SQLite file that holds everything it needs to be understood
 *
 * Written by one writer in WAL mode, one transaction per flush; sealed into a single file by
 * checkpoint(TRUNCATE) and journal_mode=DELETE with meta.sealed = 1. Opened by readers immutable,
 * read-only, trusted_schema off, defensive. The schema and its meaning: schema.sql.
 */

#include <sqlite3.h>

#include "daemon/aggregate/share.h"
#include "daemon/aggregate/window.h"
#include "daemon/pmu/sampler.h"
#include "daemon/store/segment_trailer.h"

#define SEGMENT_APPLICATION_ID 0x6d507266 /* "mPrf" */
#define SEGMENT_VERSION 3
/* Before it, tables of loops had fewer columns (schema_1.sql), and no rows. */
#define SEGMENT_VERSION_LOOPS 2
/* Before it, sealed files had no hash behind them (segment_trailer.h), and nobody can tell whether
 * they have changed. */
#define SEGMENT_VERSION_SEAL 3

enum {
	SEGMENT_NOT_OURS = 1, /* no SQLite file, or of another application */
	SEGMENT_NEWER,        /* user_version above ours */
	SEGMENT_UNSEALED,     /* still being written, or its writer died */
	SEGMENT_CORRUPT,      /* damaged or cut off */
	SEGMENT_ABSENT,       /* no such file */
	SEGMENT_REFUSED,      /* may not be read */
	SEGMENT_NO_SPACE,     /* writing: the disc is full */
	SEGMENT_READ_ONLY,    /* writing: the file system or folder takes no writes (any more) */
	SEGMENT_HELD, /* another process holds it: a reader an old state, so that it cannot be
			 sealed or its log is at SEGMENT_WAL_BYTES_MAX */
};

/* A flush touches the last page of a dozen tables, whatever there is to store: with pages of 4096
 * bytes twice as much would be written on a quiet machine, for 10 ms less in a query over a million
 * rows. */
#define SEGMENT_PAGE_BYTES 1024
#define SEGMENT_WAL_PAGES 4000 /* the log is emptied into the file when it is this long: 4 MB */
/* Of a live segment: a log this long means that a reader has kept it from being emptied for a long
 * time (else it would have been emptied). Nothing is stored then until it lets go. */
#define SEGMENT_WAL_BYTES_MAX (64u << 20)

/* A sentence about an outcome above, for the file of that name (static format, no newline). */
struct segment_error {
	char text[512];
	char remedy[256];
};

struct segment_meta {
	const char *boot_id;                /* /proc/sys/kernel/random/boot_id */
	uint64_t monotonic_ns, realtime_ns; /* one instant on both clocks */
	const char *host, *release, *arch;
	uint32_t hz;
	const char *command; /* what was recorded, for people; may be NULL */
	bool all;
	/* all below may be left zero */
	bool live;        /* of the store: other processes may read it while it is written;
			     its group may too (mode 0640, else 0600) */
	const char *tier; /* NULL: "window" */
	uint64_t (*lost)[N_LOSSES]; /* n_harts rows: what was lost before it began; NULL: nothing */
	int n_harts;
};

struct segment;

/* Create (must not exist) and write meta, events and harts. 0, SEGMENT_NO_SPACE, SEGMENT_READ_ONLY,
 * -errno.
 *
 * Ids of tasks, files, frames and stack nodes must mean the same thing for as long as a segment is
 * written, even if what bore them has been freed since. */
int segment_create(const char *path, const struct segment_meta *meta, const struct sampler *s,
	struct segment **ret_segment);

/* One transaction: the window's rows and all tasks, cgroups, files, frames, stack nodes they need
 * that are not stored yet; names that came since the last; end times and argv of the tasks in it
 * that changed; losses (n_harts rows, cumulative) as what they grew by.
 * 0; SEGMENT_NO_SPACE, SEGMENT_READ_ONLY, SEGMENT_HELD, SEGMENT_CORRUPT (nothing of this window was
 * stored: it can be flushed again, or counted lost); -errno. */
struct segment_flush {
	struct window *window;
	struct stack_tree *stacks;
	struct task_table *tasks;
	struct file_table *files;
	uint64_t (*lost)[N_LOSSES];
	int n_harts;
	uint64_t realtime_ns; /* of the window's start */
	uint32_t hz_lowest;   /* see struct sampler; 0: the kernel never cut the rate */
	bool only_uid;        /* what is not this user's when it is written is left out */
	uid_t uid;
	gid_t gid;
	struct shares *shares; /* charged for what is written, and decide how much of strings is;
				  NULL: nobody has a limit */
};
int segment_flush(struct segment *g, const struct segment_flush *f);

/* Write names that came since, end times and argv of tasks, file states, losses, without a window.
 * Same outcomes. */
int segment_update(struct segment *g, const struct segment_flush *f);

/* Frames in it whose names are still to come. */
size_t segment_unnamed(const struct segment *g);

/* Bytes on disc now, with its log. */
int64_t segment_bytes(const struct segment *g);

/* Make it one file and mark it sealed; the segment is closed afterwards, whatever comes back.
 * SEGMENT_HELD: all is stored, but a reader keeps it from becoming one file: segment_recover later.
 */
int segment_seal(struct segment *g, uint64_t end_monotonic_ns);

/* In a forked child, before it opens any segment: let go of what the parent is writing, which is
 * not disturbed. SQLite knows the files that a process has open, and a child would take its
 * parent's locks for its own. Frees g. */
struct segment *segment_forget(struct segment *g);

/* Seal a segment whose writer died or that was SEGMENT_HELD: SQLite's log is replayed, its end is
 * the end of its last window. No process may be writing it. 0; SEGMENT_ABSENT; SEGMENT_HELD;
 * SEGMENT_CORRUPT, SEGMENT_NOT_OURS, SEGMENT_NEWER: it cannot be; SEGMENT_UNBORN: its writer died
 * before there was anything in it; SEGMENT_NO_SPACE, SEGMENT_READ_ONLY, SEGMENT_REFUSED; all with
 * *ret_error; -errno. */
enum { SEGMENT_UNBORN = 16 };
int segment_recover(const char *path, struct segment_error *ret_error);

/* Close without sealing and, with remove, unlink the file and its -wal and -shm. */
struct segment *segment_abandon(struct segment *g, bool remove);

/* Open a segment of our own store for reading, sealed or not, as it is at this moment: a
 * transaction is begun and lasts until the connection is closed. The writer is never made to wait,
 * but cannot empty its log meanwhile. Not in the process that writes it (fork, segment_forget). 0
 * or SEGMENT_* with *ret_error, or -errno. */
int segment_open_live(const char *path, sqlite3 **ret_db, struct segment_error *ret_error);

/* Open a sealed segment for reading, after reading it whole to see that it is as it was sealed. One
 * of a version before SEGMENT_VERSION_SEAL cannot be looked at so. 0 or SEGMENT_* with *ret_error,
 * or -errno. */
int segment_open(const char *path, sqlite3 **ret_db, struct segment_error *ret_error);
/* The same; not read whole if it is *verified still, which is what it is afterwards. */
int segment_open_known(const char *path, struct segment_identity *verified, sqlite3 **ret_db,
	struct segment_error *ret_error);

/* Does the file have all that a sealed one has, where its meta says that it is sealed? 1, 0,
 * -errno. Not while this process has it open: its locks would go. */
int segment_seal_is_whole(const char *path);

/* The version of the format of one that is open; 0: it cannot be told. */
uint32_t segment_version(sqlite3 *db);
