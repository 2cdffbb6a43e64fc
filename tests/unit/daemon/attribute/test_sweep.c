/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/sweep.c, and of the sweeping of task.c and file.c
 *
 * What dangles after a sweep is found by the address sanitizer that this runs under, too.
 */

#include <time.h>

#include "daemon/aggregate/window.h"
#include "daemon/attribute/attribute_private.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

static struct bench *b;
static struct window window;
static struct stack_tree stacks;
static uint32_t reserved_task;

static void setup(void)
{
	b = bench_new();
	bench_start(b);
	reserved_task = 0;
}

static void teardown(void)
{
	window_clear(&window);
	stack_tree_clear(&stacks);
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

static void mark(void *userdata, struct sweep *s)
{
	(void)userdata;
	window_keep(&window, s);
	stack_tree_keep(&stacks, s);
	sweep_reserve_task(s, reserved_task);
}

static void sweep(void)
{
	attribute_drained(b->attribute);
	ck_assert_int_eq(attribute_sweep(b->attribute, mark, NULL), 0);
}

/* The same tables, with a room that holds none of their tasks. */
static void begin_again(void)
{
	attribute_free(b->attribute);
	bench_start(b);
}

/* There is a hierarchy of cgroups, in which none has a folder. */
static void with_cgroups(void)
{
	bench_text(b, "sys/fs/cgroup/cgroup.controllers", "");
	begin_again();
}

/* Enough sweeps, far enough apart as the table sees it, that nothing counts as seen lately. */
static void sweep_when_idle(void)
{
	for (int i = 0; i < 4; i++) {
		sweep();
		b->files.aged_ns = 1;
	}
}

/* A process that ends at once. */
static void brief(int pid, uint64_t at)
{
	bench_fork(b, at, pid, pid, 1);
	bench_comm(b, at + 1, pid, "brief", true);
	bench_exit(b, at + 2, pid, pid);
}

static uint32_t n_tasks(void)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < b->tasks.n_tasks; i++)
		n += b->tasks.task[i] != NULL;
	return n;
}

static struct task *live(int pid)
{
	struct task *task = task_find(&b->tasks, pid);
	ck_assert_ptr_nonnull(task);
	return task;
}

/* A sample of that process goes into the window. */
static struct task *sampled(struct frame *frame, struct task *task)
{
	struct attribution a = {
		.task = task, .count = 1, .frame = &frame, .n_frames = frame != NULL};
	ck_assert_int_eq(window_add(&window, &stacks, &a), 0);
	return task;
}

static struct frame *frame_of(const char *path, uint64_t offset)
{
	struct file_key key = {.kind = FILE_ELF, .path = path, .inode = 3, .major = 8};
	struct file *file;
	struct frame *frame;
	ck_assert_int_eq(file_get(&b->files, &key, &file), 0);
	ck_assert_int_eq(frame_get(&b->files, file, offset, &frame), 0);
	return frame;
}

TEST(ten_thousand_brief_processes_leave_nothing)
{
	for (int i = 0; i < 10000; i++)
		brief(1000 + i, SECOND + (uint64_t)i * 10);
	ck_assert_uint_ge(b->tasks.n_tasks, 10000);
	sweep();
	ck_assert_uint_le(n_tasks(), 2); /* who ended last on each hart */
	bench_fork(b, 2 * SECOND, 70000, 70000, 1);
	ck_assert_uint_lt(live(70000)->id, 10000);
}

TEST(ids_are_used_again_from_the_lowest)
{
	bench_fork(b, SECOND, 10, 10, 1);
	brief(11, SECOND + 10);
	brief(12, SECOND + 20);
	bench_fork(b, SECOND + 30, 13, 13, 1);
	brief(14, SECOND + 40); /* the last of its hart: stays */
	uint32_t freed = b->tasks.task[1]->id;
	sweep();
	bench_fork(b, SECOND + 50, 20, 20, 1);
	ck_assert_uint_eq(live(20)->id, freed);
	bench_fork(b, SECOND + 60, 21, 21, 1);
	ck_assert_uint_eq(live(21)->id, freed + 1);
	bench_fork(b, SECOND + 70, 22, 22, 1);
	ck_assert_ptr_eq(b->tasks.task[live(22)->id - 1], live(22));
}

