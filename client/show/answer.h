/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Answer: the file of a command's answer, and the stdout that is left to a measured program
 *
 *     mperfctl hotspots --json -- ./program            stdout: the answer; ./program's goes to stderr
 *     mperfctl hotspots --json -o a.json -- ./program  a.json: the answer; ./program keeps stdout
 *
 * On a terminal both are read by a person, and ./program keeps stdout.
 */

#include <stdbool.h>

/* Begin, once, before the command runs. path: of -o, or NULL for stdout; "-" is stdout. force: overwrite any regular
 * file. 0, or EXIT_FAILED after an error message. */
int answer_begin(const char *path, bool force);

/* Note that the answer is on stdout, so that a program's output may not be. */
void answer_is_on_stdout(void);

/* Give the measured program its stdout, in the child that becomes it. */
void answer_give_stdout(void);

/* After the command: the file appears under its name if something was written. The command's exit status, or
 * EXIT_FAILED after an error message. */
int answer_end(int exit_status);
