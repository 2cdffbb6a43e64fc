/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Names, each stored once: a hot function is the place of thousands of frames. They stay as long as
 * frames point to them, which a sweep checks. Their total is bounded, and so is one user's share: at
 * most as much as is left for others. Beyond these limits a frame stays unnamed.
 */
#include "daemon/naming/namer_private.h"

#include <stdlib.h>

struct string {
	UT_hash_handle hh;
	bool kept;
	uint8_t user; /* index of the user whose frame needed it first */
	char text[];
};

void strings_begin(struct strings *s, const struct file_table *files)
{
	s->pool = files ? files->pool : NULL;
	s->pool_uid = files ? files->pool_uid : 0;
}

bool strings_take_room(struct strings *s, uint64_t bytes)
{
	return !s->pool || quota_take(s->pool, s->pool_uid, POOL_BYTES_MAX, bytes);
}

void strings_give_room(struct strings *s, uint64_t bytes)
{
	if (s->pool)
		quota_give(s->pool, s->pool_uid, bytes);
}

const char *strings_intern(struct strings *s, const char *text, size_t n, struct naming_user *u)
{
	struct string *found = NULL;

	HASH_FIND(hh, s->set, text, n, found);
	if (found)
		return found->text;
	size_t bytes = sizeof(*found) + n + 1;
	if (s->bytes + u->string_bytes + bytes > NAMER_STRINGS_BYTES_MAX)
		return NULL;
	if (!strings_take_room(s, bytes))
		return NULL;
	found = calloc(1, bytes);
	if (found) {
		memcpy(found->text, text, n);
		found->text[n] = 0;
		HASH_ADD_KEYPTR(hh, s->set, found->text, n, found);
	}
	if (!found || !found->hh.tbl) {
		strings_give_room(s, bytes);
		free(found);
		return NULL;
	}
	found->user = u->index;
	u->string_bytes += bytes;
	s->bytes += bytes;
	return found->text;
}

void strings_keep(const char *text)
{
	if (text)
		((struct string *)(text - offsetof(struct string, text)))->kept = true;
}

void strings_sweep(struct strings *s, const struct naming_users *users)
{
	struct string *next = NULL;
	struct naming_user *u;

	for (uint32_t i = 0; (u = naming_user_at(users, i)); i++)
		u->string_bytes = 0;

	for (struct string *at = s->set; at; at = next) {
		next = at->hh.next;
		size_t bytes = sizeof(*at) + at->hh.keylen + 1;
		if (at->kept) {
			at->kept = false;
			u = naming_user_at(users, at->user);
			if (u)
				u->string_bytes += bytes;
			continue;
		}
		s->bytes -= bytes;
		strings_give_room(s, bytes);
		HASH_DEL(s->set, at);
		free(at);
	}
}

void strings_clear(struct strings *s)
{
	struct string *next = NULL;

	for (struct string *at = s->set; at; at = next) {
		next = at->hh.next;
		HASH_DEL(s->set, at);
		free(at);
	}
	strings_give_room(s, s->bytes);
	s->bytes = 0;
}
