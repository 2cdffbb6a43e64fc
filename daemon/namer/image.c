/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* An image is one of three kinds: an ELF file (elf_image.c), the text of the kernel or of a module (kallsyms.c), or
 * generated code (growing.c). This file has only the code that the kinds share.
 */

#include <errno.h>
#include <stdlib.h>

#include "daemon/namer/elf_image.h"
#include "daemon/namer/growing.h"
#include "daemon/namer/image.h"
#include "daemon/namer/kallsyms.h"
#include "daemon/namer/names.h"
#include "daemon/namer/split_files.h"
#include "proto/base/memory.h"

/* The last function of the kernel or of a module has no near successor that bounds it. The kernel's
 * largest functions take tens of kilobytes. */
#define KERNEL_LAST_BYTES_MAX (64u << 10)

struct kernel_text {
	struct kallsyms *kallsyms;
	const struct kernel_symbols *symbols; /* in kallsyms; NULL: it lists none */
	uint64_t base;
	struct names names;
};

struct image {
	uint32_t n_others; /* users besides the first */
	/* one of these; the others are NULL */
	struct elf_image *elf;
	struct kernel_text *kernel;
	struct growing *growing;
};

DEFINE_CLEANUP(struct image *, image_free)

int image_open_elf(int fd, struct image **ret_image)
{
	_cleanup_(image_freep) struct image *image = calloc(1, sizeof(*image));
	int r = image ? elf_image_open(fd, &image->elf) : -ENOMEM;

	if (r == 0)
		*ret_image = TAKE_PTR(image);
	return r;
}

int image_open_kallsyms(
	struct kallsyms *k, const char *module, uint64_t base, struct image **ret_image)
{
	_cleanup_(image_freep) struct image *image = calloc(1, sizeof(*image));

	if (!image || !(image->kernel = calloc(1, sizeof(*image->kernel))))
		return -ENOMEM;
	image->kernel->kallsyms = kallsyms_ref(k);
	image->kernel->symbols = kallsyms_find(k, module);
	image->kernel->base = !module && kallsyms_stext(k) ? kallsyms_stext(k) : base;
	*ret_image = TAKE_PTR(image);
	return 0;
}

int image_open_perf_map(int fd, struct image **ret_image)
{
	_cleanup_(image_freep) struct image *image = calloc(1, sizeof(*image));
	int r = image ? growing_open_perf_map(fd, &image->growing) : -ENOMEM;

	if (r == 0)
		*ret_image = TAKE_PTR(image);
	return r;
}

int image_open_jitdump(int fd, struct image **ret_image)
{
	_cleanup_(image_freep) struct image *image = calloc(1, sizeof(*image));
	int r = image ? growing_open_jitdump(fd, &image->growing) : -ENOMEM;

	if (r == 0)
		*ret_image = TAKE_PTR(image);
	return r;
}

/* --- ELF -------------------------------------------------------------------------------------- */

void image_wants(const struct image *i, struct image_wants *ret_wants)
{
	*ret_wants = (struct image_wants){0};
	if (i->elf)
		elf_image_wants(i->elf, ret_wants);
}

int image_add_debug(struct image *i, int fd, bool *belongs)
{
	return i->elf ? elf_image_add_debug(i->elf, fd, belongs) : -EINVAL;
}

int image_add_alt(struct image *i, int fd)
{
	return i->elf ? elf_image_add_alt(i->elf, fd) : -EINVAL;
}

const char *image_wants_split(const struct image *i)
{
	const struct split_files *split = i->elf ? elf_image_split(i->elf) : NULL;

	return split && split->wants ? split->wanted : NULL;
}

int image_add_package(struct image *i, int fd)
{
	return i->elf ? split_files_add_package(elf_image_split(i->elf), fd) : -EINVAL;
}

int image_add_split(struct image *i, int fd)
{
	return i->elf ? split_files_add(elf_image_split(i->elf), fd) : -EINVAL;
}

void image_give_up_split(struct image *i)
{
	if (i->elf)
		split_files_give_up(elf_image_split(i->elf));
}

bool image_may_be_split(const struct image *i)
{
	return i->elf && elf_image_may_be_split(i->elf);
}

int image_open_lines(struct image *i)
{
	return i->elf ? elf_image_open_lines(i->elf) : 0;
}

