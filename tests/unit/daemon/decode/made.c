/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Nothing here shares a line with record.c: the two agree through the kernel's header alone. */

#include "tests/unit/daemon/decode/made.h"

#include <check.h>
#include <string.h>
#include <sys/mman.h>

struct recording_writer made;
struct made_at made_at;

static void add_stream(struct stream_table *t, uint64_t id, uint64_t sample_type,
	uint64_t read_format, uint64_t regs)
{
	struct stream s = {
		.id = id,
		.leader = id,
		.sample_type = STREAM_SAMPLE_ID | sample_type,
		.read_format = read_format,
		.regs_user = regs,
		.hart = 3,
		.build_ids = true,
		.fd = -1,
	};
	ck_assert_int_eq(stream_table_add(t, &s), 0);
}

void made_streams(struct stream_table *t)
{
	add_stream(t, MADE_SIDE, 0, 0, 0);
	add_stream(t, MADE_PLAIN, PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD, 0, 0);
	add_stream(t, MADE_FULL,
		PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
			PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN |
			PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
			PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |
			PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
			PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_AUX,
		PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |
			PERF_FORMAT_LOST,
		0x105); /* three registers */
	add_stream(t, MADE_GROUP, PERF_SAMPLE_READ,
		PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID | PERF_FORMAT_LOST,
		0);
	add_stream(t, MADE_DEEP,
		PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
			PERF_SAMPLE_CGROUP,
		0, 0x3);
	add_stream(t, MADE_ODD, PERF_SAMPLE_REGS_INTR, 0, 0);
}

void made_finish_side(void)
{
	recording_put_sample_id(&made, 100, 101, 123456789, 3, MADE_SIDE);
	recording_end(&made);
}

void made_mmap(void)
{
	recording_begin(&made, PERF_RECORD_MMAP, PERF_RECORD_MISC_MMAP_DATA);
	recording_put_u32(&made, 5);
	recording_put_u32(&made, 6);
	recording_put_u64(&made, 0x400000);
	recording_put_u64(&made, 0x2000);
	recording_put_u64(&made, 0x1000);
	recording_put_string(&made, "/usr/bin/true");
	made_finish_side();
}

void made_mmap2(bool build_id)
{
	recording_begin(&made, PERF_RECORD_MMAP2, build_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0);
	recording_put_u32(&made, 5);
	recording_put_u32(&made, 6);
	recording_put_u64(&made, 0x400000);
	recording_put_u64(&made, 0x2000);
	recording_put_u64(&made, 0x1000);
	if (build_id) {
		recording_put(&made, "\x14\0\0\0", 4);
		recording_put(&made, "abcdefghijklmnopqrst", 20);
	} else {
		recording_put_u32(&made, 8);
		recording_put_u32(&made, 1);
		recording_put_u64(&made, 999);
		recording_put_u64(&made, 2);
	}
	recording_put_u32(&made, PROT_READ | PROT_EXEC);
	recording_put_u32(&made, MAP_PRIVATE);
	recording_put_string(&made, "/lib/libc.so.6");
	made_finish_side();
}

void made_mmap2_inode(void)
{
	made_mmap2(false);
}

void made_mmap2_build_id(void)
{
	made_mmap2(true);
}

