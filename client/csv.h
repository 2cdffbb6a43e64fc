/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A reply as comma-separated values: a line of column names, then a line a row
 */

#include <stdio.h>

#include "client/reply.h"

/* Numbers plain and unrounded, text quoted where it must be; what was not measured is empty.
 * 0 or -EIO. Source: RFC 4180. */
int csv_write(const struct reply *r, FILE *f);
