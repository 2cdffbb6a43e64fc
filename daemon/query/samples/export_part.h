/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A part of an export: entries gathered until they fill a message
 *
 * Texts are ids of the query's table here; they become bytes when the part is sent.
 */

#include "daemon/query/samples/export.h"
#include "daemon/store/key.h"

struct export_list {
	void *item;
	uint32_t n, size;
};

enum {
	SAMPLE_WINDOW,
	SAMPLE_TASK,
	SAMPLE_STACK,
	SAMPLE_HART,
	SAMPLE_EVENT,
	SAMPLE_AT,
	N_SAMPLE_IDS
};
enum { SAMPLE_COUNT, SAMPLE_NS, SAMPLE_VALUE, SAMPLE_CYCLES, SAMPLE_INSTRUCTIONS, N_SAMPLE_VALUES };

struct export_part {
	const struct export_answer *answer;
	const struct text_table *texts;
	Mperf__Unit unit;
	struct export_list text;                   /* uint32_t */
	struct export_list module, task, window;   /* messages */
	struct export_list frame;                  /* messages; their places: */
	struct export_list function, source, line; /* uint32_t, of all frames in turn */
	struct export_list caller, stack_frame;    /* uint32_t */
	uint32_t n_samples;
	uint32_t id[N_SAMPLE_IDS][EXPORT_SAMPLES_PART];
	uint64_t value[N_SAMPLE_VALUES][EXPORT_SAMPLES_PART];
	size_t bytes;    /* of dictionary entries, at most */
	uint64_t n_sent; /* samples */
};

/* Add entries. Each sends the part first if it is full. 0, the callback's value, -ENOMEM. */
int export_part_text(struct export_part *p, uint32_t text);
int export_part_module(struct export_part *p, const Mperf__ProfileModule *m);
int export_part_task(struct export_part *p, const Mperf__ProfileTask *t);
int export_part_window(struct export_part *p, const Mperf__ProfileWindow *w);
int export_part_stack(struct export_part *p, uint32_t caller, uint32_t frame);
/* Add a frame; its arrays of places are copied. */
int export_part_frame(struct export_part *p, const Mperf__ProfileFrame *f);
int export_part_sample(struct export_part *p, const uint32_t id[N_SAMPLE_IDS],
	const uint64_t value[N_SAMPLE_VALUES]);

/* Send the entries gathered so far. */
int export_part_send(struct export_part *p);
void export_part_clear(struct export_part *p);
