/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Naming through the real workers: what is found, where it is looked for, and what is said of a
 * file that cannot be named. How workers fail is in test_namer_worker.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/naming/namer_private.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

static struct namer_rig rig;

static void setup(void)
{
	namer_rig_begin(&rig, &(struct namer_options){0});
}

static void teardown(void)
{
	namer_rig_end(&rig);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 40);

static bool skip(const char *test, const char *reason)
{
	printf("SKIP %s: %s\n", test, reason);
	fflush(stdout);
	return true;
}

static __attribute__((noinline)) int namer_test_landmark(volatile int *x)
{
	*x += 1;
	return *x * 2;
}

static uint64_t landmark_offset(void)
{
	return namer_rig_find((void *)(uintptr_t)namer_test_landmark).offset;
}

/* --- names ------------------------------------------------------------------------------------ */

TEST(function_of_this_program_has_name_source_and_line)
{
	struct namer_rig_spot s = namer_rig_find((void *)(uintptr_t)namer_test_landmark);
	struct file *f = namer_rig_file(&rig, FILE_ELF, s.path);
	struct frame *frame = namer_rig_name(&rig, f, s.offset + 1);

	ck_assert_int_eq(frame->state, FRAME_NAMED);
	ck_assert_str_eq(namer_rig_symbol(frame), "namer_test_landmark");
	ck_assert_ptr_nonnull(frame->place[0].source);
	ck_assert_ptr_nonnull(strstr(frame->place[0].source, "test_namer.c"));
	ck_assert_uint_gt(frame->place[0].line, 20);
	ck_assert_int_eq(f->state, FILE_READY);
	ck_assert(f->has_symbols && f->has_debug);
	ck_assert_uint_eq(f->symbols_named, 1);
}

TEST(function_of_libc_is_named)
{
	struct namer_rig_spot s = namer_rig_find((void *)(uintptr_t)fclose);
	struct frame *frame =
		namer_rig_name(&rig, namer_rig_file(&rig, FILE_ELF, s.path), s.offset);

	ck_assert_int_eq(frame->state, FRAME_NAMED);
	ck_assert_ptr_nonnull(strstr(namer_rig_symbol(frame), "fclose"));
}

TEST(function_of_the_vdso_is_named)
{
	uint64_t start = getauxval(AT_SYSINFO_EHDR);
	int n_named = 0;

	if (!start) {
		skip("function_of_the_vdso_is_named", "no vdso");
		return;
	}
	struct file *f = namer_rig_file(&rig, FILE_VDSO, "[vdso]");
	for (uint64_t offset = 0; offset < 0x2000; offset += 16)
		namer_rig_frame(&rig, f, offset);
	ck_assert(namer_rig_run(&rig));
	for (uint32_t i = 0; i < rig.files.n_frames; i++)
		n_named += strstr(namer_rig_symbol(rig.files.frame[i]), "vdso") != NULL;
	ck_assert_int_gt(n_named, 0);
}

TEST(kernel_function_is_named)
{
	if (geteuid() != 0) {
		skip("kernel_function_is_named", "kallsyms shows addresses to root only");
		return;
	}
	struct frame *frame =
		namer_rig_name(&rig, namer_rig_file(&rig, FILE_KERNEL, "[kernel]"), 0x1000);
	ck_assert_int_eq(frame->state, FRAME_NAMED);
	ck_assert_str_ne(namer_rig_symbol(frame), "");
}

/* What is found there now is another file. */
TEST(file_whose_inode_number_was_used_again_is_not_opened)
{
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_self());

	f->replaced = true;
	ck_assert_int_eq(namer_rig_name(&rig, f, landmark_offset())->state, FRAME_UNNAMED);
	ck_assert_int_eq(f->state, FILE_VANISHED);
}

TEST(offset_outside_symbols_is_out_of_symbol)
{
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_self());
	struct frame *frame = namer_rig_name(&rig, f, 0x10);

	ck_assert_int_eq(frame->state, FRAME_OUT_OF_SYMBOL);
	ck_assert_uint_eq(f->symbols_out, 1);
}

TEST(offset_beyond_the_file_is_not_named)
{
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_self());

	ck_assert_int_eq(namer_rig_name(&rig, f, UINT64_MAX)->state, FRAME_OUT_OF_SYMBOL);
}

