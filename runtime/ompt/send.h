/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Send: what strands counted, as the round goes over threads */

struct tally_calls;

extern const struct tally_calls mperf_tally_calls;
