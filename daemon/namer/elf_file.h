/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* An ELF file in memory
 *
 * We map the file privately and give it to libelf as memory. It is mapped, not read, because most of a
 * debug file of a gigabyte is never used. Its section table is writable, because libelf changes it when it
 * unpacks a section; if all of the file were writable, it would count as our memory (RLIMIT_DATA). libelf
 * gets memory, because without a descriptor elfutils has no path to start a search from. The price is that
 * a file that is truncated while in use kills the process with SIGBUS: the parser is restarted, as for any
 * other hostile file.
 */

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/namer/debug_sections.h"

struct elf_file {
	Elf *elf;    /* NULL: absent, or no ELF file any more */
	void *bytes; /* NULL: absent */
	size_t n;
	bool mapped;           /* else from malloc */
	bool unpacked;         /* its debug sections */
	struct unpacked apart; /* unpacked sections that the Elf does not own */
};

/* Map the file; it may be closed then. 0, IMAGE_MALFORMED, IMAGE_OVERSIZE, -errno */
int elf_file_map(struct elf_file *f, int fd);
/* Take n bytes from malloc, on failure too. 0, IMAGE_MALFORMED, -ENOTSUP */
int elf_file_take(struct elf_file *f, void *bytes, size_t n);

/* Does it have a section of that name, perhaps compressed? */
bool elf_file_has_section(const struct elf_file *f, const char *name);
/* Does it have DWARF, perhaps compressed? Its contents are not checked. Not a relocatable file,
 * whose addresses are not final. */
bool elf_file_has_debug(const struct elf_file *f);
/* Unpack the debug sections needed for names, unless they are. 0 or -ENOMEM. */
int elf_file_unpack(struct elf_file *f);
/* The bytes that unpacking takes, as the file claims; 0: it was unpacked. */
size_t elf_file_packed(const struct elf_file *f);
/* Free what was unpacked: the file is as it was when it was mapped. Data borrowed from the Elf are
 * invalid then, except bytes of the file itself. */
void elf_file_pack(struct elf_file *f);
/* Release pages that the kernel reads again when they are touched. */
void elf_file_rest(struct elf_file *f);

/* Length of the build id, which is borrowed; 0: none. */
size_t elf_file_build_id(const struct elf_file *f, const uint8_t **ret_id);
/* The file that .gnu_debugaltlink names. Length of its build id; 0: no link. Both are borrowed. */
size_t elf_file_alt_link(const struct elf_file *f, const char **ret_path, const uint8_t **ret_id);

void elf_file_close(struct elf_file *f);
