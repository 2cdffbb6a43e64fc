/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Names that came later than the segment */

#include "daemon/query/load.h"

struct later;

/* Give frames without a name the one that this machine knows now. Names must be loaded. 0, QUERY_FAILED, -errno. */
int load_later(struct loaded *l, struct later *later);
