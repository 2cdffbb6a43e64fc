/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stddef.h>

/* The nearest of n names to one that was mistyped, NULL if none is near enough to be meant:
 * at most a third of its letters wrong (and one at least allowed). Linear in all letters. */
const char *nearest_name(const char *text, const char *const *names, size_t n);
