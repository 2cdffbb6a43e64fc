/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Chance: pseudo-random numbers, the same in each run, so that the same question has the same answer */

#include <stdint.h>

#define CHANCE_START 88172645463325252u /* any but 0 */

/* A number from the normal distribution with mean 0 and deviation 1, up to three deviations; *state
 * begins as CHANCE_START. */
double chance_normal(uint64_t *state);
