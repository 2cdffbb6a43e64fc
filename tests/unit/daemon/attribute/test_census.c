/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/census.c, census_scan.c and cgroup_root.c: live processes, as /proc shows them */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/attribute/proc_reader.h"
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

EACH_TEST(.begin = setup, .end = teardown);

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

TEST(the_census_finds_processes_threads_and_mappings)
{
	bench_process(b, &prog);
	bench_thread(b, &prog, 11);
	bench_text(b, "proc/self/stat", "no process\n");
	bench_bytes(b, "proc/10/cmdline", "prog\0-v\0", 8);
	scan(NULL, 0);

	const struct task *task = live(10);
	ck_assert_uint_eq(b->tasks.n_tasks, 2);
	ck_assert_str_eq(task->comm, "prog");
	ck_assert_uint_eq(task->n_argv, 7);
	ck_assert_mem_eq(task->argv, "prog\0-v", 8);
	ck_assert_str_eq(task->exe, "/bin/prog");
	ck_assert_uint_eq(task->uid, 1000);
	ck_assert_uint_le(task->start_ns, SECOND);
	ck_assert_uint_gt(task->start_ns, SECOND - 20000000);
	ck_assert_str_eq(mapped_at(10, 0x10020), "/bin/prog");
	ck_assert_ptr_null(mapped_at(10, 0x11020));
	ck_assert_str_eq(mapped_at(10, 0x7020), "[vdso]");
	ck_assert_ptr_eq(live(11)->process, task);
	ck_assert_str_eq(mapped_at(11, 0x10020), "/bin/prog");
}

/* A child and a grandchild of prog's, and a stranger; only some are wanted. */
static void make_family(void)
{
	struct bench_process child = prog, grandchild = prog, stranger = prog;
	child.pid = 20;
	child.parent = 10;
	grandchild.pid = 30;
	grandchild.parent = 20;
	stranger.pid = 40;
	stranger.parent = 2;
	attribute_free(b->attribute);
	b->options.all = false;
	bench_start(b);
	bench_process(b, &prog);
	bench_process(b, &child);
	bench_process(b, &grandchild);
	bench_process(b, &stranger);
}

TEST(of_those_that_are_not_wanted_only_what_is_seen_is_read)
{
	const pid_t pids[] = {10};
	make_family();
	bench_children(b, 10, "");
	scan(pids, 1);
	ck_assert_uint_eq(b->tasks.n_tasks, 1);

	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 40, 0x10020);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 0);
	r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 30, 0x10020);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 1);
	ck_assert_ptr_eq(live(30)->parent, live(20));
	bench_fork(b, 3 * SECOND, 31, 31, 30);
	ck_assert(live(31)->wanted);
}

/* Whose parent may end before a record tells of it. */
TEST(what_descends_from_the_wanted_is_read_at_once)
{
	const pid_t pids[] = {10};
	make_family();
	bench_children(b, 10, "20 ");
	bench_children(b, 20, "30 ");
	bench_children(b, 30, "");
	scan(pids, 1);
	ck_assert_uint_eq(b->tasks.n_tasks, 3);
	ck_assert(live(20)->wanted && live(30)->wanted);
}

TEST(where_the_kernel_does_not_list_children_all_are_read)
{
	const pid_t pids[] = {10};
	make_family();
	scan(pids, 1);
	ck_assert_uint_eq(b->tasks.n_tasks, 4);
	ck_assert(live(30)->wanted && !live(40)->wanted);
}

TEST(a_fork_of_one_that_is_not_known_is_its_child_s)
{
	struct bench_process child = prog;
	const pid_t pids[] = {10};
	child.pid = 20;
	child.parent = 10;
	attribute_free(b->attribute);
	b->options.all = false;
	bench_start(b);
	bench_process(b, &prog);
	bench_children(b, 10, "");
	bench_process(b, &child);
	scan(pids, 1);
	bench_fork(b, 2 * SECOND, 21, 21, 20); /* and has ended by now */
	ck_assert(live(21)->wanted);
	ck_assert_str_eq(live(21)->comm, "prog");
}

TEST(processes_that_vanish_or_lie_are_passed_over)
{
	bench_text(b, "proc/20/stat", "not a stat");
	bench_text(b, "proc/21/stat", "22 (other) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 3 0");
	bench_text(b, "proc/23/comm", "no stat");
	bench_text(b, "proc/99999999999/stat", "");
	bench_text(b, "proc/24", "a file");
	bench_text(b, "proc/25/stat", "25 (bare) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 3 0");
	scan(NULL, 0);
	ck_assert_uint_eq(b->tasks.n_tasks, 1);
	ck_assert_str_eq(live(25)->comm, "bare");
	ck_assert_ptr_null(live(25)->argv);
	ck_assert_uint_eq(live(25)->uid, (uid_t)-1);
}

