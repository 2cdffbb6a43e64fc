/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Queries whose answer is one table */

#include "client/measure/capture.h"
#include "client/options/options.h"

/* Ask a query of a source, and print the answer as the options say: a table without the columns
 * of `hide`, which a NULL ends, above its provenance, or data with all of them. say_empty: print a note on
 * why there are no rows; kept: the source was the service's store. Returns the exit status. */
int query_command(const struct options *o, const struct source_request *from, Mperf__Request *query,
	const char *const *hide, void (*say_empty)(const struct options *o, bool kept));
