/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* diff and gate of runs that the service's store has: jobs by their labels, or stretches of time */

#include "daemon/control/request.h"

/* Answer a request that has selections, by a child. 0 or -errno. */
int compare_store_start(struct request *q, const Mperf__Request *request);
