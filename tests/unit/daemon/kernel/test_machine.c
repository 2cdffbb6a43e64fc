/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Machines that lie, lack files, or allow little.
 */
#include <errno.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "daemon/kernel/machine.h"
#include "tests/unit/test.h"
#include "tests/unit/tree.h"

#define CPU "/sys/devices/system/cpu/"
#define SYSCTL "/proc/sys/kernel/"

TEST(lists_of_harts_parse)
{
	struct hart_set s;
	ck_assert_int_eq(hart_set_parse("0-3,8,10-11\n", &s), 0);
	ck_assert_int_eq(hart_set_count(&s), 7);
	ck_assert(hart_set_has(&s, 3) && !hart_set_has(&s, 4) && hart_set_has(&s, 11));
	ck_assert_int_eq(hart_set_parse("0", &s), 0);
	ck_assert_int_eq(hart_set_count(&s), 1);
	ck_assert_int_eq(hart_set_parse("\n", &s), 0);
	ck_assert_int_eq(hart_set_count(&s), 0);
	ck_assert_int_eq(hart_set_parse("63-64", &s), 0);
	ck_assert_int_eq(hart_set_count(&s), 2);
	ck_assert_int_eq(hart_set_parse("0-1023", &s), 0);
	ck_assert_int_eq(hart_set_count(&s), HARTS_MAX);
}

