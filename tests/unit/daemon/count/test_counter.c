/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A kernel whose descriptors are numbers, which refuses what the test tells it to refuse and which
 * knows at the end whether a descriptor was left open.
 */
#include <errno.h>
#include <unistd.h>

#include "daemon/count/counter.h"
#include "tests/unit/test.h"
#include "tests/unit/tree.h"

#define FDS_MAX 512

struct opened {
	struct perf_event_attr attr;
	pid_t pid;
	int hart, group;
	bool open;
	int enabled;
	uint64_t count[3]; /* value, enabled, running */
};

struct fake {
	struct tree tree;
	struct opened fd[FDS_MAX];
	int n_fds, n_open, limit; /* descriptors; limit 0: FDS_MAX */
	/* What an open answers; NULL: all is well. */
	int (*refuse)(const struct fake *f, const struct opened *asked);
	int read_error;
	int dead_fd; /* reads as end of file; 0: none */
};

static int fake_open(
	void *u, struct perf_event_attr *attr, pid_t pid, int hart, int group, unsigned long flags)
{
	struct fake *f = u;
	ck_assert_uint_eq(flags, PERF_FLAG_FD_CLOEXEC);
	struct opened asked = {
		.attr = *attr, .pid = pid, .hart = hart, .group = group, .open = true};
	int r = f->refuse ? f->refuse(f, &asked) : 0;
	if (r < 0)
		return r;
	if (f->n_open >= (f->limit ? f->limit : FDS_MAX - 1))
		return -EMFILE;
	if (group >= 0)
		ck_assert(f->fd[group].open && f->fd[group].group < 0 && f->fd[group].pid == pid &&
			  f->fd[group].hart == hart);
	ck_assert_int_lt(f->n_fds + 1, FDS_MAX);
	f->fd[++f->n_fds] = asked;
	f->n_open++;
	return f->n_fds;
}

static int fake_ioctl(void *u, int fd, unsigned long request, uintptr_t arg)
{
	struct fake *f = u;
	ck_assert(f->fd[fd].open && request == PERF_EVENT_IOC_ENABLE && arg == 0);
	f->fd[fd].enabled++;
	return 0;
}

static ssize_t fake_read(void *u, int fd, void *buffer, size_t n)
{
	struct fake *f = u;
	ck_assert(f->fd[fd].open && n == 24);
	if (f->read_error)
		return f->read_error;
	if (fd == f->dead_fd)
		return 0;
	memcpy(buffer, f->fd[fd].count, 24);
	return 24;
}

static void fake_close(void *u, int fd)
{
	struct fake *f = u;
	ck_assert(fd > 0 && f->fd[fd].open);
	f->fd[fd].open = false;
	f->n_open--;
}

static const struct tree_file files[] = {
	{"/proc/100/task/100", "", 0},
	{"/proc/100/task/101", "", 0},
	{"/proc/200/task/200", "", 0},
	{"/proc/300/task", NULL, -EACCES},
	{"/sys/bus/event_source/devices/uncore/type", "30\n", 0},
	{"/sys/bus/event_source/devices/uncore/cpumask", "1\n", 0},
	{"/sys/bus/event_source/devices/wide/type", "31\n", 0},
	{"/sys/bus/event_source/devices/wide/cpumask", "everywhere\n", 0},
};

struct bench {
	struct fake fake;
	struct kernel kernel;
	struct machine machine;
	struct event_list events;
	struct event_error error;
	struct counter *counter;
};

/* Harts 0 and 1 are online, 2 is not. */
static struct bench *bench_new(const char *events)
{
	struct bench *b = calloc(1, sizeof(*b));
	ck_assert_ptr_nonnull(b);
	b->fake.tree = (struct tree)TREE(files);
	b->kernel = (struct kernel){.event_open = fake_open,
		.event_ioctl = fake_ioctl,
		.event_read = fake_read,
		.event_close = fake_close,
		.read_text = tree_read_text,
		.list = tree_list,
		.userdata = &b->fake};
	b->machine = (struct machine){.n_harts = 3, .paranoid = 2, .may_see_kernel = true};
	hart_set_add(&b->machine.online, 0);
	hart_set_add(&b->machine.online, 1);
	if (events && event_parse(&b->kernel, events, &b->events, &b->error) != 0)
		ck_abort_msg("%s", b->error.text);
	return b;
}

