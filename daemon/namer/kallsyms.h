/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Kallsyms: the functions of the running kernel and of its modules, from one read of the list, in
 * parts
 *
 * Images of the kernel and of modules share one of these, which is freed with the last of them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/namer/kernel_symbols.h"

/* as many as the daemon keeps; further ones are left out */
#define KALLSYMS_MODULES_MAX 8192

struct kallsyms;

/* Read /proc/kallsyms from its start, up to the first module. The descriptor is duplicated, and its
 * file must not be read by anyone else until the list is whole. 0, IMAGE_MALFORMED, IMAGE_OVERSIZE,
 * -errno */
int kallsyms_read(int fd, struct kallsyms **ret_kallsyms);

/* Read on to the end of this module, unless it was read; to the end of all modules if it is NULL or
 * not in the list. Results of kallsyms_find stay valid. 0; IMAGE_OVERSIZE, -errno: some modules are
 * missing, and the list is whole all the same. */
int kallsyms_read_module(struct kallsyms *k, const char *module);

/* Is there nothing more to read? */
bool kallsyms_is_whole(const struct kallsyms *k);

/* The kernel itself (module NULL), or a module by its name or file name. NULL: not in the list, not
 * read yet, or without an address. */
const struct kernel_symbols *kallsyms_find(const struct kallsyms *k, const char *module);

/* The base of the kernel's own offsets; 0: not in the list. */
uint64_t kallsyms_stext(const struct kallsyms *k);

/* Take or drop a reference. */
struct kallsyms *kallsyms_ref(struct kallsyms *k);
struct kallsyms *kallsyms_unref(struct kallsyms *k);
