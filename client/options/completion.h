/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Completion: scripts that let a shell complete a command line
 *
 * `mperfctl completion bash` and `mperfctl completion zsh` print a script made of the tables of
 * commands and options, so a new option needs no change here.
 */

#include <stdio.h>

enum { COMPLETION_UNKNOWN_SHELL = 1 };

/* Write the script for "bash" or "zsh". 0 or COMPLETION_UNKNOWN_SHELL; check f for write errors. */
int completion_print(const char *shell, FILE *f);

/* The help of `mperfctl help completion`. */
void completion_help(FILE *f);
