/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Annotations: what a figure means less than it seems to, by hart and event
 *
 * The errata of the platform database and what was learnt in opening the events, as sentences for
 * whoever reads an answer. Only what concerns the session's events on the harts that it has.
 */

#include "daemon/pmu/cores.h"
#include "daemon/pmu/ladder.h"

#define ANNOTATIONS_MAX 24 /* of one session; kinds of core times a few errata each */
#define ANNOTATION_BYTES_MAX 256

struct annotation {
	struct hart_set harts;
	int event; /* of the session: to be said where it is in the answer; -1: whatever is asked */
	char says[ANNOTATION_BYTES_MAX];
};

struct annotate_question {
	const struct cores *cores; /* may be NULL */
	struct hart_set harts;     /* that measured */
	const struct event_list *events;
	const struct plan *plan; /* by hart; NULL: nothing sampled, events were counted */
	bool user_only;          /* the kernel was left out of all events, whatever they say */
	uint64_t unexcluded;     /* as in struct sampler and struct counter */
	const struct hart_set *by_raw; /* the same; NULL: none */
};

/* Fill ret with at most ANNOTATIONS_MAX; returns how many. What would be more is left out. */
size_t annotate(const struct annotate_question *q, struct annotation ret[static ANNOTATIONS_MAX]);

struct sampler;
/* The same for what a sampler has opened, by its plans. */
size_t annotate_sampler(const struct sampler *s, struct annotation ret[static ANNOTATIONS_MAX]);
