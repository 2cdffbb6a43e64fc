/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A reply: the columns, rows and provenance of one answer, kept until they are shown */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "proto/mperf.pb-c.h"

/* Rows that one table holds: at about 600 bytes each, 600 MB. Nobody reads that many; the error
 * message suggests asking for less. */
#define REPLY_ROWS_MAX 1000000
#define REPLY_COLUMNS_MAX 96 /* a roofline by region with four events has 71 */

enum {
	REPLY_TOO_LARGE = 1, /* more rows or columns than the limits above */
	REPLY_MALFORMED,     /* rows without columns, or of the wrong length */
};

/* Tables of one answer: status sends 16, store four; many more would be another program's. */
#define REPLIES_MAX 24

struct reply {
	Mperf__Columns *columns;
	Mperf__Row **row; /* n_rows; each has as many values as there are columns */
	size_t n_rows, size_rows;
	Mperf__Provenance *provenance;
};

/* Take a copy of Columns, Rows or Provenance; ignores other answers. New Columns drop the earlier
 * rows. 0, REPLY_TOO_LARGE, REPLY_MALFORMED, -ENOMEM. */
int reply_add(struct reply *r, const Mperf__Answer *a);

/* Do as reply_add, as a callback of struct ask with a struct reply as userdata: prints errors. */
int reply_take(void *reply, const Mperf__Answer *a);

void reply_clear(struct reply *r);

/* Index of a column, -1 if there is none. */
int reply_column(const struct reply *r, const char *name);

/* The value in a row by column index; NULL if absent or the index is -1. Text and numbers. */
const Mperf__Value *reply_value(const struct reply *r, size_t row, int column);
const char *reply_text(const struct reply *r, size_t row, int column);
/* Read a number; false if the value is absent or text. */
bool reply_number(const struct reply *r, size_t row, int column, double *ret_number);

/* Add a column, absent in all rows; its index in *ret_column. 0, REPLY_TOO_LARGE, -ENOMEM. */
int reply_extend(struct reply *r, const Mperf__Column *column, int *ret_column);

/* Set a value in a column of reply_extend, once. A copy of text. 0, -ENOMEM. */
void reply_set_real(struct reply *r, size_t row, int column, double value);
int reply_set_text(struct reply *r, size_t row, int column, const char *text);

/* Replies that the client makes itself. A copy of all; columns drop earlier rows. 0, REPLY_TOO_LARGE, -ENOMEM. */
struct reply_heading {
	const char *name, *title;
	Mperf__Unit unit;
};
int reply_head(struct reply *r, const struct reply_heading *heading, size_t n);
/* Append a row; n is the number of columns. */
int reply_append(struct reply *r, const Mperf__Value *value, size_t n);
/* Make values for reply_append: texts are borrowed; NULL, "" and numbers that are not finite are absent. */
Mperf__Value reply_value_of_text(const char *text);
Mperf__Value reply_value_of_real(double n);
/* A whole number beyond INT64_MAX becomes INT64_MAX. */
Mperf__Value reply_value_of_integer(uint64_t n);
/* Copy the provenance of `from` with other notes; does nothing if that is NULL. 0, -ENOMEM. */
int reply_append_provenance(
	struct reply *r, const Mperf__Provenance *from, char *const *note, size_t n_notes);

/* A copy, which the caller frees with mperf__provenance__free_unpacked; NULL if memory ran out. */
Mperf__Provenance *reply_copy_provenance(const Mperf__Provenance *p);

/* Put a note before all others; nothing without a provenance. A copy. 0, -ENOMEM. */
int reply_note_first(struct reply *r, const char *note);

/* Sort rows by a column of numbers, the largest first; rows without one come last, and equal ones stay as they were. -1:
 * does nothing. 0, -ENOMEM. */
int reply_sort(struct reply *r, int column);
/* Put users' names where a column has their numbers; one without a name keeps its number. 0, -ENOMEM. */
int reply_name_users(struct reply *r, int column);
/* Drop all rows but the first n. */
void reply_cut(struct reply *r, size_t n);

/* "cpu-clock, rung d (cpu-clock alone), 99 Hz; 1,204 samples in 12.1 s; lost: none; 98.7 % named"
 * without a newline; escaped for terminals. The caller frees; NULL if memory ran out. */
/* Seconds of threads' time in which they waited for something other than a CPU. */
double reply_waited_s(const Mperf__Threads *t);
char *reply_provenance_line(const Mperf__Provenance *p);
/* Write the provenance line below a table, after an empty line; nothing if p is NULL. The stream keeps errors. */
void reply_write_provenance(const Mperf__Provenance *p, FILE *f);

/* {"columns": […], "rows": [{…}], "provenance": {…}} and a newline. 0, -ENOMEM, -EIO. */
int reply_write_json(const struct reply *r, FILE *f);

/* Several tables of one answer, each begun by Columns with its name, in the order of arrival. */
struct replies {
	struct reply table[REPLIES_MAX];
	size_t n;
	int current;                   /* where Rows go, if there is a table */
	Mperf__Provenance *provenance; /* of all tables; NULL until it arrives */
};

/* Take a copy of Columns, Rows or Provenance. Columns of an existing table start it again. 0,
 * REPLY_TOO_LARGE (also: more than REPLIES_MAX tables), REPLY_MALFORMED, -ENOMEM. */
int replies_add(struct replies *r, const Mperf__Answer *a);

/* Do as replies_add, as a callback of struct ask with a struct replies as userdata: prints errors. */
int replies_take(void *replies, const Mperf__Answer *a);

/* The table of this name, NULL if there is none. */
const struct reply *replies_table(const struct replies *r, const char *name);

/* How a frame with several tables looks in JSON. */
struct replies_frame {
	const char *rows; /* name of the table that becomes "rows"; "by" has that name */
	double time;      /* seconds since 1970 */
};

/* {"TABLE": [{…}], …, "provenance": {…} if there is one} and a newline, indented; or, as a frame, on one line with "time", "by",
 * "rows" and "provenance". 0, -ENOMEM, -EIO. */
int replies_write_json(const struct replies *r, const struct replies_frame *frame, FILE *f);

/* The struct is empty and usable afterwards. */
void replies_clear(struct replies *r);
