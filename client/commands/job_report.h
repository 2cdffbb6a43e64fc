/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include "client/options/options.h"

/* mperfctl job report: ask for the chain of processes that bounded a job, and print it. Returns the exit status. */
int job_report(const struct options *o);
