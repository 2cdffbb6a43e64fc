/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Hart times: how each hart spent its time, according to the kernel
 *
 * These times are exact, where sampling can only estimate, and cheap: one read of /proc/stat for all
 * harts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the kernel's ticks, since boot or over an interval; only their ratios are meaningful. */
struct hart_time {
	bool known; /* the hart is online */
	uint64_t user, kernel, total;
};

/* Take the "cpuN" lines of a text like /proc/stat; harts without one become unknown. Malformed
 * lines are skipped. Source: man proc_stat(5). Exported for tests. */
void hart_time_parse(const char *text, struct hart_time *ret_time, int n_harts);

/* Read /proc/stat. 0; -ENOMEM; -errno if it cannot be read (all harts are unknown then). */
int hart_time_read(struct hart_time *ret_time, int n_harts);

/* The time between two readings; unknown unless both are known and time passed. */
struct hart_time hart_time_since(const struct hart_time *now, const struct hart_time *before);
