/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The meaning of an errno of perf_event_open depends on the event: ENOENT is a missing PMU for
 * cycles and a wrong code for a raw event. In the table of rules the first match applies; the last
 * ones match anything. Errors of rights are handled separately, since they depend on the paranoid
 * level. Source: man perf_event_open, "ERRORS"; Documentation/admin-guide/perf-security.rst;
 * Debian's patch "security,perf: Allow further restriction of perf_event_open", which adds level 3;
 * drivers/perf/riscv_pmu_sbi.c of Linux 6.12.
 */
#include "daemon/pmu/event/event.h"

#include <errno.h>
#include <string.h>

#include "daemon/kernel/machine.h"

enum {
	KIND_HARDWARE = 1 << 0,
	KIND_CACHE = 1 << 1,
	KIND_RAW = 1 << 2, /* raw codes and PMUs of sysfs */
	KIND_SOFTWARE = 1 << 3,
	KIND_TRACEPOINT = 1 << 4,
	KIND_PMU = KIND_HARDWARE | KIND_CACHE | KIND_RAW,
	KIND_ANY = KIND_PMU | KIND_SOFTWARE | KIND_TRACEPOINT,
};

enum use {
	USE_ANY,
	USE_SAMPLING,
	USE_PRECISE,        /* modifier p */
	USE_RESERVED_BITS,  /* bits 48 to 61 of the code are set */
	USE_WITHOUT_KERNEL, /* the kernel is excluded, since the user may not see it */
};

struct rule {
	int error;
	unsigned kinds;
	enum use use;
	const char *arch; /* prefix of the machine's arch; NULL: any */
	struct refusal refusal;
};

