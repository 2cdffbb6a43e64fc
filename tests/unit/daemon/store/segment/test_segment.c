/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Writing segments: what is written is there when it is read, whatever breaks off leaves a file
 * that says so, and a full disc costs what was to be written and nothing else.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/memory.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	memset(&s, 0, sizeof(s));
}

EACH_TEST(.end = end, .seconds = 60);

/* One sample of one named function. */
static void add_one(void)
{
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "main");
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
}

static void begin_sealed(void)
{
	stored_begin_clock(&s);
	add_one();
	sqlite3_close(stored_seal(&s));
	s.db = NULL;
}

static int open_path(const char *path, struct segment_error *error)
{
	sqlite3 *db = NULL;
	*error = (struct segment_error){"", ""};
	int r = segment_open(path, &db, error);
	if (r == 0)
		sqlite3_close(db);
	else {
		ck_assert_ptr_null(db);
		ck_assert_msg(
			strstr(error->text, path) != NULL, "\"%s\" names no file", error->text);
		ck_assert_str_ne(error->remedy, "");
	}
	return r;
}

static void write_at(const char *path, off_t at, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

TEST(sealed_segment_is_one_file_of_its_owner)
{
	struct stat st;
	char beside[200];
	begin_sealed();
	ck_assert_int_eq(stat(s.path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(st.st_size % SEGMENT_PAGE_BYTES, TRAILER_BYTES);
	const char *const suffix[] = {"-wal", "-shm", "-journal"};
	for (size_t i = 0; i < 3; i++) {
		snprintf(beside, sizeof(beside), "%s%s", s.path, suffix[i]);
		ck_assert_int_eq(access(beside, F_OK), -1);
	}
}

TEST(segment_says_what_it_is)
{
	stored_begin_clock(&s);
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "PRAGMA application_id"), SEGMENT_APPLICATION_ID);
	ck_assert_int_eq(stored_number(db, "PRAGMA user_version"), SEGMENT_VERSION);
	ck_assert_int_eq(stored_number(db, "SELECT value FROM meta WHERE key='sealed'"), 1);
	ck_assert_int_eq(stored_number(db, "SELECT value FROM meta WHERE key='hz'"), 99);
	ck_assert_int_eq(
		stored_number(db, "SELECT value FROM meta WHERE key='end_ns'"), 2000000000);
	ck_assert_str_eq(stored_string(db, "SELECT value FROM meta WHERE key='arch'"), "riscv64");
	ck_assert_str_eq(stored_string(db, "PRAGMA quick_check"), "ok");
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM hart WHERE rung = 4 "
					   "AND leader = 1"),
		STORED_HARTS);
}

TEST(file_that_exists_is_not_overwritten)
{
	struct segment *g = NULL;
	char bytes[4] = "";
	stored_begin_clock(&s);
	char other[160];
	snprintf(other, sizeof(other), "%s/other", s.folder);
	write_at(other, 0, "mine", 4);
	ck_assert_int_eq(segment_create(other, &(struct segment_meta){0}, &s.sampler, &g), -EEXIST);
	ck_assert_ptr_null(g);
	int fd = open(other, O_RDONLY);
	ck_assert_int_eq(read(fd, bytes, 4), 4);
	close(fd);
	ck_assert_mem_eq(bytes, "mine", 4);
}

TEST(link_is_not_followed_when_writing)
{
	struct segment *g = NULL;
	stored_begin_clock(&s);
	char link[160], target[160];
	snprintf(link, sizeof(link), "%s/link", s.folder);
	snprintf(target, sizeof(target), "%s/target", s.folder);
	ck_assert_int_eq(symlink(target, link), 0);
	ck_assert_int_eq(segment_create(link, &(struct segment_meta){0}, &s.sampler, &g), -EEXIST);
	ck_assert_int_eq(access(target, F_OK), -1);
}

TEST(folder_that_is_not_there_is_an_error)
{
	struct segment *g = NULL;
	stored_begin_clock(&s);
	char path[160];
	snprintf(path, sizeof(path), "%s/none/segment", s.folder);
	ck_assert_int_eq(segment_create(path, &(struct segment_meta){0}, &s.sampler, &g), -ENOENT);
	snprintf(path, sizeof(path), "%s/", s.folder);
	ck_assert_int_eq(segment_create(path, &(struct segment_meta){0}, &s.sampler, &g), -EISDIR);
}

