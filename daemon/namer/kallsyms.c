/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The kernel lists its symbols without sizes, so each extends to the next one of any kind: data
 * symbols get no name here, but they end the function before them. The list has the kernel first,
 * sorted, then each module as an unsorted block. With kernel.kptr_restrict all addresses are 0,
 * which gives a list without symbols.
 *
 * The kernel formats each line as we read it, which takes longer than our processing. So the list
 * is read once, and no further than needed: first the kernel's part, then up to the end of each
 * requested module. On a RISC-V board three quarters of its 360,000 lines are labels in six modules
 * that only the relaxing linker needs; they are skipped before they are parsed. Reading goes on at
 * the same open file, where the kernel continues by the number of the symbol. If modules came or
 * went meanwhile, that number is another symbol's: the first new line is then most likely of another
 * module than the last old one, and the modules that are not whole are read again.
 *
 * Source: Linux kernel/kallsyms.c (s_show: "%px %c %s\t[%s]\n"; update_iter for the order), v6.18.
 */

#include "daemon/namer/kallsyms.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "daemon/namer/names.h"
#include "daemon/namer/sort.h"
#include "daemon/namer/symbols.h"
#include "daemon/namer/text_lines.h"
#include "proto/base/memory.h"

/* Source: MODULE_NAME_LEN, include/linux/moduleparam.h */
#define MODULE_NAME_BYTES 64

struct module {
	char name[MODULE_NAME_BYTES];
	struct kernel_symbols symbols;
};

struct reading;

struct kallsyms {
	uint32_t n_users;
	uint64_t stext; /* 0: not seen */
	struct kernel_symbols kernel;
	struct module **module; /* whole ones; images point to their symbols */
	size_t n_modules, size_modules;
	struct reading *reading; /* NULL: all modules are read; else some are not */
};

struct line {
	uint64_t addr;
	char type;
	const char *name;
	const char *module; /* NULL: the kernel itself */
};

struct reading {
	struct kallsyms *list;
	char module[MODULE_NAME_BYTES]; /* the block being read; "": the kernel's */
	struct symbols block;           /* symbols of the block, in list order */
	struct names names;             /* and their names */
	const char *wanted;             /* pause after this module; NULL: go on to the end */
	bool found;                     /* it is whole */
	uint64_t paused; /* offset in the list where the last part ended; 0: go on past it */
	bool again;      /* read again: the kernel and modules that are whole are skipped */
	bool skip;       /* the block is such a module's */
	struct text_lines lines;
};

/* Outcomes of reading, besides those of an image. */
enum {
	READING_PAUSED = 100, /* the first line of a module was read; the wanted part is whole */
	READING_SHIFTED,      /* modules came or went since the pause */
};

DEFINE_CLEANUP(struct kallsyms *, kallsyms_unref)

static struct reading *reading_free(struct reading *r)
{
	if (!r)
		return NULL;
	symbols_clear(&r->block);
	names_clear(&r->names);
	close(r->lines.fd);
	free(r);
	return NULL;
}

/* Splits `text` in place. False if it is not a line of kallsyms. */
static bool line_parse(char *text, struct line *ret_line)
{
	const char *rest = text_hexadecimal(text, &ret_line->addr);
	if (!rest || !isgraph((unsigned char)rest[0]) || rest[1] != ' ' || !rest[2])
		return false;

	ret_line->type = rest[0];
	ret_line->name = rest + 2;
	ret_line->module = NULL;

	char *tab = strchr(text + (rest + 2 - text), '\t');
	if (tab) {
		*tab = '\0';
		char *end = tab[1] == '[' ? strchr(tab + 2, ']') : NULL;
		if (!end)
			return false;
		*end = '\0';
		ret_line->module = tab + 2;
		return strlen(ret_line->module) < MODULE_NAME_BYTES;
	}
	return true;
}

/* Labels that an assembler or linker left: they are not names, and end no function. Source: RISC-V
 * ELF psABI and ELF for the Arm 64-bit Architecture, "Mapping symbols"; GNU as, local labels begin
 * with ".L". */
static bool is_label(const char *name)
{
	return (name[0] == '.' && name[1] == 'L') ||
	       (name[0] == '$' && name[1] && strchr("adtx", name[1]));
}

/* The same for a line before it is parsed. Source: lib/vsprintf.c, "%px": as many digits as a
 * pointer has. */
