/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The sampler on machines as data: what is opened with which attributes, and what is said when it
 * is not. What happens under a running session is in test_sampler_tick.c.
 */

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

static const struct sampler_options plain = {.hz = 99, .stacks = SAMPLER_STACKS_FP};

/* The sentence of a refusal, with its outcome checked. */
static struct event_error refused(const char *machine, const struct sampler_options *o, int outcome)
{
	struct replay *r = case_load(machine);
	struct sampler *s = NULL;
	struct event_error error = {""};
	ck_assert_int_eq(sampler_new(replay_kernel(r), o, &s, &error), outcome);
	ck_assert_ptr_null(s);
	case_end(r, NULL);
	return error;
}

EACH_TEST(.seconds = 60);

/* --- what is opened --------------------------------------------------------------------------- */

TEST(each_hart_has_side_band_leader_and_ring)
{
	struct replay *r = case_load("x86-vm");
	struct sampler *s = case_sampler(r, &plain);
	ck_assert_uint_eq(s->n_rings, 2);
	ck_assert_uint_eq(s->streams.n_streams, 6);
	ck_assert_uint_eq(replay_n_events(r), 6);
	ck_assert_int_eq(s->plan[1].rung, RUNG_CLOCK);
	ck_assert_int_eq(s->events.n_events, 1);
	ck_assert(s->cgroups);

	const struct stream *side = case_stream(s, 1, STREAM_SIDEBAND);
	const struct perf_event_attr *a = replay_attr(r, side->fd);
	ck_assert_int_eq(s->ring[1].fd, side->fd);
	ck_assert(a->mmap && a->mmap2 && a->comm && a->comm_exec && a->task && a->sample_id_all);
	ck_assert(!a->build_id && a->cgroup && a->ksymbol && a->use_clockid && a->watermark);
	ck_assert_int_eq(a->clockid, CLOCK_MONOTONIC);
	ck_assert_uint_eq(a->wakeup_watermark, s->ring[1].data_bytes / 2);

	const struct stream *t = case_stream(s, 1, STREAM_SAMPLER);
	a = replay_attr(r, t->fd);
	ck_assert(!a->freq && a->exclude_idle && a->use_clockid);
	/* hart 1: a little longer than hart 0's, so that they do not sample at the same moments for ever */
	ck_assert_uint_eq(replay_attr(r, case_stream(s, 0, STREAM_SAMPLER)->fd)->sample_period,
		1000000000 / 99);
	ck_assert_uint_eq(a->sample_period, 10108080);
	ck_assert_uint_eq(t->period, 10108080);
	ck_assert_uint_eq(t->weight_ns, 10108080);
	ck_assert_uint_eq(t->leader, t->id);
	ck_assert_uint_eq(t->sample_type, STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD |
						  PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CGROUP);
	ck_assert_int_eq(t->event, 0);
	case_end(r, s);
}

TEST(hardware_leader_is_in_frequency_mode)
{
	struct replay *r = case_load("c910");
	struct sampler *s = case_sampler(r, &plain);
	const struct stream *t = case_stream(s, 0, STREAM_SAMPLER);
	const struct perf_event_attr *a = replay_attr(r, t->fd);
	ck_assert(a->freq && !a->exclude_idle);
	ck_assert_uint_eq(a->sample_freq, 99);
	ck_assert_uint_eq(t->period, 0);
	ck_assert_uint_eq(t->weight_ns, 1000000000 / 99);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SIBLING), 4);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH), 4);
	const struct stream *w = case_stream(s, 0, STREAM_SWITCH);
	ck_assert_uint_eq(replay_attr(r, w->fd)->sample_period, 1);
	ck_assert(w->sample_type & PERF_SAMPLE_READ);
	ck_assert(!(w->sample_type & PERF_SAMPLE_CALLCHAIN));
	ck_assert_uint_eq(w->leader, t->id);
	ck_assert_int_eq(w->event, -1);
	case_end(r, s);
}