void made_comm(void)
{
	recording_begin(&made, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	recording_put_u32(&made, 5);
	recording_put_u32(&made, 6);
	recording_put_string(&made, "cc1plus");
	made_finish_side();
}

void made_fork(uint32_t type)
{
	recording_begin(&made, type, 0);
	recording_put_u32(&made, 20); /* pid, ppid, tid, ptid */
	recording_put_u32(&made, 10);
	recording_put_u32(&made, 21);
	recording_put_u32(&made, 11);
	recording_put_u64(&made, 123456789);
	made_finish_side();
}

static void made_fork_begin(void)
{
	made_fork(PERF_RECORD_FORK);
}

static void made_fork_exit(void)
{
	made_fork(PERF_RECORD_EXIT);
}

void made_cgroup(void)
{
	recording_begin(&made, PERF_RECORD_CGROUP, 0);
	recording_put_u64(&made, 77);
	recording_put_string(&made, "/system.slice/cron.service");
	made_finish_side();
}

void made_ksymbol(void)
{
	recording_begin(&made, PERF_RECORD_KSYMBOL, 0);
	recording_put_u64(&made, 0xffffffffc0000000);
	recording_put_u32(&made, 512);
	recording_put_u16(&made, PERF_RECORD_KSYMBOL_TYPE_BPF);
	recording_put_u16(&made, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
	recording_put_string(&made, "bpf_prog_1234");
	made_finish_side();
}

void made_lost(void)
{
	recording_begin(&made, PERF_RECORD_LOST, 0);
	recording_put_u64(&made, MADE_SIDE);
	recording_put_u64(&made, 42);
	made_finish_side();
}

void made_lost_samples(void)
{
	recording_begin(&made, PERF_RECORD_LOST_SAMPLES, 0);
	recording_put_u64(&made, 43);
	made_finish_side();
}

void made_deferred(void)
{
	recording_begin(&made, RECORD_TYPE_CALLCHAIN_DEFERRED, 0);
	recording_put_u64(&made, 0xc00c1e);
	recording_put_u64(&made, 3);
	recording_put_u64(&made, PERF_CONTEXT_USER);
	recording_put_u64(&made, 0x401000);
	recording_put_u64(&made, 0x402000);
	made_finish_side();
}

void made_throttle(void)
{
	recording_begin(&made, PERF_RECORD_THROTTLE, 0);
	recording_put_u64(&made, 123456789);
	recording_put_u64(&made, MADE_PLAIN);
	recording_put_u64(&made, MADE_PLAIN);
	made_finish_side();
}

void made_put_task_time(void)
{
	recording_put_u32(&made, 100);
	recording_put_u32(&made, 101);
	recording_put_u64(&made, 123456789);
}

void made_put_cpu(void)
{
	recording_put_u32(&made, 3);
	recording_put_u32(&made, 0);
}

void made_plain(void)
{
	recording_begin(&made, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	recording_put_u64(&made, MADE_PLAIN);
	recording_put_u64(&made, 0xffffffff81000000);
	made_put_task_time();
	made_put_cpu();
	recording_put_u64(&made, 10101010);
	recording_end(&made);
}

void made_group(void)
{
	recording_begin(&made, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	recording_put_u64(&made, MADE_GROUP);
	made_put_task_time();
	made_put_cpu();
	recording_put_u64(&made, 3);
	recording_put_u64(&made, 1000);
	recording_put_u64(&made, 900);
	for (uint64_t i = 0; i < 3; i++) {
		recording_put_u64(&made, 500 + i);
		recording_put_u64(&made, MADE_GROUP + i);
		recording_put_u64(&made, 0);
	}
	recording_end(&made);
}

void made_put_chain(void)
{
	made_at.n_callchain = made.n;
	recording_put_u64(&made, 3);
	recording_put_u64(&made, PERF_CONTEXT_USER);
	recording_put_u64(&made, 0x401000);
	recording_put_u64(&made, 0x402000);
}

static void put_stack(void)
{
	made_at.stack_size = made.n;
	recording_put_u64(&made, 16);
	recording_put(&made, "0123456789abcdef", 16);
	made_at.dyn_size = made.n;
	recording_put_u64(&made, 10);
}

void made_full(void)
{
	recording_begin(&made, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	recording_put_u64(&made, MADE_FULL);
	recording_put_u64(&made, 0x401000); /* ip */
	made_put_task_time();
	recording_put_u64(&made, 1);         /* addr */
	recording_put_u64(&made, MADE_FULL); /* id */
	recording_put_u64(&made, MADE_FULL); /* stream id */
	made_put_cpu();
	recording_put_u64(&made, 5);   /* period */
	recording_put_u64(&made, 600); /* value, enabled, running, id, lost */
	recording_put_u64(&made, 1000);
	recording_put_u64(&made, 900);
	recording_put_u64(&made, MADE_FULL);
	recording_put_u64(&made, 0);
	made_put_chain();
	made_at.n_raw = made.n;
	recording_put_u32(&made, 4);
	recording_put_u32(&made, 0xfeedface);
	made_at.n_branches = made.n;
	recording_put_u64(&made, 1);
	for (int i = 0; i < 3; i++)
		recording_put_u64(&made, 0xb);
	recording_put_u64(&made, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t i = 0; i < 3; i++)
		recording_put_u64(&made, 0x1000 + i);
	put_stack();
	recording_put_u64(&made, 2); /* weight, data source, transaction, physical address */
	recording_put_u64(&made, 3);
	recording_put_u64(&made, 4);
	recording_put_u64(&made, 5);
	recording_put_u64(&made, 88); /* cgroup */
	recording_put_u64(&made, 4096);
	recording_put_u64(&made, 4096);
	made_at.aux_size = made.n;
	recording_put_u64(&made, 8);
	recording_put_u64(&made, 0xaaaa);
	recording_end(&made);
}

void made_deep(void)
{
	recording_begin(&made, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	recording_put_u64(&made, MADE_DEEP);
	made_put_task_time();
	made_put_cpu();
	made_put_chain();
	recording_put_u64(&made, PERF_SAMPLE_REGS_ABI_64);
	recording_put_u64(&made, 0x1111);
	recording_put_u64(&made, 0x2222);
	put_stack();
	recording_put_u64(&made, 88);
	recording_end(&made);
}

void (*const made_all[])(void) = {made_mmap, made_mmap2_inode, made_mmap2_build_id, made_comm,
	made_fork_begin, made_fork_exit, made_cgroup, made_ksymbol, made_lost, made_lost_samples,
	made_throttle, made_deferred, made_plain, made_group, made_full, made_deep};
_Static_assert(sizeof(made_all) / sizeof(made_all[0]) == N_MADE, "as made.h says");
