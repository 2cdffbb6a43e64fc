/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The executable's code reaches its counters by one instruction each on x86-64: through %gs, whose
 * base is the bias. Since 5.9 the kernel says in AT_HWCAP2 that programs may write that register
 * themselves, which takes a few nanoseconds; older kernels do it by a system call. A thread begins
 * with its parent's base, and gets its own before it counts.
 */
#include "runtime/gs_base.h"
#include "runtime/object.h"
#include "runtime/state.h"

#ifdef __x86_64__

#include <sys/auxv.h>
#include <unistd.h>

#define HWCAP2_FSGSBASE 2u /* Source: Linux, Documentation/arch/x86/x86_64/fsgs.rst */

bool mperf_gs_base_writable(void)
{
	return (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) != 0;
}

static bool segment_set(int64_t base)
{
	if (!mperf_state.may_write_gs_base)
		return syscall(SYS_arch_prctl, ARCH_SET_GS, base) == 0;
	mperf_gs_base_write(base);
	return true;
}

#else

bool mperf_gs_base_writable(void)
{
	return false;
}

static bool segment_set(int64_t base)
{
	(void)base;
	return true;
}

#endif

bool mperf_bias_set(const struct object *object, int64_t *bias, int64_t distance)
{
	*bias = distance;
	return !object->has_gs_base || segment_set(distance);
}
