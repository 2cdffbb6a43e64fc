/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A reply as comma-separated values: a line of column names, then one line per row */

#include <stdbool.h>
#include <stdio.h>

#include "client/show/reply.h"

/* Would a spreadsheet compute this text? Programs choose their names, so we write a single quote before it. Numbers
 * stay numbers. (Tabs and line breaks, by which formulas begin too, are visible text.)
 * Source: OWASP, "CSV Injection". */
bool csv_is_formula(const char *text);
/* Does it need quotes? Also where a semicolon separates fields. */
bool csv_is_quoted(const char *text);

/* Numbers plain and unrounded, text quoted if necessary; values that were not measured are empty. 0
 * or -EIO. Source: RFC 4180. */
int csv_write(const struct reply *r, FILE *f);
