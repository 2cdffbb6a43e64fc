/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Debug files from debuginfod servers, by libdebuginfod
 *
 * Only a private daemon uses it, which has the rights of the user who asks; the service never does. A child loads the
 * library and uses the network for each file; nothing else needs these. The library keeps files in the user's cache.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of a file, if DEBUGINFOD_MAXSIZE does not say otherwise. */
#define DEBUGINFOD_BYTES_MAX "2147483648"

/* Are there servers to ask? */
bool debuginfod_has_servers(void);
/* Fetch the debug file of that build id, with progress on standard error. 0 with its path;
 * DEBUGINFOD_NONE: no server has it; DEBUGINFOD_OVER: nothing more can be fetched, since the library is missing, the
 * time (CLOCK_MONOTONIC) is over, or the client has gone. */
enum { DEBUGINFOD_NONE = 1, DEBUGINFOD_OVER };
int debuginfod_fetch(
	const uint8_t *build_id, uint8_t n, uint64_t until_ns, char ret_path[PATH_MAX]);
