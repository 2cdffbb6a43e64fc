/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The page is written by the kernel on the processor that runs the thread, so compiler barriers
 * suffice. The sequence is that of the header: the lock word before and after, the counter's number
 * less 1, its value as a signed number of pmc_width bits, added to the offset.
 * Source: Linux 6.12, include/uapi/linux/perf_event.h, struct perf_event_mmap_page.
 *
 * x86 has one instruction for all counters; Arm and RISC-V have a register for each, whose number is
 * part of the instruction, so there is one instruction for each number here.
 *
 * If the administrator forbids what was allowed (/sys/devices/cpu/rdpmc) while a program runs, its
 * next read is a fault; the kernel offers no way to notice in time.
 */
#include <linux/perf_event.h>

#include "runtime/grant.h"
#include "runtime/pmc.h"

#if defined(__x86_64__)

/* Source: Intel SDM, volume 2, RDPMC. */
static uint64_t counter_here(uint32_t number)
{
	uint32_t low, high;
	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
	return (uint64_t)high << 32 | low;
}
#define COUNTER counter_here

#elif defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)

#define READ(n, register)                                                                          \
	case n:                                                                                    \
		__asm__ volatile(READ_REGISTER(register) : "=r"(value));                           \
		break;
#define READ_8(n, a, b, c, d, e, f, g, h)                                                          \
	READ((n) + 0, a)                                                                           \
	READ((n) + 1, b)                                                                           \
	READ((n) + 2, c)                                                                           \
	READ((n) + 3, d) READ((n) + 4, e) READ((n) + 5, f) READ((n) + 6, g) READ((n) + 7, h)

#if defined(__aarch64__)
/* Event counters 0 to 30; 31 is the one of cycles. Source: Arm ARM DDI 0487, PMEVCNTR<n>_EL0,
 * PMCCNTR_EL0; Linux 6.12, Documentation/arch/arm64/perf.rst. */
#define READ_REGISTER(register) "mrs %0, pm" #register "_el0"
#define REGISTERS                                                                                  \
	READ_8(0, evcntr0, evcntr1, evcntr2, evcntr3, evcntr4, evcntr5, evcntr6, evcntr7)          \
	READ_8(8, evcntr8, evcntr9, evcntr10, evcntr11, evcntr12, evcntr13, evcntr14, evcntr15)    \
	READ_8(16, evcntr16, evcntr17, evcntr18, evcntr19, evcntr20, evcntr21, evcntr22, evcntr23) \
	READ_8(24, evcntr24, evcntr25, evcntr26, evcntr27, evcntr28, evcntr29, evcntr30, ccntr)
#else
/* cycle, time, instret, hpmcounter3 to 31 are 0xc00 to 0xc1f. Source: RISC-V privileged
 * architecture 20211203, table 2.2; Linux 6.12, drivers/perf/riscv_pmu.c, riscv_pmu_event_idx. */
#define READ_REGISTER(register) "csrr %0, " #register
#define REGISTERS                                                                                  \
	READ_8(0, 0xc00, 0xc01, 0xc02, 0xc03, 0xc04, 0xc05, 0xc06, 0xc07)                          \
	READ_8(8, 0xc08, 0xc09, 0xc0a, 0xc0b, 0xc0c, 0xc0d, 0xc0e, 0xc0f)                          \
	READ_8(16, 0xc10, 0xc11, 0xc12, 0xc13, 0xc14, 0xc15, 0xc16, 0xc17)                         \
	READ_8(24, 0xc18, 0xc19, 0xc1a, 0xc1b, 0xc1c, 0xc1d, 0xc1e, 0xc1f)
#endif

static uint64_t counter_here(uint32_t number)
{
	uint64_t value = 0;
	switch (number) {
		REGISTERS
	default:
		break;
	}
	return value;
}
#define COUNTER counter_here

#else
#define COUNTER 0
#endif

pmc_counter *const mperf_pmc_counter = COUNTER;

#define PMC_BITS_MAX 64u

/* The low bits of a counter as a signed number, for the offset is what makes it right. */
static uint64_t extend(uint64_t value, unsigned bits)
{
	if (bits == 0 || bits >= PMC_BITS_MAX)
		return value;
	const unsigned rest = PMC_BITS_MAX - bits;
	return (uint64_t)((int64_t)(value << rest) >> rest);
}

bool mperf_pmc_allowed(const struct perf_event_mmap_page *page)
{
	return page->cap_user_rdpmc;
}

static uint32_t lock_of(const struct perf_event_mmap_page *page)
{
	return __atomic_load_n(&page->lock, __ATOMIC_RELAXED);
}

bool mperf_pmc_read(const struct perf_event_mmap_page *page, pmc_counter *counter,
	struct grant_reading *ret_reading)
{
	const volatile struct perf_event_mmap_page *now = page;
	for (unsigned i = 0; i < MPERF_PMC_TRIES; i++) {
		const uint32_t before = lock_of(page);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		const uint32_t index = now->index;
		if (!now->cap_user_rdpmc || index == 0)
			return false;
		const uint64_t value = (uint64_t)now->offset;
		const struct grant_reading r = {
			.value = value + extend(counter(index - 1), now->pmc_width),
			.enabled_ns = now->time_enabled,
			.running_ns = now->time_running,
		};
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (before % 2 != 0 || lock_of(page) != before)
			continue;
		*ret_reading = r;
		return true;
	}
	return false;
}
