/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Debug files from debuginfod servers, by libdebuginfod
 *
 * For processes with the rights of the user who asks, never for the service. The library is loaded when a file is
 * fetched, as elfutils does, in a child: nothing else needs it or the network. It keeps files in the user's cache.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of a file, if DEBUGINFOD_MAXSIZE does not say otherwise. */
#define DEBUGINFOD_BYTES_MAX "2147483648"

/* Are there servers to ask? */
bool debuginfod_has_servers(void);
/* Fetch the debug file of that build id, with progress on standard error. 0 with its path;
 * DEBUGINFOD_NONE: no server has it, or the library is missing; DEBUGINFOD_OVER: the time (CLOCK_MONOTONIC) is over, or
 * the client has gone. */
enum { DEBUGINFOD_NONE = 1, DEBUGINFOD_OVER };
int debuginfod_fetch(
	const uint8_t *build_id, uint8_t n, uint64_t until_ns, char ret_path[PATH_MAX]);
