/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rows of a table of unwinding while it is made, and the numbers of its rules */

#include "daemon/unwind/table.h"

struct known_rule;

struct table_rows {
	uint64_t base;
	uint32_t *page; /* the number of its first row */
	uint32_t n_pages, pages_size;
	struct unwind_row *row;
	uint32_t n_rows, rows_size;
	struct unwind_rule *rule;
	uint32_t n_rules, rules_size;
	struct known_rule *known;
	size_t n_bytes_max;
	uint16_t last; /* the rule that holds from the last row on */
};

/* Begin with UNWIND_NO_RULE. n_bytes_max: of the table. 0, -ENOMEM; table_rows_clear either way. */
int table_rows_begin(struct table_rows *t, size_t n_bytes_max);
/* 0; -E2BIG: there are UNWIND_RULES_MAX; -ENOMEM. */
int table_rows_number(struct table_rows *t, const struct unwind_rule *rule, uint16_t *ret_number);
/* The first page is that of the address. To be called once, before rows are added. */
int table_rows_from(struct table_rows *t, uint64_t addr);
/* The rule holds from that address on. Addresses do not fall. 0, -E2BIG, -ENOMEM. */
int table_rows_add(struct table_rows *t, uint64_t addr, uint16_t rule);
/* The rows move to the table, which the caller frees; then there are none here. 0, -E2BIG, -ENOMEM. */
int table_rows_pack(struct table_rows *t, const struct unwind_segment *segment, size_t n_segments,
	struct unwind_table **ret_table);
void table_rows_clear(struct table_rows *t);
