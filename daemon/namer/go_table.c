/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* An index has the address of each function, in rising order, and the place of its description. The
 * description has the offset of the function's name, and those of two tables of steps. A step is a
 * number of bytes of code, and the change of a value after it: the number of the file or the line.
 *
 *      index ──▶ function ──▶ name
 *                         ──▶ steps ──▶ file: number in the unit's files ──▶ path
 *                         ──▶ steps ──▶ line
 *
 * Since Go 1.16 the parts are separate, with an offset for each in the header; since 1.18 addresses in the
 * index and in the function are offsets of 4 bytes from the beginning of the text. No number is trusted:
 * each read must be inside its part.
 *
 * The beginning of the text is a word of the header. In a position-independent program the loader fills it
 * in: then the word's relocation gives it. Without a relocation it is the section .text, if the function at
 * the program's entry is one of Go's: a C compiler's start-up code may come before Go's text.
 *
 * Source: "Go 1.2 Runtime Symbol Information"; Go 1.23, src/debug/gosym/pclntab.go and
 * src/internal/abi/symtab.go.
 */

#include "daemon/namer/go_table.h"

#include <gelf.h>
#include <string.h>

#include "daemon/namer/debug_sections.h"
#include "daemon/namer/image.h"

#define MAGIC_1_2 0xfffffffbu
#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

#define SECTIONS_MAX 65536
#define RELOCATIONS_MAX 4000000
#define TEXT_AT(t)                                                                                 \
	(8 + 2 * (uint64_t)(t)->pointer_bytes) /* of the word that says where it begins */

/* --- header ----------------------------------------------------------------------------------- */

static struct section_bytes rest_of(struct section_bytes s, uint64_t offset)
{
	return offset < s.n ? bytes_part(s, offset, s.n - offset) : (struct section_bytes){0};
}

/* Until 1.16 all offsets are from the beginning of the table; the offset of the files follows the index. */
static bool read_1_2(struct section_bytes s, struct byte_reader *r, struct go_table *t)
{
	t->n_functions = read_number(r, t->pointer_bytes);
	if (r->bad || t->n_functions > s.n / (2 * t->pointer_bytes))
		return false;
	read_past(r, (2 * t->n_functions + 1) * t->pointer_bytes);
	uint64_t files = read_number(r, 4);
	t->names = t->steps = s;
	t->units = rest_of(s, files);
	t->files = s;
	t->functions = rest_of(s, 8u + t->pointer_bytes);
	return !r->bad;
}

static bool read_parts(struct section_bytes s, struct byte_reader *r, struct go_table *t)
{
	t->n_functions = read_number(r, t->pointer_bytes);
	(void)read_number(r, t->pointer_bytes); /* files */
	if (t->version >= GO_1_18)
		t->text = read_number(r, t->pointer_bytes);

	struct section_bytes *const part[] = {
		&t->names, &t->units, &t->files, &t->steps, &t->functions};
	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
		*part[i] = rest_of(s, read_number(r, t->pointer_bytes));
	return !r->bad;
}

/* Bytes of a number in the index: it was an address up to 1.16, and is relative to the text since 1.18. */
static size_t index_bytes(const struct go_table *t)
{
	return t->version >= GO_1_18 ? 4 : t->pointer_bytes;
}

bool go_table_read(struct section_bytes section, struct go_table *ret_table)
{
	struct byte_reader r = bytes_from(section, 0);
	struct go_table t = {.version = GO_NONE};
	uint64_t magic = read_number(&r, 4), zero = read_number(&r, 2);

	t.version = magic == MAGIC_1_2                           ? GO_1_2
		    : magic == MAGIC_1_16                        ? GO_1_16
		    : magic == MAGIC_1_18 || magic == MAGIC_1_20 ? GO_1_18
								 : GO_NONE;
	t.quantum = (uint8_t)read_number(&r, 1);
	t.pointer_bytes = (uint8_t)read_number(&r, 1);
	if (r.bad || t.version == GO_NONE || zero ||
		(t.quantum != 1 && t.quantum != 2 && t.quantum != 4) ||
		(t.pointer_bytes != 4 && t.pointer_bytes != 8))
		return false;
	bool read = t.version == GO_1_2 ? read_1_2(section, &r, &t) : read_parts(section, &r, &t);
	if (!read || t.n_functions == 0 || t.n_functions > t.functions.n / (2 * index_bytes(&t)))
		return false;
	*ret_table = t;
	return true;
}

