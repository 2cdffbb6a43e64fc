/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Two sides side by side: the answer where no change can be tested */

#include "daemon/compare/answer.h"
#include "daemon/compare/renames.h"

/* Bytes of the two names that RENAME_MOVED and RENAME_RENAMED give; longer ones are cut. */
#define RENAME_TEXT_BYTES 512

/* "moved to b.so", "was called f", "inlined in the candidate"; NULL: no note is needed. The text is in
 * buffer, of RENAME_TEXT_BYTES. */
const char *compare_rename_text(
	const struct gather *g, const struct function_rename *renames, size_t row, char *buffer);

/* Send the tables "side" and "beside". 0; the answer's value; -errno. */
int compare_side_by_side(const struct answer *to, const struct compare_sides *sides,
	const struct function_rename *renames, const struct compare_runs *runs);
