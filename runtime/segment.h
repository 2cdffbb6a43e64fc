/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct image;

/* May programs write the base of %gs themselves? Asked once, at the start. */
bool mperf_segment_writable(void);

/* Have the calling thread count at that distance in an object: its bias, at *bias, and the base of
 * %gs where the object's code counts through that. False: the kernel does not set that base, and
 * what the thread counts there goes to the object's own words, which nobody reads. May be called in
 * signal handlers. */
bool mperf_bias_set(const struct image *image, int64_t *bias, int64_t distance);
