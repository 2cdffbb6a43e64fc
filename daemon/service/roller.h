/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The roller: roll-ups, one after the other, each in a child process
 *
 * A sealed window segment is added to its day's minutes and its week's hours
 * (store/rollup/rollup.h); a file whose period is over is sealed. Damaged files are set aside. A
 * child that fails for another reason (a full disc) is retried after a minute, and then less and
 * less often.
 */

#include <poll.h>

#include "daemon/store/store.h"

/* Maximum waiting segments: more than a store keeps as windows in its first weeks. Any more are
 * found in the store once these are done. */
#define ROLLER_WAITING_MAX 4096

struct roller;

/* Start with the segments of the store that have not been rolled up. 0 or -ENOMEM. */
int roller_new(struct store *s, struct roller **ret_roller);

/* A segment was sealed. 0 or -ENOMEM. */
int roller_add(struct roller *r, const char *path);

/* Set the space for all minutes, which bounds what each user adds to them (aggregate/share.h). */
void roller_allow(struct roller *r, uint64_t budget_bytes, uint64_t keep_ns);

size_t roller_fds(const struct roller *r, struct pollfd *fds, size_t n);
/* Check the child, start the next. 0 or -errno. */
int roller_dispatch(struct roller *r, uint64_t now_ns);

/* Kills the child; its work is undone. */
struct roller *roller_free(struct roller *r);
