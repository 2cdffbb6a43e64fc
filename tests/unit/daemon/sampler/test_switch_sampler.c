/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/sampler/switch.c: what cuts counts at switches, on a replayed kernel whose
 * BPF is a table that remembers what it was told to read
 */

#include <errno.h>

#include "daemon/kernel/switch_bpf.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

#define HARTS 2
#define MACHINE                                                                                    \
	"{\"source\":\"made up\",\"verified\":\"no\",\"files\":{"                                  \
	"\"/sys/devices/system/cpu/possible\":\"0-1\\n\","                                         \
	"\"/sys/devices/system/cpu/online\":\"0-1\\n\","                                           \
	"\"/proc/sys/kernel/perf_event_paranoid\":\"%s\\n\","                                      \
	"\"/proc/sys/kernel/perf_event_max_sample_rate\":\"100000\\n\","                           \
	"\"/proc/sys/kernel/perf_event_mlock_kb\":\"516\\n\","                                     \
	"\"/proc/sys/kernel/perf_event_max_stack\":\"127\\n\","                                    \
	"\"/proc/sys/kernel/osrelease\":\"6.12.0\\n\","                                            \
	"\"/proc/sys/kernel/arch\":\"riscv64\\n\",\"/proc/5/task/5/comm\":\"x\\n\"},\"rules\":[%s" \
	"{\"type\":\"hardware\",\"sampling\":true,\"errno\":\"EOPNOTSUPP\"},"                      \
	"{\"type\":\"hardware\",\"config\":0,\"per_us\":1000},"                                    \
	"{\"type\":\"hardware\",\"config\":1,\"per_us\":700},"                                     \
	"{\"type\":\"software\",\"config\":0,\"per_us\":1000,\"fires\":true},"                     \
	"{\"type\":\"software\",\"config\":2,\"per_us\":1,\"fires\":true},"                        \
	"{\"type\":\"software\",\"config\":3,\"per_us\":0.001,\"fires\":true},"                    \
	"{\"type\":\"software\",\"config\":9,\"per_us\":0},"                                       \
	"{\"type\":\"software\",\"config\":10,\"per_us\":0}]}"
#define NO_SIBLING "{\"type\":\"software\",\"config\":3,\"errno\":\"EINVAL\"},"
#define NO_SAMPLING_SIBLING                                                                        \
	"{\"type\":\"software\",\"config\":3,\"sampling\":true,\"errno\":\"EINVAL\"},"
#define NO_OUTPUT "{\"type\":\"software\",\"config\":10,\"errno\":\"EINVAL\"},"

/* What stands in for the program. */
struct switch_bpf {
	struct switch_group group[HARTS][SWITCH_GROUPS_MAX];
	int n_groups[HARTS];
};

static struct replay *machine;
static struct kernel kernel;
static unsigned n_new, n_free, n_forgotten;
static int new_result, new_error, watch_result;
static enum switch_way new_way; /* of the program that was loaded last */

static int fake_new(
	void *u, enum switch_way way, int n_harts, struct switch_bpf **ret_bpf, int *ret_error)
{
	(void)u;
	new_way = way;
	ck_assert_int_eq(n_harts, HARTS);
	n_new++;
	if (new_result == SWITCH_BPF_REFUSED)
		*ret_error = new_error;
	if (new_result)
		return new_result;
	*ret_bpf = calloc(1, sizeof(**ret_bpf));
	return 0;
}

static int fake_watch(void *u, struct switch_bpf *b, const struct switch_group *g)
{
	(void)u;
	if (watch_result)
		return watch_result;
	ck_assert_int_lt(b->n_groups[g->hart], SWITCH_GROUPS_MAX);
	b->group[g->hart][b->n_groups[g->hart]++] = *g;
	return 0;
}

static int fake_watched(void *u, const struct switch_bpf *b, int hart)
{
	(void)u;
	return b->n_groups[hart];
}

static void fake_forget(void *u, struct switch_bpf *b, int hart, int n_kept)
{
	(void)u;
	/* what is watched must still be open */
	for (int i = n_kept; i < b->n_groups[hart]; i++)
		ck_assert_ptr_nonnull(replay_attr(machine, b->group[hart][i].output_fd));
	b->n_groups[hart] = n_kept;
	n_forgotten++;
}

