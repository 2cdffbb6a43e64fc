/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A reply as comma-separated values: a line of column names, then one line per row */

#include <stdio.h>

#include "client/show/reply.h"

/* Numbers plain and unrounded, text quoted if necessary; values that were not measured are empty. 0
 * or -EIO. Source: RFC 4180. */
int csv_write(const struct reply *r, FILE *f);
