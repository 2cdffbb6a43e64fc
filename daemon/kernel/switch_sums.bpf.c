/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* At each context switch, the program adds the counts of this hart's groups since the last switch to a sum
 * of the outgoing task. It writes nothing into the ring until a sample wants the sum:
 *
 *      sched_switch ─▶ counters[slot, member] is read ─▶ sums[task] += reading - last reading
 *      sample of a task ─▶ the same, then a record with the sum ─▶ the hart's ring
 *      task ends ─▶ the same
 *
 * The record comes into the ring just before the sample. It has all counts of the task since its last
 * record, so the values that the sample itself carries are not used.
 *
 * The tracepoint runs with interrupts off and before the kernel takes the counters from the outgoing
 * task. A sample may come by NMI and meet it half done. Then `in_use` is set, and the sum waits for
 * the next sample. A sum is changed only on the hart on which its task runs.
 */

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "daemon/kernel/switch_layout.h"

#define barrier() asm volatile("" ::: "memory")

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Sizes of the arrays are set at load time, by the number of harts. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_sums_slot);
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

struct sum_key {
	__u32 tid;
	__u32 group; /* of the hart: 0 … SWITCH_GROUPS_MAX - 1 */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SWITCH_TASKS_MAX);
	__type(key, struct sum_key);
	__type(value, struct task_sum);
} sums SEC(".maps");

/* The number of sums of a user. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SWITCH_USERS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} users SEC(".maps");

/* Only the fields used here; the loader relocates them for this kernel. */
struct task_struct {
	int pid, tgid, exit_state;
} __attribute__((preserve_access_index));

/* Does the daemon use the same numbers? It may be in its own pid namespace. */
const volatile _Bool tells_who = 0;

/* The task of a record. */
struct who {
	__u32 pid, tid;
};

static __always_inline __u32 members_of(const struct switch_sums_slot *s)
{
	return s->n_members > SWITCH_MEMBERS_MAX ? SWITCH_MEMBERS_MAX : s->n_members;
}

static __always_inline void clear_sum(struct task_sum *sum)
{
	sum->enabled_ns = sum->running_ns = 0;
	for (__u32 i = 0; i < SWITCH_MEMBERS_MAX; i++)
		sum->value[i] = 0;
}

/* Write the sum with the ids of that slot's group. */
static __always_inline long write_record(void *ctx, __u32 slot, struct switch_sums *v,
	const struct switch_sums_slot *from, struct task_sum *sum, const struct who *who)
{
	__u32 n = members_of(from);

	v->head.pid = tells_who ? who->pid : 0;
	v->head.tid = tells_who ? who->tid : 0;
	v->head.n_members = n;
	v->head.enabled_ns = sum->enabled_ns;
	v->head.running_ns = sum->running_ns;
	for (__u32 i = 0; i < SWITCH_MEMBERS_MAX; i++) {
		if (i >= n)
			break;
		v->member[i].id = from->id[i];
		v->member[i].sum = sum->value[i];
	}
	long r = bpf_perf_event_output(ctx, &outputs, slot, v, SWITCH_SUMS_BYTES(n));
	if (!r)
		clear_sum(sum);
	return r;
}

static __always_inline void tell_sum(void *ctx, __u32 slot, struct switch_sums_slot *s,
	struct task_sum *sum, const struct who *who)
{
	s->record.head.n_missed = s->n_missed;
	s->record.head.ran_ns = s->ran_ns;
	if (!write_record(ctx, slot, &s->record, s, sum, who))
		s->n_missed = s->ran_ns = 0; /* otherwise they go on, and so does the sum */
}

/* The task ran last on a hart whose group has other events: write the sum from there first. */
static __always_inline void change_kind(void *ctx, __u32 slot, struct switch_sums_slot *s,
	struct task_sum *sum, const struct who *who)
{
	__u32 before = sum->slot;
	struct switch_sums_slot *from = bpf_map_lookup_elem(&slots, &before);

