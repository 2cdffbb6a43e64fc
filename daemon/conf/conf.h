/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Configuration: mperf.conf as one struct
 *
 * `[section]` lines, `key = value` lines, comments on lines of their own that begin with # or ;.
 * conf/conf.inc has one row per key: section, key, member, kind, range, default and what it means; tests
 * hold the parser, `mperfd --print-config` and mperf.conf(5) to it. An unknown key, a key given
 * twice or a value out of range is an error with file and line; nothing is guessed.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/syntax/ini.h"

#define CONF_PATH "/etc/mperf/mperf.conf"
#define CONF_BYTES_MAX INI_FILE_BYTES
#define CONF_TEXT_BYTES 256 /* of a path or a group's name */

enum conf_callers {
	CONF_CALLERS_NO,
	CONF_CALLERS_FP,     /* by frame pointers */
	CONF_CALLERS_TABLES, /* by unwind tables, from copied stacks */
};

struct conf {
	/* [sampling] */
	uint32_t rate;         /* samples a second and hart, always on */
	uint32_t top_rate;     /* while a `mperfctl top` runs */
	uint32_t rate_max;     /* the highest that a client may request */
	uint32_t callers;      /* enum conf_callers: how those of always-on samples are found */
	uint32_t overhead_ppm; /* the most that sampling may cost each hart, in millionths; 0: no
			        * limit */
	char job_environment[CONF_TEXT_BYTES]; /* attribute/label_variables.h, or "none" */
	char topdown_groups[CONF_TEXT_BYTES];  /* counted all the time: "A,B", or "none" */
	bool waiting;                          /* look for threads that wait */
	/* [store] */
	bool store; /* false: nothing is kept; top and record still work */
	char store_path[CONF_TEXT_BYTES];
	uint64_t flush_ns;       /* the time whose samples a crash may lose */
	uint64_t budget_bytes;   /* for all files of the store together, never exceeded */
	uint64_t min_free_bytes; /* of the file system, kept free for others */
	uint64_t keep_windows_ns, keep_minutes_ns, keep_hours_ns;
	uint32_t pinned_ppm;
	char pin_jobs[CONF_TEXT_BYTES]; /* store/pin_rule.h, or "none" */
	/* [control] */
	char socket_path[CONF_TEXT_BYTES];
	char group[CONF_TEXT_BYTES];      /* its members see everybody's samples */
	uint32_t clients_max;             /* connections at once */
	uint32_t clients_per_user_max;    /* of one user, root and the group's members included */
	uint32_t requests_per_second_max; /* of one user; further requests wait */
	uint32_t queries_max;             /* child processes that answer queries at once */
	uint64_t client_bytes_max;        /* unread answers of one user */
	/* [feed] */
	char feed_path[CONF_TEXT_BYTES];
	uint64_t feed_period_ns;    /* at which programs report their counts */
	uint32_t feed_programs_max; /* connections at once */
	uint32_t feed_programs_per_user_max;
	uint64_t feed_program_bytes_max;     /* for tables and sums of one program */
	uint64_t feed_bytes_max;             /* of all */
	char region_events[CONF_TEXT_BYTES]; /* counted in regions, as -e has it, or "none" */
	/* [naming] */
	char debuginfod[CONF_TEXT_BYTES]; /* URLs of servers, joined by commas, or "none" */
	char debuginfod_cache[CONF_TEXT_BYTES];
	uint64_t debuginfod_cache_bytes;
	char debuginfod_socket[CONF_TEXT_BYTES]; /* of the process that asks them */
};

struct conf_error {
	/* "/etc/mperf/mperf.conf:12: unknown key 'raet' in [sampling]; did you mean 'rate'?" */
	char text[512];
};

/* Are servers of debug symbols asked? */
static inline bool conf_has_debuginfod(const struct conf *c)
{
	return strcmp(c->debuginfod, "none") != 0;
}

/* All defaults. */
void conf_defaults(struct conf *ret_conf);

enum { CONF_WRONG = 1, CONF_ABSENT, CONF_UNREADABLE };

/* Parse text (n bytes, not NUL-terminated) from `name`, on top of the defaults. 0; CONF_WRONG with
 * *ret_error, *ret_conf is untouched then. Exported for tests. */
int conf_parse(const char *text, size_t n, const char *name, struct conf *ret_conf,
	struct conf_error *ret_error);

/* Read a file. 0; CONF_WRONG; CONF_ABSENT (no such file); CONF_UNREADABLE, each with *ret_error;
 * -errno. */
int conf_read(const char *path, struct conf *ret_conf, struct conf_error *ret_error);

/* Write all keys with their values, as a file that conf_parse reads back unchanged. */
void conf_print(const struct conf *c, FILE *f);

/* The keys in which two configurations differ and that take effect only at the next start, joined
 * by ", ", or "" (for the log after SIGHUP). */
void conf_need_restart(const struct conf *now, const struct conf *next, char *ret_text, size_t n);
