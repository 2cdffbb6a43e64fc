/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Probing against a kernel that counts as told: what moves, what stays 0, what never runs.
 */
#include <errno.h>

#include "daemon/kernel/machine.h"
#include "daemon/sampler/ladder.h"
#include "tests/unit/test.h"
#include "tests/unit/tree.h"

static struct event one(const char *text)
{
	static const struct tree_file files[] = {
		{"/sys/bus/event_source/devices/cpu/type", "4\n", 0},
		{"/sys/bus/event_source/devices/cpu/format/event", "config:0-7\n", 0},
		{"/sys/kernel/tracing/events/sched/sched_switch/id", "316\n", 0},
	};
	static struct tree tree = TREE(files);
	const struct kernel k = {.read_text = tree_read_text, .list = tree_list, .userdata = &tree};
	struct event_list list = {0};
	struct event_error error = {""};
	int r = event_parse(&k, text, &list, &error);
	ck_assert_msg(r == 0 && list.n_events == 1, "%s: %s", text, error.text);
	return list.event[0];
}

/* The probe of one event, against a kernel that answers as told. */
struct probed {
	struct tree tree;
	int open_error;
	uint64_t count[3]; /* value, enabled, running, as read */
	uint64_t on_last_hart;
	int hart, n_open, n_spins;
	struct perf_event_attr attr;
};

static int probed_open(
	void *u, struct perf_event_attr *attr, pid_t pid, int hart, int group, unsigned long flags)
{
	struct probed *p = u;
	ck_assert(pid == 0 && hart == -1 && group == -1 && flags == PERF_FLAG_FD_CLOEXEC);
	p->attr = *attr;
	if (p->open_error)
		return p->open_error;
	p->n_open++;
	return 7;
}

static int probed_ioctl(void *u, int fd, unsigned long request, uintptr_t arg)
{
	(void)u, (void)request, (void)arg;
	return fd == 7 ? 0 : -EBADF;
}

static ssize_t probed_read(void *u, int fd, void *buffer, size_t n)
{
	struct probed *p = u;
	if (fd != 7 || n < sizeof(p->count))
		return -EINVAL;
	if (p->hart == 3)
		p->count[0] += p->on_last_hart;
	memcpy(buffer, p->count, sizeof(p->count));
	return sizeof(p->count);
}

static void probed_close(void *u, int fd)
{
	(void)fd;
	((struct probed *)u)->n_open--;
}

static int probed_spin(void *u, int hart, uint64_t ns)
{
	struct probed *p = u;
	ck_assert_uint_gt(ns, 0);
	p->hart = hart;
	p->n_spins++;
	return 0;
}

static int probe(struct probed *p, const char *event, bool may_see_kernel)
{
	struct kernel k = {.event_open = probed_open,
		.event_ioctl = probed_ioctl,
		.event_read = probed_read,
		.event_close = probed_close,
		.spin = probed_spin,
		.userdata = p};
	struct machine m = {.n_harts = 4, .may_see_kernel = may_see_kernel};
	hart_set_add(&m.online, 1);
	hart_set_add(&m.online, 3);
	struct event e = one(event);
	int r = event_probe(&k, &m, &e);
	ck_assert_int_eq(p->n_open, 0);
	return r;
}

TEST(a_probe_believes_only_values_that_move)
{
	struct probed p = {.count = {1000, 5, 5}};
	ck_assert_int_eq(probe(&p, "cycles:p", true), 0);
	ck_assert_uint_eq(p.attr.precise_ip, 0);
	ck_assert_int_eq(p.n_spins, 1);
	p = (struct probed){.count = {0, 5, 5}};
	ck_assert_int_eq(probe(&p, "cycles", true), PROBE_ZERO);
	ck_assert_int_eq(p.n_spins, 2);
	p = (struct probed){.count = {1000, 5, 0}};
	ck_assert_int_eq(probe(&p, "cycles", true), PROBE_ZERO);
	p = (struct probed){.count = {0, 5, 5}};
	ck_assert_int_eq(probe(&p, "major-faults", true), 0);
	ck_assert_int_eq(probe(&p, "dummy", true), PROBE_ZERO);
	p = (struct probed){.open_error = -ENOENT};
	ck_assert_int_eq(probe(&p, "cycles", true), -ENOENT);
}

TEST(a_probe_asks_the_other_kind_of_hart_too)
{
	struct probed p = {.count = {0, 5, 5}, .on_last_hart = 12};
	ck_assert_int_eq(probe(&p, "cycles", true), 0);
	ck_assert_int_eq(p.hart, 3);
}

TEST(a_probe_without_rights_to_the_kernel_leaves_it_out)
{
	struct probed p = {.count = {9, 5, 5}};
	ck_assert_int_eq(probe(&p, "cycles", false), 0);
	ck_assert(p.attr.exclude_kernel);
	ck_assert_int_eq(probe(&p, "context-switches", false), PROBE_ZERO);
	ck_assert_int_eq(probe(&p, "context-switches", true), 0);
}

TEST(this_machine_counts_its_clock)
{
	struct machine m;
	ck_assert_int_eq(machine_read(&kernel_real, &m), 0);
	struct event e = one("task-clock");
	int r = event_probe(&kernel_real, &m, &e);
	if (r == -EACCES || r == -EPERM || r == -ENOSYS) {
		printf("SKIP this_machine_counts_its_clock: perf_event_open is not allowed\n");
		return;
	}
	ck_assert_int_eq(r, 0);
}
