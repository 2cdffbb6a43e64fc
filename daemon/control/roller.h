/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The roller: roll-ups, one after the other, each in a process of its own
 *
 * A sealed window segment is added to its day's minutes and its week's hours (store/rollup.h); a
 * file whose period is over is sealed. What is broken is set aside. A child that fails for another
 * reason (a full disc) is tried again a minute later, and then ever more seldom.
 */

#include <poll.h>

#include "daemon/store/store.h"

/* Segments that wait: more than a store keeps as windows in its first weeks. What is beyond it is
 * found in the store once these are done. */
#define ROLLER_WAITING_MAX 4096

struct roller;

/* Begin with what the store holds and has not been rolled up. 0 or -ENOMEM. */
int roller_new(struct store *s, struct roller **ret_roller);

/* A segment was sealed. 0 or -ENOMEM. */
int roller_add(struct roller *r, const char *path);

/* What all minutes may take: what each user adds to them is bounded by it (aggregate/share.h). */
void roller_allow(struct roller *r, uint64_t budget_bytes, uint64_t keep_ns);

size_t roller_fds(const struct roller *r, struct pollfd *fds, size_t n);
/* See how the child does, start the next. 0 or -errno. */
int roller_dispatch(struct roller *r, uint64_t now_ns);

struct roller_status {
	size_t n_waiting;
	uint64_t n_done, n_failed;
	char last_failure[512];
};
void roller_status(const struct roller *r, struct roller_status *ret_status);

/* Kills the child; what it was at is as if it had not begun. */
struct roller *roller_free(struct roller *r);
