/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Answers of several tables, each under a heading */

#include <stdbool.h>
#include <stdio.h>

#include "client/options/options.h"

#define TABLES_WIDE 110 /* columns of the widest table, the files of the store */

struct tables_heading {
	const char *table;        /* as the daemon calls it */
	const char *says;         /* for people */
	bool upright;             /* one line per column of a single row of unrelated figures */
	const char *const *spare; /* columns omitted below TABLES_WIDE; NULL-terminated */
};

/* Ask the service, and print its answer as the options say: text under the headings, which end with
 * a NULL table (a table without a heading has its name instead), --raw, or --json. Returns the exit
 * status. */
int tables_ask(
	const struct options *o, Mperf__Request *request, const struct tables_heading *heading);

/* A change: what a command does with the answer before it is shown. */
struct replies;
struct tables_change {
	int (*amend)(struct replies *replies); /* 0, -ENOMEM; NULL: nothing */
	/* what people see instead of the tables; 0, -ENOMEM, -EIO; NULL: the tables */
	int (*brief)(const struct replies *replies, FILE *f);
};
int tables_ask_changed(const struct options *o, Mperf__Request *request,
	const struct tables_heading *heading, const struct tables_change *change);
