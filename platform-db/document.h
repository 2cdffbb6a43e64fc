/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A JSON document with line numbers
 *
 * jansson gives line numbers only for syntax errors, but errors about an unknown key or a code out
 * of range need them too. So a document is a copy of jansson's tree with line numbers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform-db/pool.h"

#define DOCUMENT_BYTES_MAX (4u << 20) /* of one file; Linux's largest has 1.2 MB */
#define DOCUMENT_DEPTH_MAX 8          /* ours need four */
#define DOCUMENT_NODES_MAX 200000     /* values; Linux's largest file has about 60,000 */

enum node_type {
	NODE_OBJECT,
	NODE_ARRAY,
	NODE_TEXT,
	NODE_WHOLE, /* a whole number */
	NODE_REAL,
	NODE_BOOL,
	NODE_NULL,
};

struct node {
	enum node_type type;
	int line;           /* line of its key, or of the value if it has none; from 1 */
	const char *key;    /* in an object; else NULL */
	const char *text;   /* NODE_TEXT */
	long long whole;    /* NODE_WHOLE; NODE_BOOL as 0, 1 */
	double real;        /* NODE_REAL, NODE_WHOLE */
	struct node *child; /* n_children, in document order */
	size_t n_children;
};

struct document_error {
	int line; /* 0: the file as a whole */
	char text[192];
};

enum { DOCUMENT_WRONG = 1 };

/* Read n bytes as JSON into nodes that live in the pool. 0; DOCUMENT_WRONG with *ret_error;
 * -ENOMEM. */
int document_parse(struct pool *pool, const char *text, size_t n, struct node **ret_root,
	struct document_error *ret_error);

/* The first line with a trailing blank, which is always a mistake; 0: none. */
int document_blank(const char *text, size_t n);

/* The member with that key, or NULL. */
const struct node *node_get(const struct node *object, const char *key);
