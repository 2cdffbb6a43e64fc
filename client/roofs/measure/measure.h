/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Measure all roofs of this machine within a time */

#include <stdbool.h>
#include <stdint.h>

#include "client/roofs/machine.h"
#include "client/roofs/measure/probe.h"
#include "proto/roofs/roofs.h"

struct measure_options {
	uint64_t budget_ns; /* for all; roofs that do not fit are left out, with a note */
	const char *
		caches; /* their sizes by documents (client/roofs/caches.h), if the kernel states none; or "" */
	bool quick; /* the most wanted roofs alone, with shorter repeats */
	/* Called now and then with what is measured and how far it is, 0 to 1. */
	void (*progress)(const char *what, double done);
};

/* Load during a measurement: seconds of processor time that others used, on n_harts harts, within
 * took_s. */
struct measure_load {
	double others_s, n_harts, took_s;
};

struct tally;
/* Say what disturbed it; "" if others used at most a twentieth of the machine and took at most a tenth of
 * the repeats. Exported for tests. */
void measure_disturbed(
	const struct measure_load *l, const struct tally *t, char ret_text[static ROOF_NOTE_BYTES]);

/* Measure. The caller frees with roofs_clear. 0, -ENOMEM, -errno. */
int measure_roofs(
	const struct machine *m, const struct measure_options *o, struct roofs *ret_roofs);
