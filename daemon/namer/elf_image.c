/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* An ELF file combines two sources of names: the symbols (of the file itself, its mini debug
 * information and its separate debug file), and the lines of whichever has DWARF.
 *
 * DWARF takes most of the time and nearly all of the memory, so it is opened when the first name is
 * asked for, and closed in two steps, while the symbols stay: elf_image_drop_units frees what libdw read
 * of single units, elf_image_drop_lines also the unpacked sections.
 */

#include <errno.h>
#include <gelf.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwelf.h>

#include "daemon/namer/dwarf_lines.h"
#include "daemon/namer/elf_file.h"
#include "daemon/namer/elf_image.h"
#include "daemon/namer/elf_symbols.h"
#include "daemon/namer/function_starts.h"
#include "daemon/namer/go_table.h"
#include "daemon/namer/mini_debug.h"
#include "daemon/namer/names.h"
#include "daemon/namer/split_files.h"
#include "proto/base/memory.h"

DEFINE_CLEANUP(struct elf_image *, elf_image_free)

/* A core file has thousands of segments; programs have about ten. */
#define SEGMENTS_MAX 1024

/* A debug file without a build id is identified only by its checksum, which requires reading all of
 * it: half a second for this many bytes, several seconds on a slow board. A larger one is not
 * used. */
#define CHECKSUM_BYTES_MAX ((size_t)1 << 30)

struct segment {
	uint64_t offset, addr, n;
	bool executable;
};

struct elf_image {
	struct spans symbols; /* by virtual address */
	struct spans starts;  /* likewise; read when an address without a symbol is asked for */
	bool has_starts;      /* they were read */
	struct names names;
	struct elf_file self, mini, debug, alt;
	struct split_files split;
	bool self_symtab, mini_symtab, debug_symtab;
	struct go_table go; /* version GO_NONE: not a program of Go */
	struct segment *segment;
	size_t n_segments;
	struct elf_file *source; /* self or debug: has DWARF; NULL: neither, or libdw rejects it */
	struct dwarf_lines *lines; /* NULL: not opened yet */
};

static int elf_read_segments(struct elf_image *e)
{
	size_t n;
	if (elf_getphdrnum(e->self.elf, &n) || n > SEGMENTS_MAX)
		return n > SEGMENTS_MAX ? IMAGE_OVERSIZE : IMAGE_MALFORMED;

	e->segment = calloc(n ? n : 1, sizeof(*e->segment));
	if (!e->segment)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(e->self.elf, (int)i, &header) || header.p_type != PT_LOAD)
			continue;
		e->segment[e->n_segments++] = (struct segment){
			.offset = header.p_offset,
			.addr = header.p_vaddr,
			.n = header.p_filesz,
			.executable = header.p_flags & PF_X,
		};
	}
	return 0;
}

/* A page of the file may be mapped twice; code is in the executable mapping. */
static const struct segment *segment_of(const struct elf_image *e, uint64_t offset)
{
	const struct segment *found = NULL;

	for (size_t i = 0; i < e->n_segments; i++) {
		const struct segment *s = &e->segment[i];
		if (offset < s->offset || offset - s->offset >= s->n)
			continue;
		if (found && !s->executable)
			continue;
		found = s;
		if (s->executable)
			break;
	}
	return found;
}

/* Add the symbols of .gnu_debugdata. An error in it does not affect the rest. */
static int elf_collect_mini(struct elf_image *e, struct symbols *symbols)
{
	uint8_t *bytes;
	size_t n;

	if (e->mini.elf)
		return elf_symbols_collect(e->mini.elf, SHT_SYMTAB, symbols);
	if (mini_debug_unpack(e->self.elf, &bytes, &n) || elf_file_take(&e->mini, bytes, n))
		return ELF_SYMBOLS_NONE;
	int r = elf_symbols_collect(e->mini.elf, SHT_SYMTAB, symbols);
	e->mini_symtab = r == 0;
	return r;
}

