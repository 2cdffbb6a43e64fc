/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/kernel/exec_bpf.c, exec.bpf.c and sampler/exec.c on the kernel that runs here: what a record says
 * of programs whose owner we know */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/decode/record.h"
#include "daemon/kernel/exec_layout.h"
#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

#define SOMEBODY 54321 /* no account is needed */
#define ARGUMENTS "-c", "exit 0", "x y", ""

static const char arguments[] = "sh\0-c\0exit 0\0x y\0"; /* and the empty one's NUL */
static struct sampler *s;
static char file[128];

/* Whether the session has the program; says why not. */
static bool opened(const char *test)
{
	struct event_error error = {""};
	const struct sampler_options o = {.hz = 99};
	if (!kernel_real.exec_new) {
		printf("SKIP %s: built without BPF\n", test);
		return false;
	}
	if (geteuid() != 0) {
		printf("SKIP %s: not root\n", test);
		return false;
	}
	ck_assert_msg(sampler_new(&kernel_real, &o, &s, &error) == 0, "%s", error.text);
	if (sampler_exec_error(s)) {
		printf("SKIP %s: BPF is refused: %s\n", test, strerror(sampler_exec_error(s)));
		return false;
	}
	ck_assert_int_eq(sampler_start(s), 0);
	return true;
}

static void teardown(void)
{
	sampler_free(s);
	s = NULL;
	if (file[0])
		unlink(file);
	file[0] = '\0';
}

EACH_TEST(.end = teardown, .seconds = 60);

/* The record of the exec of that process. The arguments are copied. */
static struct record_exec record_of(pid_t pid, char ret_args[EXEC_ARGS_BYTES_MAX])
{
	struct record_exec found = {.args = NULL};
	unsigned n_found = 0;
	for (size_t i = 0; i < s->n_exec_rings; i++) {
		struct ring *ring = &s->exec_ring[i];
		const uint8_t *bytes;
		size_t n;
		ring_snapshot(ring);
		for (; ring_peek(ring, &bytes, &n) == 0; ring_advance(ring)) {
			struct record r;
			ck_assert_int_eq(record_decode(bytes, n, &s->streams, &r), 0);
			if (r.kind != RECORD_EXEC || r.pid != (uint32_t)pid)
				continue;
			ck_assert_int_eq((int)r.cpu, ring->hart);
			ck_assert_uint_eq(r.tid, r.pid);
			found = r.exec;
			memcpy(ret_args, r.exec.args, r.exec.n_args);
			n_found++;
		}
		ring_release(ring);
	}
	ck_assert_uint_eq(n_found, 1);
	found.args = ret_args;
	return found;
}

static void become(uid_t uid, gid_t gid)
{
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		_exit(2);
}

/* Run a shell in a process that `prepare` makes another's, and return what its record says. */
static struct record_exec run(
	void (*prepare)(void), const char *path, char ret_args[EXEC_ARGS_BYTES_MAX])
{
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		prepare();
		execl(path, "sh", ARGUMENTS, (char *)NULL);
		_exit(3);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it ended with %d", status);
	return record_of(pid, ret_args);
}

static void stay(void)
{
}

static void somebody(void)
{
	become(SOMEBODY, SOMEBODY);
}

static void of_two_groups(void)
{
	if (setgroups(0, NULL) || setresgid(SOMEBODY, SOMEBODY + 1, SOMEBODY + 1) ||
		setresuid(SOMEBODY, SOMEBODY, SOMEBODY))
		_exit(2);
}

/* An ambient capability stays with it through the exec. */
static void with_a_capability(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};
	data[0].effective = data[0].permitted = data[0].inheritable = 1u << CAP_NET_RAW;
	if (prctl(PR_SET_KEEPCAPS, 1))
		_exit(2);
	become(SOMEBODY, SOMEBODY);
	if (syscall(SYS_capset, &head, data) ||
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0))
		_exit(2);
}

static void in_a_namespace(void)
{
	become(SOMEBODY, SOMEBODY);
	if (unshare(CLONE_NEWUSER))
		_exit(errno == EPERM || errno == ENOSPC ? 4 : 2);
}

TEST(a_users_program_is_theirs_with_its_arguments)
{
	char args[EXEC_ARGS_BYTES_MAX];
	if (!opened("a_users_program_is_theirs_with_its_arguments"))
		return;
	struct record_exec x = run(somebody, "/bin/sh", args);
	ck_assert_uint_eq(x.uid, SOMEBODY);
	ck_assert_uint_eq(x.gid, SOMEBODY);
	ck_assert(x.whole);
	ck_assert(!x.unjudged);
	ck_assert(!x.cut);
	ck_assert_uint_eq(x.n_args, sizeof(arguments));
	ck_assert_mem_eq(x.args, arguments, sizeof(arguments));
	ck_assert_uint_eq(case_n_streams(s, STREAM_EXEC), 0);
}