static int bench_open(struct bench *b, const pid_t *pids, size_t n_pids)
{
	struct counter_options o = {
		.events = b->events.n_events ? &b->events : NULL, .pids = pids, .n_pids = n_pids};
	return counter_new(&b->kernel, &b->machine, &o, &b->counter, &b->error);
}

static void bench_free(struct bench *b)
{
	ck_assert_ptr_null(counter_free(b->counter));
	ck_assert_msg(b->fake.n_open == 0, "%d descriptors leaked", b->fake.n_open);
	free(b);
}

TEST(system_wide_opens_each_event_on_each_online_hart)
{
	struct bench *b = bench_new("cycles,cpu-clock:u");
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	ck_assert_int_eq(b->fake.n_open, 4);
	for (int fd = 1; fd <= 4; fd++) {
		ck_assert_int_eq(b->fake.fd[fd].pid, -1);
		ck_assert_int_eq(b->fake.fd[fd].hart, (fd - 1) % 2);
		ck_assert(!b->fake.fd[fd].attr.inherit && b->fake.fd[fd].attr.disabled);
		ck_assert_uint_eq(b->fake.fd[fd].attr.sample_period, 0);
	}
	ck_assert(!b->fake.fd[1].attr.exclude_kernel && b->fake.fd[3].attr.exclude_kernel);
	bench_free(b);
}

TEST(per_task_opens_each_thread_with_inherit)
{
	struct bench *b = bench_new("cycles");
	ck_assert_int_eq(bench_open(b, (pid_t[]){100, 200, 100}, 3), 0);
	ck_assert_int_eq(b->fake.n_open, 3);
	ck_assert_int_eq(b->fake.fd[2].pid, 101);
	for (int fd = 1; fd <= 3; fd++)
		ck_assert(b->fake.fd[fd].attr.inherit && b->fake.fd[fd].hart == -1);
	bench_free(b);
}

TEST(the_default_set_is_that_of_perf_stat)
{
	struct bench *b = bench_new(NULL);
	ck_assert_int_eq(bench_open(b, (pid_t[]){200}, 1), 0);
	ck_assert_int_eq(b->counter->events.n_events, 8);
	ck_assert_str_eq(b->counter->events.event[0].name, "task-clock");
	ck_assert_str_eq(b->counter->events.event[7].name, "branch-misses");
	bench_free(b);
	b = bench_new(NULL);
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	ck_assert_str_eq(b->counter->events.event[0].name, "cpu-clock");
	bench_free(b);
}

TEST(nothing_counts_before_the_start)
{
	struct bench *b = bench_new("cycles,{instructions,branches}");
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	for (int fd = 1; fd <= b->fake.n_fds; fd++)
		ck_assert_int_eq(b->fake.fd[fd].enabled, 0);
	ck_assert_int_eq(counter_start(b->counter), 0);
	for (int fd = 1; fd <= b->fake.n_fds; fd++)
		ck_assert_int_eq(b->fake.fd[fd].enabled, 1);
	bench_free(b);
}

TEST(groups_are_led_by_their_first_member_on_each_target)
{
	struct bench *b = bench_new("faults,{cycles,instructions,branches}");
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	ck_assert_int_eq(b->fake.n_open, 8);
	ck_assert_int_eq(b->fake.fd[3].group, -1);
	ck_assert(b->fake.fd[3].attr.disabled);
	for (int fd = 5; fd <= 8; fd++) {
		ck_assert_int_eq(b->fake.fd[fd].group, fd % 2 ? 3 : 4);
		ck_assert(!b->fake.fd[fd].attr.disabled);
	}
	bench_free(b);
}

