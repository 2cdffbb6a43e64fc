/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Printing of rooflines */

#include "client/options/options.h"
#include "client/show/reply.h"

struct showing {
	const struct options *o;
	const struct reply *reply;
	const char *const *spare; /* columns that tables omit, NULL-terminated */
	uint32_t stretch_ms;      /* of a series over time; 0: no series */
};

/* Print the reply in the form that the options name, a table with the notes below. Returns
 * mperfctl's exit status, after an error message if not 0. */
int roofline_print(const struct showing *s);
