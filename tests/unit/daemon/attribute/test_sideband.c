/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/sideband.c, life.c and mapping.c: who lives, and what is mapped */

#include "daemon/attribute/attribute_private.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

static struct bench *b;

static const struct bench_process prog = {.pid = 10,
	.parent = 1,
	.comm = "prog",
	.start_ns = SECOND,
	.maps = "10000-11000 r-xp 00001000 08:00 77 /bin/prog\n"
		"11000-12000 rw-p 00002000 08:00 77 /bin/prog\n"
		"not a line of maps\n"
		"7000-8000 r-xp 00000000 00:00 0 [vdso]\n"};

static void setup(void)
{
	b = bench_new();
	bench_start(b);
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

static void scan(const pid_t *pids, size_t n_pids)
{
	ck_assert_int_eq(attribute_scan(b->attribute, pids, n_pids), 0);
}

static struct task *live(int tid)
{
	struct task *task = task_find(&b->tasks, tid);

	ck_assert_ptr_nonnull(task);
	return task;
}

static const char *mapped_at(int pid, uint64_t addr)
{
	const struct map *map = space_find(task_space(live(pid)), addr);

	return map ? map->file->path : NULL;
}

/* --- scan and records tell the same story ----------------------------------------------------- */

TEST(a_task_seen_by_scan_and_fork_is_one)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	struct task *task = live(10);
	bench_fork(b, SECOND + 300000, 10, 10, 1);
	bench_map(b, 10, 0x10000, 0x1000, "/bin/prog");
	ck_assert_ptr_eq(live(10), task);
	ck_assert_uint_eq(b->tasks.n_tasks, 1);
	ck_assert_uint_eq(task_space(task)->n_maps, 2);
	ck_assert_str_eq(task->comm, "prog");
}

TEST(scanning_twice_changes_nothing)
{
	bench_process(b, &prog);
	bench_thread(b, &prog, 11);
	scan(NULL, 0);
	uint64_t generation = task_space(live(10))->generation;
	scan(NULL, 0);
	ck_assert_uint_eq(b->tasks.n_tasks, 2);
	ck_assert_uint_eq(b->files.n_files, 2);
	ck_assert_uint_eq(task_space(live(10))->generation, generation);
}

TEST(a_fork_long_after_the_start_is_another_task)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	struct task *former = live(10);
	bench_fork(b, 9 * SECOND, 10, 10, 1);
	ck_assert_ptr_ne(live(10), former);
	ck_assert_uint_eq(former->end_ns, 9 * SECOND);
}

TEST(records_of_a_former_task_do_not_touch_the_scanned_one)
{
	struct bench_process late = prog;

	late.start_ns = 50 * SECOND;
	bench_process(b, &late);
	scan(NULL, 0);
	bench_fork(b, 40 * SECOND, 10, 10, 1);
	bench_exit(b, 41 * SECOND, 10, 10);
	ck_assert_uint_eq(b->tasks.n_tasks, 1);
	ck_assert_uint_eq(live(10)->end_ns, 0);
}

TEST(an_exec_in_the_ring_before_the_scan_ends_as_the_scan_saw_it)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	bench_fork(b, SECOND + 300000, 10, 10, 1);
	bench_comm(b, SECOND + 400000, 10, "prog", true);
	ck_assert_ptr_null(task_space(live(10)));
	bench_map(b, 10, 0x10000, 0x1000, "/bin/prog");
	ck_assert_str_eq(mapped_at(10, 0x10020), "/bin/prog");
	ck_assert_str_eq(live(10)->exe, "/bin/prog");
}

/* --- records ---------------------------------------------------------------------------------- */

TEST(a_forked_process_inherits)
{
	bench_process(b, &prog);
	bench_bytes(b, "proc/10/cmdline", "prog\0-v\0", 8);
	scan((pid_t[]){10}, 1);
	bench_fork(b, 5 * SECOND, 20, 20, 10);
	const struct task *child = live(20);
	ck_assert_str_eq(child->comm, "prog");
	ck_assert_str_eq(child->exe, "/bin/prog");
	ck_assert_uint_eq(child->n_argv, 7);
	ck_assert_uint_eq(child->cgroup, live(10)->cgroup);
	ck_assert_uint_eq(child->uid, 1000);
	ck_assert(child->wanted);
	ck_assert_ptr_eq(child->parent, live(10));
	ck_assert_uint_eq(child->start_ns, 5 * SECOND);
	ck_assert_ptr_eq(task_space(child), task_space(live(10)));
	bench_map(b, 20, 0x10000, 0x1000, "/bin/other");
	ck_assert_str_eq(mapped_at(10, 0x10020), "/bin/prog");
	ck_assert_str_eq(mapped_at(20, 0x10020), "/bin/other");
}

