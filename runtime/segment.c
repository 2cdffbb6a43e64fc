/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The executable's code reaches its counters by one instruction each on x86-64: through %gs, whose
 * base is the bias. A kernel since 5.9 says by AT_HWCAP2 that programs may set that register
 * themselves, which takes a few nanoseconds; others do it when asked.
 */
#include "runtime/image.h"
#include "runtime/segment.h"

#ifdef __x86_64__

#include <asm/prctl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HWCAP2_FSGSBASE 2u /* Source: Linux, Documentation/arch/x86/x86_64/fsgs.rst */

static void segment_set(int64_t base)
{
	if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)
		__asm__ volatile("wrgsbase %0" : : "r"(base) : "memory");
	else
		syscall(SYS_arch_prctl, ARCH_SET_GS, base);
}

#else

static void segment_set(int64_t base)
{
	(void)base;
}

#endif

void mperf_bias_set(const struct image *image, int64_t *bias, int64_t distance)
{
	*bias = distance;
	if (image->has_segment)
		segment_set(distance);
}
