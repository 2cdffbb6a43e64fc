/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the parts of the answer to `status`: its tables and their cells */

#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/service/service.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT(t) ((struct answer_value){.kind = ANSWER_TEXT, .text = (t)})
#define NUMBER(n) ((struct answer_value){.kind = ANSWER_INTEGER, .integer = (int64_t)(n)})
#define SHARE(s) ((struct answer_value){.kind = ANSWER_REAL, .real = (s)})
#define ABSENT ((struct answer_value){.kind = ANSWER_ABSENT})

struct status {
	const struct service *service;
	const struct peer *peer;
	struct service_account account;
	uint64_t now_ns;
	struct row_stream stream;
	struct answer answer;
};

/* Begin a table of that name; a row of it. Results as of struct answer. */
static inline int status_table(
	struct status *s, const char *name, const struct answer_column *c, size_t n)
{
	int r = row_stream_table(&s->stream, name);
	return r == 0 ? s->answer.columns(s->answer.userdata, c, n) : r;
}

static inline int status_row(struct status *s, const struct answer_value *v, size_t n)
{
	return s->answer.row(s->answer.userdata, v, n);
}

/* What mperf costs, by cause, and what it gives up to keep to its budget. Results as of struct answer. */
int status_cost(struct status *s);
/* The roofs that are kept, and what measuring them cost. Results as of struct answer. */
int status_roofs(struct status *s);
