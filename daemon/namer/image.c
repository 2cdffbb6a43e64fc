/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* An image combines the sources of names: the symbols (of the file itself, its mini debug
 * information and its separate debug file), and the lines of whichever has DWARF.
 *
 * DWARF takes most of the time and nearly all of the memory, so it is opened when the first name is
 * asked for, and closed in two steps, while the symbols stay: image_drop_units frees what libdw read
 * of single units, image_drop_lines also the unpacked sections.
 */

#include <errno.h>
#include <gelf.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwelf.h>

#include "daemon/namer/dwarf_lines.h"
#include "daemon/namer/elf_file.h"
#include "daemon/namer/elf_symbols.h"
#include "daemon/namer/go_table.h"
#include "daemon/namer/image_private.h"
#include "daemon/namer/jit_lines.h"
#include "daemon/namer/mini_debug.h"
#include "daemon/namer/split_files.h"

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
	struct elf_file self, mini, debug, alt;
	struct split_files split;
	bool self_symtab, mini_symtab, debug_symtab;
	struct go_table go; /* of version GO_NONE: it is no program of Go */
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
static bool elf_addr(const struct elf_image *e, uint64_t offset, uint64_t *ret_addr)
{
	bool found = false;

	for (size_t i = 0; i < e->n_segments; i++) {
		const struct segment *s = &e->segment[i];
		if (offset < s->offset || offset - s->offset >= s->n)
			continue;
		if (found && !s->executable)
			continue;
		found = true;
		*ret_addr = s->addr + (offset - s->offset);
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

static int elf_collect(struct image *image, struct symbols *symbols)
{
	struct elf_image *e = image->elf;

	int r = elf_symbols_collect(e->self.elf, SHT_SYMTAB, symbols);
	const size_t n_whole = symbols->n;
	if (r == 0) /* of `strip -K`, it has less than .dynsym, which is a part of a whole one */
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
		r = elf_plt_collect(e->self.elf, &image->names, symbols);
	return r;
}

/* Build image->symbols from the available sources. */
static int elf_read_symbols(struct image *image)
{
	struct symbols symbols = {0};
	struct spans spans = {0};

	int r = elf_collect(image, &symbols);
	if (r == 0)
		r = symbols_resolve(&symbols, &spans);
	symbols_clear(&symbols);
	if (r) {
		spans_clear(&spans);
		return r < 0 ? r : IMAGE_OVERSIZE;
	}

	spans_clear(&image->symbols);
	image->symbols = spans;
	return 0;
}

/* Open the DWARF, if there is some. -ENOMEM; what is rejected is not tried again. */
static int elf_open_lines(struct elf_image *e)
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

struct image *image_new(void)
{
	return calloc(1, sizeof(struct image));
}

int image_open_elf(int fd, struct image **ret_image)
{
	_cleanup_(image_freep) struct image *image = image_new();
	if (!image)
		return -ENOMEM;
	image->elf = calloc(1, sizeof(*image->elf));
	if (!image->elf)
		return -ENOMEM;

	int r = elf_file_map(&image->elf->self, fd);
	if (r == 0)
		(void)go_table_of(image->elf->self.elf, &image->elf->go);
	if (r == 0)
		r = elf_read_segments(image->elf);
	if (r == 0)
		r = elf_read_symbols(image);
	if (r)
		return r;

	if (elf_file_has_debug(&image->elf->self))
		image->elf->source = &image->elf->self;
	elf_file_rest(&image->elf->self); /* a name takes a page or two of what was read */
	*ret_image = TAKE_PTR(image);
	return 0;
}

int image_open_kallsyms(
	struct kallsyms *k, const char *module, uint64_t base, struct image **ret_image)
{
	struct image *image = image_new();
	if (!image)
		return -ENOMEM;
	image->kallsyms = kallsyms_ref(k);
	image->kernel = kallsyms_find(k, module);
	image->kernel_base = !module && kallsyms_stext(k) ? kallsyms_stext(k) : base;
	*ret_image = image;
	return 0;
}

/* Takes the file. On failure the image is unchanged, so that the caller can free memory and
 * retry. */
static int elf_use_debug(struct image *i, struct elf_file debug)
{
	struct elf_image *e = i->elf;

	e->debug = debug;
	int r = e->self_symtab ? 0 : elf_read_symbols(i);
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

int image_add_debug(struct image *i, int fd, bool *belongs)
{
	struct elf_file debug = {0};

	if (!i->elf || i->elf->debug.bytes)
		return -EINVAL;
	int r = elf_file_map(&debug, fd);
	if (r)
		return r;

	*belongs = *belongs || debug_belongs(i->elf, &debug);
	if (!*belongs) {
		elf_file_close(&debug);
		return IMAGE_MISMATCH;
	}
	return elf_use_debug(i, debug);
}

int image_add_alt(struct image *i, int fd)
{
	struct elf_file alt = {0};
	const char *path;
	const uint8_t *wanted_id, *id;

	if (!i->elf || !i->elf->source || i->elf->alt.bytes)
		return -EINVAL;
	int r = elf_file_map(&alt, fd);
	if (r)
		return r;

	size_t n_wanted_id = elf_file_alt_link(i->elf->source, &path, &wanted_id);
	size_t n_id = elf_file_build_id(&alt, &id);
	if (!n_wanted_id || n_wanted_id != n_id || memcmp(wanted_id, id, n_id) != 0) {
		elf_file_close(&alt);
		return IMAGE_MISMATCH;
	}

	image_drop_units(i); /* it is opened again with the new file */
	i->elf->alt = alt;
	return 0;
}

const char *image_wants_split(const struct image *i)
{
	return i->elf && i->elf->split.wants ? i->elf->split.wanted : NULL;
}

int image_add_package(struct image *i, int fd)
{
	return i->elf ? split_files_add_package(&i->elf->split, fd) : -EINVAL;
}

int image_add_split(struct image *i, int fd)
{
	return i->elf ? split_files_add(&i->elf->split, fd) : -EINVAL;
}

void image_give_up_split(struct image *i)
{
	if (i->elf)
		split_files_give_up(&i->elf->split);
}

/* Skeletons refer to addresses by number. */
bool image_may_be_split(const struct image *i)
{
	return i->elf && i->elf->source && elf_file_has_section(i->elf->source, ".debug_addr");
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

void image_wants(const struct image *i, struct image_wants *ret_wants)
{
	GElf_Word checksum;
	const uint8_t *id;
	const char *path;

	*ret_wants = (struct image_wants){0};
	if (!i->elf)
		return;

	const struct elf_image *e = i->elf;
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

static void set_line_of_go(struct image *i, uint64_t addr, struct image_place *place)
{
	const struct go_table *go = &i->elf->go;
	const char *source;

	if (!go->version)
		return;
	go_table_find(go, addr, &source, &place->line);
	place->source = source && strnlen(source, IMAGE_NAME_BYTES_MAX + 1) > IMAGE_NAME_BYTES_MAX
				? names_copy(&i->names, source, SIZE_MAX)
				: source;
}

/* The places of an address in an ELF file. The symbol's name is preferred to the one in DWARF,
 * which is the same for all clones of a function. */
static void name_elf(struct image *i, uint64_t offset, struct image_naming *naming)
{
	uint64_t addr = 0;
	struct span symbol = {.name = NULL};

	i->elf->split.wants = false;
	if (!elf_addr(i->elf, offset, &addr))
		return;
	bool known = spans_find(&i->symbols, addr, &symbol);
	if (elf_open_lines(i->elf) == 0 && i->elf->lines) {
		bool first = !dwarf_lines_has_index(i->elf->lines);
		naming->n_places = dwarf_lines_find(i->elf->lines, addr, naming->place);
		if (first) /* which has touched all of it */
			image_release_pages(i);
	}
	if (!naming->n_places && known) {
		naming->n_places = 1;
		set_line_of_go(i, addr, &naming->place[0]);
	}
	if (!naming->n_places)
		return;

	struct image_place *last = &naming->place[naming->n_places - 1];
	if (known)
		last->function = names_symbol(&i->names, symbol.name);
	if (!last->function)
		naming->n_places = 0; /* a line without a function is useless */
}

static void name_kernel(struct image *i, uint64_t offset, struct image_naming *naming)
{
	const char *name =
		kernel_symbols_find(i->kernel, i->kernel_base, offset, KERNEL_LAST_BYTES_MAX);
	if (name)
		naming->place[naming->n_places++].function = names_demangle(&i->names, name);
}

static void name_generated(
	struct image *i, uint64_t offset, uint32_t order, struct image_naming *naming)
{
	const struct generated *code = history_find(&i->history, offset, order);
	if (!code || !code->name)
		return;

	struct image_place *place = &naming->place[naming->n_places++];
	place->function = names_demangle(&i->names, code->name);
	if (i->jit)
		jit_lines_find(i->jit, code->tag, offset, place);
}

void image_name_by(
	struct image *i, uint64_t offset, uint32_t order, struct image_naming *ret_naming)
{
	*ret_naming = (struct image_naming){0};
	if (i->elf)
		name_elf(i, offset, ret_naming);
	else if (i->kernel)
		name_kernel(i, offset, ret_naming);
	else
		name_generated(i, offset, order, ret_naming);

	if (ret_naming->n_places)
		ret_naming->outcome = IMAGE_NAMED;
	else if (image_has_symbols(i) || image_has_debug(i))
		ret_naming->outcome = IMAGE_OUT_OF_SYMBOL;
	else
		ret_naming->outcome = IMAGE_NO_SYMBOLS;
}

void image_name(struct image *i, uint64_t offset, struct image_naming *ret_naming)
{
	image_name_by(i, offset, UINT32_MAX, ret_naming);
}

bool image_has_symbols(const struct image *i)
{
	return i->symbols.n > 0 || i->history.n > 0 || i->kernel;
}

bool image_has_debug(const struct image *i)
{
	return i->elf ? i->elf->source != NULL : i->jit != NULL;
}

int image_open_lines(struct image *i)
{
	return i->elf ? elf_open_lines(i->elf) : 0;
}

bool image_has_open_lines(const struct image *i)
{
	return i->elf && (i->elf->self.unpacked || i->elf->debug.unpacked);
}

void image_drop_units(struct image *i)
{
	if (i->elf && i->elf->lines)
		dwarf_lines_close(i->elf->lines);
}

void image_drop_lines(struct image *i)
{
	image_drop_units(i);
	if (!i->elf)
		return;
	elf_file_pack(&i->elf->self);
	elf_file_pack(&i->elf->debug);
	elf_file_pack(&i->elf->alt);
	split_files_pack(&i->elf->split);
}

void image_release_pages(struct image *i)
{
	if (!i->elf)
		return;
	elf_file_rest(&i->elf->self);
	elf_file_rest(&i->elf->debug);
	elf_file_rest(&i->elf->alt);
	split_files_rest(&i->elf->split);
}

static void elf_image_free(struct elf_image *e)
{
	if (!e)
		return;
	/* libdw uses the Elf until it is closed. */
	dwarf_lines_free(e->lines);
	elf_file_close(&e->self);
	elf_file_close(&e->mini);
	elf_file_close(&e->debug);
	elf_file_close(&e->alt);
	split_files_clear(&e->split);
	free(e->segment);
	free(e);
}

struct image *image_ref(struct image *i)
{
	i->n_others++;
	return i;
}

bool image_is_shared(const struct image *i)
{
	return i->n_others > 0;
}

struct image *image_free(struct image *i)
{
	if (!i)
		return NULL;
	if (i->n_others > 0) {
		i->n_others--;
		return NULL;
	}

	spans_clear(&i->symbols);
	history_clear(&i->history);
	jitdump_free(i->dump);
	kallsyms_unref(i->kallsyms);
	names_clear(&i->names);
	elf_image_free(i->elf);
	jit_lines_free(i->jit);
	free(i);
	return NULL;
}
