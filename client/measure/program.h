/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Programs that mperfctl starts with the caller's rights, and libraries for measured programs */

#include <stdbool.h>

#define PROGRAM_PATH_BYTES 4096

/* Find a program of mperf by its name: beside mperfctl, as in a build; relative to mperfctl as installed; where it
 * was configured to be. False: there is none. */
bool program_find(const char *name, char ret_path[static PROGRAM_PATH_BYTES]);
/* Find a library for measured programs, in the same way. */
bool program_find_library(const char *name, char ret_path[static PROGRAM_PATH_BYTES]);