TEST(who_lives_stays_with_all_that_it_has)
{
	bench_fork(b, SECOND, 10, 10, 1);
	bench_comm(b, SECOND + 1, 10, "prog", true);
	bench_map(b, 10, 0x10000, 0x1000, "/bin/prog");
	struct task *task = live(10);
	for (int i = 0; i < 5; i++)
		sweep_when_idle();
	ck_assert_ptr_eq(live(10), task);
	const struct map *map = space_find(task_space(task), 0x10010);
	ck_assert_ptr_nonnull(map);
	ck_assert_str_eq(map->file->path, "/bin/prog");
	ck_assert_ptr_eq(b->files.file[map->file->id - 1], map->file);
}

TEST(a_thread_keeps_its_leader_that_has_ended)
{
	bench_fork(b, SECOND, 10, 10, 1);
	bench_fork(b, SECOND + 1, 10, 11, 10);
	bench_exit(b, SECOND + 2, 10, 10);
	brief(12, SECOND + 3);
	sweep();
	struct task *thread = live(11);
	ck_assert_int_eq(thread->process->pid, 10);
	ck_assert_ptr_eq(b->tasks.task[thread->process->id - 1], thread->process);
}

TEST(who_is_in_a_window_stays_until_it_is_cleared)
{
	bench_fork(b, SECOND, 10, 10, 1);
	struct task *task = sampled(NULL, live(10));
	bench_exit(b, SECOND + 2, 10, 10);
	brief(12, SECOND + 3);
	sweep();
	ck_assert_ptr_eq(b->tasks.task[task->id - 1], task);
	uint32_t id = task->id;
	window_clear(&window);
	sweep();
	ck_assert(b->tasks.n_tasks < id || !b->tasks.task[id - 1]);
}

TEST(a_reserved_id_is_not_given_again)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec < 130) {
		printf("SKIP a_reserved_id_is_not_given_again: booted a moment ago\n");
		return;
	}
	bench_fork(b, SECOND, 10, 10, 1);
	uint32_t id = reserved_task = live(10)->id;
	bench_exit(b, SECOND + 2, 10, 10);
	brief(12, SECOND + 3);
	sweep();
	ck_assert_ptr_null(b->tasks.task[id - 1]);
	for (int i = 0; i < 100; i++) {
		bench_fork(b, SECOND + 10, 100 + i, 100 + i, 1);
		ck_assert_uint_ne(live(100 + i)->id, id);
	}
	reserved_task = 0;
	sweep();
	bench_fork(b, SECOND + 20, 300, 300, 1);
	ck_assert_uint_eq(live(300)->id, id);
}

TEST(a_reserved_task_that_ended_just_now_stays_to_be_told)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	uint64_t now = (uint64_t)t.tv_sec * SECOND;
	bench_fork(b, now, 10, 10, 1);
	struct task *task = live(10);
	reserved_task = task->id;
	bench_exit(b, now + 2, 10, 10);
	begin_again(); /* it is no longer among those that ended just now */
	sweep();
	ck_assert_ptr_eq(b->tasks.task[reserved_task - 1], task);
}

TEST(ancestors_stay_as_far_as_they_are_kept)
{
	/* a program that starts itself anew and ends, again and again */
	for (int i = 0; i < 1000; i++) {
		bench_fork(b, SECOND + (uint64_t)i * 10, 100 + i, 100 + i, i ? 99 + i : 1);
		if (i)
			bench_exit(b, SECOND + (uint64_t)i * 10 + 1, 99 + i, 99 + i);
	}
	sweep();
	ck_assert_uint_le(n_tasks(), SWEEP_ANCESTORS_MAX + 3);
	int n = 0;
	for (const struct task *task = live(1099); task; task = task->parent, n++)
		ck_assert_ptr_eq(b->tasks.task[task->id - 1], task);
	ck_assert_int_ge(n, SWEEP_ANCESTORS_MAX);
	ck_assert_int_le(n, SWEEP_ANCESTORS_MAX + 2);
}

