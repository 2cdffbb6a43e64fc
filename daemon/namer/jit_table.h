/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Unwinding of generated code: the rows of each piece, and a table of all that is valid */

#include "daemon/namer/table_rows.h"

#define JIT_UNWINDING_BYTES_MAX (32u << 10) /* of one piece; V8 and CPython write some 100 */

/* Rows of one piece of code. n 0: nothing describes it. */
struct jit_span {
	uint32_t first, n;
};

struct jit_row {
	uint32_t offset; /* from the start of the code */
	uint16_t rule;
};

/* Zero at the beginning. */
struct jit_rows {
	struct table_rows rules; /* their numbers alone */
	struct jit_row *row;
	uint32_t n_rows, rows_size;
	struct jit_span last;
};

/* Code at [start, end), whose description begins at `origin`. */
struct jit_piece {
	uint64_t start, end, origin;
	struct jit_span span;
};

/* Run the call frame information of the code at [start, start + n_code), as perf would place it. What cannot be read, or is
 * of other code, gives no rows. Bytes are borrowed. 0 or -ENOMEM. */
int jit_rows_take(struct jit_rows *j, uint16_t machine, const uint8_t *eh_frame, size_t n,
	uint64_t start, uint64_t n_code, struct jit_span *ret_span);

/* A table of pieces, which are in order and do not overlap; its offsets are addresses. The caller frees it. 0, -ENOMEM,
 * -EBADMSG: no piece has rows; -E2BIG. */
int jit_rows_table(const struct jit_rows *j, const struct jit_piece *piece, size_t n_pieces,
	size_t n_bytes_max, struct unwind_table **ret_table);
void jit_rows_clear(struct jit_rows *j);
