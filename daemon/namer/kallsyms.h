/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Kallsyms: the functions of the running kernel and of all its modules, by one reading of the list
 *
 * Images of the kernel and of modules share one of these, which goes with the last of them.
 */

#include <stdint.h>

#include "daemon/namer/kernel_symbols.h"

#define KALLSYMS_MODULES_MAX 8192 /* as many as the daemon knows; what stands behind them is left out */

struct kallsyms;

/* Read /proc/kallsyms, from its begin. 0, IMAGE_MALFORMED, IMAGE_OVERSIZE, -errno */
int kallsyms_read(int fd, struct kallsyms **ret_kallsyms);

/* The kernel itself (module NULL), or a module by its name or that of its file. NULL: it is not in
 * the list, or without an address. */
const struct kernel_symbols *kallsyms_find(const struct kallsyms *k, const char *module);

/* Where offsets of the kernel itself count from; 0: not in the list. */
uint64_t kallsyms_stext(const struct kallsyms *k);

/* One more, or one less, who needs it. */
struct kallsyms *kallsyms_ref(struct kallsyms *k);
struct kallsyms *kallsyms_unref(struct kallsyms *k);
