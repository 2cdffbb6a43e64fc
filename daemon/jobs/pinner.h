/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The pinner: makes pins (store/pin.h), one request after the other, each in a child process; users
 * are served in rotation
 *
 *      request ── its finished jobs ──▶ names and windows are written ──▶ child: a pin each ──▶ noted
 *         └────── its running ones ──▶ wait until no process has the labels ──▶ the same
 *
 * Only one child runs at a time, so that two requests do not use the same space. A child that fails
 * leaves no files. Requests that wait for the end of a job are lost when the daemon ends; so are
 * the labels of the job's processes.
 */

#include <poll.h>

#include "daemon/attribute/task.h"
#include "daemon/conf/conf.h"
#include "daemon/store/pin.h"

/* Limit of jobs that one request pins: 20 runs of a branch with three jobs each. */
#define PIN_JOBS_MAX 64
/* Limits of waiting requests, in total and of one user. */
#define PIN_ASKS_MAX 64
#define PIN_ASKS_USER_MAX 8
/* Limits of jobs to be pinned at their end, including ended ones in the queue: in total and of one
 * user. */
#define PIN_WAITS_MAX 1024
#define PIN_WAITS_USER_MAX 128
#define PIN_WAITS_SAYS "at most %d per user and %d in total can wait" /* these two */

struct pin_ask {
	uint32_t by;                    /* the requesting user, who is charged */
	bool all_users;                 /* jobs of everyone; else those of `by` */
	struct label label[LABELS_MAX]; /* labels that a job must have */
	size_t n_labels;
	struct label_set *only; /* the one running job to pin, borrowed; or NULL */
	uint32_t last;          /* at most this many, the latest; 0: PIN_JOBS_MAX */
	uint32_t keep;          /* as in store_pin; 0: until unpinned */
};

enum pin_state {
	PIN_MADE,
	PIN_KNOWN, /* was pinned before */
	PIN_RUNS,  /* will be pinned when it ends */
};
const char *pin_state_says(enum pin_state state);

enum pin_outcome {
	PIN_WELL,
	PIN_NONE,   /* no job has these labels */
	PIN_MANY,   /* more than PIN_JOBS_MAX jobs match, and neither `last` nor `keep` is smaller
		     * */
	PIN_FULL,   /* no room, see text; earlier jobs were pinned */
	PIN_FAILED, /* see text */
};

struct pin_report {
	enum pin_outcome outcome;
	char text[512], remedy[256]; /* for PIN_FULL and PIN_FAILED: a sentence and the remedy */
	uint32_t n_jobs;
	struct pin_job {
		enum pin_state state;
		uint32_t uid;
		uint64_t bytes;              /* of PIN_MADE and PIN_KNOWN */
		char name[STORE_NAME_BYTES]; /* the same */
		char labels[LABELS_BYTES_MAX];
	} job[PIN_JOBS_MAX];
};

struct pinner;

struct pinner_options {
	struct store *store;      /* borrowed */
	struct task_table *tasks; /* borrowed: who runs */
	/* Called when a request without a waiting client has failed. */
	void (*say)(void *userdata, int syslog_level, const char *text);
	void *userdata;
};

int pinner_new(const struct pinner_options *o, struct pinner **ret_pinner);

/* Ask; *ret_id is for the calls below. 0; PINNER_BUSY: too many requests of this user, or of all, wait;
 * PINNER_WAITS: too many jobs wait for their end; -ENOMEM. */
enum { PINNER_BUSY = 1, PINNER_WAITS };
int pinner_ask(struct pinner *p, const struct pin_ask *ask, uint64_t *ret_id);
bool pinner_has(const struct pinner *p, uint64_t id);
/* The report; NULL: not finished, or no such request. Borrowed until pinner_forget. */
const struct pin_report *pinner_report(const struct pinner *p, uint64_t id);
/* The client no longer waits for this request. If it has begun, it is finished; otherwise it is
 * withdrawn. */
void pinner_forget(struct pinner *p, uint64_t id);

/* Remove waiting jobs of this user, or of all users, with these labels, for a slice of time. True
 * once all are removed. */
struct pinner_unpin {
	uint32_t by;
	bool all;
	const struct label *label;
	size_t n_labels;
	/* set by it; 0 at first */
	enum unpin_stage { UNPIN_REQUESTS, UNPIN_DUE, UNPIN_DONE } stage;
	uint64_t at; /* id of the last request checked in that stage; 0: none */
	size_t n_removed;
};
bool pinner_unpin(struct pinner *p, struct pinner_unpin *u, uint64_t until_ns);
/* Will this running job be pinned at its end? */
bool pinner_awaits(const struct pinner *p, const struct label_set *set);

/* Apply the configuration: the space for pins, as of the last check of the store, and the rules of
 * pin-jobs, for running jobs and for those that begin. A pin by a rule belongs to the job's user,
 * who is charged as if that user had requested it. */
void pinner_allow(struct pinner *p, const struct conf *c);

/* The time (CLOCK_MONOTONIC) up to which samples must be in the files before the next request
 * begins; 0: no request waits. */
uint64_t pinner_wants_flush(const struct pinner *p);

size_t pinner_fds(const struct pinner *p, struct pollfd *fds, size_t n);
/* Should the next iteration of the loop come at once? */
bool pinner_has_more(const struct pinner *p);
/* Continue. written: all samples up to pinner_wants_flush are in the files, so the next request may
 * begin. 0 or -errno. */
int pinner_dispatch(struct pinner *p, uint64_t now_ns, bool written);

/* Kills the child. */
struct pinner *pinner_free(struct pinner *p);