static const struct rule rules[] = {
	{ENOENT, KIND_HARDWARE | KIND_CACHE, USE_ANY, "riscv",
		{"core, firmware or hypervisor",
			"the SBI firmware offers no counter for this event, or no PMU at all",
			"use cpu-clock; for counters, boot OpenSBI with a pmu node in the device "
			"tree, and on a virtual machine let the host pass the PMU through"}},
	{ENOENT, KIND_HARDWARE, USE_ANY, NULL,
		{"core or hypervisor", "no PMU counts this event here",
			"use cpu-clock; on a virtual machine, let the host pass the PMU through"}},
	{ENOENT, KIND_CACHE, USE_ANY, NULL,
		{"core or hypervisor",
			"this core does not count this cache event, or has no PMU here",
			"choose another event: mperfctl list shows which ones count"}},
	{ENOENT, KIND_RAW, USE_ANY, NULL,
		{"core or driver", "the PMU does not know this event code, or there is no PMU",
			"check the code in the core's manual; mperfctl list shows which events "
			"count"}},
	{ENOENT, KIND_TRACEPOINT, USE_ANY, NULL,
		{"driver", "the kernel no longer has this tracepoint; its module may be unloaded",
			"load the module again, or choose another tracepoint"}},
	{ENOENT, KIND_SOFTWARE, USE_ANY, NULL,
		{"driver", "this kernel is older than the event", "boot a newer kernel"}},

	{EOPNOTSUPP, KIND_PMU, USE_SAMPLING, "riscv",
		{"core",
			"the core counts, but cannot interrupt on overflow (no Sscofpmf), so the "
			"event cannot sample",
			"sample by cpu-clock, which can lead the counters: mperfctl record without "
			"-e"}},
	{EOPNOTSUPP, KIND_PMU, USE_PRECISE, NULL,
		{"core", "the core has no precise sampling of this event",
			"leave out the modifier p"}},
	{EOPNOTSUPP, KIND_PMU, USE_SAMPLING, NULL,
		{"core",
			"the core counts, but cannot interrupt on overflow, so the event cannot "
			"sample",
			"sample by cpu-clock, which can lead the counters: mperfctl record without "
			"-e"}},
	{EOPNOTSUPP, KIND_ANY, USE_ANY, NULL,
		{"driver", "the driver does not support this event or one of its modifiers",
			"try it without modifiers, or another event of mperfctl list"}},

	{EINVAL, KIND_RAW, USE_RESERVED_BITS, "riscv",
		{"driver", "the SBI PMU driver refuses raw codes with any of bits 48 to 61 set",
			"give the bare event code, such as r22"}},
	{EINVAL, KIND_PMU, USE_WITHOUT_KERNEL, "riscv",
		{"core",
			"the driver refuses this event as asked: without Sscofpmf it cannot leave "
			"the kernel out, and you may not count the kernel",
			"sysctl kernel.perf_event_paranoid=1, or give CAP_PERFMON; cpu-clock needs "
			"neither"}},
	{EINVAL, KIND_PMU, USE_PRECISE, NULL,
		{"core", "the core or its driver has no precise sampling of this event",
			"leave out the modifier p"}},
	{EINVAL, KIND_PMU, USE_ANY, NULL,
		{"driver",
			"the driver refuses this event in this form: its modifiers, its group "
			"(more members than counters), or per process if it counts only per hart",
			"try it without modifiers, outside the group, or with -a"}},
	{EINVAL, KIND_ANY, USE_ANY, NULL,
		{"driver", "the kernel refuses this event in this form",
			"try it without modifiers; the kernel may be older than the event"}},

	{EBUSY, KIND_ANY, USE_ANY, NULL,
		{"driver", "the counter is in use, exclusively, by another profiler",
			"end the other profiler; on x86 also: sysctl kernel.nmi_watchdog=0"}},
	{ENOSPC, KIND_ANY, USE_ANY, NULL,
		{"core", "the core has fewer counters than requested at once",
			"request fewer events, or smaller groups"}},
	{ENODEV, KIND_ANY, USE_PRECISE, NULL,
		{"core", "the core has no precise sampling", "leave out the modifier p"}},
	{ENODEV, KIND_ANY, USE_ANY, NULL,
		{"driver", "the hart is offline, or its PMU has no driver",
			"bring the hart online, or leave it out"}},
	{EMFILE, KIND_ANY, USE_ANY, NULL,
		{"descriptor limit", "this process may not open more descriptors",
			"raise the limit (ulimit -n 65536), or request fewer events or processes"}},
	{ENFILE, KIND_ANY, USE_ANY, NULL,
		{"sysctl", "the system is out of open files (fs.file-max)",
			"sysctl fs.file-max=1000000"}},
	{ENODATA, KIND_ANY, USE_ANY, NULL,
		{"core, firmware or driver", "it opens and counts nothing here",
			"choose another event: mperfctl list shows those that count"}},
	{ENOMEM, KIND_ANY, USE_ANY, NULL,
		{"memory", "the kernel had no memory for the event", "request fewer events"}},
	{ESRCH, KIND_ANY, USE_ANY, NULL,
		{"target", "the process is gone", "give the pid of a running process"}},
	{E2BIG, KIND_ANY, USE_ANY, NULL,
		{"driver", "this kernel is older than a requested option", "boot a newer kernel"}},
	{ENOSYS, KIND_ANY, USE_ANY, NULL,
		{"kernel", "this kernel was built without perf events, or a sandbox hides them",
			"boot a kernel with CONFIG_PERF_EVENTS, or run outside the sandbox"}},
};