TEST(a_new_thread_shares_its_process)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	bench_fork(b, 5 * SECOND, 10, 12, 10);
	ck_assert_ptr_eq(live(12)->process, live(10));
	bench_map(b, 10, 0x20000, 0x1000, "/lib/x");
	ck_assert_str_eq(mapped_at(12, 0x20020), "/lib/x");
	/* the leader ends first, its threads go on */
	struct task *thread = live(12);
	bench_exit(b, 6 * SECOND, 10, 10);
	ck_assert_ptr_nonnull(space_find(task_space(thread), 0x20020));
	struct record r = bench_record(b, RECORD_FORK, 7 * SECOND, 10);
	r.tid = 13;
	r.fork.parent_pid = 10;
	r.fork.parent_tid = 12;
	bench_take(b, &r, 0);
	ck_assert_ptr_eq(live(13)->process, thread->process);
}

TEST(an_exec_begins_anew)
{
	bench_process(b, &prog);
	bench_bytes(b, "proc/10/cmdline", "prog\0", 5);
	scan((pid_t[]){10}, 1);
	bench_bytes(b, "proc/10/cmdline", "cc\0-c\0", 6);
	bench_comm(b, 5 * SECOND, 10, "cc", true);
	struct task *task = live(10);
	ck_assert_str_eq(task->comm, "cc");
	ck_assert_ptr_null(task->exe);
	ck_assert_uint_eq(task->n_argv, 5);
	ck_assert_ptr_null(task_space(task));
	ck_assert(task->wanted);
	bench_map(b, 10, 0x10000, 0x1000, "/usr/bin/cc");
	bench_map(b, 10, 0x20000, 0x1000, "/lib/ld.so");
	ck_assert_str_eq(task->exe, "/usr/bin/cc");
	/* a thread that renames itself is no exec */
	bench_comm(b, 6 * SECOND, 10, "worker", false);
	ck_assert_str_eq(mapped_at(10, 0x10020), "/usr/bin/cc");
	ck_assert_str_eq(task->comm, "worker");
}

TEST(arguments_that_come_late_are_read_after_the_drain)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	bench_comm(b, 5 * SECOND, 10, "cc", true);
	ck_assert_ptr_null(live(10)->argv);
	bench_bytes(b, "proc/10/cmdline", "cc\0-c\0", 6);
	attribute_drained(b->attribute);
	ck_assert_str_eq(live(10)->argv, "cc");
	/* once: what is unreadable then stays so */
	bench_comm(b, 6 * SECOND, 99, "gone", true);
	attribute_drained(b->attribute);
	attribute_drained(b->attribute);
	ck_assert_ptr_null(live(99)->argv);
}

TEST(a_process_that_dies_at_once_keeps_name_and_parent)
{
	bench_process(b, &prog);
	bench_bytes(b, "proc/10/cmdline", "make\0", 5);
	scan(NULL, 0);
	bench_fork(b, 5 * SECOND, 20, 20, 10);
	bench_comm(b, 5 * SECOND + 1, 20, "cc1", true);
	bench_exit(b, 5 * SECOND + 2, 20, 20);
	const struct task *task = b->tasks.task[1];
	ck_assert_str_eq(task->comm, "cc1");
	ck_assert_uint_eq(task->end_ns, 5 * SECOND + 2);
	/* what it was called with was gone before we looked: not its parent's words */
	ck_assert_ptr_null(task->argv);
}

TEST(a_thread_that_execs_stays_wanted)
{
	bench_process(b, &prog);
	bench_thread(b, &prog, 11);
	scan((pid_t[]){10}, 1);
	bench_text(b, "proc/10/stat", "gone");
	bench_exit(b, 5 * SECOND, 10, 10);
	bench_comm(b, 5 * SECOND + 1, 10, "cc", true);
	ck_assert_str_eq(live(10)->comm, "cc");
	ck_assert(live(10)->wanted);
}

TEST(a_fork_of_an_unknown_parent_is_still_a_task)
{
	bench_fork(b, 5 * SECOND, 20, 20, 4711);
	ck_assert_str_eq(live(20)->comm, "");
	ck_assert_ptr_null(live(20)->parent);
}

