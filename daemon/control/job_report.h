/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include "daemon/control/request.h"

/* Answer JOB_REPORT: which processes bounded how long a job took. 0 or -errno. */
int job_report(struct request *q, const Mperf__Request *request);