size_t image_lines_bytes(const struct image *i)
{
	return i->elf ? elf_image_lines_bytes(i->elf) : 0;
}

bool image_has_open_lines(const struct image *i)
{
	return i->elf && elf_image_has_open_lines(i->elf);
}

void image_drop_units(struct image *i)
{
	if (i->elf)
		elf_image_drop_units(i->elf);
}

void image_drop_lines(struct image *i)
{
	if (i->elf)
		elf_image_drop_lines(i->elf);
}

void image_release_pages(struct image *i)
{
	if (i->elf)
		elf_image_release_pages(i->elf);
}

/* --- generated code --------------------------------------------------------------------------- */

int image_read_on(struct image *i, int fd)
{
	return i->growing ? growing_read_on(i->growing, fd) : IMAGE_MALFORMED;
}

uint32_t image_order(const struct image *i)
{
	return i->growing ? growing_order(i->growing) : 0;
}

uint32_t image_n_rewrites(const struct image *i)
{
	return i->growing ? growing_n_rewrites(i->growing) : 0;
}

struct image_mark image_mark(const struct image *i)
{
	return i->growing ? growing_mark(i->growing) : (struct image_mark){0};
}

bool image_goes_on(struct image *i, int fd, const struct image_mark *mark)
{
	return i->growing && growing_goes_on(i->growing, fd, mark);
}

uint32_t image_changes(
	const struct image *i, uint32_t after, struct image_change *ret_change, uint32_t max)
{
	return i->growing ? growing_changes(i->growing, after, ret_change, max) : 0;
}

int image_table(const struct image *i, uint16_t machine, size_t n_bytes_max,
	struct unwind_table **ret_table)
{
	return i->growing ? growing_table(i->growing, machine, n_bytes_max, ret_table) : -EBADMSG;
}

/* --- names ------------------------------------------------------------------------------------ */

static void name_kernel(struct kernel_text *k, uint64_t offset, struct image_naming *naming)
{
	struct kernel_function f;

	if (!k->symbols ||
		!kernel_symbols_find(k->symbols, k->base, offset, KERNEL_LAST_BYTES_MAX, &f))
		return;
	naming->place[naming->n_places++].function =
		f.padding ? names_join(&k->names, KERNEL_PADDING, f.name)
			  : names_demangle(&k->names, f.name);
	naming->from = f.start;
	naming->to = f.end;
}

void image_name_by(
	struct image *i, uint64_t offset, uint32_t order, struct image_naming *ret_naming)
{
	*ret_naming = (struct image_naming){0};
	if (i->elf)
		elf_image_name(i->elf, offset, ret_naming);
	else if (i->kernel)
		name_kernel(i->kernel, offset, ret_naming);
	else
		growing_name(i->growing, offset, order, ret_naming);

	if (ret_naming->n_places)
		ret_naming->outcome = IMAGE_NAMED;
	else if (ret_naming->is_start)
		ret_naming->outcome = IMAGE_PLACED;
	else if (image_has_symbols(i) || image_has_debug(i))
		ret_naming->outcome = IMAGE_OUT_OF_SYMBOL;
	else
		ret_naming->outcome = IMAGE_NO_SYMBOLS;
}

void image_name(struct image *i, uint64_t offset, struct image_naming *ret_naming)
{
	image_name_by(i, offset, UINT32_MAX, ret_naming);
}

bool image_has_starts(const struct image *i)
{
	return i->elf && elf_image_has_starts(i->elf);
}

bool image_has_symbols(const struct image *i)
{
	return i->elf      ? elf_image_has_symbols(i->elf)
	       : i->kernel ? i->kernel->symbols != NULL
			   : growing_order(i->growing) > 0;
}

bool image_has_debug(const struct image *i)
{
	return i->elf ? elf_image_has_debug(i->elf) : i->growing && growing_has_lines(i->growing);
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

static void kernel_text_free(struct kernel_text *k)
{
	if (!k)
		return;
	kallsyms_unref(k->kallsyms);
	names_clear(&k->names);
	free(k);
}

struct image *image_free(struct image *i)
{
	if (!i)
		return NULL;
	if (i->n_others > 0) {
		i->n_others--;
		return NULL;
	}

	elf_image_free(i->elf);
	kernel_text_free(i->kernel);
	growing_free(i->growing);
	free(i);
	return NULL;
}
