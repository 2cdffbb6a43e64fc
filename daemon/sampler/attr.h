/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* perf_event_attr of the sampler's and the ladder's events
 *
 * For daemon/pmu, and for doctor, which explains refusals of these events. Pure: makes no system
 * calls.
 */

#include "daemon/sampler/sampler.h"

/* read_format of all our groups. Source: man perf_event_open, "read_format". */
#define GROUP_READ_FORMAT                                                                          \
	(PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |                     \
		PERF_FORMAT_TOTAL_TIME_RUNNING)

/* Side-band features that some kernels lack, as bits. */
enum {
	SIDEBAND_KSYMBOL = 1, /* Linux 5.1 */
	SIDEBAND_CGROUP = 2,  /* Linux 5.7 with CONFIG_CGROUP_PERF */
	SIDEBAND_LOST = 4,    /* Linux 6.0: PERF_FORMAT_LOST, also for sampling events */
};

/* The ladder's events, without a user's text. */
struct event event_cycles(void);
struct event event_instructions(void);
struct event event_cpu_clock(void);
struct event event_switches(void);
struct event event_dummy(void);

/* The user registers that samples with copied stacks have, as bits. */
uint64_t attr_user_regs(void);

/* The same counter, regardless of its name? */
bool event_equal(const struct event *a, const struct event *b);

/* Bytes of a sample beside its copied stack: registers, and the kernel's chain of some 40 frames. */
#define SAMPLE_BESIDE_STACK_BYTES 600u

/* Exclude (or include) the kernel and hypervisor, and show it in the name. */
void event_exclude_kernel(struct event *e, bool exclude);

/* Use a fixed period if the event's period is in ns, or if the kernel generates each occurrence
 * (tracepoints, page faults); else frequency mode. The kernel approaches a frequency gradually, so
 * most occurrences of a bursty event would be missed or weighted wrongly meanwhile. `period` is
 * fixed if it is not 0. Returns the fixed period, 0 in frequency mode. */
uint64_t attr_set_rate(
	struct perf_event_attr *attr, const struct event *e, uint32_t hz, uint64_t period);
uint64_t event_period(const struct event *e, uint32_t hz, uint64_t period);
/* The period of a clock on that hart, a little longer than the one that was asked for (at most 1.2 %) and another than those
 * of other harts. Else all harts would take their samples at the same moments for ever, microseconds apart: a sample on
 * one hart delays the thread there, so a thread that waits for it is found asleep on the next hart. */
uint64_t attr_hart_period(uint64_t period, int hart);
/* Time that a sample of the event represents. 0: not known, since the event fires by
 * occurrences. */
uint64_t event_weight_ns(const struct event *e, uint32_t hz, uint64_t period);

void attr_sideband(const struct sampler *s, unsigned features, size_t ring_bytes,
	struct perf_event_attr *ret_attr);
/* The tracepoint of execs, with a copy of the new program's stack, or a dummy with COMM records;
 * its own ring wakes us at each record. */
void attr_exec(const struct sampler *s, const struct event *e, struct perf_event_attr *ret_attr);
size_t exec_ring_bytes(const struct sampler *s, const struct event *e);
/* The event that the BPF program on execs writes to, and its ring, which is read with each drain and wakes us once a
 * quarter of it is full. */
size_t exec_bpf_ring_bytes(const struct sampler *s);
void attr_exec_bpf(const struct sampler *s, size_t ring_bytes, struct perf_event_attr *ret_attr);
/* An event that fires; grouped: its samples carry the group's values. */
void attr_sampler(const struct sampler *s, const struct event *e, bool grouped,
	struct perf_event_attr *ret_attr);
void attr_sibling(const struct sampler *s, const struct event *e, struct perf_event_attr *ret_attr);
void attr_switch(const struct sampler *s, struct perf_event_attr *ret_attr);
/* The same event without a period: it only counts. It must count the kernel, where all switches
 * happen: with exclude_kernel it would read 0 for ever. */
void attr_switch_count(const struct sampler *s, struct perf_event_attr *ret_attr);
/* The event that the BPF program writes its records to. */
void attr_bpf_output(const struct sampler *s, struct perf_event_attr *ret_attr);

/* A dummy without records of its own, through which a ring is mapped that wakes us at each wakeup_bytes. */
void attr_ring(const struct sampler *s, size_t wakeup_bytes, struct perf_event_attr *ret_attr);
/* The event that samples a single task, and all that it starts after the event was opened. */
void attr_raised(const struct sampler *s, const struct event *e, uint32_t hz,
	struct perf_event_attr *ret_attr);

/* The event that fires when a single task, or one that it started, leaves its hart, at a tracepoint or as
 * event_switches(); with SWITCH records. */
void attr_waits(const struct sampler *s, const struct event *e, struct perf_event_attr *ret_attr);

/* Sizes of rings, as below: of the side band alone, and of one raise. */
size_t sideband_ring_bytes(const struct sampler *s);
size_t raise_ring_bytes(const struct sampler *s, uint32_t hz);
size_t waits_ring_bytes(const struct sampler *s);
/* Size of that hart's ring for its plan at the current rate, in bytes; a power of two. */
size_t ring_bytes_for(const struct sampler *s, int hart);