TEST(folder_may_be_reached_by_a_link)
{
	struct segment *g = NULL;
	stored_begin_clock(&s);
	char link[160], path[200];
	snprintf(link, sizeof(link), "%s/link", s.folder);
	ck_assert_int_eq(symlink(".", link), 0);
	snprintf(path, sizeof(path), "%s/segment2", link);
	ck_assert_int_eq(segment_create(path, &(struct segment_meta){0}, &s.sampler, &g), 0);
	segment_abandon(g, true);
}

TEST(thread_of_unknown_user_is_its_process_s)
{
	stored_begin_clock(&s);
	struct task *process = stored_task(&s, 100, 100, "prog");
	struct task *early = stored_task(&s, 100, 101, "early");
	struct task *other = stored_task(&s, 100, 102, "other");
	struct frame *f = stored_function(&s, "/bin/prog", "main");
	ck_assert_uint_eq(early->uid, (uid_t)-1);
	process->uid = 1000;
	other->uid = 0;
	stored_add(&s, &(struct stored_sample){.task = early, .frame = {f}});
	stored_add(&s, &(struct stored_sample){.task = other, .frame = {f}});
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT uid FROM task WHERE tid = 100"), 1000);
	ck_assert_int_eq(stored_number(db, "SELECT uid FROM task WHERE tid = 101"), 1000);
	ck_assert_int_eq(stored_number(db, "SELECT uid FROM task WHERE tid = 102"), 0);
}

TEST(window_is_stored_with_all_that_it_needs)
{
	stored_begin_clock(&s);
	struct task *shell = stored_task(&s, 10, 10, "sh");
	struct task *process = stored_task(&s, 100, 100, "prog");
	struct task *thread = stored_task(&s, 100, 101, "worker");
	stored_task(&s, 999, 999, "idler");
	process->parent = shell;
	process->argv = malloc(8);
	memcpy(process->argv, "prog\0-x", 8);
	process->n_argv = 8;
	process->cgroup = 77;
	ck_assert_int_eq(cgroup_set(&s.tasks, 77, "/user.slice", 0), 0);
	struct frame *leaf = stored_function(&s, "/lib/l.so", "leaf");
	struct frame *root = stored_function(&s, "/bin/prog", "main");
	stored_add(&s, &(struct stored_sample){.task = thread, .frame = {leaf, root}});
	sqlite3 *db = stored_seal(&s);

	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM task"), 3);
	ck_assert_str_eq(
		stored_string(db, "SELECT p.comm FROM sample s JOIN task t ON t.id = s.task "
				  "JOIN task p ON p.id = t.process"),
		"prog");
	ck_assert_str_eq(
		stored_string(db, "SELECT p.comm FROM task t JOIN task p ON p.id = t.parent"),
		"sh");
	ck_assert_str_eq(stored_string(db, "SELECT hex(argv) FROM task WHERE argv NOT NULL"),
		"70726F67002D7800");
	ck_assert_str_eq(
		stored_string(db, "SELECT path FROM cgroup JOIN task ON cgroup = cgroup.id"),
		"/user.slice");
	ck_assert_str_eq(
		stored_string(db,
			"SELECT f.name FROM sample s JOIN stack k ON k.id = s.stack "
			"JOIN stack c ON c.id = k.parent JOIN place p ON p.frame = c.frame "
			"JOIN function f ON f.id = p.function WHERE c.parent = 0"),
		"main");
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM file"), 2);
	ck_assert_int_eq(stored_number(db, "SELECT weight_ns FROM sample"), 10000000);
}

TEST(what_was_stored_is_not_stored_again)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "main");
	for (uint64_t i = 0; i < 3; i++) {
		stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
		ck_assert_int_eq(stored_flush(&s, i * 1000, i * 1000 + 1000), 0);
	}
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM sample"), 3);
	ck_assert_int_eq(stored_number(db, "SELECT count(DISTINCT window) FROM sample"), 3);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM stack"), 1);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM frame"), 1);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM task"), 1);
}

