/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The database knows programmable counters; fixed ones are the architecture's.
 */
#include "daemon/pmu/event/counters.h"

#include "daemon/pmu/event/event_on_core.h"

/* Counters that are not programmable, as bits of a plan's masks. Sources: RISC-V privileged
 * specification, mcycle and minstret are counters 0 and 2; Arm ARM, PMCCNTR_EL0 is counter 31, and event
 * 0x11 is CPU_CYCLES. */
#define RISCV_CYCLE (UINT64_C(1) << 0)
#define RISCV_INSTRET (UINT64_C(1) << 2)
#define ARM_CYCLE (UINT64_C(1) << 31)
#define ARM_CPU_CYCLES 0x11

static bool is_generic(const struct event *e, uint64_t config)
{
	return e->type == PERF_TYPE_HARDWARE && e->config == config;
}

/* Counters that are not programmable and can count the event. */
static uint64_t fixed_counters(const struct platform *p, const struct event *e)
{
	bool is_cycles = is_generic(e, PERF_COUNT_HW_CPU_CYCLES);
	if (p->arch == PLATFORM_ARCH_RISCV)
		return is_cycles                                   ? RISCV_CYCLE
		       : is_generic(e, PERF_COUNT_HW_INSTRUCTIONS) ? RISCV_INSTRET
								   : 0;
	is_cycles |= e->type == PERF_TYPE_RAW && e->config == ARM_CPU_CYCLES;
	return is_cycles && p->arch == PLATFORM_ARCH_ARM64 ? ARM_CYCLE : 0;
}

struct plan_event event_counters(const struct platform *p, const struct event *e)
{
	if (e->type == PERF_TYPE_SOFTWARE || e->type == PERF_TYPE_TRACEPOINT)
		return (struct plan_event){.needs_none = true};
	uint64_t fixed = fixed_counters(p, e);
	if (fixed && p->arch == PLATFORM_ARCH_RISCV)
		return (struct plan_event){.counters = fixed};
	const struct platform_event *own = event_described(e, p, true);
	uint64_t programmable = e->counters ? e->counters : own ? own->counters : p->counters;
	return (struct plan_event){
		.counters = fixed | (programmable ? programmable : ~UINT64_C(0))};
}

uint64_t platform_all_counters(const struct platform *p)
{
	uint64_t fixed = p->arch == PLATFORM_ARCH_RISCV   ? RISCV_CYCLE | RISCV_INSTRET
			 : p->arch == PLATFORM_ARCH_ARM64 ? ARM_CYCLE
							  : 0;
	uint64_t ruled = 0;
	for (size_t i = 0; i < p->n_events; i++)
		ruled |= p->event[i].counters;
	return p->counters || ruled ? p->counters | ruled | fixed
				    : (UINT64_C(1) << EVENT_GROUP_MAX) - 1;
}
