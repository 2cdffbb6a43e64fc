/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Users of the namer: which of them is served next, and what each has used up
 *
 * The queues are the callers'; this file knows only how much each user has in them. The caller passes the time,
 * CLOCK_MONOTONIC. Only user.c touches the members of struct naming_users.
 */

#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/namer/message.h"
#include "daemon/naming/namer.h"

#define NAMER_USERS_MAX 255u /* known at a time; others share the unknown user */
/* worker deaths caused by one user's files; then none is tried for … */
#define NAMER_DEATHS_USER_MAX 4u
/* parser deaths caused by a process's stacks; then none are tried for a while */
#define NAMER_DEATHS_MAX 3u
/* the same for stacks of the user's processes */
#define NAMER_STACKS_USER_MAX (2 * NAMER_DEATHS_MAX)
#define NAMER_REFUSED_NS 10000000000u       /* … this long, doubled at each further death … */
#define NAMER_REFUSED_MAX_NS 3600000000000u /* … up to an hour */
#define NAMER_FORGIVEN_NS 600000000000u /* a death is forgiven after this time without another */
#define NAMER_STUCK_USER_MAX 4u         /* openers stuck in the kernel on one user's files */
/* Parser CPU time that a user may use in one burst, for a build of many large programs; on average,
 * 1 / NAMER_BUDGET_SHARE of one CPU. */
#define NAMER_BUDGET_NS 120000000000ll
#define NAMER_BUDGET_SHARE 5u
#define NAMER_REST_NS_MAX 30000000000u /* between two requests, however long the first took */
#define NAMER_CHARGE_MIN_NS 20000u     /* per request, for the daemon's own work */

/* Worker deaths charged to a user, and until when that user is refused. */
struct account {
	uint32_t deaths;     /* not forgiven yet */
	uint64_t charged_ns; /* when last */
	uint64_t since_ns;   /* forgiving counts from here */
	uint64_t until_ns;   /* refused until then */
};
void account_charge(struct account *a, uint32_t allowed, uint64_t now_ns);
/* The number of deaths that are not forgiven yet. */
uint32_t account_deaths(struct account *a, uint64_t now_ns);
static inline bool account_is_refused(const struct account *a, uint64_t now_ns)
{
	return now_ns < a->until_ns;
}

struct slot;
struct job;
TAILQ_HEAD(slot_list, slot);
TAILQ_HEAD(job_list, job);
TAILQ_HEAD(wish_list, wish);

/* Requests that a user has queued. */
enum queued {
	QUEUED_OPEN,  /* slots to open */
	QUEUED_NAME,  /* wishes to serve */
	QUEUED_WISH,  /* wishes, these included */
	QUEUED_STACK, /* copied stacks */
	N_QUEUED,
};

/* Requests are made on behalf of the user in whose process a frame was sampled. */
struct naming_user {
	uid_t uid;
	uint8_t index; /* in struct naming_users */
	/* user.c */
	uint32_t n_queued[N_QUEUED];
	uint64_t open_ns, parse_ns; /* time used of the two workers, to choose the next user */
	int64_t budget_ns;          /* parser time left; negative: waits */
	uint64_t budget_at_ns;      /* when that was */
	struct account opens;       /* opener, on files opened in their name */
	struct account files;       /* parser, on their own files */
	struct account stacks;      /* parser, on their processes' stacks */
	/* queue.c */
	struct slot_list to_open;
	struct wish_list to_name;
	/* unwind.c */
	struct job_list jobs;
	uint64_t job_bytes;
	/* strings.c */
	uint64_t string_bytes;
};

struct naming_users {
	/* the first: unknown users, and those beyond the limit */
	struct naming_user *user[NAMER_USERS_MAX];
	uint32_t n_users;
	size_t n_queued[N_QUEUED]; /* of all users */
	struct naming_user
		*served[WORKER_PARSER + 1]; /* by worker: the user of its request, or of its last */
	uint64_t open_floor_ns, parse_floor_ns; /* time used by the user who was served last */
	uint64_t parser_ns;          /* CPU time of the parser, paid by all users but root */
	const struct graves *graves; /* borrowed */
	bool unlimited;              /* users over their budget are served, too */
	double pace;                 /* share of a CPU for naming files of all users; 0: no limit */
	uint64_t rests_until_ns;     /* no file is named before */
};

int naming_users_begin(struct naming_users *s, const struct graves *graves);
void naming_users_clear(struct naming_users *s);
/* The entry of that user; the first if the user is unknown. Never NULL after naming_users_begin. */
struct naming_user *naming_user_get(struct naming_users *s, uid_t uid);
/* The same; NULL: no entry for that user. */
struct naming_user *naming_user_find(const struct naming_users *s, uid_t uid);
/* By index; NULL after the last. */
struct naming_user *naming_user_at(const struct naming_users *s, uint32_t index);
/* Call before queueing anything for the user: one who had nothing queued starts level with the
 * others. */
void naming_user_joins(struct naming_users *s, struct naming_user *u);
/* Something of that kind was queued for the user, or is queued no longer. */
void naming_user_queued(struct naming_users *s, struct naming_user *u, enum queued kind);
void naming_user_dequeued(struct naming_users *s, struct naming_user *u, enum queued kind);
/* The number of requests queued for all users. */
size_t naming_users_queued(const struct naming_users *s, enum queued kind);
/* The next user with something of that kind, except those flagged in `passed` (by index; NULL: none). NULL: nobody
 * has, or all who have must wait. */
struct naming_user *naming_users_next(
	const struct naming_users *s, enum queued kind, const bool *passed, uint64_t now_ns);
/* Does the parser serve a before b, or is a ready while b must wait? */
bool naming_user_is_before(
	const struct naming_user *a, const struct naming_user *b, uint64_t now_ns);
/* Did a use less of the opener than b? */
bool naming_user_opens_before(const struct naming_user *a, const struct naming_user *b);
/* May files be opened for this user now? */
bool naming_user_may_open(
	const struct naming_users *s, const struct naming_user *u, uint64_t now_ns);
/* The worker gets a request for this user; NULL: it has none. */
void naming_users_serve(struct naming_users *s, enum worker_role role, struct naming_user *u);
struct naming_user *naming_users_served(const struct naming_users *s, enum worker_role role);
void naming_user_pay_open(struct naming_users *s, struct naming_user *u, uint64_t wall_ns);
void naming_user_pay_parse(struct naming_users *s, struct naming_user *u, uint64_t wall_ns,
	uint64_t cpu_ns, uint64_t now_ns);
/* CPU time of the parser that all users but root paid for. */
uint64_t naming_users_parser_ns(const struct naming_users *s);
/* Name files of all users within this share of one CPU's time from now on; 0: no limit. */
void naming_users_pace(struct naming_users *s, double share);
static inline bool naming_users_are_paced(const struct naming_users *s)
{
	return s->pace > 0;
}
/* From now on, serve users over their budget, too. */
void naming_users_unlimit(struct naming_users *s);
/* The time at which a user who waits for CPU time may be served; UINT64_MAX: no user waits. */
uint64_t naming_users_deadline_ns(const struct naming_users *s, uint64_t now_ns);
/* Add the users for whom naming is paused. */
void naming_users_status(
	const struct naming_users *s, uint64_t now_ns, struct namer_status *status);
