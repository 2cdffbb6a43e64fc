/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* At each context switch, the counts of this hart's groups are written to the hart's perf ring: the
 * same data that a context-switches sibling delivers. They go through a software event whose output
 * is redirected into that ring, so that they are in order of time with samples and the side band,
 * and nothing else has to be drained.
 *
 *      sched_switch ─▶ slots[hart] has the groups to read
 *                      counters[slot, member] is read ─▶ outputs[slot] ─▶ the hart's ring
 *
 * The tracepoint runs with the hart's interrupts off and before the kernel takes the counters from
 * the outgoing task, so it is never nested on a hart, and sees that task's counts.
 *
 * Built twice. With BTF the program also names the outgoing task, which perf cannot do for a thread
 * that was already reaped. With SWITCH_PLAIN it uses no kernel structures, and runs without BTF.
 */

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "daemon/kernel/switch_layout.h"

#define ENOSPC 28     /* the ring is full: a LOST record reports it */
#define EOPNOTSUPP 95 /* the output is not enabled, and then neither are the counters */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Sizes are set at load time, by the number of harts. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} outputs SEC(".maps");

#ifndef SWITCH_PLAIN
/* Only the fields used here; the loader relocates them for this kernel. */
struct task_struct {
	int pid, tgid;
} __attribute__((preserve_access_index));

/* Does the daemon use the same numbers? It may be in its own pid namespace. */
const volatile _Bool tells_who = 0;
#endif

static __always_inline int read_members(
	__u32 slot, const struct switch_slot *s, __u32 n, struct switch_values *v)
{
	struct bpf_perf_event_value read = {};

	for (__u32 i = 0; i < SWITCH_MEMBERS_MAX; i++) {
		if (i >= n)
			break;
		long r = bpf_perf_event_read_value(
			&counters, slot * SWITCH_MEMBERS_MAX + i, &read, sizeof(read));
		if (r)
			return r;
		v->member[i].value = read.counter;
		v->member[i].id = s->id[i];
		if (i == 0) {
			v->enabled_ns = read.enabled;
			v->running_ns = read.running;
		}
	}
	return 0;
}

static __always_inline void tell_group(
	void *ctx, __u32 slot, struct switch_slot *s, struct switch_values *v)
{
	__u32 n = s->n_members;

	if (n > SWITCH_MEMBERS_MAX)
		n = SWITCH_MEMBERS_MAX;
	v->n_members = n;
	v->n_missed = s->n_missed;
	long r = read_members(slot, s, n, v);
	if (!r)
		r = bpf_perf_event_output(ctx, &outputs, slot, v, SWITCH_VALUES_BYTES(n));
	if (!r)
		s->n_missed = 0;
	else if (r != -ENOSPC && r != -EOPNOTSUPP)
		s->n_missed++;
}

static __always_inline void tell_groups(void *ctx, struct switch_values *v)
{
	__u32 first = bpf_get_smp_processor_id() * SWITCH_GROUPS_MAX;

	for (__u32 i = 0; i < SWITCH_GROUPS_MAX; i++) {
		__u32 slot = first + i;
		struct switch_slot *s = bpf_map_lookup_elem(&slots, &slot);
		if (!s || s->n_members == 0)
			return;
		tell_group(ctx, slot, s, v);
	}
}

/* Both are called with (preempt, prev, next, …). Source: TRACE_EVENT(sched_switch) in
 * include/trace/events/sched.h of Linux 4.17 to 6.12. */
#ifdef SWITCH_PLAIN
SEC("raw_tp/sched_switch")
int on_switch(__u64 *args)
{
	struct switch_values v = {};

	tell_groups(args, &v);
	return 0;
}
#else
SEC("tp_btf/sched_switch")
int on_switch(__u64 *args)
{
	struct switch_values v = {};

	if (tells_who) {
		const struct task_struct *prev = (const struct task_struct *)args[1];
		v.pid = prev->tgid;
		v.tid = prev->pid;
	}
	tell_groups(args, &v);
	return 0;
}
#endif
