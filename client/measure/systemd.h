/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What systemd says of times: when timers come next, and whether a time is one
 *
 * systemd's own programs are asked, so that what is shown is what it will do.
 */

#include <stddef.h>
#include <stdint.h>

enum {
	SYSTEMD_REFUSED = 1, /* the program says no; its words are in text */
	SYSTEMD_ABSENT,      /* there is no such program */
};

/* Check a time of OnCalendar=. 0: `text` is when it comes next, "" if never again; SYSTEMD_*; -errno. */
#define SYSTEMD_TEXT_BYTES 512
int systemd_check_calendar(const char *calendar, char text[static SYSTEMD_TEXT_BYTES]);

/* When the timer of that unit's name comes next, in ns of CLOCK_REALTIME; 0: it does not. 0, SYSTEMD_*,
 * -errno. */
int systemd_timer_next(const char *unit, int64_t *ret_ns);