static void fake_free(void *u, struct switch_bpf *b)
{
	(void)u;
	for (int hart = 0; hart < HARTS; hart++)
		ck_assert_int_eq(b->n_groups[hart], 0);
	free(b);
	n_free++;
}

static void make(const char *paranoid, const char *rules)
{
	char json[4096];
	struct replay_error error = {""};
	snprintf(json, sizeof(json), MACHINE, paranoid, rules);
	ck_assert_msg(replay_parse(json, &machine, &error) == 0, "%s", error.text);
	kernel = *replay_kernel(machine);
	kernel.switch_new = fake_new;
	kernel.switch_watch = fake_watch;
	kernel.switch_watched = fake_watched;
	kernel.switch_forget = fake_forget;
	kernel.switch_free = fake_free;
	n_new = n_free = n_forgotten = 0;
	new_result = watch_result = 0;
}

static struct sampler *opened(enum sampler_switches switches, const struct event_list *events)
{
	struct sampler_options o = {.hz = 99, .switches = switches, .events = events};
	struct sampler *s = NULL;
	struct event_error error = {""};
	int r = sampler_new(&kernel, &o, &s, &error);
	ck_assert_msg(r == 0, "outcome %d: %s", r, error.text);
	return s;
}

static void end(struct sampler *s)
{
	unsigned n_loaded =
		!!s->programs.program[SWITCH_RECORDS] + !!s->programs.program[SWITCH_SUMS];
	case_end(machine, s);
	ck_assert_uint_eq(n_free, n_loaded);
}

TEST(the_sibling_is_enough)
{
	make("0", "");
	struct sampler *s = opened(SAMPLER_SWITCHES_BEST, NULL);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH), HARTS);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_BPF), 0);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "sibling");
	ck_assert_uint_eq(n_new, 0);
	end(s);
}

/* The probe may see it refused, or only the sampler, who wants it to fire. */
TEST(bpf_is_taken_where_the_sibling_does_not_open, .times = 2)
{
	make("0", _i ? NO_SIBLING : NO_SAMPLING_SIBLING);
	struct sampler *s = opened(SAMPLER_SWITCHES_BEST, NULL);
	ck_assert_int_eq(s->plan[0].rung, RUNG_CLOCK_LEADER);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH), 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_BPF), HARTS);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "bpf");
	ck_assert_uint_eq(n_new, 1);
	end(s);
}

TEST(whole_groups_are_read_in_the_order_of_their_members)
{
	make("0", NO_SIBLING);
	struct sampler *s = opened(SAMPLER_SWITCHES_BEST, NULL);
	for (int hart = 0; hart < HARTS; hart++) {
		ck_assert_int_eq(s->programs.program[SWITCH_RECORDS]->n_groups[hart], 1);
		const struct switch_group *g = &s->programs.program[SWITCH_RECORDS]->group[hart][0];
		const struct stream *output = case_stream(s, hart, STREAM_SWITCH_BPF);
		ck_assert_int_eq(g->n_members, 3);
		ck_assert_int_eq(g->output_fd, output->fd);
		ck_assert_uint_eq(g->id[0], output->leader);
		for (int i = 0; i < g->n_members; i++) {
			const struct stream *t = stream_table_find(&s->streams, g->id[i]);
			ck_assert_ptr_nonnull(t);
			ck_assert_int_eq(t->fd, g->fd[i]);
			ck_assert_int_eq(t->hart, hart);
			ck_assert_int_eq(t->event, i);
		}
	}
	end(s);
}

TEST(its_output_goes_into_the_harts_ring_as_raw_samples)
{
	make("0", NO_SIBLING);
	struct sampler *s = opened(SAMPLER_SWITCHES_BEST, NULL);
	const struct stream *t = case_stream(s, 1, STREAM_SWITCH_BPF);
	const struct perf_event_attr *a = replay_attr(machine, t->fd);
	ck_assert_uint_eq(a->type, PERF_TYPE_SOFTWARE);
	ck_assert_uint_eq(a->config, PERF_COUNT_SW_BPF_OUTPUT);
	ck_assert_uint_eq(t->sample_type, STREAM_SAMPLE_ID | PERF_SAMPLE_RAW);
	ck_assert(a->disabled && a->use_clockid && !a->inherit);
	ck_assert_int_eq(t->event, -1);
	ck_assert_uint_eq(s->n_rings, HARTS);
	end(s);
}

