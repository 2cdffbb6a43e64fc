/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counts a million turns of four instructions by read(2), and as the runtime does without a system call.
 * Prints "call N", and "direct N", or "not allowed" where the kernel lets no program read its counters.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/grant.h"
#include "runtime/mperf.h" /* so that it is linked with the runtime */
#include "runtime/pmc.h"
#include "turns.h"

#define TURNS 1000000
/* Of arm64's config1: user code may read the counter. Others ignore it. Source: Linux 6.12,
 * Documentation/arch/arm64/perf.rst. */
#define CONFIG1_USER 2

static unsigned long long read_call(int fd)
{
	unsigned long long value = 0;
	if (read(fd, &value, sizeof(value)) != sizeof(value))
		perror("read");
	return value;
}

int main(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.config1 = CONFIG1_USER,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	const struct perf_event_mmap_page *page =
		fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		perror("perf_event_open");
		return 1;
	}
	struct grant_reading from, to;
	const unsigned long long before = read_call(fd);
	turns(TURNS);
	printf("call %llu\n", read_call(fd) - before);
	if (!mperf_pmc_possible(page) || !mperf_pmc_counter ||
		!mperf_pmc_read(page, mperf_pmc_counter, &from)) {
		puts("not allowed");
		return 0;
	}
	turns(TURNS);
	if (!mperf_pmc_read(page, mperf_pmc_counter, &to))
		return 1;
	printf("direct %llu\n", (unsigned long long)(to.value - from.value));
	printf("index %u width %u\n", page->index, page->pmc_width);
	return 0;
}
