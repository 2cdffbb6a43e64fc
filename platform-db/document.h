/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A JSON document whose values know their lines
 *
 * jansson tells the line of a syntax error and of nothing else, but a key that we do not know, or
 * a code out of range, must be named with its line too. So a document is jansson's tree once more,
 * with lines.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform-db/pool.h"

#define DOCUMENT_BYTES_MAX (4u << 20) /* of one file; the largest of Linux' own has 1.2 MB */
#define DOCUMENT_DEPTH_MAX 8          /* ours need four */
#define DOCUMENT_NODES_MAX 200000     /* values; Linux' largest file has some 60,000 */

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
	int line;           /* where its key, or without one itself, begins; from 1 */
	const char *key;    /* in an object; else NULL */
	const char *text;   /* NODE_TEXT */
	long long whole;    /* NODE_WHOLE; NODE_BOOL as 0, 1 */
	double real;        /* NODE_REAL, NODE_WHOLE */
	struct node *child; /* n_children, in the order of the document */
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

/* The first line that ends with a blank, which is never meant; 0: none does. */
int document_blank(const char *text, size_t n);

/* The member with that key, or NULL. */
const struct node *node_get(const struct node *object, const char *key);
