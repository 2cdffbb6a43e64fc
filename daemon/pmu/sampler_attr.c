/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Every event of a session says the same about time (CLOCK_MONOTONIC), identity (IDENTIFIER
 * first) and the trailer of its side records, so that one ring per hart can carry them all and
 * one decoder reads them by id. Only what costs room differs: stacks ride on the events that fire,
 * the side-band event carries the news of the system, a sibling carries nothing but its value.
 */

#include "daemon/pmu/sampler_attr.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__riscv) || defined(__aarch64__)
#include <asm/perf_regs.h>
#endif

#define NS_PER_S 1000000000u

/* Registers that an unwinder wants: all general ones, program counter and stack pointer. */
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
#define USER_REGS 0ull /* no unwinder for this machine: only frame-pointer stacks */
#endif

/* Where sp stands among the user's registers; ~0: we do not know this machine.
 * Source: arch/ARCH/include/uapi/asm/perf_regs.h of Linux 6.12. */
#if defined(__x86_64__)
#define REGISTER_SP PERF_REG_X86_SP
#elif defined(__riscv)
#define REGISTER_SP PERF_REG_RISCV_SP
#elif defined(__aarch64__)
#define REGISTER_SP PERF_REG_ARM64_SP
#endif

/* A sample with a call chain of some 40 frames; beside a copied stack lie its registers and the
 * kernel's chain. */
#define SAMPLE_BYTES 400u
#define SAMPLE_BESIDE_STACK_BYTES 600u
/* Room for what mappings, names and exits of a busy build bring between two drains: 20 processes
 * of 60 mappings, about 110 bytes a record, twice over. */
#define SIDEBAND_BYTES (256u << 10)
/* Room for 7,000 switches between two drains, at 152 bytes with four siblings. */
#define SWITCHES_BYTES (1u << 20)
/* Of a new program's stack: pointers and auxiliary vector (1 KiB with 60 variables), up to 8 KiB
 * left free at random, and 4 KiB of arguments, which is what is kept of them. Where that does not
 * reach, or leads over a page that was never touched (one time in four), /proc is asked. Source:
 * arch_align_stack in arch/x86/kernel/process.c of Linux 6.12. */
#define EXEC_STACK_BYTES 13312u
/* 39 such copies, for 60 ms without a look (EXEC_REST_NS) at 650 execs a second and hart. */
#define EXEC_RING_BYTES (512u << 10)
#define RING_BYTES_MIN (64u << 10)
#define RING_BYTES_MAX (16u << 20) /* per hart: locked memory, which nobody else can have */
/* All rings of samples together are no more of the machine's memory than one part in so many; so
 * are those of execs. A board of 256 MB with two harts has 512 KiB for each, which its watermark
 * still has read in time; eight harts need 8 GB for what they would like. */
#define RINGS_PART 128u

static struct event event_make(const char *name, const char *pmu, uint32_t type, uint64_t config)
{
	struct event e = {.type = type, .config = config, .group = -1};
	snprintf(e.name, sizeof e.name, "%s", name);
	snprintf(e.pmu, sizeof e.pmu, "%s", pmu);
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

bool event_is_clock(const struct event *e)
{
	return e->type == PERF_TYPE_SOFTWARE &&
	       (e->config == PERF_COUNT_SW_CPU_CLOCK || e->config == PERF_COUNT_SW_TASK_CLOCK);
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
		bool modified = e->type != PERF_TYPE_TRACEPOINT && strchr(e->name, ':');
		snprintf(e->name + n, sizeof e->name - n, "%s", slash || modified ? "u" : ":u");
	} else if (n > 2 && strcmp(e->name + n - 2, ":u") == 0) {
		e->name[n - 2] = '\0';
	}
}

uint64_t event_period(const struct event *e, uint32_t hz)
{
	if (event_is_clock(e))
		return NS_PER_S / hz;
	return e->type == PERF_TYPE_TRACEPOINT || e->type == PERF_TYPE_SOFTWARE ? 1 : 0;
}

