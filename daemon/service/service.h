/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The service: the continuous work of mperfd, without requests
 *
 * One walk over the whole system at the always-on rate, recorded into the store: windows are
 * flushed every few seconds, a segment is sealed each hour and rolled up by a process of its own,
 * retention enforces the budget. Clients' recordings and tops are more taps on the same walk; while
 * they last, its rate is the highest that any of them requests. While a client measures roofs, it
 * is the minimum (pause.h).
 */

#include "daemon/budget/loop_latency.h"
#include "daemon/budget/rate_requests.h"
#include "daemon/budget/usage.h"
#include "daemon/conf/conf.h"
#include "daemon/service/pause.h"
#include "daemon/service/service_groups.h"
#include "daemon/session/walk.h"
#include "daemon/store/store.h"

/* Copied of each stack with callers = tables; more while stacks are deeper (session/copies.h), less where rings are
 * small. */
#define SERVICE_STACK_BYTES 16384u

struct pinner;
struct schedules;
struct top_feed;

struct service_options {
	const struct conf *conf; /* borrowed; service_reload says when it has changed */
	const char *schedules;   /* folder of their drop-ins (schedules.h); borrowed; NULL: none */
	const char *namer;
	struct graves *graves; /* borrowed, as in namer_options */
	enum sampler_switches switches;
	struct cores *cores;               /* borrowed; NULL: this machine's cores are not known */
	bool listen;                       /* to instrumented programs: */
	int feed_fd;                       /* on this socket, taken over; -1: at conf->feed_path */
	const struct stack_starts *starts; /* borrowed; NULL: where stacks begin is not known */
	struct proc_reader *reader;        /* of /proc; borrowed; NULL: it is read at once */
	/* Write to the log; at most one line per change of state. */
	void (*say)(void *userdata, int syslog_level, const char *text);
	void *userdata;
};

struct service {
	struct service_options o;
	struct walk *walk; /* NULL if nothing can be sampled: `trouble` has the reason */
	char trouble[EVENT_ERROR_BYTES];
	struct store *store;                /* NULL: none is open */
	char short_trouble[256];            /* descriptors ran out in the last minute; "": no */
	char store_trouble[512];            /* why nothing is stored now; "": storing works */
	uint64_t started_ns;                /* CLOCK_MONOTONIC */
	struct usage usage;                 /* our own cost, now and a minute ago */
	struct loop_latency loop_latency;   /* of the loop that runs it; the loop counts them */
	struct overhead *overhead;          /* what all of it costs the machine */
	struct rate_requests rate_requests; /* rates that clients and schedules ask for */
	struct pause pause;     /* while a client measures roofs: requests begin and end it */
	char feed_trouble[512]; /* why programs cannot connect; "": they can */
	struct label_variables variables;
	struct service_groups groups;
	struct schedules *schedules; /* NULL: without a folder of them */
	struct top_feed *top_feeds;  /* of all tops of clients: equal requests share one */
	struct service_inner *inner;
};

int service_new(const struct service_options *o, struct service **ret_service);
size_t service_fds(const struct service *s, struct pollfd *fds, size_t n);
uint64_t service_deadline_ns(const struct service *s);
int service_dispatch(struct service *s, uint64_t now_ns);
/* Read the schedules, if there is a folder of them. 0 or -errno. */
int service_make_schedules(struct service *s);
/* Call when the process of that pid was given the labels of a job: begin the recordings scheduled
 * for the job before the process continues. 0 or -errno. */
int service_job_began(struct service *s, pid_t pid, uint64_t now_ns);
/* Flush, wait a second for names, seal. */
void service_stop(struct service *s);
int service_reload(struct service *s);
struct service *service_free(struct service *s);

/* Request at least this rate from now on; 0: withdraw the request. `who` is any address that
 * belongs to the caller. uid: only for the tasks of that user (session/raises.h); -1: for the whole
 * system. The current rate is the highest requested, up to conf.rate_max. overhead_ppm: request
 * less if mperf would otherwise cost a hart more millionths of its time (overhead.h); 0: no limit.
 * 0 or -errno. */
int service_want_rate(
	struct service *s, const void *who, uid_t uid, uint32_t hz, uint32_t overhead_ppm);
/* Set the walk to the current requests. 0 or -errno. */
int service_follow_rates(struct service *s);
/* The highest rate requested now that the budget of always-on sampling allows. */
uint32_t service_rate(const struct service *s);
/* Decision of that request's limit about its rate; NULL: there is none. Borrowed until the next
 * call. */
const struct overhead_held *service_held(const struct service *s, const void *who);

/* Call in each round with a walk, before its rate is set: counts a pause's seconds as lost, and
 * logs its begin and end. True if a pause began or ended. (service_pause.c) */
bool service_look_at_pause(struct service *s, uint64_t now_ns);

/* Descriptors ran out: error is EMFILE or ENFILE. This is counted and logged; the caller
 * retries. */
void service_ran_short(struct service *s, int error, uint64_t now_ns);

/* The files that answer a query, for a child that will read them: absolute paths, including the
 * live segment. See store_select. */
int service_select(struct service *s, int64_t since_ns, int64_t until_ns, enum tier coarsest,
	struct store_part **ret_part, size_t *ret_n_parts);

/* Are samples still being written to the store? Readers that begin now miss them. */
bool service_is_writing(const struct service *s);

/* The time (CLOCK_MONOTONIC) from which on an answer of the store has all samples taken before. */
uint64_t service_fresh_ns(const struct service *s);

/* Pinner of jobs; NULL: there is no store. Borrowed until the next dispatch. */
struct pinner *service_pinner(const struct service *s);

/* Shares of the store that users may write; NULL: there is no store. Borrowed. */
const struct shares *service_shares(const struct service *s);

/* Let the budget decide, and follow it: call in each round with a walk. 0 or -errno. (service_rate.c) */
struct keeper;
int service_keep_budget(struct service *s, struct keeper *k, uint64_t now_ns);

/* For status. Samples: taken = stored + in_hand + losses that count samples. Samples taken only for
 * a client's higher rate are not included. */
struct service_account {
	uint64_t taken, stored, in_hand;
	uint64_t (*lost)[N_LOSSES];        /* per hart, since the start; borrowed */
	uint64_t (*lost_before)[N_LOSSES]; /* as of a minute ago; borrowed */
	int n_harts;
	uint64_t taken_before, stored_before;
	uint64_t minute_ns;       /* how long ago `before` was */
	uint64_t rate_lowered_ns; /* CLOCK_REALTIME of the last time; 0: never */
	uint32_t rate, rate_wanted;
};
void service_account(const struct service *s, struct service_account *ret_account);
