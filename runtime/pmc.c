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

#elif defined(__aarch64__)

#define READ(n, register)                                                                          \
	case n:                                                                                    \
		__asm__ volatile("mrs %0, " register : "=r"(value));                               \
		return value

/* Event counters 0 to 30; 31 is the one of cycles. Source: Arm ARM DDI 0487, PMEVCNTR<n>_EL0,
 * PMCCNTR_EL0; Linux 6.12, Documentation/arch/arm64/perf.rst. */
static uint64_t counter_here(uint32_t number)
{
	uint64_t value;
	switch (number) {
		READ(0, "pmevcntr0_el0");
		READ(1, "pmevcntr1_el0");
		READ(2, "pmevcntr2_el0");
		READ(3, "pmevcntr3_el0");
		READ(4, "pmevcntr4_el0");
		READ(5, "pmevcntr5_el0");
		READ(6, "pmevcntr6_el0");
		READ(7, "pmevcntr7_el0");
		READ(8, "pmevcntr8_el0");
		READ(9, "pmevcntr9_el0");
		READ(10, "pmevcntr10_el0");
		READ(11, "pmevcntr11_el0");
		READ(12, "pmevcntr12_el0");
		READ(13, "pmevcntr13_el0");
		READ(14, "pmevcntr14_el0");
		READ(15, "pmevcntr15_el0");
		READ(16, "pmevcntr16_el0");
		READ(17, "pmevcntr17_el0");
		READ(18, "pmevcntr18_el0");
		READ(19, "pmevcntr19_el0");
		READ(20, "pmevcntr20_el0");
		READ(21, "pmevcntr21_el0");
		READ(22, "pmevcntr22_el0");
		READ(23, "pmevcntr23_el0");
		READ(24, "pmevcntr24_el0");
		READ(25, "pmevcntr25_el0");
		READ(26, "pmevcntr26_el0");
		READ(27, "pmevcntr27_el0");
		READ(28, "pmevcntr28_el0");
		READ(29, "pmevcntr29_el0");
		READ(30, "pmevcntr30_el0");
		READ(31, "pmccntr_el0");
	default:
		return 0;
	}
}
#define COUNTER counter_here

#elif defined(__riscv) && __riscv_xlen == 64

#define READ(n, register)                                                                          \
	case n:                                                                                    \
		__asm__ volatile("csrr %0, " register : "=r"(value));                              \
		return value

/* cycle, time, instret, hpmcounter3 to 31. Source: RISC-V privileged architecture 20211203, table
 * 2.2; Linux 6.12, drivers/perf/riscv_pmu.c, riscv_pmu_event_idx. */
static uint64_t counter_here(uint32_t number)
{
	uint64_t value;
	switch (number) {
		READ(0, "0xc00");
		READ(1, "0xc01");
		READ(2, "0xc02");
		READ(3, "0xc03");
		READ(4, "0xc04");
		READ(5, "0xc05");
		READ(6, "0xc06");
		READ(7, "0xc07");
		READ(8, "0xc08");
		READ(9, "0xc09");
		READ(10, "0xc0a");
		READ(11, "0xc0b");
		READ(12, "0xc0c");
		READ(13, "0xc0d");
		READ(14, "0xc0e");
		READ(15, "0xc0f");
		READ(16, "0xc10");
		READ(17, "0xc11");
		READ(18, "0xc12");
		READ(19, "0xc13");
		READ(20, "0xc14");
		READ(21, "0xc15");
		READ(22, "0xc16");
		READ(23, "0xc17");
		READ(24, "0xc18");
		READ(25, "0xc19");
		READ(26, "0xc1a");
		READ(27, "0xc1b");
		READ(28, "0xc1c");
		READ(29, "0xc1d");
		READ(30, "0xc1e");
		READ(31, "0xc1f");
	default:
		return 0;
	}
}
#define COUNTER counter_here

#else
#define COUNTER 0
#endif

pmc_counter *const mperf_pmc_counter = COUNTER;

#define PMC_BITS_MAX 64u

/* The low bits of a counter as a signed number, since the offset is relative to that. */
static uint64_t extend(uint64_t value, unsigned bits)
{
	if (bits == 0 || bits >= PMC_BITS_MAX)
		return value;
	const unsigned rest = PMC_BITS_MAX - bits;
	return (uint64_t)((int64_t)(value << rest) >> rest);
}

/* RISC-V's kernel says so only while the event is in a counter. Source: Linux 6.12,
 * drivers/perf/riscv_pmu.c, riscv_perf_user_access. */
bool mperf_pmc_possible(const struct perf_event_mmap_page *page)
{
#if defined(__riscv)
	(void)page;
	return true;
#else
	return page->cap_user_rdpmc;
#endif
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
