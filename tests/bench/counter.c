/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What one read of a hardware counter costs here, which is what kind of machine it is: on hardware a
 * read of its register takes nanoseconds, on a virtual machine whose PMU traps each is an exit to
 * the host. It is the difference between read(2) of an event whose value is in such a register and
 * of one that the kernel itself counts, of the calling thread, by turns.
 *
 * Prints JSON: "counts" and "samples" (cycles can be opened so), and with a counter "read_ns".
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 101 /* odd: it has a median */
#define READS 200

static int event_open(uint32_t type, uint64_t config, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config,
		.sample_period = period,
	};
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ns of one read(2). */
static double read_ns(int fd)
{
	uint64_t value, begin = now_ns();
	for (int i = 0; i < READS; i++)
		if (read(fd, &value, sizeof(value)) != sizeof(value))
			exit(1);
	return (double)(now_ns() - begin) / READS;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

int main(void)
{
	double more[ROUNDS];
	int cycles = event_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0);
	int faults = event_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0);
	int sampler = event_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1u << 30);

	if (faults < 0) {
		fprintf(stderr, "counter: perf_event_open: %s\n", strerror(errno));
		return 1;
	}
	printf("{\"counts\": %s, \"samples\": %s", cycles < 0 ? "false" : "true",
		sampler < 0 ? "false" : "true");
	close(sampler);
	for (int i = 0; cycles >= 0 && i < ROUNDS; i++)
		more[i] = read_ns(cycles) - read_ns(faults);
	if (cycles >= 0) {
		qsort(more, ROUNDS, sizeof(*more), by_value);
		printf(", \"read_ns\": %.1f", more[ROUNDS / 2] > 0 ? more[ROUNDS / 2] : 0);
	}
	printf("}\n");
	return 0;
}
