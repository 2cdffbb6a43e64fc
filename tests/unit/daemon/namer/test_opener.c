/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Where the opener looks, and what it does not let itself be led to. In this process, without a
 * sandbox: the questions are asked directly.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/namer/opener.h"

#include "tests/unit/daemon/namer/opener_rig.inc"
#include "tests/unit/test.h"

EACH_TEST(.begin = setup, .end = teardown);

/* A process in mount and pid namespaces of its own, where it is process 1 and /tmp and
 * /usr/lib/debug are its own. Its pid as we see it, or -1. */
static pid_t contained(void)
{
	int ready[2];
	pid_t inside = -1;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid_t outer = fork();
	if (outer == 0) {
		if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0 ||
			mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			mount("mperf", "/tmp", "tmpfs", 0, NULL) < 0 ||
			mount("mperf", "/usr/lib", "tmpfs", 0, NULL) < 0)
			_exit(1);
		int fd = open("/tmp/perf-1.map", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (write(fd, "jit\n", 4) != 4 || mkdir("/usr/lib/debug", 0755) < 0 ||
			mkdir("/usr/lib/debug/.build-id", 0755) < 0 ||
			mkdir("/usr/lib/debug/.build-id/ab", 0755) < 0)
			_exit(1);
		close(fd);
		fd = open("/usr/lib/debug/.build-id/ab/cdef.debug", O_CREAT | O_WRONLY | O_CLOEXEC,
			0600);
		if (write(fd, "debug\n", 6) != 6)
			_exit(1);
		close(fd);
		pid_t pid = fork();
		if (pid == 0)
			for (;;)
				pause();
		if (write(ready[1], &pid, sizeof(pid)) != sizeof(pid))
			kill(pid, SIGKILL);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &inside, sizeof(inside)) != sizeof(inside))
		inside = -1;
	close(ready[0]);
	waitpid(outer, NULL, 0);
	return inside;
}

/* --- one path --------------------------------------------------------------------------------- */