TEST(a_step_of_a_scan_reads_one_process)
{
	unsigned n = 0;

	for (int pid = 10; pid < 15; pid++)
		bench_process(
			b, &(struct bench_process){
				   .pid = pid, .parent = 1, .comm = "prog", .start_ns = SECOND});
	ck_assert_int_eq(attribute_scan_begin(b->attribute, (pid_t[]){12}, 1), 0);
	ck_assert_uint_eq(b->tasks.n_tasks, 0);
	for (; attribute_scans(b->attribute); n = b->tasks.n_tasks) {
		ck_assert_int_eq(attribute_scan_next(b->attribute), 0);
		ck_assert_uint_le(b->tasks.n_tasks, n + 1);
	}
	ck_assert_uint_eq(n, 5);
	ck_assert(live(12)->wanted && !live(11)->wanted);
}

TEST(a_scan_may_end_in_the_middle)
{
	bench_process(b, &prog);
	ck_assert_int_eq(attribute_scan_begin(b->attribute, NULL, 0), 0);
	ck_assert_int_eq(attribute_scan_next(b->attribute), 0);
	ck_assert_int_eq(attribute_scan_begin(b->attribute, NULL, 0), 0);
	ck_assert(attribute_scans(b->attribute));
}

TEST(a_proc_that_is_not_there_is_an_error)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/nothing", b->root);
	attribute_free(b->attribute);
	b->options.proc = path;
	bench_start(b);
	ck_assert_int_lt(attribute_scan(b->attribute, NULL, 0), 0);
	attribute_free(b->attribute);
	b->attribute = NULL;
}

TEST(kernel_threads_have_no_mappings)
{
	struct bench_process p = {.pid = 2,
		.comm = "kthreadd",
		.flags = 0x00208040,
		.start_ns = SECOND,
		.maps = prog.maps};

	bench_process(b, &p);
	scan(NULL, 0);
	ck_assert(live(2)->kernel_thread);
	ck_assert_ptr_null(live(2)->space);
}

TEST(many_unknown_threads_have_the_mappings_read_once_a_second)
{
	struct bench_process later = prog;
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, 0x10010);
	bench_process(b, &prog);
	r.tid = 11;
	bench_take(b, &r, 0);
	ck_assert_str_eq(mapped_at(10, 0x10020), "/bin/prog");

	later.maps = "20000-21000 r-xp 00000000 08:00 78 /lib/more\n";
	bench_process(b, &later);
	live(10)->maps_read_ns += 60 * SECOND; /* however long this test takes */
	r.tid = 12;
	bench_take(b, &r, 0);
	ck_assert_ptr_null(mapped_at(10, 0x20020));

	live(10)->maps_read_ns -= 61 * SECOND;
	r.tid = 13;
	bench_take(b, &r, 0);
	ck_assert_str_eq(mapped_at(10, 0x20020), "/lib/more");
	ck_assert_str_eq(mapped_at(10, 0x10020), "/bin/prog");
}

TEST(mappings_are_read_at_once_after_an_exec_whose_records_were_lost)
{
	struct bench_process next = prog;
	bench_process(b, &prog);
	scan(NULL, 0);
	live(10)->maps_read_ns += 60 * SECOND;
	next.maps = "20000-21000 r-xp 00000000 08:00 78 /bin/next\n";
	bench_process(b, &next);
	bench_comm(b, 2 * SECOND, 10, "next", true);
	struct record r = bench_sample(b, BENCH_ALONE, 3 * SECOND, 10, 0x20010);
	r.tid = 11;
	bench_take(b, &r, 0);
	ck_assert_str_eq(mapped_at(10, 0x20020), "/bin/next");
	ck_assert_ptr_null(mapped_at(10, 0x10020));
}

TEST(targets_and_all_that_descend_from_them_are_wanted)
{
	struct bench_process parent = prog, child = prog, grandchild = prog, other = prog;

	/* numbers have come round: the child's is below the parent's */
	parent.pid = 30;
	child.pid = 20;
	child.parent = 30;
	grandchild.pid = 40;
	grandchild.parent = 20;
	other.pid = 50;
	bench_process(b, &parent);
	bench_process(b, &child);
	bench_process(b, &grandchild);
	bench_thread(b, &grandchild, 41);
	bench_process(b, &other);
	scan((pid_t[]){30, 4711}, 2);
	ck_assert(live(30)->wanted);
	ck_assert(live(20)->wanted);
	ck_assert(live(40)->wanted);
	ck_assert(live(41)->wanted);
	ck_assert(!live(50)->wanted);
	ck_assert_ptr_eq(live(20)->parent, live(30));
}

