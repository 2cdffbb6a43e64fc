/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Images: a parsed file of code that names offsets in it
 *
 * Runs in the parser process, on untrusted bytes. An image is made from descriptors that the parser
 * received; nothing here opens a path.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* inline depth of one address; outer calls beyond it are dropped */
#define IMAGE_PLACES_MAX 32
#define IMAGE_NAME_BYTES_MAX                                                                       \
	1024 /* a demangled name; longer ones are cut in their middle (name_cut.h) */
/* Size of one file, so that a sparse file cannot take hours to read. Equals the daemon's limit
 * NAMER_FILE_BYTES_MAX; larger is IMAGE_OVERSIZE. */
#define IMAGE_FILE_BYTES_MAX (64ull << 30)
#define IMAGE_SYMBOLS_MAX 4000000   /* per file; libLLVM has 42,000, a debug Chromium a million */
#define IMAGE_MAP_LINES_MAX 2000000 /* of a perf map or jitdump */

struct image;

enum {
	IMAGE_MALFORMED = 1,
	IMAGE_OVERSIZE,
	/* the separate file has a different build id or checksum: not used */
	IMAGE_MISMATCH,
};

struct image_place {
	/* demangled; NULL unknown; borrowed from the image until it gets another file, drops what it
	 * has, or is freed */
	const char *function;
	const char *source; /* NULL unknown */
	uint32_t line;      /* 0 unknown */
	bool inlined;       /* into the next place */
	/* functions inlined into it are in a split unit whose file was not found */
	bool split_missing;
};

/* IMAGE_PLACED: no symbol, but the start of its function is known. */
struct image_naming {
	enum { IMAGE_NAMED = 1, IMAGE_OUT_OF_SYMBOL, IMAGE_NO_SYMBOLS, IMAGE_PLACED } outcome;
	/* virtual address in an ELF file, of the function if is_start; 0: not known */
	uint64_t addr;
	bool is_start;
	/* The answer is the same for all offsets [from, to). Both 0: perhaps for this offset alone. */
	uint64_t from, to;
	struct image_place place[IMAGE_PLACES_MAX]; /* innermost first, the symbol last */
	uint32_t n_places;
};

/* Other files that would help to name this image: set for ELF without .symtab or without DWARF. */
struct image_wants {
	uint8_t build_id[20];
	uint8_t n_build_id;
	char debuglink[256]; /* .gnu_debuglink file name, or "" */
	bool symbols, debug; /* symbols, or debug information, is missing */
	char alt_link[256];  /* .gnu_debugaltlink path that the debug information needs, or "" */
	uint8_t alt_build_id[20];
	uint8_t n_alt_build_id;
};

/* Reads the symbols. The descriptor may be closed afterwards. 0, IMAGE_*, -errno */
int image_open_elf(int fd, struct image **ret_image);
void image_wants(const struct image *i, struct image_wants *ret_wants);
/* Add a separate debug file (both have the same build id, or the link has its checksum), or the alt
 * file of one, which has the link's build id. Once each, -EINVAL after that. *belongs: in, the match was
 * verified before and is not checked again; out, the result. 0, IMAGE_*, -errno */
int image_add_debug(struct image *i, int fd, bool *belongs);
int image_add_alt(struct image *i, int fd);

/* After a name: the path of the .dwo with the functions of the name's unit, "" if the path is not
 * known; NULL: the image has the functions, or the caller does without the .dwo. The unit may also be in a
 * package, .dwp. Borrowed until the image is asked for another name. */
const char *image_wants_split(const struct image *i);
/* Add a package (once), or the .dwo that is wanted, or do without; then ask for the name again. A file
 * that is not the unit's adds nothing. 0, IMAGE_*, -errno */
int image_add_package(struct image *i, int fd);
int image_add_split(struct image *i, int fd);
void image_give_up_split(struct image *i);
/* May the image want such files? Then its contents depend on the user who asked. */
bool image_may_be_split(const struct image *i);

