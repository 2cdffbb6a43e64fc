/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Theoretical peaks of this machine's cores, from documents, in the daemon's platform database */

#include <stddef.h>
#include <stdint.h>

#define PEAKS_MAX 512 /* of all kinds of harts; a kind has about six */

struct peak {
	uint32_t hart;      /* the first of its kind */
	char precision[16]; /* "fp64", "int8" */
	char unit[16];      /* "scalar", "vector" */
	char source[128];   /* cut off where it is longer */
	double ops_per_cycle;
};

/* Ask the service, or else a daemon of our own; without an answer, there is no error message. The
 * caller frees
 * *ret_peak, which is NULL if there are none. 0, -ENOMEM. */
int peaks_find(struct peak **ret_peak, size_t *ret_n);
