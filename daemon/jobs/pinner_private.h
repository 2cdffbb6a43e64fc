/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A pinner's internals
 *
 *      pinner.c       its life, what it is asked, and what is done in which order
 *      pinner_list.c  the list of requests, and their queue
 *      pinner_rule.c  rules: which of the jobs that run are to be pinned by themselves
 *      pin_make.c     the child of a request: from its start to what it made
 */

#include "daemon/child/offload.h"
#include "daemon/jobs/pinner.h"
#include "daemon/store/pin_rule.h"

/* One more: a request that is forgotten while its child runs, and whose jobs take its place before it goes. */
#define PIN_REQUESTS_MAX (PIN_ASKS_MAX + PIN_WAITS_MAX + 1)

/* A request of a client, or the wish to pin one job when it has ended:
 *
 *      asked, or its job ended ──▶ in the queue ──▶ its child ──▶ reported, or gone
 *      its job runs (set) ────────────┘
 */
struct pin_request {
	struct pin_ask ask;
	char *group;           /* JSON */
	char *labels;          /* JSON: the one job to pin; NULL: all jobs that `ask` selects */
	uint32_t uid;          /* whose job that is */
	struct label_set *set; /* held: the job runs, and the request is not in the queue yet */
	uint64_t id;
	uint64_t since_ns;         /* when it entered the queue, CLOCK_MONOTONIC */
	uint64_t round;            /* of the queue: lower ones come first */
	struct pin_report *report; /* NULL: not done yet */
	bool nobody_waits;
};

/* Memory that a child shares with us. */
struct shared {
	struct pin_report report;
	char making[STORE_NAME_BYTES]; /* the name of the pin that is being written */
};

struct pinner {
	struct pinner_options o;
	struct pin_limits limits;
	/* PIN_REQUESTS_MAX; those that are done stay until they are forgotten */
	struct pin_request *request;
	size_t n_requests;
	struct offload *child;
	uint64_t child_id; /* of its request */
	uint64_t round;    /* of the last child's */
	struct taking {
		bool goes_on;  /* the child has ended, and not all that it made is noted yet */
		uint32_t row;  /* the next of its report */
		bool is_noted; /* it is: what it takes the place of goes */
	} taking;
	struct shared *shared;
	uint64_t last_id, next_look_ns;
	char *rules_text;
	struct pin_rules rules;
	uint64_t next_say_ns;
	unsigned n_unsaid;
};

/* --- pinner_list.c ---------------------------------------------------------------------------- */

/* NULL: there is none of that id. */
struct pin_request *pinner_find(const struct pinner *p, uint64_t id);
/* A new request; the caller has seen that there is room. labels: of the one job to pin, which nobody waits for; or
 * NULL. NULL: no memory. */
struct pin_request *pinner_add(struct pinner *p, const struct pin_ask *ask, const char *group,
	uint32_t uid, const char *labels);
/* Put it into the queue, in the next round of its user from the one that is served now. */
void pinner_enter_queue(struct pinner *p, struct pin_request *q);
/* Requests whose job has ended enter the queue. */
void pinner_look_at_ended(struct pinner *p);
/* Later requests move up. */
void pinner_remove(struct pinner *p, struct pin_request *q);
/* The first of the queue; NULL: it is empty. */
struct pin_request *pinner_next(const struct pinner *p);

/* Pin this job when it ends; a later request replaces an earlier one. Jobs that have ended, and are still in the
 * queue, count towards the limits too. group: JSON, copied; a reference of the set is added; from: as below. 0;
 * PINNER_WAITS; -ENOMEM. */
int pinner_await(struct pinner *p, const struct pin_ask *ask, const char *group,
	struct label_set *set, const struct pin_request *from);
/* The same for the job of a row of request q's report: if nothing of it is left, it enters the queue at once. */
int pinner_await_row(struct pinner *p, const struct pin_request *q, const struct pin_job *row);
/* Room for one more waiting job of user `by`? `from` is a request that ends with that, and is not counted; or NULL. */
bool pinner_has_place(const struct pinner *p, uint32_t by, const struct pin_request *from);
/* The job of a queued request may run again: then the request waits for its end, or goes if another one does. */
bool pinner_await_again(struct pinner *p, struct pin_request *q);

/* Does the call want a job of these labels, pinned for user `by`, to be forgotten? */
bool pinner_unpin_wants(const struct pinner_unpin *u, uint32_t by, const char *labels);
/* Say that a request which nobody waits for has failed. Users' jobs can fail as often as they like: a sentence a
 * minute. */
void pinner_say_of_nobody(struct pinner *p, uint64_t now_ns, const char *text);

/* --- pinner_rule.c ---------------------------------------------------------------------------- */

/* Pin by these rules, pin-jobs of mperf.conf; nothing happens if they are the same. */
void pinner_set_rules(struct pinner *p, const char *text);
/* Jobs that have begun since the last look, and match a rule, will be pinned; those that find no place are tried
 * again at the next. *ret_more: its slice was over before all were compared. 0 or -ENOMEM. */
int pinner_look_at_rules(struct pinner *p, uint64_t now_ns, bool *ret_more);
/* The stage of pinner_unpin for jobs that have found no place yet. True: there may be more. */
bool pinner_forget_due(struct pinner *p, struct pinner_unpin *u, uint64_t until_ns);

/* --- pin_make.c ------------------------------------------------------------------------------- */

/* Begin with a request. 0 or -errno. */
int pinner_start(struct pinner *p, struct pin_request *q);
/* The child has ended: free it. */
void pinner_take_end(struct pinner *p, const struct offload_end *end);
/* Note what it made, for a slice of time. */
void pinner_take_made(struct pinner *p);
/* A row for a job that runs; the report must have room. */
void pinner_add_running(struct pin_report *report, const struct label_set *set);
