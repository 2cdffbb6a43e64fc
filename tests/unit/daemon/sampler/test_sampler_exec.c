/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The sampler's news of execs on machines as data: by the tracepoint, by a dummy, or not at all */

#include <errno.h>
#include <unistd.h>

#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

static const struct sampler_options plain = {.hz = 99, .stacks = SAMPLER_STACKS_FP};

TEST(each_hart_tells_of_execs_at_once, .times = 2)
{
	static const char id[] = "/sys/kernel/tracing/events/sched/sched_process_exec/id";
	struct replay *r = case_load(_i ? "pc" : "x86-vm");
	replay_set_text(r, id, _i ? "316\n" : NULL); /* a tracepoint that the pc knows */
	struct sampler *s = case_sampler(r, &plain);
	ck_assert_uint_eq(s->n_exec_rings, s->n_rings);
	const struct stream *t = case_stream(s, 1, STREAM_EXEC);
	const struct perf_event_attr *a = replay_attr(r, t->fd);
	ck_assert_int_eq(s->exec_ring[1].fd, t->fd);
	if (_i)
		ck_assert_uint_gt(s->exec_ring[1].data_bytes, RECORD_BYTES_MAX); /* many stacks */
	else
		ck_assert_uint_eq(s->exec_ring[1].data_bytes, (size_t)getpagesize());
	ck_assert(a->watermark && a->wakeup_watermark == 1 && a->use_clockid && a->sample_id_all);
	ck_assert(a->type == (_i ? PERF_TYPE_TRACEPOINT : PERF_TYPE_SOFTWARE));
	ck_assert(a->sample_period == (_i ? 1 : 0) && a->comm == !_i && a->comm_exec == !_i);
	ck_assert(a->exclude_kernel == !_i && !a->mmap && !a->task);
	const uint64_t stack = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	ck_assert_uint_eq(a->sample_type, STREAM_SAMPLE_ID | (_i ? stack : 0));
	ck_assert_int_eq(__builtin_popcountll(a->sample_regs_user), _i ? 1 : 0);
	ck_assert_uint_eq(t->regs_user, a->sample_regs_user);
	ck_assert(a->sample_stack_user % 8 == 0 && (a->sample_stack_user >= 8192) == _i);
	case_end(r, s);
}

TEST(rings_take_a_small_part_of_a_small_memory, .times = 5)
{
	static const struct {
		const char *meminfo;
		size_t ring, exec_ring;
	} machines[] = {
		{NULL, 4 << 20, 512 << 10}, /* unknown */
		{"MemTotal: 16000000 kB\n", 4 << 20, 512 << 10},
		{"MemTotal: 463088 kB\n", 512 << 10, 512 << 10},
		{"MemTotal: 120000 kB\n", 128 << 10, 128 << 10},
		{"MemTotal: 1 kB\n", 64 << 10, 64 << 10},
	};
	struct replay *r = case_load("pc");
	replay_set_text(r, "/sys/kernel/tracing/events/sched/sched_process_exec/id", "316\n");
	replay_set_text(r, "/proc/meminfo", machines[_i].meminfo);
	const struct sampler_options busy = {
		.hz = 99, .ring_hz = 2500, .stacks = SAMPLER_STACKS_FP};
	struct sampler *s = case_sampler(r, &busy);
	ck_assert_uint_eq(s->machine.n_harts, 4);
	for (int hart = 0; hart < 4; hart++) {
		ck_assert_uint_eq(s->ring[hart].data_bytes, machines[_i].ring);
		ck_assert_uint_eq(s->exec_ring[hart].data_bytes, machines[_i].exec_ring);
	}
	case_end(r, s);
}

