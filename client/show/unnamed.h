/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Code without names in a table of functions, and the package that has its symbols */

#include <stdio.h>

#include "client/show/reply.h"
#include "proto/package.h"

/* If functions without a name of one file have a twentieth of the time or more, write a line with the package that has
 * the symbols of the file with most of it. Nothing if dpkg knows no package; the rows that a limit cut are not counted. */
void unnamed_write(const struct package_places *places, const struct reply *reply, FILE *f);