TEST(a_task_known_too_early_inherits_when_its_fork_comes)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	bench_map(b, 20, 0x50000, 0x1000, "/early"); /* at time 1 */
	bench_fork(b, 2, 20, 20, 10);
	ck_assert_str_eq(live(20)->comm, "prog");
	ck_assert_ptr_eq(live(20)->parent, live(10));
	ck_assert_uint_eq(b->tasks.n_tasks, 2);
}

TEST(an_exit_of_nobody_is_nothing)
{
	bench_exit(b, SECOND, 10, 10);
	bench_exit(b, SECOND, 0, 0);
	bench_process(b, &prog);
	scan(NULL, 0);
	bench_exit(b, 5 * SECOND, 77, 10);
	ck_assert_uint_eq(live(10)->end_ns, 0);
}

TEST(pids_that_cannot_be_are_nobody)
{
	static const int pids[] = {0, -1, -7};

	for (size_t i = 0; i < 3; i++) {
		bench_fork(b, SECOND, pids[i], pids[i], 1);
		bench_comm(b, SECOND, pids[i], "x", true);
		bench_map(b, pids[i], 0x1000, 0x1000, "/x");
		bench_exit(b, SECOND, pids[i], pids[i]);
	}
	ck_assert_uint_eq(b->tasks.n_tasks, 0);
}

TEST(data_is_not_mapped)
{
	struct record r = bench_record(b, RECORD_MMAP, SECOND, 10);

	r.mmap = (struct record_mmap){.start = 0x1000, .bytes = 0x1000, .path = "/x"};
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->tasks.n_tasks, 0);
	ck_assert_uint_eq(b->files.n_files, 0);
}

TEST(a_mapping_knows_where_its_file_can_be_had)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	bench_map(b, 10, 0x30000, 0x2000, "/lib/x (deleted)");
	const struct file *file = space_find(task_space(live(10)), 0x30000)->file;
	ck_assert_str_eq(file->path, "/lib/x");
	ck_assert(file->deleted);
	ck_assert_int_eq(file->pid, 10);
	ck_assert_uint_eq(file->pid_start_ns, live(10)->start_ns);
	ck_assert_uint_eq(file->map_start, 0x30000);
	ck_assert_uint_eq(file->map_end, 0x32000);
}

TEST(a_jitdump_takes_all_generated_code)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	bench_map(b, 10, 0x100000, 0x1000, "//anon");
	ck_assert_str_eq(mapped_at(10, 0x100010), "/tmp/perf-10.map");
	bench_map(b, 10, 0x200000, 0x1000, "/tmp/jit-10.dump");
	ck_assert_str_eq(mapped_at(10, 0x100010), "/tmp/jit-10.dump");
	ck_assert_ptr_null(mapped_at(10, 0x200010));
	bench_map(b, 10, 0x300000, 0x1000, "[anon:code]");
	ck_assert_str_eq(mapped_at(10, 0x300010), "/tmp/jit-10.dump");
	ck_assert_str_eq(mapped_at(10, 0x10020), "/bin/prog");
	/* a child runs the same code until it execs */
	bench_fork(b, 5 * SECOND, 20, 20, 10);
	ck_assert_str_eq(mapped_at(20, 0x300010), "/tmp/jit-10.dump");
	bench_map(b, 20, 0x400000, 0x1000, "//anon");
	ck_assert_str_eq(mapped_at(20, 0x400010), "/tmp/jit-10.dump");
	bench_comm(b, 6 * SECOND, 20, "cc", true);
	bench_map(b, 20, 0x300000, 0x1000, "//anon");
	ck_assert_str_eq(mapped_at(20, 0x300010), "/tmp/perf-20.map");
}

static struct file *map_generation(int pid, uint64_t start, uint64_t generation)
{
	struct record r = bench_record(b, RECORD_MMAP, 7, pid);

	r.mmap = (struct record_mmap){.start = start,
		.bytes = 0x1000,
		.file_offset = 0x1000,
		.major = 8,
		.inode = 77,
		.generation = generation,
		.executable = true,
		.path = "/bin/prog"};
	bench_take(b, &r, 0);
	return space_find(task_space(live(pid)), start)->file;
}

