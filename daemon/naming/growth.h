/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A description of generated code: how much of it the parser has read, and the versions in it (grow.c). */
struct growth {
	bool unread;            /* the file has grown: read on before the next name */
	bool read_on;           /* just now: names are next, however fast it grows */
	uint64_t seen_bytes;    /* at the last look, */
	int64_t seen_ns;        /* when it was last written then, CLOCK_REALTIME, */
	uint64_t looked_ns;     /* and when that look was, CLOCK_MONOTONIC; 0: none */
	uint64_t from_ns;       /* time from which unread entries are valid */
	uint64_t asked_from_ns; /* the same for entries that the parser reads now */
	bool counted;           /* order and first_order are known: */
	uint32_t order;         /* ranges of code that the parser knew last, */
	uint32_t first_order;   /* and at first: those of version 0 */
	uint32_t lost_order; /* and those of files before the present one that it has forgotten */
	uint32_t n_rewrites; /* times that the file was rewritten, by its last answer */
	uint64_t mark_at, mark; /* the end of what it had read, and its hash (message_grown) */
};