TEST(a_group_that_was_asked_for_is_read_too)
{
	make("0", NO_SIBLING);
	struct event_list events =
		case_events(machine, "{cpu-clock,page-faults},{cpu-clock,cycles},cpu-clock");
	struct sampler *s = opened(SAMPLER_SWITCHES_BEST, &events);
	ck_assert_int_eq(s->programs.program[SWITCH_RECORDS]->n_groups[0], 2);
	ck_assert_int_eq(s->programs.program[SWITCH_RECORDS]->group[0][0].n_members, 2);
	ck_assert_uint_ne(s->programs.program[SWITCH_RECORDS]->group[0][0].id[0],
		s->programs.program[SWITCH_RECORDS]->group[0][1].id[0]);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_BPF), 2 * HARTS);
	end(s);
}

TEST(events_that_ride_with_nobody_need_no_cut)
{
	make("0", "");
	struct event_list events = case_events(machine, "cpu-clock,page-faults");
	struct sampler *s = opened(SAMPLER_SWITCHES_BPF, &events);
	ck_assert_uint_eq(n_new, 0);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "");
	end(s);
}

TEST(either_can_be_asked_for_alone_or_both_or_none, .times = 8)
{
	static const struct {
		enum sampler_switches wish;
		unsigned siblings, outputs, counters;
		const char *name;
	} rows[] = {
		{SAMPLER_SWITCHES_SIBLING, HARTS, 0, 0, "sibling"},
		{SAMPLER_SWITCHES_BPF, 0, HARTS, 0, "bpf"},
		{SAMPLER_SWITCHES_BOTH, HARTS, HARTS, 0, "sibling, bpf"},
		{SAMPLER_SWITCHES_NONE, 0, 0, HARTS, "counted"},
	};
	make("0", "");
	struct event_list events = case_events(machine, "{cpu-clock,page-faults}");
	struct sampler *s = opened(rows[_i / 2].wish, _i % 2 ? &events : NULL);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH), rows[_i / 2].siblings);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_BPF), rows[_i / 2].outputs);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_COUNT), rows[_i / 2].counters);
	const struct stream *leader = case_stream(s, 0, STREAM_SAMPLER);
	ck_assert_int_eq(leader->uncut, rows[_i / 2].counters > 0);
	ck_assert_str_eq(cut_name(sampler_cut(s)), rows[_i / 2].name);
	end(s);
}

TEST(only_the_sibling_means_no_bpf_in_its_place)
{
	make("0", NO_SAMPLING_SIBLING);
	struct sampler *s = opened(SAMPLER_SWITCHES_SIBLING, NULL);
	ck_assert_uint_eq(n_new, 0);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "counted");
	end(s);
}

TEST(switches_are_counted_by_the_last_member_without_a_period_and_in_the_kernel)
{
	make("0", "");
	struct event_list events = case_events(machine, "{cpu-clock:u,page-faults:u}");
	struct sampler *s = opened(SAMPLER_SWITCHES_NONE, &events);
	const struct stream *t = case_stream(s, 1, STREAM_SWITCH_COUNT);
	const struct stream *leader = case_stream(s, 1, STREAM_SAMPLER);
	const struct perf_event_attr *a = replay_attr(machine, t->fd);
	ck_assert_uint_eq(a->type, PERF_TYPE_SOFTWARE);
	ck_assert_uint_eq(a->config, PERF_COUNT_SW_CONTEXT_SWITCHES);
	ck_assert_uint_eq(a->sample_period, 0);
	ck_assert(!a->exclude_kernel && !a->exclude_user && !a->exclude_hv);
	ck_assert(!a->disabled && !a->inherit);
	ck_assert_uint_eq(t->leader, leader->id);
	ck_assert_uint_gt(t->id, case_stream(s, 1, STREAM_SIBLING)->id);
	ck_assert_int_eq(t->event, -1);
	ck_assert(!leader->timed);
	end(s);
}

TEST(a_counter_that_does_not_open_leaves_nothing_to_charge_by)
{
	make("0", NO_SIBLING);
	struct sampler *s = opened(SAMPLER_SWITCHES_NONE, NULL);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_COUNT), 0);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "none");
	ck_assert(case_stream(s, 0, STREAM_SAMPLER)->uncut);
	end(s);
}