/* --- processes that do not answer at first ---------------------------------------------------- */

static struct proc_reader *reader;
static int (*rights_of)(int folder_fd, uid_t account, struct rights *ret_rights);
static atomic_ulong blocked; /* inode of the folder whose owner cannot be read; 0: none */

static int rights_at_last(int folder_fd, uid_t account, struct rights *ret_rights)
{
	struct stat st;

	while (fstat(folder_fd, &st) == 0 && st.st_ino == blocked)
		usleep(1000);
	return rights_of(folder_fd, account, ret_rights);
}

/* As setup, with reads in threads, and a process that does not answer. */
static void begin_silent(const struct bench_process *silent)
{
	char path[128];
	struct stat st;

	bench_free(b);
	b = bench_new();
	ck_assert_int_eq(proc_reader_new(&reader), 0);
	b->options.reader = reader;
	rights_of = b->options.rights;
	b->options.rights = rights_at_last;
	bench_start(b);
	bench_process(b, silent);
	snprintf(path, sizeof(path), "%s/%d", b->proc, silent->pid);
	ck_assert_int_eq(stat(path, &st), 0);
	blocked = st.st_ino;
}

/* Who is silent is asked again once a second. */
static void await(int pid)
{
	for (int i = 0; i < 1000 && !task_find(&b->tasks, pid); i++) {
		usleep(10000);
		attribute_drained(b->attribute);
	}
}

static void let_answer(int pid)
{
	blocked = 0;
	await(pid);
}

static void end_silent(void)
{
	bench_free(b);
	reader = proc_reader_free(reader);
	b = bench_new();
	bench_start(b);
}

TEST(a_target_that_was_silent_once_is_wanted_later, .seconds = 60)
{
	begin_silent(&prog);
	scan((pid_t[]){10}, 1);
	ck_assert_ptr_null(task_find(&b->tasks, 10));
	let_answer(10);
	ck_assert(live(10)->wanted);
	end_silent();
}

TEST(what_descends_from_one_that_was_silent_once_is_wanted_later, .seconds = 60)
{
	struct bench_process target = prog, child = prog, grandchild = prog, idle = prog;

	target.pid = 30;
	child.pid = 20;
	child.parent = 30;
	grandchild.pid = 40;
	idle.pid = 50;
	grandchild.parent = idle.parent = 20;
	begin_silent(&child);
	bench_process(b, &target);
	bench_process(b, &grandchild);
	bench_process(b, &idle);
	bench_children(b, 30, "20 ");
	bench_children(b, 20, "40 50 ");
	bench_children(b, 40, "");
	bench_children(b, 50, "");
	scan((pid_t[]){30}, 1);
	ck_assert(live(30)->wanted);
	struct record r = bench_sample(b, BENCH_ALONE, 3 * SECOND, 40, 0x10010);
	bench_take(b, &r, 0);
	ck_assert(!live(40)->wanted); /* nobody knows whose child it is */
	let_answer(20);
	ck_assert(live(20)->wanted);
	ck_assert(live(40)->wanted);
	await(50);
	ck_assert(live(50)->wanted);
	end_silent();
}

TEST(a_long_line_of_descent_is_found_in_any_order)
{
	/* no folder lists them all with parents first but by a great chance */
	static const int pids[] = {30, 20, 90, 10, 60, 50, 80, 40, 70};

	for (size_t i = 0; i < 9; i++) {
		struct bench_process p = prog;
		p.pid = pids[i];
		p.parent = i ? pids[i - 1] : 1;
		bench_process(b, &p);
	}
	scan((pid_t[]){30}, 1);
	for (size_t i = 1; i < 9; i++) {
		ck_assert_ptr_eq(live(pids[i])->parent, live(pids[i - 1]));
		ck_assert(live(pids[i])->wanted);
	}
}

TEST(parents_in_a_circle_end)
{
	struct bench_process p = prog, q = prog, itself = prog;

	p.parent = 20;
	q.pid = 20;
	q.parent = 10;
	itself.pid = itself.parent = 30;
	bench_process(b, &p);
	bench_process(b, &q);
	bench_process(b, &itself);
	scan(NULL, 0);
	ck_assert(!live(10)->wanted);
	ck_assert_ptr_null(live(30)->parent);
}

TEST(long_arguments_are_cut_with_a_mark)
{
	char argv[TASK_ARGV_BYTES_MAX + 100];

	memset(argv, 'x', sizeof(argv));
	bench_process(b, &prog);
	bench_bytes(b, "proc/10/cmdline", argv, sizeof(argv));
	scan(NULL, 0);
	ck_assert_uint_eq(live(10)->n_argv, TASK_ARGV_BYTES_MAX);
	ck_assert_str_eq(live(10)->argv + TASK_ARGV_BYTES_MAX - 4, "x…");
}