TEST(copied_stacks_bring_registers_and_a_larger_ring)
{
	struct replay *r = case_load("x86-vm");
	struct sampler_options o = {.hz = 999, .stacks = SAMPLER_STACKS_DWARF};
	struct sampler *s = case_sampler(r, &o);
	const struct stream *t = case_stream(s, 0, STREAM_SAMPLER);
	const struct perf_event_attr *a = replay_attr(r, t->fd);
	ck_assert(!a->exclude_callchain_user); /* where a walk by tables ends early, it may go on */
	ck_assert_uint_eq(a->sample_stack_user, SAMPLER_STACK_BYTES_DEFAULT);
	ck_assert_uint_eq(t->regs_user, a->sample_regs_user);
	ck_assert_uint_eq(s->ring[0].data_bytes, 16 << 20);
#if defined(__x86_64__)
	ck_assert_uint_eq(t->regs_user, 0xff0fff);
#endif
	replay_run(r, 0, 100, 20000000);
	ck_assert_uint_eq(case_drain(s).n_samples, 0); /* not started */
	sampler_start(s);
	replay_run(r, 0, 100, 20000000);
	ck_assert_uint_eq(case_drain(s).n_samples, 19);
	case_end(r, s);
}

TEST(groups_bring_their_values_with_samples_and_switches, .times = 5)
{
	static const char *const machines[] = {"u74", "x60", "x60-mainline", "c910", "silent"};
	struct sampler_options o = plain;
	o.own_leader = "r22";
	struct replay *r = case_load(machines[_i]);
	struct sampler *s = case_sampler(r, &o);
	ck_assert_int_eq(sampler_start(s), 0);
	ck_assert_int_eq(sampler_start(s), 0);
	replay_run(r, 0, 5, 100000000);
	struct case_tally t = case_drain(s);
	ck_assert_uint_ge(t.n_samples, 9);
	ck_assert_uint_le(t.n_samples, 10);
	ck_assert_uint_ge(t.n_switches, 99);
	ck_assert_uint_gt(t.n_reads, 2 * t.n_samples);
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		int event = s->streams.stream[i].event;
		ck_assert_msg(
			event < 0 || t.last_value[event] > 0, "%s", s->events.event[event].name);
	}
	ck_assert_int_eq(sampler_stop(s), 0);
	replay_run(r, 0, 5, 100000000);
	ck_assert_uint_eq(case_drain(s).n_samples, 0);
	for (int hart = 0; hart < s->machine.n_harts; hart++)
		ck_assert_uint_eq(s->lost[hart][LOSS_SIBLING], 0);
	case_end(r, s);
}

TEST(harts_of_two_kinds_serve_one_session)
{
	struct replay *r = case_load("k3-mixed");
	struct sampler_options o = plain;
	o.own_leader = "r22";
	struct sampler *s = case_sampler(r, &o);
	ck_assert_int_eq(case_stream(s, 0, STREAM_SAMPLER)->rung, RUNG_CYCLES);
	ck_assert_int_eq(case_stream(s, 15, STREAM_SAMPLER)->rung, RUNG_LEADER);
	/* cycles leads here and rides there; the clock is what either falls back to */
	ck_assert_int_eq(s->events.n_events, 4);
	ck_assert_uint_eq(s->n_rings, 16);
	case_end(r, s);
}

TEST(newest_features_are_dropped_one_after_another, .times = 3)
{
	static const struct {
		const char *rule;
		bool cgroups;
	} kernels[] = {
		{"{\"cgroup\":true,\"errno\":\"EINVAL\"},", false},
		{"{\"ksymbol\":true,\"errno\":\"E2BIG\"},", true},
		{"{\"cgroup\":true,\"errno\":\"EINVAL\"},"
		 "{\"ksymbol\":true,\"errno\":\"EINVAL\"},",
			false},
	};
	char json[1024];
	struct replay *r = NULL;
	struct replay_error error = {""};
	snprintf(json, sizeof(json),
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0\\n\"},\"rules\":[%s"
		"{\"type\":\"software\",\"per_us\":1000,\"fires\":true}]}",
		kernels[_i].rule);
	ck_assert_msg(replay_parse(json, &r, &error) == 0, "%s", error.text);
	struct sampler *s = case_sampler(r, &plain);
	ck_assert(s->cgroups == kernels[_i].cgroups);
	uint64_t type = case_stream(s, 0, STREAM_SAMPLER)->sample_type;
	ck_assert(!!(type & PERF_SAMPLE_CGROUP) == kernels[_i].cgroups);
	case_end(r, s);
}

