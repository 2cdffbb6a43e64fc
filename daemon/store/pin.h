/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Pins: jobs whose samples are kept in full
 *
 * A pin is one job's rows in a segment of its own (rollup/extract.h), below pinned/. Retention never removes
 * it: it goes when it is unpinned, or when a newer pin of its group takes its place. Its own meta
 * describes it, so a pin is one file, there whole or not at all:
 *
 *      pinned_uid, pinned_labels   the job: whose labels, and the labels as JSON
 *      pinned_by                   user that asked for it, who is charged
 *      pinned_group, pinned_keep   the newest pinned_keep pins of (pinned_by, pinned_group) are kept; the group
 *                                  is the selection that was asked for, as JSON; keep 0: until unpinned
 *      pinned_ns                   CLOCK_REALTIME at which it was made: it has all windows until then
 *
 * Pins count towards the store's budget, and may have a share of it (struct pin_limits), so that the rest
 * always has room.
 */

#include "daemon/store/store.h"
#include "proto/syntax/label.h"

/* Maximum pins of a store: 20 runs of 200 branches. The list is held in memory, at 0.5 KB a pin. */
#define STORE_PINS_MAX 4096
/* The least room for a pin: a pin has a page of 1024 bytes in each of 39 tables and indices. */
#define STORE_PIN_BYTES_MIN (39u << 10)

struct store_pin {
	char name
		[STORE_NAME_BYTES]; /* relative to the store: "pinned/20261121T143000Z-1f3a.mprf" */
	int64_t start_ns,
		end_ns;    /* CLOCK_REALTIME: of its first window's start, of its last's end */
	int64_t pinned_ns; /* CLOCK_REALTIME */
	uint64_t bytes;
	uint32_t uid, by, keep;
	char *labels, *group;             /* JSON (proto/syntax/label.h) */
	uint64_t labels_hash, group_hash; /* hash_bytes of these */
	struct segment_identity verified;
};

/* The space for pins: of all users, of one user, and on the disc, which has free_bytes above
 * min_free_bytes. */
struct pin_limits {
	uint64_t all_bytes, user_bytes, free_bytes, min_free_bytes;
};
/* Read the free space of the disc; free_bytes stays unchanged if that fails. */
void store_pin_measure(const struct store *s, struct pin_limits *limits);
/* The space left for one more pin, and the limit that determines it. */
struct pin_room {
	uint64_t bytes;
	enum pin_room_limit { PIN_ROOM_ALL, PIN_ROOM_USER, PIN_ROOM_DISC } limit;
};
/* One user may fill this share of the space, so that some is left for another. */
#define PIN_USER_PART 2

/* The list of a store has the oldest first: by start, then end, then time of pinning, then name. */

/* Examine this file of the store, and enter it. 0; STORE_CORRUPT: it was set aside; -ENOENT;
 * -ENOTSUP: a newer mperf wrote it; -ENOSPC: there are STORE_PINS_MAX; -errno, if it could not be
 * read: it stays, and store_measure tries again from time to time. */
int store_pin_note(struct store *s, const char *name);
/* Unlink a pin, and forget it. 0 or -errno, when it stays. */
int store_pin_remove(struct store *s, size_t at);
/* Unlink the files of that name left by a killed child. */
void store_pin_remove_unfinished(const struct store *s, const char *name);
/* Remove it from the list; the file stays. */
void store_pin_drop(struct store *s, size_t at);
/* The index of the pin of that name; n_pins: there is none. */
size_t store_pin_find(const struct store *s, const char *name);
/* A name for a new pin, which no file has. 0, -EEXIST. */
int store_pin_name(
	struct store *s, int64_t start_ns, const char *boot_id, char name[STORE_NAME_BYTES]);
/* The index of a pin of this job that covers the time up to end_ns at least; n_pins: there is none.
 * */
size_t store_pin_of(const struct store *s, uint32_t uid, const char *labels, int64_t end_ns);

/* The pins that answer a query of jobs with the labels of one of n wishes in [since_ns, until_ns)
 * (0: open): each moment of a job from the latest pin that covers it, so that nothing counts twice.
 * Labels whose key is one of those that control groups show (query/job_label.h) need not be the
 * job's. Labels of jobs that the requesting user may not see are not even compared. For a child
 * process: time grows with labels times wishes. The caller frees
 * *ret_part. 0 or -ENOMEM. */
struct pin_part {
	const struct store_pin *pin; /* borrowed until the store changes */
	int64_t since_ns, until_ns;  /* of its windows' starts */
	uint32_t next;               /* index + 1 of the same job's next part; 0: none */
};
struct pin_wish {
	struct label label[LABELS_MAX]; /* all of them */
	size_t n;
};
struct pin_question {
	const uint32_t *uid; /* the only user whose pins count; NULL: all */
	const struct pin_wish *wish;
	size_t n_wishes;
	int64_t since_ns, until_ns;
};
int store_pin_select(const struct store *s, const struct pin_question *q,
	struct pin_part **ret_part, size_t *ret_n_parts);

/* The oldest pin of that user's group, if the group has more than `keep`: remove it and call again,
 * until it returns n_pins. */
size_t store_pin_surplus(const struct store *s, uint32_t by, const char *group, uint32_t keep);

/* The space for a new pin after removing the pins that it replaces. */
struct pin_room store_pin_room(const struct store *s, const struct pin_limits *l, uint32_t by,
	const char *group, uint32_t keep);

/* The oldest pin is the first: the index of the last one that is older than `than`; n_pins: none is. */
size_t store_pin_older(const struct store *s, const struct store_pin *than);

/* Do these labels (JSON) include all wanted ones? Wanted values may have * and ?. */
bool store_pin_matches(const char *labels, const struct label *wanted, size_t n);
