/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Where the sample_id of a record begins that is no sample: what its content says, not its size. */

#include <stddef.h>
#include <stdint.h>

#include "daemon/pmu/stream.h"

struct trailer {
	const struct stream *stream; /* borrowed until the table changes */
	size_t at;                   /* where sample_id begins; what is before it is the body */
	size_t bytes;                /* of sample_id */
};

/* Bytes of sample_id in records of that stream. */
size_t trailer_bytes(const struct stream *s);

/* Find the sample_id of a whole record of n bytes, header included, which is no sample. 0 or
 * RECORD_TRUNCATED, RECORD_STRANGER, RECORD_HOSTILE. O(n) where the record holds a string. */
int trailer_find(const uint8_t *bytes, size_t n, const struct stream_table *streams,
	struct trailer *ret_trailer);
