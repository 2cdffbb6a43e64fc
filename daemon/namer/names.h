/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Names: the strings that an image hands out
 *
 * Owns copies, and remembers what was demangled. Everything lives until names_clear.
 */

#include <stddef.h>
#include <stdint.h>

/* All strings of one image: two million JIT names of 200 bytes. Beyond it names_copy gives NULL. */
#define NAMES_BYTES_MAX (400u << 20)

struct names_chunk;
struct names_entry;

struct names {
	struct names_chunk *chunk; /* the newest first */
	struct names_entry *cache; /* by the address of the raw name */
	size_t n_bytes;
};

/* Copy n bytes (up to a NUL among them), cut at IMAGE_NAME_BYTES_MAX. NULL: no memory, or full. */
const char *names_copy(struct names *n, const char *text, size_t length);

/* "text" + "suffix", cut alike. */
const char *names_join(struct names *n, const char *text, const char *suffix);

/* The readable form of a raw name, which must stay where it is as long as `n` lives. Demangles
 * once per raw name. Falls back on the raw name if there is no memory. NULL gives NULL. */
const char *names_demangle(struct names *n, const char *raw);

/* Cut to IMAGE_NAME_BYTES_MAX bytes at a UTF-8 boundary, "…" included. Returns the length. */
size_t name_cut(char *name, size_t length);

void names_clear(struct names *n);
