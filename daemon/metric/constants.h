/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Constants of the machine in formulas: #num_cpus, #smt_on, … as perf has them */

#include "daemon/kernel/machine.h"

/* The value of "num_cpus", "num_cpus_online", "num_cores", "num_dies", "num_packages", "smt_on" or
 * "core_wide", ignoring case. 0; CONSTANT_UNKNOWN: it is none of these, or this kernel does not say.
 * O(online harts) files are read. */
enum { CONSTANT_UNKNOWN = 1 };
int machine_constant(
	const struct kernel *k, const struct hart_set *online, const char *name, double *ret_value);
