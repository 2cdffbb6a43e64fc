/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rows about loops: a table is one list, whose lines have a column and the cell below it
 *
 *     #define SPAN_TABLE(COLUMN)                                \
 *             COLUMN(comm, "Thread", NONE, cell_text(comm))     \
 *             COLUMN(span_ns, "Of", NS, cell_count(span_ns))
 *
 * CELLS_HEAD sends the columns and evaluates no cell; CELLS_ROW evaluates the cells where it stands.
 */

#include "daemon/query/scan.h"

#define CELLS_COLUMN(name, title, unit, cell) {#name, title, MPERF__UNIT__UNIT_##unit},
#define CELLS_CELL(name, title, unit, cell) cell,
#define CELLS_COLUMNS(TABLE) ((const struct answer_column[]){TABLE(CELLS_COLUMN)})
#define CELLS_N(TABLE) (sizeof(CELLS_COLUMNS(TABLE)) / sizeof(struct answer_column))
#define CELLS_HEAD(to, TABLE) (to)->columns((to)->userdata, CELLS_COLUMNS(TABLE), CELLS_N(TABLE))
#define CELLS_ROW(to, TABLE)                                                                       \
	(to)->row((to)->userdata, (const struct answer_value[]){TABLE(CELLS_CELL)}, CELLS_N(TABLE))

static inline struct answer_value cell_absent(void)
{
	return (struct answer_value){.kind = ANSWER_ABSENT};
}

/* Borrowed until the row is sent; NULL and "": absent. */
static inline struct answer_value cell_text(const char *text)
{
	return text && *text ? (struct answer_value){.kind = ANSWER_TEXT, .text = text}
			     : cell_absent();
}

/* A sum of counts as a whole number; a scaled one is cut off. */
static inline struct answer_value cell_count(double n)
{
	return (struct answer_value){.kind = ANSWER_INTEGER, .integer = integer_of(n)};
}

/* Negative: absent. */
static inline struct answer_value cell_known(double n)
{
	return n < 0 ? cell_absent() : cell_count(n);
}

static inline struct answer_value cell_real(double n)
{
	return n < 0 ? cell_absent() : (struct answer_value){.kind = ANSWER_REAL, .real = n};
}

/* Absent where the whole is nothing. */
static inline struct answer_value cell_share(double part, double whole)
{
	return whole > 0 ? (struct answer_value){.kind = ANSWER_REAL, .real = part / whole}
			 : cell_absent();
}

/* The number of a process or thread; absent if it is not known, as in a file that a program wrote. */
static inline struct answer_value cell_id(int32_t id)
{
	return cell_known(id > 0 ? id : -1);
}
