/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Find the stream of a sample that carries another session's id. */

#include <stddef.h>
#include <stdint.h>

#include "daemon/sampler/stream.h"

/* The stream of a sample (n bytes with header) whose identifier is in no stream; NULL if it belongs
 * to none of ours. Borrowed until the table changes. */
const struct stream *sample_stream_find(
	const uint8_t *bytes, size_t n, const struct stream_table *streams);
