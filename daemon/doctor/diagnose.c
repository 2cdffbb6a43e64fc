/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A board's owner can change firmware, device tree, kernel and sysctls, and cannot change the core.
 * So each refusal names the lowest layer that may be the cause, with a remedy in that layer; if the
 * core itself lacks something, the finding says that there is no remedy.
 */
#include "daemon/doctor/diagnose.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/pmu/event/event_on_core.h"
#include "daemon/sampler/attr.h"
#include "proto/syntax/unit.h"

#define DEVICES "/sys/bus/event_source/devices"
#define TEXT_BYTES 1024

struct diagnosing {
	const struct diagnose_question *q;
	const struct platform *platform;
	int (*tell)(void *userdata, const struct diagnosis *d);
	void *userdata;
	int result;
};

__attribute__((format(printf, 5, 6))) static void say(struct diagnosing *d, const char *topic,
	const char *state, const char *remedy, const char *format, ...)
{
	char text[TEXT_BYTES];
	if (d->result != 0)
		return;
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	const struct diagnosis found = {topic, state, text, remedy ? remedy : ""};
	d->result = d->tell(d->userdata, &found);
}

static bool is_riscv(const struct diagnosing *d)
{
	return strncmp(d->q->machine->arch, "riscv", 5) == 0;
}

/* --- core ------------------------------------------------------------------------------------- */

static void say_core(struct diagnosing *d)
{
	const struct platform_identity *id = cores_identity(d->q->cores, d->q->hart);
	const struct platform *p = d->platform;
	char who[128], remedy[512];
	platform_identity_says(id, who, sizeof(who));
	if (p->generic)
		say(d, "core", "info", platform_unknown_says(id, remedy, sizeof(remedy)),
			"%s, %s: no platform describes this core; only generic events are known",
			p->title, id->read ? who : "identity not known");
	else
		say(d, "core", "ok", NULL, "%s, %s", p->title, who);
	if (p->vector_bits)
		say(d, "core", "info", NULL, "vectors of %u bits%s%s", p->vector_bits,
			p->vector_says && *p->vector_says ? ": " : "",
			p->vector_says ? p->vector_says : "");
}

/* --- sampling --------------------------------------------------------------------------------- */

static void name_is_cpu(void *userdata, const char *name)
{
	bool *found = userdata;
	*found |= strncmp(name, "cpu", 3) == 0 || strncmp(name, "armv", 4) == 0;
}

/* Did a driver register a PMU for the cores at all? */
static bool has_pmu(const struct diagnosing *d)
{
	const struct kernel *k = d->q->kernel;
	bool found = false;
	k->list(k->userdata, DEVICES, name_is_cpu, &found);
	return found;
}

static const char *remedy_missing(const struct diagnosing *d)
{
	if (!is_riscv(d))
		return "on a virtual machine, let the host pass the PMU through; on a board, use a "
		       "kernel with this core's PMU driver";
	if (!has_pmu(d))
		return "driver: use a kernel with CONFIG_RISCV_PMU_SBI; firmware: use an SBI with "
		       "the PMU extension (OpenSBI), and a pmu node in the device tree";
	return "firmware: map the event in the pmu node of the device tree "
	       "(riscv,event-to-mhpmcounters), or describe the core's own code "
	       "in " PLATFORM_FOLDER_OVERRIDES;
}

static const char *remedy_no_interrupt(const struct diagnosing *d, bool fixed)
{
	if (d->platform->overflow == PLATFORM_OVERFLOW_NONE)
		return "core: no remedy, this core has no overflow interrupt; the clock samples, "
		       "and the counters are read with each sample";
	if (fixed && d->platform->overflow == PLATFORM_OVERFLOW_PROGRAMMABLE)
		return "core: no remedy for the fixed counters; an event of the programmable ones "
		       "samples instead";
	if (!is_riscv(d))
		return "driver: use a kernel whose driver for this PMU uses its interrupt; "
		       "firmware: describe the PMU's interrupt in the device tree or ACPI tables";
	return "core: it needs Sscofpmf or the vendor's own overflow interrupt; firmware: "
	       "sscofpmf in the device tree's riscv,isa-extensions, and an OpenSBI that delegates "
	       "the interrupt; driver: Linux 5.18 or later (grep isa /proc/cpuinfo)";
}