TEST(a_refusal_is_remembered_and_the_session_goes_on)
{
	make("0", NO_SIBLING);
	new_result = SWITCH_BPF_REFUSED;
	new_error = EPERM;
	struct sampler *s = opened(SAMPLER_SWITCHES_BEST, NULL);
	ck_assert_uint_eq(n_new, 1);
	ck_assert_int_eq(s->programs.error[SWITCH_RECORDS], EPERM);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SIBLING), 2 * HARTS);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "none");
	end(s);
}

TEST(without_bpf_built_in_the_session_goes_on)
{
	make("0", NO_SIBLING);
	kernel.switch_new = NULL;
	struct sampler *s = opened(SAMPLER_SWITCHES_BEST, NULL);
	ck_assert_int_eq(s->programs.error[SWITCH_RECORDS], ENOTSUP);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "none");
	end(s);
}

TEST(an_output_that_does_not_open_leaves_the_group_uncut)
{
	make("0", NO_SIBLING NO_OUTPUT);
	struct sampler *s = opened(SAMPLER_SWITCHES_BEST, NULL);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_BPF), 0);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "none");
	end(s);
}

TEST(what_cannot_be_watched_is_closed_again, .times = 2)
{
	make("0", NO_SIBLING);
	watch_result = _i ? SWITCH_BPF_FULL : -EINVAL;
	struct sampler *s = opened(SAMPLER_SWITCHES_BEST, NULL);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_BPF), 0);
	ck_assert_uint_eq(replay_n_events(machine), s->streams.n_streams);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "none");
	end(s);
}

TEST(without_memory_for_the_program_there_is_no_session)
{
	struct sampler *s = NULL;
	struct event_error error = {""};
	struct sampler_options o = {.hz = 99};
	make("0", NO_SIBLING);
	new_result = -ENOMEM;
	ck_assert_int_eq(sampler_new(&kernel, &o, &s, &error), -ENOMEM);
	ck_assert_ptr_null(s);
	ck_assert_uint_eq(replay_n_events(machine), 0);
	replay_free(machine);
}

TEST(a_session_per_task_loads_nothing)
{
	static const pid_t pids[] = {5};
	struct sampler *s = NULL;
	struct event_error error = {""};
	make("0", NO_SIBLING);
	struct sampler_options o = {
		.hz = 99,
		.switches = SAMPLER_SWITCHES_BPF,
		.per_task = true,
		.pids = pids,
		.n_pids = 1,
	};
	ck_assert_int_eq(sampler_new(&kernel, &o, &s, &error), 0);
	ck_assert_uint_eq(n_new, 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_COUNT), 0);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "");
	end(s);
}

TEST(a_hart_that_goes_and_comes_is_forgotten_and_read_anew)
{
	make("0", NO_SIBLING);
	struct sampler *s = opened(SAMPLER_SWITCHES_BEST, NULL);
	ck_assert_int_eq(sampler_start(s), 0);
	n_forgotten = 0;
	replay_set_text(machine, "/sys/devices/system/cpu/online", "0\n");
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_uint_eq(n_forgotten, 1);
	ck_assert_int_eq(s->programs.program[SWITCH_RECORDS]->n_groups[1], 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_BPF), 1);
	ck_assert_uint_eq(s->plan[1].cut, 0);

	replay_set_text(machine, "/sys/devices/system/cpu/online", "0-1\n");
	ck_assert_int_eq(sampler_tick(s), 0);
	ck_assert_int_eq(s->programs.program[SWITCH_RECORDS]->n_groups[1], 1);
	ck_assert_uint_eq(n_new, 1);
	ck_assert_uint_eq(s->plan[1].cut, CUT_BPF);
	end(s);
}

/* Of a session that takes only some tasks. */
static struct sampler *opened_for_some(enum sampler_switches switches)
{
	struct sampler_options o = {.hz = 99, .switches = switches, .some_tasks = true};
	struct sampler *s = NULL;
	struct event_error error = {""};
	ck_assert_int_eq(sampler_new(&kernel, &o, &s, &error), 0);
	return s;
}

