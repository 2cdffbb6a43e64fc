/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Options that a recording asks of its walk */

#include "daemon/control/request.h"
#include "daemon/session/walk.h"

/* Check a request, and fill in *ret_options, which borrow from it and from *events, the events that it names. 0;
 * positive after a refusal; -errno. */
int record_options(struct request *q, const Mperf__RecordRequest *m, struct event_list *events,
	struct walk_options *ret_options);
