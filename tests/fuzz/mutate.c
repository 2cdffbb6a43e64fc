/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A mutation is a few strokes. A stroke picks a place that means something and writes there what
 * programs get wrong: 0, all bits, one more, the size of the file, a piece of the neighbour. Half
 * of the strokes fall into the first bytes of a place, since headers lead everything else.
 */
#include "tests/fuzz/mutate.h"

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define STROKES_MAX 6 /* more leave little that parses */
#define HEAD_BYTES 32 /* of a section: the header of a unit, a note, a compressed stream */
#define RUN_BYTES_MAX 48
#define SECTION_TRIES 12

/* A place in the file, and the file. */
struct canvas {
	uint8_t *data;
	size_t n, room;
	uint64_t seed;
};
struct span {
	size_t at, n;
};

uint64_t mutate_any(uint64_t *seed, uint64_t below)
{
	uint64_t x = *seed += 0x9e3779b97f4a7c15u; /* Source: Vigna, splitmix64 */

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return below ? (x ^ (x >> 31)) % below : 0;
}

static uint64_t any(struct canvas *c, uint64_t below)
{
	return mutate_any(&c->seed, below);
}

static uint64_t odd_value(struct canvas *c)
{
	static const uint64_t odd[] = {0, 1, 2, 3, 7, 8, 0x7f, 0x80, 0xff, 0x100, 0xfff, 0x1000,
		0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff,
		0x100000000, INT64_MAX, 1ull << 63, UINT64_MAX - 7, UINT64_MAX};
	uint64_t value = odd[any(c, sizeof(odd) / sizeof(*odd))];

	switch (any(c, 4)) {
	case 0:
		return c->n - 4 + any(c, 8);
	case 1:
		return any(c, c->n + 1);
	default:
		return value;
	}
}

static void put(struct canvas *c, size_t at, size_t bytes, uint64_t value)
{
	if (at < c->n && bytes <= c->n - at)
		memcpy(c->data + at, &value, bytes);
}

static void put_odd(struct canvas *c, struct span s)
{
	size_t bytes = (size_t)1 << any(c, 4);
	uint64_t value = odd_value(c), old = 0;

	if (bytes > s.n)
		bytes = 1;
	size_t at = s.at + any(c, s.n - bytes + 1);
	if (any(c, 2))
		at = s.at + (at - s.at) / bytes * bytes;
	if (any(c, 3) == 0) { /* a little more or less than it was */
		memcpy(&old, c->data + at, bytes);
		value = old + any(c, 17) - 8;
	}
	put(c, at, bytes, value);
}

static void fill_run(struct canvas *c, struct span s)
{
	static const uint8_t with[] = {0, 0xff, 0x80, 0x7f, 1, 'A'};
	size_t at = any(c, s.n), n = 1 + any(c, RUN_BYTES_MAX);
	size_t pick = any(c, sizeof(with) + 1);

	n = n < s.n - at ? n : s.n - at;
	for (size_t i = 0; i < n; i++)
		c->data[s.at + at + i] = pick < sizeof(with) ? with[pick] : (uint8_t)any(c, 256);
}

static void copy_piece(struct canvas *c, struct span s)
{
	size_t n = 1 + any(c, s.n < 256 ? s.n : 256);
	size_t from = s.at + any(c, s.n - n + 1), to = s.at + any(c, s.n - n + 1);

	memmove(c->data + to, c->data + from, n);
}

/* One stroke within a place. */
static void stroke(struct canvas *c, struct span s)
{
	if (s.at >= c->n)
		return;
	if (s.n > c->n - s.at)
		s.n = c->n - s.at;
	if (s.n > HEAD_BYTES && any(c, 2))
		s.n = HEAD_BYTES;
	if (s.n == 0)
		return;
	switch (any(c, 8)) {
	case 0:
	case 1:
		c->data[s.at + any(c, s.n)] ^= (uint8_t)(1u << any(c, 8));
		return;
	case 2:
		fill_run(c, s);
		return;
	case 3:
		copy_piece(c, s);
		return;
	case 4:
		c->data[s.at + any(c, s.n)] = (uint8_t)any(c, 256);
		return;
	default:
		put_odd(c, s);
	}
}

