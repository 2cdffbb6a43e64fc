/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Values of mperf.conf: the rows of conf/conf.inc, and text to member and back
 *
 * Limits and defaults are texts too, so that documentation, error messages and comparisons all use
 * the same ones.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/conf/conf.h"

enum conf_kind {
	KIND_COUNT,    /* uint32_t: 99 */
	KIND_SWITCH,   /* bool: yes no true false on off */
	KIND_CALLERS,  /* uint32_t, enum conf_callers: no fp tables; yes is the last of them */
	KIND_DURATION, /* uint64_t, ns: 5s; see unit_parse_duration */
	KIND_BYTES,    /* uint64_t: 512M, 512MiB; K M G T are powers of 1024 */
	KIND_SHARE,    /* uint32_t, millionths: 1%, 0.25%; none is 0 */
	KIND_PATH,     /* char[CONF_TEXT_BYTES]: begins with a slash */
	/* char[CONF_TEXT_BYTES]: visible ASCII; event_parse gives it a meaning */
	KIND_EVENTS,
	/* char[CONF_TEXT_BYTES]: http: or https: URLs, joined by commas */
	KIND_URLS,
	/* char[CONF_TEXT_BYTES]: attribute/label_variables.h */
	KIND_VARIABLES,
	/* char[CONF_TEXT_BYTES]: store/pin_rule.h */
	KIND_PINS,
	KIND_GROUP, /* char[CONF_TEXT_BYTES]: letters, digits, '_', '-' (not first), '.' */
};

struct conf_row {
	const char *section, *key; /* keys are unique in all sections together */
	size_t offset;             /* of the member of struct conf */
	enum conf_kind kind;
	const char *min, *max, *preset, *unit;
	bool restart;
	const char *says;
};
#define N_CONF_ROWS_MAX 40 /* size of arrays with a member for each row */
extern const struct conf_row conf_rows[];
extern const size_t n_conf_rows;

/* Set the row's member to the value in text. 0, or CONF_VALUE_*; *c is untouched then. */
enum { CONF_VALUE_MALFORMED = 1, CONF_VALUE_OUT_OF_RANGE };
int conf_value_set(const struct conf_row *row, const char *text, struct conf *c);

/* The member as a number; a switch is 0 or 1. Not for texts. */
uint64_t conf_value_get(const struct conf_row *row, const struct conf *c);

/* Text of a value exactly as in the file: in the largest unit of which it is a whole multiple. */
struct conf_value_text {
	char text[CONF_TEXT_BYTES];
};
struct conf_value_text conf_value_print(const struct conf_row *row, const struct conf *c);

/* Whether a row's value is a text, not a number. */
bool conf_is_text(const struct conf_row *row);
/* The maximum length of a text of this row, in bytes. */
size_t conf_length_max(const struct conf_row *row);