TEST(ten_thousand_frames_are_named_within_a_second)
{
	struct namer_rig_spot s = namer_rig_find((void *)(uintptr_t)fclose);
	struct file *f = namer_rig_file(&rig, FILE_ELF, s.path);

	namer_rig_name(&rig, f, s.offset); /* parsing is paid once per file, not per frame */
	double before = namer_rig_cpu_seconds(&rig);
	for (uint64_t i = 1; i <= 10000; i++)
		namer_rig_frame(&rig, f, s.offset + i * 8);
	ck_assert(namer_rig_run(&rig));
	double seconds = namer_rig_cpu_seconds(&rig) - before;
	ck_assert_uint_eq(rig.n_named, 10001);
	printf("10000 frames in %.3f s\n", seconds);
#ifndef __SANITIZE_ADDRESS__
	ck_assert_double_lt(seconds, 1.0);
#endif
}

TEST(a_frame_asked_twice_is_named_once)
{
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_self());
	struct frame *frame = namer_rig_frame(&rig, f, landmark_offset());

	ck_assert_int_eq(namer_name(rig.namer, frame, rig.uid), 0);
	ck_assert_uint_eq(namer_waiting(rig.namer), 1);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(namer_name(rig.namer, frame, rig.uid), 0);
	ck_assert(namer_idle(rig.namer));
	ck_assert_uint_eq(rig.n_named, 1);
}

TEST(more_files_than_descriptors_are_all_named)
{
	enum { N_FILES = NAMER_FILES_OPEN_MAX + 40 };
	uint64_t offset = landmark_offset();
	struct frame *frame[N_FILES];

	namer_rig_copy(&rig, namer_rig_self(), "original");
	for (int i = 0; i < N_FILES; i++) {
		char name[32], path[128];
		snprintf(name, sizeof(name), "%d", i);
		snprintf(path, sizeof(path), "%s", namer_rig_path(&rig, "original"));
		ck_assert_int_eq(link(path, namer_rig_path(&rig, name)), 0);
		struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, name));
		ck_assert_int_eq(namer_open(rig.namer, f, rig.uid), 0);
		frame[i] = NULL;
	}
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_le(rig.namer->slots.n_fds, NAMER_FILES_OPEN_MAX);
	for (int i = 0; i < N_FILES; i += 8)
		frame[i] = namer_rig_frame(&rig, rig.files.file[i], offset);
	ck_assert(namer_rig_run(&rig));
	ck_assert_uint_le(rig.namer->slots.n_fds, NAMER_FILES_OPEN_MAX);
	for (int i = 0; i < N_FILES; i += 8)
		ck_assert_str_eq(namer_rig_symbol(frame[i]), "namer_test_landmark");
}

/* --- where files are -------------------------------------------------------------------------- */

TEST(deleted_file_is_named_through_its_mapping)
{
	const char *path = namer_rig_copy(&rig, namer_rig_self(), "doomed");
	struct file *f = namer_rig_file(&rig, FILE_ELF, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	close(fd);
	unlink(path);
	f->deleted = true;
	f->map_start = (uint64_t)(uintptr_t)p;
	f->map_end = f->map_start + 4096;
	struct frame *frame = namer_rig_name(&rig, f, landmark_offset());
	if (geteuid() != 0 && f->state == FILE_REFUSED) {
		skip("deleted_file_is_named_through_its_mapping", "map_files needs a capability");
		return;
	}
	ck_assert_str_eq(namer_rig_symbol(frame), "namer_test_landmark");
}

/* A child that lives in a mount namespace of its own, with a file that only it sees. */
static pid_t contained(const char *dir, const char *name)
{
	int ready[2];
	char byte;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char from[512];
		snprintf(from, sizeof(from), "%s", namer_rig_self());
		bool done =
			unshare(CLONE_NEWNS) == 0 &&
			mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
			mount("mperf", dir, "tmpfs", 0, NULL) == 0 &&
			namer_rig_shell("cp '%s' '%s/%s'", from, dir, name) == 0 &&
			namer_rig_shell("echo '700000 1000 inside()' > '%s/perf.map'", dir) == 0;
		if (!done || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	bool alive = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	if (alive)
		return pid;
	waitpid(pid, NULL, 0);
	return -1;
}

TEST(file_in_another_mount_namespace_is_named)
{
	pid_t pid = contained(rig.dir, "inside");

	if (pid < 0) {
		skip("file_in_another_mount_namespace_is_named", "may not make a mount namespace");
		return;
	}
	ck_assert_int_ne(access(namer_rig_path(&rig, "inside"), F_OK), 0);
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, "inside"));
	f->pid = pid;
	struct frame *frame = namer_rig_name(&rig, f, landmark_offset());
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_str_eq(namer_rig_symbol(frame), "namer_test_landmark");
}

