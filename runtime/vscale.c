/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We read the length of vectors from the hart, once the kernel has said that it has any. Source:
 * RISC-V vector extension 1.0, section 3.5 (vlenb, CSR 0xC22); Linux 6.12,
 * Documentation/arch/riscv/vector.rst (PR_RISCV_V_GET_CONTROL),
 * arch/riscv/include/uapi/asm/hwcap.h; Arm ARM, RDVL; Linux 6.12,
 * arch/arm64/include/uapi/asm/hwcap.h.
 */
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "runtime/vscale.h"

#if defined(__riscv)
#define HWCAP_V (1ul << ('V' - 'A'))
#define V_GET_CONTROL 70 /* PR_RISCV_V_GET_CONTROL, which older headers lack */
#define V_CURRENT_MASK 3
#define V_CURRENT_OFF 1

uint32_t mperf_vscale(void)
{
	if (!(getauxval(AT_HWCAP) & HWCAP_V))
		return 0;
	/* If it is off for this process, its registers trap. Old kernels have no such switch. */
	int control = prctl(V_GET_CONTROL, 0, 0, 0, 0);
	if (control >= 0 && (control & V_CURRENT_MASK) == V_CURRENT_OFF)
		return 0;
	unsigned long bytes;
	__asm__ volatile("csrr %0, 0xc22" : "=r"(bytes));
	return (uint32_t)(bytes / 8);
}
#elif defined(__aarch64__)
#define HWCAP_SVE_BIT (1ul << 22)

uint32_t mperf_vscale(void)
{
	if (!(getauxval(AT_HWCAP) & HWCAP_SVE_BIT))
		return 0;
	register unsigned long bytes __asm__("x0");
	__asm__ volatile(".inst 0x04bf5020" : "=r"(bytes)); /* rdvl x0, #1 */
	return (uint32_t)(bytes / 16);
}
#else
uint32_t mperf_vscale(void)
{
	return 0;
}
#endif