/* By level, -1 to 3 and beyond. */
static const struct refusal no_rights[] = {
	{"capability",
		"the process belongs to another user, or a security module refuses "
		"(kernel.perf_event_paranoid = -1 forbids nothing)",
		"run as that user or as root, or give CAP_PERFMON"},
	{"capability",
		"the process belongs to another user, or this is raw tracepoint data, which "
		"kernel.perf_event_paranoid = 0 forbids",
		"run as root, give CAP_PERFMON, or: sysctl kernel.perf_event_paranoid=-1"},
	{"sysctl",
		"kernel.perf_event_paranoid = 1 allows your own processes, but not the whole "
		"system",
		"sysctl kernel.perf_event_paranoid=0, or give CAP_PERFMON"},
	{"sysctl", "kernel.perf_event_paranoid = 2 allows only user mode of your own processes",
		"sysctl kernel.perf_event_paranoid=1 (0 for the whole system), give CAP_PERFMON, "
		"or measure processes of your own without the kernel"},
	{"sysctl",
		"kernel.perf_event_paranoid = 3 forbids everything (Debian's level; CAP_PERFMON "
		"alone is not enough there)",
		"sysctl kernel.perf_event_paranoid=2, which the mperf package sets for its service "
		"(sysctl.d/30-mperf.conf); without the service, 1 to see the kernel, 0 for the "
		"whole system; or give CAP_SYS_ADMIN"},
	{"sysctl", "kernel.perf_event_paranoid forbids everything, or cannot be read here",
		"sysctl kernel.perf_event_paranoid=2 (1 with the kernel, 0 for the whole system), "
		"or "
		"give CAP_SYS_ADMIN"},
};

/* Remedy if the whole system was requested, but the level allows only the user's own processes. */
static const char system_remedy[] = "sysctl kernel.perf_event_paranoid=0, give CAP_PERFMON, or "
				    "name processes of your own (--pid)";

/* Filters of container runtimes return EPERM; the kernel itself returns EACCES. */
static const struct refusal filtered = {"capability",
	"perf_event_open is filtered, as container runtimes do, or the capability is missing",
	"allow perf_event_open in the container's seccomp profile and give CAP_PERFMON"};

static const struct refusal no_words = {"kernel", "the kernel refuses for an unknown reason",
	"see dmesg, and the error in man perf_event_open"};

static unsigned event_kind(const struct event *e)
{
	switch (e->type) {
	case PERF_TYPE_HARDWARE:
		return KIND_HARDWARE;
	case PERF_TYPE_HW_CACHE:
		return KIND_CACHE;
	case PERF_TYPE_SOFTWARE:
		return KIND_SOFTWARE;
	case PERF_TYPE_TRACEPOINT:
		return KIND_TRACEPOINT;
	default:
		return KIND_RAW;
	}
}

static bool use_fits(enum use use, const struct event *e, bool sampling, const struct machine *m)
{
	switch (use) {
	case USE_SAMPLING:
		return sampling;
	case USE_PRECISE:
		return e->precise > 0;
	case USE_RESERVED_BITS:
		return e->config >> 48 & 0x3fff;
	case USE_WITHOUT_KERNEL:
		return !m->may_see_kernel;
	case USE_ANY:
		break;
	}
	return true;
}

static bool rule_fits(
	const struct rule *rule, const struct event *e, bool sampling, const struct machine *m)
{
	return (rule->kinds & event_kind(e)) && use_fits(rule->use, e, sampling, m) &&
	       (!rule->arch || strncmp(m->arch, rule->arch, strlen(rule->arch)) == 0);
}

static struct refusal rights_explain(const struct event *e, int error, const struct machine *m)
{
	const int last = sizeof(no_rights) / sizeof(no_rights[0]) - 1;
	if (error == EPERM && m->paranoid < 3)
		return filtered;
	int row = m->paranoid + 1;
	struct refusal r = no_rights[row < 0 ? 0 : row > last ? last : row];
	if (!e && m->paranoid < 3)
		r.remedy = system_remedy;
	return r;
}

struct refusal refusal_explain(
	const struct event *e, int error, bool sampling, const struct machine *m)
{
	if (error < 0)
		error = -error;
	if (error == EACCES || error == EPERM)
		return rights_explain(e, error, m);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].error == error && rule_fits(&rules[i], e, sampling, m))
			return rules[i].refusal;
	return no_words;
}