TEST(process_that_began_later_than_the_sample_is_not_asked)
{
	pid_t pid = contained(rig.dir, "inside");

	if (pid < 0) {
		skip("process_that_began_later_than_the_sample_is_not_asked",
			"may not make a mount namespace");
		return;
	}
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, "inside"));
	f->pid = pid;
	f->pid_start_ns = 1;
	struct frame *frame = namer_rig_name(&rig, f, landmark_offset());
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	ck_assert_int_eq(f->state, FILE_VANISHED);
}

/* Of many short runs the last one is still there. */
TEST(file_that_was_not_found_is_found_with_the_next_process_that_runs_it)
{
	struct stat s;
	pid_t pid = contained(rig.dir, "inside");

	if (pid < 0) {
		skip("file_that_was_not_found_is_found_with_the_next_process_that_runs_it",
			"may not make a mount namespace");
		return;
	}
	char path[512];
	snprintf(path, sizeof(path), "/proc/%d/root%s", pid, namer_rig_path(&rig, "inside"));
	ck_assert_int_eq(stat(path, &s), 0);
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, "inside"));
	f->inode = s.st_ino;
	f->major = major(s.st_dev);
	f->minor = minor(s.st_dev);
	struct frame *frame = namer_rig_name(&rig, f, landmark_offset());
	ck_assert_int_eq(f->state, FILE_VANISHED);
	ck_assert_uint_ne(namer_missed_ns(rig.namer), 0);
	ck_assert(!frame_is_awaited(frame));
	struct frame *later = namer_rig_name(&rig, f, landmark_offset() + 1);
	ck_assert(!frame_is_awaited(later));
	f->pid = pid;
	rig.namer->now_ns += NAMER_RETRY_ABSENT_NS;
	ck_assert_int_eq(namer_runs(rig.namer, f), 0);
	ck_assert(namer_rig_run(&rig));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_str_eq(namer_rig_symbol(frame), "namer_test_landmark");
	ck_assert_str_eq(namer_rig_symbol(later), "namer_test_landmark");
}

TEST(file_that_is_never_found_is_given_up)
{
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, "none"));

	f->inode = 1;
	struct frame *frame = namer_rig_name(&rig, f, 16);
	for (unsigned i = 1; i <= NAMER_ABSENT_MAX; i++) {
		ck_assert_int_eq(frame->state, FRAME_ASKED);
		ck_assert_int_eq(namer_runs(rig.namer, f), 0);
		ck_assert(namer_idle(rig.namer)); /* too early */
		rig.namer->now_ns += (uint64_t)NAMER_RETRY_ABSENT_NS << i;
		ck_assert_int_eq(namer_runs(rig.namer, f), 0);
		ck_assert(namer_rig_run(&rig));
	}
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
}

TEST(file_that_is_not_found_has_no_name_at_the_end)
{
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, "none"));

	f->inode = 1;
	struct frame *frame = namer_rig_name(&rig, f, 16);
	ck_assert_int_eq(frame->state, FRAME_ASKED);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
}

TEST(file_of_another_mount_is_not_held_for_long)
{
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_self());

	ck_assert_str_eq(namer_rig_symbol(namer_rig_name(&rig, f, landmark_offset())),
		"namer_test_landmark");
	struct slot *s = f->namer_slot;
	for (int leaves = 0; leaves < 2; leaves++) {
		s->leaves = leaves;
		rig.namer->slots.leave_ns = 0;
		rig.namer->now_ns = s->used_ns + NAMER_HELD_NS;
		ck_assert_int_eq(slots_leave(rig.namer), 0);
		ck_assert((s->fd[PART_MAIN] < 0) == leaves);
	}
	ck_assert(f->touched);
	ck_assert_str_eq(namer_rig_symbol(namer_rig_name(&rig, f, landmark_offset() + 1)),
		"namer_test_landmark");
}

