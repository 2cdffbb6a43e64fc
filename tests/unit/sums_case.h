/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A replayed machine with a BPF program that takes time at each switch, and sums up nothing */

#include "daemon/kernel/switch_bpf.h"
#include "tests/unit/replay.h"

#define SUMS_CASE_HARTS 2

/* The machine's kernel with such a program, which is not loaded. Borrowed; until the next call. */
const struct kernel *sums_case_kernel(struct replay *r);
/* From now on a switch takes so much longer for each group that the program reads on that hart. */
void sums_case_cost(uint64_t each_ns);
/* From now on it is not loaded, for that reason; 0 takes it back. */
void sums_case_refuse(int error);

int sums_case_n_loaded(void);
int sums_case_n_watched(int hart);
