/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The folder in which libdebuginfod keeps what it fetched: FOLDER/BUILDID/debuginfo, and debuginfo-… with the
 * sections of a file. Source: man debuginfod-find, CACHE. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define DEBUGINFOD_ID_BYTES_MAX 64u /* of a build id. Source: elfutils, debuginfod-client.c */

/* The path of a debug file that was fetched. False: it was not, or we may not read it. One system call. */
bool debuginfod_cached(
	const char *folder, const uint8_t *build_id, uint8_t n, char ret_path[PATH_MAX]);
/* Let all read what was fetched: the library keeps it for its user. 0 or -errno. */
int debuginfod_cache_open(const char *folder, const uint8_t *build_id, uint8_t n);
/* Remove files, what was used longest ago first, until all take no more than this. The bytes that remain, or
 * -errno. */
int64_t debuginfod_cache_trim(const char *folder, uint64_t bytes_max);