TEST(file_of_a_local_file_system_is_handed_over_itself)
{
	shell("echo here > '%s/a'", dir);
	ck_assert_int_eq(opener_open(AT_FDCWD, below("a"), &by_own_rights, &answer), 0);
	ck_assert(!answer.copied);
	ck_assert_uint_eq(answer.bytes, 5);
	ck_assert_str_eq(found(), "here\n");
	ck_assert_int_eq(fcntl(answer.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
}

/* A service has mounts of its own, as its processes may have. */
TEST(file_of_our_root_file_system_may_be_held_from_any_mount)
{
	static const char test[] = "file_of_our_root_file_system_may_be_held_from_any_mount";
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (unshare(CLONE_NEWNS) < 0) {
		skip(test, "may not make a mount namespace");
		return;
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(
			opener_open(i ? root : AT_FDCWD, "/etc/passwd", &by_own_rights, &answer),
			0);
		ck_assert(!answer.leaves);
		close(answer.fd);
		answer.fd = -1;
	}
	close(root);
}

TEST(answer_says_whose_the_file_is_and_whether_nobody_else_can_write_to_it)
{
	static const struct {
		mode_t mode;
		bool sole;
	} cases[] = {{0755, true}, {0400, true}, {0775, false}, {0757, false}, {0620, false}};
	struct stat s;

	shell("echo here > '%s/a'", dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_int_eq(chmod(below("a"), cases[i].mode), 0);
		ck_assert_int_eq(opener_open(AT_FDCWD, below("a"), &by_own_rights, &answer), 0);
		ck_assert_int_eq(stat(below("a"), &s), 0);
		ck_assert_uint_eq(answer.inode, s.st_ino);
		ck_assert_uint_eq(answer.owner, geteuid());
		ck_assert_int_eq(answer.changed_ns / 1000000000, s.st_mtim.tv_sec);
		ck_assert_msg(answer.sole == cases[i].sole, "%o", (unsigned)cases[i].mode);
		close(answer.fd);
		answer.fd = -1;
	}
}

TEST(file_of_a_file_system_that_may_hang_is_copied)
{
	struct statfs s;

	/* sysfs is not among the local ones, and stands here for FUSE and NFS. */
	int r = opener_open(AT_FDCWD, "/sys/kernel/notes", &by_own_rights, &answer);
	if (r < 0) {
		skip("file_of_a_file_system_that_may_hang_is_copied", "no /sys/kernel/notes");
		return;
	}
	ck_assert(answer.copied);
	ck_assert(!answer.sole); /* its server decides the owner */
	ck_assert_uint_gt(answer.bytes, 0);
	ck_assert_int_eq(fstatfs(answer.fd, &s), 0);
	ck_assert_int_eq(s.f_type, TMPFS_MAGIC);
	ck_assert_int_eq(lseek(answer.fd, 0, SEEK_CUR), 0);
}

/* Below an overlay may lie whatever hangs, FUSE too: closing it would hang the daemon. */
TEST(file_of_an_overlay_is_copied)
{
	char layers[256];

	shell("mkdir '%s/low' '%s/low2' '%s/over' && echo here > '%s/low/a'", dir, dir, dir, dir);
	snprintf(layers, sizeof(layers), "lowerdir=%s/low:%s/low2", dir, dir);
	/* A namespace of our own: what is mounted there goes with this process. */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("overlay", below("over"), "overlay", 0, layers) < 0) {
		skip("file_of_an_overlay_is_copied", "an overlay cannot be mounted here");
		return;
	}
	ck_assert_int_eq(opener_open(AT_FDCWD, below("over/a"), &by_own_rights, &answer), 0);
	ck_assert(answer.copied);
	ck_assert_str_eq(found(), "here\n");
	ck_assert_int_eq(umount(below("over")), 0);
}

/* A root's overlay is as local as its layers, one made in a user namespace is not believed. */
static void overlay_is(const char *test, int namespaces, const char *other, bool copied)
{
	char layers[256];
	int proc = -1;
	struct opener_demand demand = by_own_rights;

	shell("mkdir '%s/low' '%s/low2' '%s/over' && echo here > '%s/low/a'", dir, dir, dir, dir);
	snprintf(layers, sizeof(layers), "lowerdir=%s/low:%s%s", dir, other ? "" : dir,
		other ? other : "/low2");
	if (unshare(namespaces) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("overlay", below("over"), "overlay", 0, layers) < 0) {
		skip(test, "an overlay cannot be mounted here");
		return;
	}
	proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	demand.host = proc;
	ck_assert_int_eq(opener_open(AT_FDCWD, below("over/a"), &demand, &answer), 0);
	ck_assert_int_eq(answer.copied, copied);
	ck_assert_int_eq(answer.leaves, !copied);
	ck_assert_str_eq(found(), "here\n");
	close(proc);
	close(answer.fd);
	answer.fd = -1;
	ck_assert_int_eq(umount(below("over")), 0);
}

TEST(file_of_an_overlay_of_local_layers_is_handed_over_itself)
{
	overlay_is("file_of_an_overlay_of_local_layers_is_handed_over_itself", CLONE_NEWNS, NULL,
		false);
}

TEST(file_of_an_overlay_with_a_layer_that_may_hang_is_copied)
{
	/* sysfs stands for FUSE and NFS */
	overlay_is("file_of_an_overlay_with_a_layer_that_may_hang_is_copied", CLONE_NEWNS,
		"/sys/kernel", true);
}

TEST(file_on_the_mounts_of_an_ancestor_is_found_when_its_process_is_gone)
{
	pid_t pid = contained(), gone = fork();
	struct stat s;
	char path[64];

	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	if (pid < 0) {
		skip("file_on_the_mounts_of_an_ancestor_is_found_when_its_process_is_gone",
			"may not make namespaces");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-1.map", pid);
	ck_assert_int_eq(stat(path, &s), 0);
	question.open.pid = gone;
	question.open.kin[1].pid = pid;
	question.open.inode = s.st_ino;
	question.open.major = major(s.st_dev);
	question.open.minor = minor(s.st_dev);
	/* as it saw it, and as a process saw it whose root was that mount */
	static const char *const seen[] = {"/tmp/perf-1.map", "/perf-1.map"};
	for (size_t i = 0; i < 2; i++) {
		snprintf(question.path, sizeof(question.path), "%s", seen[i]);
		opener_find(&question, NULL, &answer);
		ck_assert_uint_eq(answer.state, STATE_READY);
		ck_assert_uint_eq(answer.first, 4);
		ck_assert_str_eq(found(), "jit\n");
		close(answer.fd);
		answer.fd = -1;
	}
	/* another file there, an ancestor that began later, and a file of which nothing is known */
	for (int i = 0; i < 3; i++) {
		struct opener_question wrong = question;
		wrong.open.inode += i == 0;
		wrong.open.kin[1].start_ns = i == 1;
		wrong.open.inode = i == 2 ? 0 : wrong.open.inode;
		opener_find(&wrong, NULL, &answer);
		ck_assert_uint_eq(answer.state, STATE_VANISHED);
	}
	kill(pid, SIGKILL);
}

TEST(link_does_not_lead_out_of_the_root_of_a_process)
{
	shell("cd '%s' && mkdir etc && ln -s /etc/passwd absolute &&"
	      " ln -s ../../../../../etc/passwd relative && echo mine > mine && ln -s /mine good",
		dir);
	int root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(opener_open(root, "/absolute", &by_own_rights, &answer), -ENOENT);
	ck_assert_int_eq(opener_open(root, "/relative", &by_own_rights, &answer), -ENOENT);
	ck_assert_int_eq(answer.fd, -1);
	ck_assert_int_eq(opener_open(root, "/good", &by_own_rights, &answer), 0);
	ck_assert_str_eq(found(), "mine\n");
	close(answer.fd);
	answer.fd = -1;
	ck_assert_int_eq(opener_open(AT_FDCWD, below("absolute"), &by_own_rights, &answer), 0);
	close(root);
}

TEST(magic_link_below_the_root_of_a_process_is_refused)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(opener_open(root, "/proc/self/exe", &by_own_rights, &answer), -ELOOP);
	close(root);
}

TEST(what_is_no_regular_file_is_refused)
{
	ck_assert_int_eq(mkfifo(below("fifo"), 0600), 0);
	ck_assert_int_eq(opener_open(AT_FDCWD, below("fifo"), &by_own_rights, &answer), -EACCES);
	ck_assert_int_eq(opener_open(AT_FDCWD, "/dev/null", &by_own_rights, &answer), -EACCES);
	ck_assert_int_eq(opener_open(AT_FDCWD, dir, &by_own_rights, &answer), -EACCES);
	ck_assert_int_eq(opener_open(AT_FDCWD, below("none"), &by_own_rights, &answer), -ENOENT);
	ck_assert_int_eq(opener_open(AT_FDCWD, "", &by_own_rights, &answer), -ENOENT);
}

/* --- where debug files are -------------------------------------------------------------------- */

static void ask_link(enum message_part part, const char *link)
{
	question.open.part = part;
	snprintf(question.path, sizeof(question.path), "%s", below("program"));
	snprintf(question.link, sizeof(question.link), "%s", link);
	opener_find(&question, NULL, &answer);
}

TEST(debug_file_beside_the_program_comes_before_the_one_in_dot_debug)
{
	shell("cd '%s' && mkdir .debug && echo far > .debug/p.debug", dir);
	ask_link(PART_DEBUG, "p.debug");
	ck_assert_str_eq(found(), "far\n");
	close(answer.fd);
	shell("echo near > '%s/p.debug'", dir);
	ask_link(PART_DEBUG, "p.debug");
	ck_assert_str_eq(found(), "near\n");
	ck_assert_str_eq(answer.path, below("p.debug"));
}

TEST(debug_link_with_a_directory_or_to_itself_leads_nowhere)
{
	shell("cd '%s' && echo me > program && mkdir sub && echo sub > sub/p.debug", dir);
	ask_link(PART_DEBUG, "sub/p.debug");
	ck_assert_uint_eq(answer.state, STATE_VANISHED);
	ask_link(PART_DEBUG, "program");
	ck_assert_uint_eq(answer.state, STATE_VANISHED);
	ask_link(PART_DEBUG, "");
	ck_assert_uint_eq(answer.state, STATE_VANISHED);
}

TEST(package_of_split_units_is_beside_the_program)
{
	shell("cd '%s' && echo package > program.dwp", dir);
	ask_link(PART_PACKAGE, "");
	ck_assert_str_eq(found(), "package\n");
	ck_assert_str_eq(answer.path, below("program.dwp"));
	close(answer.fd);
	shell("mv '%s/program.dwp' '%s/other.dwp'", dir, dir);
	ask_link(PART_PACKAGE, "");
	ck_assert_uint_eq(answer.state, STATE_VANISHED);
}

TEST(split_unit_is_at_its_own_path_if_that_is_whole)
{
	shell("cd '%s' && echo unit > a.dwo", dir);
	question.open.part = PART_SPLIT;
	snprintf(question.path, sizeof(question.path), "%s", below("a.dwo"));
	opener_find(&question, NULL, &answer);
	ck_assert_str_eq(found(), "unit\n");
	close(answer.fd);
	ck_assert_int_eq(chdir(dir), 0);
	strcpy(question.path, "a.dwo");
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_VANISHED);
	question.path[0] = '\0';
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_VANISHED);
	ck_assert_int_eq(chdir("/"), 0);
}