TEST(arguments_are_not_cut_inside_a_character)
{
	char argv[TASK_ARGV_BYTES_MAX + 100];

	for (size_t i = 0; i + 1 < sizeof(argv); i += 2)
		memcpy(argv + i, "ä", 2);
	bench_process(b, &prog);
	bench_bytes(b, "proc/10/cmdline", argv, sizeof(argv));
	scan(NULL, 0);
	ck_assert_uint_eq(live(10)->n_argv, TASK_ARGV_BYTES_MAX - 1);
	ck_assert_str_eq(live(10)->argv + live(10)->n_argv - 5, "ä…");
}

TEST(cgroups_have_the_number_of_their_folder)
{
	char path[256];
	struct stat st;

	bench_text(b, "sys/fs/cgroup/cgroup.controllers", "");
	bench_text(b, "sys/fs/cgroup/user.slice/cgroup.procs", "");
	bench_text(b, "sys/fs/cgroup/ci/job/cgroup.procs", "");
	attribute_free(b->attribute);
	bench_start(b);
	bench_process(b, &prog);
	scan(NULL, 0);
	snprintf(path, sizeof(path), "%s/sys/fs/cgroup/user.slice", b->root);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(live(10)->cgroup, st.st_ino);
	ck_assert_str_eq(cgroup_find(&b->tasks, st.st_ino)->path, "/user.slice");
	snprintf(path, sizeof(path), "%s/sys/fs/cgroup/ci/job", b->root);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_str_eq(cgroup_find(&b->tasks, st.st_ino)->path, "/ci/job");
	snprintf(path, sizeof(path), "%s/sys/fs/cgroup", b->root);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_str_eq(cgroup_find(&b->tasks, st.st_ino)->path, "/");
}

TEST(a_cgroup_without_a_folder_still_has_a_name)
{
	bench_process(b, &prog);
	scan(NULL, 0);
	ck_assert_uint_ne(live(10)->cgroup >> 63, 0);
	ck_assert_str_eq(cgroup_find(&b->tasks, live(10)->cgroup)->path, "/user.slice");
}

TEST(folders_of_cgroups_are_not_followed_without_end)
{
	char path[1024] = "sys/fs/cgroup/cgroup.controllers";

	bench_text(b, path, "");
	strcpy(path, "sys/fs/cgroup");
	for (int i = 0; i < 50; i++)
		strcat(path, "/d");
	ck_assert_uint_lt(strlen(path), 300);
	strcat(path, "/cgroup.procs");
	bench_text(b, path, "");
	attribute_free(b->attribute);
	bench_start(b);
	scan(NULL, 0);
	ck_assert_uint_ge(HASH_COUNT(b->tasks.cgroups), 32);
	ck_assert_uint_lt(HASH_COUNT(b->tasks.cgroups), 40);
}

/* --- the machine itself ----------------------------------------------------------------------- */

static void own_function(void)
{
}

static void *wait_for_scan(void *userdata)
{
	pthread_barrier_t *barriers = userdata;

	pthread_barrier_wait(&barriers[0]);
	pthread_barrier_wait(&barriers[1]);
	return NULL;
}

TEST(the_real_proc_has_this_very_test)
{
	pthread_barrier_t barriers[2];
	pthread_t thread;
	char exe[256] = "";

	attribute_free(b->attribute);
	b->options.proc = "/proc";
	bench_start(b);
	pthread_barrier_init(&barriers[0], NULL, 2);
	pthread_barrier_init(&barriers[1], NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_scan, barriers), 0);
	pthread_barrier_wait(&barriers[0]);
	scan((pid_t[]){getpid()}, 1);
	pthread_barrier_wait(&barriers[1]);
	pthread_join(thread, NULL);

	const struct task *self = live(getpid());
	ck_assert_int_gt(readlink("/proc/self/exe", exe, sizeof(exe) - 1), 0);
	ck_assert_str_eq(self->exe, exe);
	ck_assert_str_eq(mapped_at(getpid(), (uintptr_t)own_function), exe);
	ck_assert_int_eq(strncmp(self->comm, strrchr(exe, '/') + 1, TASK_COMM_BYTES - 1), 0);
	ck_assert_ptr_nonnull(strstr(self->argv, self->comm));
	ck_assert_uint_eq(self->uid, getuid());
	ck_assert_uint_eq(self->n_threads, 2);
	ck_assert(self->wanted);
	ck_assert_ptr_eq(self->parent, live(getppid()));
	ck_assert_uint_gt(self->start_ns, live(getppid())->start_ns);
	ck_assert_ptr_nonnull(cgroup_find(&b->tasks, self->cgroup));
}
