/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Growing: the code described by a file to which a compiler adds, a perf map or a jitdump
 *
 *      perf_map.c, jitdump.c   read entries on in the file, and enter them
 *      read_mark.c             up to where it was read, and whether those bytes are unchanged
 *      growing.c               functions that image.c calls for either
 */

#include "daemon/namer/history.h"
#include "daemon/namer/image.h"
#include "daemon/namer/names.h"

struct jitdump;
struct unwind_table;

/* The place up to which a growing file was read. */
struct read_mark {
	uint64_t at;      /* up to here */
	uint8_t tail[64]; /* bytes before it: if they changed, the file was rewritten */
	uint8_t n_tail;
	uint32_t n_rewrites; /* number of rewrites */
	bool cut;            /* the last line had no newline, and is read again */
};

struct growing {
	struct history history;
	struct names names;
	struct read_mark read;
	bool is_known;        /* growing_goes_on was asked */
	struct jitdump *dump; /* NULL: a perf map */
};

/* --- growing.c: contracts as of the functions of the same name in image.h ---------------------- */

int growing_open_perf_map(int fd, struct growing **ret_growing);
int growing_open_jitdump(int fd, struct growing **ret_growing);
int growing_read_on(struct growing *g, int fd);
uint32_t growing_order(const struct growing *g);
uint32_t growing_n_rewrites(const struct growing *g);
struct image_mark growing_mark(const struct growing *g);
bool growing_goes_on(struct growing *g, int fd, const struct image_mark *mark);
uint32_t growing_changes(
	const struct growing *g, uint32_t after, struct image_change *ret_change, uint32_t max);
int growing_table(const struct growing *g, uint16_t machine, size_t n_bytes_max,
	struct unwind_table **ret_table);
bool growing_has_lines(const struct growing *g);
/* The place of an address by the first `order` ranges; none is added if it is not known. */
void growing_name(struct growing *g, uint64_t addr, uint32_t order, struct image_naming *naming);
struct growing *growing_free(struct growing *g);

/* --- read_mark.c ------------------------------------------------------------------------------ */

/* Are the bytes that were read unchanged? If not, reading begins again. */
void read_mark_check(struct read_mark *r, int fd);
/* Note that the file was read up to that place. */
void read_mark_note(struct read_mark *r, int fd, uint64_t at);
/* Add bytes that were read to the mark. Unlike read_mark_note, this does not read the file again,
 * so bytes of a later write do not count as read. */
void read_mark_take(struct read_mark *r, const char *bytes, size_t n);
uint64_t read_mark_hash(const struct read_mark *r);
/* Do the bytes before that place have that hash? */
bool read_mark_holds(int fd, uint64_t at, uint64_t hash);

/* --- perf_map.c, jitdump.c -------------------------------------------------------------------- */

/* Read on in a file of that kind. 0, IMAGE_*, -errno */
int perf_map_read_on(struct growing *g, int fd);
int jitdump_read_on(struct growing *g, int fd);
/* NULL: out of memory. */
struct jitdump *jitdump_new(struct growing *g);
/* Set file and line of an address in the code with that tag, if known. */
void jitdump_find(const struct jitdump *d, uint32_t tag, uint64_t addr, struct image_place *place);
/* image_table, of the code in that history. */
int jitdump_table(const struct jitdump *d, const struct history *h, uint16_t machine,
	size_t n_bytes_max, struct unwind_table **ret_table);
struct jitdump *jitdump_free(struct jitdump *d);
