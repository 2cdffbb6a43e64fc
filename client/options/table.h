/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The one table of options, and the help of each command */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/options/options.h"

/* Keys of options without a letter; above every character. */
enum option_key {
	OPTION_PID = 'p',
	OPTION_FOR = 0x100,
	OPTION_BY,
	OPTION_COMM,
	OPTION_CGROUP,
	OPTION_CPU,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_INLINED,
	OPTION_JSON,
	OPTION_RAW,
	OPTION_NO_COLOR,
	OPTION_FOLDED,
	OPTION_TITLE,
	OPTION_FRAMES,
	OPTION_LIMIT,
	OPTION_OPS,
	OPTION_LIVE,
	OPTION_PER_HART,
	OPTION_PER_PROCESS,
	OPTION_PER_CGROUP,
	OPTION_CSV,
	OPTION_EVERY,
	OPTION_TWO_PHASE,
	OPTION_LOOPS,
	OPTION_SAMPLE,
	OPTION_INCLUSIVE,
	OPTION_COLUMNS,
	OPTION_NOTES,
	OPTION_OVERHEAD,
	OPTION_PLOT,
	OPTION_PEAKS,
	OPTION_QUICK,
	OPTION_EXPLAIN,
	OPTION_DECODE,
	OPTION_BASELINE,
	OPTION_CANDIDATE,
	OPTION_MARGIN,
	OPTION_PLAN_FOR,
	OPTION_ALLOWANCE,
	OPTION_LOOKS,
	OPTION_ANY_ORDER,
	OPTION_MARKDOWN,
	OPTION_JUNIT,
	OPTION_DIFF,
	OPTION_FROM,
	OPTION_LABEL,
	OPTION_PIN,
	OPTION_KEEP,
	OPTION_SYMFS,
	OPTION_VECTOR_BITS,
	OPTION_AS,
	OPTION_SIDE_BY_SIDE,
};

/* Commands as bits: 1 << Mperf__Request__BodyCase. */
#define COMMAND_BIT(id) (1u << MPERF__REQUEST__BODY_##id)

struct option_row {
	uint32_t commands;
	const char *name; /* long; NULL: only a letter */
	int key;
	const char *value; /* its placeholder in the help; NULL: no value */
	bool value_optional;
	const char *says;
};
extern const struct option_row option_rows[];
extern const size_t n_option_rows;

struct command_text {
	const char *arguments; /* after the options */
	const char *says;
	const char *examples;
};
/* By Mperf__Request__BodyCase; NULL if there is no such command. */
const struct command_text *command_text(int command);
/* "record" for its Mperf__Request__BodyCase; NULL if there is no such command. */
const char *command_name(int command);
