/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Source: Marsaglia, "Xorshift RNGs", 2003. The sum of twelve evenly spread numbers has the normal
 * distribution's mean, deviation and shape, to three deviations.
 */
#include "daemon/code/chance.h"

double chance_normal(uint64_t *state)
{
	double sum = -6;
	for (int i = 0; i < 12; i++) {
		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		sum += (double)(*state >> 11) / 9007199254740992.0; /* 2^53 */
	}
	return sum;
}
