/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Find the sample_id of a non-sample record by its content, since its size can be wrong. */

#include <stddef.h>
#include <stdint.h>

#include "daemon/sampler/stream.h"

struct trailer {
	const struct stream *stream; /* borrowed until the table changes */
	size_t at;                   /* offset of sample_id; the body ends there */
	size_t bytes;                /* of sample_id */
};

/* Find the sample_id of a whole non-sample record (n bytes with header). 0 or RECORD_TRUNCATED,
 * RECORD_STRANGER, RECORD_HOSTILE. O(n) if the record holds a string. */
int trailer_find(const uint8_t *bytes, size_t n, const struct stream_table *streams,
	struct trailer *ret_trailer);
