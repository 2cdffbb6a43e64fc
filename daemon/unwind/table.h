/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Tables of unwinding: how to find the caller at each instruction of a file, as integers
 *
 *      .eh_frame, .debug_frame  →  namer/table_make  →  rows of 4 bytes, and the rules they name
 *      offset in the file       →  unwind_table_at   →  the rule that holds there
 *
 * A row holds up to the next one. Rows are kept by pages of 64 KiB, so that 16 bits of address do, and a search
 * takes 16 steps at most. A file of 50 MB of text has some 3 MB of rows and 700 rules. A table is one piece of
 * memory without pointers, so it is sent as it is; unwind_table_check tells whether what arrived is one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a value stands. `sp` and `fp` are those of the frame whose caller is wanted. */
enum unwind_place {
	UNWIND_UNKNOWN, /* not described, or changed: nothing can be derived from it */
	UNWIND_SAME,    /* still in its register */
	UNWIND_IN_SP,   /* sp + offset */
	UNWIND_IN_FP,   /* fp + offset */
	UNWIND_AT_SP,   /* in memory at sp + offset */
	UNWIND_AT_FP,   /* in memory at fp + offset */
	UNWIND_AT_CFA,  /* in memory at the canonical frame address + offset */
	UNWIND_IN_PLT,  /* sp + offset, + 8 from that byte of a PLT entry on: unwind_rule.number */
	UNWIND_IN_REGISTER, /* as CFA: register `number` + offset; as return address: register `ra_offset` */
	UNWIND_NONE, /* of the return address: the outermost frame, it has no caller */
};

/* How to find the caller of a frame. */
struct unwind_rule {
	uint8_t cfa, ra, fp; /* enum unwind_place; UNWIND_UNKNOWN as CFA: ask elfutils */
	uint8_t number; /* DWARF's of a register, or the byte in a PLT entry of 16 from which 8 bytes more are on the stack */
	int32_t cfa_offset, ra_offset, fp_offset;
	uint8_t is_signal; /* or 0: the caller was interrupted, it is at the address, not before it */
	uint8_t base;      /* enum unwind_place: of the base register, see UNWIND_BASE_X86 */
	int16_t base_offset;
	int32_t cfa_more; /* added to the CFA that memory holds (UNWIND_AT_SP, UNWIND_AT_FP) */
};

/* The register besides sp and fp in which code keeps the CFA across calls: rbx, where the dynamic linker resolves a
 * function at its first call. Other machines have none. DWARF's number. */
#define UNWIND_BASE_X86 3
#define UNWIND_BASE_NONE 0xff

#define UNWIND_PAGE_SHIFT 16
#define UNWIND_PAGES_MAX (1u << 16) /* 4 GiB of text */
#define UNWIND_RULES_MAX 0xffffu
#define UNWIND_ROWS_MAX                                                                            \
	(1u << 28)       /* more than is kept anywhere; the bytes of a table fit into 32 bits */
#define UNWIND_NO_RULE 0 /* the first rule: no call frame information */
#define UNWIND_SEGMENTS_MAX                                                                        \
	64 /* executable ones; programs have one, some two, generated code more */

/* A part of the file that is mapped executable. */
struct unwind_segment {
	uint64_t offset, n, addr;
};

struct unwind_row {
	uint16_t low; /* of the address, in its page */
	uint16_t rule;
};

struct unwind_table {
	uint64_t base; /* address of the first page */
	uint32_t n_segments, n_rules, n_pages, n_rows;
	/* segments; rules; the number of each page's first row, which is at its beginning, and n_rows; rows */
	uint64_t memory[];
};

/* Bytes of a table with these counts, and of its memory alone. */
size_t unwind_table_bytes(const struct unwind_table *counts);
size_t unwind_table_memory_bytes(const struct unwind_table *counts);
/* A table of these counts and this base, its memory zero. NULL: out of memory. Free it with free(). */
struct unwind_table *unwind_table_new(const struct unwind_table *counts);

struct unwind_segment *unwind_table_segments(struct unwind_table *t);
struct unwind_rule *unwind_table_rules(struct unwind_table *t);
uint32_t *unwind_table_pages(struct unwind_table *t);
struct unwind_row *unwind_table_rows(struct unwind_table *t);

/* May a table have these counts? To be asked before its memory is made. 0 or -EBADMSG. */
int unwind_table_check_counts(const struct unwind_table *counts);
/* Does its memory hold what a search relies on: rows in order, of pages and rules that there are? 0 or -EBADMSG. */
int unwind_table_check(const struct unwind_table *t);

/* The rule at an offset in the file. NULL: no call frame information there. Borrowed. */
const struct unwind_rule *unwind_table_at(const struct unwind_table *t, uint64_t offset);
/* The same by the file's address. Exported for tests. */
const struct unwind_rule *unwind_table_find(const struct unwind_table *t, uint64_t addr);
