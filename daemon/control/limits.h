/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Limits on repeated fields of requests: one table for all commands
 *
 * Commands loop over each repeated field, so each has a limit here, and a field without one is
 * refused altogether (a test checks that every field has its row). The limits are applied before a
 * command sees the request.
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

struct field_limit {
	const char *message, *field; /* names in mperf.proto */
	size_t most;
	bool keep;        /* repeating a value changes the meaning: keep duplicates */
	const char *what; /* "processes", for the sentence that refuses */
	const char *remedy;
};
extern const struct field_limit field_limits[];
extern const size_t n_field_limits;

/* Check all repeated fields of a message and of the messages in it; drop duplicate values. Returns
 * NULL, or the limit that is exceeded by *ret_n values. O(n²) in each limit, the largest is
 * 1,024. */
const struct field_limit *limits_exceeded(ProtobufCMessage *m, size_t *ret_n);
