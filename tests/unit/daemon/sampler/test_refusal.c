/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Every errno that an open can fail with becomes words, and the right ones.
 */
#include <errno.h>

#include "daemon/kernel/machine.h"
#include "daemon/pmu/event/event.h"
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

static struct refusal explain(
	const char *event, int error, bool sampling, int paranoid, const char *arch)
{
	struct machine m = {.paranoid = paranoid};
	snprintf(m.arch, sizeof(m.arch), "%s", arch);
	struct event e = one(event);
	return refusal_explain(&e, error, sampling, &m);
}

TEST(a_missing_pmu_is_the_cores_or_the_hypervisors)
{
	struct refusal r = explain("cycles", ENOENT, true, -1, "x86_64");
	ck_assert_str_eq(r.layer, "core or hypervisor");
	ck_assert_ptr_nonnull(strstr(r.remedy, "cpu-clock"));
	r = explain("cycles", ENOENT, true, -1, "riscv64");
	ck_assert_ptr_nonnull(strstr(r.layer, "firmware"));
	r = explain("cgroup-switches", ENOENT, false, -1, "x86_64");
	ck_assert_ptr_nonnull(strstr(r.remedy, "kernel"));
}

TEST(a_core_without_overflow_interrupt_still_counts)
{
	struct refusal r = explain("cycles", EOPNOTSUPP, true, -1, "riscv64");
	ck_assert_str_eq(r.layer, "core");
	ck_assert_ptr_nonnull(strstr(r.says, "cannot interrupt on overflow"));
	ck_assert_ptr_nonnull(strstr(r.says, "Sscofpmf"));
	r = explain("cycles", EOPNOTSUPP, true, -1, "aarch64");
	ck_assert_ptr_null(strstr(r.says, "Sscofpmf"));
	r = explain("cycles", EOPNOTSUPP, false, -1, "riscv64");
	ck_assert_ptr_null(strstr(r.says, "overflow"));
	r = explain("cycles:pp", EOPNOTSUPP, true, -1, "aarch64");
	ck_assert_ptr_nonnull(strstr(r.says, "precise"));
}

TEST(missing_rights_name_the_sysctl_and_the_capability)
{
	struct refusal r = explain("cycles", EACCES, true, 2, "x86_64");
	ck_assert_str_eq(r.layer, "sysctl");
	ck_assert_ptr_nonnull(strstr(r.says, "kernel.perf_event_paranoid = 2"));
	ck_assert_ptr_nonnull(strstr(r.remedy, "CAP_PERFMON"));
	r = explain("cycles", -EACCES, true, 3, "x86_64");
	ck_assert_ptr_nonnull(strstr(r.says, "kernel.perf_event_paranoid = 3"));
	ck_assert_ptr_nonnull(strstr(r.remedy, "CAP_SYS_ADMIN"));
	r = explain("cycles", EPERM, true, 1, "x86_64");
	ck_assert_ptr_nonnull(strstr(r.remedy, "seccomp"));
	r = explain("cycles", EACCES, true, -1, "x86_64");
	ck_assert_str_eq(r.layer, "capability");
}

/* The advice is one that every command can take. */
TEST(the_whole_system_needs_rights_or_gives_way_to_ones_own_processes)
{
	for (int level = 0; level < 3; level++) {
		struct machine m = {.paranoid = level};
		struct refusal r = refusal_explain(NULL, EACCES, true, &m);
		ck_assert_ptr_nonnull(strstr(r.remedy, "kernel.perf_event_paranoid=0"));
		ck_assert_ptr_nonnull(strstr(r.remedy, "--pid"));
		ck_assert_ptr_null(strstr(r.remedy, "modifier"));
	}
	struct machine m = {.paranoid = 3};
	ck_assert_ptr_null(strstr(refusal_explain(NULL, EACCES, true, &m).remedy, "--pid"));
}

TEST(nobody_is_told_to_leave_the_kernel_out_who_already_does)
{
	struct refusal r = explain("cycles:u", EINVAL, true, 2, "riscv64");
	ck_assert_ptr_nonnull(strstr(r.says, "Sscofpmf"));
	ck_assert_ptr_nonnull(strstr(r.remedy, "kernel.perf_event_paranoid=1"));
	ck_assert_ptr_nonnull(strstr(r.remedy, "cpu-clock"));
	ck_assert_ptr_null(strstr(r.remedy, "modifier"));
	struct machine root = {.paranoid = 2, .may_see_kernel = true, .arch = "riscv64"};
	struct event e = one("cycles:u");
	ck_assert_ptr_null(strstr(refusal_explain(&e, EINVAL, true, &root).says, "you may not"));
}

TEST(levels_beyond_those_known_are_answered)
{
	for (int level = -3; level < 9; level++) {
		struct refusal r = explain("cycles", EACCES, true, level, "x86_64");
		ck_assert(r.layer && r.says && r.remedy);
	}
}

TEST(reserved_bits_of_a_riscv_raw_code_are_told)
{
	struct refusal r = explain("r0400000000000008", EINVAL, true, -1, "riscv64");
	ck_assert_ptr_nonnull(strstr(r.says, "bits 48 to 61"));
	r = explain("r22", EINVAL, true, -1, "riscv64");
	ck_assert_ptr_null(strstr(r.says, "bits 48 to 61"));
	r = explain("r0400000000000008", EINVAL, true, -1, "x86_64");
	ck_assert_ptr_null(strstr(r.says, "bits 48 to 61"));
}

TEST(every_error_has_words_and_a_remedy)
{
	static const char *const events[] = {"cycles", "L1-dcache-loads", "r22", "cpu-clock",
		"sched:sched_switch", "cpu/event=1/p"};
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		for (int error = 1; error < 140; error++)
			for (int sampling = 0; sampling < 2; sampling++) {
				struct refusal r =
					explain(events[i], error, sampling, 2, "riscv64");
				ck_assert(r.layer && r.says && r.remedy && r.layer[0] &&
					  r.says[0] && r.remedy[0]);
			}
	ck_assert_ptr_nonnull(
		strstr(explain("cycles", EMFILE, false, 2, "x86_64").remedy, "ulimit -n"));
	ck_assert_ptr_nonnull(strstr(explain("cycles", EBUSY, false, 2, "x86_64").says, "in use"));
}

TEST(every_refusal_fits_whole_into_an_error)
{
	static const char *const events[] = {"cycles", "L1-dcache-loads", "r22", "cpu-clock",
		"sched:sched_switch", "cpu/event=1/p"};
	static const char *const archs[] = {"riscv64", "x86_64"};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		for (int error = 1; error < 140; error++)
			for (int more = 0; more < 16; more++) {
				struct refusal r = explain(events[i], error, more & 1,
					(more >> 1 & 3) + (error == EACCES), archs[more >> 3]);
				size_t n = EVENT_NAME_BYTES_MAX + strlen(": ") + strlen(r.says) +
					   strlen(" (") + strlen(r.layer) + strlen("); ") +
					   strlen(r.remedy);
				ck_assert_uint_lt(n, EVENT_ERROR_BYTES);
			}
}
