/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Say: messages to the user on stderr
 *
 * One sentence names the problem, one the remedy; both are escaped, since they may quote others.
 * Progress is shown only on a terminal, and only if an operation takes longer than a second.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses; a command's own status is passed through. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_DIFFERENT = 3,        /* roofline --two-phase: some rows were not combined */
	EXIT_NOT_EXECUTABLE = 126, /* as the shell does it; Source: POSIX.1-2017, XCU 2.8.2 */
	EXIT_NOT_FOUND = 127,
	EXIT_SIGNAL_BASE = 128, /* plus the signal's number */
};

/* Print "mperfctl: WHAT. REMEDY". Full stops are added if missing; remedy may be NULL or empty. */
void say_failure(const char *what, const char *remedy);

/* From now on print no notes, only failures. */
void say_quietly(void);

/* Print a note, or a failure without a remedy: "mperfctl: …." */
void say_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line on stderr that the next message overwrites. */
struct say_progress {
	uint64_t start_ns, last_ns;
	bool silent; /* set by the owner while others write to the terminal */
	bool visible;
};
void say_progress_start(struct say_progress *p);
/* done of total (0: unknown) of `what`; shown at most five times a second. */
void say_progress(struct say_progress *p, const char *what, uint64_t done, uint64_t total);
void say_progress_end(struct say_progress *p);

/* CLOCK_MONOTONIC. */
uint64_t say_now_ns(void);
