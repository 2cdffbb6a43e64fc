/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Lines from memory, for regions, where the kernel does not map LLC-load-misses
 *
 * AMD's last cache has no event that belongs to a thread, so the generic event opens on none of its
 * cores; but the cores count what they get from memory, and platform-db knows by which events
 * (metric dram_bytes).
 */

#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event.h"

/* Put the events of dram_bytes in the place of LLC-load-misses, if the list has that, this kernel cannot count
 * it for a thread, these count, and the list does not get longer than n_max. Else the list stays. 0 or
 * -ENOMEM. */
int grant_lines_replace(
	const struct kernel *k, const struct cores *c, int n_max, struct event_list *list);
