/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Records are put together field by field (made.c) and must come back; then each is cut at every
 * byte and has its counts made huge, and must not. */

#include <errno.h>
#include <unistd.h>

#include "tests/unit/daemon/decode/made.h"
#include "tests/unit/test.h"

static struct stream_table streams;
static struct record r;

static void setup(void)
{
	streams = (struct stream_table){};
	r = (struct record){.pid = 4711};
	made_streams(&streams);
}

static void teardown(void)
{
	stream_table_clear(&streams);
}

EACH_TEST(.begin = setup, .end = teardown);

static int decode(void)
{
	return record_decode(made.bytes, made.n, &streams, &r);
}

/* --- valid ------------------------------------------------------------------------------------ */

static void check_common(enum record_kind kind, uint64_t id)
{
	uint64_t time_ns = 0;

	ck_assert_int_eq(decode(), 0);
	ck_assert_int_eq((int)r.kind, (int)kind);
	ck_assert_uint_eq(r.id, id);
	ck_assert_ptr_eq(r.stream, stream_table_find(&streams, id));
	ck_assert_uint_eq(r.time_ns, 123456789);
	ck_assert_uint_eq(r.cpu, 3);
	ck_assert_int_eq(record_time(made.bytes, made.n, &streams, &time_ns), 0);
	ck_assert_uint_eq(time_ns, 123456789);
}

TEST(mmap_comes_back)
{
	made_mmap();
	check_common(RECORD_MMAP, MADE_SIDE);
	ck_assert_uint_eq(r.pid, 5);
	ck_assert_uint_eq(r.tid, 6);
	ck_assert_uint_eq(r.mmap.start, 0x400000);
	ck_assert_uint_eq(r.mmap.bytes, 0x2000);
	ck_assert_uint_eq(r.mmap.file_offset, 0x1000);
	ck_assert(!r.mmap.executable);
	ck_assert_str_eq(r.mmap.path, "/usr/bin/true");
}

TEST(mmap2_comes_back_with_device_and_inode)
{
	made_mmap2(false);
	check_common(RECORD_MMAP, MADE_SIDE);
	ck_assert_uint_eq(r.mmap.major, 8);
	ck_assert_uint_eq(r.mmap.minor, 1);
	ck_assert_uint_eq(r.mmap.inode, 999);
	ck_assert_uint_eq(r.mmap.generation, 2);
	ck_assert_uint_eq(r.mmap.n_build_id, 0);
	ck_assert(r.mmap.executable);
	ck_assert_str_eq(r.mmap.path, "/lib/libc.so.6");
}

TEST(mmap2_comes_back_with_its_build_id)
{
	made_mmap2(true);
	check_common(RECORD_MMAP, MADE_SIDE);
	ck_assert_uint_eq(r.mmap.n_build_id, 20);
	ck_assert_mem_eq(r.mmap.build_id, "abcdefghijklmnopqrst", 20);
	ck_assert_uint_eq(r.mmap.inode, 0);
	ck_assert_str_eq(r.mmap.path, "/lib/libc.so.6");
}

TEST(comm_says_whether_it_was_an_exec)
{
	made_comm();
	check_common(RECORD_COMM, MADE_SIDE);
	ck_assert_str_eq(r.comm.name, "cc1plus");
	ck_assert(r.comm.exec);
	ck_assert_uint_eq(r.pid, 5);
}

TEST(fork_and_exit_name_who_begins_and_ends)
{
	made_fork(PERF_RECORD_FORK);
	check_common(RECORD_FORK, MADE_SIDE);
	ck_assert_uint_eq(r.pid, 20);
	ck_assert_uint_eq(r.tid, 21);
	ck_assert_uint_eq(r.fork.parent_pid, 10);
	ck_assert_uint_eq(r.fork.parent_tid, 11);
	made_fork(PERF_RECORD_EXIT);
	check_common(RECORD_EXIT, MADE_SIDE);
	ck_assert_uint_eq(r.tid, 21);
}