TEST(separate_debug_file_is_found_by_its_link)
{
	const char *path = namer_rig_copy(&rig, namer_rig_self(), "stripped");

	ck_assert_int_eq(
		namer_rig_shell("cd '%s' && mkdir .debug &&"
				" objcopy --only-keep-debug stripped .debug/stripped.debug &&"
				" objcopy --strip-all stripped &&"
				" objcopy --remove-section .note.gnu.build-id stripped &&"
				" objcopy --add-gnu-debuglink=.debug/stripped.debug stripped",
			rig.dir),
		0);
	struct frame *frame =
		namer_rig_name(&rig, namer_rig_file(&rig, FILE_ELF, path), landmark_offset());
	ck_assert_str_eq(namer_rig_symbol(frame), "namer_test_landmark");
	ck_assert_uint_gt(frame->place[0].line, 0);
}

TEST(file_overwritten_after_it_was_mapped_is_not_named_by_its_new_contents)
{
	struct stat s;
	const char *path = namer_rig_copy(&rig, "/bin/true", "program");
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ck_assert_int_eq(namer_rig_shell("sleep 0.05; cat '%s' > '%s'", namer_rig_self(), path), 0);
	ck_assert_int_eq(stat(path, &s), 0);
	struct file_key key = {.kind = FILE_ELF,
		.path = path,
		.inode = s.st_ino,
		.major = major(s.st_dev),
		.minor = minor(s.st_dev)};
	struct file *f, *next;
	ck_assert_int_eq(file_get(&rig.files, &key, &f), 0);
	f->mapped_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	ck_assert_int_eq(namer_rig_name(&rig, f, landmark_offset())->state, FRAME_UNNAMED);
	ck_assert_int_eq(f->state, FILE_VANISHED);

	/* who maps it now is named by what it is now */
	clock_gettime(CLOCK_MONOTONIC, &now);
	ck_assert_int_eq(file_get(&rig.files, &key, &next), 0);
	ck_assert_ptr_ne(next, f);
	next->mapped_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	ck_assert_str_eq(namer_rig_symbol(namer_rig_name(&rig, next, landmark_offset())),
		"namer_test_landmark");

	/* overwritten while it is open: what is named stays, and nothing is named by the new */
	ck_assert(!namer_is_rewritten(rig.namer, next));
	ck_assert_int_eq(namer_rig_shell("sleep 0.05; cat /bin/true > '%s'", path), 0);
	ck_assert_int_eq(namer_rig_name(&rig, next, landmark_offset() + 1)->state, FRAME_UNNAMED);
	ck_assert(next->replaced);
	ck_assert(!namer_is_rewritten(rig.namer, f)); /* not held any more */
	ck_assert_int_eq(file_get(&rig.files, &key, &f), 0);
	ck_assert_ptr_ne(f, next);
}

TEST(perf_map_that_comes_late_is_found)
{
	char path[64];
	struct file *f = namer_rig_file(&rig, FILE_PERF_MAP, "[jit]");

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	ck_assert_int_eq(namer_open(rig.namer, f, rig.uid), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, FILE_UNSEEN);
	ck_assert_int_eq(namer_rig_shell("echo '500000 40 late()' > %s", path), 0);
	ck_assert_str_eq(namer_rig_symbol(namer_rig_name(&rig, f, 0x500010)), "late()");
	unlink(path);
}

/* --- what cannot be named --------------------------------------------------------------------- */

static void ends_as(struct file *f, enum file_state state)
{
	struct frame *frame = namer_rig_name(&rig, f, 0x1000);

	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	ck_assert_msg(f->state == state, "%s: %s", f->path, file_state_says(f->state));
}

TEST(missing_file_has_vanished)
{
	ends_as(namer_rig_file(&rig, FILE_ELF, "/nonexistent/program"), FILE_VANISHED);
	ends_as(namer_rig_file(&rig, FILE_ELF, "relative/program"), FILE_VANISHED);
	ends_as(namer_rig_file(&rig, FILE_ELF, ""), FILE_VANISHED);
}

TEST(overlong_path_has_vanished)
{
	char path[5000];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = 0;
	ends_as(namer_rig_file(&rig, FILE_ELF, path), FILE_VANISHED);
}

TEST(what_is_no_regular_file_is_refused)
{
	const char *fifo = namer_rig_path(&rig, "fifo");

	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	ends_as(namer_rig_file(&rig, FILE_ELF, fifo), FILE_REFUSED);
	ends_as(namer_rig_file(&rig, FILE_ELF, "/dev/zero"), FILE_REFUSED);
	ends_as(namer_rig_file(&rig, FILE_ELF, rig.dir), FILE_REFUSED);
}

