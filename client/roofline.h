/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rooflines as they are shown */

#include "client/options.h"
#include "client/reply.h"

struct showing {
	const struct options *o;
	const struct reply *reply;
	const char *const *spare; /* columns that a table leaves out, ended by NULL */
	uint32_t stretch_ms;      /* of a series over time; 0: it is none */
};

/* Print it in the form that the options name, a table with the notes below. Returns mperfctl's exit
 * status; what went wrong was said. */
int roofline_print(const struct showing *s);
