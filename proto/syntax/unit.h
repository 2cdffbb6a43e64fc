/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Units: formatting of figures, and parsing of typed ones
 *
 * Both ends of the socket print and read quantities, all in the form defined here. Formatting never
 * allocates: a text fits UNIT_TEXT_BYTES. Only the time zone of points in time depends on the
 * user's environment.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/mperf.pb-c.h"

/* The longest text is a grouped 64-bit count with its sign: 27 bytes. */
#define UNIT_TEXT_BYTES 48

enum {
	UNIT_MALFORMED = 1, /* not a duration or a time */
	UNIT_OUT_OF_RANGE,  /* well-formed, but beyond 64-bit nanoseconds or the calendar */
};

/* Write a count, grouped by thousands: "1,204". */
void unit_count_text(int64_t value, char ret_text[static UNIT_TEXT_BYTES]);

/* Write a value with its unit, three significant digits if that is enough: "12.1 s", "3.20 MiB",
 * "18.44 %", "0.86", "99 Hz". Values that are not finite become "-". */
void unit_text(Mperf__Unit unit, double value, char ret_text[static UNIT_TEXT_BYTES]);

/* Write a share of the time: "84 %", "less than 1 %", "none". Returns false, with nothing written,
 * if it rounds to 100 %: then no note is needed. */
bool unit_part_text(double part, char ret_text[static UNIT_TEXT_BYTES]);

/* The stable name of a unit ("ns", "count"), NULL for a number or text without one. Static. */
const char *unit_name(Mperf__Unit unit);

/* Parse a duration: "10s", "500ms", "2m", "1h30m", "1.5s", "5 minutes"; a bare number is in seconds. Units are
 * ns us µs ms s m min h d w, and sec, seconds, minutes, hours, days, weeks, also of one. Returns 0, UNIT_MALFORMED, UNIT_OUT_OF_RANGE. */
int unit_parse_duration(const char *text, uint64_t *ret_ns);

/* Parse a share: "5%", "0.25%"; of more than four decimals the rest is malformed. In millionths, up to
 * a million. Returns 0, UNIT_MALFORMED, UNIT_OUT_OF_RANGE. */
int unit_parse_share(const char *text, uint32_t *ret_ppm);

/* Parse a size: "4096", "512M", "512MiB"; K M G T are powers of 1024. Returns 0, UNIT_MALFORMED,
 * UNIT_OUT_OF_RANGE. */
int unit_parse_bytes(const char *text, uint64_t *ret_bytes);

/* Parse a point in time, CLOCK_REALTIME in ns, relative to now_ns: "now", "today", "yesterday"
 * (midnight), each of the latter two with an optional clock time; "10:30[:15]" of today;
 * "2026-11-21[ 10:00[:15]]" (a T may stand for the space); "-5m", "5 minutes ago"; "@SECONDS". Local time.
 * Returns 0, UNIT_MALFORMED, UNIT_OUT_OF_RANGE. */
int unit_parse_time(const char *text, int64_t now_ns, int64_t *ret_ns);
