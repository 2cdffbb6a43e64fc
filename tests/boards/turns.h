/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Work whose size is known: four instructions a turn, whatever the compiler thinks of it; elsewhere
 * than on RISC-V and Arm some. n is at least 1. */
static inline void turns(unsigned long n)
{
#if defined(__riscv)
	__asm__ volatile("1: addi %0, %0, -1\n\tnop\n\tnop\n\tbnez %0, 1b" : "+r"(n));
#elif defined(__aarch64__)
	__asm__ volatile("1: sub %0, %0, #1\n\tnop\n\tnop\n\tcbnz %0, 1b" : "+r"(n));
#else
	while (--n)
		__asm__ volatile("");
#endif
}
