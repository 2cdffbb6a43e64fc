/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/decode/offcpu.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Calls that wait for one thing, whatever their arguments. Some machines have only the newer ones. */
static const struct {
	int32_t number;
	enum offcpu_kind kind;
} calls[] = {
	{SYS_futex, OFFCPU_LOCK},
#ifdef SYS_futex_wait
	{SYS_futex_wait, OFFCPU_LOCK},
#endif
#ifdef SYS_futex_waitv
	{SYS_futex_waitv, OFFCPU_LOCK},
#endif
	{SYS_flock, OFFCPU_LOCK},
	{SYS_semtimedop, OFFCPU_LOCK},
	{SYS_semop, OFFCPU_LOCK},
	{SYS_nanosleep, OFFCPU_SLEEP},
	{SYS_clock_nanosleep, OFFCPU_SLEEP},
	{SYS_rt_sigtimedwait, OFFCPU_SLEEP},
	{SYS_rt_sigsuspend, OFFCPU_SLEEP},
#ifdef SYS_pause
	{SYS_pause, OFFCPU_SLEEP},
#endif
#ifdef SYS_poll
	{SYS_poll, OFFCPU_POLL},
	{SYS_select, OFFCPU_POLL},
	{SYS_epoll_wait, OFFCPU_POLL},
#endif
	{SYS_ppoll, OFFCPU_POLL},
	{SYS_pselect6, OFFCPU_POLL},
	{SYS_epoll_pwait, OFFCPU_POLL},
#ifdef SYS_epoll_pwait2
	{SYS_epoll_pwait2, OFFCPU_POLL},
#endif
	{SYS_io_getevents, OFFCPU_DISK},
#ifdef SYS_io_uring_enter
	{SYS_io_uring_enter, OFFCPU_POLL},
#endif
	{SYS_wait4, OFFCPU_CHILD},
	{SYS_waitid, OFFCPU_CHILD},
#ifdef SYS_vfork
	{SYS_vfork, OFFCPU_CHILD},
#endif
	{SYS_fsync, OFFCPU_DISK},
	{SYS_fdatasync, OFFCPU_DISK},
	{SYS_sync, OFFCPU_DISK},
	{SYS_syncfs, OFFCPU_DISK},
};

static enum offcpu_kind kind_of_file(unsigned type)
{
	switch (type << 12) {
	case S_IFIFO:
		return OFFCPU_PIPE;
	case S_IFSOCK:
		return OFFCPU_NETWORK;
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
		return OFFCPU_DISK;
	case S_IFCHR:
		return OFFCPU_DEVICE;
	default:
		return OFFCPU_OTHER;
	}
}

/* Does the call's first argument name a file that it may wait for? Others take descriptors there too, and wait for
 * something else, such as openat for a pipe's other end. */
static bool waits_for_file(int32_t number)
{
	static const int32_t io[] = {SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64,
		SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_ioctl, SYS_fcntl, SYS_ftruncate,
		SYS_fallocate, SYS_getdents64, SYS_splice, SYS_tee, SYS_vmsplice, SYS_connect,
		SYS_accept, SYS_accept4, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg,
#ifdef SYS_sendmmsg
		SYS_sendmmsg, SYS_recvmmsg,
#endif
#ifdef SYS_preadv2
		SYS_preadv2, SYS_pwritev2,
#endif
		SYS_sendfile};
	for (size_t i = 0; i < sizeof(io) / sizeof(*io); i++)
		if (io[i] == number)
			return true;
	return false;
}

/* Numbers of a 32-bit program's calls are others, and have no name here. */
static enum offcpu_kind kind_of_call(const struct offcpu_head *h)
{
	if (h->flags & OFFCPU_32_BIT)
		return OFFCPU_OTHER;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].number == h->syscall)
			return calls[i].kind;
	return waits_for_file(h->syscall) ? kind_of_file(h->file) : OFFCPU_OTHER;
}

static enum offcpu_kind kind_of(const struct offcpu_head *h)
{
	if (h->flags & OFFCPU_IS_STOPPED)
		return OFFCPU_STOPPED;
	if (h->flags & OFFCPU_RUNNABLE)
		return OFFCPU_HART;
	if (h->flags & OFFCPU_KERNEL_THREAD)
		return h->flags & OFFCPU_IN_DISK ? OFFCPU_DISK : OFFCPU_OTHER;
	if (h->syscall < 0)
		return OFFCPU_FAULT;
	return h->flags & OFFCPU_IN_DISK ? OFFCPU_DISK : kind_of_call(h);
}

