/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The store's internals: file names, the list of files, and a look into one */

#include "daemon/store/store.h"

#define STORE_SUFFIX ".mprf"

/* --- store_name.c ----------------------------------------------------------------------------- */

/* "20261121T140000Z-1f3a9c2b.mprf"; n: 2 and up for further files of that second. */
void store_name(char text[STORE_NAME_BYTES], enum tier tier, int64_t start_ns, const char *boot_id,
	unsigned n);
/* The tier and start in a name relative to the store; false: not one of our names. */
bool store_name_parse(const char *name, enum tier *ret_tier, int64_t *ret_start_ns);

/* --- pin.c ------------------------------------------------------------------------------------ */

/* Enter the pinned jobs of the folder; unfinished files are removed, damaged ones are set aside. 0
 * or -errno. */
int store_scan_pins(struct store *s);
/* Enter those of the folder that are not in the list, as store_pin_note: at most n_max, the next ones at the
 * next call. s->pins_unread says whether there are more. 0 or -errno. */
int store_look_for_pins(struct store *s, size_t n_max);
/* Set a damaged pin aside; 0 also if there is none of that name. 0 or -errno. */
int store_pin_set_aside(struct store *s, const char *name);

/* --- store_list.c ----------------------------------------------------------------------------- */

/* store_enter copies the file and keeps the order; the index is valid until the next change. */
int store_enter(struct store *s, const struct store_file *f, size_t *ret_at);
void store_drop(struct store *s, size_t at);
/* Returns n_files if there is none. */
size_t store_find(const struct store *s, const char *name);
void store_sum(struct store *s);

/* --- store_look.c ----------------------------------------------------------------------------- */

/* Absolute path; NULL if out of memory. */
char *store_path(const struct store *s, const char *name);

/* Fill in everything about the file f->name: sizes always, content unless a writer of ours has it
 * open, or it cannot be read now (then f->unread, and the rest is as f had it). f is as the file
 * was known before, or zero but for name, tier and start. 0; STORE_GONE; STORE_CORRUPT with *e;
 * -errno. */
enum { STORE_GONE = 64 };
int store_look(struct store *s, struct store_file *f, struct store_error *e);
/* Only the sizes. 0, STORE_GONE, -errno. */
int store_look_size(const struct store *s, struct store_file *f);

/* Mark the window files that are sources of this coarser file. */
void store_mark_sources(struct store *s, const struct store_file *f);

/* Seal a file whose writer died, and look at it again. 0, STORE_*, -errno. */
int store_recover(struct store *s, struct store_file *f, struct store_error *e);

/* True if it was left over from a file that no longer exists. An unfinished version of a roll-up is
 * never of use to the next one. */
bool store_is_orphan(const struct store *s, const char *name);

/* Unlink a file with its log and journal. 0, also if it does not exist; -errno. */
int store_unlink(const struct store *s, const char *name);