TEST(a_file_that_scan_and_record_tell_of_is_one_until_its_inode_is_used_again)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	struct file *scanned = space_find(task_space(live(10)), 0x10000)->file;
	uint32_t n_files = b->files.n_files;
	ck_assert_ptr_eq(map_generation(10, 0x10000, 5), scanned);
	scan(NULL, 0); /* tells no generation, and is of this one */
	ck_assert_ptr_eq(map_generation(10, 0x30000, 5), scanned);
	ck_assert_ptr_eq(map_generation(10, 0x30000, 0), scanned);
	ck_assert(!scanned->replaced);
	ck_assert_uint_eq(b->files.n_files, n_files);
	ck_assert_uint_eq(scanned->mapped_ns, 7);

	struct file *built = map_generation(10, 0x40000, 6);
	ck_assert_ptr_ne(built, scanned);
	ck_assert(scanned->replaced && !built->replaced);
	ck_assert_ptr_eq(space_find(task_space(live(10)), 0x10000)->file, scanned);
}

TEST(generated_code_of_the_next_program_is_in_another_file)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	bench_map(b, 10, 0x100000, 0x1000, "//anon");
	struct file *former = space_find(task_space(live(10)), 0x100000)->file;
	bench_fork(b, 5 * SECOND, 20, 20, 10);
	bench_comm(b, 6 * SECOND, 20, "cc", true); /* a child's exec is not its parent's */
	ck_assert(!former->replaced);
	bench_comm(b, 7 * SECOND, 10, "again", true);
	ck_assert(former->replaced);
	bench_map(b, 10, 0x100000, 0x1000, "//anon");
	struct file *next = space_find(task_space(live(10)), 0x100000)->file;
	ck_assert_ptr_ne(next, former);
	ck_assert_str_eq(next->path, former->path);
	ck_assert_uint_eq(next->generation, 7 * SECOND);
	ck_assert(!next->replaced);
	/* the same for one that describes its code itself */
	bench_map(b, 10, 0x200000, 0x1000, "/tmp/jit-10.dump");
	former = live(10)->jitdump;
	bench_comm(b, 8 * SECOND, 10, "again", true);
	bench_map(b, 10, 0x200000, 0x1000, "/tmp/jit-10.dump");
	ck_assert_ptr_ne(live(10)->jitdump, former);
	ck_assert(former->replaced && !live(10)->jitdump->replaced);
}

/* --- a command that is held until its exec ---------------------------------------------------- */

static void hold(void)
{
	bench_free(b);
	b = bench_new();
	b->options.all = false;
	b->options.after_exec = true;
	bench_start(b);
	bench_process(b, &prog);
	scan((pid_t[]){10}, 1);
	scan((pid_t[]){10}, 1); /* as a recording does */
}

static void sample(int pid, uint64_t time_ns)
{
	struct record r = bench_sample(b, BENCH_ALONE, time_ns, pid, 0x10020);

	bench_take(b, &r, 0);
}

TEST(what_a_held_command_does_before_its_exec_is_not_counted)
{
	hold();
	sample(10, 4 * SECOND);
	ck_assert_uint_eq(b->n_sunk, 0);
	bench_fork(b, 4 * SECOND, 30, 30, 10); /* a helper of the holder */
	bench_comm(b, 5 * SECOND, 10, "cc", true);
	sample(10, 5 * SECOND + 1);
	ck_assert_uint_eq(b->n_sunk, 1);
	bench_fork(b, 6 * SECOND, 20, 20, 10);
	sample(20, 6 * SECOND + 1);
	sample(30, 6 * SECOND + 2);
	ck_assert_uint_eq(b->n_sunk, 2);
	ck_assert(live(20)->wanted && !live(30)->wanted);
	scan((pid_t[]){10}, 1);
	bench_comm(b, 7 * SECOND, 10, "ld", true);
	ck_assert(live(10)->wanted);
}

TEST(a_held_command_that_only_changes_its_name_is_never_counted)
{
	hold();
	bench_comm(b, 5 * SECOND, 10, "name", false);
	sample(10, 5 * SECOND + 1);
	bench_exit(b, 6 * SECOND, 10, 10);
	ck_assert_uint_eq(b->n_sunk, 0);
	for (int cause = 0; cause < N_LOSSES; cause++)
		ck_assert_uint_eq(b->lost[0][cause], 0);
}

TEST(arguments_of_a_held_command_are_read_at_its_exec_and_missed_if_gone)
{
	hold();
	bench_bytes(b, "proc/10/cmdline", "cc\0-c\0", 6);
	attribute_exec(b->attribute, 10, 5 * SECOND);
	attribute_read_execs(b->attribute, 5 * SECOND);
	bench_bytes(b, "proc/10/cmdline", "", 0);
	bench_comm(b, 5 * SECOND, 10, "cc", true);
	ck_assert_str_eq(live(10)->argv, "cc");
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 0);

	hold();
	bench_comm(b, 5 * SECOND, 10, "cc", true);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 1);
}

