/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The folder in which libdebuginfod keeps what it fetched: FOLDER/BUILDID/debuginfo, and debuginfo-… with the
 * sections of a file. Source: man debuginfod-find, CACHE. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define DEBUGINFOD_ID_BYTES_MAX 64u /* of a build id. Source: elfutils, debuginfod-client.c */

/* Where a debug file is, once it is fetched. False: this is no build id. */
bool debuginfod_cache_path(
	const char *folder, const uint8_t *build_id, uint8_t n, char ret_path[PATH_MAX]);
/* The path of a debug file that was fetched. False: it was not, or we may not read it. */
bool debuginfod_cached(
	const char *folder, const uint8_t *build_id, uint8_t n, char ret_path[PATH_MAX]);
/* Let all read what was fetched: the library keeps it for its user. 0 or -errno. */
int debuginfod_cache_open(const char *folder, const uint8_t *build_id, uint8_t n);
/* Remove what is left of fetches that failed, and then files, what was fetched longest ago first, until all take no more
 * than this. Nothing may be fetched meanwhile. The bytes that remain, folders included, or -errno. */
int64_t debuginfod_cache_trim(const char *folder, uint64_t bytes_max);