static void cut(struct canvas *c, size_t near)
{
	size_t n = any(c, 2) ? near + any(c, 64) : any(c, c->n);

	c->n = n < 1 ? 1 : n < c->n ? n : c->n;
}

typedef void stroke_function(struct canvas *);

static size_t mutate(uint8_t *data, size_t n, size_t room, uint64_t seed, stroke_function *one)
{
	struct canvas c = {data, n, room, seed};

	if (n == 0)
		c.data[0] = 0, c.n = 1;
	for (uint64_t left = 1 + any(&c, STROKES_MAX); left; left--)
		one(&c);
	return c.n;
}

/* --- ELF -------------------------------------------------------------------------------------- */

struct sections {
	size_t at, count, names;
};

static Elf64_Shdr section_at(const struct canvas *c, const struct sections *s, size_t i)
{
	Elf64_Shdr h;

	memcpy(&h, c->data + s->at + i * sizeof(h), sizeof(h));
	return h;
}

static void section_set(struct canvas *c, const struct sections *s, size_t i, const Elf64_Shdr *h)
{
	memcpy(c->data + s->at + i * sizeof(*h), h, sizeof(*h));
}

static bool find_sections(const struct canvas *c, struct sections *ret)
{
	Elf64_Ehdr e;

	if (c->n < sizeof(e))
		return false;
	memcpy(&e, c->data, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
		e.e_ident[EI_DATA] != ELFDATA2LSB || e.e_shentsize != sizeof(Elf64_Shdr) ||
		e.e_shnum == 0 || e.e_shoff > c->n ||
		e.e_shnum > (c->n - e.e_shoff) / sizeof(Elf64_Shdr))
		return false;
	*ret = (struct sections){e.e_shoff, e.e_shnum, 0};
	if (e.e_shstrndx < e.e_shnum)
		ret->names = section_at(c, ret, e.e_shstrndx).sh_offset;
	return true;
}

/* What the namer reads: all that is not code or data of the program itself. */
static bool is_read(const struct canvas *c, const struct sections *s, const Elf64_Shdr *h)
{
	static const char *const prefix[] = {".debug", ".zdebug", ".symtab", ".strtab", ".dyn",
		".gnu", ".note", ".eh", ".shstr"};
	size_t at = s->names + h->sh_name;

	for (size_t i = 0; at < c->n && i < sizeof(prefix) / sizeof(*prefix); i++)
		if (c->n - at > strlen(prefix[i]) &&
			memcmp(c->data + at, prefix[i], strlen(prefix[i])) == 0)
			return true;
	return false;
}

static void within_section(struct canvas *c, const struct sections *s)
{
	Elf64_Shdr h = section_at(c, s, any(c, s->count));

	for (int i = 0; i < SECTION_TRIES && !is_read(c, s, &h); i++)
		h = section_at(c, s, any(c, s->count));
	if (h.sh_type != SHT_NOBITS && h.sh_offset < c->n)
		stroke(c, (struct span){h.sh_offset, h.sh_size});
}

static void section_field(struct canvas *c, const struct sections *s)
{
	static const uint8_t offset[] = {offsetof(Elf64_Shdr, sh_offset),
		offsetof(Elf64_Shdr, sh_size), offsetof(Elf64_Shdr, sh_entsize),
		offsetof(Elf64_Shdr, sh_addr), offsetof(Elf64_Shdr, sh_flags),
		offsetof(Elf64_Shdr, sh_addralign), offsetof(Elf64_Shdr, sh_link),
		offsetof(Elf64_Shdr, sh_info), offsetof(Elf64_Shdr, sh_type),
		offsetof(Elf64_Shdr, sh_name)};
	size_t field = any(c, sizeof(offset));

	put(c, s->at + any(c, s->count) * sizeof(Elf64_Shdr) + offset[field], field < 6 ? 8 : 4,
		odd_value(c));
}