/* A container of four harts with RLIMIT_MEMLOCK as systemd sets it: 2,564 KiB for each. */
TEST(rings_of_all_harts_fit_the_memory_that_may_be_locked)
{
	struct replay *r = case_load("pc");
	replay_set_text(r, "/sys/kernel/tracing/events/sched/sched_process_exec/id", "316\n");
	replay_set_text(r, "/proc/sys/kernel/perf_event_mlock_kb", "516\n");
	replay_limit_locked(r, 8 << 20);
	const struct sampler_options always = {
		.hz = 99, .stacks = SAMPLER_STACKS_DWARF, .stack_bytes = 32768, .always = true};
	struct sampler *s = case_sampler(r, &always);
	ck_assert_uint_eq(s->n_rings, 8);
	for (size_t i = 0; i < s->n_rings; i++)
		ck_assert_uint_eq(s->ring[i].data_bytes, s->ring[i].sideband ? 512 << 10 : 1 << 20);
	for (size_t i = 0; i < s->n_exec_rings; i++)
		ck_assert_uint_eq(s->exec_ring[i].data_bytes, 256 << 10);
	case_end(r, s);
}

TEST(a_tracepoint_that_does_not_open_leaves_the_dummy)
{
	struct replay *r = case_load("x86-vm");
	replay_set_text(r, "/sys/kernel/tracing/events/sched/sched_process_exec/id", "316\n");
	struct sampler *s = case_sampler(r, &plain);
	ck_assert_uint_eq(s->n_exec_rings, 2);
	ck_assert(replay_attr(r, case_stream(s, 0, STREAM_EXEC)->fd)->comm_exec);
	case_end(r, s);
}

TEST(a_hart_without_news_of_execs_samples_all_the_same)
{
	struct replay *r = case_load("x86-vm");
	replay_fail_map(r, 4, EPERM); /* behind two trials of rungs and the ring of hart 0 */
	struct sampler *s = case_sampler(r, &plain);
	ck_assert_uint_eq(s->n_rings, 2);
	ck_assert_uint_eq(s->n_exec_rings, 1);
	ck_assert_int_eq(s->exec_ring[0].hart, 1);
	ck_assert_uint_eq(replay_n_events(r), 5);
	ck_assert_int_eq(sampler_start(s), 0);
	case_end(r, s);
}

/* --- by BPF ----------------------------------------------------------------------------------- */

#define HARTS_MAX_HERE 8

static int output_of[HARTS_MAX_HERE]; /* by hart, the event that execs are written to; -1: none */
static int refusal, hart_refused, n_loads;
static bool loaded;

static int fake_new(void *u, int n_harts, struct exec_bpf **ret_bpf, int *ret_error)
{
	(void)u;
	n_loads++;
	ck_assert_int_le(n_harts, HARTS_MAX_HERE);
	if (refusal) {
		*ret_error = refusal;
		return EXEC_BPF_REFUSED;
	}
	loaded = true;
	memset(output_of, -1, sizeof(output_of));
	*ret_bpf = (struct exec_bpf *)&loaded;
	return 0;
}

static int fake_watch(void *u, struct exec_bpf *b, int hart, int output_fd)
{
	(void)u, (void)b;
	if (hart == hart_refused)
		return -E2BIG;
	output_of[hart] = output_fd;
	return 0;
}

static void fake_forget(void *u, struct exec_bpf *b, int hart)
{
	(void)u, (void)b;
	ck_assert_int_ge(output_of[hart], 0);
	output_of[hart] = -1;
}

static void fake_free(void *u, struct exec_bpf *b)
{
	(void)u, (void)b;
	for (int hart = 0; hart < HARTS_MAX_HERE; hart++)
		ck_assert_int_eq(output_of[hart], -1);
	loaded = false;
}

/* A sampler on that machine, with such a BPF program. */
static struct sampler *with_bpf(struct replay *r, const struct sampler_options *o)
{
	static struct kernel kernel;
	struct event_error error = {""};
	struct sampler *s = NULL;

	kernel = *replay_kernel(r);
	kernel.exec_new = fake_new;
	kernel.exec_watch = fake_watch;
	kernel.exec_forget = fake_forget;
	kernel.exec_free = fake_free;
	n_loads = 0;
	ck_assert_msg(sampler_new(&kernel, o, &s, &error) == 0, "%s", error.text);
	return s;
}

