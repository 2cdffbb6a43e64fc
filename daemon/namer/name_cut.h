/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stddef.h>

#include "daemon/namer/image.h"

/* Bytes of a longer name that are read. */
#define NAME_TEXT_MAX 65536

/* Copy a name of `length` bytes. If it is longer than IMAGE_NAME_BYTES_MAX, its middle becomes "…HASH…", a
 * hash of the whole name, so that two such names stay different. Front and end remain (the end says more in
 * C++ and Rust names), and no UTF-8 character is split. Returns the length. */
size_t name_cut(const char *name, size_t length, char ret_name[static IMAGE_NAME_BYTES_MAX + 1]);
