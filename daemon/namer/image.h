/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Images: a file of code, parsed so that offsets in it have names
 *
 * Runs in the parser process, on bytes that anybody may have written. An image is made from
 * descriptors that were handed over; nothing here opens a path.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_PLACES_MAX 32          /* inline depth of one address; deeper is cut at the outer end */
#define IMAGE_NAME_BYTES_MAX 1024    /* a demangled name; longer ones end in "…" */
#define IMAGE_SYMBOLS_MAX 4000000    /* per file; libLLVM has 42,000, a debug Chromium a million */
#define IMAGE_MAP_LINES_MAX 2000000  /* of a perf map or jitdump */

struct image;

enum {
	IMAGE_MALFORMED = 1,
	IMAGE_OVERSIZE,
	IMAGE_MISMATCH,        /* the separate file has another build id or checksum: it is not used */
};

struct image_place {
	const char *function;  /* demangled; NULL unknown; borrowed from the image until image_free */
	const char *source;    /* NULL unknown */
	uint32_t line;         /* 0 unknown */
	bool inlined;          /* into the next place */
};

struct image_naming {
	enum { IMAGE_NAMED = 1, IMAGE_OUT_OF_SYMBOL, IMAGE_NO_SYMBOLS } outcome;
	struct image_place place[IMAGE_PLACES_MAX]; /* innermost first, the symbol last */
	uint32_t n_places;
};

/* What else would help to name this image: filled for ELF without .symtab or without DWARF. */
struct image_wants {
	uint8_t build_id[20];
	uint8_t n_build_id;
	char debuglink[256];   /* .gnu_debuglink file name, or "" */
	bool symbols, debug;   /* which of the two is missing */
	char alt_link[256];    /* .gnu_debugaltlink path wanted by the debug information, or "" */
	uint8_t alt_build_id[20];
	uint8_t n_alt_build_id;
};

/* The descriptor stays the caller's and must stay open while the image lives. 0, IMAGE_*, -errno */
int image_open_elf(int fd, struct image **ret_image);
void image_wants(const struct image *i, struct image_wants *ret_wants);
/* A separate debug file: both have the same build id, or the link to it gives its checksum; or the
 * alt file of one, which has the build id of the link. Once each, -EINVAL after that. What was named
 * before stays valid. *belongs: that was found out before, and need not be again; set. 0, IMAGE_*,
 * -errno */
int image_add_debug(struct image *i, int fd, bool *belongs);
int image_add_alt(struct image *i, int fd);

/* The text of the kernel (module NULL; offsets from _stext, from base where that is not listed) or of
 * a module (offsets from base). Keeps the list as long as it needs it. 0 or -ENOMEM */
struct kallsyms;
int image_open_kallsyms(
	struct kallsyms *k, const char *module, uint64_t base, struct image **ret_image);

/* perf-PID.map: lines "START SIZE name", hexadecimal. Source: Linux tools/perf/Documentation/jit-interface.txt.
 * Later lines win where ranges overlap. Offsets are addresses. */
int image_open_perf_map(int fd, struct image **ret_image);

/* jitdump: Source: tools/perf/Documentation/jitdump-specification.txt. The last code loaded (or
 * moved) over an address names it. Either byte order. Debug entries give file and line. */
int image_open_jitdump(int fd, struct image **ret_image);

/* Name one offset (file offset for ELF). O(log n) after the first. Never fails for bad input. */
void image_name(struct image *i, uint64_t offset, struct image_naming *ret_naming);

bool image_has_symbols(const struct image *i);
bool image_has_debug(const struct image *i);
/* It will not be asked for some time: let the pages of its files go, which the kernel reads again
 * where they are touched. Nothing that was named changes. */
void image_rest(struct image *i);
struct image *image_free(struct image *i);
