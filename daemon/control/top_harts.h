/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The table of harts in a frame of top */

#include "daemon/query/query.h"
#include "daemon/session/top_feed.h"

/* Send the table "harts", with a row for each hart that is online, of the feed's last slice. with_ipc: for peers that
 * see all, since a hart's IPC comes from all users' programs. 0, what answer returned, -ENOMEM. */
int top_tell_harts(const struct top_feed *f, bool with_ipc, const struct answer *answer);
