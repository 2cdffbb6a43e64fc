/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Chance: numbers that look random, the same ones each time, so that an answer is the same too */

#include <stdint.h>

#define CHANCE_START 88172645463325252u /* any but 0 */

/* Of the normal distribution of mean 0 and deviation 1, as far as three deviations. */
double chance_normal(uint64_t *state);