static int elf_collect(struct elf_image *e, struct symbols *symbols)
{
	int r = elf_symbols_collect(e->self.elf, SHT_SYMTAB, symbols);
	const size_t n_whole = symbols->n;
	if (r == 0) /* left by `strip -K`: smaller than .dynsym, which a whole .symtab contains */
		r = elf_symbols_collect(e->self.elf, SHT_DYNSYM, symbols);
	e->self_symtab = n_whole > 0 && symbols->n - n_whole <= n_whole;
	if (e->self_symtab)
		symbols->n = n_whole;
	else if (n_whole > 0 && r == 0)
		r = ELF_SYMBOLS_NONE;
	if (e->self_symtab && r == ELF_SYMBOLS_NONE)
		r = 0;
	if (r == ELF_SYMBOLS_NONE && e->debug.elf) {
		r = elf_symbols_collect(e->debug.elf, SHT_SYMTAB, symbols);
		e->debug_symtab = r == 0;
	}
	if (r == ELF_SYMBOLS_NONE) {
		r = elf_collect_mini(e, symbols);
		if (r == 0 || r == ELF_SYMBOLS_NONE)
			r = elf_symbols_collect(e->self.elf, SHT_DYNSYM, symbols);
	}
	if ((r == 0 || r == ELF_SYMBOLS_NONE) && e->go.version && !e->self_symtab &&
		!e->debug_symtab) {
		r = go_table_collect(&e->go, symbols);
		r = r == SYMBOLS_FULL ? ELF_SYMBOLS_FULL : r;
	}
	if (r == 0 || r == ELF_SYMBOLS_NONE)
		r = elf_plt_collect(e->self.elf, &e->names, symbols);
	return r;
}

/* Resolve the symbols of the available sources. */
static int elf_read_symbols(struct elf_image *e)
{
	struct symbols symbols = {0};
	struct spans spans = {0};

	int r = elf_collect(e, &symbols);
	if (r == 0)
		r = symbols_resolve(&symbols, &spans);
	symbols_clear(&symbols);
	if (r) {
		spans_clear(&spans);
		return r < 0 ? r : IMAGE_OVERSIZE;
	}

	spans_clear(&e->symbols);
	e->symbols = spans;
	return 0;
}

/* A file that libdw rejects is not tried again. */
int elf_image_open_lines(struct elf_image *e)
{
	int r = e->source && !e->lines ? dwarf_lines_new(&e->lines) : 0;

	if (r || !e->source || dwarf_lines_is_open(e->lines))
		return r;
	r = elf_file_unpack(e->source);
	if (r == 0)
		r = elf_file_unpack(&e->alt);
	if (r < 0)
		return r;
	r = e->source->elf ? dwarf_lines_open(e->lines, e->source->elf, e->alt.elf, &e->split)
			   : DWARF_LINES_NONE;
	if (r == DWARF_LINES_NONE) {
		elf_file_pack(e->source);
		elf_file_pack(&e->alt);
		e->source = NULL;
		e->lines = dwarf_lines_free(e->lines);
		return 0;
	}
	return r;
}

int elf_image_open(int fd, struct elf_image **ret_elf)
{
	_cleanup_(elf_image_freep) struct elf_image *e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;

	int r = elf_file_map(&e->self, fd);
	if (r == 0)
		(void)go_table_of(e->self.elf, &e->go);
	if (r == 0)
		r = elf_read_segments(e);
	if (r == 0)
		r = elf_read_symbols(e);
	if (r)
		return r;

	if (elf_file_has_debug(&e->self))
		e->source = &e->self;
	elf_file_rest(&e->self); /* a name takes a page or two of what was read */
	*ret_elf = TAKE_PTR(e);
	return 0;
}

/* Takes the file. On failure the image is unchanged, so that the caller can free memory and
 * retry. */
static int elf_use_debug(struct elf_image *e, struct elf_file debug)
{
	e->debug = debug;
	int r = e->self_symtab ? 0 : elf_read_symbols(e);
	if (r) {
		elf_file_close(&e->debug);
		return r;
	}
	if (!e->source && elf_file_has_debug(&e->debug))
		e->source = &e->debug;
	elf_file_rest(&e->debug);
	return 0;
}

/* Two build ids decide; if either file has none, the link's checksum does. Source: GDB manual,
 * "Debugging Information in Separate Files": the CRC of zlib and xz. */
