/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The table of pinned jobs, which `mperfctl job` and `mperfctl store` show */

#include "daemon/control/request.h"
#include "daemon/store/pin.h"

/* Send the table "pin": those of the peer's jobs, and those that it pinned; of all users if it sees all. As
 * the callbacks of an answer. */
int pin_rows_send(struct row_stream *stream, const struct answer *answer, const struct store *s,
	const struct peer *peer);

/* The table's columns, for answers that say what became of single pins. */
int pin_rows_begin(struct row_stream *stream, const struct answer *answer);
int pin_rows_one(const struct answer *answer, const struct store_pin *p);

/* May this peer see it? */
bool pin_is_shown(const struct store_pin *p, const struct peer *peer);
