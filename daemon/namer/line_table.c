/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A line table is a program whose steps are small differences, so a row can be found only by running
 * it from a known state. libdw runs the whole program and keeps a node for each row: a hundred
 * instructions and 40 bytes a row, again each time that the unit is read. Here the program runs once,
 * and the state is stored at the start of each sequence and every STRIDE bytes, as spans of addresses;
 * a look-up runs the program from the state that covers the address.
 *
 *      program   ├────────┼────────┼──────┤ ├───────┤      sequences, each of rising addresses
 *      states    ▲        ▲        ▲        ▲
 *
 * No number of the file is trusted: every step of the program takes at least a byte of it, and names
 * must end inside their section.
 *
 * Source: DWARF Debugging Information Format, version 5, section 6.2; versions 2 to 4 likewise.
 */

#include "daemon/namer/line_table.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/debug_sections.h"
#include "daemon/namer/image.h"
#include "daemon/namer/spans.h"
#include "proto/base/memory.h"

#define PATH_TEXT_MAX 4096 /* of the folders of a source file */
#define STRIDE 4096u
#define FORMATS_MAX 16 /* of an entry; compilers write two or three */

struct line_file {
	const char *name; /* NULL: unknown */
	const char *path; /* made when it is first wanted */
	uint64_t directory;
};

/* The registers of the line-number machine that we need. */
struct state {
	const uint8_t *at; /* the next step */
	uint64_t address, file, line;
};

struct line_table {
	struct names *names;
	const char **directory;
	struct line_file *file;
	size_t n_directories, size_directories, n_files, size_files;
	uint8_t min_length, line_range, opcode_base, address_bytes;
	int8_t line_base;
	const uint8_t *operands; /* of standard opcode i: [i - 1] */
	const uint8_t *program, *end;
	struct state *state;
	size_t n_states, size_states;
	struct spans spans; /* tag: index of a state */
};

DEFINE_CLEANUP(struct line_table *, line_table_free)

struct line_sections line_sections_of(Elf *elf)
{
	static const char *const name[] = {".debug_line", ".debug_line_str", ".debug_str"};
	struct section_bytes found[3];

	debug_sections_find(elf, name, 3, found);
	return (struct line_sections){.line = found[0], .line_str = found[1], .str = found[2]};
}

/* --- header ----------------------------------------------------------------------------------- */

