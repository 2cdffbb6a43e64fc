/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* All events of a session have the same clock (CLOCK_MONOTONIC), identity (IDENTIFIER first) and
 * trailer of non-sample records, so that one ring per hart can carry them all and one decoder reads
 * them by id. They differ only in the data that takes space: events that fire carry stacks, the
 * side-band event carries the records about the system, a sibling only its value.
 */

#include "daemon/sampler/attr.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__riscv) || defined(__aarch64__)
#include <asm/perf_regs.h>
#endif

#define NS_PER_S 1000000000u

/* Registers that an unwinder needs: all general ones, program counter and stack pointer. */
#if defined(__x86_64__)
/* Not the segment registers DS, ES, FS, GS: the kernel refuses them on 64 bit.
 * Source: REG_NOSUPPORT in arch/x86/kernel/perf_regs.c of Linux 6.12. */
#define USER_REGS                                                                                  \
	(((1ull << PERF_REG_X86_64_MAX) - 1) &                                                     \
		~(1ull << PERF_REG_X86_DS | 1ull << PERF_REG_X86_ES | 1ull << PERF_REG_X86_FS |    \
			1ull << PERF_REG_X86_GS))
_Static_assert(USER_REGS == 0xff0fff, "AX to SS without segments, then R8 to R15");
#elif defined(__riscv)
#define USER_REGS ((1ull << PERF_REG_RISCV_MAX) - 1)
#elif defined(__aarch64__)
/* x0 to x29, lr, sp, pc. Not PERF_REG_ARM64_VG, which only SVE machines have. */
#define USER_REGS ((1ull << (PERF_REG_ARM64_PC + 1)) - 1)
#else
#define USER_REGS 0ull /* no unwinder for this architecture: only frame-pointer stacks */
#endif

/* Index of sp in the user registers; ~0: unknown architecture. Source:
 * arch/ARCH/include/uapi/asm/perf_regs.h of Linux 6.12. */
#if defined(__x86_64__)
#define REGISTER_SP PERF_REG_X86_SP
#elif defined(__riscv)
#define REGISTER_SP PERF_REG_RISCV_SP
#elif defined(__aarch64__)
#define REGISTER_SP PERF_REG_ARM64_SP
#endif

/* A sample with a call chain of about 40 frames; a copied stack comes with its registers and the
 * kernel's chain. */
#define SAMPLE_BYTES 400u
/* Room for the side band of a busy build between two drains: 20 processes with 60 mappings, about
 * 110 bytes per record, twice over. */
#define SIDEBAND_BYTES (256u << 10)
/* Room for 7,000 switches between two drains, at 152 bytes with four siblings. */
#define SWITCHES_BYTES (1u << 20)
/* Copied part of a new program's stack: pointers and auxiliary vector (1 KiB with 60 variables), up
 * to 8 KiB of random gap, and 4 KiB of arguments, the maximum that is kept. If the arguments do not
 * fit, or the copy crosses a page that was never touched (one case in four), /proc is read. Source:
 * arch_align_stack in arch/x86/kernel/process.c of Linux 6.12. */
#define EXEC_STACK_BYTES 13312u
/* 39 such copies: 60 ms without a read (three of EXEC_REST_NS) at 650 execs per second and hart. */
#define EXEC_RING_BYTES (512u << 10)
#define ALWAYS_STACKS_PART 12
#define RING_BYTES_MIN (64u << 10)
#define RING_BYTES_MAX (16u << 20) /* per hart: locked memory, not available to others */
/* A side band of its own: 7,000 threads that begin and end, or 80 processes with 60 mappings twice over, between
 * two reads. */
#define SIDEBAND_RING_BYTES (1u << 20)
/* All of them together take at most this fraction (1 / N) of the machine's memory. */
#define SIDEBAND_RINGS_PART 512u
/* Ring of a raise: room for a quarter of its rate with deep stacks, but never more than the maximum; that of copied
 * stacks has room for 60. */
#define RAISE_SAMPLE_BYTES 1100u
#define RAISE_RING_BYTES_MAX (512u << 10)
#define RAISE_STACKS_RING_BYTES_MAX (2u << 20)
/* Room for 450 switches with copies of 8 KiB: at 10,000 a second it wakes us each 11 ms. */
#define WAITS_RING_BYTES (4u << 20)
/* All sample rings together take at most this fraction (1 / N) of the machine's memory; so do the
 * exec rings. A board of 256 MB with two harts gets 512 KiB for each, and the watermark still wakes
 * us in time; eight harts need 8 GB for full-sized rings. */
