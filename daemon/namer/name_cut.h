/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stddef.h>

#include "daemon/namer/image.h"

/* What of a longer name is read. */
#define NAME_TEXT_MAX 65536

/* Copy a name of `length` bytes. Of one that is longer than IMAGE_NAME_BYTES_MAX the middle becomes "…HASH…", a hash
 * of the whole, so that two such names stay two: front and end (which says more of C++ and Rust names) remain, and
 * no UTF-8 character is split. Returns the length. */
size_t name_cut(const char *name, size_t length, char ret_name[static IMAGE_NAME_BYTES_MAX + 1]);
