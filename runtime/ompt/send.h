/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Send: what strands counted, as the round goes over threads */

struct tally_calls;

/* The calls that mperf_state.tallies points to in the OpenMP tool (state.h). */
extern const struct tally_calls mperf_tally_calls;