TEST(mappings_beyond_the_limit_are_counted)
{
	bench_fork(b, SECOND, 10, 10, 1);
	for (uint64_t i = 0; i < MAPS_MAX + 2; i++)
		bench_map(b, 10, i * 0x2000, 0x1000, "/x");
	ck_assert_uint_eq(b->lost[0][LOSS_ROOM], 2);
	/* No sample is missing for them. */
	ck_assert(!loss_kinds[LOSS_ROOM].samples);
	ck_assert_uint_eq(b->lost[0][LOSS_MEMORY], 0);
}

TEST(tids_that_are_used_again_and_again_keep_memory_bounded)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	uint32_t n_users = task_space(live(10))->n_users;
	/* more than are kept for samples behind the EXIT, each with a space of its own */
	for (int i = 0; i < 10000; i++) {
		int pid = 1000 + i;
		bench_fork(b, 5 * SECOND + (uint64_t)i, pid, pid, 10);
		bench_map(b, pid, 0x10000, 0x1000, "/bin/x");
		bench_exit(b, 5 * SECOND + (uint64_t)i, pid, pid);
	}
	size_t n_spaces = 0;
	for (uint32_t i = 0; i < b->tasks.n_tasks; i++)
		n_spaces += b->tasks.task[i]->space != NULL;
	ck_assert_uint_le(n_spaces, 4096 + 1);
	ck_assert_uint_eq(task_space(live(10))->n_users, n_users);
}

/* --- an exec of what its user may not read ---------------------------------------------------- */

TEST(what_the_kernel_reports_as_an_end_at_an_exec_is_none)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	struct task *task = live(10);
	bench_comm(b, 5 * SECOND, 10, "hidden", true);
	bench_exit(b, 5 * SECOND + 1, 10, 10);
	bench_map(b, 10, 0x20000, 0x1000, "/bin/hidden");
	ck_assert_ptr_eq(live(10), task);
	ck_assert_uint_eq(task->end_ns, 0);
	ck_assert_str_eq(mapped_at(10, 0x20000), "/bin/hidden");
	bench_exit(b, 6 * SECOND, 10, 10);
	ck_assert_uint_eq(task->end_ns, 6 * SECOND);
}

TEST(one_that_ends_in_its_exec_has_ended)
{
	bench_fork(b, 4 * SECOND, 30, 30, 1);
	struct task *task = live(30);
	bench_comm(b, 5 * SECOND, 30, "broken", true);
	bench_exit(b, 5 * SECOND + 1, 30, 30);
	ck_assert_uint_eq(task->end_ns, 5 * SECOND + 1);
	ck_assert_ptr_null(task_find(&b->tasks, 30));
}

TEST(dead_threads_that_were_never_sampled_are_forgotten_where_they_are_many)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	/* as if its user had that many */
	live(10)->uid = live(10)->account = 1000;
	ck_assert(quota_take(&b->tasks.of, 1000, TASKS_MAX, DEAD_KEPT));
	uint64_t time_ns = 2 * SECOND;
	for (int i = 0; i < 20000; i++) {
		bench_fork(b, ++time_ns, 10, 11 + i, 10);
		bench_exit(b, ++time_ns, 10, 11 + i);
	}
	ck_assert_uint_le(b->tasks.n_tasks - b->tasks.n_free, ENDED_SLOTS + 10);
	quota_give(&b->tasks.of, 1000, DEAD_KEPT);
}

TEST(a_side_band_with_a_ring_of_its_own_loses_no_samples)
{
	struct record lost = bench_record(b, RECORD_LOST, 2 * SECOND, 0);
	lost.stream = stream_table_find(&b->streams, BENCH_SIDEBAND);
	lost.lost.n = 7;
	bench_take(b, &lost, 0);
	ck_assert_uint_eq(b->lost[0][LOSS_RING], 7);
	attribute_free(b->attribute);
	b->options.sideband_apart = true;
	bench_start(b);
	bench_take(b, &lost, 0);
	ck_assert_uint_eq(b->lost[0][LOSS_RING], 7);
	ck_assert_uint_eq(b->lost[0][LOSS_SIDEBAND], 7);
}
