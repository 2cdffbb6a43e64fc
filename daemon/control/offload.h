/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Offload: a job answered by a process of its own
 *
 * What may take longer than a few milliseconds (a query over a week, a roll-up) is done by a forked
 * child that has nothing but copies: no perf event, no socket, no capability, a limit of memory and
 * of time. What it answers comes through a pipe, frame by frame, and goes on to the peer as he reads.
 * A child that dies is a failure told to the peer, nothing else.
 */

#include "daemon/control/request.h"

#define OFFLOAD_BYTES_MAX (2ull << 30)  /* RLIMIT_DATA of a child: a million rows take 10 MB, a week of 64 harts 200 */
#define OFFLOAD_SECONDS_MAX 120         /* RLIMIT_CPU */

/* In the child: answer. `q` is like the request, and whatever is sent to it goes into the pipe,
 * waiting for room. The return value is the child's exit status. */
typedef int offload_function(struct request *q, void *userdata);

/* Fork, and leave a job in q that passes the answers on. In the child userdata is used as it was
 * at the call. 0, or -errno. */
int offload_start(struct request *q, offload_function *run, void *userdata);