TEST(malformed_lists_are_refused_and_change_nothing)
{
	static const char *const wrong[] = {"-", "1-", "-1", "3-1", "1,,2", ",1", "1,", "a", "1 2",
		"1-2-3", "0x1", "1\n2", "1;2", "+1"};
	struct hart_set s = {{42}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(hart_set_parse(wrong[i], &s) == -EINVAL, "%s", wrong[i]);
	ck_assert_int_eq(hart_set_parse("1024", &s), -ERANGE);
	ck_assert_int_eq(hart_set_parse("0-99999999999999999999", &s), -ERANGE);
	ck_assert_uint_eq(s.bits[0], 42);
}

TEST(harts_outside_the_set_are_never_in_it)
{
	struct hart_set s = {0};
	hart_set_add(&s, -1);
	hart_set_add(&s, HARTS_MAX);
	ck_assert_int_eq(hart_set_count(&s), 0);
	memset(&s, 0xff, sizeof(s));
	ck_assert(!hart_set_has(&s, -1) && !hart_set_has(&s, HARTS_MAX));
}

/* A machine as data, and the answers of its kernel. */
struct fake {
	struct tree tree;
	int system_error; /* of pid -1 */
	int kernel_error; /* without exclude_kernel */
	int offline;      /* this hart went away since the list was read; -1: none */
	int n_open, n_opened;
};

static int fake_open(void *u, struct perf_event_attr *attr, pid_t pid, int hart, int group_fd,
	unsigned long flags)
{
	struct fake *f = u;
	ck_assert_uint_eq(attr->type, PERF_TYPE_SOFTWARE);
	ck_assert_uint_eq(attr->config, PERF_COUNT_SW_CPU_CLOCK);
	ck_assert_uint_eq(flags, PERF_FLAG_FD_CLOEXEC);
	ck_assert_int_eq(group_fd, -1);
	if (pid == -1 && hart == f->offline)
		return -ENODEV;
	if (pid == -1 && f->system_error)
		return f->system_error;
	if (!attr->exclude_kernel && f->kernel_error)
		return f->kernel_error;
	f->n_open++;
	f->n_opened++;
	return 10;
}

static void fake_close(void *u, int fd)
{
	ck_assert_int_eq(fd, 10);
	((struct fake *)u)->n_open--;
}

static struct kernel fake_kernel(struct fake *f)
{
	return (struct kernel){.event_open = fake_open,
		.event_close = fake_close,
		.read_text = tree_read_text,
		.list = tree_list,
		.userdata = f};
}

static const struct tree_file board[] = {
	{CPU "online", "0-2\n", 0},
	{CPU "possible", "0-3\n", 0},
	{SYSCTL "perf_event_paranoid", "2\n", 0},
	{SYSCTL "perf_event_max_sample_rate", "100000\n", 0},
	{SYSCTL "perf_event_mlock_kb", "516\n", 0},
	{SYSCTL "perf_event_max_stack", "127\n", 0},
	{SYSCTL "osrelease", "6.12.0-riscv64\n", 0},
	{SYSCTL "arch", "riscv64\n", 0},
	{"/proc/meminfo", "MemTotal:         231544 kB\nMemFree:          150128 kB\n", 0},
};

TEST(a_machine_is_read_from_its_files)
{
	struct fake f = {.tree = TREE(board), .offline = -1};
	struct kernel k = fake_kernel(&f);
	struct machine m;
	ck_assert_int_eq(machine_read(&k, &m), 0);
	ck_assert_int_eq(m.n_harts, 4);
	ck_assert_int_eq(hart_set_count(&m.online), 3);
	ck_assert_int_eq(m.paranoid, 2);
	ck_assert_uint_eq(m.max_sample_rate, 100000);
	ck_assert_uint_eq(m.mlock_kb, 516);
	ck_assert_uint_eq(m.memory_kb, 231544);
	ck_assert_uint_eq(m.max_stack, 127);
	ck_assert_str_eq(m.release, "6.12.0-riscv64");
	ck_assert_str_eq(m.arch, "riscv64");
	ck_assert(m.may_see_all && m.may_see_kernel);
	ck_assert_int_eq(f.n_opened, 2);
	ck_assert_int_eq(f.n_open, 0);
}

TEST(rights_are_found_by_opening)
{
	struct fake f = {.tree = TREE(board), .offline = -1, .system_error = -EACCES};
	struct kernel k = fake_kernel(&f);
	struct machine m;
	ck_assert_int_eq(machine_read(&k, &m), 0);
	ck_assert(!m.may_see_all && m.may_see_kernel);
	f.system_error = 0;
	f.kernel_error = -EACCES;
	ck_assert_int_eq(machine_read(&k, &m), 0);
	ck_assert(m.may_see_all && !m.may_see_kernel);
	ck_assert_int_eq(f.n_open, 0);
}

TEST(a_hart_that_just_left_takes_no_rights_away)
{
	struct fake f = {.tree = TREE(board), .offline = 0};
	struct kernel k = fake_kernel(&f);
	struct machine m;
	ck_assert_int_eq(machine_read(&k, &m), 0);
	ck_assert(m.may_see_all);
}

TEST(missing_files_leave_what_is_cautious)
{
	static const struct tree_file bare[] = {{CPU "online", "0,5\n", 0}};
	struct fake f = {.tree = TREE(bare), .offline = -1};
	struct kernel k = fake_kernel(&f);
	struct machine m;
	ck_assert_int_eq(machine_read(&k, &m), 0);
	ck_assert_int_eq(m.n_harts, 6);
	ck_assert_int_eq(m.paranoid, 4);
	ck_assert_uint_eq(m.max_sample_rate, 0);
	ck_assert_str_eq(m.release, "unknown");
	ck_assert_uint_gt(strlen(m.arch), 0);
}

TEST(memory_that_cannot_be_read_is_unknown, .times = 10)
{
	static const char *const texts[] = {"", "MemTotal:", "MemTotal: kB\n", "MemTotal: 12\n",
		"MemTotal: 12 MB\n", "MemTotal: -12 kB\n", "MemTotal: 0 kB\n",
		"MemTotal: 4294967296 kB\n", "MemTotal: 99999999999999999999 kB\n",
		"MemFree: 12 kB\nMemTotal: 12 kB\n"};
	const struct tree_file files[] = {
		{CPU "online", "0\n", 0}, {"/proc/meminfo", texts[_i], 0}};
	struct fake f = {.tree = TREE(files), .offline = -1};
	struct kernel k = fake_kernel(&f);
	struct machine m;
	ck_assert_int_eq(machine_read(&k, &m), 0);
	ck_assert_uint_eq(m.memory_kb, 0);
}

TEST(odd_files_leave_what_is_cautious)
{
	static const struct tree_file odd[] = {
		{CPU "online", "0-1\n", 0},
		{CPU "possible", "0-8191\n", 0},
		{SYSCTL "perf_event_paranoid", "two\n", 0},
		{SYSCTL "perf_event_max_sample_rate", "-1\n", 0},
		{SYSCTL "perf_event_mlock_kb", "99999999999999999999\n", 0},
		{SYSCTL "perf_event_max_stack", "127 or so\n", 0},
		{SYSCTL "osrelease",
			"a-release-whose-name-is-much-longer-than-anything-that-uname-could-ever-"
			"hold\n",
			0},
	};
	struct fake f = {.tree = TREE(odd), .offline = -1};
	struct kernel k = fake_kernel(&f);
	struct machine m;
	ck_assert_int_eq(machine_read(&k, &m), 0);
	ck_assert_int_eq(m.n_harts, HARTS_MAX);
	ck_assert_int_eq(m.paranoid, 4);
	ck_assert_uint_eq(m.max_sample_rate, 0);
	ck_assert_uint_eq(m.mlock_kb, 0);
	ck_assert_uint_eq(m.max_stack, 0);
	ck_assert_str_eq(m.release, "unknown");
}

TEST(a_machine_without_harts_is_an_error)
{
	static const struct tree_file none[] = {{CPU "online", "\n", 0}};
	static const struct tree_file wrong[] = {{CPU "online", "all of them\n", 0}};
	static const struct tree_file denied[] = {{CPU "online", NULL, -EACCES}};
	const struct tree tree[] = {TREE(none), TREE(wrong), TREE(denied)};
	for (size_t i = 0; i < 3; i++) {
		struct fake f = {.tree = tree[i], .offline = -1};
		struct kernel k = fake_kernel(&f);
		struct machine m = {.n_harts = 77};
		ck_assert_int_eq(machine_read(&k, &m), -EIO);
		ck_assert_int_eq(m.n_harts, 77);
	}
}

TEST(a_refresh_sees_harts_and_rate_alone)
{
	static const struct tree_file later[] = {
		{CPU "online", "0-1\n", 0},
		{SYSCTL "perf_event_max_sample_rate", "25000\n", 0},
		{SYSCTL "perf_event_paranoid", "-1\n", 0},
	};
	struct fake f = {.tree = TREE(board), .offline = -1};
	struct kernel k = fake_kernel(&f);
	struct machine m;
	ck_assert_int_eq(machine_read(&k, &m), 0);
	f.tree = (struct tree)TREE(later);
	ck_assert_int_eq(machine_refresh(&k, &m), 0);
	ck_assert_int_eq(hart_set_count(&m.online), 2);
	ck_assert_uint_eq(m.max_sample_rate, 25000);
	ck_assert_int_eq(m.paranoid, 2);
	ck_assert_int_eq(m.n_harts, 4);

	f.tree.n_files = 0;
	ck_assert_int_eq(machine_refresh(&k, &m), -ENOENT);
	ck_assert_int_eq(hart_set_count(&m.online), 2);
}

TEST(this_machine_agrees_with_libc)
{
	struct machine m;
	struct utsname names;
	ck_assert_int_eq(machine_read(&kernel_real, &m), 0);
	ck_assert_int_eq(uname(&names), 0);
	ck_assert_str_eq(m.release, names.release);
	ck_assert_int_eq(hart_set_count(&m.online), (int)sysconf(_SC_NPROCESSORS_ONLN));
	ck_assert_int_ge(m.n_harts, hart_set_count(&m.online));
}

static void count_name(void *n, const char *name)
{
	ck_assert_str_ne(name, ".");
	ck_assert_str_ne(name, "..");
	(*(int *)n)++;
}

TEST(the_real_kernel_reads_and_lists)
{
	char text[64], small[2];
	int n = 0;
	ck_assert_int_gt(kernel_real.read_text(NULL, CPU "online", text, sizeof(text)), 0);
	ck_assert_int_eq(
		kernel_real.read_text(NULL, "/proc/cpuinfo", small, sizeof(small)), -E2BIG);
	ck_assert_int_eq(kernel_real.read_text(NULL, "/proc/none", text, sizeof(text)), -ENOENT);
	ck_assert_int_eq(kernel_real.read_text(NULL, "/proc", text, sizeof(text)), -EISDIR);
	ck_assert_int_eq(kernel_real.list(NULL, "/proc/self/task", count_name, &n), 0);
	ck_assert_int_eq(n, 1);
	ck_assert_int_eq(kernel_real.list(NULL, "/proc/none", count_name, &n), -ENOENT);
}

TEST(the_real_kernel_spins_and_goes_back)
{
	cpu_set_t before, after;
	ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	int hart = 0;
	while (!CPU_ISSET(hart, &before))
		hart++;
	uint64_t start = kernel_real.now_ns(NULL);
	ck_assert_int_eq(kernel_real.spin(NULL, hart, 1000000), 0);
	ck_assert_uint_ge(kernel_real.now_ns(NULL) - start, 1000000);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(after), &after), 0);
	ck_assert(CPU_EQUAL(&before, &after));
	ck_assert_int_eq(kernel_real.spin(NULL, -1, 1000000), -EINVAL);
	ck_assert_int_eq(kernel_real.spin(NULL, HARTS_MAX, 1000000), -EINVAL);
}

