/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Selectors: raw codes by their named fields
 *
 * On some cores the code of an event is made of fields: indexes of events, and operations on their counts
 * before they are added to the counter. An index means a different event in each bank of counters, and
 * the topic of an event is its bank. An expression of events of one bank is
 *
 *      sum     = operand { SIGN operand }             one SIGN throughout, others in brackets
 *      operand = NAME | NUMBER | "(" sum ")"
 *      SIGN    = "+" ADD | "|" OR | "&" AND | "^" XOR
 *
 * The platform's data has the operations and the number of events that fit (`field` in README.md).
 */

#include "platform-db/platform.h"

#define SELECTOR_EVENTS_MAX 8   /* in one expression; Kunminghu's selector has four */
#define SELECTOR_DEPTH_MAX 4    /* of brackets; a tree of eight events has three levels */
#define SELECTOR_TEXT_BYTES 256 /* of a sentence, or an expression */

struct selector_code {
	uint64_t code;
	uint64_t counters; /* counters that can count all of its events; 0: not known */
};

struct selector_error {
	size_t at; /* offset of the error in the text */
	char text[SELECTOR_TEXT_BYTES];
};

enum {
	SELECTOR_WRONG = 1, /* *ret_error says why */
};

/* Does the platform have fields that combine events, and events of that topic? */
bool selector_has_bank(const struct platform *p, const char *bank);

/* The code of an expression of events of that bank. 0 or SELECTOR_WRONG. */
int selector_compose(const struct platform *p, const char *bank, const char *text,
	struct selector_code *ret_code, struct selector_error *ret_error);

/* Put a number, or one of the values' names, into the field of that name, ignoring case. 0 or
 * SELECTOR_WRONG, with *code untouched. */
int selector_set(const struct platform *p, const char *field, const char *value, uint64_t *code,
	struct selector_error *ret_error);

/* A raw code as people write it: "r22", "0x22", of at most 64 bits. */
bool selector_code_parse(const char *text, uint64_t *ret_code);

/* The field's value in a code. */
uint64_t selector_value(const struct platform_field *f, uint64_t code);
/* The field that has that bit, or NULL. */
const struct platform_field *selector_field_of(const struct platform *p, unsigned bit);
/* "9-0" of the field's bits, "7-0,35-32"; returns buffer. */
#define SELECTOR_BITS_BYTES 64
const char *selector_bits_say(uint64_t mask, char buffer[static SELECTOR_BITS_BYTES]);

/* Meaning of a field's value, in words; "" if it is not known. Returns buffer. */
const char *selector_means(const struct platform *p, const struct platform_field *f, uint64_t code,
	char buffer[static SELECTOR_TEXT_BYTES]);

/* The code as -e takes it, "backend:INST_SPEC+RECOVERY_BUBBLE", if it is an expression of events of that
 * bank; else "". Returns buffer. */
const char *selector_says(const struct platform *p, const char *bank, uint64_t code,
	char buffer[static SELECTOR_TEXT_BYTES]);

/* The topics whose events an event field can hold, each once: NULL after the last. O(n_events squared). */
const char *selector_bank(const struct platform *p, size_t i);
