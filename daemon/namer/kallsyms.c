/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The kernel lists its symbols without sizes, so each reaches to the next one of any kind: data
 * symbols have no name here, but they end the function before them. The list holds the kernel
 * first, sorted, then each module, unsorted in between. With kernel.kptr_restrict all addresses
 * are 0, which gives an image without symbols.
 *
 * Source: Linux kernel/kallsyms.c (s_show), v6.18: "%px %c %s\t[%s]\n".
 */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/image_inside.h"
#include "daemon/namer/symbols.h"
#include "daemon/namer/text_lines.h"

struct line {
	uint64_t addr;
	char type;
	const char *name;
	const char *module; /* NULL: the kernel itself */
};

struct reading {
	const char *module;
	struct image *image;
	struct symbols symbols;
	uint64_t stext; /* 0: not seen */
	uint64_t hole;  /* address of the symbol before this one, if it had no name; else UINT64_MAX
			 */
};

/* Cuts `text` in place. False if it is no line of kallsyms. */
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
	}
	return true;
}

/* File names of modules may have '-' where the kernel writes '_'. */
static bool module_is(const char *wanted, const char *module)
{
	if (!wanted || !module)
		return !wanted && !module;

	for (; *module; wanted++, module++)
		if (*wanted != *module && (*wanted != '-' || *module != '_'))
			return false;
	return !*wanted;
}

static enum symbol_rank rank_of(char type)
{
	return type == 'T' ? SYMBOL_GLOBAL : type == 't' ? SYMBOL_LOCAL : SYMBOL_WEAK;
}

static int kernel_add(struct kernel_symbols *k, const struct line *line, bool named)
{
	/* Before the text there may be per-CPU data, whose addresses begin at 0. */
	if (!named && (k->n == 0 || !k->symbol[k->n - 1].name))
		return 0;
	int r = kernel_symbols_add(
		k, line->addr, named ? line->name : NULL, (int)rank_of(line->type));
	/* Not in order are modules, which end nothing of the kernel's. */
	return r == KERNEL_SYMBOLS_FULL ? IMAGE_OVERSIZE : r == KERNEL_SYMBOLS_UNSORTED ? 0 : r;
}

static int reading_add(struct reading *r, const struct line *line)
{
	bool mine = module_is(r->module, line->module);
	bool code = strchr("tTwW", line->type) != NULL;
	struct symbol symbol = {.start = line->addr, .end = UINT64_MAX};

	if (mine && !line->module && strcmp(line->name, "_stext") == 0)
		r->stext = line->addr;
	if (!line->addr)
		return 0;

	bool named = mine && code;
	if (!r->module)
		return kernel_add(&r->image->kernel, line, named);
	/* Half of the list is data behind data, which ends no function. */
	if (!named && r->hole <= line->addr)
		return 0;
	r->hole = named ? UINT64_MAX : line->addr;

	if (named) {
		symbol.name = names_copy(&r->image->names, line->name, SIZE_MAX);
		if (!symbol.name)
			return IMAGE_OVERSIZE;
		symbol.rank = rank_of(line->type);
	}
	int n = symbols_add(&r->symbols, &symbol);
	return n == SYMBOLS_FULL ? IMAGE_OVERSIZE : n;
}

static int reading_read(struct reading *r, struct text_lines *lines)
{
	size_t n_lines = 0, n_bad = 0;
	char *text;

	int n;
	while ((n = text_lines_next(lines, &text)) == 0) {
		struct line line;
		n_lines++;
		if (!line_parse(text, &line)) {
			n_bad++;
			continue;
		}
		n = reading_add(r, &line);
		if (n)
			return n;
	}
	if (n == TEXT_LINES_OVERSIZE)
		return IMAGE_OVERSIZE;
	if (n != TEXT_LINES_END)
		return n;
	return n_bad == n_lines && (n_lines || lines->offset) ? IMAGE_MALFORMED : 0;
}

/* Drop the holes and what is below the base; make addresses offsets. */
static void spans_rebase(struct spans *s, uint64_t base)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct span span = s->span[i];
		if (!span.name || span.start < base)
			continue;
		bool last = i + 1 == s->n || !s->span[i + 1].name;
		span.start -= base;
		span.end -= base;
		if (last && span.end - span.start > KERNEL_LAST_BYTES_MAX)
			span.end = span.start + KERNEL_LAST_BYTES_MAX;
		s->span[kept++] = span;
	}
	s->n = kept;
}

int image_open_kallsyms(int fd, const char *module, uint64_t base, struct image **ret_image)
{
	_cleanup_(freep) struct text_lines *lines = calloc(1, sizeof(*lines));
	_cleanup_(image_freep) struct image *image = image_new();
	if (!lines || !image)
		return -ENOMEM;
	lines->fd = fd;

	struct reading reading = {.module = module, .image = image, .hole = UINT64_MAX};
	int r = reading_read(&reading, lines);
	if (r == 0 && !module)
		kernel_symbols_seal(&image->kernel, reading.stext ? reading.stext : base);
	if (r == 0)
		r = symbols_resolve(&reading.symbols, &image->symbols);
	symbols_clear(&reading.symbols);
	if (r)
		return r;

	spans_rebase(&image->symbols, base);
	*ret_image = TAKE_PTR(image);
	return 0;
}
