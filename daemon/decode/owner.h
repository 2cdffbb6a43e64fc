/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Whose a sample is that bears another session's id. */

#ifndef DECODE_OWNER_H
#define DECODE_OWNER_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/pmu/stream.h"

/* The stream of a sample of n bytes, header included, whose identifier is in none; NULL if it is a
 * stranger's. Borrowed until the table changes. */
const struct stream *owner_find(const uint8_t *bytes, size_t n, const struct stream_table *streams);

#endif
