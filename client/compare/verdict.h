/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Verdict: the result of a comparison, in sentences, Markdown and JUnit's XML
 *
 * Made from the tables "total" and "change" of an answer (proto/mperf.proto, CompareRequest).
 */

#include <stdbool.h>
#include <stdio.h>

#include "client/show/reply.h"

struct verdict_asked {
	double margin, effect; /* as fractions */
	unsigned looks;
};

/* Does the answer have the tables for a verdict? */
bool verdict_is_there(const struct replies *r);

/* One line without a newline: "slower: 5.1 % in all (3.0 % to 7.2 %); work in a.out: 20.1 %". The
 * caller frees; NULL if memory ran out. */
char *verdict_line(const struct replies *r, const struct verdict_asked *asked);

/* The data missing for an answer, and the growth that could have been found: a sentence a line. */
void verdict_notes(const struct replies *r, const struct verdict_asked *asked, FILE *f);

/* The line, a table of what was decided or changed most, and the notes. */
void verdict_markdown(const struct replies *r, const struct verdict_asked *asked, FILE *f);

/* A test suite: one case for the total, one for each row that is slower. Undecided is "skipped". */
void verdict_junit(const struct replies *r, const struct verdict_asked *asked, FILE *f);
