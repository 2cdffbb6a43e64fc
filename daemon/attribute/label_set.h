/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Label sets: the jobs that processes belong to
 *
 * A process has the labels of the one that forked it, until it is given its own: by a request, or by
 * variables of its environment that the configuration names. Equal sets of a user are one, and are
 * counted references: a set that no task has any more is freed, and its id is never reused.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/hash_table.h"
#include "proto/syntax/label.h"

/* Sets at a time. A build server with a hundred jobs a minute, whose tasks are kept for two minutes, has some
 * hundreds; a set takes 300 bytes, at most 20 KB. */
#define LABEL_SETS_MAX 16384
#define LABEL_SETS_USER_MAX 1024 /* sets of one user */

struct task;

/* The labels of a set: valid for every holder of a reference, even after the table is freed. */
struct label_text {
	uint32_t n_refs;
	const char *labels; /* JSON (proto/syntax/label.h), in key */
	char key[];         /* uid and labels */
};

/* A set when jobs/pinner_rule.c last looked; all 0: it has not looked yet. */
struct label_look {
	uint32_t n_given;
	bool is_known, ran;
	/* a run of it is due to be compared with the rules, and pinned when there is room */
	bool due;
	bool matches; /* a rule matched it, and it only waits for room */
};

struct label_set {
	uint32_t id; /* from 1; key in the store */
	uid_t uid;   /* the user who owns it: equal labels of two users are two sets */
	uint32_t n_refs;
	/* number of references ever given: if it changed, the set got a process meanwhile */
	uint32_t n_given;
	uint32_t n_live;    /* live processes that have it: in `live`, by task.h */
	struct task *live;  /* utlist, by labels_next */
	const char *labels; /* of text */
	struct label_text *text;
	struct label_look look;
	UT_hash_handle hh;
};

/* The number of sets of a user. */
struct label_user {
	uint32_t uid, n_sets;
	UT_hash_handle hh;
};

struct label_sets {
	struct label_set *set;    /* uthash by key, in the order of ids */
	struct label_user *users; /* uthash by uid */
	uint32_t last_id;
	/* sets that were freed while they were due, and the user of the last; the next look takes them */
	uint32_t n_due_freed, due_freed_uid;
};

/* Get the set of these labels of that user, with one more reference. 0, LABEL_SETS_FULL, -ENOMEM. */
enum { LABEL_SETS_FULL = 1 };
int label_set_get(struct label_sets *t, uid_t uid, const char *labels, struct label_set **ret_set);
static inline struct label_set *label_set_ref(struct label_set *set)
{
	if (set) {
		set->n_refs++;
		set->n_given++;
	}
	return set;
}
/* Add a reference for an owner that gives the set to no process. */
static inline struct label_set *label_set_hold(struct label_set *set)
{
	set->n_refs++;
	return set;
}
/* Give a reference back; NULL is fine. Returns NULL. */
struct label_set *label_set_unref(struct label_sets *t, struct label_set *set);
/* Find that user's set of these labels, borrowed; NULL: there is none, or no memory to look for it. */
struct label_set *label_set_find(const struct label_sets *t, uid_t uid, const char *labels);

/* Add a reference; give one back, where NULL is fine. */
struct label_text *label_text_ref(struct label_text *text);
void label_text_unref(struct label_text *text);
