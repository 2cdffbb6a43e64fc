/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Callers of a copied stack, as mperfd and the parser find them together: by tables, and by elfutils where these do
 * not do. Support code of the unit tests. */

#include "daemon/namer/unwind.h"

struct callers;

/* As unwinder_new; the maps stay the test's. */
int callers_new(const struct unwind_map *maps, size_t n_maps, uint16_t machine,
	struct callers **ret_callers);
/* As unwinder_unwind. */
int callers_of(struct callers *c, const uint64_t *regs, uint64_t regs_mask, const uint8_t *stack,
	size_t n_stack, struct unwound *ret_unwound);
/* Each way alone; the first says whether tables did. */
bool callers_by_tables(struct callers *c, const struct unwind_sample *s, struct unwound *ret);
int callers_by_elfutils(struct callers *c, const struct unwind_sample *s, struct unwound *ret);
struct callers *callers_free(struct callers *c);
