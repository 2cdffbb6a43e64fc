/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The kernels that a hart runs correctly */

#include <stdbool.h>
#include <stdint.h>

#include "client/roofs/measure/kernel.h"

enum verdict {
	PROBE_ABSENT,  /* the hart does not claim what it needs */
	PROBE_ILLEGAL, /* it claims it, or makes no claim, but the instructions are illegal */
	PROBE_WRONG,   /* results are not C's */
	PROBE_RIGHT,
};

struct probe {
	enum verdict verdict;
	char fault[ROOF_NOTE_BYTES]; /* of PROBE_WRONG */
};

/* Try all kernels in children on hart `number`, each with kernel_check. ret_probe has n_kernels
 * entries. 0, -errno. A child may take 10 s. */
int probe_kernels(uint32_t number, struct probe *ret_probe);