TEST(samples_without_counts_are_stored_and_switches_that_are_counted_later)
{
	static const char key[] = "SELECT value FROM meta WHERE key = 'switches'";
	stored_begin_group(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "main");
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	s.sampler.plan[0].cut = CUT_SIBLING;
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	/* by the time that it is written it may be cut again */
	stored_add(
		&s, &(struct stored_sample){.task = t, .count = 5, .uncounted = 2, .frame = {f}});
	ck_assert_int_eq(stored_flush(&s, 1000, 2000), 0);
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, key), CUT_SIBLING | CUT_COUNT);
	ck_assert_int_eq(stored_number(db, "SELECT uncounted FROM sample WHERE count = 1"), 0);
	ck_assert_int_eq(stored_number(db, "SELECT uncounted FROM sample WHERE count = 5"), 2);
}

TEST(empty_window_is_stored)
{
	stored_begin_clock(&s);
	ck_assert_int_eq(stored_flush(&s, 5, 10), 0);
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT end_ns - start_ns FROM window"), 5);
}

TEST(name_that_comes_later_is_stored)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_frame(&s, FILE_ELF, "/bin/prog", 16);
	struct frame *never = stored_frame(&s, FILE_ELF, "/bin/prog", 32);
	f->state = never->state = FRAME_ASKED;
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f, never}});
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	stored_name(f, "inner@a.c:3", "outer@b.c:7", NULL);
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM frame WHERE state = 2"), 1);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM frame WHERE state = 1"), 1);
	ck_assert_str_eq(
		stored_string(db, "SELECT group_concat(name || path || line || inlined) FROM "
				  "(SELECT * FROM place JOIN function f ON f.id = function "
				  "JOIN source s ON s.id = source ORDER BY depth)"),
		"innera.c31,outerb.c70");
}

TEST(name_is_stored_once)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *a = stored_function(&s, "/bin/prog", "main");
	struct frame *b = stored_function(&s, "/bin/prog", "main");
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {a, b}});
	ck_assert_int_eq(stored_number(stored_seal(&s), "SELECT count(*) FROM function"), 1);
}

TEST(name_that_is_unknown_stays_null)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_frame(&s, FILE_ELF, "/bin/prog", 16);
	stored_name(f, "@a.c:3", "plain", NULL);
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT line FROM place WHERE function IS NULL"), 3);
	ck_assert_int_eq(stored_number(db, "SELECT depth FROM place WHERE source IS NULL "
					   "AND line IS NULL"),
		1);
}

TEST(changed_task_and_file_are_updated)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "before");
	struct task *parent = stored_task(&s, 9, 9, "late");
	struct frame *f = stored_function(&s, "/bin/prog", "main");
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	task_set_comm(t, "after");
	t->parent = parent;
	t->end_ns = 777;
	t->changed = true;
	f->file->state = FILE_SPUN;
	f->file->has_symbols = f->file->has_debug = f->file->split_missing = true;
	sqlite3 *db = stored_seal(&s);
	ck_assert(!t->changed);
	ck_assert_str_eq(stored_string(db, "SELECT comm FROM task WHERE pid = 100"), "after");
	ck_assert_int_eq(stored_number(db, "SELECT end_ns FROM task WHERE pid = 100"), 777);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM task WHERE comm = 'late'"), 1);
	ck_assert_int_eq(stored_number(db, "SELECT state FROM file"), FILE_SPUN);
	ck_assert_int_eq(stored_number(db, "SELECT has_symbols FROM file"), 1);
	ck_assert_int_eq(stored_number(db, "SELECT has_debug FROM file"), 2);
}