TEST(alt_link_is_absolute_or_relative_to_the_debug_file)
{
	shell("cd '%s' && mkdir dwz && echo shared > dwz/alt", dir);
	ask_link(PART_ALT, "dwz/alt");
	ck_assert_str_eq(found(), "shared\n");
	close(answer.fd);
	char absolute[256];
	strcpy(absolute, below("dwz/alt"));
	ask_link(PART_ALT, absolute);
	ck_assert_str_eq(found(), "shared\n");
	close(answer.fd);
	ask_link(PART_ALT, "dwz/none");
	ck_assert_uint_eq(answer.state, STATE_VANISHED);
	ck_assert_int_eq(answer.fd, -1);
}

TEST(perf_map_and_debug_file_inside_a_container_are_found)
{
	pid_t pid = contained();

	if (pid < 0) {
		skip("perf_map_and_debug_file_inside_a_container_are_found",
			"may not make namespaces");
		return;
	}
	question.open.kind = KIND_PERF_MAP;
	question.open.pid = pid;
	opener_find(&question, NULL, &answer);
	uint32_t map_state = answer.state;
	char map_text[64] = "";
	if (answer.fd >= 0) {
		strcpy(map_text, found());
		close(answer.fd);
	}
	question.open.part = PART_DEBUG;
	question.open.kind = KIND_ELF;
	question.open.n_build_id = 3;
	memcpy(question.open.build_id, "\xab\xcd\xef", 3);
	opener_find(&question, NULL, &answer);
	kill(pid, SIGKILL);
	ck_assert_uint_eq(map_state, STATE_READY);
	ck_assert_str_eq(map_text, "jit\n");
	ck_assert_uint_eq(answer.state, STATE_READY);
	ck_assert_str_eq(found(), "debug\n");
}

