/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A status in five lines: is it well, what does it sample, cost, name and keep */

#include <stdio.h>

#include "client/show/reply.h"

/* Write the tables of a status (control/status.c) as a verdict and four lines, and a line for each trouble. Figures
 * that are missing are said to be, or stand as 0. 0, -ENOMEM, -EIO. */
int status_write_short(const struct replies *status, FILE *f);
