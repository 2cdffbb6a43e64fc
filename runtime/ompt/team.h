/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Team: one instance of a parallel region, shared by its threads */

#include <stdint.h>

struct place;

/* At the same time, of all threads: nested regions, and those that a waiting thread has not left. */
#define TEAMS_MAX 4096u

struct team {
	uint64_t end_ns;     /* atomic; 0: it runs */
	uint32_t refs;       /* atomic */
	uint32_t next;       /* atomic; in the list of free ones: index + 1 */
	struct place *place; /* NULL: there was no room for it */
};

/* For a region that begins, with one reference; NULL: there are TEAMS_MAX. */
struct team *team_begin(struct place *place);
void team_ref(struct team *t);
void team_unref(struct team *t);
/* The region has ended; drops the reference of its beginning. */
void team_end(struct team *t, uint64_t now_ns);

/* Free all, in a fork's child, which has one thread. */
void teams_clear(void);