static int add_directory(struct line_table *t, const char *directory)
{
	if (t->n_directories == t->size_directories) {
		size_t size = t->size_directories ? 2 * t->size_directories : 8;
		const char **grown = reallocarray(t->directory, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->directory = grown;
		t->size_directories = size;
	}
	t->directory[t->n_directories++] = directory;
	return 0;
}

static int add_file(struct line_table *t, const char *name, uint64_t directory)
{
	if (t->n_files == t->size_files) {
		size_t size = t->size_files ? 2 * t->size_files : 16;
		struct line_file *grown = reallocarray(t->file, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->file = grown;
		t->size_files = size;
	}
	t->file[t->n_files++] = (struct line_file){.name = name, .directory = directory};
	return 0;
}

/* Versions 2 to 4: lists that end in an empty name; the first of each is implied. */
static int read_old_names(struct line_table *t, struct byte_reader *r, const char *directory)
{
	const char *name;
	int n = add_directory(t, directory);

	while (n == 0 && (name = read_string(r)) && *name)
		n = add_directory(t, name);
	if (n == 0)
		n = add_file(t, NULL, 0);
	while (n == 0 && (name = read_string(r)) && *name) {
		uint64_t of = read_unsigned(r);
		(void)read_unsigned(r); /* time */
		(void)read_unsigned(r); /* size */
		n = add_file(t, name, of);
	}
	return n;
}

/* Read a value of an entry: a string or a number. */
static bool read_form(struct byte_reader *r, const struct line_sections *s, uint64_t form,
	size_t offset_bytes, const char **ret_text, uint64_t *ret_number)
{
	switch (form) {
	case DW_FORM_string:
		*ret_text = read_string(r);
		break;
	case DW_FORM_line_strp:
		*ret_text = bytes_string(s->line_str, read_number(r, offset_bytes));
		break;
	case DW_FORM_strp:
		*ret_text = bytes_string(s->str, read_number(r, offset_bytes));
		break;
	case DW_FORM_udata:
		*ret_number = read_unsigned(r);
		break;
	case DW_FORM_data1:
		*ret_number = read_number(r, 1);
		break;
	case DW_FORM_data2:
		*ret_number = read_number(r, 2);
		break;
	case DW_FORM_data4:
		*ret_number = read_number(r, 4);
		break;
	case DW_FORM_data8:
		*ret_number = read_number(r, 8);
		break;
	case DW_FORM_data16:
		read_past(r, 16);
		break;
	case DW_FORM_block:
		read_past(r, read_unsigned(r));
		break;
	default:
		return false;
	}
	return !r->bad;
}

/* Version 5: a description of the entries, then the entries, of directories or of files. */
static int read_entries(struct line_table *t, struct byte_reader *r, const struct line_sections *s,
	size_t offset_bytes, bool files)
{
	uint64_t type[FORMATS_MAX], form[FORMATS_MAX];
	uint64_t n_formats = read_number(r, 1);

	if (n_formats > FORMATS_MAX)
		return LINE_TABLE_UNKNOWN;
	for (uint64_t i = 0; i < n_formats; i++) {
		type[i] = read_unsigned(r);
		form[i] = read_unsigned(r);
	}
	uint64_t n_entries = read_unsigned(r);
	for (uint64_t k = 0; k < n_entries; k++) {
		const uint8_t *before = r->at;
		const char *name = NULL;
		uint64_t directory = 0;
		for (uint64_t i = 0; i < n_formats; i++) {
			const char *text = NULL;
			uint64_t number = 0;
			if (!read_form(r, s, form[i], offset_bytes, &text, &number))
				return LINE_TABLE_UNKNOWN;
			name = type[i] == DW_LNCT_path ? text : name;
			directory = type[i] == DW_LNCT_directory_index ? number : directory;
		}
		if (r->bad || r->at == before)
			return LINE_TABLE_UNKNOWN;
		int n = files ? add_file(t, name, directory) : add_directory(t, name);
		if (n)
			return n;
	}
	return r->bad ? LINE_TABLE_UNKNOWN : 0;
}

static int read_header(
	struct line_table *t, const struct line_sections *s, uint64_t offset, const char *directory)
{
	if (offset >= s->line.n)
		return LINE_TABLE_UNKNOWN;

	struct byte_reader r = {.at = s->line.at + offset, .end = s->line.at + s->line.n};
	size_t offset_bytes = 4;
	uint64_t bytes = read_number(&r, 4);
	if (bytes == 0xffffffff) {
		offset_bytes = 8;
		bytes = read_number(&r, 8);
	}
	if (r.bad || bytes > (uint64_t)(r.end - r.at))
		return LINE_TABLE_UNKNOWN;
	r.end = t->end = r.at + bytes;
	uint64_t version = read_number(&r, 2);
	if (version < 2 || version > 5)
		return LINE_TABLE_UNKNOWN;
	if (version == 5)
		read_past(&r, 2); /* sizes of address and of segment selector */
	uint64_t rest = read_number(&r, offset_bytes);
	if (r.bad || rest > (uint64_t)(r.end - r.at))
		return LINE_TABLE_UNKNOWN;
	t->program = r.at + rest;

	t->min_length = (uint8_t)read_number(&r, 1);
	uint64_t operations = version >= 4 ? read_number(&r, 1) : 1;
	(void)read_number(&r, 1); /* whether a row begins a statement */
	t->line_base = (int8_t)read_number(&r, 1);
	t->line_range = (uint8_t)read_number(&r, 1);
	t->opcode_base = (uint8_t)read_number(&r, 1);
	t->operands = r.at;
	read_past(&r, t->opcode_base ? t->opcode_base - 1u : 0);
	if (r.bad || operations != 1 || !t->line_range || !t->opcode_base)
		return LINE_TABLE_UNKNOWN;

	int n = version < 5 ? read_old_names(t, &r, directory)
			    : read_entries(t, &r, s, offset_bytes, false);
	if (n == 0 && version == 5)
		n = read_entries(t, &r, s, offset_bytes, true);
	return n ? n : r.bad ? LINE_TABLE_UNKNOWN : 0;
}

/* --- the program ------------------------------------------------------------------------------ */

/* The result of a step. */
enum step { STEP_NONE, STEP_ROW, STEP_END, STEP_BAD };

static enum step step_extended(struct byte_reader *r, struct state *s)
{
	uint64_t n = read_unsigned(r);
	if (r->bad || n == 0 || n > (uint64_t)(r->end - r->at))
		return STEP_BAD;

	struct byte_reader operand = {.at = r->at, .end = r->at + n};
	uint64_t opcode = read_number(&operand, 1);
	r->at += n;
	if (opcode == DW_LNE_end_sequence)
		return STEP_END;
	if (opcode == DW_LNE_set_address)
		s->address = read_number(&operand, n - 1);
	return operand.bad ? STEP_BAD : STEP_NONE;
}

static enum step step_standard(
	const struct line_table *t, struct byte_reader *r, struct state *s, uint8_t opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		return STEP_ROW;
	case DW_LNS_advance_pc:
		s->address += read_unsigned(r) * t->min_length;
		break;
	case DW_LNS_advance_line:
		s->line += (uint64_t)read_signed(r);
		break;
	case DW_LNS_set_file:
		s->file = read_unsigned(r);
		break;
	case DW_LNS_const_add_pc:
		s->address += (uint64_t)((255u - t->opcode_base) / t->line_range) * t->min_length;
		break;
	case DW_LNS_fixed_advance_pc:
		s->address += read_number(r, 2);
		break;
	default:
		for (uint8_t i = 0; i < t->operands[opcode - 1]; i++)
			(void)read_unsigned(r);
	}
	return r->bad ? STEP_BAD : STEP_NONE;
}

/* Run one step. STEP_ROW: *s is a row; STEP_END: the sequence ends before its address. */
static enum step step(const struct line_table *t, struct state *s)
{
	struct byte_reader r = {.at = s->at, .end = t->end};
	uint8_t opcode = (uint8_t)read_number(&r, 1);
	enum step done = STEP_ROW;

	if (r.bad) {
		done = STEP_BAD;
	} else if (opcode >= t->opcode_base) {
		uint8_t by = opcode - t->opcode_base;
		s->address += (uint64_t)(by / t->line_range) * t->min_length;
		s->line += (uint64_t)(int64_t)(t->line_base + by % t->line_range);
	} else if (opcode == 0) {
		done = step_extended(&r, s);
	} else {
		done = step_standard(t, &r, s, opcode);
	}
	s->at = r.at;
	return done;
}

static struct state first_state(const uint8_t *at)
{
	return (struct state){.at = at, .file = 1, .line = 1};
}

static int add_state(struct line_table *t, const struct state *s)
{
	if (t->n_states == t->size_states) {
		size_t size = t->size_states ? 2 * t->size_states : 4;
		struct state *grown = reallocarray(t->state, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->state = grown;
		t->size_states = size;
	}
	t->state[t->n_states++] = *s;
	return 0;
}

/* The last state added covers the addresses up to `end`. */
static int add_span(struct line_table *t, uint64_t end)
{
	int r = spans_add(&t->spans, (struct span){.start = t->state[t->n_states - 1].address,
					     .end = end,
					     .tag = (uint32_t)(t->n_states - 1)});
	return r == SPANS_FULL ? LINE_TABLE_UNKNOWN : r;
}

/* Run the whole program, to keep states. States from before an error are used. */
static int read_states(struct line_table *t)
{
	struct state s = first_state(t->program);
	bool open = false; /* the current sequence has a row */
	int r = 0;

	while (r == 0 && s.at < t->end) {
		enum step done = step(t, &s);
		if (done == STEP_BAD)
			break;
		if (done == STEP_END) {
			r = open ? add_span(t, s.address) : 0;
			open = false;
			s = first_state(s.at);
		}
		if (done != STEP_ROW)
			continue;
		bool far = open && (size_t)(s.at - t->state[t->n_states - 1].at) >= STRIDE;
		if (far)
			r = add_span(t, s.address);
		if (r == 0 && (far || !open))
			r = add_state(t, &s);
		open = true;
	}
	return r ? r : spans_seal(&t->spans);
}

/* --- the table -------------------------------------------------------------------------------- */

int line_table_new(const struct line_sections *sections, uint64_t offset, const char *directory,
	struct names *names, struct line_table **ret_table)
{
	_cleanup_(line_table_freep) struct line_table *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->names = names;

	int r = read_header(t, sections, offset, directory);
	if (r == 0)
		r = read_states(t);
	if (r)
		return r;
	*ret_table = TAKE_PTR(t);
	return 0;
}

/* Append "FOLDER/"; returns the new length. */
static size_t add_folder(char path[static PATH_TEXT_MAX], size_t n, const char *folder)
{
	if (n >= PATH_TEXT_MAX - 2)
		return n; /* full: further text is left out */
	size_t taken = strnlen(folder, PATH_TEXT_MAX - 2 - n);
	memcpy(path + n, folder, taken);
	path[n + taken] = '/';
	return n + taken + 1;
}

const char *line_table_source(struct line_table *t, uint64_t number)
{
	struct line_file *f = number < t->n_files ? &t->file[number] : NULL;
	if (!f || !f->name || !*f->name)
		return NULL;
	if (f->path)
		return f->path;

	const char *directory = f->directory < t->n_directories ? t->directory[f->directory] : NULL;
	if (*f->name == '/' || !directory) {
		f->path = names_copy(t->names, f->name, SIZE_MAX);
		return f->path;
	}
	char path[PATH_TEXT_MAX];
	size_t n = 0;
	/* a folder is relative to that of the compilation, which is the first */
	if (*directory != '/' && f->directory > 0 && t->directory[0] && *t->directory[0])
		n = add_folder(path, n, t->directory[0]);
	n = add_folder(path, n, directory);
	path[n] = '\0';
	f->path = names_join(t->names, path, f->name);
	return f->path;
}

void line_table_find(
	struct line_table *t, uint64_t addr, const char **ret_source, uint64_t *ret_line)
{
	struct span span;
	*ret_source = NULL;
	*ret_line = 0;
	if (!spans_find(&t->spans, addr, &span))
		return;

	struct state s = t->state[span.tag], row = s;
	for (enum step done = STEP_NONE; done != STEP_END && done != STEP_BAD && s.at < t->end;) {
		done = step(t, &s);
		if (done != STEP_ROW)
			continue;
		if (s.address > addr)
			break;
		row = s;
	}
	*ret_source = line_table_source(t, row.file);
	*ret_line = row.line;
}

struct line_table *line_table_free(struct line_table *t)
{
	if (!t)
		return NULL;
	free(t->directory);
	free(t->file);
	free(t->state);
	spans_clear(&t->spans);
	free(t);
	return NULL;
}
