/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/namer/split_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/image.h"
#include "proto/base/memory.h"

static struct split_file *find_one(struct split_files *f, uint64_t id)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->one[i].id == id)
			return &f->one[i];
	return NULL;
}

/* The entry of a unit; NULL: there is no memory, or there are too many. */
static struct split_file *get_one(struct split_files *f, uint64_t id)
{
	struct split_file *one = find_one(f, id);

	if (one || f->n == SPLIT_FILES_MAX)
		return one;
	if (f->n == f->size) {
		size_t size = f->size ? 2 * f->size : 8;
		struct split_file *grown = reallocarray(f->one, size, sizeof(*grown));
		if (!grown)
			return NULL;
		f->one = grown;
		f->size = size;
	}
	f->one[f->n] = (struct split_file){.id = id};
	return &f->one[f->n++];
}

static void want(struct split_files *f, const struct skeleton *s)
{
	const char *name = s->name ? s->name : "", *folder = s->directory ? s->directory : "";
	bool whole = *name == '/';
	int n = snprintf(f->wanted, sizeof(f->wanted), "%s%s%s", whole ? "" : folder,
		whole ? "" : "/", name);

	if (!*name || f->wanted[0] != '/' || (!whole && *folder != '/') || n < 0 ||
		(size_t)n >= sizeof(f->wanted))
		f->wanted[0] = '\0';
	f->wanted_id = s->id;
	f->wants = true;
}

static int find_in(
	struct elf_file *file, const struct skeleton *s, Elf *program, struct split_unit **ret_unit)
{
	int r = elf_file_unpack(file);
	if (r < 0)
		return r;
	return file->elf ? split_unit_new(s, program, file->elf, ret_unit) : SPLIT_UNIT_NONE;
}

int split_files_find(
	struct split_files *f, const struct skeleton *s, Elf *program, struct split_unit **ret_unit)
{
	int r = find_in(&f->package, s, program, ret_unit);
	if (r != SPLIT_UNIT_NONE)
		return r;

	struct split_file *one = get_one(f, s->id);
	if (!one)
		return SPLIT_UNIT_NONE;
	if (one->file.elf) {
		r = find_in(&one->file, s, program, ret_unit);
		one->serves |= r == 0;
		if (r != SPLIT_UNIT_NONE || one->serves)
			return r;
		elf_file_close(&one->file);
		one->in_vain = true; /* the file is of another build */
	}
	if (!one->in_vain)
		want(f, s);
	return SPLIT_UNIT_NONE;
}

int split_files_add_package(struct split_files *f, int fd)
{
	if (f->package.bytes)
		return -EINVAL;
	f->wants = false;
	int r = elf_file_map(&f->package, fd);
	if (r == 0)
		f->n_added++;
	return r;
}

int split_files_add(struct split_files *f, int fd)
{
	struct split_file *one = f->wants ? find_one(f, f->wanted_id) : NULL;
	if (!one || one->file.bytes)
		return -EINVAL;

	f->wants = false;
	int r = elf_file_map(&one->file, fd);
	one->in_vain = r != 0;
	if (r == 0)
		f->n_added++;
	return r;
}

void split_files_give_up(struct split_files *f)
{
	struct split_file *one = f->wants ? find_one(f, f->wanted_id) : NULL;

	f->wants = false;
	if (one)
		one->in_vain = true;
}

void split_files_pack(struct split_files *f)
{
	elf_file_pack(&f->package);
	for (size_t i = 0; i < f->n; i++)
		elf_file_pack(&f->one[i].file);
}

void split_files_rest(struct split_files *f)
{
	elf_file_rest(&f->package);
	for (size_t i = 0; i < f->n; i++)
		elf_file_rest(&f->one[i].file);
}

void split_files_clear(struct split_files *f)
{
	elf_file_close(&f->package);
	for (size_t i = 0; i < f->n; i++)
		elf_file_close(&f->one[i].file);
	free(f->one);
	*f = (struct split_files){.n = 0};
}
