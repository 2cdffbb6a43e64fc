/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Names: the strings that an image returns
 *
 * Owns copies, and caches demangled names. Everything stays until names_clear.
 */

#include <stddef.h>
#include <stdint.h>

/* Total size of one image's strings: two million JIT names of 200 bytes. Beyond it names_copy
 * returns NULL. */
#define NAMES_BYTES_MAX (400u << 20)

struct names_chunk;
struct names_entry;

struct names {
	struct names_chunk *chunk; /* the newest first */
	struct names_entry *cache; /* by the address of the raw name */
	size_t n_bytes;
};

/* Copy n bytes (up to the first NUL), cut to IMAGE_NAME_BYTES_MAX (name_cut.h). NULL: no memory, or full. */
const char *names_copy(struct names *n, const char *text, size_t length);

/* "text" + "suffix", cut in the same way. */
const char *names_join(struct names *n, const char *text, const char *suffix);

/* The readable form of a raw name, whose address must stay valid as long as `n`. Demangles once per
 * raw name. Returns the raw name if there is no memory, and NULL for NULL. */
const char *names_demangle(struct names *n, const char *raw);
/* The same of an ELF symbol, without its default version. */
const char *names_symbol(struct names *n, const char *raw);

void names_clear(struct names *n);
