/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Times of systemd: check OnCalendar= times, and find when timers elapse next
 *
 * We ask systemd's own programs, so that we show exactly what it will do.
 */

#include <stddef.h>
#include <stdint.h>

enum {
	SYSTEMD_REFUSED = 1, /* the program refused; its message is in `text` */
	SYSTEMD_ABSENT,      /* the program is not installed */
};

/* Check a time of OnCalendar=. 0: `text` is the next such time, "" if there is none; SYSTEMD_*; -errno. */
#define SYSTEMD_TEXT_BYTES 512
int systemd_check_calendar(const char *calendar, char text[static SYSTEMD_TEXT_BYTES]);

/* Find when the timer of this unit elapses next, in ns of CLOCK_REALTIME; 0: never. 0, SYSTEMD_*, -errno. */
int systemd_timer_next(const char *unit, int64_t *ret_ns);
