/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of what looks at threads without a hart decode to, daemon/decode/offcpu.c */

#include "daemon/decode/offcpu.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/test.h"

EACH_TEST();

static struct offcpu_thread thread;
static size_t used;
static uint8_t bytes[OFFCPU_THREAD_BYTES_MAX];

static struct offcpu_head head(int32_t syscall, uint16_t flags)
{
	return (struct offcpu_head){
		.pid = 40, .tid = 41, .hart = 3, .syscall = syscall, .flags = flags};
}

static int decode(const struct offcpu_head *h)
{
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, h, sizeof(*h));
	return offcpu_decode(bytes, sizeof(bytes), &thread, &used);
}

static enum offcpu_kind kind(struct offcpu_head h)
{
	ck_assert_int_eq(decode(&h), 0);
	return thread.kind;
}

static enum offcpu_kind kind_of_file(mode_t type)
{
	struct offcpu_head h = head(SYS_read, 0);
	h.file = (uint8_t)(type >> 12);
	return kind(h);
}

TEST(the_call_tells_what_is_waited_for)
{
	ck_assert_int_eq(kind(head(SYS_futex, 0)), OFFCPU_LOCK);
	ck_assert_int_eq(kind(head(SYS_clock_nanosleep, 0)), OFFCPU_SLEEP);
	ck_assert_int_eq(kind(head(SYS_ppoll, 0)), OFFCPU_POLL);
	ck_assert_int_eq(kind(head(SYS_wait4, 0)), OFFCPU_CHILD);
	ck_assert_int_eq(kind(head(SYS_fsync, 0)), OFFCPU_DISK);
	ck_assert_int_eq(kind(head(SYS_getpid, 0)), OFFCPU_OTHER);
	ck_assert_int_eq(kind(head(-1, 0)), OFFCPU_FAULT);
}

TEST(of_a_call_that_reads_the_file_tells_it)
{
	ck_assert_int_eq(kind_of_file(S_IFIFO), OFFCPU_PIPE);
	ck_assert_int_eq(kind_of_file(S_IFSOCK), OFFCPU_NETWORK);
	ck_assert_int_eq(kind_of_file(S_IFREG), OFFCPU_DISK);
	ck_assert_int_eq(kind_of_file(S_IFCHR), OFFCPU_DEVICE);
	ck_assert_int_eq(kind_of_file(0), OFFCPU_OTHER);
	/* its first argument is no file that it waits for */
	struct offcpu_head h = head(SYS_futex, 0);
	h.file = S_IFIFO >> 12;
	ck_assert_int_eq(kind(h), OFFCPU_LOCK);
}

TEST(the_kernels_account_comes_before_the_call)
{
	ck_assert_int_eq(kind(head(SYS_futex, OFFCPU_RUNNABLE)), OFFCPU_HART);
	ck_assert_int_eq(kind(head(SYS_read, OFFCPU_IN_DISK)), OFFCPU_DISK);
	ck_assert_int_eq(kind(head(-1, OFFCPU_IN_DISK)), OFFCPU_FAULT);
	ck_assert_int_eq(kind(head(SYS_read, OFFCPU_IS_STOPPED | OFFCPU_RUNNABLE)), OFFCPU_STOPPED);
	ck_assert_int_eq(kind(head(-1, OFFCPU_KERNEL_THREAD)), OFFCPU_OTHER);
	ck_assert_int_eq(kind(head(-1, OFFCPU_KERNEL_THREAD | OFFCPU_IN_DISK)), OFFCPU_DISK);
	/* numbers of its calls are others */
	ck_assert_int_eq(kind(head(SYS_futex, OFFCPU_32_BIT)), OFFCPU_OTHER);
}

TEST(a_thread_that_waits_on_is_its_head_alone)
{
	const struct offcpu_head h = head(-1, OFFCPU_SAME);
	memcpy(bytes, &h, sizeof(h));
	ck_assert_int_eq(offcpu_decode(bytes, sizeof(h), &thread, &used), 0);
	ck_assert(thread.same && !thread.again);
	ck_assert_uint_eq(used, sizeof(h));
	ck_assert_uint_eq(thread.record.pid, 40);
	ck_assert_uint_eq(thread.record.tid, 41);
}

TEST(stacks_come_as_in_a_sample)
{
	struct offcpu_record whole = {.head = head(SYS_read, OFFCPU_AGAIN)};
	whole.head.n_chain = 2;
	whole.head.n_stack = 16;
	whole.chain[0] = 0xffffffff81000010;
	whole.chain[1] = 0xffffffff81000020;
	whole.regs[0] = 7;
	memcpy(bytes, &whole, sizeof(whole));
	memset(bytes + sizeof(whole), 9, 16);
	ck_assert_int_eq(offcpu_decode(bytes, sizeof(whole) + 16, &thread, &used), 0);
	const struct record_sample *s = &thread.record.sample;
	ck_assert(thread.again && !thread.same);
	ck_assert_uint_eq(used, sizeof(whole) + 16);
	ck_assert_uint_eq(thread.record.cpu, 3);
	ck_assert_uint_eq(s->n_callchain, 3);
	ck_assert_uint_eq(record_chain_at(s, 0), PERF_CONTEXT_KERNEL);
	/* a return address, where a sample's first is exact */
	ck_assert_uint_eq(record_chain_at(s, 1), 0xffffffff8100000f);
	ck_assert_uint_eq(record_chain_at(s, 2), 0xffffffff81000020);
	ck_assert_uint_eq(record_reg(s, 0), 7);
	ck_assert_uint_eq(s->n_stack, 16);
	ck_assert_uint_eq(s->stack[15], 9);
	ck_assert(!s->stack_fills);
}

TEST(a_cut_record_is_none_and_the_end_is_told)
{
	struct offcpu_head h = head(SYS_read, 0);
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, &h, sizeof(h));
	for (size_t n = 0; n < sizeof(struct offcpu_record); n++)
		ck_assert_int_eq(offcpu_decode(bytes, n, &thread, &used), RECORD_TRUNCATED);
	ck_assert_int_eq(offcpu_decode(bytes, sizeof(struct offcpu_record), &thread, &used), 0);
	h.flags = OFFCPU_END;
	ck_assert_int_eq(decode(&h), OFFCPU_ENDS);
}

TEST(counts_that_lead_outside_are_refused)
{
	struct offcpu_head h = head(0, 0);
	h.n_chain = OFFCPU_CHAIN_MAX + 1;
	ck_assert_int_eq(decode(&h), RECORD_HOSTILE);
	h.n_chain = 0;
	h.n_stack = OFFCPU_STACK_MAX + 8;
	ck_assert_int_eq(decode(&h), RECORD_HOSTILE);
	h.n_stack = 4;
	ck_assert_int_eq(decode(&h), RECORD_HOSTILE);
	h.n_stack = 0;
	h.tid = 0;
	ck_assert_int_eq(decode(&h), RECORD_HOSTILE);
}
