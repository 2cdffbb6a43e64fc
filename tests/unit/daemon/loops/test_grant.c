/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What threads are given to count in regions: lists of events that may be, and a kernel that
 * refuses some of them.
 */
#include <errno.h>

#include "daemon/loops/grant.h"
#include "daemon/pmu/cores.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"
#include "tests/unit/tree.h"

#define THREAD 4711

struct fake {
	struct tree tree;
	struct perf_event_attr attr[16];
	int group[16];
	unsigned n_opens, n_open;
	int refusal[16]; /* of each open; 0: it is well */
};

static int fake_open(
	void *u, struct perf_event_attr *attr, pid_t pid, int hart, int group, unsigned long flags)
{
	struct fake *f = u;
	unsigned n = f->n_opens++;
	ck_assert_uint_lt(n, 16);
	ck_assert_int_eq(pid, THREAD);
	ck_assert_int_eq(hart, -1);
	ck_assert_uint_eq(flags, PERF_FLAG_FD_CLOEXEC);
	f->attr[n] = *attr;
	f->group[n] = group;
	if (f->refusal[n])
		return f->refusal[n];
	f->n_open++;
	return 100 + (int)n;
}

static void fake_close(void *u, int fd)
{
	struct fake *f = u;
	ck_assert_int_ge(fd, 100);
	f->n_open--;
}

static struct fake fake;
static struct kernel kernel;
static const struct machine machine = {.n_harts = 1};

static void begin(void)
{
	fake = (struct fake){.n_opens = 0};
	kernel = (struct kernel){
		.event_open = fake_open,
		.event_close = fake_close,
		.read_text = tree_read_text,
		.list = tree_list,
		.userdata = &fake,
	};
}

static void end(void)
{
	ck_assert_uint_eq(fake.n_open, 0);
}

EACH_TEST(.begin = begin, .end = end);

static struct grants made(const char *events)
{
	struct grants g;
	struct event_error error = {""};
	ck_assert_msg(
		grants_make(&kernel, &machine, NULL, events, &g, &error) == 0, "%s", error.text);
	return g;
}

static void refused(const char *events, const char *says)
{
	struct grants g = {.n_events = 7};
	struct event_error error = {""};
	ck_assert_int_eq(grants_make(&kernel, &machine, NULL, events, &g, &error), GRANTS_WRONG);
	ck_assert_uint_eq(g.n_events, 7);
	ck_assert_msg(strstr(error.text, says), "%s", error.text);
}

TEST(each_event_is_a_word_of_its_name)
{
	struct grants g = made("L1-dcache-load-misses,LLC-load-misses,instructions");
	struct grant_set set;
	ck_assert_uint_eq(g.n_events, 3);
	ck_assert_str_eq(g.names.name[1], "LLC-load-misses");
	ck_assert_str_eq(g.names.name[3], "");
	grants_open(&g, THREAD, &set);
	ck_assert_uint_eq(set.n, 3);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(set.event[i], i + 1);
		ck_assert_int_eq(set.fd[i], 100 + (int)i);
		ck_assert_uint_eq(g.event[i].n_granted, 1);
		ck_assert(fake.attr[i].exclude_kernel && fake.attr[i].exclude_hv);
		ck_assert(!fake.attr[i].disabled && !fake.attr[i].inherit);
		ck_assert_uint_eq(fake.attr[i].sample_period, 0);
		ck_assert_int_eq(fake.group[i], i ? 100 : -1); /* the first leads */
	}
	grants_close(&g, &set);
}

TEST(software_events_count_what_the_kernel_does_for_the_thread)
{
	struct grants g = made("task-clock,context-switches");
	struct grant_set set;
	grants_open(&g, THREAD, &set);
	ck_assert(!fake.attr[0].exclude_kernel && !fake.attr[1].exclude_kernel);
	ck_assert(g.names.is_time[0] && !g.names.is_time[1]);
	grants_close(&g, &set);
}

TEST(what_is_refused_is_told_and_the_others_are_given)
{
	struct grants g = made("LLC-load-misses,instructions");
	struct grant_set set;
	fake.refusal[0] = -EACCES;
	grants_open(&g, THREAD, &set);
	ck_assert_uint_eq(set.n, 1);
	ck_assert_uint_eq(set.event[0], 2);
	ck_assert_uint_eq(g.event[0].n_refused, 1);
	ck_assert_str_ne(g.event[0].trouble, "");
	ck_assert_str_eq(g.event[1].trouble, "");
	grants_close(&g, &set);
	grants_open(&g, THREAD, &set); /* rights may be had later */
	ck_assert_uint_eq(set.n, 2);
	grants_close(&g, &set);
}