TEST(missing_sibling_is_counted)
{
	struct replay *r = NULL;
	struct replay_error error = {""};
	ck_assert_int_eq(
		replay_parse("{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
			     "\"/sys/devices/system/cpu/online\":\"0\\n\"},\"rules\":["
			     "{\"type\":\"hardware\",\"config\":0,\"per_us\":9,\"fires\":true},"
			     "{\"type\":\"software\",\"per_us\":1000,\"fires\":true}]}",
			&r, &error),
		0);
	struct sampler *s = case_sampler(r, &plain);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CYCLES);
	ck_assert_uint_eq(s->lost[0][LOSS_SIBLING], 1);
	case_end(r, s);
}

/* --- the user's own events -------------------------------------------------------------------- */

TEST(asked_events_sample_each_on_its_own)
{
	struct replay *r = case_load("pc");
	struct event_list events = case_events(r, "cycles,page-faults,cpu-clock:u");
	struct sampler_options o = plain;
	o.events = &events;
	struct sampler *s = case_sampler(r, &o);
	memset(&events, 0xff, sizeof(events)); /* not borrowed */
	ck_assert_int_eq(s->events.n_events, 3);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SAMPLER), 3 * 4);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH), 0);
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		if (t->role != STREAM_SAMPLER)
			continue;
		ck_assert_int_eq(t->rung, RUNG_ASKED);
		ck_assert(replay_attr(r, t->fd)->freq == (t->event == 0));
		ck_assert(t->event != 1 ||
			  (t->period == 1 && replay_attr(r, t->fd)->sample_period == 1));
		ck_assert(!(t->sample_type & PERF_SAMPLE_READ));
		ck_assert(replay_attr(r, t->fd)->exclude_kernel == (t->event == 2));
	}
	case_end(r, s);
}

TEST(asked_group_is_led_by_its_first)
{
	struct replay *r = case_load("pc");
	struct event_list events = case_events(r, "page-faults,{instructions,cycles}");
	struct sampler_options o = plain;
	o.events = &events;
	struct sampler *s = case_sampler(r, &o);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SAMPLER), 2 * 4);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SIBLING), 4);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH), 4);
	const struct stream *sibling = case_stream(s, 2, STREAM_SIBLING);
	ck_assert_str_eq(s->events.event[sibling->event].name, "cycles");
	const struct stream *leader = stream_table_find(&s->streams, sibling->leader);
	ck_assert_str_eq(s->events.event[leader->event].name, "instructions");
	case_end(r, s);
}

TEST(tracepoints_fire_every_time)
{
	struct replay *r = case_load("pc");
	struct event_list events = {.n_events = 1,
		.event[0] = {.name = "sched:sched_switch",
			.pmu = "tracepoint",
			.type = PERF_TYPE_TRACEPOINT,
			.config = 316,
			.group = -1}};
	struct sampler_options o = plain;
	o.events = &events;
	struct sampler *s = case_sampler(r, &o);
	const struct stream *t = case_stream(s, 0, STREAM_SAMPLER);
	ck_assert_uint_eq(t->period, 1);
	ck_assert_uint_eq(replay_attr(r, t->fd)->sample_period, 1);
	replay_set_text(r, "/proc/sys/kernel/perf_event_max_sample_rate", "50\n");
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_uint_eq(replay_attr(r, t->fd)->sample_period, 1);
	case_end(r, s);
}

TEST(asked_event_that_opens_nowhere_is_refused_by_name)
{
	struct replay *r = case_load("x86-vm");
	struct event_list events = case_events(r, "cpu-clock,instructions");
	replay_free(r);
	struct sampler_options o = plain;
	o.events = &events;
	struct event_error e = refused("x86-vm", &o, SAMPLER_REFUSED);
	ck_assert_ptr_nonnull(strstr(e.text, "instructions"));
	ck_assert_ptr_null(strstr(e.text, "cpu-clock:"));

	e = refused("u74", &o, SAMPLER_REFUSED);
	ck_assert_ptr_nonnull(strstr(e.text, "interrupt"));
}

TEST(event_of_the_kernel_alone_is_refused_without_it)
{
	struct replay *r = case_load("x86-vm");
	struct event_list events = case_events(r, "context-switches:u");
	replay_free(r);
	struct sampler_options o = plain;
	o.events = &events;
	struct event_error e = refused("x86-vm", &o, SAMPLER_REFUSED);
	ck_assert_ptr_nonnull(strstr(e.text, "context-switches"));
}