TEST(cgroup_ksymbol_and_losses_come_back)
{
	made_cgroup();
	check_common(RECORD_CGROUP, MADE_SIDE);
	ck_assert_uint_eq(r.cgroup.id, 77);
	ck_assert_str_eq(r.cgroup.path, "/system.slice/cron.service");
	made_ksymbol();
	check_common(RECORD_KSYMBOL, MADE_SIDE);
	ck_assert_uint_eq(r.ksymbol.addr, 0xffffffffc0000000);
	ck_assert_uint_eq(r.ksymbol.bytes, 512);
	ck_assert(r.ksymbol.unregister);
	ck_assert_str_eq(r.ksymbol.name, "bpf_prog_1234");
	made_lost();
	check_common(RECORD_LOST, MADE_SIDE);
	ck_assert_uint_eq(r.lost.n, 42);
	made_lost_samples();
	check_common(RECORD_LOST_SAMPLES, MADE_SIDE);
	ck_assert_uint_eq(r.lost.n, 43);
	made_throttle();
	check_common(RECORD_THROTTLE, MADE_SIDE);
	ck_assert_uint_eq(r.pid, 100);
}

TEST(a_deferred_chain_comes_back)
{
	made_deferred();
	check_common(RECORD_DEFERRED, MADE_SIDE);
	ck_assert_uint_eq(r.deferred.cookie, 0xc00c1e);
	ck_assert_uint_eq(r.deferred.n_callchain, 3);
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401000, 0x402000};
	ck_assert_mem_eq(r.deferred.callchain, chain, sizeof(chain));
}

TEST(types_of_no_use_are_told_apart_from_unknown_ones)
{
	recording_begin(&made, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT);
	recording_put_u64(&made, 0);
	made_finish_side();
	check_common(RECORD_OTHER, MADE_SIDE);
}

