/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Chains: does a command's code keep frame pointers? */

#include <stdbool.h>

/* Does the program that execvp would run for `command` (for a script, its interpreter) have frame
 * pointers? False if most of its code has none: a walk along frame pointers then ends after one or
 * two frames. True also if the file does not say, or does not exist. */
bool chains_kept(const char *command);