static bool line_is_label(const struct text_lines *lines, const char *text)
{
	const size_t n_digits = 2 * sizeof(void *);
	const size_t n_line = (size_t)(lines->buffer + lines->start - text) - 1;

	return n_line > n_digits + 4 && text[n_digits] == ' ' && text[n_digits + 2] == ' ' &&
	       is_label(text + n_digits + 3);
}

static enum symbol_rank rank_of(char type)
{
	return type == 'T' ? SYMBOL_GLOBAL : type == 't' ? SYMBOL_LOCAL : SYMBOL_WEAK;
}

/* Append a symbol; name NULL: not code. */
static int append(struct kernel_symbols *k, uint64_t addr, const char *name, int rank)
{
	/* Per-CPU data, with addresses from 0, may precede the text; data that ends no function is
	 * left out. */
	if (!name && (k->n == 0 || !k->symbol[k->n - 1].name))
		return 0;
	int r = kernel_symbols_add(k, addr, name, rank);
	return r == KERNEL_SYMBOLS_FULL ? IMAGE_OVERSIZE : r == KERNEL_SYMBOLS_UNSORTED ? 0 : r;
}

/* --- modules ---------------------------------------------------------------------------------- */

/* File names of modules may have '-' for the kernel's '_'. */
static bool module_is(const char *wanted, const char *module)
{
	for (; *module; wanted++, module++)
		if (*wanted != *module && (*wanted != '-' || *module != '_'))
			return false;
	return !*wanted;
}

static const struct module *module_find(const struct kallsyms *k, const char *name)
{
	for (size_t i = 0; i < k->n_modules; i++)
		if (module_is(name, k->module[i]->name))
			return k->module[i];
	return NULL;
}

