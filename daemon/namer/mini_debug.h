/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Mini debug information: an ELF file in a section of an ELF file */

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

/* Fedora's largest (libxul) unpacks to 20 MB; a bomb of a few kilobytes unpacks to anything. */
#define MINI_DEBUG_BYTES_MAX ((size_t)256 << 20)

enum {
	MINI_DEBUG_NONE = 1,
	MINI_DEBUG_MALFORMED,
	MINI_DEBUG_OVERSIZE,
};

/* Unpack .gnu_debugdata. The caller frees *ret_bytes. 0, MINI_DEBUG_*, -ENOMEM
 * Source: GDB manual, "Debugging information in a special section"; the .xz file format 1.1. */
int mini_debug_unpack(Elf *elf, uint8_t **ret_bytes, size_t *ret_n);