/* --- functions -------------------------------------------------------------------------------- */

struct function {
	uint64_t start, end;
	uint64_t name, file, line; /* offsets in the names and the steps */
	uint64_t unit;             /* of its files in `units`, by 4 bytes */
};

static uint64_t index_number(const struct go_table *t, uint64_t i)
{
	size_t n = index_bytes(t);
	struct byte_reader r = bytes_from(t->functions, i * n);

	return read_number(&r, n);
}

/* The address of function i; at n_functions, the end of the last. */
static uint64_t start_of(const struct go_table *t, uint64_t i)
{
	return t->text + index_number(t, 2 * i);
}

/* Source: struct _func, Go 1.23 src/runtime/runtime2.go; of 1.2, as above. */
static bool read_function(const struct go_table *t, uint64_t i, struct function *ret_function)
{
	struct byte_reader r = bytes_from(t->functions, 0);
	uint64_t at = index_number(t, 2 * i + 1);
	if (t->version == GO_1_2) /* from the beginning of the table */
		r = bytes_from(t->names, at);
	else
		r = bytes_from(t->functions, at);

	struct function f = {.start = start_of(t, i), .end = start_of(t, i + 1)};
	read_past(&r, index_bytes(t)); /* its address again */
	f.name = read_number(&r, 4);
	read_past(&r, 12); /* arguments; frame, or what defer needs; steps of the stack pointer */
	f.file = read_number(&r, 4);
	f.line = read_number(&r, 4);
	read_past(&r, 4); /* number of other tables */
	f.unit = t->version == GO_1_2 ? 0 : read_number(&r, 4);
	if (r.bad || f.start >= f.end)
		return false;
	*ret_function = f;
	return true;
}

int go_table_collect(const struct go_table *t, struct symbols *symbols)
{
	for (uint64_t i = 0; i < t->n_functions; i++) {
		struct function f;
		const char *name = NULL;
		if (i >= IMAGE_SYMBOLS_MAX)
			return SYMBOLS_FULL;
		if (read_function(t, i, &f))
			name = bytes_string(t->names, f.name);
		if (!name || !*name)
			continue;
		int r = symbols_add(symbols, &(struct symbol){.start = f.start,
						     .end = f.end,
						     .name = name,
						     .rank = SYMBOL_GLOBAL,
						     .sized = true});
		if (r)
			return r;
	}
	return 0;
}

