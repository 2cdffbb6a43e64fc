/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A draft: the statements of files about one platform, before it is built
 *
 * Files of later folders override earlier ones, so the statements of each file are kept as a draft;
 * drafts are merged, and the result is built into a struct platform, which resolves names and
 * checks the whole. A file whose result does not build is left out, and the draft below it stays.
 */

#include "platform-db/pattern.h"
#include "platform-db/reader.h"

#define GENERICS_MAX 4 /* generic events that one raw event replaces */

struct draft_event {
	struct platform_event event;
	struct names generics;
	const char *pmu; /* a third party's, only for harts with that core PMU; NULL: for all */
};

enum quirk_kind {
	QUIRK_LEADER,
	QUIRK_OVERFLOW,
	QUIRK_MODE_FILTER,
	QUIRK_COUNTERS,
	QUIRK_VECTOR,
	QUIRK_CACHE,
	QUIRK_PEAK,
	QUIRK_ISSUE,
	QUIRK_SELECTOR,
	QUIRK_FIELD,
	QUIRK_MISSING,
	QUIRK_NOTE,
	N_QUIRKS,
};

/* A row of "quirks"; its kind determines the members in use. */
struct quirk {
	int kind;
	struct platform_origin origin;
	const char *says;
	const char *leader[3]; /* by mode: user, kernel, machine */
	int overflow, filter;
	struct code_range events;
	bool has_events;
	uint64_t mask, n_counter_offset;
	bool has_offset;
	uint32_t bits, level, kib, line_bytes, shared_by, width, slots;
	int cache_kind;
	const char *precision, *unit;
	double ops_per_cycle;
	const char *name, *bits_text; /* of a selector, or a field of it */
	int holds;
	struct names joins, values;
	struct names metrics; /* metrics that the core lacks */
};

struct draft {
	const char *name;
	const char *title;
	enum platform_arch arch;
	struct platform_origin origin;
	unsigned layer;
	struct list cpus;    /* struct pattern */
	struct list events;  /* struct draft_event */
	struct list metrics; /* struct platform_metric */
	struct list quirks;  /* struct quirk */
};

/* Read a file of our own grammar, as JSON. `folder` contains the folders of events that it names;
 * NULL: it may name none. 0, READ_WRONG, -ENOMEM. */
int draft_read(const struct reader *r, const struct node *root, const char *folder,
	struct draft **ret_draft);

struct draft *draft_new(void);
struct draft *draft_free(struct draft *d);
DEFINE_CLEANUP(struct draft *, draft_free)

/* Select the part of a third party's draft that applies to harts with that core PMU, without the
 * draft's patterns. pmu "": all harts have the same PMU; then the part of cpu_core is selected. 0
 * or -ENOMEM. */
int draft_of_pmu(const struct draft *d, const char *pmu, struct draft **ret_draft);

/* Merge `over` onto `base`: events of the same name and quirks of the same kind are replaced,
 * everything else is added. 0 or -ENOMEM. */
int draft_merge(const struct draft *base, const struct draft *over, struct draft **ret_draft);

/* Build the platform that a draft describes. r names the file in errors. 0, READ_WRONG, -ENOMEM. */
int draft_build(
	const struct reader *r, const struct draft *d, const struct platform **ret_platform);

/* Events and metrics of one file of our own, {"topic": …, "events": […], "metrics": […]}. */
int events_read(const struct reader *r, struct list *events, struct list *metrics);
/* Rows of "events" with their own topic. */
int events_take(const struct reader *r, const struct node *array, const char *topic,
	const struct platform_origin *origin, struct list *events);

/* Rows of "metrics" of our own files. */
int metrics_take(const struct reader *r, const struct node *array,
	const struct platform_origin *origin, struct list *metrics);
/* The values of MetricExpr, MetricGroup, ScaleUnit and next into *m, whose name is set; NULL ones are left
 * out. `row` gives lines for errors. 0, READ_WRONG, -ENOMEM. */
struct metric_texts {
	const char *expression, *groups, *scale, *next;
};
int metric_parse(const struct reader *r, const struct node *row, const struct metric_texts *texts,
	struct platform_metric *m);
/* Check that no metric needs itself, directly or through others, that each name is an event or a
 * metric of the platform, and each of `next` a metric or a group; only the first applies to
 * third-party metrics. A faulty metric is reported; a third-party one is then removed. 0;
 * READ_WRONG: one of ours is at fault; -ENOMEM. */
int metrics_check(const struct reader *r, struct platform *p);

int quirks_take(const struct reader *r, const struct node *array, struct list *quirks);

/* A platform that is being built, and its tables as they grow. */
struct build {
	const struct reader *reader;
	struct platform *platform;
	struct platform_event *event; /* the platform's */
	struct list ranges, unfiltered, caches, peaks, lacks, notes, generics, fields;
};
int quirk_apply(struct build *b, const struct quirk *q);
/* Read a field of raw codes; and check that all fields are consistent. 0, READ_WRONG, -ENOMEM. */
int field_apply(struct build *b, const struct quirk *q);
int fields_check(const struct build *b);

/* Visit the *.json files of a folder in the order of their names, each with its path as r->file.
 * Stops at the first result other than 0 and returns it; -errno if the folder cannot be read. */
int folder_each(const struct reader *r, const char *folder,
	int (*each)(const struct reader *r, void *userdata), void *userdata);

/* Generic events of the kernel by their perf name. */
bool generic_find(const char *name, uint32_t *ret_type, uint64_t *ret_config);
/* Is it a software event of the kernel? */
bool software_find(const char *name);