TEST(event_of_the_kernel_alone_never_becomes_one_of_nothing)
{
	const pid_t pids[] = {100};
	struct replay *r = case_load("paranoid2");
	struct event_list events = case_events(r, "cpu-clock:k");
	struct event_list both = case_events(r, "{cpu-clock,page-faults:k}");
	struct sampler_options o = {
		.hz = 99, .per_task = true, .pids = pids, .n_pids = 1, .events = &events};
	struct event_error e = refused("paranoid2", &o, SAMPLER_REFUSED);
	ck_assert_ptr_nonnull(strstr(e.text, "cpu-clock:k:"));
	ck_assert_ptr_nonnull(strstr(e.text, "kernel.perf_event_paranoid"));
	o.user_only = true;
	e = refused("paranoid2", &o, SAMPLER_REFUSED);
	ck_assert_ptr_nonnull(strstr(e.text, "kernel.perf_event_paranoid"));
	e = refused("x86-vm", &o, SAMPLER_REFUSED);
	ck_assert_ptr_null(strstr(e.text, "perf_event_paranoid"));
	ck_assert_ptr_nonnull(strstr(e.text, "cpu-clock:k:"));

	/* A leader gives the kernel up; a sibling that has nothing else is missing. */
	o.user_only = false;
	o.events = &both;
	struct sampler *s = case_sampler(r, &o);
	ck_assert_str_eq(s->events.event[0].name, "cpu-clock:u");
	ck_assert_str_eq(s->events.event[1].name, "page-faults:k");
	ck_assert_uint_eq(case_n_streams(s, STREAM_SIBLING), 0);
	ck_assert_uint_eq(s->lost[0][LOSS_SIBLING], 1);
	case_end(r, s);
}

/* --- by occurrences --------------------------------------------------------------------------- */

TEST(events_fire_by_their_occurrences)
{
	struct replay *r = case_load("c910");
	struct event_list events =
		case_events(r, "cycles,page-faults,cpu-clock,{instructions,cpu-clock:u}");
	struct sampler_options o = plain;
	o.events = &events;
	o.period = 100000;
	struct sampler *s = case_sampler(r, &o);
	unsigned n = 0;
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		if (t->role != STREAM_SAMPLER)
			continue;
		const struct perf_event_attr *a = replay_attr(r, t->fd);
		ck_assert(!a->freq);
		ck_assert_uint_eq(a->sample_period, 100000);
		ck_assert_uint_eq(t->period, 100000);
		/* else the kernel has software events fire each time */
		ck_assert(!(t->sample_type & PERF_SAMPLE_PERIOD));
		ck_assert_uint_eq(t->weight_ns, t->event == 2 ? 100000 : 0);
		n++;
	}
	ck_assert_uint_eq(n, 4 * 4);
	ck_assert_uint_eq(sampler_rate(s), 10000); /* of the clock that leads */
	ck_assert_int_eq(sampler_set_rate(s, 50), 0);
	for (size_t i = 0; i < s->streams.n_streams; i++)
		if (s->streams.stream[i].role == STREAM_SAMPLER)
			ck_assert_uint_eq(
				replay_attr(r, s->streams.stream[i].fd)->sample_period, 100000);
	case_end(r, s);
}

TEST(what_fires_by_occurrences_has_no_rate)
{
	struct replay *r = case_load("c910");
	struct event_list events = case_events(r, "page-faults,{instructions,cpu-clock:u}");
	struct sampler_options o = plain;
	o.events = &events;
	o.period = 3;
	struct sampler *s = case_sampler(r, &o);
	ck_assert_uint_eq(sampler_rate(s), 0);
	case_end(r, s);
	o.events = NULL; /* a period is of events that are named */
	r = case_load("c910");
	s = case_sampler(r, &o);
	ck_assert_uint_eq(sampler_rate(s), 99);
	ck_assert_uint_eq(case_stream(s, 0, STREAM_SAMPLER)->period, 0);
	case_end(r, s);
}

/* --- rights and limits ------------------------------------------------------------------------ */

TEST(normal_user_is_refused_the_system)
{
	struct event_error e = refused("paranoid2", &plain, SAMPLER_REFUSED);
	ck_assert_ptr_nonnull(strstr(e.text, "perf_event_paranoid"));
}

