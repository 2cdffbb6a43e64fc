/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Names come from mapped string tables, where they can stay, and from text files and the demangler,
 * which need storage: a chain of chunks that is freed at once. Demangled names are cached by the
 * address of the mangled form, since DWARF uses the same string table entry for each inlined copy
 * of a function.
 */

#include "daemon/namer/names.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/namer/demangle.h"
#include "daemon/namer/image.h"
#include "daemon/namer/name_cut.h"
#include "proto/base/hash_table.h"

/* The first chunk of an image, and what they grow to: most images have few names. */
#define CHUNK_BYTES_MIN ((size_t)1 << 10)
#define CHUNK_BYTES_MAX ((size_t)64 << 10)
#define NAME_JOINED_MAX (4 * IMAGE_NAME_BYTES_MAX) /* such as a folder and a path in it */

struct names_chunk {
	struct names_chunk *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

struct names_entry {
	const char *raw;
	const char *readable;
	UT_hash_handle hh;
};

static void *names_allocate(struct names *n, size_t size, size_t alignment)
{
	if (size + alignment > NAMES_BYTES_MAX - n->n_bytes)
		return NULL;
	if (n->chunk)
		n->chunk->used = (n->chunk->used + alignment - 1) & ~(alignment - 1);

	if (!n->chunk || n->chunk->used > n->chunk->size ||
		n->chunk->size - n->chunk->used < size) {
		size_t room = n->chunk ? 2 * n->chunk->size : CHUNK_BYTES_MIN;
		if (room > CHUNK_BYTES_MAX)
			room = CHUNK_BYTES_MAX;
		if (room < size)
			room = size;
		struct names_chunk *chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		*chunk = (struct names_chunk){.next = n->chunk, .size = room};
		n->chunk = chunk;
	}

	void *p = n->chunk->bytes + n->chunk->used;
	n->chunk->used += size;
	n->n_bytes += size;
	return p;
}

const char *names_copy(struct names *n, const char *text, size_t length)
{
	char name[IMAGE_NAME_BYTES_MAX + 1];
	size_t taken = name_cut(
		text, strnlen(text, length < NAME_TEXT_MAX ? length : NAME_TEXT_MAX), name);

	char *copy = names_allocate(n, taken + 1, 1);
	return copy ? memcpy(copy, name, taken + 1) : NULL;
}

const char *names_join(struct names *n, const char *text, const char *suffix)
{
	char name[NAME_JOINED_MAX];
	size_t text_length = strnlen(text, sizeof(name) - 1);
	size_t room = sizeof(name) - 1 - text_length;
	size_t suffix_length = strnlen(suffix, room);

	memcpy(name, text, text_length);
	memcpy(name + text_length, suffix, suffix_length);
	return names_copy(n, name, text_length + suffix_length);
}

static const char *names_make_readable(struct names *n, const char *raw)
{
	char readable[DEMANGLED_BYTES];

	if (demangle(raw, readable) == 0)
		return names_copy(n, readable, sizeof(readable) - 1);
	if (strnlen(raw, IMAGE_NAME_BYTES_MAX + 1) > IMAGE_NAME_BYTES_MAX)
		return names_copy(n, raw, SIZE_MAX);
	return raw;
}

/* A default version, "clock_gettime@@GLIBC_2.17", matters only to the linker. Source: binutils' ld manual, "VERSION
 * Command". */
static const char *names_make_plain(struct names *n, const char *raw)
{
	char plain[IMAGE_NAME_BYTES_MAX + 1];
	const char *version = strstr(raw, "@@");
	if (!version || version == raw || (size_t)(version - raw) >= sizeof(plain))
		return names_make_readable(n, raw);
	memcpy(plain, raw, (size_t)(version - raw));
	plain[version - raw] = '\0';
	const char *made = names_make_readable(n, plain);
	return made == plain ? names_copy(n, plain, sizeof(plain)) : made;
}

static const char *names_cached(
	struct names *n, const char *raw, const char *(*make)(struct names *n, const char *raw))
{
	if (!raw)
		return NULL;

	struct names_entry *entry;
	HASH_FIND(hh, n->cache, &raw, sizeof(raw), entry);
	if (entry)
		return entry->readable;

	const char *readable = make(n, raw);
	if (!readable)
		return raw;
	if (readable == raw)
		return raw; /* cheap to repeat, and mostly needed once */

	entry = names_allocate(n, sizeof(*entry), _Alignof(struct names_entry));
	if (entry) {
		*entry = (struct names_entry){.raw = raw, .readable = readable};
		HASH_ADD(hh, n->cache, raw, sizeof(entry->raw), entry);
	}
	return readable;
}

void names_clear(struct names *n)
{
	HASH_CLEAR(hh, n->cache);
	for (struct names_chunk *chunk = n->chunk, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	*n = (struct names){0};
}

const char *names_demangle(struct names *n, const char *raw)
{
	return names_cached(n, raw, names_make_readable);
}

const char *names_symbol(struct names *n, const char *raw)
{
	return names_cached(n, raw, names_make_plain);
}