static int module_new(struct kallsyms *list, const char *name, struct module **ret_module)
{
	if (list->n_modules == list->size_modules) {
		size_t size = list->size_modules ? 2 * list->size_modules : 16;
		struct module **grown = reallocarray(list->module, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->module = grown;
		list->size_modules = size;
	}
	struct module *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	list->module[list->n_modules++] = m;
	strcpy(m->name, name);
	*ret_module = m;
	return 0;
}

static int block_add(struct reading *r, const struct line *line, bool code)
{
	struct symbol symbol = {.start = line->addr, .end = UINT64_MAX};
	if (r->skip || r->list->n_modules == KALLSYMS_MODULES_MAX)
		return 0;
	if (code) {
		symbol.name = names_copy(&r->names, line->name, SIZE_MAX);
		if (!symbol.name)
			return IMAGE_OVERSIZE;
		symbol.rank = rank_of(line->type);
	}
	int n = symbols_add(&r->block, &symbol);
	return n == SYMBOLS_FULL ? IMAGE_OVERSIZE : n;
}

/* All symbols of a module are read: sort and keep them. */
static int block_end(struct reading *r)
{
	struct module *m = NULL;
	int n = r->block.n > 0 ? module_new(r->list, r->module, &m) : 0;

	if (m && n == 0)
		sort_items(r->block.symbol, r->block.n, sizeof(*r->block.symbol), symbol_compare);
	for (size_t i = 0; n == 0 && i < r->block.n; i++) {
		const struct symbol *s = &r->block.symbol[i];
		n = append(&m->symbols, s->start, s->name, (int)s->rank);
	}
	if (m)
		kernel_symbols_seal(&m->symbols);
	r->found |= m && n == 0 && r->wanted && module_is(r->wanted, m->name);
	symbols_clear(&r->block);
	names_clear(&r->names);
	return n;
}

/* A line of another module follows. */
static int block_begin(struct reading *r, const char *module)
{
	int n = block_end(r);

	strcpy(r->module, module); /* line_parse checked that it fits */
	r->skip = r->again && module_find(r->list, module);
	return n;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int reading_add(struct reading *r, const struct line *line)
{
	int n = 0;
	if (line->module && strcmp(line->module, r->module) != 0)
		n = block_begin(r, line->module);
	if (n || is_label(line->name))
		return n;
	if (!line->module && strcmp(line->name, "_stext") == 0)
		r->list->stext = line->addr;
	if (!line->addr)
		return 0;

	bool code = strchr("tTwW", line->type) != NULL;
	if (line->module)
		return block_add(r, line, code);
	return append(
		&r->list->kernel, line->addr, code ? line->name : NULL, (int)rank_of(line->type));
}

/* Is this the first line that was read since the pause, and of another module? */
static bool is_shifted(struct reading *r, const struct line *line)
{
	if (!r->paused || r->lines.offset == r->paused)
		return false;
	r->paused = 0;
	return !line->module || strcmp(line->module, r->module) != 0;
}

/* Read to the end, or up to and including the line after the wanted part: with `first`, the first
 * line of a module. */
static int reading_read(struct reading *r, bool first)
{
	struct text_lines *lines = &r->lines;
	size_t n_lines = 0, n_bad = 0;
	char *text;

	int n;
	while ((n = text_lines_next(lines, &text)) == 0) {
		struct line line;
		n_lines++;
		bool resumes = r->paused && lines->offset != r->paused;
		if (!resumes && line_is_label(lines, text))
			continue;
		if (!line_parse(text, &line)) {
			n_bad++;
			continue;
		}
		if (is_shifted(r, &line))
			return READING_SHIFTED;
		if (r->again && !line.module)
			continue;
		n = reading_add(r, &line);
		if (n)
			return n;
		if (r->found || (first && line.module)) {
			r->paused = lines->offset;
			return READING_PAUSED;
		}
	}
	if (n == TEXT_LINES_OVERSIZE)
		return IMAGE_OVERSIZE;
	if (n != TEXT_LINES_END)
		return n;
	return n_bad == n_lines && (n_lines || lines->offset) ? IMAGE_MALFORMED : block_end(r);
}

int kallsyms_read(int fd, struct kallsyms **ret_kallsyms)
{
	_cleanup_(kallsyms_unrefp) struct kallsyms *list = calloc(1, sizeof(*list));
	struct reading *reading = list ? calloc(1, sizeof(*reading)) : NULL;
	if (!reading)
		return -ENOMEM;
	list->n_users = 1;
	list->reading = reading;
	reading->list = list;
	reading->lines.fd = dup(fd);
	if (reading->lines.fd < 0)
		return -errno;

	int r = reading_read(reading, true);
	if (r != READING_PAUSED)
		list->reading = reading_free(reading);
	if (r && r != READING_PAUSED)
		return r;
	kernel_symbols_seal(&list->kernel);
	*ret_kallsyms = TAKE_PTR(list);
	return 0;
}

/* Read again from the start: the list has changed since the pause. */
static int reading_repeat(struct reading *r)
{
	symbols_clear(&r->block);
	names_clear(&r->names);
	r->module[0] = '\0';
	r->again = true;
	r->skip = false;
	r->paused = 0;
	r->lines.offset = r->lines.start = r->lines.end = 0;
	return reading_read(r, false);
}

int kallsyms_read_module(struct kallsyms *k, const char *module)
{
	struct reading *r = k->reading;
	if (!r || (module && module_find(k, module)))
		return 0;

	r->wanted = module;
	r->found = false;
	int n = reading_read(r, false);
	if (n == READING_SHIFTED)
		n = reading_repeat(r);
	r->wanted = NULL;
	r->found = false;
	if (n == READING_PAUSED)
		return 0;
	k->reading = reading_free(r);
	return n == IMAGE_MALFORMED ? 0 : n;
}

bool kallsyms_is_whole(const struct kallsyms *k)
{
	return !k->reading;
}

/* --- what was read ---------------------------------------------------------------------------- */

const struct kernel_symbols *kallsyms_find(const struct kallsyms *k, const char *module)
{
	const struct module *m = module ? module_find(k, module) : NULL;
	const struct kernel_symbols *found = module ? m ? &m->symbols : NULL : &k->kernel;

	return found && found->n > 0 ? found : NULL;
}

uint64_t kallsyms_stext(const struct kallsyms *k)
{
	return k->stext;
}

struct kallsyms *kallsyms_ref(struct kallsyms *k)
{
	k->n_users++;
	return k;
}

struct kallsyms *kallsyms_unref(struct kallsyms *k)
{
	if (!k || --k->n_users > 0)
		return NULL;
	reading_free(k->reading);
	kernel_symbols_clear(&k->kernel);
	for (size_t i = 0; i < k->n_modules; i++) {
		kernel_symbols_clear(&k->module[i]->symbols);
		free(k->module[i]);
	}
	free(k->module);
	free(k);
	return NULL;
}
