/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Names of frames, each kept once */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/naming/file.h"

struct string;
struct naming_user;
struct naming_users;

struct strings {
	struct string *set; /* uthash */
	uint64_t bytes;
	struct quota *pool; /* as in struct file_table */
	uid_t pool_uid;
};
void strings_begin(struct strings *s, const struct file_table *files);
/* The shared copy of n bytes, for a frame of this user; NULL if there is no room. */
const char *strings_intern(struct strings *s, const char *text, size_t n, struct naming_user *u);
void strings_clear(struct strings *s);
/* Free all strings not kept since the last call; text is what strings_intern returned. */
void strings_keep(const char *text);
void strings_sweep(struct strings *s, const struct naming_users *users);
/* Take or give back room for other data in the pool of names, if there is one. False: the pool is
 * full. */
bool strings_take_room(struct strings *s, uint64_t bytes);
void strings_give_room(struct strings *s, uint64_t bytes);
