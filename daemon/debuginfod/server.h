/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The process that fetches debug files for the service: mperfd --fetch-debug
 *
 * systemd starts it (mperf-debuginfod.service), as a user of its own without capabilities, when the service connects
 * to its socket. The service has no network; this process has, and sees nothing that is sampled but build ids. What it
 * fetches is left in the cache, for the service to open.
 *
 *      mperfd ──build id──▶ mperfd --fetch-debug ──▶ a child with libdebuginfod ──▶ servers
 *         ◀──a byte of enum debuginfod_answer──┘
 */

#include <stdint.h>

/* A message of the service is the bytes of a build id; its answer is one byte: */
enum debuginfod_answer {
	DEBUGINFOD_ANSWER_HAVE = 1, /* it is in the cache */
	DEBUGINFOD_ANSWER_NONE,     /* no server has it, or it is too large */
	DEBUGINFOD_ANSWER_LATER,    /* it could not be fetched this time */
	DEBUGINFOD_ANSWER_OVER,     /* none can be fetched: the process has said why */
};
#define DEBUGINFOD_FETCH_NS                                                                        \
	(300ull * 1000000000u) /* for one file: some have hundreds of megabytes */

struct debuginfod_options {
	const char *urls;  /* of the servers, joined by commas; "none": none */
	const char *cache; /* its folder */
	uint64_t cache_bytes_max;
};

/* Serve the listening socket, until nobody has connected for a minute. 0 or -errno. */
int debuginfod_serve(int listen_fd, const struct debuginfod_options *o);
