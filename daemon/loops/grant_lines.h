/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Lines from memory, for regions, where the kernel does not map LLC-load-misses
 *
 * AMD's last cache has no per-thread event, so the generic event opens on none of its cores. But
 * the cores count lines from memory, by the events of the metric dram_bytes (platform-db).
 */

#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event.h"

/* Replace LLC-load-misses by the events of dram_bytes, if the list has LLC-load-misses, this kernel cannot
 * count it for a thread, the others count, and the list stays within n_max. Else the list stays. 0 or
 * -ENOMEM. */
int grant_lines_replace(
	const struct kernel *k, const struct cores *c, int n_max, struct event_list *list);