#define RINGS_PART 128u
/* Where locked memory is limited, the parts of a hart's share that these rings may take: a container with 8 MiB and
 * four harts has 2.5 MiB for each. What is left is for recordings. */
#define LOCKED_PART_SAMPLES 2u
#define LOCKED_PART_SIDEBAND 4u
#define LOCKED_PART_EXECS 8u

uint64_t attr_user_regs(void)
{
	return USER_REGS;
}

static struct event event_make(const char *name, const char *pmu, uint32_t type, uint64_t config)
{
	struct event e = {.type = type, .config = config, .group = -1};
	snprintf(e.name, sizeof(e.name), "%s", name);
	snprintf(e.pmu, sizeof(e.pmu), "%s", pmu);
	return e;
}

struct event event_cycles(void)
{
	return event_make("cycles", "hardware", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
}

struct event event_instructions(void)
{
	return event_make(
		"instructions", "hardware", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
}

struct event event_cpu_clock(void)
{
	return event_make("cpu-clock", "software", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
}

struct event event_switches(void)
{
	return event_make(
		"context-switches", "software", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
}

struct event event_dummy(void)
{
	struct event e = event_make("dummy", "software", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	e.exclude_kernel = e.exclude_hv = true;
	return e;
}

bool event_equal(const struct event *a, const struct event *b)
{
	return a->type == b->type && a->config == b->config && a->config1 == b->config1 &&
	       a->config2 == b->config2 && a->exclude_user == b->exclude_user &&
	       a->exclude_kernel == b->exclude_kernel && a->precise == b->precise;
}

void event_exclude_kernel(struct event *e, bool exclude)
{
	if (e->exclude_kernel == exclude)
		return;
	e->exclude_kernel = e->exclude_hv = exclude;

	/* "cycles" becomes "cycles:u", "cycles:p" "cycles:pu", "cpu/event=2/" "cpu/event=2/u". */
	size_t n = strlen(e->name);
	if (exclude) {
		bool slash = n && e->name[n - 1] == '/';
		snprintf(e->name + n, sizeof(e->name) - n, "%s",
			slash || event_has_modifiers(e) ? "u" : ":u");
	} else if (n > 2 && strcmp(e->name + n - 2, ":u") == 0) {
		e->name[n - 2] = '\0';
	}
}

uint64_t event_period(const struct event *e, uint32_t hz, uint64_t period)
{
	if (period)
		return period;
	if (event_is_clock(e))
		return NS_PER_S / hz;
	return e->type == PERF_TYPE_TRACEPOINT || e->type == PERF_TYPE_SOFTWARE ? 1 : 0;
}

/* Two harts that begin together are apart by 20 µs after 29 samples, and after 1430 they meet again. */
#define STAGGER_PPM 700u
#define STAGGERED 16u /* harts, with that much between them; further ones are in between */

uint64_t attr_hart_period(uint64_t period, int hart)
{
	const uint64_t steps =
		(uint64_t)hart % STAGGERED * STAGGERED + (uint64_t)hart / STAGGERED % STAGGERED;
	return period + (uint64_t)((double)period * STAGGER_PPM / 1e6 * (double)steps / STAGGERED);
}

uint64_t event_weight_ns(const struct event *e, uint32_t hz, uint64_t period)
{
	if (event_is_clock(e))
		return event_period(e, hz, period);
	return period ? 0 : NS_PER_S / hz;
}

uint64_t attr_set_rate(
	struct perf_event_attr *attr, const struct event *e, uint32_t hz, uint64_t period)
{
	period = event_period(e, hz, period);
	attr->freq = period == 0;
	if (period)
		attr->sample_period = period;
	else
		attr->sample_freq = hz;
	return period;
}

static void attr_begin(const struct sampler *s, const struct event *e, struct perf_event_attr *a)
{
	*a = (struct perf_event_attr){
		.size = sizeof(*a),
		.sample_type = STREAM_SAMPLE_ID,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.inherit = s->options.per_task,
	};
	event_to_attr(e, a);
}

void attr_sideband(const struct sampler *s, unsigned features, size_t ring_bytes,
	struct perf_event_attr *ret_attr)
{
	struct event dummy = event_dummy();
	attr_begin(s, &dummy, ret_attr);
	ret_attr->disabled = 1;
	ret_attr->mmap = ret_attr->mmap2 = 1;
	ret_attr->comm = ret_attr->comm_exec = 1;
	ret_attr->task = 1;
	ret_attr->ksymbol = !!(features & SIDEBAND_KSYMBOL);
	/* build_id stays 0. Requesting it makes the kernel mark the MMAP2 records of all listeners
	 * as having a build id (see daemon/decode/record.c), and perf 6.1 aborts on such a record:
	 * mperf must not break a running perf. The namer reads build ids from the files it
	 * opens. */
	ret_attr->cgroup = !!(features & SIDEBAND_CGROUP);
	/* The attribute alone is accepted everywhere since 5.7; only this bit is refused by kernels
	 * without CONFIG_CGROUP_PERF. A dummy never samples, and the trailer of its records has no
	 * cgroup, so it changes nothing else. Source: perf_copy_attr in kernel/events/core.c of
	 * Linux 6.12. */
	if (features & SIDEBAND_CGROUP)
		ret_attr->sample_type |= PERF_SAMPLE_CGROUP;
	/* The ring's watermark is that of the event it was mapped through: no wakeup per sample.
	 * The kernel limits it to the ring's size. */
	ret_attr->watermark = 1;
	ret_attr->wakeup_watermark = (uint32_t)(ring_bytes / 2);
	/* Its enabled time shows whether the hart is alive (tick.c). */
	ret_attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	if (features & SIDEBAND_LOST)
		ret_attr->read_format |= PERF_FORMAT_LOST;
}

static bool exec_copies_stack(const struct event *e)
{
#ifdef REGISTER_SP
	return e->type == PERF_TYPE_TRACEPOINT;
#else
	(void)e;
	return false;
#endif
}

static void attr_exec_stack(struct perf_event_attr *a)
{
#ifdef REGISTER_SP
	a->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	a->sample_regs_user = 1ull << REGISTER_SP;
	a->sample_stack_user = EXEC_STACK_BYTES;
#else
	(void)a;
#endif
}

/* Halve `wanted` until it fits a hart's share of 1 / part of the machine's memory. */
static uint64_t part_of_memory(const struct sampler *s, uint64_t wanted, uint64_t part)
{
	uint64_t n_harts = (uint64_t)hart_set_count(&s->machine.online);
	uint64_t all = (uint64_t)s->machine.memory_kb << 10;
	while (all > 0 && wanted > RING_BYTES_MIN && wanted * n_harts > all / part)
		wanted /= 2;
	return wanted;
}

/* Halve `wanted` until it fits 1 / part of the memory that a hart's rings may lock. */
static uint64_t part_of_locked(const struct sampler *s, uint64_t wanted, uint64_t part)
{
	const uint64_t all = s->machine.locked_kb << 10;
	while (all > 0 && wanted > RING_BYTES_MIN && wanted + (uint64_t)getpagesize() > all / part)
		wanted /= 2;
	return wanted;
}

static uint64_t exec_part(const struct sampler *s)
{
	return part_of_locked(s, part_of_memory(s, EXEC_RING_BYTES, RINGS_PART), LOCKED_PART_EXECS);
}

size_t sideband_ring_bytes(const struct sampler *s)
{
	return part_of_locked(s, part_of_memory(s, SIDEBAND_RING_BYTES, SIDEBAND_RINGS_PART),
		LOCKED_PART_SIDEBAND);
}

static bool copies_stacks(const struct sampler *s)
{
	return s->options.stacks == SAMPLER_STACKS_DWARF;
}

/* The size of a sample with a copied stack: the kernel reserves it whole, also for a stack that is less deep. */
static uint64_t copied_sample_bytes(const struct sampler *s)
{
	/* those of always-on sampling grow into what room its rings have */
	const uint32_t copied = s->options.always ? s->options.stack_bytes : s->copy_bytes;
	return copied + SAMPLE_BESIDE_STACK_BYTES;
}

size_t raise_ring_bytes(const struct sampler *s, uint32_t hz)
{
	const uint64_t each = copies_stacks(s) ? copied_sample_bytes(s) : RAISE_SAMPLE_BYTES;
	const uint64_t most = copies_stacks(s) ? RAISE_STACKS_RING_BYTES_MAX : RAISE_RING_BYTES_MAX;
	uint64_t n = RING_BYTES_MIN;
	while (n < most && n < hz * each / 4)
		n *= 2;
	return part_of_memory(s, n, RINGS_PART * RAISES_MAX);
}

void attr_ring(const struct sampler *s, size_t wakeup_bytes, struct perf_event_attr *ret_attr)
{
	struct event dummy = event_dummy();
	attr_begin(s, &dummy, ret_attr);
	ret_attr->disabled = 1;
	ret_attr->watermark = 1;
	ret_attr->wakeup_watermark = (uint32_t)wakeup_bytes;
}

void attr_raised(const struct sampler *s, const struct event *e, uint32_t hz,
	struct perf_event_attr *ret_attr)
{
	attr_sampler(s, e, false, ret_attr);
	attr_set_rate(ret_attr, e, hz, 0);
	ret_attr->inherit = 1;
	ret_attr->disabled = 0;
	if (ret_attr->sample_stack_user) /* its ring was made for that */
		ret_attr->sample_stack_user = s->options.stack_bytes;
}

size_t waits_ring_bytes(const struct sampler *s)
{
	return part_of_memory(s, WAITS_RING_BYTES, RINGS_PART);
}

size_t exec_bpf_ring_bytes(const struct sampler *s)
{
	return exec_part(s);
}

void attr_exec_bpf(const struct sampler *s, size_t ring_bytes, struct perf_event_attr *ret_attr)
{
	attr_bpf_output(s, ret_attr);
	ret_attr->watermark = 1;
	ret_attr->wakeup_watermark = (uint32_t)(ring_bytes / 4);
}

size_t exec_ring_bytes(const struct sampler *s, const struct event *e)
{
	return exec_copies_stack(e) ? exec_part(s) : (size_t)getpagesize();
}

/* The exec event needs its own ring to wake us: the watermark of a ring is that of the event
 * through which it was mapped. COMM includes FORK and EXIT: no attribute excludes these. Source:
 * perf_event_task_match in kernel/events/core.c of Linux 6.12. */
void attr_exec(const struct sampler *s, const struct event *e, struct perf_event_attr *ret_attr)
{
	attr_begin(s, e, ret_attr);
	ret_attr->disabled = 1;
	ret_attr->watermark = 1;
	ret_attr->wakeup_watermark = 1;
	if (e->type == PERF_TYPE_TRACEPOINT)
		ret_attr->sample_period = 1;
	else
		ret_attr->comm = ret_attr->comm_exec = 1;
	if (exec_copies_stack(e))
		attr_exec_stack(ret_attr);
}

static void add_stacks(const struct sampler *s, const struct event *e, struct perf_event_attr *a)
{
	if (s->options.stacks == SAMPLER_STACKS_NONE)
		return;
	a->sample_type |= PERF_SAMPLE_CALLCHAIN;
	a->exclude_callchain_kernel = e->exclude_kernel || s->options.user_only;
	if (s->options.stacks != SAMPLER_STACKS_DWARF || USER_REGS == 0)
		return;
	a->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	a->sample_regs_user = USER_REGS;
	a->sample_stack_user = s->copy_bytes;
}

void attr_sampler(const struct sampler *s, const struct event *e, bool grouped,
	struct perf_event_attr *ret_attr)
{
	attr_begin(s, e, ret_attr);
	ret_attr->disabled = 1;
	attr_set_rate(ret_attr, e, s->hz, s->options.period);
	ret_attr->sample_type |= PERF_SAMPLE_IP;
	/* Asked to report a fixed period, the kernel has software events and tracepoints fire at each
	 * occurrence. Source: perf_swevent_event in kernel/events/core.c of Linux 6.12. */
	if (!s->options.period)
		ret_attr->sample_type |= PERF_SAMPLE_PERIOD;
	if (s->cgroups)
		ret_attr->sample_type |= PERF_SAMPLE_CGROUP;
	if (grouped) {
		ret_attr->sample_type |= PERF_SAMPLE_READ;
		ret_attr->read_format = GROUP_READ_FORMAT;
	}
	/* These times show whether another user has the counter (hart_share.c). */
	if (e->type != PERF_TYPE_SOFTWARE)
		ret_attr->read_format |=
			PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (s->reads_lost)
		ret_attr->read_format |= PERF_FORMAT_LOST;
	/* Idle is not sampled; hardware counters stop there anyway. */
	ret_attr->exclude_idle = event_is_clock(e);
	add_stacks(s, e, ret_attr);
}

/* The kernel's part of the chain tells what is waited for, also in a session of user code. */
void attr_waits(const struct sampler *s, const struct event *e, struct perf_event_attr *ret_attr)
{
	attr_begin(s, e, ret_attr);
	ret_attr->inherit = 1;
	ret_attr->context_switch = 1;
	ret_attr->sample_period = 1;
	ret_attr->sample_type |= PERF_SAMPLE_IP;
	if (s->cgroups)
		ret_attr->sample_type |= PERF_SAMPLE_CGROUP;
	add_stacks(s, e, ret_attr);
	ret_attr->exclude_callchain_kernel = 0;
	if (ret_attr->sample_stack_user)
		ret_attr->sample_stack_user = s->options.stack_bytes;
}

void attr_sibling(const struct sampler *s, const struct event *e, struct perf_event_attr *ret_attr)
{
	attr_begin(s, e, ret_attr);
	/* It never fires, but if it is inherited the kernel keeps values per thread only for
	 * members that have READ like their leader (Linux 6.13, inherit with PERF_SAMPLE_READ). */
	ret_attr->sample_type |= PERF_SAMPLE_READ;
	ret_attr->read_format = GROUP_READ_FORMAT;
}

void attr_switch(const struct sampler *s, struct perf_event_attr *ret_attr)
{
	struct event e = event_switches();
	attr_begin(s, &e, ret_attr);
	ret_attr->sample_period = 1;
	ret_attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ;
	ret_attr->read_format = GROUP_READ_FORMAT;
}

void attr_switch_count(const struct sampler *s, struct perf_event_attr *ret_attr)
{
	struct event e = event_switches();
	attr_sibling(s, &e, ret_attr);
}

void attr_bpf_output(const struct sampler *s, struct perf_event_attr *ret_attr)
{
	struct event e =
		event_make("bpf-output", "software", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT);
	attr_begin(s, &e, ret_attr);
	ret_attr->disabled = 1;
	ret_attr->sample_period = 1;
	ret_attr->sample_type |= PERF_SAMPLE_RAW;
	if (s->reads_lost)
		ret_attr->read_format = PERF_FORMAT_LOST;
}

size_t ring_bytes_for(const struct sampler *s, int hart)
{
	uint64_t each = copies_stacks(s) ? copied_sample_bytes(s) : SAMPLE_BYTES;
	uint64_t n_sampling = s->options.events ? (uint64_t)s->options.events->n_events : 1;
	uint32_t hz = s->options.ring_hz > s->hz ? s->options.ring_hz : s->hz;
	/* A record has room for the deepest stack that is copied, so rings of always-on sampling would take tens of MB.
	 * These hold a quarter of a second of a client's usual high rate, and wake us when a quarter full; at the service's own rate a drain finds less than
	 * an eighth of them in use (session/walk_drain.c). */
	if (copies_stacks(s) && s->options.always)
		hz = s->hz > hz / ALWAYS_STACKS_PART ? s->hz : hz / ALWAYS_STACKS_PART;
	uint64_t wanted = each * hz * n_sampling + (s->options.always ? 0 : SIDEBAND_BYTES);
	if (s->plan[hart].switches || s->plan[hart].n_siblings > 0)
		wanted += SWITCHES_BYTES;

	uint64_t most = part_of_memory(s, RING_BYTES_MAX, RINGS_PART);
	if (s->machine.may_see_all)
		most = part_of_locked(s, most, LOCKED_PART_SAMPLES);
	/* Users without the right to see all have a budget of mlock_kb per hart, including the
	 * control page. */
	if (!s->machine.may_see_all) {
		uint64_t budget = (uint64_t)s->machine.mlock_kb << 10;
		while (most > RING_BYTES_MIN && most + (uint64_t)getpagesize() > budget)
			most /= 2;
	}
	uint64_t n = RING_BYTES_MIN;
	while (n < wanted && n < most)
		n *= 2;
	return (size_t)n;
}
