/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stddef.h>

/* Cut to IMAGE_NAME_BYTES_MAX bytes at a UTF-8 boundary, "…" included. Returns the length. */
size_t name_cut(char *name, size_t length);