TEST(losses_are_stored_as_what_they_grew_by)
{
	stored_begin_clock(&s);
	s.lost[0][LOSS_RING] = 5;
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	s.lost[0][LOSS_RING] = 7;
	s.lost[3][LOSS_NAMER] = 1;
	ck_assert_int_eq(stored_flush(&s, 1000, 2000), 0);
	ck_assert_int_eq(stored_flush(&s, 2000, 3000), 0);
	s.lost[3][LOSS_NAMER] = 4; /* after the last window: counts to it */
	sqlite3 *db = stored_seal(&s);
	ck_assert_str_eq(
		stored_string(db, "SELECT group_concat(window || ':' || hart || ':' || count) "
				  "FROM loss"),
		"1:0:5,2:0:2,2:3:1,3:3:3");
	ck_assert_str_eq(
		stored_string(db, "SELECT cause FROM loss LIMIT 1"), loss_kinds[LOSS_RING].name);
}

TEST(kernel_address_is_never_stored)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *lost = stored_frame(&s, FILE_UNKNOWN, "", 0xffffffff81000000u);
	struct frame *anon = stored_frame(&s, FILE_ANON, "//anon", 0xffffffff81000001u);
	struct frame *user = stored_frame(&s, FILE_ANON, "//anon", 0x7fff00000000u);
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {lost, anon, user}});
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM frame WHERE offset = 0"), 2);
	ck_assert_int_eq(stored_number(db, "SELECT max(offset) FROM frame"), 0x7fff00000000);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM frame WHERE offset < 0"), 0);
}

TEST(clock_needs_no_reading_and_counters_have_one)
{
	stored_begin_group(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .n_reads = 3,
			       .read = {{0, 999, 1000, 1000}, {1, 5000, 1000, 500},
				       {2, 6000, 1000, 1000}}});
	sqlite3 *db = stored_seal(&s);
	ck_assert_str_eq(stored_string(db, "SELECT group_concat(name || ':' || value || ':' || "
					   "ifnull(running_ns, 'all')) FROM reading JOIN event e "
					   "ON e.id = event"),
		"cycles:5000:500,instructions:6000:all");
}

TEST(lone_event_has_its_periods)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "cache-misses");
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	stored_add(&s, &(struct stored_sample){.task = t, .period = 300});
	stored_add(&s, &(struct stored_sample){.task = t, .period = 200});
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(
		stored_number(db, "SELECT value FROM reading WHERE enabled_ns IS NULL"), 500);
	ck_assert_int_eq(stored_number(db, "SELECT count FROM sample"), 2);
}

TEST(same_event_twice_is_one_event)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cpu-cycles");
	stored_event(&s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles:u");
	s.sampler.events.event[2].exclude_kernel = true;
	stored_begin(&s);
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM event"), 2);
	ck_assert_int_eq(
		stored_number(db, "SELECT modifiers FROM event WHERE name = 'cycles:u'"), 2);
}

TEST(hart_that_came_later_is_stored)
{
	stored_folder(&s);
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	s.sampler.machine.n_harts = 2;
	stored_begin(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	stored_add(&s, &(struct stored_sample){.task = t, .hart = 3});
	sqlite3 *db = stored_seal(&s);
	ck_assert_str_eq(stored_string(db, "SELECT group_concat(id) FROM hart"), "0,1,3");
	ck_assert_int_eq(stored_number(db, "SELECT leader FROM hart WHERE id = 3"), 1);
}

TEST(abandoned_segment_is_removed_or_stays_unsealed)
{
	struct segment_error error;
	stored_begin_clock(&s);
	add_one();
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	s.segment = segment_abandon(s.segment, false);
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_UNSEALED);
	unlink(s.path);
	struct segment_meta meta = {0};
	ck_assert_int_eq(segment_create(s.path, &meta, &s.sampler, &s.segment), 0);
	s.segment = segment_abandon(s.segment, true);
	ck_assert_int_eq(rmdir(s.folder), 0); /* nothing is left in it */
	ck_assert_ptr_null(segment_abandon(NULL, true));
}

/* --- no space --------------------------------------------------------------------------------- */

/* Windows of many stacks until the disc is full, then once more with room. */
static uint64_t fill_up(struct task *t, int *ret_outcome)
{
	uint64_t n = 0;
	int r = 0;
	for (; n < 200 && r == 0; n++) {
		for (int i = 0; i < 500; i++) {
			struct frame *f =
				stored_frame(&s, FILE_ELF, "/bin/prog", s.files.n_frames * 16u);
			stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
		}
		r = stored_flush(&s, n * 1000, n * 1000 + 1000);
	}
	*ret_outcome = r;
	return n - 1; /* windows that are stored */
}

