/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stdint.h>

struct image;

/* Have the calling thread count at that distance in an object: its bias, at *bias, and the base of
 * the segment %gs where the object's code counts through that. May be called in signal handlers. */
void mperf_bias_set(const struct image *image, int64_t *bias, int64_t distance);