uint64_t attr_set_rate(struct perf_event_attr *attr, const struct event *e, uint32_t hz)
{
	uint64_t period = event_period(e, hz);
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
		.size = sizeof *a,
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
	/* build_id stays 0. Asking for it makes the kernel mark the MMAP2 records of all listeners
	 * as bearing a build id (see daemon/decode/record.c), at which perf 6.1 aborts: nobody's
	 * perf must die because mperf runs. The namer reads build ids from the files it opens. */
	ret_attr->cgroup = !!(features & SIDEBAND_CGROUP);
	/* The attribute alone is taken everywhere since 5.7; only this bit is refused where the
	 * kernel was built without CONFIG_CGROUP_PERF. A dummy never samples, and the trailer of
	 * its records has no cgroup, so it changes nothing else.
	 * Source: perf_copy_attr in kernel/events/core.c of Linux 6.12. */
	if (features & SIDEBAND_CGROUP)
		ret_attr->sample_type |= PERF_SAMPLE_CGROUP;
	/* The ring's watermark is that of the event it was mapped through: nobody is woken per
	 * sample. The kernel takes the ring's size where that is less. */
	ret_attr->watermark = 1;
	ret_attr->wakeup_watermark = (uint32_t)(ring_bytes / 2);
	/* By the time it was enabled it is seen to live (sampler_tick.c). */
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

/* Half of wanted, as often as it takes to be a hart's part of the machine's memory. */
static uint64_t ring_part(const struct sampler *s, uint64_t wanted)
{
	uint64_t n_harts = (uint64_t)hart_set_count(&s->machine.online);
	uint64_t all = (uint64_t)s->machine.memory_kb << 10;
	while (all > 0 && wanted > RING_BYTES_MIN && wanted * n_harts > all / RINGS_PART)
		wanted /= 2;
	return wanted;
}

size_t exec_ring_bytes(const struct sampler *s, const struct event *e)
{
	return exec_copies_stack(e) ? ring_part(s, EXEC_RING_BYTES) : (size_t)getpagesize();
}

/* Without its own ring it would not wake: the watermark is that of the event which a ring was
 * mapped through. With COMM come FORK and EXIT, which no attribute leaves out. Source:
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
	a->exclude_callchain_user = 1;
	a->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	a->sample_regs_user = USER_REGS;
	a->sample_stack_user = s->options.stack_bytes;
}

void attr_sampler(const struct sampler *s, const struct event *e, bool grouped,
	struct perf_event_attr *ret_attr)
{
	attr_begin(s, e, ret_attr);
	ret_attr->disabled = 1;
	attr_set_rate(ret_attr, e, s->hz);
	ret_attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
	if (s->cgroups)
		ret_attr->sample_type |= PERF_SAMPLE_CGROUP;
	if (grouped) {
		ret_attr->sample_type |= PERF_SAMPLE_READ;
		ret_attr->read_format = GROUP_READ_FORMAT;
	}
	/* By these it is seen whether somebody else has the counter (sampler_share.c). */
	if (e->type != PERF_TYPE_SOFTWARE)
		ret_attr->read_format |=
			PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (s->sideband & SIDEBAND_LOST)
		ret_attr->read_format |= PERF_FORMAT_LOST;
	/* Idle is not a share (DESIGN.md decision 12); hardware stands still there anyhow. */
	ret_attr->exclude_idle = event_is_clock(e);
	add_stacks(s, e, ret_attr);
}

void attr_sibling(const struct sampler *s, const struct event *e, struct perf_event_attr *ret_attr)
{
	attr_begin(s, e, ret_attr);
	/* It never fires, but where it is inherited the kernel keeps values per thread only for
	 * members that say READ as their leader does (Linux 6.13, inherit with PERF_SAMPLE_READ).
	 */
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

void attr_switch_bpf(const struct sampler *s, struct perf_event_attr *ret_attr)
{
	struct event e =
		event_make("bpf-output", "software", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT);
	attr_begin(s, &e, ret_attr);
	ret_attr->disabled = 1;
	ret_attr->sample_period = 1;
	ret_attr->sample_type |= PERF_SAMPLE_RAW;
	if (s->sideband & SIDEBAND_LOST)
		ret_attr->read_format = PERF_FORMAT_LOST;
}

size_t ring_bytes_for(const struct sampler *s, int hart)
{
	uint64_t each = s->options.stacks == SAMPLER_STACKS_DWARF
				? s->options.stack_bytes + SAMPLE_BESIDE_STACK_BYTES
				: SAMPLE_BYTES;
	uint64_t n_sampling = s->options.events ? (uint64_t)s->options.events->n_events : 1;
	uint32_t hz = s->options.ring_hz > s->hz ? s->options.ring_hz : s->hz;
	uint64_t wanted = each * hz * n_sampling + SIDEBAND_BYTES;
	if (s->plan[hart].switches || s->plan[hart].n_siblings > 0)
		wanted += SWITCHES_BYTES;

	uint64_t most = ring_part(s, RING_BYTES_MAX);
	/* Whoever may not see all pays from a budget of mlock_kb per hart, control page included.
	 */
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