/* Two sections that overlap, or that have each other's names. */
static void mix_sections(struct canvas *c, const struct sections *s)
{
	size_t a = any(c, s->count), b = any(c, s->count);
	Elf64_Shdr x = section_at(c, s, a), y = section_at(c, s, b);
	uint32_t name = x.sh_name;

	switch (any(c, 3)) {
	case 0:
		x.sh_offset = y.sh_offset + any(c, y.sh_size);
		break;
	case 1:
		x.sh_name = y.sh_name;
		y.sh_name = name;
		break;
	default:
		x.sh_offset = y.sh_offset;
		x.sh_size = y.sh_size;
	}
	section_set(c, s, a, &x);
	section_set(c, s, b, &y);
}

/* A section that says it is compressed, or whose stream says that it is enormous. */
static void compress_section(struct canvas *c, const struct sections *s)
{
	size_t i = any(c, s->count);
	Elf64_Shdr h = section_at(c, s, i);

	for (int k = 0; k < SECTION_TRIES && !is_read(c, s, &h); k++)
		h = section_at(c, s, i = any(c, s->count));
	if (!(h.sh_flags & SHF_COMPRESSED) || any(c, 8) == 0)
		h.sh_flags ^= SHF_COMPRESSED;
	section_set(c, s, i, &h);
	if (h.sh_offset < c->n) {
		put(c, h.sh_offset, 4, any(c, 4));
		put(c, h.sh_offset + offsetof(Elf64_Chdr, ch_size), 8, odd_value(c));
	}
}

static void stroke_elf(struct canvas *c)
{
	struct sections s;

	if (!find_sections(c, &s)) {
		stroke(c, (struct span){0, any(c, 2) ? 64 : c->n});
		return;
	}
	switch (any(c, 20)) {
	case 0:
		stroke(c, (struct span){0, sizeof(Elf64_Ehdr)});
		return;
	case 1:
		stroke(c, (struct span){sizeof(Elf64_Ehdr), 16 * sizeof(Elf64_Phdr)});
		return;
	case 2:
	case 3:
		section_field(c, &s);
		return;
	case 4:
		mix_sections(c, &s);
		return;
	case 5:
		compress_section(c, &s);
		return;
	case 6:
		if (any(c, 4) == 0)
			cut(c, section_at(c, &s, any(c, s.count)).sh_offset);
		return;
	default:
		within_section(c, &s);
	}
}

size_t mutate_elf(uint8_t *data, size_t n, size_t room, uint64_t seed)
{
	return mutate(data, n, room, seed, stroke_elf);
}

/* --- SQLite ----------------------------------------------------------------------------------- */

#define SQLITE_HEADER_BYTES 100
#define PAGE_HEADER_BYTES 12

static void stroke_sqlite(struct canvas *c)
{
	size_t page = c->n > 17 ? (size_t)c->data[16] << 8 | c->data[17] : 0;

	if (page == 1)
		page = 65536;
	if (page < 512 || page > c->n) {
		stroke(c, (struct span){0, c->n});
		return;
	}
	size_t at = any(c, c->n / page) * page, begin = at ? at : SQLITE_HEADER_BYTES;
	size_t other = any(c, c->n / page) * page;
	switch (any(c, 16)) {
	case 0:
		stroke(c, (struct span){0, SQLITE_HEADER_BYTES});
		return;
	case 1:
	case 2:
		stroke(c, (struct span){begin, PAGE_HEADER_BYTES});
		return;
	case 3:
	case 4: /* cell pointers */
		stroke(c, (struct span){begin + 8, 128});
		return;
	case 5:
		memmove(c->data + at, c->data + other, page);
		return;
	case 6:
		if (any(c, 4) == 0)
			cut(c, at);
		return;
	default: /* cells grow from the end */
		stroke(c, (struct span){at + page / 2 + any(c, page / 2), page / 8});
	}
}

size_t mutate_sqlite(uint8_t *data, size_t n, size_t room, uint64_t seed)
{
	return mutate(data, n, room, seed, stroke_sqlite);
}

/* --- jitdump ---------------------------------------------------------------------------------- */

