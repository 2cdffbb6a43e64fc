/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * All time is spent in lines marked HOT of `inner`, which is inlined into `outer`.
 */
#include <stdint.h>
#include <stdio.h>

__attribute__((always_inline)) static inline uint64_t inner(uint64_t x, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) { /* HOT */
		x ^= x << 13;              /* HOT */
		x ^= x >> 7;               /* HOT */
		x ^= x << 17;              /* HOT */
	}
	return x;
}

__attribute__((noinline)) uint64_t outer(uint64_t x);
__attribute__((noinline)) uint64_t outer(uint64_t x)
{
	return inner(x, 400000000);
}

int main(void)
{
	printf("%llu\n", (unsigned long long)outer(88172645463325252u));
	return 0;
}