static int no_cycles(const struct fake *f, const struct opened *asked)
{
	(void)f;
	return asked->attr.type == PERF_TYPE_HARDWARE && asked->attr.config == 0 ? -ENOENT : 0;
}

TEST(the_second_member_leads_where_the_first_does_not_open)
{
	struct bench *b = bench_new("{cycles,instructions,branches}");
	b->fake.refuse = no_cycles;
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	ck_assert_int_eq(b->counter->value[0].error, ENOENT);
	ck_assert_int_eq(b->fake.fd[1].group, -1);
	ck_assert(b->fake.fd[1].attr.disabled);
	ck_assert_int_eq(b->fake.fd[3].group, 1);
	ck_assert_int_eq(counter_read(b->counter), 0);
	ck_assert_int_eq(b->counter->value[0].error, ENOENT);
	bench_free(b);
}

static int no_third_in_group(const struct fake *f, const struct opened *asked)
{
	(void)f;
	return asked->group >= 0 && asked->attr.config == PERF_COUNT_HW_BRANCH_INSTRUCTIONS
		       ? -EINVAL
		       : 0;
}

TEST(a_member_that_does_not_fit_is_counted_beside_its_group)
{
	struct bench *b = bench_new("{cycles,instructions,branches}");
	b->fake.refuse = no_third_in_group;
	ck_assert_int_eq(bench_open(b, (pid_t[]){200}, 1), 0);
	ck_assert_int_eq(b->counter->value[2].error, 0);
	ck_assert_int_eq(b->fake.fd[2].group, 1);
	ck_assert_int_eq(b->fake.fd[3].group, -1);
	ck_assert(b->fake.fd[3].attr.disabled);
	bench_free(b);
}

TEST(values_are_summed_and_scaled_per_target)
{
	struct bench *b = bench_new("cycles");
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	memcpy(b->fake.fd[1].count, (uint64_t[]){1000, 100, 50}, 24);
	memcpy(b->fake.fd[2].count, (uint64_t[]){300, 100, 100}, 24);
	ck_assert_int_eq(counter_read(b->counter), 0);
	const struct counter_value *v = &b->counter->value[0];
	ck_assert_uint_eq(v->value, 1300);
	ck_assert_uint_eq(v->enabled_ns, 200);
	ck_assert_uint_eq(v->running_ns, 150);
	ck_assert_double_eq(v->scaled, 2300.0);
	ck_assert_int_eq(counter_read(b->counter), 0);
	ck_assert_uint_eq(v->value, 1300);
	bench_free(b);
}

TEST(what_never_ran_is_not_scaled)
{
	struct bench *b = bench_new("cycles");
	ck_assert_int_eq(bench_open(b, (pid_t[]){200}, 1), 0);
	memcpy(b->fake.fd[1].count, (uint64_t[]){0, 100, 0}, 24);
	ck_assert_int_eq(counter_read(b->counter), 0);
	ck_assert_uint_eq(b->counter->value[0].running_ns, 0);
	ck_assert_double_eq(b->counter->value[0].scaled, 0.0);
	bench_free(b);
}

TEST(the_event_with_the_least_of_a_counter_is_found)
{
	struct bench *b = bench_new("cycles,instructions,branches");
	double part = -1;
	ck_assert_int_eq(bench_open(b, (pid_t[]){200}, 1), 0);
	ck_assert_int_eq(counter_read(b->counter), 0);
	ck_assert_int_eq(counter_scarcest(b->counter, &part), -1); /* none ran */
	ck_assert_double_eq(part, -1);
	memcpy(b->fake.fd[1].count, (uint64_t[]){9, 100, 100}, 24);
	memcpy(b->fake.fd[2].count, (uint64_t[]){9, 100, 40}, 24);
	memcpy(b->fake.fd[3].count, (uint64_t[]){0, 100, 0}, 24); /* no figure: its row says so */
	ck_assert_int_eq(counter_read(b->counter), 0);
	ck_assert_int_eq(counter_scarcest(b->counter, &part), 1);
	ck_assert_double_eq(part, 0.4);
	bench_free(b);
}

