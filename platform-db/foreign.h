/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Other people's files: Linux' pmu-events, Arm's standard events, and those of CARRV 2021
 *
 * A folder with a mapfile.csv is one architecture of Linux' tools/perf/pmu-events/arch, or a
 * vendor's in the same form, or a map of the paper "Supporting RISC-V Performance Counters through
 * Perf", which has the same columns and keys of its own. Each row whose type is "core" becomes a
 * draft: events and patterns, no quirks.
 */

#include "platform-db/draft.h"

#define FOREIGN_ROWS_MAX 512 /* of one map; x86's has 60 */

/* Read the map and the folders that it names, appending a struct draft * for each row. What is
 * wrong is complained of and left out, alone. 0 or -ENOMEM. */
int foreign_read(const struct reader *r, const char *folder, struct list *drafts);

/* Events of one file, an array of objects; `standard` are those that "ArchStdEvent" names. 0,
 * READ_WRONG, -ENOMEM. */
int foreign_events(const struct reader *r, const struct node *root, const struct list *standard,
	struct list *events);
