/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Markup: is it well-formed? A scanner of tags, so that no XML library is needed */

#include <ctype.h>

#include "tests/unit/test.h"

/* Every tag is closed in order, and < and & appear only as markup. */
static inline void markup_is_well_formed(const char *p)
{
	char stack[64][32];
	size_t depth = 0;
	for (; *p; p++) {
		ck_assert(*p == '\n' || *p == '\t' || (unsigned char)*p >= 0x20);
		if (*p == '&') {
			size_t n = strcspn(p, ";");
			ck_assert(n <= 6 && p[n] == ';');
		}
		if (*p != '<' || p[1] == '?')
			continue;
		bool closes = p[1] == '/';
		const char *name = p + 1 + closes, *end = strchr(p, '>');
		size_t n = strcspn(name, " >/");
		ck_assert_ptr_nonnull(end);
		ck_assert(n > 0 && n < 32 && isalpha((unsigned char)*name));
		if (closes) {
			ck_assert_uint_gt(depth, 0);
			depth--;
			ck_assert(strncmp(stack[depth], name, n) == 0 && !stack[depth][n]);
		} else if (end[-1] != '/') {
			ck_assert_uint_lt(depth, 64);
			snprintf(stack[depth++], 32, "%.*s", (int)n, name);
		}
		p = end;
	}
	ck_assert_uint_eq(depth, 0);
}
