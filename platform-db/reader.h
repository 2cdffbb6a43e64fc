/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Reading one file: its errors, and objects by tables of fields
 *
 * A table has one row per key that an object may have. An unknown key, a value of another kind and
 * a value out of range are errors with file and line.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform-db/document.h"
#include "platform-db/platform.h"
#include "platform-db/pool.h"

#define NAME_BYTES_MAX 127  /* the longest name in -e; see EVENT_NAME_BYTES_MAX of the daemon */
#define TEXT_BYTES_MAX 1024 /* one line for people */

/* Sentences, each with file and line. */
struct complaints {
	struct pool *pool;
	const char *text[PLATFORM_ERRORS_MAX];
	size_t n, n_more;
};

struct reader {
	struct pool *pool;    /* for the results */
	struct pool *scratch; /* for nodes; emptied after each file */
	struct complaints *complaints;
	const char *file;
};

enum { READ_WRONG = 1 }; /* error reported; leave the file out */

/* Report an error in a line (0: in the file). READ_WRONG. */
__attribute__((format(printf, 3, 4))) int reader_wrong(
	const struct reader *r, int line, const char *format, ...);

enum field_kind {
	FIELD_TEXT,   /* const char *: printable, one line */
	FIELD_NAME,   /* const char *: without blanks */
	FIELD_NAMES,  /* struct names, from an array of names */
	FIELD_CODE,   /* uint64_t: a whole number, or text of one ("0x22") */
	FIELD_COUNT,  /* uint32_t: a whole number from 1 to max */
	FIELD_REAL,   /* double: above 0 */
	FIELD_RANGE,  /* struct code_range: "0xb8-0xbd", or one code */
	FIELD_CHOICE, /* int: the position in `choices` */
	FIELD_NODE,   /* const struct node *: as it is */
};

struct names {
	const char *const *name;
	size_t n;
};

struct code_range {
	uint64_t first, last;
};

struct field {
	const char *key;
	enum field_kind kind;
	size_t offset; /* offset of the member in the struct */
	bool required;
	uint32_t max;               /* FIELD_COUNT */
	const char *const *choices; /* FIELD_CHOICE: ended by NULL */
};

struct grammar {
	const char *what; /* name of the object in errors: "an event" */
	const struct field *fields;
	size_t n_fields;
};
#define GRAMMAR(what, fields) {what, fields, sizeof(fields) / sizeof((fields)[0])}

/* Read the object into *into, as the table describes. 0, READ_WRONG, -ENOMEM. */
int reader_fields(
	const struct reader *r, const struct node *object, const struct grammar *g, void *into);

/* A whole number, decimal or 0x…, without sign or blanks. */
bool code_parse(const char *text, uint64_t *ret_code);

/* Read a whole file into memory that the caller frees. 0, READ_WRONG (error reported), -ENOMEM. */
int reader_load(const struct reader *r, char **ret_text, size_t *ret_n);
/* The same as JSON. */
int reader_document(const struct reader *r, bool strict, const struct node **ret_root);
/* JSON that is in memory. Exported for tests. */
int reader_parse(const struct reader *r, const char *text, size_t n, bool strict,
	const struct node **ret_root);
