/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Measure all roofs of this machine within a time */

#include <stdbool.h>
#include <stdint.h>

#include "client/roofs/machine.h"
#include "client/roofs/measure/probe.h"
#include "proto/roofs/roofs.h"

struct measure_options {
	uint64_t budget_ns; /* for everything; roofs that do not fit are left out, with a note */
	const char *
		caches; /* by documents (client/roofs/caches.h), where the kernel states none; or "" */
	bool quick;     /* only the most important roofs, with shorter repeats */
	/* Called regularly with the current step and the progress, 0 to 1. */
	void (*progress)(const char *what, double done);
};

/* Other load during a measurement: seconds of CPU time of other programs, the number of harts, and
 * the duration. */
struct measure_load {
	double others_s, n_harts, took_s;
};

/* Describe the disturbance; "" if other programs used at most a twentieth of the machine and took
 * at most a tenth of the repeats. */
struct tally;
void measure_disturbed(
	const struct measure_load *l, const struct tally *t, char ret_text[static ROOF_NOTE_BYTES]);

/* Measure. The caller frees with roofs_clear. 0, -ENOMEM, -errno. */
int measure_roofs(
	const struct machine *m, const struct measure_options *o, struct roofs *ret_roofs);
