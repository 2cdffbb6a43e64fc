/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Completion: what a shell needs to know in order to finish what is typed
 *
 * `mperfctl completion bash` and `mperfctl completion zsh` print a script made of the tables of
 * commands and options, so that a new option is completed by itself.
 */

#include <stdio.h>

enum { COMPLETION_UNKNOWN_SHELL = 1 };

/* Write the script for "bash" or "zsh". 0 or COMPLETION_UNKNOWN_SHELL; whether all of it arrived is
 * f's to say. */
int completion_print(const char *shell, FILE *f);

/* What `mperfctl help completion` says. */
void completion_help(FILE *f);