	if (from && from->kind == sum->kind && sum->enabled_ns) {
		s->record.head.n_missed = s->record.head.ran_ns = 0;
		write_record(ctx, slot, &s->record, from, sum, who);
	}
	clear_sum(sum);
	sum->kind = s->kind;
	sum->slot = slot;
}

static __always_inline __u32 *sums_of_user(__u32 uid)
{
	const __u32 none = 0;
	__u32 *n = bpf_map_lookup_elem(&users, &uid);

	if (n)
		return n;
	bpf_map_update_elem(&users, &uid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&users, &uid);
}

/* Add an entry for the running task, from the slot's spare one. Harts that do so at once may exceed the
 * user's share by their number. */
static __always_inline void add_sum(
	__u32 slot, struct switch_sums_slot *s, const struct sum_key *key)
{
	__u32 uid = (__u32)bpf_get_current_uid_gid();
	__u32 *n_sums = sums_of_user(uid);

	clear_sum(&s->spare);
	s->spare.kind = s->kind;
	s->spare.slot = slot;
	s->spare.uid = uid;
	if (n_sums && *n_sums < SWITCH_USER_TASKS_MAX &&
		!bpf_map_update_elem(&sums, key, &s->spare, BPF_NOEXIST))
		__sync_fetch_and_add(n_sums, 1);
}

/* Remove the sum of a task that ends, since another task gets that number. With the last sum of a user, the
 * user's entry is removed, too. If another task of that user begins on another hart just then, its sum is not
 * counted. */
static __always_inline void remove_sum(const struct sum_key *key)
{
	const struct task_sum *sum = bpf_map_lookup_elem(&sums, key);

	if (!sum)
		return;
	__u32 uid = sum->uid;
	__u32 *n_sums = bpf_map_lookup_elem(&users, &uid);
	if (bpf_map_delete_elem(&sums, key) || !n_sums)
		return;
	if (*n_sums > 1)
		__sync_fetch_and_add(n_sums, -1);
	else
		bpf_map_delete_elem(&users, &uid);
}

/* The task's sum of that group; the slot's spare one if there is no room for another. */
static __always_inline struct task_sum *find_sum(void *ctx, __u32 slot, struct switch_sums_slot *s,
	const struct sum_key *key, const struct who *who)
{
	struct task_sum *sum = bpf_map_lookup_elem(&sums, key);

	if (!sum) {
		add_sum(slot, s, key);
		sum = bpf_map_lookup_elem(&sums, key);
	}
	if (!sum)
		return &s->spare;
	if (sum->kind != s->kind)
		change_kind(ctx, slot, s, sum, who);
	return sum;
}

/* Read the members of a slot. 0, or the error of a member that cannot be read. */
static __always_inline long read_members(
	__u32 slot, const struct switch_sums_slot *s, struct task_sum *now)
{
	struct bpf_perf_event_value read = {};
	__u32 n = members_of(s);

	for (__u32 i = 0; i < SWITCH_MEMBERS_MAX; i++) {
		if (i >= n)
			break;
		long r = bpf_perf_event_read_value(
			&counters, slot * SWITCH_MEMBERS_MAX + i, &read, sizeof(read));
		if (r)
			return r;
		now->value[i] = read.counter;
		if (i == 0) {
			now->enabled_ns = read.enabled;
			now->running_ns = read.running;
		}
	}
	return 0;
}

/* Can `now` follow the last reading? Not if the group was opened again in between. */
static __always_inline _Bool follows(const struct switch_sums_slot *s, const struct task_sum *now)
{
	if (!s->known || now->enabled_ns < s->enabled_ns || now->running_ns < s->running_ns)
		return 0;
	for (__u32 i = 0; i < SWITCH_MEMBERS_MAX; i++) {
		if (i >= members_of(s))
			break;
		if (now->value[i] < s->last[i])
			return 0;
	}
	return 1;
}

