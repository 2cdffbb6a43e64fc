/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A pinner's internals
 *
 *      pinner.c        its life, asking, and what is done in which order
 *      pinner_child.c  the child of a turn: from its start to what it made
 *      pinner_rule.c   rules: which of the jobs that run are to be pinned by themselves
 *      pinner_wait.c   jobs that run, and get a turn when they have ended
 *      pinner_turn.c   the lists of both
 */

#include "daemon/child/offload.h"
#include "daemon/jobs/pinner.h"
#include "daemon/store/pin_rule.h"

/* A request, or a job that has ended (exact). */
struct turn {
	struct pin_ask ask;
	char *group; /* JSON */
	char *exact; /* JSON of the one job; NULL: what `ask` says */
	uint32_t exact_uid;
	uint64_t id, since_ns;
	uint64_t round;            /* the lower ones come first */
	struct pin_report *report; /* NULL: not done yet */
	bool nobody_waits;
};

/* A job that is pinned when it ends. */
struct wait {
	uint64_t id;
	struct pin_ask ask;
	char *group;           /* JSON */
	struct label_set *set; /* held */
};

/* What the last look knew of a set of labels, for the rules. */
struct met_set {
	uint32_t id;
	uid_t uid;
	uint32_t n_given; /* of label_set */
	bool runs;
	bool due; /* a run of it is to be compared with the rules, and pinned when there is a place */
	bool matches; /* it was, and only the place is missing */
};

/* What a child and we have in common. */
struct shared {
	struct pin_report report;
	char making[STORE_NAME_BYTES];
};

struct pinner {
	struct pinner_options o;
	struct pin_limits limits;
	struct turn *
		turn; /* in the order of arrival; those that are done stay until they are forgotten */
	size_t n_turns;
	struct wait *wait;
	size_t n_waits;
	struct offload *child;
	uint64_t child_id; /* of its turn */
	uint64_t round;    /* of the last child's */
	struct taking {
		bool goes_on;  /* the child has ended, and not all that it made is noted yet */
		uint32_t row;  /* the next of its report */
		bool is_noted; /* it is: what it takes the place of goes */
	} taking;
	struct shared *shared;
	uint64_t last_id, last_wait, next_look_ns;
	char *rules_text;
	struct pin_rules rules;
	struct met_set *met; /* by id */
	size_t n_met;
	uint64_t next_say_ns;
	unsigned n_unsaid;
};

/* --- pinner_turn.c ---------------------------------------------------------------------------- */

void pinner_clear_turn(struct turn *t);
void pinner_remove_turn(struct pinner *p, size_t at);
void pinner_remove_wait(struct pinner *p, size_t at);
/* NULL: there is none of that id. */
struct turn *pinner_turn_of(const struct pinner *p, uint64_t id);
/* Add one, whose round is set here: users take turns, so that nobody's many jobs keep another's waiting. There must
 * be room. */
void pinner_add_turn(struct pinner *p, const struct turn *t);
/* The next that is not done; NULL: none. */
struct turn *pinner_next_turn(const struct pinner *p);
/* Is that to be forgotten? */
bool pinner_unpin_wants(const struct pinner_unpin *u, uint32_t by, const char *labels);
/* Say what nobody waits for has failed. Users' jobs can fail as often as they like: a sentence a minute. */
void pinner_say_of_nobody(struct pinner *p, uint64_t now_ns, const char *text);

/* --- pinner_wait.c ---------------------------------------------------------------------------- */

/* Pin this job, when it ends, as the turn says; takes no reference of the caller's. Jobs that have ended, and whose turn has not come, count towards
 * the limits too. 0; PINNER_WAITS; -ENOMEM. */
int pinner_add_wait(struct pinner *p, const struct turn *t, struct label_set *set);
/* A row of a report that has room for it. */
void pinner_add_running(struct pin_report *report, const struct label_set *set);
/* In the child, for it looks at all labels of a user: jobs of the turn that run are pinned later; the shared report
 * has them. Of more than PIN_JOBS_MAX the latest are taken, if the request keeps no more. 0; PINNER_WAITS;
 * PINNER_MANY: it does, and none is taken; -ENOMEM. */
enum { PINNER_MANY = PINNER_WAITS + 1 };
int pinner_take_running(struct pinner *p, const struct turn *t);
/* In the daemon: the job of such a row waits. As pinner_add_wait. */
int pinner_await_row(struct pinner *p, const struct turn *t, const struct pin_job *row);
/* Jobs that have ended get a turn. */
void pinner_look_at_waits(struct pinner *p);
/* May one more job of the turn wait? The turn may be one of the list, and then gives up its own place. */
bool pinner_has_place(const struct pinner *p, const struct turn *t);

/* --- pinner_rule.c ---------------------------------------------------------------------------- */

/* Jobs that have begun since the last look, and match a rule, will be pinned; those that find no place are tried
 * again at the next. *ret_more: its slice was over before all were compared. 0 or -ENOMEM. */
int pinner_look_at_rules(struct pinner *p, uint64_t now_ns, bool *ret_more);
/* As pinner_unpin, of those that have found no place yet. True: there may be more. */
bool pinner_forget_due(struct pinner *p, struct pinner_unpin *u, uint64_t until_ns);

/* --- pinner_child.c --------------------------------------------------------------------------- */

/* Begin with a turn. 0 or -errno. */
int pinner_start(struct pinner *p, struct turn *t);
/* The child has ended: free it. */
void pinner_take_end(struct pinner *p, const struct offload_end *end);
/* Note what it made, for a slice of time. */
void pinner_take_made(struct pinner *p);
