/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Names, each kept once: a hot function is the place of thousands of frames. They live as long as
 * the frames that point at them, which a sweep finds out; their sum is bounded, and beyond it a
 * frame stays without a name.
 */
#define HASH_NONFATAL_OOM 1 /* an element that found no memory has no table; checked below */
#include "daemon/attribute/worker.h"

#include <stdlib.h>

struct string {
	UT_hash_handle hh;
	bool kept;
	char text[];
};

const char *strings_intern(struct strings *s, const char *text, size_t n)
{
	struct string *found = NULL;

	HASH_FIND(hh, s->set, text, n, found);
	if (found)
		return found->text;
	size_t bytes = sizeof(*found) + n + 1;
	if (s->bytes + bytes > NAMER_STRINGS_BYTES_MAX)
		return NULL;
	found = calloc(1, bytes);
	if (!found)
		return NULL;
	memcpy(found->text, text, n);
	found->text[n] = 0;
	HASH_ADD_KEYPTR(hh, s->set, found->text, n, found);
	if (!found->hh.tbl) {
		free(found);
		return NULL;
	}
	s->bytes += bytes;
	return found->text;
}

void strings_keep(const char *text)
{
	if (text)
		((struct string *)(text - offsetof(struct string, text)))->kept = true;
}

void strings_sweep(struct strings *s)
{
	struct string *next = NULL;

	for (struct string *at = s->set; at; at = next) {
		next = at->hh.next;
		if (at->kept) {
			at->kept = false;
			continue;
		}
		s->bytes -= sizeof(*at) + at->hh.keylen + 1;
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
	s->bytes = 0;
}