TEST(who_is_not_wholly_a_users_is_nobodys, .times = 3)
{
	static void (*const prepare[])(void) = {stay, of_two_groups, with_a_capability};
	char args[EXEC_ARGS_BYTES_MAX];
	if (!opened("who_is_not_wholly_a_users_is_nobodys"))
		return;
	struct record_exec x = run(prepare[_i], "/bin/sh", args);
	ck_assert_uint_eq(x.uid, _i ? SOMEBODY : 0);
	ck_assert(!x.unjudged);
	if (_i) /* root's is whole or not: it is root's */
		ck_assert(!x.whole);
	ck_assert_uint_eq(x.n_args, sizeof(arguments));
}

/* A copy of a shell with that mode, and whose. */
static bool copy_shell(mode_t mode, uid_t owner, const char *test)
{
	char command[256];
	snprintf(file, sizeof(file), "/tmp/mperf-exec-bpf-%d", (int)getpid());
	snprintf(command, sizeof(command), "cp /bin/sh %s", file);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(chown(file, owner, 0), 0);
	ck_assert_int_eq(chmod(file, mode), 0);
	pid_t pid = fork();
	if (pid == 0) {
		become(SOMEBODY, SOMEBODY);
		execl(file, "sh", "-pc", "test $(id -u) = 54321", (char *)NULL);
		_exit(3);
	}
	int status;
	waitpid(pid, &status, 0);
	bool changes = WIFEXITED(status) && WEXITSTATUS(status) == 1;
	if ((mode & 04000) && !changes)
		printf("SKIP %s: setuid programs do not change their user here (nosuid)\n", test);
	return changes || !(mode & 04000);
}

TEST(who_may_not_be_inspected_is_nobodys, .times = 2)
{
	char args[EXEC_ARGS_BYTES_MAX];
	if (!opened("who_may_not_be_inspected_is_nobodys") ||
		!copy_shell(_i ? 04755 : 0711, _i ? SOMEBODY + 1 : 0,
			"who_may_not_be_inspected_is_nobodys"))
		return;
	struct record_exec x = run(somebody, file, args);
	ck_assert_uint_eq(x.uid, SOMEBODY);
	ck_assert(!x.whole);
	ck_assert(!x.unjudged);
}

TEST(another_user_namespace_is_for_proc_to_judge)
{
	char args[EXEC_ARGS_BYTES_MAX];
	if (!opened("another_user_namespace_is_for_proc_to_judge"))
		return;
	pid_t pid = fork();
	if (pid == 0) {
		in_a_namespace();
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 4) {
		printf("SKIP another_user_namespace_is_for_proc_to_judge: users make no namespaces "
		       "here\n");
		return;
	}
	struct record_exec x = run(in_a_namespace, "/bin/sh", args);
	ck_assert_uint_eq(x.uid, SOMEBODY);
	ck_assert(!x.whole);
	ck_assert(x.unjudged);
}

TEST(many_arguments_are_cut)
{
	static char many[100000], args[EXEC_ARGS_BYTES_MAX];
	if (!opened("many_arguments_are_cut"))
		return;
	memset(many, 'a', sizeof(many) - 1);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", many, (char *)NULL);
		_exit(3);
	}
	int status;
	waitpid(pid, &status, 0);
	struct record_exec x = record_of(pid, args);
	ck_assert(x.cut);
	ck_assert_uint_eq(x.n_args, EXEC_ARGS_BYTES_MAX);
	ck_assert_mem_eq(x.args, "true\0aaaa", 9);
	ck_assert_int_eq(x.args[EXEC_ARGS_BYTES_MAX - 1], 'a');
}

TEST(a_hart_that_is_closed_brings_no_more)
{
	if (!opened("a_hart_that_is_closed_brings_no_more"))
		return;
	ck_assert_int_eq(hart_set_count(&s->exec_records), s->machine.n_harts);
	for (int hart = 0; hart < s->machine.n_harts; hart++)
		ck_assert_int_eq(sampler_reopen(s, hart), 0);
	ck_assert_int_eq(hart_set_count(&s->exec_records), s->machine.n_harts);
	ck_assert_int_eq(case_n_streams(s, STREAM_EXEC_BPF), (unsigned)s->machine.n_harts);
}

/* The most that was in memory at a time, in KiB. */
static long peak_kb(void)
{
	char line[128];
	long kb = 0;
	FILE *from = fopen("/proc/self/status", "re");
	ck_assert_ptr_nonnull(from);
	while (kb == 0 && fgets(line, sizeof(line), from))
		(void)sscanf(line, "VmHWM: %ld kB", &kb);
	fclose(from);
	ck_assert_int_gt(kb, 0);
	return kb;
}

/* Loading reads 11 MB. */
TEST(the_kernels_types_are_not_in_our_memory)
{
	struct exec_bpf *program = NULL;
	int error = 0;
	const long before = peak_kb();
	int r = kernel_real.exec_new
			? kernel_real.exec_new(kernel_real.userdata, 1, &program, &error)
			: 1;
	if (r != 0) {
		printf("SKIP the_kernels_types_are_not_in_our_memory: no BPF, or it is refused\n");
		return;
	}
	const long after = peak_kb();
	kernel_real.exec_free(kernel_real.userdata, program);
	ck_assert_int_lt(after - before, 3 << 10);
}