TEST(what_the_group_does_not_take_is_beside_it)
{
	struct grants g = made("LLC-load-misses,instructions,page-faults");
	struct grant_set set;
	fake.refusal[1] = -EINVAL;
	grants_open(&g, THREAD, &set);
	ck_assert_uint_eq(set.n, 3);
	ck_assert_int_eq(fake.group[1], 100);
	ck_assert_int_eq(fake.group[2], -1);
	ck_assert_int_eq(fake.group[3], 100);
	ck_assert_str_eq(g.event[1].trouble, "");
	grants_close(&g, &set);
}

TEST(what_the_machine_lacks_is_not_asked_for_again)
{
	struct grants g = made("LLC-load-misses,instructions");
	struct grant_set set;
	fake.refusal[0] = -ENOENT;
	grants_open(&g, THREAD, &set);
	grants_close(&g, &set);
	grants_open(&g, THREAD, &set);
	ck_assert_uint_eq(set.n, 1);
	ck_assert_uint_eq(set.event[0], 2);
	ck_assert_uint_eq(fake.n_opens, 3);
	ck_assert_uint_eq(g.event[0].n_refused, 2);
	grants_close(&g, &set);
}

TEST(a_thread_that_has_ended_is_no_trouble)
{
	struct grants g = made("instructions");
	struct grant_set set;
	fake.refusal[0] = -ESRCH;
	grants_open(&g, THREAD, &set);
	ck_assert_uint_eq(set.n, 0);
	ck_assert_uint_eq(g.event[0].n_refused, 0);
	ck_assert_str_eq(g.event[0].trouble, "");
}

TEST(none_is_nothing)
{
	struct grants g = made("none");
	struct grant_set set;
	grants_open(&g, THREAD, &set);
	ck_assert_uint_eq(set.n, 0);
	ck_assert_uint_eq(fake.n_opens, 0);
}

TEST(lists_that_cannot_be_are_refused)
{
	refused("", "");
	refused("instrutcions", "instructions");
	refused("cycles,,instructions", "");
	refused("cycles,instructions,branches,page-faults,task-clock", "four events");
	refused("instructions:k", "user code");
	refused("r00000000000000000000000000000000000000000000000000000000000000000001", "");
}

/* --- lines from memory ------------------------------------------------------------------------ */

static struct grants made_on(const struct core_case *c, const char *events)
{
	struct grants g;
	struct event_error error = {""};
	int r = grants_make(c->kernel, &c->machine, c->cores, events, &g, &error);
	ck_assert_msg(r == 0, "%s", error.text);
	return g;
}

#define DEFAULT_EVENTS "L1-dcache-load-misses,LLC-load-misses,instructions"

/* A Zen 4: the kernel maps no LLC-load-misses; the core counts lines by two events. */
TEST(misses_that_the_kernel_does_not_map_become_the_cores_own_events)
{
	struct core_case c = core_case_of("zen4");
	struct grants g = made_on(&c, DEFAULT_EVENTS);
	struct grant_set set;
	ck_assert_uint_eq(g.n_events, 4);
	ck_assert_str_eq(g.names.name[0], "L1-dcache-load-misses");
	ck_assert_str_eq(g.names.name[1], "ls_any_fills_from_sys.dram_io_all");
	ck_assert_str_eq(g.names.name[2], "l2_pf_miss_l2_l3.into_l2");
	ck_assert_str_eq(g.names.name[3], "instructions");
	grants_open(&g, 100, &set);
	ck_assert_uint_eq(set.n, 3); /* this machine does not count the first */
	const struct perf_event_attr *attr = replay_attr(c.replay, set.fd[0]);
	ck_assert_uint_eq(attr->type, PERF_TYPE_RAW);
	ck_assert_uint_eq(attr->config,
		platform_event_find(cores_platform(c.cores, 0), "ls_any_fills_from_sys.dram_io_all")
			->code);
	ck_assert(attr->exclude_kernel);
	grants_close(&g, &set);
	core_case_end(&c);
}

/* Two more would be five; and nothing that the core lacks is put there. */
TEST(misses_stay_where_the_cores_events_have_no_room_or_do_not_count)
{
	struct core_case zen = core_case_of("zen4"), pc = core_case_of("pc"),
			 hybrid = core_case_of("alderlake");
	struct grants g = made_on(&zen, DEFAULT_EVENTS ",cycles");
	ck_assert_uint_eq(g.n_events, 4);
	ck_assert_str_eq(g.names.name[1], "LLC-load-misses");
	g = made_on(&zen, "instructions,cycles");
	ck_assert_uint_eq(g.n_events, 2);
	g = made_on(&pc, DEFAULT_EVENTS);
	ck_assert_str_eq(g.names.name[1], "LLC-load-misses");
	g = made_on(&hybrid, DEFAULT_EVENTS); /* of two kinds, a formula would be of one */
	ck_assert_str_eq(g.names.name[1], "LLC-load-misses");
	core_case_end(&zen);
	core_case_end(&pc);
	core_case_end(&hybrid);
}
