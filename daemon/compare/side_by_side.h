/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Two sides beside each other: what an answer says where no change can be tested */

#include "daemon/compare/answer.h"
#include "daemon/compare/renames.h"

/* Bytes of the two names that BECAME_MOVED and BECAME_RENAMED give; longer ones are cut. */
#define BECAME_TEXT_BYTES 512

/* "moved to b.so", "was called f", "inlined in the candidate"; NULL: nothing is to be said. The text is
 * in buffer, of BECAME_TEXT_BYTES. */
const char *compare_became(
	const struct gather *g, const struct became *became, size_t row, char *buffer);

/* Send the tables "side" and "beside". 0; the answer's value; -errno. */
int compare_beside(const struct answer *to, const struct compare_sides *sides,
	const struct became *became, const struct compare_runs *runs);
