/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Recording share: the detail that a recording keeps of samples whose user exceeds the share
 * (aggregate/share.h)
 *
 * All functions take NULL, a recording without limits, and do nothing then.
 */

#include "daemon/aggregate/share.h"
#include "daemon/session/walk.h"

struct recording_share;

/* Both are borrowed. 0 or -ENOMEM. */
int recording_share_new(
	struct shares *shares, struct walk *walk, struct recording_share **ret_share);

/* Remove from an attribution the detail that its user has no room for; its frames are then borrowed
 * from the share until the next call. *ret_cut: it was a sample, and is kept with less detail. 0 or
 * -ENOMEM. */
int recording_share_cut(struct recording_share *s, struct attribution *a, bool *ret_cut);

/* Charge the user for what an attribution has added to the window and the call-site tree. */
void recording_share_charge(
	struct recording_share *s, uid_t uid, uint32_t n_nodes, uint32_t n_rows, uint32_t n_reads);

/* A window was stored. */
void recording_share_refill(struct recording_share *s, uint64_t now_ns);

/* May this user's loops be stored individually? */
bool recording_share_has_room(struct recording_share *s, uid_t uid);

/* For the segment; NULL for NULL. */
struct shares *recording_share_all(const struct recording_share *s);

/* Mark the frames and tasks that the share will use again, and forget those not used since the last call. */
void recording_share_mark(struct recording_share *s, struct sweep *sweep);

struct recording_share *recording_share_free(struct recording_share *s);