TEST(a_read_that_fails_leaves_no_number)
{
	struct bench *b = bench_new("cycles,faults");
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	memcpy(b->fake.fd[1].count, (uint64_t[]){7, 1, 1}, 24);
	b->fake.dead_fd = 2;
	ck_assert_int_eq(counter_read(b->counter), 0);
	ck_assert_int_eq(b->counter->value[0].error, EIO);
	ck_assert_uint_eq(b->counter->value[0].value, 0);
	ck_assert_int_eq(b->counter->value[1].error, 0);
	b->fake.read_error = -EBADF;
	ck_assert_int_eq(counter_read(b->counter), 0);
	ck_assert_int_eq(b->counter->value[1].error, EBADF);
	bench_free(b);
}

static int only_hart_1(const struct fake *f, const struct opened *asked)
{
	(void)f;
	return asked->hart == 1 ? 0 : -ENOENT;
}

TEST(harts_of_a_core_without_the_event_are_left_out)
{
	struct bench *b = bench_new("{cycles,instructions}");
	b->fake.refuse = only_hart_1;
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	ck_assert_int_eq(b->fake.n_open, 2);
	ck_assert_int_eq(b->counter->value[0].error, 0);
	ck_assert_int_eq(b->fake.fd[2].group, 1);
	bench_free(b);
}

static int hart_0_is_offline(const struct fake *f, const struct opened *asked)
{
	(void)f;
	return asked->hart == 0 ? -ENODEV : 0;
}

TEST(a_hart_that_just_left_is_left_out)
{
	struct bench *b = bench_new("cpu-clock");
	b->fake.refuse = hart_0_is_offline;
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	ck_assert_int_eq(b->counter->value[0].error, 0);
	ck_assert_int_eq(b->fake.fd[1].hart, 1);
	bench_free(b);
}

static int no_pmu_and_no_rights(const struct fake *f, const struct opened *asked)
{
	(void)f;
	return asked->attr.type == PERF_TYPE_HARDWARE ? -ENOENT : -EACCES;
}

TEST(missing_rights_are_told_before_a_missing_pmu)
{
	struct bench *b = bench_new("cycles,cpu-clock");
	b->fake.refuse = no_pmu_and_no_rights;
	ck_assert_int_eq(bench_open(b, NULL, 0), COUNTER_REFUSED);
	ck_assert_ptr_nonnull(strstr(b->error.text, "cannot count cpu-clock"));
	bench_free(b);
}

static int busy_on_hart_1(const struct fake *f, const struct opened *asked)
{
	(void)f;
	return asked->hart == 1 && asked->attr.type == PERF_TYPE_HARDWARE ? -EBUSY : 0;
}

TEST(a_sum_with_a_hole_is_an_error)
{
	struct bench *b = bench_new("cycles,faults");
	b->fake.refuse = busy_on_hart_1;
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	ck_assert_int_eq(b->counter->value[0].error, EBUSY);
	ck_assert_int_eq(b->counter->value[1].error, 0);
	ck_assert_int_eq(b->fake.n_open, 2);
	bench_free(b);
}

TEST(running_out_of_descriptors_leaks_none)
{
	for (int limit = 0; limit < 7; limit++) {
		struct bench *b = bench_new("cycles,{faults,branches}");
		b->fake.limit = limit ? limit : -1; /* 0 means none is set */
		int r = bench_open(b, NULL, 0);
		ck_assert_int_eq(r, limit < 2 ? COUNTER_REFUSED : 0);
		if (r == COUNTER_REFUSED)
			ck_assert_ptr_nonnull(strstr(b->error.text, "ulimit -n"));
		else
			ck_assert_int_eq(b->counter->value[2].error, limit < 6 ? EMFILE : 0);
		bench_free(b);
	}
}

