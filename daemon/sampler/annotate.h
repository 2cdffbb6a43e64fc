/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Annotations: limits on the meaning of a figure, by hart and event
 *
 * The errata of the platform database and findings from opening the events, as sentences for the
 * reader of an answer. Only those that concern the session's events on its harts.
 */

#include "daemon/pmu/cores.h"
#include "daemon/sampler/ladder.h"

#define ANNOTATIONS_MAX 24 /* per session; kinds of core times a few errata each */
#define ANNOTATION_BYTES_MAX 256

/* The note of samples whose stacks are copied. */
#define NOTE_TABLES "callers by unwind tables"

struct annotation {
	struct hart_set harts;
	/* event of the session: show the note if it is in the answer; -1: always show it */
	int event;
	char says[ANNOTATION_BYTES_MAX];
};

struct annotate_question {
	const struct cores *cores; /* may be NULL */
	struct hart_set harts;     /* harts that measured */
	const struct event_list *events;
	const struct plan *plan; /* by hart; NULL: nothing sampled, events were counted */
	bool user_only;      /* the kernel was excluded from all events, even if they request it */
	uint64_t unexcluded; /* as in struct sampler and struct counter */
	const struct hart_set *by_raw; /* the same; NULL: none */
};

/* Fill ret with at most ANNOTATIONS_MAX and return their number. Further ones are dropped. */
size_t annotate(const struct annotate_question *q, struct annotation ret[static ANNOTATIONS_MAX]);

struct sampler;
/* The same for a sampler's events, by its plans; hz: the rate of the samples that are annotated. */
size_t annotate_sampler(
	const struct sampler *s, uint32_t hz, struct annotation ret[static ANNOTATIONS_MAX]);
