/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The files with the split units of one program, which come when a unit is first needed
 *
 * Paths are only reported, never opened: the opener does that, with the rights of the program's user.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/namer/elf_file.h"
#include "daemon/namer/split_unit.h"

/* A debug Chromium has 50,000, but in a package; each takes a mapping, of which a process may have
 * 65,530. Units beyond it have no functions. */
#define SPLIT_FILES_MAX 8192
#define SPLIT_PATH_MAX 4096 /* PATH_MAX */

struct split_file {
	uint64_t id; /* of the unit */
	struct elf_file file;
	bool in_vain; /* the file is not there, or not the unit's */
	bool serves;  /* a unit that was found in it refers to it */
};

struct split_files {
	struct elf_file package;
	struct split_file *one;
	size_t n, size;
	uint32_t n_added; /* files so far: a unit that was not found may be in the next one */
	bool wants;       /* a unit was looked for, with this id and path: */
	uint64_t wanted_id;
	/* "": the path is not known, but the unit may be in a package */
	char wanted[SPLIT_PATH_MAX];
};

/* Find the other half of a skeleton of `program`. If no file so far has it, its file becomes the wanted
 * one, unless that was looked for and not found. 0, SPLIT_UNIT_NONE, -ENOMEM */
int split_files_find(struct split_files *f, const struct skeleton *s, Elf *program,
	struct split_unit **ret_unit);
/* Add a package (once), or the file that is wanted. The descriptor may be closed then. 0, IMAGE_*,
 * -EINVAL, -ENOMEM */
int split_files_add_package(struct split_files *f, int fd);
int split_files_add(struct split_files *f, int fd);
/* Note that the wanted file is not there. */
void split_files_give_up(struct split_files *f);

/* The functions of struct elf_file, for all files. */
void split_files_pack(struct split_files *f);
void split_files_rest(struct split_files *f);
void split_files_clear(struct split_files *f);
