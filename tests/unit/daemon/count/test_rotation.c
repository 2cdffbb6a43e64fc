/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What rotations take, on a kernel on which a call takes 300 ns and each event of a group that is stopped or
 * started 1,000 more.
 */
#include "daemon/count/rotation.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define CALL_NS 300u
#define EVENT_NS 1000u

struct slow {
	struct replay *replay;
	struct kernel kernel;
	uint64_t now_ns;
};

static uint64_t now(void *u)
{
	return ((struct slow *)u)->now_ns;
}

static int control(void *u, int fd, unsigned long request, uintptr_t arg)
{
	struct slow *s = u;
	const struct kernel *k = replay_kernel(s->replay);
	bool software = replay_attr(s->replay, fd)->type == PERF_TYPE_SOFTWARE;
	s->now_ns += CALL_NS + (software ? 0 : EVENT_NS * replay_n_events(s->replay));
	return k->event_ioctl(k->userdata, fd, request, arg);
}

static int slow_open(
	void *u, struct perf_event_attr *a, pid_t pid, int hart, int group, unsigned long flags)
{
	const struct kernel *k = replay_kernel(((struct slow *)u)->replay);
	return k->event_open(k->userdata, a, pid, hart, group, flags);
}

static void slow_close(void *u, int fd)
{
	const struct kernel *k = replay_kernel(((struct slow *)u)->replay);
	k->event_close(k->userdata, fd);
}

static ssize_t slow_read_text(void *u, const char *path, char *buffer, size_t n)
{
	const struct kernel *k = replay_kernel(((struct slow *)u)->replay);
	return k->read_text(k->userdata, path, buffer, n);
}

static struct slow *slow_of(struct core_case *c)
{
	static struct slow s;
	s = (struct slow){.replay = c->replay,
		.kernel = {.event_open = slow_open,
			.event_ioctl = control,
			.event_close = slow_close,
			.now_ns = now,
			.read_text = slow_read_text,
			.userdata = &s}};
	return &s;
}

static void set_mux(struct core_case *c, const char *ms)
{
	replay_set_text(
		c->replay, "/sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms", ms);
}

/* Stopping and starting a group of two takes 4 µs beyond the calls; of the 4 ms between two rotations that is a 1,000th. */
TEST(each_group_has_its_part_of_a_rotation)
{
	struct core_case c = core_case_of("zen4");
	struct slow *s = slow_of(&c);
	struct event_list events = core_case_events(&c, "{r1,r2},cycles,cpu-clock,{r3,r4,r5}");
	double part[EVENTS_MAX];
	set_mux(&c, "4\n");
	rotation_parts(&s->kernel, cores_platform(c.cores, 0), &events, part);
	const double expected[] = {4e-6 / 4e-3, 0, 2e-6 / 4e-3, 0, 6e-6 / 4e-3, 0, 0};
	for (int i = 0; i < events.n_events; i++)
		ck_assert_double_eq_tol(part[i], expected[i], 1e-9);
	set_mux(&c, "1\n");
	rotation_parts(&s->kernel, cores_platform(c.cores, 0), &events, part);
	ck_assert_double_eq_tol(part[0], 4e-3, 1e-9);
	core_case_end(&c);
}

TEST(what_does_not_open_has_none)
{
	struct core_case c = core_case_of("x86-vm");
	struct slow *s = slow_of(&c);
	struct event_list events = core_case_events(&c, "cycles");
	double part[EVENTS_MAX] = {1};
	rotation_parts(&s->kernel, cores_platform(c.cores, 0), &events, part);
	ck_assert_double_eq(part[0], 0);
	core_case_end(&c);
}
