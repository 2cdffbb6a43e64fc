/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Clocks, as one number */

#include <stdint.h>
#include <time.h>

/* Nanoseconds of a clock that every Linux has (CLOCK_MONOTONIC, CLOCK_REALTIME): cannot fail. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = {0};
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