TEST(replaced_file_has_vanished)
{
	struct stat s;
	const char *path = namer_rig_copy(&rig, namer_rig_self(), "replaced");
	struct file *f = namer_rig_file(&rig, FILE_ELF, path);

	ck_assert_int_eq(stat(path, &s), 0);
	f->inode = s.st_ino + 1;
	f->major = major(s.st_dev);
	f->minor = minor(s.st_dev);
	struct frame *frame = namer_rig_name(&rig, f, landmark_offset());
	ck_assert_int_eq(f->state, FILE_VANISHED);
	ck_assert(!frame_is_awaited(frame));
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
}

TEST(file_of_the_right_inode_is_named)
{
	struct stat s;
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_self());

	ck_assert_int_eq(stat(f->path, &s), 0);
	f->inode = s.st_ino;
	f->major = major(s.st_dev);
	f->minor = minor(s.st_dev);
	ck_assert_int_eq(namer_rig_name(&rig, f, landmark_offset())->state, FRAME_NAMED);
}

TEST(file_of_another_build_id_has_vanished)
{
	struct file_key key = {.kind = FILE_ELF,
		.path = namer_rig_self(),
		.pid = 0,
		.build_id = (const uint8_t *)"01234567890123456789",
		.n_build_id = 20};
	struct file *f;

	ck_assert_int_eq(file_get(&rig.files, &key, &f), 0);
	ends_as(f, FILE_VANISHED);
}

TEST(wrong_file_at_the_path_gives_way_to_the_mapped_one)
{
	const char *path = namer_rig_copy(&rig, namer_rig_self(), "upgraded");
	struct file *f = namer_rig_file(&rig, FILE_ELF, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	char id[64] = "";

	close(fd);
	FILE *notes =
		popen("readelf -n /proc/$PPID/exe 2>/dev/null | sed -n 's/.*Build ID: //p'", "re");
	if (geteuid() != 0 || !notes || !fgets(id, sizeof(id), notes) || strlen(id) < 40) {
		skip("wrong_file_at_the_path_gives_way_to_the_mapped_one",
			"map_files needs root, and the linker a build id");
		if (notes)
			pclose(notes);
		return;
	}
	pclose(notes);
	for (int i = 0; i < 20; i++) {
		unsigned byte;
		ck_assert_int_eq(sscanf(id + 2 * i, "%2x", &byte), 1);
		f->build_id[i] = (uint8_t)byte;
	}
	f->n_build_id = 20;
	unlink(path);
	namer_rig_copy(&rig, "/bin/true", "upgraded");
	f->map_start = (uint64_t)(uintptr_t)p;
	f->map_end = f->map_start + 4096;
	struct frame *frame = namer_rig_name(&rig, f, landmark_offset());
	ck_assert_str_eq(namer_rig_symbol(frame), "namer_test_landmark");
}

TEST(text_and_empty_files_are_malformed)
{
	ck_assert_int_eq(namer_rig_shell("cd '%s' && echo hello > text && : > empty", rig.dir), 0);
	ends_as(namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, "text")), FILE_MALFORMED);
	ends_as(namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, "empty")), FILE_MALFORMED);
}

TEST(huge_file_is_oversize)
{
	const char *path = namer_rig_path(&rig, "huge");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (ftruncate(fd, (off_t)(NAMER_FILE_BYTES_MAX + 1)) < 0) {
		skip("huge_file_is_oversize", "the file system has no sparse files");
		close(fd);
		return;
	}
	close(fd);
	ends_as(namer_rig_file(&rig, FILE_ELF, path), FILE_OVERSIZE);
}

TEST(anonymous_code_is_unnamed_at_once)
{
	struct file *f = namer_rig_file(&rig, FILE_ANON, "//anon");

	ck_assert_int_eq(namer_open(rig.namer, f, rig.uid), 0);
	ck_assert_int_eq(namer_rig_name(&rig, f, 0x1000)->state, FRAME_UNNAMED);
	ck_assert_int_eq(f->state, FILE_UNSEEN);
}

TEST(a_file_that_failed_is_not_tried_again)
{
	struct file *f = namer_rig_file(&rig, FILE_ELF, namer_rig_path(&rig, "later"));

	ends_as(f, FILE_VANISHED);
	namer_rig_copy(&rig, namer_rig_self(), "later");
	ck_assert_int_eq(namer_rig_name(&rig, f, landmark_offset())->state, FRAME_UNNAMED);
}
