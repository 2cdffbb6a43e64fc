/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the files of `record`: its options, the events of its metrics, its end, and the account of
 * its resources */

#include "daemon/control/request.h"
#include "daemon/session/walk.h"

/* Check a request, and fill in *ret_options, which borrow from it and from *events, the events that it names. 0;
 * positive after a refusal; -errno. */
int record_options(struct request *q, const Mperf__RecordRequest *m, struct event_list *events,
	struct walk_options *ret_options);

/* Read the request's events, and append the group of its metrics' events, led by cpu-clock: they become siblings of
 * the event that samples. 0; positive after a refusal: of names that are not known, cores of several kinds, more events
 * than one group may hold; -errno. */
int record_events(struct request *q, const Mperf__RecordRequest *m, struct event_list *events);

/* Save a part of the service's store as a recording (record_stored.c). 0 or -errno. */
int record_stored(struct request *q, const Mperf__Request *request);

/* A sentence on the part of since_ns to until_ns (0: now) that the store does not keep as windows; "" if it has all; cut
 * at n bytes. 0; positive after a refusal, since it has nothing of that time but coarser sums; -errno. */
int record_missing(struct request *q, int64_t since_ns, int64_t until_ns, char *ret_says, size_t n);

/* Send the provenance of the sealed segment at path, open as fd, with one more note (NULL: none): by the same query that
 * every later answer comes from. 0, an answer's value or QUERY_FAILED, -errno. */
int record_tell(const char *path, int fd, const struct answer *to, const char *note);

/* --- the account ------------------------------------------------------------------------------ */

/* Resources of its user that a recording holds (user.h): itself, descriptors, bytes in the cache folder, and loop time
 * for its windows. A private daemon counts nothing. */
struct record_hold {
	struct user *user; /* NULL: nothing is held */
	enum user_hold kind;
	uint64_t n_fds, bytes;
};

/* The service's walk, whose always-on samples serve clients without special requests. NULL: the recording
 * needs a walk of its own. */
struct walk *record_shared_walk(const struct request *q, const Mperf__RecordRequest *m);

/* Requested samples per second of the recording. */
uint32_t record_rate(const struct request *q, const Mperf__RecordRequest *m);

/* Charge one more recording to the peer's user, who has room for its data; shared: it taps the
 * always-on samples. 0; positive after a refusal that names the limit; -errno. */
int record_hold_begin(struct record_hold *h, struct request *q, bool shared);
/* Charge its descriptors: for n_pids targets, and those of its own walk (NULL: none). Returns the
 * same. */
int record_hold_fds(
	struct record_hold *h, struct request *q, size_t n_pids, const struct walk *walk);
/* Its segment now has that many bytes. False: its user is at the limit. */
bool record_hold_bytes(struct record_hold *h, uint64_t bytes);
/* recording_options.spent, with the hold as its owner. */
uint64_t record_hold_spend(void *hold, uint64_t ns);
/* Return everything to the account. */
void record_hold_end(struct record_hold *h);
