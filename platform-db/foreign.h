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

/* Rows in the files of one folder: lists of struct draft_event and of struct platform_metric. */
struct foreign_rows {
	struct list *events, *metrics;
	enum platform_arch arch; /* _UNKNOWN: of standard events */
};

/* Events and metrics of one file, an array of objects; `standard` are those that "ArchStdEvent"
 * names, or NULL. A faulty row is reported and left out. 0; READ_WRONG: a row was faulty;
 * -ENOMEM. */
int foreign_events(const struct reader *r, const struct node *root,
	const struct foreign_rows *standard, const struct foreign_rows *to);

/* Set the code and config1 of *e as the row has them. A row without a code is an error if it needs
 * one, else *e keeps its code. 0 or READ_WRONG. */
int foreign_code(const struct reader *r, const struct node *row, enum platform_arch arch,
	bool needs_code, struct platform_event *e);

/* Read a row with a MetricExpr, or one based on a standard metric; `pmu`, in a pool, as for events.
 * 0; READ_WRONG: it was reported; -ENOMEM. */
int foreign_metric(const struct reader *r, const struct node *row,
	const struct platform_metric *base, const char *pmu, struct list *metrics);

/* Are both for the same kind of hart, or both for all? */
bool foreign_same_pmu(const char *a, const char *b);

/* The metric of that name in a list of them, or NULL. */
struct platform_metric *foreign_metric_find(const struct list *metrics, const char *name);

/* The member's text; NULL if it has none or an empty one. */
const char *foreign_text(const struct node *row, const char *key);
/* The first sentence or so, on one line. NULL without memory. */
const char *foreign_line(const struct reader *r, const char *text);
