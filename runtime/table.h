/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Table: the part of a module's table (abi.h) that the runtime reads, to find the counters that are
 * sums to send, and among these the times of timed loops. */

#include <stddef.h>
#include <stdint.h>

/* Find how each of a module's n counters is used (enum mperf_counter_use): uses[0 to n - 1]. 0;
 * -EBADMSG: this is no table of n counters, and none is used. Linear in the table. */
int mperf_table_uses(const uint8_t *table, size_t bytes, uint8_t *uses, size_t n);
