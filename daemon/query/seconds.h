/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Seconds: how the time of harts and processes is spread over the service's windows, as the table `second` says
 *
 * One window at a time. A row that cannot be right is passed over: what it is about then counts as spread evenly.
 */

#include "daemon/aggregate/seconds.h"
#include "daemon/query/load.h"

/* Rows of a window: the writer stops long before. */
#define SECONDS_ROWS_MAX 65536u

struct seconds_row {
	uint32_t task; /* 0: of the hart */
	uint32_t hart;
	uint32_t at, n; /* range of bytes */
	uint32_t sum;   /* of them; not 0 */
};

struct seconds_reader {
	struct cursor cursor; /* its statement is NULL if the file has no such table */
	uint32_t window;      /* that was read; 0: none */
	struct seconds_row *row;
	uint32_t n_rows, size_rows;
	uint8_t *bytes;
	size_t n_bytes, size_bytes;
	uint64_t n_left_out; /* processes of all windows read, for which there was no room */
};

/* Begin with a loaded segment. Call seconds_reader_close in any case. 0, QUERY_FAILED, -errno. */
int seconds_reader_open(struct seconds_reader *s, struct loaded *l);
/* Read a window, unless it is the one that was read last. 0, QUERY_FAILED, -errno. */
int seconds_reader_read(struct seconds_reader *s, uint32_t window);
void seconds_reader_close(struct seconds_reader *s);

/* Of a process in that window, or of a hart; NULL: spread evenly. */
const struct seconds_row *seconds_of_process(const struct seconds_reader *s, uint32_t process);
const struct seconds_row *seconds_of_hart(const struct seconds_reader *s, uint32_t hart);
