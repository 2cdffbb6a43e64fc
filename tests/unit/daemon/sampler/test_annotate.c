/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What figures mean less than they seem to is said where it concerns the answer, and
 * nowhere else. */

#include "daemon/sampler/annotate.h"
#include "daemon/sampler/sampler.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

static struct annotation note[ANNOTATIONS_MAX];
static size_t n;

/* Of events that are counted on all harts. */
static void of_counts(const struct core_case *c, const char *events, uint64_t unexcluded)
{
	struct event_list l = core_case_events(c, events);
	const struct annotate_question q = {
		.cores = c->cores,
		.harts = c->machine.online,
		.events = &l,
		.unexcluded = unexcluded,
	};
	n = annotate(&q, note);
}

static const struct annotation *find(const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(note[i].says, text))
			return &note[i];
	return NULL;
}

static const struct annotation *must_say(const char *text)
{
	const struct annotation *found = find(text);
	ck_assert_msg(found != NULL, "'%s' is not said; the first of %zu is '%s'", text, n,
		n ? note[0].says : "");
	return found;
}

EACH_TEST(.seconds = 60);

TEST(cycles_on_x60_without_the_kernel_are_not_mode_filtered)
{
	struct core_case c = core_case_of("x60");
	of_counts(&c, "cpu-clock:u,cycles:u,branches:u", 0);
	ck_assert_int_eq(must_say("cycles on SpacemiT X60 are not mode-filtered")->event, 1);
	ck_assert_uint_eq(n, 1);
	core_case_end(&c);
}

TEST(l2_events_on_x60_ignore_exclude_kernel)
{
	struct core_case c = core_case_of("x60");
	of_counts(&c, "l2_miss:u,r15:u,rb9:u", 0);
	ck_assert_int_eq(
		must_say("l2_miss on SpacemiT X60: L2 events ignore exclude_kernel")->event, 0);
	ck_assert_int_eq(must_say("rb9 on SpacemiT X60: L2 events ignore")->event, 2);
	ck_assert_uint_eq(n, 2);
	core_case_end(&c);
}

TEST(what_counts_all_modes_as_asked_is_not_annotated)
{
	struct core_case c = core_case_of("x60");
	of_counts(&c, "cycles,instructions,l2_miss,u_mode_cycle,page-faults:u", 0);
	ck_assert_uint_eq(n, 0);
	core_case_end(&c);
}

TEST(another_core_has_no_such_errata)
{
	struct core_case c = core_case_of("c910");
	of_counts(&c, "cycles:u,instructions:u,rb9:u", 0);
	ck_assert_uint_eq(n, 0);
	core_case_end(&c);
}

TEST(user_only_is_an_exclusion_whatever_the_events_say)
{
	struct core_case c = core_case_of("x60");
	struct event_list l = core_case_events(&c, "cycles");
	const struct annotate_question q = {
		.cores = c.cores,
		.harts = c.machine.online,
		.events = &l,
		.user_only = true,
	};
	n = annotate(&q, note);
	must_say("not mode-filtered");
	core_case_end(&c);
}

TEST(refused_exclusion_is_said)
{
	struct core_case c = core_case_of("u74");
	of_counts(&c, "cpu-clock:u,cycles", 2);
	ck_assert_int_eq(must_say("cycles counts the kernel too")->event, 1);
	must_say("SiFive U74");
	ck_assert_uint_eq(n, 1);
	core_case_end(&c);
}

TEST(refused_exclusion_is_said_of_cores_that_nobody_knows_too)
{
	struct event_list l = {.n_events = 1};
	snprintf(l.event[0].name, sizeof(l.event[0].name), "cycles");
	struct annotate_question q = {.events = &l, .unexcluded = 1};
	ck_assert_uint_eq(annotate(&q, note), 0); /* on no hart */
	hart_set_add(&q.harts, 0);
	n = annotate(&q, note);
	must_say("cycles counts the kernel too");
}

static struct sampler *sampled(struct core_case *c, const char *events, bool user_only)
{
	struct event_list l = events ? core_case_events(c, events) : (struct event_list){0};
	const struct sampler_options o = {
		.hz = 99,
		.user_only = user_only,
		.events = events ? &l : NULL,
		.cores = c->cores,
	};
	struct sampler *s = NULL;
	struct event_error error = {""};
	ck_assert_msg(sampler_new(c->kernel, &o, &s, &error) == 0, "%s", error.text);
	n = annotate_sampler(s, 99, note);
	return s;
}

TEST(a_leader_of_one_mode_says_what_it_does_not_see)
{
	struct core_case c = core_case_of("x60");
	struct sampler *s = sampled(&c, NULL, false);
	ck_assert_int_eq(must_say("u_mode_cycle on SpacemiT X60 counts only user mode")->event, -1);
	const struct annotation *mix = must_say("IPC mixes modes");
	ck_assert_str_eq(s->events.event[mix->event].name, "cycles");
	ck_assert_uint_eq(n, 2);
	sampler_free(s);
	core_case_end(&c);
}

TEST(without_the_kernel_the_leader_misses_nothing_and_ipc_still_mixes)
{
	struct core_case c = core_case_of("x60-mainline");
	struct sampler *s = sampled(&c, NULL, true);
	ck_assert_ptr_null(find("other time"));
	must_say("IPC mixes modes");
	must_say("cycles on SpacemiT X60 are not mode-filtered");
	sampler_free(s);
	core_case_end(&c);
}

