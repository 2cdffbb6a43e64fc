/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of an image, for its constructors */

#include "daemon/namer/history.h"
#include "daemon/namer/image.h"
#include "daemon/namer/kallsyms.h"
#include "daemon/namer/names.h"
#include "daemon/namer/spans.h"
#include "proto/base/memory.h"

/* Size of one file, so that a sparse file cannot take hours to read. Equals the daemon's limit
 * NAMER_FILE_BYTES_MAX; larger is IMAGE_OVERSIZE. */
#define IMAGE_FILE_BYTES_MAX (64ull << 30)

/* The last function of the kernel or of a module has no near successor that bounds it. The kernel's
 * largest functions take tens of kilobytes. */
#define KERNEL_LAST_BYTES_MAX (64u << 10)

struct elf_image;
struct jit_lines;
struct jitdump;

/* The place up to which a growing file was read. */
struct read_mark {
	uint64_t at;      /* up to here */
	uint8_t tail[64]; /* the bytes before it: if they are others, the file was rewritten */
	uint8_t n_tail;
	uint32_t n_anew; /* how often that was */
	bool cut;        /* the last line had no newline, and is read again */
};

struct image {
	uint32_t n_others;    /* users besides the first */
	struct spans symbols; /* by offset, of ELF by virtual address */
	struct names names;
	struct kallsyms *kallsyms;           /* NULL: neither the kernel nor a module */
	const struct kernel_symbols *kernel; /* in kallsyms, used instead of symbols; NULL: none */
	uint64_t kernel_base;
	struct elf_image *elf; /* NULL: not ELF */
	/* of a file that describes generated code, instead of symbols */
	struct history history;
	struct read_mark read;
	bool is_known;         /* image_goes_on was asked */
	struct jit_lines *jit; /* NULL: not jitdump */
	struct jitdump *dump;  /* likewise */
};

/* NULL: out of memory. */
struct image *image_new(void);

/* read_mark.c. Are the bytes that were read still there? Else reading begins again. */
void read_mark_check(struct read_mark *r, int fd);
/* It was read up to there. */
void read_mark_note(struct read_mark *r, int fd, uint64_t at);
/* Add bytes that were read to the mark. Unlike read_mark_note, this does not read the file again,
 * so a later write is not taken for bytes that were read. */
void read_mark_take(struct read_mark *r, const char *bytes, size_t n);
uint64_t read_mark_hash(const struct read_mark *r);
/* Do the bytes before that place have that hash? */
bool read_mark_holds(int fd, uint64_t at, uint64_t hash);

/* Read on in a file of that kind. 0, IMAGE_*, -errno */
int perf_map_read_on(struct image *image, int fd);
int jitdump_read_on(struct image *image, int fd);

DEFINE_CLEANUP(struct image *, image_free)
