/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A format of another tool: what it writes at the start, for a sample, at the end */

#include <stdio.h>

#include "client/export/profile.h"

/* Limits of the memory that a format needs until its end; beyond them, the error advises to narrow
 * the export. */
enum { EXPORT_TOO_LARGE = PROFILE_TOO_LARGE };
/* Records of text in all: an hour of some 190 busy harts at 99 Hz, which is 10 GB and more. A recording may claim any number of
 * samples in a row of a few bytes. */
#define EXPORT_RECORDS_MAX (UINT64_C(1) << 26)

struct export_output {
	FILE *file;
	const struct profile *profile;
	const char *title; /* escaped */
	/* at the end: the event whose values these are, and the provenance in a line; escaped */
	const char *event, *provenance_line;
	const Mperf__Provenance *provenance;
	void *state;        /* the format's own */
	uint64_t n_records; /* records so far, for a format that writes one for each sample */
};

struct export_format {
	const char *name;
	bool is_binary; /* not for a terminal */
	/* 0, EXPORT_TOO_LARGE, -errno. Errors of writing are left to the stream. begin and end may
	 * be NULL */
	int (*begin)(struct export_output *o);
	int (*sample)(struct export_output *o, const struct profile_sample *s);
	int (*end)(struct export_output *o);
	void (*clear)(struct export_output *o); /* free the state; NULL: none */
};

extern const struct export_format export_csv, export_firefox, export_perf_script, export_pprof,
	export_speedscope;

/* A text of a profile as a JSON string with its quotes. */
void export_json_text(FILE *f, const char *text);
