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
#include "daemon/metric/hart_counts.h"
#include "daemon/sampler/sampler.h"
#include "daemon/store/segment/trailer.h"

#define SEGMENT_APPLICATION_ID 0x6d507266 /* "mPrf" */
/* user_version: the schema's; only this version is read */
#define SEGMENT_VERSION 1
/* schema.sql: makes all tables in an empty database */
extern const char segment_schema[];

enum {
	SEGMENT_NOT_OURS = 1,  /* not an SQLite file, or of another application */
	SEGMENT_OTHER_VERSION, /* user_version is not ours */
	SEGMENT_UNSEALED,      /* still being written, or its writer died */
	SEGMENT_CORRUPT,       /* damaged or cut off */
	SEGMENT_ABSENT,        /* no such file */
	SEGMENT_REFUSED,       /* may not be read */
	SEGMENT_NO_SPACE,      /* writing: the disc is full */
	/* writing: the file system or folder is (or has become) read-only */
	SEGMENT_READ_ONLY,
	/* another process holds it: a reader of an old state prevents sealing, or its log has
	 * reached SEGMENT_WAL_BYTES_MAX */
	SEGMENT_HELD,
};

/* A flush touches the last page of a dozen tables, however little it stores: pages of 4096 bytes
 * would write twice as much on a quiet machine, and save 10 ms in a query over a million rows. */
#define SEGMENT_PAGE_BYTES 1024
#define SEGMENT_WAL_PAGES 4000 /* checkpoint the log when it is this long: 4 MB */
/* Longest text or blob that is read: the moments of a window's samples are two bytes each, a row of a task holds one argv
 * of 4 KiB, C++ function names reach some ten KiB, and the schema's longest statement two. */
#define SEGMENT_VALUE_BYTES_MAX (1 << 20)
/* For a live segment: a log this long means that a reader has blocked checkpoints for a long time.
 * Nothing is stored until the reader ends. */
#define SEGMENT_WAL_BYTES_MAX (64u << 20)

/* A sentence about an outcome above that names the file, without newline. */
struct segment_error {
	char text[512];
	char remedy[256];
};

struct segment_meta {
	const char *boot_id;                /* /proc/sys/kernel/random/boot_id */
	uint64_t monotonic_ns, realtime_ns; /* one instant on both clocks */
	const char *host, *release, *arch;
	uint32_t hz;         /* at first */
	const char *command; /* what was recorded, as text for users; may be NULL */
	const char *
		labels; /* labels of all processes in it, as JSON (proto/syntax/label.h); NULL: none
			 * */
	uid_t labels_uid; /* the user who set them */
	bool all;
	/* all below may be zero */
	bool live;        /* a segment of the store: other processes may read it while it is
			   * written, and so may its group (mode 0640, otherwise 0600) */
	bool waits;       /* it may have samples of threads that wait, where only some do */
	const char *tier; /* NULL: "window" */
	uint64_t (*lost)[N_LOSSES]; /* n_harts rows: losses before it began; NULL: none */
	int n_harts;
	/* continuous counts of harts; NULL: none. Rows of another serial are not written */
	const struct event_list *counted;
	uint32_t counted_serial;
	const struct hart_rotation *rotation; /* n_rotations, of the counts of harts */
	size_t n_rotations;
};

struct segment;
struct sweep;

/* Functions that write return -EFBIG where the file has reached the limit of the process (RLIMIT_FSIZE) or of the file
 * system. */

/* Create the file (which must not exist) and write meta, events and harts. 0, SEGMENT_NO_SPACE,
 * SEGMENT_READ_ONLY, -errno.
 *
 * Ids of tasks, files, frames and stack nodes must keep their meaning as long as a segment is
 * written, even after their objects have been freed. */
int segment_create(const char *path, const struct segment_meta *meta, const struct sampler *s,
	struct segment **ret_segment);

/* Write one window, in one transaction: the window's rows and all tasks, cgroups, files, frames,
 * stack nodes that they need and that are not stored yet; names that have arrived since the last
 * flush; changed end times and argv of its tasks; and how much the losses (n_harts rows,
 * cumulative) have grown. 0; SEGMENT_NO_SPACE, SEGMENT_READ_ONLY, SEGMENT_HELD, SEGMENT_CORRUPT
 * (nothing of this window was stored: flush it again, or count it as lost); -errno. */
