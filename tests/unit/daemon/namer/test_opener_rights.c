/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * For whom the opener opens a file: the user whose process it was, and nobody who could not read
 * it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/namer/opener.h"

#include "tests/unit/daemon/namer/opener_rig.inc"
#include "tests/unit/test.h"

EACH_TEST(.begin = setup, .end = teardown);

TEST(debug_link_to_what_its_user_cannot_read_is_refused)
{
	if (!is_root("debug_link_to_what_its_user_cannot_read_is_refused"))
		return;
	shell("cd '%s' && echo secret > secret && chmod 600 secret && chmod 755 . &&"
	      " ln -s '%s/secret' x.debug",
		dir, dir);
	question.open.has_uid = 0;
	question.open.part = PART_DEBUG;
	snprintf(question.path, sizeof(question.path), "%s", below("program"));
	strcpy(question.link, "x.debug");
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_REFUSED);

	question.open.pid = getpid(); /* a process of root's may, if it is shown to root */
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_REFUSED);
	question.open.has_uid = 1;
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_READY);
	close(answer.fd);

	int ready[2];
	char byte;
	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (setuid(65534) < 0 || write(ready[1], "", 1) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	question.open.pid = pid;
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_REFUSED);
	question.open.uid = 65534;
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_REFUSED);
	shell("chown 65534 '%s/secret'", dir);
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_READY);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

/* The path of a split unit is what a program says, whatever that is. */
TEST(path_of_a_split_unit_leads_to_nothing_that_its_user_cannot_read)
{
	static const char *const path[] = {"secret", "link", "closed/unit", "folder", "pipe",
		"/proc/1/environ", "/etc/shadow", "/dev/mem", "/proc/self/mem"};

	if (!is_root("path_of_a_split_unit_leads_to_nothing_that_its_user_cannot_read"))
		return;
	shell("cd '%s' && chmod 755 . && echo x > secret && chmod 600 secret && ln -s secret link "
	      "&&"
	      " mkdir -m 700 closed && echo x > closed/unit && mkdir folder && mkfifo -m 666 pipe "
	      "&&"
	      " echo x > open && chmod 644 open",
		dir);
	question.open.uid = 65534;
	for (enum message_part part = PART_PACKAGE; part <= PART_SPLIT; part++) {
		question.open.part = part;
		for (size_t i = 0; i < sizeof(path) / sizeof(*path); i++) {
			bool whole = path[i][0] == '/';
			snprintf(question.path, sizeof(question.path), "%s",
				whole ? path[i] : below(path[i]));
			if (part == PART_PACKAGE && !whole)
				shell("cd '%s' && ln -s %s %s.dwp", dir, path[i], path[i]);
			opener_find(&question, NULL, &answer);
			ck_assert_msg(answer.fd < 0, "%s", path[i]);
			ck_assert_msg(
				answer.state == STATE_REFUSED || answer.state == STATE_VANISHED,
				"%s: %u", path[i], answer.state);
		}
	}
	snprintf(question.path, sizeof(question.path), "%s", below("open"));
	opener_find(&question, NULL, &answer);
	ck_assert_uint_eq(answer.state, STATE_READY);
}

TEST(map_of_a_user_whose_process_is_gone_is_found_and_no_other)
{
	if (!is_root("map_of_a_user_whose_process_is_gone_is_found_and_no_other"))
		return;
	question.open.kind = KIND_PERF_MAP;
	question.open.pid = 0x7ffffff1;
	snprintf(question.path, sizeof(question.path), "/tmp/perf-%d.map", question.open.pid);
	shell("echo 'jit' > %s && chown 12345 %s", question.path, question.path);
	question.open.has_uid = 0;
	uint32_t unknown = find_written(0);
	question.open.has_uid = 1;
	question.open.uid = 12346;
	uint32_t other = find_written(0);
	question.open.uid = 12345;
	uint32_t own = find_written(0);
	unlink(question.path);
	ck_assert_uint_eq(unknown, STATE_REFUSED);
	ck_assert_uint_eq(other, STATE_REFUSED);
	ck_assert_uint_eq(own, STATE_READY);
}

/* Anybody can mount a file of root's there, in a namespace of their own. */
TEST(map_of_root_is_no_map_of_a_user)
{
	if (!is_root("map_of_root_is_no_map_of_a_user"))
		return;
	question.open.kind = KIND_PERF_MAP;
	question.open.pid = 0x7ffffff2;
	question.open.uid = 12345;
	snprintf(question.path, sizeof(question.path), "/tmp/perf-%d.map", question.open.pid);
	shell("echo 'jit' > %s && chmod 644 %s", question.path, question.path);
	uint32_t roots = find_written(0);
	shell("chown 12345 %s && chmod 000 %s", question.path, question.path);
	uint32_t unreadable = find_written(0);
	shell("chmod 400 %s", question.path);
	uint32_t own = find_written(0);
	unlink(question.path);
	ck_assert_uint_eq(roots, STATE_REFUSED);
	ck_assert_uint_eq(unreadable, STATE_REFUSED);
	ck_assert_uint_eq(own, STATE_READY);
}

TEST(program_is_opened_for_whom_it_is_readable)
{
	if (!is_root("program_is_opened_for_whom_it_is_readable"))
		return;
	snprintf(question.path, sizeof(question.path), "%s", below("program"));
	shell("chmod 755 '%s' && echo x > '%s' && chmod 711 '%s'", dir, question.path,
		question.path);
	ck_assert_uint_eq(find_written(0), STATE_READY); /* root's */
	question.open.uid = 12345;
	ck_assert_uint_eq(find_written(0), STATE_REFUSED);
	question.open.own = 1;
	ck_assert_uint_eq(find_written(0), STATE_READY);
	question.open.own = 0;
	shell("chmod 755 '%s'", question.path);
	ck_assert_uint_eq(find_written(0), STATE_READY);
	shell("chmod 700 '%s'", dir);
	ck_assert_uint_eq(find_written(0), STATE_REFUSED);
}

/* Mapped, and gone: no folder says who may get there, the file's own mode does. */
TEST(deleted_program_is_judged_by_its_own_mode)
{
	char path[256];
	pid_t pid;

	if (!is_root("deleted_program_is_judged_by_its_own_mode"))
		return;
	snprintf(path, sizeof(path), "%s", below("sleeper"));
	shell("cp /bin/sleep '%s' && chmod 711 '%s'", path, path);
	int go[2];
	ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (chmod(dir, 0711) < 0 || setgid(12345) < 0 || setuid(12345) < 0)
			_exit(1);
		execl(path, "sleeper", "600", NULL);
		_exit(1);
	}
	close(go[1]);
	char byte;
	ck_assert_int_eq(read(go[0], &byte, 1), 0); /* it has begun */
	close(go[0]);
	shell("chmod 700 '%s'", dir);
	question.open.pid = pid;
	question.open.uid = 12345;
	question.open.deleted = 1;
	strcpy(question.path, path);
	shell("rm '%s'", path);
	opener_find(&question, NULL, &answer);
	uint32_t run_only = answer.state;
	shell("chmod 755 /proc/%d/exe", pid);
	opener_find(&question, NULL, &answer);
	uint32_t readable = answer.state;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_uint_eq(run_only, STATE_REFUSED);
	ck_assert_uint_eq(readable, STATE_READY);
}
