/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* mperfctl roofs measure: while the service samples as little as it may */

#include "proto/roofs/roofs.h"

struct options;

/* Measure, and keep what was measured. The caller frees with roofs_clear. 0; an exit status after a
 * message; -errno. */
int roofs_measure(const struct options *o, struct roofs *ret_roofs);