static __always_inline void add_stretch(
	struct task_sum *sum, const struct switch_sums_slot *s, const struct task_sum *now)
{
	sum->enabled_ns += now->enabled_ns - s->enabled_ns;
	sum->running_ns += now->running_ns - s->running_ns;
	for (__u32 i = 0; i < SWITCH_MEMBERS_MAX; i++) {
		if (i >= members_of(s))
			break;
		sum->value[i] += now->value[i] - s->last[i];
	}
}

static __always_inline void keep_reading(struct switch_sums_slot *s, const struct task_sum *now)
{
	s->enabled_ns = now->enabled_ns;
	s->running_ns = now->running_ns;
	for (__u32 i = 0; i < SWITCH_MEMBERS_MAX; i++) {
		if (i >= members_of(s))
			break;
		s->last[i] = now->value[i];
	}
	s->known = 1;
}

/* Add the group's counts since its last reading to the sums of the task of `key`. */
static __always_inline void take_group(void *ctx, __u32 slot, struct switch_sums_slot *s,
	const struct sum_key *key, const struct who *who, _Bool tells)
{
	struct task_sum now = {};

	if (read_members(slot, s, &now)) {
		s->n_missed++;
		s->known = 0;
		return;
	}
	if (key->tid) { /* the hart did not idle */
		struct task_sum *sum = find_sum(ctx, slot, s, key, who);
		if (follows(s, &now)) {
			s->ran_ns += now.enabled_ns - s->enabled_ns;
			add_stretch(sum, s, &now);
		}
		if (tells || sum == &s->spare)
			tell_sum(ctx, slot, s, sum, who);
	}
	keep_reading(s, &now);
}

/* Called with (preempt, prev, next, …). Source: TRACE_EVENT(sched_switch) in
 * include/trace/events/sched.h of Linux 4.17 to 6.12. */
/* cppcheck-suppress unknownMacro */
SEC("tp_btf/sched_switch")
int on_switch(__u64 *args)
{
	const struct task_struct *prev = (const struct task_struct *)args[1];
	const struct who who = {.pid = prev->tgid, .tid = prev->pid};
	_Bool ends = prev->exit_state != 0 && who.tid != 0;
	__u32 first = bpf_get_smp_processor_id() * SWITCH_GROUPS_MAX;

	for (__u32 i = 0; i < SWITCH_GROUPS_MAX; i++) {
		__u32 slot = first + i;
		const struct sum_key key = {.tid = who.tid, .group = i};
		struct switch_sums_slot *s = bpf_map_lookup_elem(&slots, &slot);
		if (s && s->n_members) {
			s->in_use = 1;
			barrier();
			take_group(args, slot, s, &key, &who, ends);
			barrier();
			s->in_use = 0;
		} else if (!ends) {
			break;
		}
		if (ends)
			remove_sum(&key);
	}
	return 0;
}

/* Write an empty record, since the sum is being changed: it comes with the next sample. */
static __always_inline void tell_nothing(void *ctx, __u32 slot)
{
	struct switch_sums_head none = {};

	bpf_perf_event_output(ctx, &outputs, slot, &none, sizeof(none));
}

/* A leader fires. Returns 1: the sample is written after our record. */
SEC("perf_event")
int on_sample(void *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	const struct who who = {.pid = id >> 32, .tid = (__u32)id};
	__u32 first = bpf_get_smp_processor_id() * SWITCH_GROUPS_MAX;

	for (__u32 i = 0; i < SWITCH_GROUPS_MAX; i++) {
		__u32 slot = first + i;
		const struct sum_key key = {.tid = who.tid, .group = i};
		struct switch_sums_slot *s = bpf_map_lookup_elem(&slots, &slot);
		if (!s || !s->n_members)
			break;
		if (s->in_use)
			tell_nothing(ctx, slot);
		else
			take_group(ctx, slot, s, &key, &who, 1);
	}
	return 1;
}