TEST(frames_of_a_tree_stay_and_others_go_when_idle)
{
	bench_fork(b, SECOND, 10, 10, 1);
	struct frame *used = frame_of("/bin/used", 0x10);
	sampled(used, live(10));
	for (uint64_t i = 0; i < 5000; i++)
		frame_of("/bin/idle", i * 16);
	sweep();
	ck_assert_uint_eq(b->files.n_frames, 5001); /* all were seen lately */
	sweep_when_idle();
	ck_assert_uint_eq(b->files.n_frames, 1);
	ck_assert_uint_eq(b->files.n_files, 1);
	ck_assert_ptr_eq(b->files.frame[0], used);
	ck_assert_ptr_eq(frame_of("/bin/used", 0x10), used);
	ck_assert_uint_eq(frame_of("/bin/other", 0x10)->id, 2);
}

TEST(what_is_seen_again_and_again_stays)
{
	struct frame *frame = frame_of("/bin/hot", 0x10);
	for (int i = 0; i < 10; i++) {
		sweep();
		b->files.aged_ns = 1;
		ck_assert_ptr_eq(frame_of("/bin/hot", 0x10), frame);
	}
}

TEST(a_crowded_table_keeps_what_is_marked_alone)
{
	bench_fork(b, SECOND, 10, 10, 1);
	struct frame *used = frame_of("/bin/used", 0x10);
	sampled(used, live(10));
	frame_of("/bin/idle", 16);
	/* as if most of the room were taken */
	uint32_t n = b->files.n_frames;
	b->files.frame = realloc(b->files.frame, (SWEEP_FRAMES_CROWDED + 10) * sizeof(void *));
	memset(b->files.frame + n, 0, (SWEEP_FRAMES_CROWDED + 10 - n) * sizeof(void *));
	b->files.n_frames = SWEEP_FRAMES_CROWDED + 10;
	b->files.size_frame = SWEEP_FRAMES_CROWDED + 10;
	struct frame *others = frame_of("/bin/other", 16);
	others->account = 4711;
	ck_assert(quota_take(&b->files.frames_of, 0, FRAMES_MAX, SWEEP_FRAMES_CROWDED));
	ck_assert(quota_take(&b->files.frames_of, 4711, FRAMES_MAX, 1));
	sweep();
	ck_assert_ptr_eq(frame_of("/bin/other", 16), others); /* its user has not crowded it */
	sweep_when_idle();
	ck_assert_uint_eq(b->files.n_frames, 1);
	ck_assert_uint_eq(b->files.size_frame, 1024);
	ck_assert_ptr_eq(frame_of("/bin/used", 0x10), used);
}

TEST(a_replaced_file_goes_and_its_successor_stays)
{
	struct file_key key = {
		.kind = FILE_ELF, .path = "/bin/x", .inode = 3, .major = 8, .generation = 1};
	struct file *former, *file, *again;
	ck_assert_int_eq(file_get(&b->files, &key, &former), 0);
	key.generation = 2;
	ck_assert_int_eq(file_get(&b->files, &key, &file), 0);
	ck_assert_ptr_ne(former, file);
	bench_fork(b, SECOND, 10, 10, 1);
	struct frame *frame;
	ck_assert_int_eq(frame_get(&b->files, file, 0, &frame), 0);
	sampled(frame, live(10));
	sweep_when_idle();
	ck_assert_ptr_null(b->files.file[0]);
	ck_assert_int_eq(file_get(&b->files, &key, &again), 0);
	ck_assert_ptr_eq(again, file);
}

TEST(kernel_files_stay_for_the_map)
{
	struct record r = bench_sample(b, BENCH_ALONE, SECOND, 10, 0xffffffff81000040);
	r.sample.kernel = true;
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 1);
	sweep_when_idle();
	ck_assert_uint_eq(b->files.n_files, 1);
	bench_take(b, &r, 0); /* the map points at it */
	ck_assert_uint_eq(b->n_sunk, 2);
	ck_assert_int_eq(bench_got(b, 1)->frame[0]->file->kind, FILE_KERNEL);
}

TEST(a_cgroup_stays_for_its_tasks_and_while_it_exists)
{
	ck_assert_int_eq(cgroup_set(&b->tasks, 7, "/no such group of this machine", 0), 0);
	ck_assert_int_eq(cgroup_set(&b->tasks, 8, "/nor this", 0), 0);
	ck_assert_int_eq(cgroup_set(&b->tasks, 9, "/", 0), 0);
	bench_fork(b, SECOND, 10, 10, 1);
	live(10)->cgroup = 8;
	sweep();
	ck_assert_ptr_nonnull(cgroup_find(&b->tasks, 7)); /* it cannot be looked for */
	with_cgroups();
	sweep();
	ck_assert_ptr_null(cgroup_find(&b->tasks, 7));
	ck_assert_ptr_nonnull(cgroup_find(&b->tasks, 8));
	ck_assert_ptr_nonnull(cgroup_find(&b->tasks, 9));
}