TEST(a_session_by_cycles_has_nothing_to_say)
{
	struct core_case c = core_case_of("c910");
	struct sampler *s = sampled(&c, NULL, false);
	ck_assert_uint_eq(n, 0);
	sampler_free(s);
	core_case_end(&c);
}

TEST(a_lower_rate_is_said_of_samples_that_came_at_it)
{
	struct core_case c = core_case_of("c910");
	struct sampler *s = sampled(&c, NULL, false);
	s->effort.in_force = (struct sampler_effort){.rate_part = 8, .hz = 12, .no_cut = true};
	n = annotate_sampler(s, 12, note);
	must_say("only one in 8 samples is taken");
	/* somebody asked for 499 */
	n = annotate_sampler(s, 499, note);
	ck_assert_ptr_null(find("only one in 8"));
	must_say("to limit overhead, counts are not cut at switches");
	s->effort.in_force.no_cut = false;
	ck_assert_uint_eq(annotate_sampler(s, 499, note), 0);
	sampler_free(s);
	core_case_end(&c);
}

TEST(cores_that_differ_are_told_apart)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct sampler *s = sampled(&c, NULL, false);
	const struct annotation *big = must_say("harts 0: Big, rung b, led by own_cycles");
	ck_assert(hart_set_has(&big->harts, 0) && !hart_set_has(&big->harts, 1));
	must_say("harts 1: Little, rung b, led by own_cycles");
	sampler_free(s);
	core_case_end(&c);
	made_folder_remove(&folder);
}

TEST(harts_of_one_kind_that_are_led_by_two_are_told_without_a_rung)
{
	struct core_case c = core_case_of("k3-mixed");
	struct sampler *s = sampled(&c, NULL, false);
	must_say("harts 0-7: SpacemiT X100, rung a, led by cycles");
	must_say("harts 8-15: SpacemiT A100, rung b, led by u_mode_cycle");
	s->plan[3].rung = RUNG_CLOCK;
	n = annotate_sampler(s, 99, note);
	ck_assert_ptr_null(find("rung a"));
	must_say("harts 0-7: SpacemiT X100");
	must_say("harts 8-15: SpacemiT A100, rung b, led by u_mode_cycle");
	sampler_free(s);
	core_case_end(&c);
}

TEST(what_stands_in_for_a_generic_event_is_named)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct sampler *s = sampled(&c, "L1-dcache-loads", false);
	must_say("L1-dcache-loads on harts 0 (Big) is loads (r55)");
	must_say("L1-dcache-loads on harts 1 (Little) is loads (r66)");
	sampler_free(s);
	core_case_end(&c);
	made_folder_remove(&folder);
}

TEST(more_than_there_is_room_for_is_left_out)
{
	struct core_case c = core_case_of("x60");
	char events[1024] = "rb8:u";
	for (int i = 0; i < 40; i++)
		strcat(events, ",rb8:u");
	of_counts(&c, events, 0);
	ck_assert_uint_eq(n, ANNOTATIONS_MAX);
	core_case_end(&c);
}

TEST(harts_that_measured_nothing_are_not_annotated)
{
	struct core_case c = core_case_of("x60");
	struct event_list l = core_case_events(&c, "cycles:u");
	const struct annotate_question q = {.cores = c.cores, .events = &l};
	ck_assert_uint_eq(annotate(&q, note), 0);
	core_case_end(&c);
}

/* --- why a better rung was not taken ---------------------------------------------------------- */

/* Of a session whose harts 0 and 1 have the one plan, and 2 another. */
static void of_plans(const struct core_case *c, const struct plan *two, const struct plan *third)
{
	static struct plan plan[HARTS_MAX];
	struct event_list l = core_case_events(c, "cpu-clock");
	plan[0] = plan[1] = *two;
	plan[2] = *third;
	const struct annotate_question q = {
		.cores = c->cores, .harts = c->machine.online, .events = &l, .plan = plan};
	memset(&plan[3], 0, sizeof(plan[3]));
	n = annotate(&q, note);
}

TEST(rung_lost_to_others_is_said_with_its_reason_and_harts)
{
	struct core_case c = core_case_of("c910");
	struct plan good = core_case_plan(&c, 0, false);
	replay_take_counters(c.replay, 100);
	struct plan lost = core_case_plan(&c, 0, false);
	replay_take_counters(c.replay, 0);
	ck_assert_int_eq(good.rung, RUNG_CYCLES);
	ck_assert_int_eq(lost.rung, RUNG_CLOCK);
	of_plans(&c, &lost, &good);
	const struct annotation *said = must_say("rung a not taken on harts 0-1: cycles opens but");
	ck_assert_ptr_nonnull(strstr(said->says, "another profiler"));
	ck_assert(hart_set_has(&said->harts, 0) && !hart_set_has(&said->harts, 2));
	of_plans(&c, &good, &good);
	ck_assert_ptr_null(find("not taken"));
	core_case_end(&c);
}

TEST(rung_that_the_core_cannot_have_is_not_said_to_be_missing)
{
	static const char *const machines[] = {"u74", "x60", "x60-mainline"};
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct core_case c = core_case_of(machines[i]);
		struct plan p = core_case_plan(&c, 0, false);
		of_plans(&c, &p, &p);
		ck_assert_msg(!find("not taken"), "%s", machines[i]);
		core_case_end(&c);
	}
}