static bool debug_belongs(const struct elf_image *e, const struct elf_file *debug)
{
	const uint8_t *own_id, *id;
	size_t n_own_id = elf_file_build_id(&e->self, &own_id);
	size_t n_id = elf_file_build_id(debug, &id);
	GElf_Word checksum;

	if (n_own_id && n_id)
		return n_own_id == n_id && memcmp(own_id, id, n_id) == 0;
	return e->self.elf && dwelf_elf_gnu_debuglink(e->self.elf, &checksum) &&
	       debug->n <= CHECKSUM_BYTES_MAX && lzma_crc32(debug->bytes, debug->n, 0) == checksum;
}

int elf_image_add_debug(struct elf_image *e, int fd, bool *belongs)
{
	struct elf_file debug = {0};

	if (e->debug.bytes)
		return -EINVAL;
	int r = elf_file_map(&debug, fd);
	if (r)
		return r;

	*belongs = *belongs || debug_belongs(e, &debug);
	if (!*belongs) {
		elf_file_close(&debug);
		return IMAGE_MISMATCH;
	}
	return elf_use_debug(e, debug);
}

int elf_image_add_alt(struct elf_image *e, int fd)
{
	struct elf_file alt = {0};
	const char *path;
	const uint8_t *wanted_id, *id;

	if (!e->source || e->alt.bytes)
		return -EINVAL;
	int r = elf_file_map(&alt, fd);
	if (r)
		return r;

	size_t n_wanted_id = elf_file_alt_link(e->source, &path, &wanted_id);
	size_t n_id = elf_file_build_id(&alt, &id);
	if (!n_wanted_id || n_wanted_id != n_id || memcmp(wanted_id, id, n_id) != 0) {
		elf_file_close(&alt);
		return IMAGE_MISMATCH;
	}

	elf_image_drop_units(e); /* it is reopened with the new file */
	e->alt = alt;
	return 0;
}

struct split_files *elf_image_split(struct elf_image *e)
{
	return &e->split;
}

/* Skeletons refer to addresses by number. */
bool elf_image_may_be_split(const struct elf_image *e)
{
	return e->source && elf_file_has_section(e->source, ".debug_addr");
}

static void copy_id(uint8_t to[20], uint8_t *ret_n, const uint8_t *id, size_t n)
{
	/* No real ELF note has a longer id; the kernel's limit is 20 too. */
	if (n > 20)
		return;
	memcpy(to, id, n);
	*ret_n = (uint8_t)n;
}

static void copy_path(char to[256], const char *path)
{
	size_t n = strnlen(path, 256);
	if (n < 256)
		memcpy(to, path, n + 1);
}

void elf_image_wants(const struct elf_image *e, struct image_wants *ret_wants)
{
	GElf_Word checksum;
	const uint8_t *id;
	const char *path;

	*ret_wants = (struct image_wants){0};
	size_t n = elf_file_build_id(&e->self, &id);
	if (n)
		copy_id(ret_wants->build_id, &ret_wants->n_build_id, id, n);
	path = e->self.elf ? dwelf_elf_gnu_debuglink(e->self.elf, &checksum) : NULL;
	if (path)
		copy_path(ret_wants->debuglink, path);

	ret_wants->symbols = !e->self_symtab && !e->mini_symtab && !e->debug_symtab;
	ret_wants->debug = !e->source;
	if (!e->source || e->alt.bytes)
		return;
	n = elf_file_alt_link(e->source, &path, &id);
	if (n) {
		copy_path(ret_wants->alt_link, path);
		copy_id(ret_wants->alt_build_id, &ret_wants->n_alt_build_id, id, n);
	}
}

static void set_line_of_go(struct elf_image *e, uint64_t addr, struct image_place *place)
{
	const struct go_table *go = &e->go;
	const char *source;

	if (!go->version)
		return;
	go_table_find(go, addr, &source, &place->line);
	place->source = source && strnlen(source, IMAGE_NAME_BYTES_MAX + 1) > IMAGE_NAME_BYTES_MAX
				? names_copy(&e->names, source, SIZE_MAX)
				: source;
}

/* Lines differ from one address to the next; without them, a function has one answer. */
static bool has_lines(const struct elf_image *e)
{
	return e->source || e->go.version;
}

