/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Clocks, as one number */

#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Nanoseconds of a clock that every Linux has (CLOCK_MONOTONIC, CLOCK_REALTIME): cannot fail. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = {0};
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A moment of CLOCK_REALTIME as local time: "2026-11-21 12:00:30"; seconds since 1970, "@1700000000", if it has none. Returns
 * the text. */
#define CLOCK_TEXT_BYTES 40
static inline const char *clock_local_text(int64_t ns, char ret_text[static CLOCK_TEXT_BYTES])
{
	const time_t t = (time_t)(ns / 1000000000);
	struct tm tm;
	if (!localtime_r(&t, &tm) ||
		strftime(ret_text, CLOCK_TEXT_BYTES, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		snprintf(ret_text, CLOCK_TEXT_BYTES, "@%lld", (long long)t);
	return ret_text;
}
