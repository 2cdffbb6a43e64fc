/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* ELF images: symbols and lines of an ELF file, and of the files that complete it
 *
 * The contracts are those of the functions of the same name in image.h.
 */

#include "daemon/namer/image.h"

struct elf_image;
struct split_files;

int elf_image_open(int fd, struct elf_image **ret_elf);
void elf_image_wants(const struct elf_image *e, struct image_wants *ret_wants);
int elf_image_add_debug(struct elf_image *e, int fd, bool *belongs);
int elf_image_add_alt(struct elf_image *e, int fd);
/* The files of its split units. */
struct split_files *elf_image_split(struct elf_image *e);
bool elf_image_may_be_split(const struct elf_image *e);
/* The places of a file offset, and its address; no place is added if none is known. */
void elf_image_name(struct elf_image *e, uint64_t offset, struct image_naming *naming);
bool elf_image_has_starts(const struct elf_image *e);
bool elf_image_has_symbols(const struct elf_image *e);
bool elf_image_has_debug(const struct elf_image *e);
int elf_image_open_lines(struct elf_image *e);
size_t elf_image_lines_bytes(const struct elf_image *e);
bool elf_image_has_open_lines(const struct elf_image *e);
void elf_image_drop_units(struct elf_image *e);
void elf_image_drop_lines(struct elf_image *e);
void elf_image_release_pages(struct elf_image *e);
struct elf_image *elf_image_free(struct elf_image *e);
