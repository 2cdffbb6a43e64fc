/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Older daemons: what they do not know of a request
 *
 * Minor versions only add fields, and protobuf passes over a field that it does not know. So an older daemon would answer
 * another question than was asked, and nobody would notice.
 */

#include "proto/mperf.pb-c.h"

/* The part of the request that a daemon of this minor version does not know, in words; NULL: it knows all. Static. */
const char *older_lacks(uint32_t minor, const Mperf__Request *request);
