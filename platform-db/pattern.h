/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Patterns on a hart's identity
 *
 * Our own files have a pattern of hexadecimal digits for each register:
 * "0x8000000000000[1-9a-e]07", "0x410fd49?". A pattern is a set of allowed values for each of
 * sixteen digits. So we can decide whether one hart can match two patterns, and detect two files
 * that claim the same core. Patterns of mapfile.csv are regular expressions, as in perf.
 */

#include "platform-db/reader.h"

#define PATTERN_DIGITS 16

struct digits {
	bool given;
	uint16_t allowed[PATTERN_DIGITS]; /* bit d: digit d is allowed; [0] is the lowest digit */
};

enum pattern_kind {
	PATTERN_DIGITS_OF_REGISTERS, /* our own */
	PATTERN_REGEX,               /* on perf's text of an identity */
	PATTERN_MIDR_FROM,           /* this Arm part from this revision on */
	PATTERN_MERGED,              /* marchid[23:0] · 256 + mimpid[7:0] */
};

struct pattern {
	enum pattern_kind kind;
	enum platform_arch arch;
	struct digits mvendorid, marchid, mimpid, midr;
	const char *vendor;        /* NULL: any */
	uint32_t family, stepping; /* UINT32_MAX: any */
	struct code_range model;   /* range, whose end may be UINT32_MAX: any */
	const char *pmu;           /* NULL: any */
	const char *compatible;    /* NULL: any */
	const char *regex;         /* borrowed from the pool */
	uint64_t number;           /* PATTERN_MIDR_FROM, PATTERN_MERGED */
	unsigned n_keys;           /* conditions; the pattern with more of them wins */
	unsigned layer;            /* number of the folder; on a tie the later one wins */
	struct platform_origin origin;
};

/* A row of "cpus". 0, READ_WRONG, -ENOMEM. */
int pattern_take(const struct reader *r, const struct node *row, struct pattern *ret_pattern);
/* Read the first column of a mapfile.csv. `arch` is the map's, if the column does not show it. */
int pattern_foreign(
	const struct reader *r, int line, const char *text, struct pattern *ret_pattern);

bool pattern_matches(const struct pattern *p, const struct platform_identity *id);

/* The more specific of two patterns that match this hart, or that of the later folder. */
bool pattern_is_better(
	const struct pattern *p, const struct pattern *than, const struct platform_identity *id);

/* Could a hart match both, with neither being more specific? Never true for third-party patterns:
 * the first in the map wins. */
bool pattern_conflicts(const struct pattern *a, const struct pattern *b);