TEST(cgroups_that_exist_do_not_keep_those_that_do_not)
{
	with_cgroups();
	for (uint64_t id = 1; id <= SWEEP_CGROUPS_MAX; id++)
		ck_assert_int_eq(cgroup_set(&b->tasks, id, "/", 1000), 0);
	ck_assert_int_eq(cgroup_set(&b->tasks, 1u << 20, "/no such group", 0), 0);
	sweep();
	ck_assert_ptr_nonnull(cgroup_find(&b->tasks, 1u << 20));
	sweep();
	ck_assert_ptr_null(cgroup_find(&b->tasks, 1u << 20));
	ck_assert_int_eq(cgroup_set(&b->tasks, 1u << 20, "/no such group", 0), 0);
	sweep();
	sweep();
	ck_assert_ptr_null(cgroup_find(&b->tasks, 1u << 20));
	ck_assert_ptr_nonnull(cgroup_find(&b->tasks, SWEEP_CGROUPS_MAX));
}

TEST(long_arguments_are_cut_when_they_are_too_many)
{
	uint32_t n = SWEEP_ARGV_BYTES_MAX / TASK_ARGV_BYTES_MAX + 2;
	for (uint32_t i = 0; i < n; i++) {
		bench_fork(b, SECOND, (int)(100 + i), (int)(100 + i), 1);
		struct task *task = live((int)(100 + i));
		free(task->argv);
		task->argv = calloc(1, TASK_ARGV_BYTES_MAX + 1);
		ck_assert_ptr_nonnull(task->argv);
		memset(task->argv, 'x', TASK_ARGV_BYTES_MAX);
		task->n_argv = TASK_ARGV_BYTES_MAX;
	}
	sweep();
	size_t sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		ck_assert_uint_eq(strlen(live((int)(100 + i))->argv), live((int)(100 + i))->n_argv);
		sum += live((int)(100 + i))->n_argv;
	}
	ck_assert_uint_le(sum, n * SWEEP_ARGV_SHORT);
}

TEST(a_sweep_of_nothing_does_nothing)
{
	ck_assert_int_eq(attribute_sweep(b->attribute, NULL, NULL), 0);
	ck_assert_int_eq(attribute_sweep(b->attribute, NULL, NULL), 0);
}

static void mark_nonsense(void *userdata, struct sweep *s)
{
	(void)userdata;
	static struct task no_task = {.id = 4000000000u};
	static struct frame no_frame = {.id = 0};
	sweep_keep_task(s, NULL);
	sweep_keep_task(s, &no_task);
	sweep_keep_frame(s, NULL);
	sweep_keep_frame(s, &no_frame);
	sweep_reserve_task(s, 0);
	sweep_reserve_file(s, UINT32_MAX);
	sweep_reserve_frame(s, 1000);
}

TEST(marks_of_what_is_in_no_table_are_passed_over)
{
	brief(10, SECOND);
	ck_assert_int_eq(attribute_sweep(b->attribute, mark_nonsense, NULL), 0);
}

/* Weeks in short: processes come and go, code is seen and forgotten, windows are cut. */
TEST(tables_stay_flat_over_many_generations)
{
	uint32_t most_tasks = 0, most_frames = 0;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 500; i++) {
			int pid = 1000 + (round * 500 + i) % 20000;
			uint64_t at = SECOND + (uint64_t)(round * 500 + i) * 10;
			bench_fork(b, at, pid, pid, 1);
			if (i % 10 == 0)
				sampled(frame_of("/bin/prog", (uint64_t)(round * 500 + i) * 16),
					live(pid));
			bench_exit(b, at + 2, pid, pid);
		}
		sweep();
		b->files.aged_ns = 1;
		window_clear(&window);
		stack_tree_clear(&stacks);
		most_tasks = b->tasks.n_tasks > most_tasks ? b->tasks.n_tasks : most_tasks;
		most_frames = b->files.n_frames > most_frames ? b->files.n_frames : most_frames;
	}
	ck_assert_uint_le(most_tasks, 700);
	ck_assert_uint_le(most_frames, 250);
}
