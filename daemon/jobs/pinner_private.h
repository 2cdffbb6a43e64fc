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

/* One more, for a request that is forgotten while its child runs: its jobs take their places before
 * it is removed. */
#define PIN_REQUESTS_MAX (PIN_ASKS_MAX + PIN_WAITS_MAX + 1)

/* A request of a client, or to pin one job at its end:
 *
 *      asked, or its job ended ──▶ in the queue ──▶ its child ──▶ reported, or gone
 *      its job runs (set) ────────────┘
 */
struct pin_request {
	struct pin_ask ask;
	char *group;           /* JSON */
	char *labels;          /* JSON: the one job to pin; NULL: all jobs that `ask` selects */
	uint32_t uid;          /* that job's user */
	struct label_set *set; /* held: the job is running, and the request is not in the queue yet
			        * */
	uint64_t id;
	uint64_t since_ns;         /* when it entered the queue, CLOCK_MONOTONIC */
	uint64_t round;            /* place in the queue: lower ones come first */
	struct pin_report *report; /* NULL: not finished */
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
	/* PIN_REQUESTS_MAX; finished ones stay until they are forgotten */
	struct pin_request *request;
	size_t n_requests;
	struct offload *child;
	uint64_t child_id; /* of its request */
	uint64_t round;    /* of the last child's */
	struct taking {
		bool goes_on;  /* the child has ended, but not all of its pins are noted yet */
		uint32_t row;  /* the next of its report */
		bool is_noted; /* it is noted: the pins that it replaces are removed */
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
/* A new request; the caller has checked that there is room. labels: of the one job to pin without a
 * waiting client; or NULL. NULL: no memory. */
struct pin_request *pinner_add(struct pinner *p, const struct pin_ask *ask, const char *group,
	uint32_t uid, const char *labels);
/* Put it into the queue, in its user's next round after the current one. */
void pinner_enter_queue(struct pinner *p, struct pin_request *q);
/* Requests whose job has ended enter the queue. */
void pinner_look_at_ended(struct pinner *p);
/* Remove it; later requests move up. */
void pinner_remove(struct pinner *p, struct pin_request *q);
/* The first of the queue; NULL: it is empty. */
struct pin_request *pinner_next(const struct pinner *p);

/* Pin this job when it ends; a later request replaces an earlier one. Jobs that have ended, and are still in the
 * queue, count towards the limits too. group: JSON, copied; a reference of the set is added; from: as below. 0;
 * PINNER_WAITS; -ENOMEM. */
int pinner_await(struct pinner *p, const struct pin_ask *ask, const char *group,
	struct label_set *set, const struct pin_request *from);
/* The same for the job of a row of request q's report: if the job has already ended, it enters the
 * queue at once. */
int pinner_await_row(struct pinner *p, const struct pin_request *q, const struct pin_job *row);
/* Is there room for one more waiting job of user `by`? `from` is a request that this replaces, and
 * is not counted; or NULL. */
bool pinner_has_place(const struct pinner *p, uint32_t by, const struct pin_request *from);
/* If the job of a queued request runs again, the request waits for its end, or is removed if
 * another request waits for it. */
bool pinner_await_again(struct pinner *p, struct pin_request *q);

/* Does the call remove a job with these labels, waiting for user `by`? */
bool pinner_unpin_wants(const struct pinner_unpin *u, uint32_t by, const char *labels);
/* Log that a request without a waiting client has failed: one line a minute at most, since users
 * can make jobs fail as often as they like. */
void pinner_say_of_nobody(struct pinner *p, uint64_t now_ns, const char *text);

/* --- pinner_rule.c ---------------------------------------------------------------------------- */

/* Pin by these rules, pin-jobs of mperf.conf; no effect if they are unchanged. */
void pinner_set_rules(struct pinner *p, const char *text);
/* Mark jobs that have begun since the last scan and match a rule for pinning; jobs without a place
 * are tried again at the next scan. *ret_more: its slice ended before all were compared. 0 or
 * -ENOMEM. */
int pinner_look_at_rules(struct pinner *p, uint64_t now_ns, bool *ret_more);
/* The stage of pinner_unpin for jobs without a place in the wait list. True: there may be more. */
bool pinner_forget_due(struct pinner *p, struct pinner_unpin *u, uint64_t until_ns);

/* --- pin_make.c ------------------------------------------------------------------------------- */

/* Begin with a request. 0 or -errno. */
int pinner_start(struct pinner *p, struct pin_request *q);
/* The child has ended: free it. */
void pinner_take_end(struct pinner *p, const struct offload_end *end);
/* Note its pins, for a slice of time. */
void pinner_take_made(struct pinner *p);
/* Add a row for a running job; the report must have room. */
void pinner_add_running(struct pin_report *report, const struct label_set *set);
