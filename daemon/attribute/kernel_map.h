/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The kernel's own addresses: which of them is in a module, and where its text begins
 *
 * Read once. An address of a module becomes (module, offset from its start), any other (kernel,
 * offset from _stext), so that frames of two boots with different layouts are the same frames.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/attribute/file.h"

#define KERNEL_MODULES_MAX 8192             /* a full desktop loads 300 */
#define KERNEL_MODULES_BYTES_MAX (1u << 20) /* of /proc/modules; about 100 bytes a module */
#define KERNEL_SYMBOLS_BYTES_MAX                                                                   \
	(1u << 20) /* of /proc/kallsyms searched for _stext, which is among the first */
#define KERNEL_NOTES_BYTES_MAX 4096 /* of an ELF note section; one build id takes 36 */
#define KERNEL_MODULE_NAME_BYTES 64 /* Source: MODULE_NAME_LEN, include/linux/moduleparam.h */

struct kernel_module {
	uint64_t start, end;
	char name[KERNEL_MODULE_NAME_BYTES];
	struct file *file; /* once an address in it was seen */
};

struct kernel_map {
	uint64_t base;                /* address of _stext; 0: hidden from us (kptr_restrict) */
	struct kernel_module *module; /* sorted by start */
	size_t n_modules;
	struct file *file; /* the kernel, once an address in it was seen */
	const char *proc;  /* borrowed: "/proc" */
};

/* Read the map below the folder proc, whose neighbour is sys. What cannot be read is missing from
 * the map. 0 or -ENOMEM. */
int kernel_map_read(const char *proc, struct kernel_map *ret_map);

/* Add the modules of a text like /proc/modules. Lines that do not parse, or whose address is
 * hidden, are passed over. 0 or -ENOMEM. */
int kernel_map_modules(struct kernel_map *m, const char *text);

/* File and offset of an address. With base 0 the kernel's offset is always 0.
 * 0, FILE_TABLE_FULL, -ENOMEM. */
int kernel_map_find(struct kernel_map *m, struct file_table *files, uint64_t addr,
	struct file **ret_file, uint64_t *ret_offset);

/* The kernel itself. 0, FILE_TABLE_FULL, -ENOMEM. */
int kernel_map_kernel(struct kernel_map *m, struct file_table *files, struct file **ret_file);

/* The GNU build id in a section of ELF notes of the machine's byte order; its bytes (≤ 20), 0:
 * none. Source: elf(5), "Notes (Nhdr)". */
uint8_t note_build_id(const uint8_t *notes, size_t n, uint8_t ret_build_id[20]);

void kernel_map_clear(struct kernel_map *m);
