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
		.pid = 40, .tid = 41, .hart = 3, .syscall = syscall, .flags = flags, .wait = 5};
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

/* --- wakers ----------------------------------------------------------------------------------- */

static struct offcpu_waking waker(uint16_t flags)
{
	struct offcpu_waking w = {.time_ns = 77, .record.head = head(SYS_futex, flags)};
	w.record.head.wakee = 50;
	return w;
}

/* With all the bytes that it says it has, or n_bytes. */
static int decode_waker(const struct offcpu_waking *w, size_t n_bytes)
{
	static uint8_t of_waker[OFFCPU_WAKING_BYTES_MAX];
	memset(of_waker, 0, sizeof(of_waker));
	memcpy(of_waker, w, sizeof(*w));
	return offcpu_decode_waking(of_waker, n_bytes, &thread);
}

TEST(a_waker_has_its_stack_and_the_wait_that_it_ended)
{
	struct offcpu_waking w = waker(OFFCPU_WAKER);
	w.record.head.n_chain = 1;
	w.record.head.n_stack = 8;
	w.record.chain[0] = 0xffffffff81000010;
	ck_assert_int_eq(decode_waker(&w, sizeof(w) + 8), 0);
	ck_assert_uint_eq(thread.record.time_ns, 77);
	ck_assert_uint_eq(thread.record.tid, 41);
	ck_assert_int_eq(thread.wakee, 50);
	ck_assert_uint_eq(thread.wait, 5);
	ck_assert_uint_eq(thread.record.sample.n_stack, 8);
	ck_assert_uint_eq(thread.record.sample.n_callchain, 2);
	/* shorter than it says */
	ck_assert_int_eq(decode_waker(&w, sizeof(w) + 7), RECORD_TRUNCATED);
	ck_assert_int_eq(decode_waker(&w, sizeof(w)), RECORD_TRUNCATED);
	ck_assert_int_eq(decode_waker(&w, 7), RECORD_TRUNCATED);
	ck_assert_int_eq(decode_waker(&w, 0), RECORD_TRUNCATED);
}

TEST(an_interrupt_is_no_task)
{
	struct offcpu_waking w = waker(OFFCPU_WAKER | OFFCPU_INTERRUPT);
	ck_assert_int_eq(decode_waker(&w, sizeof(w)), RECORD_HOSTILE);
	w.record.head.pid = w.record.head.tid = 0;
	ck_assert_int_eq(decode_waker(&w, sizeof(w)), 0);
	ck_assert(thread.is_interrupt);
}

TEST(a_forged_waker_is_refused)
{
	struct offcpu_waking w = waker(0); /* a record of a look */
	ck_assert_int_eq(decode_waker(&w, sizeof(w)), RECORD_HOSTILE);
	w = waker(OFFCPU_WAKER | OFFCPU_SAME);
	ck_assert_int_eq(decode_waker(&w, sizeof(w)), RECORD_HOSTILE);
	w = waker(OFFCPU_WAKER);
	w.record.head.wakee = 0;
	ck_assert_int_eq(decode_waker(&w, sizeof(w)), RECORD_HOSTILE);
	w = waker(OFFCPU_WAKER);
	w.record.head.wait = 0;
	ck_assert_int_eq(decode_waker(&w, sizeof(w)), RECORD_HOSTILE);
	w = waker(OFFCPU_WAKER);
	w.record.head.n_stack = OFFCPU_STACK_MAX + 8;
	ck_assert_int_eq(decode_waker(&w, OFFCPU_WAKING_BYTES_MAX), RECORD_HOSTILE);
	w = waker(OFFCPU_WAKER);
	w.record.head.tid = 0;
	ck_assert_int_eq(decode_waker(&w, sizeof(w)), RECORD_HOSTILE);
	/* and in a look a waker */
	struct offcpu_head h = head(SYS_futex, OFFCPU_WAKER);
	ck_assert_int_eq(decode(&h), RECORD_HOSTILE);
	h = head(SYS_futex, 0);
	h.wakee = 50;
	ck_assert_int_eq(decode(&h), RECORD_HOSTILE);
}
