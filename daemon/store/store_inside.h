/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The store's own: names of files, and what is in one */

#include "daemon/store/store.h"

#define STORE_SUFFIX ".mprf"

/* "20261121T140000Z-1f3a9c2b.mprf"; n: 2 and up make another of that second. */
void store_name(char text[STORE_NAME_BYTES], enum tier tier, int64_t start_ns, const char *boot_id,
	unsigned n);
/* The tier and start that a name relative to the store says; false: none that we give. */
bool store_name_parse(const char *name, enum tier *ret_tier, int64_t *ret_start_ns);

/* Everything about the file of f->name but that: sizes always, content if no writer of ours has it
 * open. 0; STORE_GONE; STORE_CORRUPT with *e; -errno. */
enum { STORE_GONE = 64 };
int store_look(struct store *s, struct store_file *f, struct store_error *e);
/* The sizes alone. 0, STORE_GONE, -errno. */
int store_look_size(const struct store *s, struct store_file *f);

/* Note in the windows' files which of them this coarser file has among its sources. */
void store_mark_sources(struct store *s, const struct store_file *f);

/* List all folders: what a dead daemon left is sealed or set aside. 0 or -errno. */
int store_scan(struct store *s);
/* Seal what a writer left that is no more; the file is looked at anew. 0, STORE_*, -errno. */
int store_recover(struct store *s, struct store_file *f, struct store_error *e);

/* Entries. store_enter takes a copy and keeps the order; the index is good until the next change.
 */
int store_enter(struct store *s, const struct store_file *f, size_t *ret_at);
void store_drop(struct store *s, size_t at);
/* n_files if there is none. */
size_t store_find(const struct store *s, const char *name);
void store_sum(struct store *s);

/* Unlink a file with its log and journal. 0 or -errno; one that is gone already is fine. */
int store_unlink(const struct store *s, const char *name);
/* Absolute path; NULL without memory. */
char *store_path(const struct store *s, const char *name);