struct segment_flush {
	struct window *window;
	struct stack_tree *stacks;
	struct task_table *tasks;
	struct file_table *files;
	uint64_t (*lost)[N_LOSSES];
	int n_harts;
	uint64_t realtime_ns; /* of the window's start */
	uint32_t hz;          /* the rate in force; a higher one than before is noted */
	uint32_t hz_lowest;   /* see struct sampler; 0: the kernel never lowered the rate */
	unsigned cut;         /* CUT_* of its sampler now; all that it ever was is stored */
	/* a sentence that answers about these harts must include; "" or NULL: none new */
	const char *note;
	const struct hart_set *note_harts;
	struct hart_count_rows counted; /* of all harts, in the window; n 0: none */
	/* leave out processes that do not belong to this user at the time of writing */
	bool only_uid;
	uid_t uid;
	gid_t gid;
	/* charged for what is written; they limit how much of strings is written; NULL: no
	 * limits */
	struct shares *shares;
};
int segment_flush(struct segment *g, const struct segment_flush *f);

/* The same in pieces, since a window can hold more than one turn of the loop may write: begin, then
 * step with the same f until it returns something other than SEGMENT_MORE, which is the outcome of
 * the flush. A step writes about n_rows rows (0: all that remain). Write nothing else in between,
 * and keep alive what the window refers to. If begin fails, as a flush does, do not step. */
enum { SEGMENT_MORE = 32 };
int segment_flush_begin(struct segment *g, const struct segment_flush *f);
int segment_flush_step(struct segment *g, const struct segment_flush *f, uint64_t n_rows);

/* Write new names, end times and argv of tasks, file states and losses, without a window. Same
 * outcomes. */
int segment_update(struct segment *g, const struct segment_flush *f);

/* Frames in it whose names were still awaited at its last flush or update (frame_is_awaited). */
size_t segment_unnamed(const struct segment *g);

/* Bytes on disc now, including its log. */
int64_t segment_bytes(const struct segment *g);

/* Make it one file and mark it sealed; the segment is closed afterwards, whatever the outcome.
 * SEGMENT_HELD: all is stored, but a reader prevents sealing: call segment_recover later.
 * Exported for tests. */
int segment_seal(struct segment *g, uint64_t end_monotonic_ns);
/* The same in pieces, since the whole file is read: begin, then step until it returns something
 * other than SEGMENT_MORE, which is the outcome. A step reads about n_bytes; 0: all that remain.
 * The segment is closed if either fails, or after the last step; segment_abandon stops halfway. */
int segment_seal_begin(struct segment *g, uint64_t end_monotonic_ns);
int segment_seal_step(struct segment *g, uint64_t n_bytes);

/* Reserve, for a sweep of attribute's tables (attribute/sweep.h), the ids of all tasks, files and frames that have a
 * row in it. Tasks whose end is not written yet must be kept until it is: call segment_update before the sweep. */
void segment_reserve(const struct segment *g, struct sweep *s);

/* In a forked child, before it opens any segment: release the segment that the parent is writing,
 * without disturbing it. SQLite keeps a list of the files that a process has open, so a child would
 * take its parent's locks for its own. Frees g. Exported for tests. */
struct segment *segment_forget(struct segment *g);

/* Seal a segment whose writer died or that was SEGMENT_HELD: SQLite's log is replayed, and its end
 * is the end of its last window. No process may be writing it. 0; SEGMENT_ABSENT; SEGMENT_HELD;
 * SEGMENT_CORRUPT, SEGMENT_NOT_OURS, SEGMENT_OTHER_VERSION: it cannot be sealed; SEGMENT_UNBORN:
 * its writer died before it stored anything; SEGMENT_NO_SPACE, SEGMENT_READ_ONLY, SEGMENT_REFUSED;
 * all with *ret_error; -errno. */
enum { SEGMENT_UNBORN = 16 };
int segment_recover(const char *path, struct segment_error *ret_error);

/* Close without sealing and, with remove, unlink the file and its -wal and -shm. */
struct segment *segment_abandon(struct segment *g, bool remove);

/* Open a segment of our own store for reading, sealed or not, as it is at this moment: this begins
 * a transaction that lasts until the connection is closed. The writer never waits, but cannot
 * checkpoint its log meanwhile. Do not call it in the process that writes the segment (fork,
 * segment_forget). 0 or SEGMENT_* with *ret_error, or -errno. */
int segment_open_live(const char *path, sqlite3 **ret_db, struct segment_error *ret_error);

/* Open a sealed segment for reading, after reading all of it to verify its seal. 0 or SEGMENT_*
 * with *ret_error, or -errno. */
int segment_open(const char *path, sqlite3 **ret_db, struct segment_error *ret_error);
/* The same, but skip verification if the file is still *verified, which is updated. */
int segment_open_known(const char *path, struct segment_identity *verified, sqlite3 **ret_db,
	struct segment_error *ret_error);

/* If its meta says that the file is sealed, is the seal complete? 1, 0, -errno. Do not call it
 * while this process has the file open: that would drop its locks. */
int segment_seal_is_whole(const char *path);