/* The last function that begins at the address or before it. */
static bool find_function(const struct go_table *t, uint64_t addr, struct function *ret_function)
{
	uint64_t low = 0, high = t->n_functions;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (start_of(t, middle) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && read_function(t, low - 1, ret_function) && addr >= ret_function->start &&
	       addr < ret_function->end;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* The value at an address, by the table of steps at that offset; -1: none. Each change is a zig-zag
 * number; the first is added to -1. A later change of 0 ends the table. */
static int64_t value_at(
	const struct go_table *t, const struct function *f, uint64_t steps, uint64_t addr)
{
	struct byte_reader r = bytes_from(t->steps, steps);
	uint64_t at = f->start;
	uint32_t value = UINT32_MAX;

	if (steps == 0)
		return -1;
	for (bool first = true; !r.bad; first = false) {
		uint32_t change = (uint32_t)read_unsigned(&r);
		if (change == 0 && !first)
			return -1;
		value += change & 1 ? ~(change >> 1) : change >> 1;
		at += read_unsigned(&r) * t->quantum;
		if (!r.bad && addr < at)
			return (int32_t)value;
	}
	return -1;
}

static const char *path_of(const struct go_table *t, const struct function *f, int64_t number)
{
	struct byte_reader r = bytes_from(t->units, (f->unit + (uint64_t)number) * 4);
	uint64_t at = read_number(&r, 4);
	const char *path =
		number < 0 || r.bad || at == UINT32_MAX ? NULL : bytes_string(t->files, at);

	return path && *path ? path : NULL;
}

void go_table_find(
	const struct go_table *t, uint64_t addr, const char **ret_source, uint32_t *ret_line)
{
	struct function f;

	*ret_source = NULL;
	*ret_line = 0;
	if (!find_function(t, addr, &f))
		return;
	int64_t line = value_at(t, &f, f.line, addr);
	*ret_source = path_of(t, &f, value_at(t, &f, f.file, addr));
	if (*ret_source && line > 0)
		*ret_line = (uint32_t)line;
}

/* --- programs --------------------------------------------------------------------------------- */

static Elf_Scn *section_named(Elf *elf, const char *wanted, GElf_Shdr *ret_header)
{
	size_t names, n_seen = 0;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s)) && n_seen < SECTIONS_MAX; n_seen++) {
		const char *name = gelf_getshdr(s, ret_header)
					   ? elf_strptr(elf, names, ret_header->sh_name)
					   : NULL;
		if (name && strcmp(name, wanted) == 0)
			return s;
	}
	return NULL;
}

/* The value that the loader writes to that address, if it is relative to the program. */
static uint64_t relocated(Elf *elf, uint64_t addr)
{
	GElf_Shdr header;
	Elf_Scn *s = section_named(elf, ".rela.dyn", &header);
	Elf_Data *data = s && header.sh_type == SHT_RELA ? elf_getdata(s, NULL) : NULL;
	size_t entry = gelf_fsize(elf, ELF_T_RELA, 1, EV_CURRENT);
	size_t n = data && data->d_buf && entry ? data->d_size / entry : 0;

	for (size_t i = 0; i < n && i < RELOCATIONS_MAX; i++) {
		GElf_Rela r;
		if (gelf_getrela(data, (int)i, &r) && r.r_offset == addr &&
			GELF_R_SYM(r.r_info) == 0)
			return (uint64_t)r.r_addend;
	}
	return 0;
}

/* Is that where the text begins? Then the program's entry is in a function of Go's. */
static bool is_text(const struct go_table *t, uint64_t text, uint64_t entry)
{
	struct go_table at = *t;
	struct function f;

	at.text = text;
	const char *name = find_function(&at, entry, &f) ? bytes_string(at.names, f.name) : NULL;
	return name && strncmp(name, "_rt0_", 5) == 0;
}

static bool find_text(Elf *elf, const GElf_Shdr *section, struct go_table *t)
{
	GElf_Ehdr file;
	GElf_Shdr text;

	if (t->version < GO_1_18 || t->text)
		return true;
	t->text = relocated(elf, section->sh_addr + TEXT_AT(t));
	if (!t->text && gelf_getehdr(elf, &file) && section_named(elf, ".text", &text) &&
		is_text(t, text.sh_addr, file.e_entry))
		t->text = text.sh_addr;
	return t->text != 0;
}

bool go_table_of(Elf *elf, struct go_table *ret_table)
{
	static const char *const name[] = {".gopclntab", ".data.rel.ro.gopclntab"};

	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		struct section_bytes bytes;
		GElf_Shdr header;
		struct go_table t;
		debug_sections_find(elf, &name[i], 1, &bytes);
		if (bytes.at && section_named(elf, name[i], &header) && go_table_read(bytes, &t) &&
			find_text(elf, &header, &t)) {
			*ret_table = t;
			return true;
		}
	}
	return false;
}
