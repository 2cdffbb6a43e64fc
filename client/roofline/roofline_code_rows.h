/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rows of a roofline from machine code, as an answer for tables and JSON */

#include "client/options/options.h"
#include "client/show/reply.h"
#include "proto/code/code.h"

#define NOTES_MAX 8
#define NOTE_BYTES 512

/* A row of the answer to hotspots by address. */
struct place {
	const char *module, *build_id, *function, *source;
	struct code_sample sample;
	double line;
};

/* Places of one file are adjacent. */
struct file {
	uint32_t first, n;
	double ns;
};

struct found_loop {
	struct code_loop loop;
	const struct place *hottest;
};

struct view {
	const struct options *o;
	struct reply places;
	struct place *place;
	struct file *file;
	uint32_t n_places, n_files;
	struct found_loop *loop;
	uint32_t n_loops;
	double ns, read_ns;   /* of all samples; of those whose code was read */
	bool counted;         /* some loop has instructions */
	bool kept;            /* as in struct source */
	uint32_t vector_bits; /* of SVE and RVV; 0: not known */
	char note[NOTES_MAX][NOTE_BYTES];
	size_t n_notes;
};

/* Append columns, rows sorted by time, longest first, and the provenance of the samples with our
 * notes before its own. 0, -errno. */
int roofline_code_rows(struct view *v, struct reply *r);