static const char *remedy_try(const struct diagnosing *d, const struct rung_try *t)
{
	if (t->busy)
		return "end the other profiler; on x86 the kernel's watchdog also takes a counter: "
		       "sysctl kernel.nmi_watchdog=0";
	if (t->silent || t->error == EOPNOTSUPP)
		return remedy_no_interrupt(d, t->rung == RUNG_CYCLES);
	if (t->error == ENOENT)
		return remedy_missing(d);
	if (t->error == EACCES || t->error == EPERM ||
		(t->error == EINVAL && is_riscv(d) && !d->q->machine->may_see_kernel)) {
		struct event cycles = event_cycles();
		return refusal_explain(&cycles, t->error, true, d->q->machine).remedy;
	}
	return "";
}

/* Report that a plan in force has a group that is not cut at switches. */
static void say_uncut(struct diagnosing *d)
{
	const struct plan *p = d->q->plan;
	if (p->cut & CUT_COUNT)
		say(d, "sampling", "info", NULL,
			"context switches are only counted: a sample has counts only if no switch "
			"came since the previous sample");
	else if (p->cut & CUT_NONE)
		say(d, "sampling", "warn",
			"allow the event context-switches (sysctl kernel.perf_event_paranoid)",
			"context switches can neither cut counts nor be counted: no sample has "
			"counts");
}

static void say_sampling(struct diagnosing *d)
{
	const struct plan *p = d->q->plan;
	if (p->rung == RUNG_NONE) {
		const char *remedy = p->n_tries ? remedy_try(d, &p->tries[p->n_tries - 1]) : "";
		say(d, "sampling", "fail", *remedy ? remedy : "run doctor as root, and see dmesg",
			"no event can sample on this hart: %s", p->reason);
	} else {
		say(d, "sampling", "ok", NULL, "rung %s (%s), leader %s%s%s", rung_letter(p->rung),
			rung_says(p->rung), p->leader.name, p->user_only ? ", user mode only" : "",
			p->n_siblings ? ", with counters" : "");
	}
	if (p->yields)
		say(d, "sampling", "warn",
			"end the programs that use counters, or expect no IPC for that time", "%s",
			p->reason);
	say_uncut(d);
	for (int i = 0; i < p->n_tries; i++) {
		const struct rung_try *t = &p->tries[i];
		bool taken = i == p->n_tries - 1 && p->rung != RUNG_NONE;
		if (!taken && p->rung != RUNG_NONE)
			say(d, "sampling", "info", remedy_try(d, t), "rung %s not taken: %s",
				rung_letter(t->rung), t->says);
		else if (taken && t->dead_sibling)
			say(d, "sampling", "info", remedy_try(d, t), "%s", t->says);
	}
}

/* --- counters --------------------------------------------------------------------------------- */

static const char *interrupts_say(enum platform_overflow o)
{
	switch (o) {
	case PLATFORM_OVERFLOW_ALL:
		return ", which all interrupt on overflow";
	case PLATFORM_OVERFLOW_PROGRAMMABLE:
		return ", which interrupt on overflow; the fixed ones for cycles and instructions "
		       "do not";
	case PLATFORM_OVERFLOW_NONE:
		return ", none of which interrupts on overflow";
	case PLATFORM_OVERFLOW_UNKNOWN:
		break;
	}
	return "";
}

/* Did no event of the core open? */
static bool counts_nothing(const struct plan *p)
{
	int n_refused = 0;
	for (int i = 0; i < p->n_tries; i++) {
		if (p->tries[i].rung >= RUNG_CLOCK)
			continue;
		if (p->tries[i].error != ENOENT)
			return false;
		n_refused++;
	}
	return n_refused > 0;
}

