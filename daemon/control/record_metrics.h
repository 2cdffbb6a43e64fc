/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Metrics of samples: their events become siblings of the event that samples */

#include "daemon/control/request.h"

/* Read the request's events, and append the group of its metrics' events, led by cpu-clock. 0; positive after
 * a refusal: of names that are not known, cores of several kinds, more events than one group may hold; -errno. */
int record_events(struct request *q, const Mperf__RecordRequest *m, struct event_list *events);