TEST(full_disc_rolls_back_and_goes_on)
{
	int r;
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	sqlite3_exec(s.segment->db, "PRAGMA max_page_count=64", NULL, NULL, NULL);
	uint64_t n = fill_up(t, &r);
	ck_assert_int_eq(r, SEGMENT_NO_SPACE);
	ck_assert_uint_gt(n, 0);
	task_set_comm(t, "renamed");
	t->changed = true;
	ck_assert_int_eq(stored_flush(&s, n * 1000, n * 1000 + 1000), SEGMENT_NO_SPACE);
	sqlite3_exec(s.segment->db, "PRAGMA max_page_count=100000", NULL, NULL, NULL);
	ck_assert_int_eq(stored_flush(&s, n * 1000, n * 1000 + 1000), 0);

	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM window"), (int64_t)n + 1);
	ck_assert_int_eq(stored_number(db, "SELECT max(id) FROM window"), (int64_t)n + 1);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM sample"), ((int64_t)n + 1) * 500);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM sample WHERE stack NOT IN "
					   "(SELECT id FROM stack)"),
		0);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM stack WHERE frame NOT IN "
					   "(SELECT id FROM frame)"),
		0);
	ck_assert_str_eq(stored_string(db, "SELECT comm FROM task"), "renamed");
	ck_assert_str_eq(stored_string(db, "PRAGMA integrity_check"), "ok");
}

TEST(name_of_a_window_that_failed_is_written_again)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	char name[3000];
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	struct frame *f = stored_function(&s, "/bin/prog", name);
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	for (uint32_t i = 0; i < 1000; i++)
		stored_add(&s, &(struct stored_sample){.task = t,
				       .frame = {stored_frame(&s, FILE_ELF, "/bin/prog", i)}});
	sqlite3_exec(s.segment->db, "PRAGMA max_page_count=30", NULL, NULL, NULL);
	ck_assert_int_eq(stored_flush(&s, 0, 1000), SEGMENT_NO_SPACE);
	sqlite3_exec(s.segment->db, "PRAGMA max_page_count=100000", NULL, NULL, NULL);
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT length(name) FROM function"), 2999);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM place"), 1);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM frame"), 1001);
}

TEST(file_system_that_is_full_is_no_space)
{
	char home[64], path[160];
	int r;
	stored_folder(&s);
	snprintf(home, sizeof(home), "%s", s.folder);
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", home, "tmpfs", 0, "size=512k") < 0) {
		printf("SKIP file_system_that_is_full_is_no_space: may not mount a small tmpfs\n");
		return;
	}
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_begin(&s);
	uint64_t n = fill_up(stored_task(&s, 100, 100, "prog"), &r);
	ck_assert_int_eq(r, SEGMENT_NO_SPACE);
	ck_assert_int_eq(mount("none", home, "tmpfs", MS_REMOUNT, "size=8m"), 0);
	ck_assert_int_eq(stored_flush(&s, n * 1000, n * 1000 + 1000), 0);
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM sample"), ((int64_t)n + 1) * 500);

	struct segment *g = NULL;
	ck_assert_int_eq(mount("none", home, "tmpfs", MS_REMOUNT, "size=1"), -1);
	snprintf(path, sizeof(path), "%s/full", home);
	int fd = open("/dev/zero", O_RDONLY), full = open(path, O_WRONLY | O_CREAT, 0600);
	char zeros[4096];
	while (read(fd, zeros, sizeof(zeros)) > 0 && write(full, zeros, sizeof(zeros)) > 0)
		;
	close(fd);
	close(full);
	snprintf(path, sizeof(path), "%s/second", home);
	ck_assert_int_eq(
		segment_create(path, &(struct segment_meta){0}, &s.sampler, &g), SEGMENT_NO_SPACE);
	ck_assert_int_eq(access(path, F_OK), -1);
	sqlite3_close(db);
	s.db = NULL;
	stored_end(&s);
	umount2(home, MNT_DETACH);
	rmdir(home);
	*s.folder = '\0';
}
