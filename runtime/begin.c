/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a process needs to know before it counts: where to send, how often, what the clock costs.
 */
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/begin.h"
#include "runtime/gs_base.h"
#include "runtime/process.h"
#include "runtime/state.h"
#include "runtime/timed_loop.h"

#define CLOCK_LOOKS 16u /* the minimum of these is undisturbed */

static uint32_t clock_cost_ns(void)
{
	uint64_t least = UINT32_MAX;
	uint64_t before = mperf_now_ns();
	for (unsigned i = 0; i < CLOCK_LOOKS; i++) {
		uint64_t now = mperf_now_ns();
		if (now - before < least)
			least = now - before;
		before = now;
	}
	return (uint32_t)least;
}

/* MPERF_PERIOD=, in ms; an invalid value changes nothing. */
static uint32_t period_ms(void)
{
	const char *text = secure_getenv("MPERF_PERIOD");
	char *end;
	unsigned long ms = text && *text ? strtoul(text, &end, 10) : MPERF_PERIOD_MS;
	if (text && *text && *end != '\0')
		return MPERF_PERIOD_MS;
	if (ms < MPERF_PERIOD_MS_MIN)
		return MPERF_PERIOD_MS_MIN;
	return ms > MPERF_PERIOD_MS_MAX ? MPERF_PERIOD_MS_MAX : (uint32_t)ms;
}

/* LLVM's vscale on this hart: the length of a scalable vector in units of 64 bits (RISC-V) or 128
 * bits (SVE). 0: there are no such vectors.
 *
 * We read the length of vectors from the hart, once the kernel has said that it has any. Source:
 * RISC-V vector extension 1.0, section 3.5 (vlenb, CSR 0xC22); Linux 6.12,
 * Documentation/arch/riscv/vector.rst (PR_RISCV_V_GET_CONTROL),
 * arch/riscv/include/uapi/asm/hwcap.h; Arm ARM, RDVL; Linux 6.12,
 * arch/arm64/include/uapi/asm/hwcap.h.
 */
#if defined(__riscv)
#define HWCAP_V (1ul << ('V' - 'A'))
#define V_GET_CONTROL 70 /* PR_RISCV_V_GET_CONTROL, which older headers lack */
#define V_CURRENT_MASK 3
#define V_CURRENT_OFF 1

static uint32_t vscale(void)
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

static uint32_t vscale(void)
{
	if (!(getauxval(AT_HWCAP) & HWCAP_SVE_BIT))
		return 0;
	register unsigned long bytes __asm__("x0");
	__asm__ volatile(".inst 0x04bf5020" : "=r"(bytes)); /* rdvl x0, #1 */
	return (uint32_t)(bytes / 16);
}
#else
static uint32_t vscale(void)
{
	return 0;
}
#endif

void mperf_begin(struct state *s)
{
	if (s->started)
		return;
	s->pid = getpid();
	s->areas.bytes_max = MPERF_AREA_BYTES_MAX;
	s->begin_ns = mperf_now_ns();
	s->clock_ns = clock_cost_ns();
	s->vscale = vscale();
	s->may_write_gs_base = mperf_gs_base_writable();
	s->period_ms = period_ms();
	s->regions_one_in = mperf_select_one_in("MPERF_REGION_SAMPLE");
	mperf_select_init(&s->selection);
	mperf_sink_init(&s->sink);
	s->silent = !mperf_sink_wanted(&s->sink);
	s->timing_ns = s->silent ? 0 : mperf_timed_cost_ns(s->clock_ns);
	__atomic_store_n(&s->started, true, __ATOMIC_RELEASE);
	mperf_process_begin(s);
}
