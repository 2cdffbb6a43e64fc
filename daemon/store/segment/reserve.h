/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Marks for a sweep of attribute's tables: the ids that a segment under construction knows. */

#include "daemon/attribute/sweep.h"
#include "daemon/store/segment/segment.h"

/* Reserve the ids of all tasks, files and frames that have a row in it. Tasks whose end is not
 * written yet must be kept until it is: call segment_update before the sweep. */
void segment_reserve(const struct segment *g, struct sweep *s);
