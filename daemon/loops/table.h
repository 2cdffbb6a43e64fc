/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Tables: the meaning of the counters of one compilation unit
 *
 * The pass writes them (format: runtime/abi.h), but anybody may send them. Bytes in, arrays out:
 * all output has been checked, so code that evaluates counters need not check any index.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/loops/metric.h"

/* Limits of a table. A compilation unit of 100,000 lines has about 20,000 of each and a table of 1
 * MB. The largest is parsed in one round of the daemon's loop, in about 15 ms. */
#define LOOP_TABLE_BYTES_MAX (8u << 20) /* packed and unpacked */
#define LOOP_TABLE_STRINGS_MAX (1u << 18)
#define LOOP_TABLE_SCOPES_MAX (1u << 17)
#define LOOP_TABLE_COUNTERS_MAX (1u << 19)
#define LOOP_TABLE_TERMS_MAX (1u << 20)
/* Functions that one module defines for others: SQLite has 300, the largest libraries 50,000. */
#define LOOP_TABLE_DEFINED_MAX (1u << 18)
/* Work that one delta can cause; a chord of the largest function seen so far had 1,900. */
#define LOOP_COUNTER_TERMS_MAX (1u << 16)
/* Nested scopes. */
#define LOOP_DEPTH_MAX 128u
/* Names longer than this are cut: C++ has longer ones, and nobody reads them. */
#define LOOP_TEXT_BYTES_MAX 4096u

struct loop_scope {
	uint8_t kind;                                /* enum mperf_scope_kind */
	uint8_t flags;                               /* enum mperf_scope_flag */
	uint8_t depth;                               /* 0: has no parent */
	uint32_t parent;                             /* index + 1, below its own; 0: none */
	uint32_t function, source, nest, inlined_at; /* offsets in text */
	uint32_t line, line_last, column;            /* 0: not known */
};

struct loop_term {
	int64_t factor;
	uint32_t scope;
	uint16_t value; /* LOOP_VALUE */
	bool scalable;  /* times vscale */
};

struct loop_table {
	struct loop_scope *scope;
	uint32_t n_scopes;
	uint32_t n_counters;
	uint32_t *first; /* by counter: its first term; [n_counters] is the end of all */
	struct loop_term *term;
	uint32_t n_terms;
	uint32_t n_unknown; /* terms of unknown metrics, left out */
	bool scalable;      /* has a scalable term */
	uint64_t *defined;  /* mperf_name_hash of functions that others may call */
	uint32_t n_defined;
	char *text; /* strings, each ended by NUL */
	size_t n_text;
};

/* Parse n bytes. 0; FEED_TABLE_MALFORMED, FEED_TABLE_LIMIT (cause.h); -ENOMEM. */
int loop_table_parse(const uint8_t *bytes, size_t n, struct loop_table *ret_table);
void loop_table_clear(struct loop_table *t);

/* The bytes of memory that a table takes. */
size_t loop_table_memory(const struct loop_table *t);
