/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Names asked for afterwards, for frames that were stored without
 *
 * For a query: workers of its own, with the rights of its process, which start with the first frame. Only a file with
 * the build id that was stored gives names.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/naming/file.h"

/* Files and frames of one query; beyond it, they stay without names. */
#define LATER_FILES_MAX 64u
#define LATER_FRAMES_MAX 65536u

struct later;

struct later_options {
	const char *namer; /* path of mperf-namer or NULL; borrowed */
	uint64_t limit_ns; /* of all waiting */
	/* Fetch debug files from the servers of DEBUGINFOD_URLS (debuginfod/fetch.h). */
	bool fetches;
	const char *
		cache; /* folder of what was fetched for the service (debuginfod/cache.h); borrowed; NULL: none */
};

struct later *later_new(const struct later_options *o); /* NULL: no memory */
struct later *later_free(struct later *l);

/* A file as it was stored. */
struct later_file {
	const char *path;
	uint8_t build_id[20];
	uint8_t n_build_id;
	enum file_state state;
	bool has_debug;
};

/* Was it read without debug information, and is its debug file installed now, or may a server have it? A file that was
 * not read has no build id in a segment, so nothing could prove that it is the same. At most three system calls. */
bool later_knows_more(const struct later *l, const struct later_file *file);
/* Ask for a name, which later_wait brings. *ret_frame is NULL if there is no room or no namer; it lives as long as l.
 * 0 or -ENOMEM. */
int later_ask(struct later *l, const struct later_file *file, uint64_t offset,
	const struct frame **ret_frame);
/* Wait for the names, no longer than the limit. 0 or -errno. */
int later_wait(struct later *l);
