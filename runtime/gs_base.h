/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#ifdef __x86_64__
#include <asm/prctl.h>
#include <sys/syscall.h>
#endif

struct object;

/* May programs write the base of %gs themselves? Checked once, at the start. */
bool mperf_gs_base_writable(void);

/* Set the calling thread's bias in an object, at *bias, and the base of %gs if the object's code
 * counts through that. False: the kernel refused to set that base; the thread's counts then go to
 * the object's own words, which are not read. Safe in signal handlers. */
bool mperf_bias_set(const struct object *object, int64_t *bias, int64_t distance);

/* Set the base of the segment that programs may write (state.h, may_write_gs_base). */
static inline void mperf_gs_base_write(int64_t base)
{
#ifdef __x86_64__
	__asm__ volatile("wrgsbase %0" : : "r"(base) : "memory");
#else
	(void)base;
#endif
}

/* Write the segment's base by the kernel, where programs may not. */
static inline void mperf_gs_base_ask(int64_t base)
{
#ifdef __x86_64__
	long result = SYS_arch_prctl;
	__asm__ volatile("syscall"
		: "+a"(result)
		: "D"((long)ARCH_SET_GS), "S"(base)
		: "rcx", "r11", "memory", "cc");
#else
	(void)base;
#endif
}
