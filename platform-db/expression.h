/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The expression of a metric: arithmetic on event counts, in perf's language
 *
 * "100 * d_ratio(STALL_SLOT_BACKEND, CPU_CYCLES * #slots) if #slots > 0 else 0". An expression is
 * parsed once into a tree that never changes. It is folded with the constants of one machine; the
 * names that remain are the events to count; with their counts it is evaluated.
 *
 * The grammar, weakest first; operators of one line associate to the left:
 *
 *     expr   a if CONDITION else expr
 *            | then ^ then &                     on whole numbers
 *            < >                                 1 or 0
 *            + -
 *            * / %                               % on whole numbers
 *            -a   (expr)   number   name   #constant
 *            min(a, b)   max(a, b)   d_ratio(a, b)
 *            source_count(name)   has_event(name)   strcmp_cpuid_str(text)
 *
 * A name is an event or another metric. In it "@" stands for the "/" of "pmu/event/", and "-", ","
 * and "=" follow a backslash.
 *
 * Source: tools/perf/util/expr.l, expr.y and expr.c of Linux 6.1; has_event and strcmp_cpuid_str
 * are of 6.7. Unlike perf's, our parser refuses characters that belong to no token.
 */

#include <stdbool.h>
#include <stddef.h>

struct pool;

#define EXPRESSION_BYTES_MAX 16384 /* of text; the longest of Linux has about 1,500 */
#define EXPRESSION_NODES_MAX 2048  /* operators and operands; a tree is no deeper */
#define EXPRESSION_DEPTH_MAX 64    /* of brackets and else branches within each other */
#define EXPRESSION_NAME_MAX 127    /* bytes of a name; see NAME_BYTES_MAX of events */

enum expression_kind {
	EXPRESSION_NUMBER,
	EXPRESSION_NAME,         /* the count of an event, or the value of a metric */
	EXPRESSION_CONSTANT,     /* #name, of the machine or the platform */
	EXPRESSION_SOURCE_COUNT, /* events that are added up under one name; on a core it is 1 */
	EXPRESSION_HAS_EVENT,    /* 1: the machine has the event */
	EXPRESSION_CPUID,        /* 1: the machine is at least of that identity */
	EXPRESSION_NEGATE,
	EXPRESSION_ADD,
	EXPRESSION_SUBTRACT,
	EXPRESSION_MULTIPLY,
	EXPRESSION_DIVIDE,
	EXPRESSION_REMAINDER,
	EXPRESSION_AND,
	EXPRESSION_XOR,
	EXPRESSION_OR,
	EXPRESSION_LESS,
	EXPRESSION_GREATER,
	EXPRESSION_MIN,
	EXPRESSION_MAX,
	EXPRESSION_RATIO, /* d_ratio: 0 if the divisor is 0 */
	EXPRESSION_IF,    /* operand 0 if operand 1 else operand 2 */
};

struct expression {
	enum expression_kind kind;
	int column;       /* position of its token in the text, in bytes from 1 */
	double number;    /* EXPRESSION_NUMBER */
	const char *name; /* of a name, without backslashes; of a constant, without "#" */
	const struct expression *operand[3]; /* as many as the kind has; the others are NULL */
};

struct expression_error {
	int column; /* in bytes from 1 */
	char text[160];
};

enum {
	EXPRESSION_WRONG = 1, /* the text does not follow the grammar */
	EXPRESSION_MISSING,   /* a value is not known; its node is reported */
	EXPRESSION_UNDEFINED, /* a division by zero, or a fraction where a whole number is needed */
};

/* Parse the text into a tree in the pool. 0; EXPRESSION_WRONG with *ret_error; -ENOMEM. */
int expression_parse(struct pool *pool, const char *text, const struct expression **ret_expression,
	struct expression_error *ret_error);

/* Source of values. A function gives 0 with *ret_value, or EXPRESSION_MISSING. If it is NULL, no
 * value is known. */
struct expression_source {
	/* Values of names, and of has_event, source_count and strcmp_cpuid_str, by their kind. */
	int (*value)(
		void *userdata, enum expression_kind kind, const char *name, double *ret_value);
	void *userdata;
};

/* Evaluate. In an "if" only the branch that is taken needs values. 0 with a finite *ret_value;
 * EXPRESSION_MISSING or EXPRESSION_UNDEFINED with *ret_at: the node that has no value. */
int expression_value(const struct expression *e, const struct expression_source *source,
	double *ret_value, const struct expression **ret_at);

/* Replace the names that the source knows, and all parts that follow from them: with "#smt_on"
 * known, "A if #smt_on else B" needs one event. Parts that need no change are shared with *e. 0;
 * -ENOMEM.
 */
int expression_fold(struct pool *pool, const struct expression *e,
	const struct expression_source *source, const struct expression **ret_expression);

/* Visit each node, operands after their operator, as long as `each` returns 0; else that result. */
int expression_each(const struct expression *e,
	int (*each)(void *userdata, const struct expression *e), void *userdata);