TEST(switches_say_which_way_and_whether_the_task_could_run_on)
{
	recording_begin(&made, PERF_RECORD_SWITCH, 0);
	made_finish_side();
	check_common(RECORD_SWITCH, MADE_SIDE);
	ck_assert(!r.switched.out && !r.switched.preempted);
	recording_begin(&made, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
	made_finish_side();
	check_common(RECORD_SWITCH, MADE_SIDE);
	ck_assert(r.switched.out && !r.switched.preempted);
	recording_begin(&made, PERF_RECORD_SWITCH,
		PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	made_finish_side();
	check_common(RECORD_SWITCH, MADE_SIDE);
	ck_assert(r.switched.out && r.switched.preempted);
}

TEST(sample_comes_back)
{
	made_plain();
	check_common(RECORD_SAMPLE, MADE_PLAIN);
	ck_assert_uint_eq(r.pid, 100);
	ck_assert_uint_eq(r.tid, 101);
	ck_assert(r.sample.kernel);
	ck_assert_uint_eq(r.sample.ip, 0xffffffff81000000);
	ck_assert_uint_eq(r.sample.period, 10101010);
	ck_assert_uint_eq(r.sample.n_callchain, 0);
}

TEST(sample_without_a_period_has_that_of_its_event)
{
	struct stream by_occurrences = *stream_table_find(&streams, MADE_PLAIN);
	stream_table_remove(&streams, MADE_PLAIN);
	by_occurrences.sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
	by_occurrences.period = 1000;
	ck_assert_int_eq(stream_table_add(&streams, &by_occurrences), 0);
	made_plain();
	made.n -= sizeof(uint64_t); /* the period is last */
	recording_end(&made);
	check_common(RECORD_SAMPLE, MADE_PLAIN);
	ck_assert_uint_eq(r.sample.period, 1000);
}

TEST(sample_with_every_field_comes_back)
{
	made_full();
	check_common(RECORD_SAMPLE, MADE_FULL);
	ck_assert(!r.sample.kernel);
	ck_assert_uint_eq(r.sample.ip, 0x401000);
	ck_assert_uint_eq(r.sample.period, 5);
	ck_assert_uint_eq(r.sample.n_read, 1);
	ck_assert_uint_eq(r.sample.read[0].value, 600);
	ck_assert_uint_eq(r.sample.read[0].id, MADE_FULL);
	ck_assert_uint_eq(r.sample.enabled_ns, 1000);
	ck_assert_uint_eq(r.sample.running_ns, 900);
	ck_assert_uint_eq(r.sample.n_callchain, 3);
	ck_assert_uint_eq(record_chain_at(&r.sample, 0), PERF_CONTEXT_USER);
	ck_assert_uint_eq(record_chain_at(&r.sample, 2), 0x402000);
	ck_assert_uint_eq(r.sample.regs_abi, PERF_SAMPLE_REGS_ABI_64);
	ck_assert_uint_eq(record_reg(&r.sample, 2), 0x1002);
	ck_assert_uint_eq(r.sample.n_stack, 10);
	ck_assert_mem_eq(r.sample.stack, "0123456789", 10);
	ck_assert_uint_eq(r.sample.cgroup, 88);
}

TEST(group_values_come_back_with_their_ids)
{
	made_group();
	check_common(RECORD_SAMPLE, MADE_GROUP);
	ck_assert_uint_eq(r.sample.n_read, 3);
	ck_assert_uint_eq(r.sample.enabled_ns, 1000);
	ck_assert_uint_eq(r.sample.running_ns, 900);
	ck_assert_uint_eq(r.sample.read[2].value, 502);
	ck_assert_uint_eq(r.sample.read[2].id, MADE_GROUP + 2);
}

TEST(kernel_thread_has_neither_registers_nor_stack)
{
	recording_begin(&made, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	recording_put_u64(&made, MADE_DEEP);
	made_put_task_time();
	made_put_cpu();
	made_put_chain();
	recording_put_u64(&made, PERF_SAMPLE_REGS_ABI_NONE);
	recording_put_u64(&made, 0); /* stack size: no dyn_size behind it */
	recording_put_u64(&made, 88);
	recording_end(&made);
	check_common(RECORD_SAMPLE, MADE_DEEP);
	ck_assert_ptr_null(r.sample.regs);
	ck_assert_uint_eq(r.sample.n_stack, 0);
	ck_assert_uint_eq(r.sample.cgroup, 88);
}

TEST(bytes_may_lie_at_any_address)
{
	uint8_t *room = malloc(2048 + 8);

	for (size_t shift = 0; shift < 8; shift++) {
		made_full();
		memcpy(room + shift, made.bytes, made.n);
		ck_assert_int_eq(record_decode(room + shift, made.n, &streams, &r), 0);
		ck_assert_uint_eq(record_chain_at(&r.sample, 1), 0x401000);
		ck_assert_uint_eq(record_reg(&r.sample, 1), 0x1001);
	}
	free(room);
}

/* Every record of a real recording decodes, and says what its command did. */
static void count_kinds(const char *path, int ret_kinds[RECORD_OTHER + 1])
{
	struct recording recording;

	ck_assert_int_eq(recording_load(path, &recording), 0);
	for (size_t i = 0; i < recording.n_rings; i++) {
		const struct recording_ring *ring = &recording.ring[i];
		for (size_t n = 0; n < ring->n;) {
			struct perf_event_header h;
			memcpy(&h, ring->bytes + n, sizeof(h));
			ck_assert_int_eq(
				record_decode(ring->bytes + n, h.size, &recording.streams, &r), 0);
			ck_assert_int_eq((int)r.cpu, ring->hart);
			ret_kinds[r.kind]++;
			n += h.size;
		}
	}
	recording_clear(&recording);
}

TEST(recorded_processes_decode)
{
	int kinds[RECORD_OTHER + 1] = {};

	count_kinds("tests/records/processes.ring", kinds);
	ck_assert_int_eq(kinds[RECORD_FORK], 26); /* 24 × true, mkdir, rmdir */
	ck_assert_int_eq(kinds[RECORD_EXIT], 27); /* and the shell */
	ck_assert_int_eq(kinds[RECORD_COMM], 27);
	ck_assert_int_eq(kinds[RECORD_CGROUP], 1);
	ck_assert_int_gt(kinds[RECORD_MMAP], 26 * 3);
	ck_assert_int_gt(kinds[RECORD_SAMPLE], 20);
}

TEST(recorded_start_dwarf_and_group_decode)
{
	int start[RECORD_OTHER + 1] = {}, dwarf[RECORD_OTHER + 1] = {};
	int group[RECORD_OTHER + 1] = {};

	count_kinds("tests/records/start.ring", start);
	ck_assert_int_gt(start[RECORD_MMAP], 10);
	count_kinds("tests/records/dwarf.ring", dwarf);
	ck_assert_int_gt(dwarf[RECORD_SAMPLE], 10);
	count_kinds("tests/records/group.ring", group);
	ck_assert_int_gt(group[RECORD_SAMPLE], 40); /* one switch per child at least */
}

/* --- malformed -------------------------------------------------------------------------------- */

/* The copy has exactly the bytes it says, so that the sanitizer sees any look beyond. */
static int decode_copy(size_t n, bool set_size)
{
	uint8_t *copy = malloc(n ?: 1);
	uint16_t size = (uint16_t)n;
	uint64_t time_ns;

	memcpy(copy, made.bytes, n);
	if (set_size && n >= 8)
		memcpy(copy + 6, &size, sizeof(size));
	int outcome = record_decode(copy, n, &streams, &r);
	record_time(copy, n, &streams, &time_ns);
	free(copy);
	return outcome;
}

TEST(cut_record_is_truncated, .times = N_MADE)
{
	made_all[_i]();
	for (size_t n = 0; n < made.n; n++)
		ck_assert_int_eq(decode_copy(n, false), RECORD_TRUNCATED);
	ck_assert_int_eq((int)r.pid, 4711); /* untouched */
}

TEST(record_whose_size_was_cut_too_is_an_outcome, .times = N_MADE)
{
	made_all[_i]();
	for (size_t n = 0; n < made.n; n++)
		ck_assert_int_gt(decode_copy(n, true), 0);
	ck_assert_int_eq((int)r.pid, 4711);
}

TEST(longer_than_its_size_is_hostile, .times = N_MADE)
{
	made_all[_i]();
	ck_assert_int_eq(record_decode(made.bytes, made.n + 8, &streams, &r), RECORD_HOSTILE);
}

TEST(sample_with_bytes_to_spare_is_hostile)
{
	made_plain();
	recording_put_u64(&made, 0);
	recording_end(&made);
	ck_assert_int_eq(decode(), RECORD_HOSTILE);
}

TEST(size_below_the_header_is_hostile)
{
	for (uint16_t size = 0; size < 8; size++) {
		made_plain();
		memcpy(made.bytes + 6, &size, sizeof(size));
		ck_assert_int_eq(decode(), RECORD_HOSTILE);
	}
}

TEST(unknown_type_is_skipped)
{
	static const uint32_t types[] = {0, RECORD_TYPE_CALLCHAIN_DEFERRED + 1, 63, UINT32_MAX};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		recording_begin(&made, types[i], 0);
		recording_put_u64(&made, 1);
		made_finish_side();
		ck_assert_int_eq(decode(), RECORD_SKIPPED);
	}
	ck_assert_int_eq((int)r.pid, 4711);
}

TEST(sample_of_unreadable_layout_is_skipped)
{
	made_plain();
	memcpy(made.bytes + 8, &(uint64_t){MADE_ODD}, 8);
	ck_assert_int_eq(decode(), RECORD_SKIPPED);
}

TEST(id_of_no_stream_is_a_stranger)
{
	made_plain();
	memcpy(made.bytes + 8, &(uint64_t){123}, 8);
	ck_assert_int_eq(decode(), RECORD_STRANGER);
	made_comm();
	memset(made.bytes + made.n - 8, 0xff, 8);
	ck_assert_int_eq(decode(), RECORD_STRANGER);
}

static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX / 8, UINT64_MAX / 24 + 1, 1ull << 63,
	1ull << 61, 1ull << 32, 70000, 300};
#define N_HUGE ((int)(sizeof(huge) / sizeof(huge[0])))

TEST(huge_counts_are_hostile, .times = N_HUGE)
{
	made_full();
	const size_t offsets[] = {made_at.n_callchain, made_at.n_branches, made_at.stack_size,
		made_at.dyn_size, made_at.aux_size};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		made_full();
		memcpy(made.bytes + offsets[i], &huge[_i], 8);
		ck_assert_int_eq(decode(), RECORD_HOSTILE);
		ck_assert_int_eq(decode_copy(made.n, false), RECORD_HOSTILE);
	}
	made_full();
	memcpy(made.bytes + made_at.n_raw, &(uint32_t){UINT32_MAX >> _i}, 4);
	ck_assert_int_eq(decode(), RECORD_HOSTILE);
}