static int refuse_all(const struct fake *f, const struct opened *asked)
{
	(void)f, (void)asked;
	return -EACCES;
}

TEST(a_refusal_of_all_events_names_the_sysctl)
{
	struct bench *b = bench_new("cycles,faults");
	b->fake.refuse = refuse_all;
	ck_assert_int_eq(bench_open(b, NULL, 0), COUNTER_REFUSED);
	ck_assert_ptr_nonnull(strstr(b->error.text, "cycles"));
	ck_assert_ptr_nonnull(strstr(b->error.text, "kernel.perf_event_paranoid"));
	ck_assert_ptr_null(b->counter);
	bench_free(b);
}

static int thread_100_is_gone(const struct fake *f, const struct opened *asked)
{
	(void)f;
	return asked->pid == 100 ? -ESRCH : 0;
}

static int all_are_gone(const struct fake *f, const struct opened *asked)
{
	(void)f, (void)asked;
	return -ESRCH;
}

TEST(threads_that_end_meanwhile_are_left_out)
{
	struct bench *b = bench_new("cycles");
	b->fake.refuse = thread_100_is_gone;
	ck_assert_int_eq(bench_open(b, (pid_t[]){100}, 1), 0);
	ck_assert_int_eq(b->fake.n_open, 1);
	ck_assert_int_eq(b->fake.fd[1].pid, 101);
	bench_free(b);
}

TEST(targets_that_are_gone_are_an_outcome)
{
	struct bench *b = bench_new("cycles");
	ck_assert_int_eq(bench_open(b, (pid_t[]){999}, 1), COUNTER_GONE);
	b->fake.refuse = all_are_gone;
	ck_assert_int_eq(bench_open(b, (pid_t[]){100}, 1), COUNTER_GONE);
	bench_free(b);
}

TEST(a_step_opens_one_descriptor)
{
	struct bench *b = bench_new("cycles,faults");
	struct counter_options o = {.events = &b->events, .pids = (pid_t[]){100, 200}, .n_pids = 2};
	ck_assert_int_eq(counter_plan(&b->kernel, &b->machine, &o, &b->counter, &b->error), 0);
	ck_assert_uint_eq(counter_n_fds_max(b->counter), 6);
	ck_assert_int_eq(b->fake.n_open, 0);
	for (int i = 1; i < 6; i++) {
		ck_assert_int_eq(counter_open(b->counter, &b->machine, &b->error), COUNTER_MORE);
		ck_assert_int_eq(b->fake.n_open, i);
	}
	ck_assert_int_eq(counter_open(b->counter, &b->machine, &b->error), 0);
	ck_assert_int_eq(b->fake.n_open, 6);
	bench_free(b);
}

