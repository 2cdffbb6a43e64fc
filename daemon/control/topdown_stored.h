/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* topdown of a file, or of what a service's store counted */

#include "daemon/control/request.h"

/* Answer a request with a path or a filter. 0 or -errno. */
int topdown_stored(struct request *q, const Mperf__Request *request);
