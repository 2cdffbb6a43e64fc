/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The page of a report: pictures for those with JavaScript, tables for all */

#include <stdio.h>

#include "client/report/gather.h"

struct report_page {
	const char *title;
	const char *first; /* the event that is shown first; NULL: CPU time, or what was sampled */
	const struct gathered *samples;      /* finished */
	const Mperf__Provenance *provenance; /* of CPU time */
	const char *provenance_line;         /* escaped for terminals; may be NULL */
};

/* 0; -ENOMEM; -EIO if writing to out failed; out keeps the cause. */
int report_page_write(const struct report_page *page, FILE *out);