TEST(a_bpf_program_writes_execs_into_rings_of_their_own, .times = 2)
{
	const struct sampler_options o = {.hz = 99, .stacks = SAMPLER_STACKS_FP, .always = _i == 1};
	refusal = 0;
	hart_refused = -1;
	struct replay *r = case_load("x86-vm");
	struct sampler *s = with_bpf(r, &o);
	ck_assert_int_eq(n_loads, 1);
	ck_assert_uint_eq(s->n_exec_rings, (size_t)s->machine.n_harts);
	ck_assert_uint_eq(case_n_streams(s, STREAM_EXEC), 0);
	for (int hart = 0; hart < s->machine.n_harts; hart++) {
		const struct stream *t = case_stream(s, hart, STREAM_EXEC_BPF);
		ck_assert(hart_set_has(&s->exec_records, hart));
		ck_assert_int_eq(output_of[hart], t->fd);
		const struct perf_event_attr *a = replay_attr(r, t->fd);
		ck_assert_uint_eq(a->config, PERF_COUNT_SW_BPF_OUTPUT);
		ck_assert_uint_eq(a->sample_type, STREAM_SAMPLE_ID | PERF_SAMPLE_RAW);
		ck_assert_int_eq(s->exec_ring[hart].fd, t->fd);
		/* it wakes nobody for a single exec */
		ck_assert_uint_eq(a->wakeup_watermark, s->exec_ring[hart].data_bytes / 4);
	}
	ck_assert_int_eq(sampler_start(s), 0);
	case_end(r, s);
	ck_assert(!loaded);
}

TEST(a_hart_without_bpf_has_an_exec_ring)
{
	refusal = 0;
	hart_refused = 1;
	struct replay *r = case_load("x86-vm");
	struct sampler *s = with_bpf(r, &plain);
	ck_assert(hart_set_has(&s->exec_records, 0));
	ck_assert(!hart_set_has(&s->exec_records, 1));
	ck_assert_uint_eq(s->n_exec_rings, 2);
	ck_assert_int_eq(s->exec_ring[1].hart, 1);
	ck_assert_ptr_nonnull(case_stream(s, 1, STREAM_EXEC));
	ck_assert_uint_eq(case_n_streams(s, STREAM_EXEC_BPF), 1);
	case_end(r, s);
}

/* MemTotal of machines with 256 and 512 MiB. */
TEST(a_small_machine_has_no_memory_for_bpf, .times = 2)
{
	refusal = 0;
	hart_refused = -1;
	struct replay *r = case_load("x86-vm");
	replay_set_text(r, "/proc/meminfo", _i ? "MemTotal: 463088 kB\n" : "MemTotal: 245000 kB\n");
	struct sampler *s = with_bpf(r, &plain);
	ck_assert_int_eq(n_loads, _i);
	ck_assert_int_eq(sampler_exec_error(s), _i ? 0 : ENOMEM);
	ck_assert_uint_eq(s->n_exec_rings, s->n_rings);
	case_end(r, s);
}

TEST(a_refusal_of_bpf_is_remembered)
{
	refusal = EPERM;
	struct replay *r = case_load("x86-vm");
	struct sampler *s = with_bpf(r, &plain);
	ck_assert_int_eq(n_loads, 1);
	ck_assert_int_eq(sampler_exec_error(s), EPERM);
	ck_assert_uint_eq(s->n_exec_rings, s->n_rings);
	ck_assert_int_eq(hart_set_count(&s->exec_records), 0);
	case_end(r, s);
}

/* The trials of rungs and hart 0's ring take three maps, as above. */
TEST(short_of_locked_memory_execs_have_a_smaller_ring)
{
	refusal = 0;
	hart_refused = -1;
	struct replay *r = case_load("x86-vm");
	replay_fail_map(r, 4, EPERM);
	struct sampler *s = with_bpf(r, &plain);
	ck_assert_uint_eq(s->n_exec_rings, 2);
	ck_assert_int_eq(hart_set_count(&s->exec_records), 2);
	ck_assert_uint_eq(s->exec_ring[0].data_bytes, s->exec_ring[1].data_bytes / 2);
	for (int hart = 0; hart < 2; hart++) {
		const struct stream *t = case_stream(s, hart, STREAM_EXEC_BPF);
		ck_assert_int_eq(output_of[hart], t->fd);
		ck_assert_uint_eq(
			replay_attr(r, t->fd)->wakeup_watermark, s->exec_ring[hart].data_bytes / 4);
	}
	ck_assert_int_eq(sampler_start(s), 0);
	case_end(r, s);
}