/* Return addresses, as all of a chain but its first are expected to be. */
static void take_chain(struct offcpu_thread *t, const struct offcpu_record *whole)
{
	t->chain[0] = PERF_CONTEXT_KERNEL;
	memcpy(&t->chain[1], whole->chain, sizeof(whole->chain));
	if (t->chain[1])
		t->chain[1]--;
	t->record.sample.callchain = t->chain;
	t->record.sample.n_callchain = whole->head.n_chain ? whole->head.n_chain + 1u : 0;
}

/* Without a stack, the registers still tell the innermost function. */
static void take_stack(struct offcpu_thread *t, const struct offcpu_head *h, const uint8_t *regs,
	const uint8_t *stack)
{
	struct record_sample *s = &t->record.sample;
	if (h->flags & OFFCPU_KERNEL_THREAD)
		return;
	s->regs_abi = h->flags & OFFCPU_32_BIT ? PERF_SAMPLE_REGS_ABI_32 : PERF_SAMPLE_REGS_ABI_64;
	s->regs = (const uint64_t *)(const void *)regs;
	s->stack = stack;
	s->n_stack = h->n_stack;
	/* the copy ends before the first page that is not there, if that comes first */
	s->stack_fills = h->n_stack > OFFCPU_STACK_MAX - 2 * 4096;
}

static bool is_task(uint32_t pid, uint32_t tid)
{
	return pid != 0 && pid <= INT32_MAX && tid != 0 && tid <= INT32_MAX;
}

static bool is_hostile(const struct offcpu_head *h, bool is_waker)
{
	if (h->n_chain > OFFCPU_CHAIN_MAX || h->n_stack > OFFCPU_STACK_MAX || h->n_stack % 8 ||
		is_waker != !!(h->flags & OFFCPU_WAKER))
		return true;
	if (!is_waker)
		return !is_task(h->pid, h->tid) || h->wakee != 0;
	const bool is_nobody = h->pid == 0 && h->tid == 0;
	return h->wait == 0 || h->wakee == 0 || h->wakee > INT32_MAX ||
	       !(is_nobody || is_task(h->pid, h->tid)) ||
	       (h->flags & OFFCPU_INTERRUPT && !is_nobody) || h->flags & OFFCPU_SAME;
}

static void take_head(struct offcpu_thread *t, const struct offcpu_head *h)
{
	t->same = h->flags & OFFCPU_SAME;
	t->again = h->flags & OFFCPU_AGAIN;
	t->kind = kind_of(h);
	t->restarts = t->kind == OFFCPU_OTHER && h->syscall == SYS_restart_syscall;
	t->wait = h->wait;
	t->wakee = (pid_t)h->wakee;
	t->is_interrupt = h->flags & OFFCPU_INTERRUPT;
	memset(&t->record, 0, offsetof(struct record, sample.read));
	t->record.kind = RECORD_SAMPLE;
	t->record.pid = h->pid;
	t->record.tid = h->tid;
	t->record.cpu = h->hart;
	t->record.sample.kernel = true;
	t->record.sample.period = 1;
}

static int decode(const uint8_t *bytes, size_t n, bool is_waker, struct offcpu_thread *ret_thread,
	size_t *ret_used)
{
	struct offcpu_record whole;
	struct offcpu_head *h = &whole.head;
	if (n < sizeof(*h))
		return RECORD_TRUNCATED;
	memcpy(h, bytes, sizeof(*h));
	if (!is_waker && h->flags & OFFCPU_END)
		return OFFCPU_ENDS;
	if (is_hostile(h, is_waker))
		return RECORD_HOSTILE;

	struct offcpu_thread *t = ret_thread;
	take_head(t, h);
	*ret_used = sizeof(*h);
	if (t->same)
		return 0;
	if (n < sizeof(whole) + h->n_stack)
		return RECORD_TRUNCATED;
	memcpy(&whole, bytes, sizeof(whole));
	take_chain(t, &whole);
	take_stack(t, h, bytes + offsetof(struct offcpu_record, regs), bytes + sizeof(whole));
	*ret_used = sizeof(whole) + h->n_stack;
	return 0;
}

int offcpu_decode(
	const uint8_t *bytes, size_t n, struct offcpu_thread *ret_thread, size_t *ret_used)
{
	return decode(bytes, n, false, ret_thread, ret_used);
}

int offcpu_decode_waking(const uint8_t *bytes, size_t n, struct offcpu_thread *ret_thread)
{
	const size_t before = offsetof(struct offcpu_waking, record);
	size_t used;
	if (n < before)
		return RECORD_TRUNCATED;
	int r = decode(bytes + before, n - before, true, ret_thread, &used);
	if (r == 0)
		memcpy(&ret_thread->record.time_ns, bytes + offsetof(struct offcpu_waking, time_ns),
			sizeof(uint64_t));
	return r;
}