TEST(every_word_may_be_huge_without_a_crash, .times = N_MADE)
{
	made_all[_i]();
	for (size_t offset = 8; offset + 8 <= made.n; offset += 4) {
		for (int i = 0; i < N_HUGE; i++) {
			made_all[_i]();
			memcpy(made.bytes + offset, &huge[i], 8);
			ck_assert_int_ge(decode_copy(made.n, false), 0);
		}
	}
}

TEST(group_with_too_many_members_is_hostile)
{
	made_group();
	for (uint64_t n = RECORD_READ_VALUES_MAX + 1; n; n *= 3) {
		memcpy(made.bytes + 8 + 8 + 8 + 8 + 8, &n, 8);
		ck_assert_int_eq(decode(), RECORD_HOSTILE);
		if (n > UINT64_MAX / 3)
			break;
	}
	/* as many as may be, but they are not there */
	memcpy(made.bytes + 40, &(uint64_t){RECORD_READ_VALUES_MAX}, 8);
	ck_assert_int_eq(decode(), RECORD_TRUNCATED);
}

TEST(name_without_its_nul_is_hostile, .times = 6)
{
	static void (*const named[])(void) = {made_mmap, made_mmap2_inode, made_mmap2_build_id,
		made_comm, made_cgroup, made_ksymbol};
	static const size_t body[] = {40, 72, 72, 16, 16, 24};

	named[_i]();
	/* the NUL bytes of sample_id behind the name must not end it */
	memset(made.bytes + body[_i], 'x', made.n - 32 - body[_i]);
	ck_assert_int_eq(decode(), RECORD_HOSTILE);
}