TEST(normal_user_records_own_tasks)
{
	const pid_t pids[] = {100, 4711};
	struct replay *r = case_load("paranoid2");
	struct sampler_options o = {.hz = 99, .per_task = true, .pids = pids, .n_pids = 2};
	struct sampler *s = case_sampler(r, &o);
	/* Two threads on two harts, a dummy and a clock each; a ring for each hart. */
	ck_assert_uint_eq(s->streams.n_streams, 8);
	ck_assert_uint_eq(s->n_exec_rings, 0);
	ck_assert_uint_eq(s->n_rings, 2);
	ck_assert_uint_eq(s->ring[0].data_bytes, 512 << 10);
	const struct perf_event_attr *a = replay_attr(r, case_stream(s, 0, STREAM_SAMPLER)->fd);
	ck_assert(a->inherit && a->exclude_kernel);
	ck_assert(s->plan[0].user_only);
	ck_assert(!replay_attr(r, case_stream(s, 0, STREAM_SIDEBAND)->fd)->ksymbol);
	sampler_start(s);
	replay_run(r, 1, 101, 50000000);
	replay_run(r, 1, 200, 50000000); /* not ours */
	ck_assert_uint_eq(case_drain(s).n_samples, 4);
	case_end(r, s);
}

TEST(old_kernel_gives_inherited_events_no_group)
{
	const pid_t pids[] = {100};
	struct replay *r = case_load("debian13-user");
	struct sampler_options o = {.hz = 99, .per_task = true, .pids = pids, .n_pids = 1};
	struct sampler *s = case_sampler(r, &o);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CYCLES);
	ck_assert_int_eq(s->plan[1].n_siblings, 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SIBLING) + case_n_streams(s, STREAM_SWITCH), 0);
	ck_assert_uint_eq(s->lost[0][LOSS_SIBLING], 1);
	ck_assert_uint_eq(s->lost[1][LOSS_SIBLING], 1);
	ck_assert_ptr_nonnull(strstr(s->plan[1].reason, "6.13"));
	for (size_t i = 0; i < s->streams.n_streams; i++)
		ck_assert(!(s->streams.stream[i].sample_type & PERF_SAMPLE_READ));
	case_end(r, s);
}

TEST(dead_target_is_gone)
{
	const pid_t pids[] = {4711};
	struct sampler_options o = {.hz = 99, .per_task = true, .pids = pids, .n_pids = 1};
	struct event_error e = refused("x86-vm", &o, SAMPLER_GONE);
	ck_assert_ptr_nonnull(strstr(e.text, "ended"));
}

TEST(thread_that_ends_while_opened_is_passed_over)
{
	const pid_t pids[] = {100};
	struct sampler_options o = {.hz = 99, .per_task = true, .pids = pids, .n_pids = 1};
	struct replay *r = case_load("x86-vm");
	replay_fail_open(r, 3, ESRCH); /* behind the two of machine_read: the first dummy */
	struct sampler *s = case_sampler(r, &o);
	const unsigned n_opened = case_n_streams(s, STREAM_SIDEBAND);
	case_end(r, s);
	/* nor is it asked again on the other hart, where the kernel may wait for it */
	r = case_load("x86-vm");
	s = case_sampler(r, &o);
	ck_assert_uint_eq(n_opened + 2, case_n_streams(s, STREAM_SIDEBAND));
	case_end(r, s);
}

TEST(descriptor_limit_is_named)
{
	struct rlimit limit;
	struct event_error e = refused("two-descriptors", &plain, SAMPLER_FULL);
	ck_assert_ptr_nonnull(strstr(e.text, "RLIMIT_NOFILE"));
	getrlimit(RLIMIT_NOFILE, &limit);
	ck_assert_uint_eq(limit.rlim_cur, limit.rlim_max);
}

TEST(soft_descriptor_limit_is_raised_once)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max > 64 ? 64 : limit.rlim_max - 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (unsigned nth = 3; nth < 12; nth++) {
		struct replay *r = case_load("c910");
		setrlimit(RLIMIT_NOFILE, &limit);
		replay_fail_open(r, nth, EMFILE);
		case_end(r, case_sampler(r, &plain));
	}
}

TEST(rings_shrink_to_the_locked_memory_left)
{
	struct replay *r = case_load("x86-vm");
	replay_fail_map(r, 3, EPERM); /* behind the trials of two rungs on hart 0 */
	struct sampler *s = case_sampler(r, &plain);
	ck_assert_uint_eq(s->n_rings, 2);
	ck_assert_uint_lt(s->ring[0].data_bytes, s->ring[1].data_bytes);
	case_end(r, s);
}

