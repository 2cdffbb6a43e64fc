/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Export: the samples themselves, and the dictionary entries that they need
 *
 * Other queries sum; this one sends each row of the samples, and before it all entries that the row
 * refers to and that were not sent yet. Entries of several segments merge by content: the same
 * address of the same file is sent once. Only entries that filtered samples refer to are sent.
 */

#include "daemon/query/query.h"

/* Samples in one part: 63 bytes each at most, half a FRAME_CHUNK_BYTES. */
#define EXPORT_SAMPLES_PART 1024
/* A part with this many bytes of dictionary entries is sent; one more entry still fits a frame. */
#define EXPORT_PART_BYTES (64u << 10)
/* Longer texts are cut; mperfd writes names of 1 KB, paths of 4 KB. */
#define EXPORT_TEXT_BYTES_MAX 8192
/* Places of one frame; the outermost beyond are left out. Inlining is seldom 20 deep. */
#define EXPORT_PLACES_MAX 512

/* Receiver of parts and of the provenance; as struct answer. A part is borrowed for the call; its
 * texts need not be UTF-8. */
struct export_answer {
	int (*part)(void *u, const Mperf__Profile *p);
	int (*provenance)(void *u, const struct answer_provenance *p);
	void *userdata;
};

/* 0, QUERY_FAILED with *ret_error, a callback's value, -errno. After a failure, what was sent is
 * void. The finest tier that still has the time answers. */
int query_export(struct query_source *source, size_t n_sources, const struct query_filter *filter,
	const struct export_answer *answer, struct query_error *ret_error);
