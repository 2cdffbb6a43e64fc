/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The kernel's addresses: modules, and the start of the kernel's text
 *
 * Read once. An address of a module becomes (module, offset from its start), any other address
 * becomes (kernel, offset from _stext), so frames stay the same across boots with different
 * layouts.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/naming/file.h"

#define KERNEL_MODULES_MAX 8192             /* a full desktop loads 300 */
#define KERNEL_MODULES_BYTES_MAX (1u << 20) /* of /proc/modules; about 100 bytes a module */
/* of /proc/kallsyms searched for _stext, one of the first symbols */
#define KERNEL_SYMBOLS_BYTES_MAX (1u << 20)
#define KERNEL_NOTES_BYTES_MAX 4096 /* of an ELF note section; one build id takes 36 */
#define KERNEL_MODULE_NAME_BYTES 64 /* Source: MODULE_NAME_LEN, include/linux/moduleparam.h */

struct kernel_module {
	uint64_t start, end;
	char name[KERNEL_MODULE_NAME_BYTES];
	struct file *file; /* once an address in it was seen */
};

struct kernel_map {
	uint64_t base;                /* address of _stext; 0: hidden (kptr_restrict) */
	struct kernel_module *module; /* sorted by start */
	size_t n_modules;
	struct file *file; /* the kernel, once an address in it was seen */
	const char *proc;  /* borrowed: "/proc" */
};

/* Read the map from the folder proc, with sys next to it. Entries that cannot be read are missing
 * from the map. 0 or -ENOMEM. */
int kernel_map_read(const char *proc, struct kernel_map *ret_map);

/* For tests and fuzzers too: add the modules of a text like /proc/modules. Lines that do not parse or have a hidden address
 * are skipped. 0 or -ENOMEM. Exported for tests. */
int kernel_map_modules(struct kernel_map *m, const char *text);

/* File and offset of an address. With base 0 the kernel's offset is always 0.
 * 0, FILE_TABLE_FULL, -ENOMEM. */
int kernel_map_find(struct kernel_map *m, struct file_table *files, uint64_t addr,
	struct file **ret_file, uint64_t *ret_offset);

/* Is the address of the kernel's text known, so that its addresses can be named? */
bool kernel_map_has_text(const struct kernel_map *m);
/* Is the address known to be outside the kernel's text and its modules? */
bool kernel_map_is_outside(const struct kernel_map *m, uint64_t addr);
/* Mark the files of the kernel and its modules. */
void kernel_map_mark(const struct kernel_map *m, struct file_marks *marks);

/* The kernel itself. 0, FILE_TABLE_FULL, -ENOMEM. */
int kernel_map_kernel(struct kernel_map *m, struct file_table *files, struct file **ret_file);

/* For tests and fuzzers too: find the GNU build id in a section of ELF notes in the machine's byte order. Returns its size in
 * bytes (≤ 20), 0: none. Source: elf(5), "Notes (Nhdr)". Exported for tests. */
uint8_t note_build_id(const uint8_t *notes, size_t n, uint8_t ret_build_id[20]);

void kernel_map_clear(struct kernel_map *m);
