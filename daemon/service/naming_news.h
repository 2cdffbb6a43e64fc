/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Log lines about the namer: one per change, and rate-limited */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/naming/namer.h"

#define NAMING_SAY_NS 10000000000u     /* between two lines about users */
#define NAMING_DEATHS_NS 600000000000u /* between two about single files, which cost little */

/* State of what has been logged; zero at first. */
struct naming_said {
	bool off;
	uint64_t refused_ns; /* CLOCK_MONOTONIC: users refused later are news */
	uint64_t next_ns;
	uint64_t n_deaths, next_deaths_ns;
};

enum { NAMING_NO_NEWS = -1 };

/* Is there news since the last call? Returns its syslog level, with the sentence in `text`, or
 * NAMING_NO_NEWS. Users are shown as numbers, files not at all. */
int naming_news(struct naming_said *said, const struct namer_status *s, uint64_t now_ns, char *text,
	size_t size);