TEST(build_id_longer_than_its_room_is_hostile)
{
	for (unsigned int n = 21; n < 256; n++) {
		made_mmap2(true);
		made.bytes[40] = (uint8_t)n;
		ck_assert_int_eq(decode(), RECORD_HOSTILE);
	}
}

TEST(mapping_beyond_the_last_address_is_hostile)
{
	made_mmap();
	memset(made.bytes + 16, 0xff, 8);
	ck_assert_int_eq(decode(), RECORD_HOSTILE);
}

TEST(stream_without_a_trailer_is_hostile)
{
	streams.stream[0].sample_type &= ~(uint64_t)PERF_SAMPLE_TIME;
	made_comm();
	ck_assert_int_eq(decode(), RECORD_HOSTILE);
}

TEST(recording_that_is_cut_or_foreign_is_refused)
{
	struct recording recording = {};
	char path[] = "/tmp/mperf-recording-XXXXXX";
	uint8_t bytes[200] = {};
	FILE *f = fopen("tests/records/start.ring", "re");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fread(bytes, 1, sizeof(bytes), f), sizeof(bytes));
	fclose(f);
	close(mkstemp(path));
	for (size_t n = 0; n < sizeof(bytes); n += 7) {
		f = fopen(path, "we");
		fwrite(bytes, 1, n, f);
		fclose(f);
		ck_assert_int_eq(recording_load(path, &recording), -EBADMSG);
	}
	unlink(path);
	ck_assert_int_eq(recording_load("tests/records/README.md", &recording), -EBADMSG);
	ck_assert_int_eq(recording_load("tests/records/none.ring", &recording), -ENOENT);
}