/* --- rates that are not throttled ------------------------------------------------------------- */

TEST(the_highest_rate_leaves_the_last_sample_of_a_tick_free)
{
	static const struct {
		uint32_t limit, tick_hz, most;
	} rates[] = {
		{100000, 250, 79799},
		{2000, 250, 1399},
		{1000, 250, 599},
		{999, 250, 599}, /* rounded up */
		{750, 250, 399},
		{751, 250, 599},
		{500, 250, 199},
		{100000, 100, 79919},
		{100000, 1000, 79199},
		{300, 100, 159},
		/* room for one sample, which is throttled on newer kernels: 2.5 ticks */
		{250, 250, 99},
		{1000, 1000, 399},
		{100, 100, 39},
		/* frequencies above the limit do not open */
		{50, 250, 50},
		{1, 250, 1},
		/* not known */
		{0, 250, UINT32_MAX},
		{500, 0, 500},
		{UINT32_MAX, 1, 3435973834},
	};
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		const struct machine m = {
			.max_sample_rate = rates[i].limit, .tick_hz = rates[i].tick_hz};
		ck_assert_uint_eq(machine_rate_max(&m), rates[i].most);
	}
}

TEST(groups_are_throttled_whole_since_6_16)
{
	static const struct {
		const char *release;
		bool whole;
	} kernels[] = {{"6.15.11\n", false}, {"6.16.0\n", true}, {"6.16-rc1\n", true},
		{"6.18.44\n", true}, {"7.0.0-1-riscv64\n", true}, {"5.17.0\n", false},
		{"6.6.63\n", false}, {"rubbish\n", false}, {"6\n", false}, {"\n", false}};
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++) {
		const struct tree_file files[] = {
			{CPU "online", "0\n", 0}, {SYSCTL "osrelease", kernels[i].release, 0}};
		struct fake f = {.tree = TREE(files), .offline = -1};
		struct kernel k = fake_kernel(&f);
		struct machine m;
		ck_assert_int_eq(machine_read(&k, &m), 0);
		ck_assert_msg(m.throttles_groups == kernels[i].whole, "%s", kernels[i].release);
	}
}

TEST(the_real_kernel_ticks)
{
	uint32_t hz = kernel_real.tick_hz(NULL);
	ck_assert_uint_ge(hz, 24); /* Source: kernel/Kconfig.hz: 100 to 1000; Alpha has others */
	ck_assert_uint_le(hz, 1200);
}