#define JITDUMP_HEADER_BYTES 40
#define JITDUMP_RECORD_BYTES 64     /* without name and code, at most */
#define JITDUMP_UNWINDING_BYTES 128 /* V8 and CPython write some 100 */

static void stroke_jitdump(struct canvas *c)
{
	size_t at = JITDUMP_HEADER_BYTES, picked = at, n_seen = 0;
	uint32_t bytes;

	for (; at + 16 <= c->n; at += bytes) {
		memcpy(&bytes, c->data + at + 4, 4);
		if (bytes < 16 || bytes > c->n - at)
			break;
		if (any(c, ++n_seen) == 0)
			picked = at;
	}
	switch (any(c, 10)) {
	case 0:
		stroke(c, (struct span){0, JITDUMP_HEADER_BYTES});
		return;
	case 1:
		put(c, picked + 4, 4, odd_value(c));
		return;
	case 2:
		put(c, picked, 4, any(c, 6));
		return;
	case 3:
		cut(c, picked);
		return;
	case 4:
		stroke(c, (struct span){0, c->n});
		return;
	case 5:
		stroke(c, (struct span){picked + 40, JITDUMP_UNWINDING_BYTES});
		return;
	default:
		stroke(c, (struct span){picked + 16, JITDUMP_RECORD_BYTES});
	}
}

size_t mutate_jitdump(uint8_t *data, size_t n, size_t room, uint64_t seed)
{
	return mutate(data, n, room, seed, stroke_jitdump);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* n bytes of text in place of `drop` bytes at `at`. */
static void splice(struct canvas *c, size_t at, size_t drop, const void *text, size_t n)
{
	if (drop > c->n - at || n > c->room - (c->n - drop))
		return;
	memmove(c->data + at + n, c->data + at + drop, c->n - at - drop);
	memcpy(c->data + at, text, n);
	c->n += n - drop;
	if (c->n == 0)
		c->data[c->n++] = '\n';
}

static size_t start_of_line(const struct canvas *c, size_t at)
{
	while (at > 0 && c->data[at - 1] != '\n')
		at--;
	return at;
}

static size_t bytes_of_line(const struct canvas *c, size_t at)
{
	const uint8_t *end = memchr(c->data + at, '\n', c->n - at);

	return end ? (size_t)(end + 1 - (c->data + at)) : c->n - at;
}

static size_t bytes_of_word(const struct canvas *c, size_t at)
{
	size_t n = 0;

	while (at + n < c->n && c->data[at + n] != ' ' && c->data[at + n] != '\n')
		n++;
	return n;
}

static void stroke_lines(struct canvas *c)
{
	static const char *const words[] = {"", " ", "0", "ffffffffffffffff", "10000000000000000",
		"-1", "0x10", "7fffffffffffffff", "\xff\xfe", "\xe2\x80\xae", "%s%n", "\x1b[2J"};
	char text[64];
	size_t at = any(c, c->n), line = start_of_line(c, at), n = bytes_of_line(c, line);
	const char *word = words[any(c, sizeof(words) / sizeof(*words))];

	switch (any(c, 8)) {
	case 0: /* twice */
		if (n <= c->room - c->n) {
			memmove(c->data + line + n, c->data + line, c->n - line);
			c->n += n;
		}
		return;
	case 1:
		splice(c, line, n, "", 0);
		return;
	case 2:
		splice(c, line, bytes_of_word(c, line), word, strlen(word));
		return;
	case 3:
		snprintf(text, sizeof(text), "%llx", (unsigned long long)odd_value(c));
		splice(c, line, bytes_of_word(c, line), text, strlen(text));
		return;
	case 4:
		splice(c, at, bytes_of_word(c, at), word, strlen(word));
		return;
	case 5: /* two lines become one */
		splice(c, line + n - 1, 1, "", 0);
		return;
	case 6:
		if (any(c, 8) == 0)
			cut(c, line);
		return;
	default:
		stroke(c, (struct span){line, n});
	}
}

size_t mutate_lines(uint8_t *data, size_t n, size_t room, uint64_t seed)
{
	return mutate(data, n, room, seed, stroke_lines);
}