static void say_counters(struct diagnosing *d)
{
	const struct platform *p = d->platform;
	int n = __builtin_popcountll(p->counters);
	if (n > 0 && counts_nothing(d->q->plan))
		say(d, "counters", "info", NULL,
			"no counter can be used here: no event of the core opens (the core itself "
			"has %d programmable one%s)",
			n, n > 1 ? "s" : "");
	else if (n > 0)
		say(d, "counters", "info", NULL, "%d programmable counter%s (mask 0x%llx)%s", n,
			n > 1 ? "s" : "", (unsigned long long)p->counters,
			interrupts_say(p->overflow));
	else if (p->overflow != PLATFORM_OVERFLOW_UNKNOWN)
		say(d, "counters", "info", NULL, "programmable counters%s",
			interrupts_say(p->overflow));
	char counted[UNIT_TEXT_BYTES];
	if (unit_part_text(d->q->counted_share, counted))
		say(d, "counters", "warn",
			"end the other profiler, or expect scaled figures; mperf's own recordings "
			"and stats share counters too",
			"another profiler also uses counters: always-on sampling had them %s of "
			"the time",
			counted);
}

/* --- modes ------------------------------------------------------------------------------------ */

/* Open a cycles counter of this thread on that hart. */
static int try_cycles(const struct diagnosing *d, bool exclude_kernel)
{
	const struct kernel *k = d->q->kernel;
	struct event e = event_cycles();
	struct perf_event_attr attr = {.size = sizeof(attr), .disabled = 1};
	const struct event_place place = {
		.kernel = k,
		.platform = d->platform,
		.hart = d->q->hart,
		.group_fd = -1,
	};
	e.exclude_kernel = e.exclude_hv = exclude_kernel;
	event_to_attr(&e, &attr);
	int fd = event_open_at(&place, &e, &attr);
	if (fd >= 0)
		k->event_close(k->userdata, fd);
	return fd < 0 ? fd : 0;
}

static void say_modes(struct diagnosing *d)
{
	int filtered = try_cycles(d, true);
	int all = d->q->machine->may_see_kernel ? try_cycles(d, false) : -EACCES;
	if (filtered == -EINVAL && all == 0)
		say(d, "modes", "warn",
			is_riscv(d) ? "core: no remedy, only Sscofpmf can count modes separately; "
				      "read the figures as user and kernel together"
				    : "read the figures as user and kernel together",
			"the driver cannot count user mode separately (exclude_kernel): all "
			"figures include the kernel");
	else if (filtered == 0 && d->platform->fixed_unfiltered)
		say(d, "modes", "warn", "core: use an event of the programmable counters",
			"exclude_kernel is accepted, but the fixed counters of cycles and "
			"instructions ignore it: they count every mode");
	else if (filtered == 0)
		say(d, "modes", "ok", NULL, "user and kernel mode can be counted separately");
}

/* --- errata ----------------------------------------------------------------------------------- */

static void say_errata(struct diagnosing *d)
{
	for (size_t i = 0; i < d->platform->n_notes; i++) {
		const struct platform_note *n = &d->platform->note[i];
		bool seen = n->origin.verified && strcmp(n->origin.verified, "no") != 0;
		if (n->says && *n->says)
			say(d, "errata", "info", NULL, "%s%s", n->says,
				seen ? "" : " (not verified on a board)");
	}
}

int diagnose_hart(const struct diagnose_question *q,
	int (*tell)(void *userdata, const struct diagnosis *d), void *userdata)
{
	struct diagnosing d = {
		.q = q,
		.platform = cores_platform(q->cores, q->hart),
		.tell = tell,
		.userdata = userdata,
	};
	say_core(&d);
	say_sampling(&d);
	say_counters(&d);
	say_modes(&d);
	say_errata(&d);
	return d.result;
}