TEST(sums_are_of_whole_groups_and_their_samples_need_no_values)
{
	make("0", "");
	struct sampler *s = opened(SAMPLER_SWITCHES_SUMS, NULL);
	ck_assert_int_eq(new_way, SWITCH_SUMS);
	ck_assert_uint_eq(n_new, 1);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_SUMS), HARTS);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH), 0);
	ck_assert(case_stream(s, 0, STREAM_SAMPLER)->summed);
	ck_assert(case_stream(s, 0, STREAM_SAMPLER)->timed);
	const struct switch_group *g = &s->programs.program[SWITCH_SUMS]->group[1][0];
	ck_assert_int_eq(g->n_members, 3);
	for (int i = 0; i < g->n_members; i++)
		ck_assert_int_eq(g->event[i], i);
	ck_assert(s->plan[1].summed);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "bpf");
	end(s);
}

/* Which tasks a session takes is known only here. */
TEST(a_session_of_some_tasks_gets_a_record_at_each_switch_instead)
{
	make("0", "");
	struct sampler *s = opened_for_some(SAMPLER_SWITCHES_SUMS);
	ck_assert_int_eq(new_way, SWITCH_RECORDS);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_BPF), HARTS);
	ck_assert(!s->plan[0].summed && !case_stream(s, 0, STREAM_SAMPLER)->summed);
	ck_assert_int_eq(sampler_prefer_sums(s, 0, true), 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_BPF), HARTS);
	end(s);
}

TEST(a_hart_that_prefers_sums_changes_to_them_and_back)
{
	make("0", "");
	struct sampler *s = opened(SAMPLER_SWITCHES_CHEAPEST, NULL);
	ck_assert_int_eq(sampler_start(s), 0);
	ck_assert_uint_eq(n_new, 0);
	ck_assert_int_eq(sampler_prefer_sums(s, 1, true), 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH), 1);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_SUMS), 1);
	ck_assert_int_eq(case_stream(s, 1, STREAM_SWITCH_SUMS)->hart, 1);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "sibling, bpf");
	ck_assert_int_eq(sampler_prefer_sums(s, 1, false), 0);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH), HARTS);
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH_SUMS), 0);
	ck_assert(!s->plan[1].summed);
	ck_assert_uint_eq(n_new, 1);
	end(s);
}

TEST(sums_that_are_refused_leave_the_sibling, .times = 2)
{
	make("0", "");
	if (_i)
		watch_result = -EINVAL;
	else
		new_result = SWITCH_BPF_REFUSED;
	new_error = EPERM;
	struct sampler *s = opened(SAMPLER_SWITCHES_CHEAPEST, NULL);
	ck_assert(sampler_may_sum(s));
	ck_assert_int_eq(sampler_prefer_sums(s, 0, true), 0);
	ck_assert_int_eq(sampler_prefer_sums(s, 1, true), 0);
	ck_assert_uint_eq(n_new, 1);
	ck_assert(!sampler_may_sum(s));
	ck_assert_uint_eq(case_n_streams(s, STREAM_SWITCH), HARTS);
	ck_assert_str_eq(cut_name(sampler_cut(s)), "sibling");
	end(s);
}

TEST(names_of_ways_parse_and_others_do_not)
{
	static const char *const good[] = {"best", "sibling", "bpf", "none", "sums", "cheapest"};
	static const char *const bad[] = {"", "BPF", "both", "sibling,bpf", "bpf ", "1"};
	enum sampler_switches w;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		ck_assert_int_eq(sampler_switches_parse(good[i], &w), 0);
		ck_assert_int_eq(w, (int)i);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(sampler_switches_parse(bad[i], &w), -EINVAL);
	ck_assert_int_eq(w, SAMPLER_SWITCHES_CHEAPEST);
}

TEST(what_cuts_has_a_name_whatever_it_is)
{
	ck_assert_str_eq(cut_name(0), "");
	ck_assert_str_eq(cut_name(CUT_SIBLING | CUT_NONE), "sibling, none");
	ck_assert_str_eq(cut_name(CUT_SIBLING | CUT_BPF | CUT_NONE), "sibling, bpf, none");
	ck_assert_str_eq(cut_name(CUT_COUNT), "counted");
	ck_assert_str_eq(cut_name(CUTS - 1), "sibling, bpf, counted, none");
	ck_assert_str_eq(cut_name(CUTS | CUT_BPF), "bpf"); /* out of a file of another version */
}
