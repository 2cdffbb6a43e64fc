/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Answers of several tables, each under a heading */

#include <stdbool.h>

#include "client/options.h"

#define TABLES_WIDE 110 /* columns that the widest table, the files of the store, takes */

struct tables_heading {
	const char *table; /* as the daemon calls it */
	const char *says;  /* for people */
	bool upright; /* a single row is told line by line: figures that hardly belong together */
	const char *const *spare; /* columns left out on a terminal below TABLES_WIDE, NULL-ended */
};

/* Ask the service, and show what it answers as the options say: text under the headings, which end
 * with a NULL table (a table without one is headed by its name), --raw, or --json. Returns the exit
 * status. */
int tables_ask(
	const struct options *o, Mperf__Request *request, const struct tables_heading *heading);