TEST(no_locked_memory_is_a_named_refusal)
{
	struct replay *r = NULL;
	struct replay_error error = {""};
	struct sampler *s = NULL;
	struct event_error e = {""};
	ck_assert_int_eq(
		replay_parse("{\"source\":\"made\",\"verified\":\"no\",\"locked_kb\":4,\"files\":{"
			     "\"/sys/devices/system/cpu/online\":\"0\\n\"},\"rules\":["
			     "{\"type\":\"software\",\"per_us\":1000,\"fires\":true}]}",
			&r, &error),
		0);
	ck_assert_int_eq(sampler_new(replay_kernel(r), &plain, &s, &e), SAMPLER_REFUSED);
	ck_assert_ptr_nonnull(strstr(e.text, "mlock_kb"));
	case_end(r, s);
}

TEST(options_out_of_range_are_our_bug)
{
	static const struct sampler_options wrong[] = {
		{.hz = 0},
		{.hz = SAMPLER_HZ_MAX + 1},
		{.hz = 99, .stack_bytes = 12},
		{.hz = 99, .stack_bytes = SAMPLER_STACK_BYTES_MAX + 8},
		{.hz = 99, .per_task = true},
	};
	struct replay *r = case_load("x86-vm");
	struct sampler *s = NULL;
	struct event_error e = {""};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_int_eq(sampler_new(replay_kernel(r), &wrong[i], &s, &e), -EINVAL);
	ck_assert_ptr_null(s);
	case_end(r, NULL);
}

/* Every position at which an open can fail, on every kind of machine, with every kind of error:
 * whatever comes of it, nothing stays open. */
static const char *const machines[] = {
	"pc", "u74", "x60", "x60-mainline", "silent", "x86-vm", "debian13-user"};
static const int failures[] = {EMFILE, ENOMEM, EINVAL, EACCES, ESRCH, ENODEV};

static struct sampler_options options_for(int machine, const pid_t *pids)
{
	struct sampler_options o = plain;
	o.own_leader = "r22";
	if (strcmp(machines[machine], "debian13-user") == 0) {
		o.per_task = true;
		o.pids = pids;
		o.n_pids = 1;
	}
	return o;
}

TEST(no_failing_open_leaks, .times = sizeof(machines) / sizeof(machines[0]))
{
	const pid_t pids[] = {100};
	struct sampler_options o = options_for(_i, pids);
	for (size_t f = 0; f < sizeof(failures) / sizeof(failures[0]); f++) {
		unsigned n_opens = 1;
		for (unsigned nth = 1; nth <= n_opens && nth < 200; nth++) {
			struct replay *r = case_load(machines[_i]);
			struct sampler *s = NULL;
			struct event_error e = {""};
			replay_set_text(r, "/sys/devices/system/cpu/online", "0-1\n");
			replay_fail_open(r, nth, failures[f]);
			int outcome = sampler_new(replay_kernel(r), &o, &s, &e);
			n_opens = replay_n_opens(r);
			ck_assert((outcome == 0) == (s != NULL));
			ck_assert((outcome > 0) == (e.text[0] != '\0'));
			if (s)
				ck_assert_uint_eq(replay_n_maps(r), s->n_rings + s->n_exec_rings);
			case_end(r, s);
		}
	}
}

TEST(no_failing_ring_leaks, .times = sizeof(machines) / sizeof(machines[0]))
{
	const pid_t pids[] = {100};
	struct sampler_options o = options_for(_i, pids);
	for (unsigned nth = 1; nth < 12; nth++) {
		for (int error = 0; error < 2; error++) {
			struct replay *r = case_load(machines[_i]);
			struct sampler *s = NULL;
			struct event_error e = {""};
			replay_fail_map(r, nth, error ? EPERM : ENOMEM);
			int outcome = sampler_new(replay_kernel(r), &o, &s, &e);
			ck_assert((outcome == 0) == (s != NULL));
			case_end(r, s);
		}
	}
}

TEST(no_failing_ioctl_leaks, .times = sizeof(machines) / sizeof(machines[0]))
{
	const pid_t pids[] = {100};
	struct sampler_options o = options_for(_i, pids);
	for (unsigned nth = 1; nth < 60; nth++) {
		struct replay *r = case_load(machines[_i]);
		struct sampler *s = NULL;
		struct event_error e = {""};
		replay_set_text(r, "/sys/devices/system/cpu/online", "0-1\n");
		replay_fail_ioctl(r, nth, EIO);
		int outcome = sampler_new(replay_kernel(r), &o, &s, &e);
		ck_assert((outcome == 0) == (s != NULL));
		case_end(r, s);
	}
}
