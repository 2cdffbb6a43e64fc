/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The shared library of shares.c.
 */
#include <stdint.h>

uint64_t library_spin(uint64_t seed, uint64_t n);

uint64_t library_spin(uint64_t x, uint64_t n)
{
	__asm__ volatile("" : : "r"(__builtin_frame_address(0))); /* as KEEP_FRAME of shares.c */
	for (uint64_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}
