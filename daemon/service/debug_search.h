/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Debug files of what the service samples: those that are installed while it runs (debug_watch.h), and those of servers
 *
 * A process of its own, which has the network, fetches them (debuginfod/server.h). It is asked for one file after
 * another, and nobody waits for it: users take turns, and of a user's files that with most samples comes first. What a
 * server does not have is asked for again after a day; what could not be fetched, after ten minutes, then twenty.
 */

#include "daemon/conf/conf.h"
#include "daemon/naming/namer.h"
#include "daemon/service/debug_watch.h"

/* A file that was sampled less often, at places not seen before, is not worth asking for. */
#define DEBUG_SEARCH_SAMPLES_MIN 4u
/* Files that are remembered: so many places for build ids that share a set, since all files of a user may be looked up
 * in one turn of the loop. */
#define DEBUG_SEARCH_SETS 64u
#define DEBUG_SEARCH_PLACES 8u

/* A file that was asked for. */
struct debug_asked {
	uint8_t build_id[20];
	uint8_t n_build_id; /* 0: this place is free */
	uint8_t n_failed;   /* times in a row that it could not be fetched */
	uint64_t again_ns;  /* not before this time */
};

struct debug_search {
	struct debug_watch watch;
	int fd;     /* of its socket; -1: not connected */
	bool away;  /* it could not be reached, */
	bool over;  /* or can ask no server; both are said once */
	bool waits; /* for the answer about the file: */
	struct debug_asked *about;
	uint64_t until_ns; /* no longer than this */
	uid_t uid;         /* whose file was asked for last; -1: nobody's */
	uint64_t look_ns;  /* time of the next look at what has no names */
	struct debug_asked asked[DEBUG_SEARCH_SETS][DEBUG_SEARCH_PLACES];
};

void debug_search_begin(struct debug_search *f);
/* Name by what was installed; take an answer about a server's, or ask for the next file. Call it about once a second,
 * with the time. Without servers in the configuration none are asked. ret_news is "", or why none can be asked. 0 or
 * -ENOMEM. */
int debug_search_tend(struct debug_search *f, const struct conf *conf, struct namer *n,
	uint64_t now_ns, char *ret_news, size_t n_news);
void debug_search_end(struct debug_search *f);
