/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Counting of topdown-groups for the store: opened, closed, and tried again */

#include "daemon/conf/conf.h"
#include "daemon/metric/hart_counts.h"

struct keeper;
struct service;

struct service_groups {
	struct hart_counts *counts;      /* NULL: nothing is counted now */
	char text[CONF_TEXT_BYTES];      /* names of the groups that are counted */
	char trouble[EVENT_ERROR_BYTES]; /* reason why nothing can be counted; "": it can, or should
					  * not */
	uint32_t serial;
	double price; /* the cost of counting, now or when the groups were last open */
	uint64_t next_try_ns;
};

/* Call in each round, after the budget has decided: counts the groups that mperf.conf names, if the
 * budget allows it and no client measures roofs. k: NULL while nothing is stored. 0 or -ENOMEM. */
int service_tend_groups(struct service *s, struct keeper *k, uint64_t now_ns);
/* Open the groups again: the configuration, or what is known of the cores, may have changed. */
void service_close_groups(struct service *s, struct keeper *k);
