/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Debug files of what the service samples: those that are installed while it runs (debug_watch.h), and those of servers
 *
 * A process of its own, which has the network, fetches them (debuginfod/server.h). It is asked for one file after
 * another, the one with most samples first, and nobody waits for it.
 */

#include "daemon/conf/conf.h"
#include "daemon/naming/namer.h"
#include "daemon/service/debug_watch.h"

/* A file that was sampled less often, at places not seen before, is not worth asking for. */
#define DEBUG_SEARCH_SAMPLES_MIN 4u

struct debug_search {
	struct debug_watch watch;
	int fd;     /* of its socket; -1: not connected */
	bool away;  /* it could not be reached, which was said */
	bool waits; /* for the answer about this build id: */
	uint8_t build_id[20];
	uint8_t n_build_id;
	uint64_t look_ns; /* time of the next look at what has no names */
};

void debug_search_begin(struct debug_search *f);
/* Name by what was installed; take an answer about a server's, or ask for the next file. Call it about once a second.
 * Without servers in the configuration none are asked. ret_news is "", or that the process cannot be reached, which is
 * said once, and tried again each minute. 0 or -ENOMEM. */
int debug_search_tend(struct debug_search *f, const struct conf *conf, struct namer *n,
	char *ret_news, size_t n_news);
void debug_search_end(struct debug_search *f);