TEST(process_that_is_gone_leaves_our_own_files)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	shell("echo still > '%s/here'", dir);
	question.open.pid = pid;
	question.open.pid_start_ns = 1;
	snprintf(question.path, sizeof(question.path), "%s", below("here"));
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_READY);
	ck_assert_str_eq(found(), "still\n");
}

TEST(file_written_after_it_was_mapped_has_vanished)
{
	struct stat s;

	snprintf(question.path, sizeof(question.path), "%s", below("program"));
	shell("echo x > '%s'", question.path);
	ck_assert_int_eq(stat(question.path, &s), 0);
	question.open.inode = s.st_ino;
	question.open.major = major(s.st_dev);
	question.open.minor = minor(s.st_dev);
	question.open.n_build_id = 20; /* its status is of now, and does not matter */
	ck_assert_uint_eq(find_written(5), STATE_READY);
	question.open.not_after_ns = (uint64_t)(clock_ns(CLOCK_MONOTONIC) - 10 * SECOND);
	ck_assert_uint_eq(find_written(5), STATE_VANISHED);
	ck_assert_int_eq(answer.error, ESTALE);
	ck_assert_uint_eq(find_written(0), STATE_VANISHED);
	ck_assert_uint_eq(find_written(12), STATE_READY);
	ck_assert_uint_eq(find_written(1000000), STATE_READY);
	/* a clock that was wrong, then or now */
	ck_assert_uint_eq(find_written(-3600), STATE_READY);
}

TEST(missing_file_is_not_said_to_be_written_to)
{
	snprintf(question.path, sizeof(question.path), "%s", below("none"));
	question.open.not_after_ns = 1;
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_VANISHED);
	ck_assert_int_eq(answer.error, ENOENT);
}

TEST(map_of_the_program_before_is_not_that_of_the_next)
{
	question.open.kind = KIND_PERF_MAP;
	question.open.pid = 0x7ffffff0; /* nobody's */
	snprintf(question.path, sizeof(question.path), "/tmp/perf-%d.map", question.open.pid);
	shell("echo 'jit' > %s", question.path);
	question.open.not_before_ns = (uint64_t)(clock_ns(CLOCK_MONOTONIC) - 10 * SECOND);
	uint32_t fresh = find_written(5), stale = find_written(15);
	question.open.not_before_ns = 0;
	uint32_t any = find_written(15);
	unlink(question.path);
	ck_assert_uint_eq(fresh, STATE_READY);
	ck_assert_uint_eq(stale, STATE_VANISHED);
	ck_assert_uint_eq(any, STATE_READY);
}

TEST(candidates_run_out)
{
	snprintf(question.path, sizeof(question.path), "%s", below("here"));
	shell("echo x > '%s/here'", dir);
	question.open.first = 5;
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_VANISHED);
	question.open.first = UINT32_MAX;
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_VANISHED);
}