/* The text of the kernel (module NULL; offsets from _stext, or from base if that is not listed) or
 * of a module (offsets from base). Keeps the list as long as it needs it. 0 or -ENOMEM */
struct kallsyms;
int image_open_kallsyms(
	struct kallsyms *k, const char *module, uint64_t base, struct image **ret_image);

/* perf-PID.map: lines "START SIZE name", hexadecimal. Source: Linux
 * tools/perf/Documentation/jit-interface.txt. A later line names its addresses from then on.
 * Offsets are addresses. */
int image_open_perf_map(int fd, struct image **ret_image);

/* jitdump: Source: tools/perf/Documentation/jitdump-specification.txt. The last code loaded (or
 * moved) over an address names it from then on. Either byte order. Debug entries give file and line. */
int image_open_jitdump(int fd, struct image **ret_image);

/* Read on in a perf map or jitdump that has grown. A rewritten file is read from its beginning, and its code
 * counts as added. 0, IMAGE_*, -errno; then the image has its former code, or more */
int image_read_on(struct image *i, int fd);
/* The number of ranges of code that were read so far. */
uint32_t image_order(const struct image *i);
/* The number of times that the file was rewritten since it was opened: only this image knows its former contents. */
uint32_t image_n_rewrites(const struct image *i);
/* The place up to which a file was read, and a hash of the bytes before it, by which any parser recognises the
 * file. */
struct image_mark {
	uint64_t at, hash;
};
struct image_mark image_mark(const struct image *i);
/* Is the file still the one that was read up to the mark? Yes if the image was asked before (it
 * notices changes itself), if the mark is at 0, or if the bytes before the mark are the same. */
bool image_goes_on(struct image *i, int fd, const struct image_mark *mark);
/* Code that has taken the place of other code. */
struct image_change {
	uint64_t start, end;
	uint64_t from_ns; /* CLOCK_MONOTONIC; 0: the file does not say when */
	uint32_t order;   /* its number: it was the last of this many ranges */
};
/* Get the changes after the first `after` ranges, in order. Returns their number; max: there may be
 * others. */
uint32_t image_changes(
	const struct image *i, uint32_t after, struct image_change *ret_change, uint32_t max);

/* The table of unwinding of the generated code that is valid now; its offsets are addresses. The caller frees it. 0,
 * -EBADMSG: nothing describes it for that machine; -E2BIG: it would take more than n_bytes_max; -ENOMEM */
struct unwind_table;
int image_table(const struct image *i, uint16_t machine, size_t n_bytes_max,
	struct unwind_table **ret_table);

/* Name one offset (file offset for ELF). O(log n) after the first, which opens the lines. Never
 * fails for bad input. Exported for tests. */
void image_name(struct image *i, uint64_t offset, struct image_naming *ret_naming);
/* The same by the first `order` ranges of generated code; if they do not cover the offset, by the first
 * range that does. */
void image_name_by(
	struct image *i, uint64_t offset, uint32_t order, struct image_naming *ret_naming);

/* Were the starts of functions read? They are when a name is asked for that no symbol gives. */
bool image_has_starts(const struct image *i);
bool image_has_symbols(const struct image *i);
/* Does it have lines? Lines of an ELF file may turn out to be malformed when they are opened. */
bool image_has_debug(const struct image *i);

/* Open the lines before image_name does, to learn whether there is memory for them. 0, -ENOMEM */
int image_open_lines(struct image *i);
/* The bytes that this will unpack, as the files claim. */
size_t image_lines_bytes(const struct image *i);
/* Does it hold unpacked debug information? */
bool image_has_open_lines(const struct image *i);
/* Free the data of single units, which is read again in about a millisecond; or also the unpacked debug
 * information, which takes much longer. */
void image_drop_units(struct image *i);
void image_drop_lines(struct image *i);
/* Release the pages of the image's files, which the kernel maps again when they are touched. */
void image_release_pages(struct image *i);
/* Add a user of the image. Each user frees it. */
struct image *image_ref(struct image *i);
bool image_is_shared(const struct image *i);
struct image *image_free(struct image *i);
