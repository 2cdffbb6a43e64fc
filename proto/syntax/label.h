/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Labels: the key=value pairs that define a job
 *
 * A job is a set of labels that processes carry: branch=main, CI_JOB_ID=4711, job=unit-tests. A set
 * is stored as one JSON object with sorted keys, so that equal sets are equal texts and SQLite's
 * json_extract reads them. A key begins with a letter or _, followed by letters, digits, and any of
 * _ . -; a value is UTF-8 without control characters, and may be empty.
 */

#include <stdbool.h>
#include <stddef.h>

#define LABELS_MAX 16 /* of a job: CI systems have branch, commit, job, run and a few more */
#define LABEL_KEY_BYTES_MAX 64
#define LABEL_VALUE_BYTES_MAX 256 /* a branch's name in git is a file's name: 255 bytes */
/* Bytes of a set as JSON. In the worst case each byte of a value is a quote, which takes two. */
#define LABELS_BYTES_MAX (LABELS_MAX * (LABEL_KEY_BYTES_MAX + 2 * LABEL_VALUE_BYTES_MAX + 6) + 2)

/* The job's name, which explicit jobs have, is a label too. */
#define LABEL_JOB "job"
#define LABEL_RUN "run" /* the run of the job */

enum { LABELS_WRONG = 1 };

struct label {
	char key[LABEL_KEY_BYTES_MAX + 1];
	char value[LABEL_VALUE_BYTES_MAX + 1];
};

struct label_fault {
	char text[256]; /* one sentence that names the label, without a full stop */
};

/* Is this "key" or "key=value" a label of control groups (daemon/query/job_label.h)? */
bool label_is_of_cgroup(const char *text);

/* Is this key a word of selections (mperfctl-gate(1)), so that no label has it? */
bool label_is_reserved(const char *key);

/* Parse "key=value". 0; LABELS_WRONG with *ret_fault, also of a reserved key. */
int label_parse(const char *text, struct label *ret_label, struct label_fault *ret_fault);
/* The same for parts, where a reserved key is allowed: stored labels may have one. */
int label_make(
	const char *key, const char *value, struct label *ret_label, struct label_fault *ret_fault);

/* The set of n labels as JSON; of equal keys the last counts. The caller frees. 0; LABELS_WRONG with
 * *ret_fault: too many; -ENOMEM. */
int labels_write(
	const struct label *label, size_t n, char **ret_json, struct label_fault *ret_fault);

/* Read a set from JSON of any origin; labels that break the rules are left out. At most LABELS_MAX are
 * written to *ret_label, by rising key; returns their number, 0 also if the text is not such an
 * object. */
size_t labels_read(const char *json, struct label *ret_label);

/* Does one of n labels have that key and a matching value? In the wanted value, * matches any text, ?
 * any UTF-8 character or invalid byte, and a backslash makes the next character literal. */
bool label_matches(const struct label *wanted, const struct label *label, size_t n);
/* Do n labels match all of n_wanted in this way? */
bool labels_match(const struct label *wanted, size_t n_wanted, const struct label *label, size_t n);

/* The wanted value that matches only this value: a backslash before each *, ?, comma and backslash. Cut at size
 * bytes; returns text. */
const char *label_escape(const char *value, char *text, size_t size);

/* A wanted value that ends with an unfinished escape, a single backslash, matches nothing. */
bool label_pattern_is_whole(const char *value);

/* n labels for people, "branch=main, job=lint", with values as label_escape writes them, so that it is also the
 * selection of these labels. Cut at size bytes, between characters. Returns text. */
const char *labels_say(const struct label *label, size_t n, char *text, size_t size);
/* The same for labels as JSON; and for wanted labels, which are escaped already. */
const char *labels_say_json(const char *json, char *text, size_t size);
const char *labels_say_wanted(const struct label *label, size_t n, char *text, size_t size);
