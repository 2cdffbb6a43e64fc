/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Debug files from debuginfod servers, by libdebuginfod
 *
 * A private daemon fetches with the rights of its user. For the service another process does (server.h), which has no
 * rights but the network. A child loads the library and uses the network for each file; nothing else needs these.
 * The servers are those of DEBUGINFOD_URLS, and the library keeps files in its cache.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of a file, if DEBUGINFOD_MAXSIZE does not say otherwise. */
#define DEBUGINFOD_BYTES_MAX "2147483648"

/* Are there servers to ask? */
bool debuginfod_has_servers(void);

/* A debug file that is wanted. */
struct debuginfod_wish {
	const uint8_t *build_id; /* borrowed */
	uint8_t n_build_id;
	bool shows_progress; /* on standard error */
	uint64_t until_ns;   /* CLOCK_MONOTONIC */
};

/* Fetch a debug file. 0 with its path;
 * DEBUGINFOD_NONE: no server has it, or it is too large;
 * DEBUGINFOD_LATER: servers could not be asked, or the time was over; part of the file may be left in the cache;
 * DEBUGINFOD_OVER: none can be asked, since the library is missing. */
enum { DEBUGINFOD_NONE = 1, DEBUGINFOD_LATER, DEBUGINFOD_OVER };
int debuginfod_fetch(const struct debuginfod_wish *w, char ret_path[PATH_MAX]);