TEST(a_counter_that_is_half_open_is_closed)
{
	struct bench *b = bench_new("cycles,faults");
	struct counter_options o = {.events = &b->events, .pids = (pid_t[]){100, 200}, .n_pids = 2};
	ck_assert_int_eq(counter_plan(&b->kernel, &b->machine, &o, &b->counter, &b->error), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(counter_open(b->counter, &b->machine, &b->error), COUNTER_MORE);
	bench_free(b);
}

TEST(a_folder_that_cannot_be_read_is_an_error)
{
	struct bench *b = bench_new("cycles");
	ck_assert_int_eq(bench_open(b, (pid_t[]){300}, 1), -EACCES);
	bench_free(b);
}

TEST(no_events_are_an_error)
{
	struct bench *b = bench_new(NULL);
	struct counter_options o = {.events = &b->events};
	ck_assert_int_eq(counter_new(&b->kernel, &b->machine, &o, &b->counter, &b->error), -EINVAL);
	bench_free(b);
}

static int list_many(
	void *u, const char *path, void (*each)(void *userdata, const char *name), void *userdata)
{
	(void)u, (void)path;
	char name[32];
	for (int i = 1; i < 5000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		each(userdata, name);
	}
	return 0;
}

TEST(too_many_threads_are_refused_in_words)
{
	struct bench *b = bench_new("cycles");
	b->kernel.list = list_many;
	ck_assert_int_eq(bench_open(b, (pid_t[]){100}, 1), COUNTER_REFUSED);
	ck_assert_ptr_nonnull(strstr(b->error.text, "more than 4096 threads"));
	ck_assert_int_eq(b->fake.n_fds, 0);
	bench_free(b);
}

static int list_odd(
	void *u, const char *path, void (*each)(void *userdata, const char *name), void *userdata)
{
	(void)u, (void)path;
	static const char *const names[] = {"", "x", "-5", "0", "12x", "77"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		each(userdata, names[i]);
	return 0;
}

TEST(names_that_are_no_threads_are_passed_over)
{
	struct bench *b = bench_new("cycles");
	b->kernel.list = list_odd;
	ck_assert_int_eq(bench_open(b, (pid_t[]){100}, 1), 0);
	ck_assert_int_eq(b->fake.n_open, 1);
	ck_assert_int_eq(b->fake.fd[1].pid, 77);
	bench_free(b);
}

TEST(without_rights_to_the_kernel_its_events_are_not_measured)
{
	struct bench *b = bench_new("cycles,context-switches,cycles:k,faults");
	b->machine.may_see_kernel = false;
	ck_assert_int_eq(bench_open(b, (pid_t[]){200}, 1), 0);
	ck_assert(b->counter->terms.user_only);
	ck_assert(b->fake.fd[1].attr.exclude_kernel && b->fake.fd[1].attr.exclude_hv);
	ck_assert_int_eq(b->counter->value[0].error, 0);
	ck_assert_int_eq(b->counter->value[1].error, EACCES);
	ck_assert_int_eq(b->counter->value[2].error, EACCES);
	ck_assert_int_eq(b->counter->value[3].error, 0);
	bench_free(b);
}

TEST(a_package_is_counted_once)
{
	struct bench *b = bench_new("uncore/config=1/,wide/config=1/");
	ck_assert_int_eq(bench_open(b, NULL, 0), 0);
	ck_assert_int_eq(b->fake.n_open, 3);
	ck_assert_int_eq(b->fake.fd[1].hart, 1);
	ck_assert_int_eq(b->fake.fd[2].hart, 0);
	bench_free(b);
}

TEST(freeing_nothing_is_fine)
{
	ck_assert_ptr_null(counter_free(NULL));
}

TEST(this_machine_counts_the_time_of_a_busy_loop)
{
	struct machine m;
	struct event_error error = {""};
	ck_assert_int_eq(machine_read(&kernel_real, &m), 0);
	struct counter *c = NULL;
	pid_t self = getpid();
	struct counter_options o = {.pids = &self, .n_pids = 1};
	int r = counter_new(&kernel_real, &m, &o, &c, &error);
	if (r == COUNTER_REFUSED) {
		printf("SKIP this_machine_counts_the_time_of_a_busy_loop: %s\n", error.text);
		return;
	}
	ck_assert(r == 0 && counter_read(c) == 0 && c->value[0].value == 0);
	/* Where the registers trap to a host, enabling the other events takes milliseconds. */
	uint64_t start = kernel_real.now_ns(NULL);
	ck_assert_int_eq(counter_start(c), 0);
	uint64_t enabled = kernel_real.now_ns(NULL);
	while (kernel_real.now_ns(NULL) < enabled + 20000000)
		;
	ck_assert_int_eq(counter_read(c), 0);
	uint64_t spent = kernel_real.now_ns(NULL) - start;
	/* Others may have had the hart meanwhile: a lower bound that shows it ran at all. */
	ck_assert_uint_gt(c->value[0].value, 1000000);
	ck_assert_uint_le(c->value[0].value, spent + 1000000);
	ck_assert_double_eq(c->value[0].scaled, (double)c->value[0].value);
	counter_free(c);
}
