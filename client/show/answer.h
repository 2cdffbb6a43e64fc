/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Where an answer goes that a command prints on stdout, and where the output of a measured program goes then
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

/* The command's answer is on stdout, so a program's output may not be there. */
void answer_is_on_stdout(void);

/* In a child that becomes the measured program: give it its stdout. */
void answer_give_stdout(void);

/* After the command: the file appears under its name if something was written. The command's exit status, or
 * EXIT_FAILED after an error message. */
int answer_end(int exit_status);
