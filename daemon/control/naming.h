/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What the log says of the namer: one line per change, and not many of them */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/attribute/namer.h"

#define NAMING_SAY_NS 10000000000u /* between two lines over users */
#define NAMING_DEATHS_NS 600000000000u /* between two over single files: they cost nobody much */

/* What has been said; zero at first. */
struct naming_said {
	bool off;
	uint64_t refused_ns; /* CLOCK_MONOTONIC: users refused since are news */
	uint64_t next_ns;
	uint64_t n_deaths, next_deaths_ns;
};

enum { NAMING_NO_NEWS = -1 };

/* Is there news since the last call? Its sentence and syslog level, or NAMING_NO_NEWS. Users are
 * named by number, files not at all. */
int naming_news(struct naming_said *said, const struct namer_status *s, uint64_t now_ns, char *text,
	size_t size);