/* The offsets of [start, end), as far as they are in the segment. */
static void set_range(
	const struct segment *s, uint64_t start, uint64_t end, struct image_naming *naming)
{
	const uint64_t last = s->addr + s->n;

	start = start > s->addr ? start : s->addr;
	end = end < last ? end : last;
	if (start >= end)
		return; /* addresses of a hostile file wrap around */
	naming->from = s->offset + (start - s->addr);
	naming->to = naming->from + (end - start);
}

/* `hole`: no symbol covers it. Without memory for the starts, there are none until the next address is asked for. */
static void set_start(struct elf_image *e, const struct segment *s, const struct span *hole,
	struct image_naming *naming)
{
	struct span function;

	if (!e->has_starts)
		e->has_starts = function_starts_read(e->self.elf, &e->starts) == 0;
	naming->is_start = spans_find(&e->starts, naming->addr, &function);
	if (!naming->is_start)
		return;
	if (!has_lines(e))
		set_range(s, function.start > hole->start ? function.start : hole->start,
			function.end < hole->end ? function.end : hole->end, naming);
	naming->addr = function.start;
}

/* The symbol's name is preferred to the one in DWARF,
 * which is the same for all clones of a function. */
static void find_places(
	struct elf_image *e, uint64_t addr, struct span *ret_symbol, struct image_naming *naming)
{
	bool known = spans_find(&e->symbols, addr, ret_symbol);
	if (elf_image_open_lines(e) == 0 && e->lines) {
		while (!dwarf_lines_has_index(e->lines)) { /* which touches all of the file */
			dwarf_lines_index_some(e->lines);
			elf_image_release_pages(e);
		}
		naming->n_places = dwarf_lines_find(e->lines, addr, naming->place);
	}
	if (!naming->n_places && known) {
		naming->n_places = 1;
		set_line_of_go(e, addr, &naming->place[0]);
	}
	if (!naming->n_places)
		return;

	struct image_place *last = &naming->place[naming->n_places - 1];
	if (known)
		last->function = names_symbol(&e->names, ret_symbol->name);
	if (!last->function)
		naming->n_places = 0; /* a line without a function is useless */
}

void elf_image_name(struct elf_image *e, uint64_t offset, struct image_naming *naming)
{
	const struct segment *s = segment_of(e, offset);
	struct span symbol;

	e->split.wants = false;
	if (!s)
		return;
	naming->addr = s->addr + (offset - s->offset);
	find_places(e, naming->addr, &symbol, naming);
	if (naming->n_places && !has_lines(e))
		set_range(s, symbol.start, symbol.end, naming);
	else if (!naming->n_places && !e->split.wants)
		set_start(e, s, &symbol, naming);
}

bool elf_image_has_starts(const struct elf_image *e)
{
	return e->has_starts;
}

bool elf_image_has_symbols(const struct elf_image *e)
{
	return e->symbols.n > 0;
}

bool elf_image_has_debug(const struct elf_image *e)
{
	return e->source;
}

bool elf_image_has_open_lines(const struct elf_image *e)
{
	return e->self.unpacked || e->debug.unpacked;
}

size_t elf_image_lines_bytes(const struct elf_image *e)
{
	return e->source ? elf_file_packed(e->source) + elf_file_packed(&e->alt) : 0;
}

void elf_image_drop_units(struct elf_image *e)
{
	if (e->lines)
		dwarf_lines_close(e->lines);
}

void elf_image_drop_lines(struct elf_image *e)
{
	elf_image_drop_units(e);
	elf_file_pack(&e->self);
	elf_file_pack(&e->debug);
	elf_file_pack(&e->alt);
	split_files_pack(&e->split);
}

void elf_image_release_pages(struct elf_image *e)
{
	elf_file_rest(&e->self);
	elf_file_rest(&e->debug);
	elf_file_rest(&e->alt);
	split_files_rest(&e->split);
}

struct elf_image *elf_image_free(struct elf_image *e)
{
	if (!e)
		return NULL;
	/* libdw uses the Elf until it is closed. */
	dwarf_lines_free(e->lines);
	elf_file_close(&e->self);
	elf_file_close(&e->mini);
	elf_file_close(&e->debug);
	elf_file_close(&e->alt);
	split_files_clear(&e->split);
	spans_clear(&e->symbols);
	spans_clear(&e->starts);
	names_clear(&e->names);
	free(e->segment);
	free(e);
	return NULL;
}
