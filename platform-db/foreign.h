/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Third-party files: Linux's pmu-events, Arm's standard events, and those of CARRV 2021
 *
 * A folder with a mapfile.csv is one architecture of Linux's tools/perf/pmu-events/arch, or a
 * vendor's in the same format, or a map of the paper "Supporting RISC-V Performance Counters
 * through Perf", with the same columns and its own keys. Each row whose type is "core" becomes a
 * draft: events and patterns, no quirks.
 */

#include "platform-db/draft.h"

#define FOREIGN_ROWS_MAX 512 /* of one map; x86's has 60 */

/* Read the map and the folders that it names, appending a struct draft * for each row. Each error
 * is reported, and only the wrong part is left out. 0 or -ENOMEM. */
int foreign_read(const struct reader *r, const char *folder, struct list *drafts);

/* Events of one file, an array of objects; `standard` are those that "ArchStdEvent" names. 0,
 * READ_WRONG, -ENOMEM. */
int foreign_events(const struct reader *r, const struct node *root, const struct list *standard,
	struct list *events);
