/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* At each exec, the program writes the arguments and the owner of the new program into a ring of the hart. The daemon
 * need not wake up for it, and the process need not live until the ring is read. If the ring has no room for the
 * arguments, the exec and its owner are written alone, since others must not learn of the new program by mistake.
 *
 * The tracepoint runs in the process, when the new program's memory and its rights are in place. The kernel wrote
 * the arguments a moment ago, so they are in memory.
 */

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stddef.h>

#include "daemon/kernel/exec_layout.h"

/* Source: include/linux/sched/coredump.h of Linux 6.12, MMF_DUMPABLE_MASK, SUID_DUMP_USER. */
#define DUMPABLE_MASK 3
#define DUMPABLE_BY_USER 1

#define ENOSPC 28

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Its size is set at load time, by the number of harts. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} outputs SEC(".maps");

/* The record being made: too large for the program's stack. The kernel does not let a program interrupt itself. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct exec_news);
} news SEC(".maps");

/* Is the daemon in the first user namespace? Else it knows users by other numbers. */
const volatile _Bool sees_users = 0;

/* Only the fields used here; the loader relocates them for this kernel. */
struct caps { /* one word, before Linux 6.3 two halves */
	__u64 word;
};

struct user_namespace {
	int level;
} __attribute__((preserve_access_index));

struct id {
	__u32 val;
} __attribute__((preserve_access_index));

struct cred {
	struct id uid, gid, suid, sgid, euid, egid, fsuid, fsgid;
	struct caps cap_permitted;
	struct user_namespace *user_ns;
} __attribute__((preserve_access_index));

struct mm_struct {
	unsigned long arg_start, arg_end;
	unsigned long flags;
} __attribute__((preserve_access_index));

/* Since Linux 6.18. */
struct mm_flags {
	unsigned long __mm_flags[1];
} __attribute__((preserve_access_index));
struct mm_struct___bitmap {
	struct mm_flags flags;
} __attribute__((preserve_access_index));

struct task_struct {
	struct mm_struct *mm;
	const struct cred *real_cred;
} __attribute__((preserve_access_index));

/* Could the user read the process's memory, as far as its program is concerned? < 0: not known. */
static __always_inline int is_dumpable(struct mm_struct *mm)
{
	unsigned long flags = 0;

	if (bpf_core_field_exists(mm->flags)) {
		flags = BPF_CORE_READ(mm, flags);
	} else {
		struct mm_struct___bitmap *newer = (void *)mm;
		if (!bpf_core_field_exists(newer->flags.__mm_flags))
			return -1;
		flags = BPF_CORE_READ(newer, flags.__mm_flags[0]);
	}
	return (flags & DUMPABLE_MASK) == DUMPABLE_BY_USER;
}

static __always_inline _Bool same_ids(const struct cred *c)
{
	__u32 uid = BPF_CORE_READ(c, uid.val), gid = BPF_CORE_READ(c, gid.val);

	return BPF_CORE_READ(c, euid.val) == uid && BPF_CORE_READ(c, suid.val) == uid &&
	       BPF_CORE_READ(c, fsuid.val) == uid && BPF_CORE_READ(c, egid.val) == gid &&
	       BPF_CORE_READ(c, sgid.val) == gid && BPF_CORE_READ(c, fsgid.val) == gid;
}

/* By the rule of rights.h. In another user namespace it depends on who made that. */
static __always_inline __u32 judge(const struct cred *c, struct mm_struct *mm)
{
	const int dumpable = is_dumpable(mm);
	const _Bool same = same_ids(c);

	if (!sees_users)
		return EXEC_UNJUDGED | (same && dumpable > 0 ? 0 : EXEC_MAY_HIDE);
	if (!same || dumpable == 0)
		return 0;
	if (dumpable < 0)
		return EXEC_UNJUDGED | EXEC_MAY_HIDE;
	if (BPF_CORE_READ(c, user_ns, level) != 0)
		return EXEC_UNJUDGED;
	__u64 permitted = 1;
	bpf_core_read(&permitted, sizeof(permitted), &c->cap_permitted);
	return permitted == 0 ? EXEC_WHOLE : 0;
}

/* Called with (task, old pid, binary format). Source: TRACE_EVENT(sched_process_exec) in
 * include/trace/events/sched.h of Linux 5.5 to 6.18. */
/* cppcheck-suppress unknownMacro */
SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *args)
{
	struct task_struct *task = (struct task_struct *)args[0];
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	const struct cred *cred = BPF_CORE_READ(task, real_cred);
	const __u32 zero = 0;
	struct exec_news *n = bpf_map_lookup_elem(&news, &zero);

	if (!n || !mm || !cred)
		return 0;
	const unsigned long start = BPF_CORE_READ(mm, arg_start), end = BPF_CORE_READ(mm, arg_end);
	__u64 bytes = end > start ? end - start : 0;

	n->head = (struct exec_head){
		.uid = BPF_CORE_READ(cred, uid.val),
		.gid = BPF_CORE_READ(cred, gid.val),
		.flags = judge(cred, mm),
		.n_args = bytes,
	};
	if (bytes > EXEC_ARGS_BYTES_MAX)
		bytes = EXEC_ARGS_BYTES_MAX;
	if (bpf_probe_read_user(n->args, bytes, (const void *)start))
		bytes = 0;
	n->head.n_copied = bytes;
	long r = bpf_perf_event_output(
		args, &outputs, BPF_F_CURRENT_CPU, n, sizeof(n->head) + bytes);
	if (r == -ENOSPC && bytes) {
		n->head.n_copied = 0;
		bpf_perf_event_output(args, &outputs, BPF_F_CURRENT_CPU, n, sizeof(n->head));
	}
	return 0;
}
