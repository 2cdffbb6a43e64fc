/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The one table of options, and the help of each command */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/options/options.h"

/* Commands as bits: 1 << Mperf__Request__BodyCase. */
#define COMMAND_BIT(id) (1u << MPERF__REQUEST__BODY_##id)

/* How a value is stored (value.c): first kinds for many options, then kinds for a single option. */
enum option_kind {
	OPTION_FLAG,     /* bool: true */
	OPTION_STRING,   /* char *, borrowed */
	OPTION_WORD,     /* char *: one of the words */
	OPTION_NUMBER,   /* uint32_t from least to most */
	OPTION_SHARE,    /* uint32_t, millionths */
	OPTION_DURATION, /* uint64_t, ns */
	OPTION_TIME,     /* int64_t, ns since 1970 */
	OPTION_LIST,     /* char *[OPTIONS_LIST_MAX]: appended */
	OPTION_NAMES,    /* the same, split at commas */
	OPTION_PIDS,
	OPTION_CPUS,
	OPTION_PERIOD,
	OPTION_INTERVAL,
	OPTION_CALL_GRAPH,
	OPTION_LABEL,
	OPTION_INPUT,
	OPTION_QUIET,
	OPTION_HELP,
};

#define OPTION_NO_FIELD SIZE_MAX

/* How the value of an option becomes a member of struct options. */
struct option_store {
	enum option_kind kind;
	size_t field;         /* offset of the member; OPTION_NO_FIELD: none */
	size_t count;         /* of a list: offset of its length */
	uint32_t least, most; /* of a number */
	const char *words; /* all possible values, separated by spaces; NULL: they are not fixed */
	const char *wants; /* noun for the error if the value is empty; NULL: it may be empty */
	bool optional;
};

struct option_row {
	uint32_t commands;
	const char *name;  /* long; NULL: only a letter */
	int letter;        /* 0: only a name */
	const char *value; /* its placeholder in the help; NULL: no value */
	struct option_store store;
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
