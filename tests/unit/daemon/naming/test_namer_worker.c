/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Workers that hang, spin, crash, are killed, or lie: sampling's names go on, and the file that
 * was to blame is the one that is marked.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/naming/namer_private.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

#ifdef __SANITIZE_ADDRESS__
#define SLOWER 3
#else
#define SLOWER 1
#endif
#define SPIN_NS (800000000ull * SLOWER) /* what the tests grant a worker that will not come back */

static struct namer_rig rig;

static void teardown(void)
{
	namer_rig_end(&rig);
}

static void begin(const char *binary)
{
	namer_rig_begin(&rig,
		&(struct namer_options){
			.binary = binary, .open_timeout_ns = SPIN_NS, .parse_timeout_ns = SPIN_NS});
}

static void setup_traps(void)
{
	begin(namer_rig_worker(true));
}

static void setup_plain(void)
{
	begin(NULL);
}

static bool skip(const char *test, const char *reason)
{
	printf("SKIP %s: %s\n", test, reason);
	fflush(stdout);
	return true;
}

static __attribute__((noinline)) int namer_worker_test_landmark(volatile int *x)
{
	*x += 1;
	return *x * 2;
}

static struct frame *ask_landmark(struct file *f)
{
	return namer_rig_frame(
		&rig, f, namer_rig_find((void *)(uintptr_t)namer_worker_test_landmark).offset);
}

static struct file *this_program(void)
{
	return namer_rig_file(&rig, FILE_ELF, namer_rig_self());
}

static struct file *trapped(const char *section)
{
	const char *path = namer_rig_copy(&rig, "/bin/true", section);

	ck_assert_int_eq(namer_rig_shell("objcopy --add-section .mperf.test.%s=/etc/hostname '%s'",
				 section, path),
		0);
	return namer_rig_file(&rig, FILE_ELF, path);
}

static struct namer_status status(void)
{
	struct namer_status s;

	namer_status(rig.namer, &s);
	return s;
}

static void is_named(const struct frame *f)
{
	ck_assert_int_eq(f->state, FRAME_NAMED);
	ck_assert_str_eq(namer_rig_symbol(f), "namer_worker_test_landmark");
}

EACH_TEST(.seconds = 60);

/* --- files that break the parser -------------------------------------------------------------- */

TEST(file_that_makes_the_parser_spin_is_marked_and_others_are_named, .begin = setup_traps,
	.end = teardown)
{
	struct file *bad = trapped("spin"), *good = this_program();
	struct frame *before = ask_landmark(good), *broken = namer_rig_frame(&rig, bad, 0x1000);

	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(bad->state, FILE_SPUN);
	ck_assert_int_eq(broken->state, FRAME_UNNAMED);
	is_named(before);
	ck_assert_uint_eq(status().parser.restarts, 1);
	struct frame *after = namer_rig_frame(&rig, good, 0x10);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(after->state, FRAME_OUT_OF_SYMBOL);
	ck_assert_int_eq(good->state, FILE_READY);
}

TEST(file_that_crashes_the_parser_is_marked_and_others_are_named, .begin = setup_traps,
	.end = teardown)
{
	struct file *bad = trapped("crash"), *good = this_program();
	struct frame *broken = namer_rig_frame(&rig, bad, 0x1000), *after = ask_landmark(good);

	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(bad->state, FILE_CRASHED);
	ck_assert_int_eq(broken->state, FRAME_UNNAMED);
	is_named(after);
	ck_assert_uint_eq(status().parser.restarts, 1);
	/* Marked is marked: it costs no second parser. */
	struct frame *again = namer_rig_frame(&rig, bad, 0x2000);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(again->state, FRAME_UNNAMED);
	ck_assert_uint_eq(status().parser.restarts, 1);
}

TEST(parser_killed_at_rest_is_restarted_and_knows_its_files_again, .begin = setup_plain,
	.end = teardown)
{
	struct file *good = this_program();
	struct frame *first = ask_landmark(good);

	ck_assert(namer_rig_run(&rig));
	is_named(first);
	kill(status().parser.pid, SIGKILL);
	usleep(50000);
	struct frame *second = namer_rig_frame(&rig, good, first->offset + 1);
	ck_assert(namer_rig_run(&rig));
	is_named(second);
	ck_assert_uint_eq(status().parser.restarts, 1);
}

TEST(parser_killed_from_outside_over_a_file_tries_it_once_more, .begin = setup_traps,
	.end = teardown)
{
	struct file *bad = trapped("spin");
	struct frame *broken = namer_rig_frame(&rig, bad, 0x1000);

	while (rig.namer->request.type != MESSAGE_LOAD || rig.namer->parser.state != WORKER_BUSY)
		namer_rig_step(&rig, 10);
	kill(status().parser.pid, SIGKILL);
	usleep(50000);
	namer_rig_step(&rig, 10);
	ck_assert_int_eq(broken->state, FRAME_ASKED);
	ck_assert_uint_eq(status().parser.restarts, 1);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(bad->state, FILE_SPUN);
	ck_assert_uint_eq(status().parser.restarts, 2);
}

TEST(stopped_parser_is_over_time_like_a_spinning_one, .begin = setup_plain, .end = teardown)
{
	struct file *good = this_program();

	namer_rig_step(&rig, 100);
	while (rig.namer->parser.state == WORKER_STARTING)
		namer_rig_step(&rig, 100);
	kill(status().parser.pid, SIGSTOP);
	struct frame *f = ask_landmark(good);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, FRAME_UNNAMED);
	ck_assert_int_eq(good->state, FILE_SPUN);
}

TEST(opener_killed_at_rest_is_restarted, .begin = setup_plain, .end = teardown)
{
	namer_rig_run(&rig);
	while (rig.namer->opener.state == WORKER_STARTING)
		namer_rig_step(&rig, 100);
	kill(status().opener.pid, SIGKILL);
	usleep(50000);
	struct frame *f = ask_landmark(this_program());
	ck_assert(namer_rig_run(&rig));
	is_named(f);
	ck_assert_uint_eq(status().opener.restarts, 1);
}

/* --- workers that misbehave on their socket --------------------------------------------------- */

static void begin_fake(const char *role, const char *as)
{
	namer_rig_begin_fake(&rig, role, as,
		&(struct namer_options){.open_timeout_ns = SPIN_NS, .parse_timeout_ns = SPIN_NS});
}

TEST(opener_that_never_answers_is_killed_and_the_file_hung)
{
	begin_fake("open", "mute");
	struct file *f = this_program();
	pid_t before = status().opener.pid;
	struct frame *frame = ask_landmark(f);

	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, FILE_HUNG);
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	ck_assert_uint_eq(status().opener.restarts, 1);
	ck_assert_int_ne(status().opener.pid, before);
	teardown();
}

TEST(unknown_bytes_from_the_parser_end_it)
{
	begin_fake("parse", "garbage");
	struct file *f = this_program();
	struct frame *frame = ask_landmark(f);

	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, FILE_CRASHED);
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	ck_assert_uint_eq(status().parser.restarts, 1);
	teardown();
}

TEST(answer_to_another_question_ends_the_parser)
{
	begin_fake("parse", "dumb");
	struct file *f = this_program();
	struct frame *frame = ask_landmark(f);

	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, FILE_CRASHED);
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	ck_assert_uint_eq(status().parser.restarts, 1);
	teardown();
}

TEST(unknown_bytes_from_the_opener_end_it)
{
	begin_fake("open", "garbage");
	struct file *f = this_program();
	struct frame *frame = ask_landmark(f);

	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, FILE_CRASHED);
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	ck_assert_uint_eq(status().opener.restarts, 2);
	teardown();
}

TEST(worker_of_another_version_turns_naming_off)
{
	begin_fake("parse", "stranger");
	struct file *f = this_program();
	struct frame *frame = ask_landmark(f);

	ck_assert(namer_rig_run(&rig));
	ck_assert(status().off);
	ck_assert_int_eq(frame->state, FRAME_ASKED);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(frame->state, FRAME_UNNAMED);
	/* No file is to blame for that. */
	ck_assert_int_ne(f->state, FILE_CRASHED);
	ck_assert_uint_eq(status().n_deaths, 0);
	teardown();
}

TEST(missing_binary_is_refused_at_the_start)
{
	struct namer_options o = {.binary = "/nonexistent/mperf-namer"};
	struct namer *n = NULL;

	ck_assert_int_eq(namer_new(&o, &n), -ENOENT);
	ck_assert_ptr_null(n);
}

/* --- a file system that hangs ----------------------------------------------------------------- */

static int mount_fuse(const char *dir)
{
	char options[128];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -1;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount("mperf", dir, "fuse", MS_NOSUID | MS_NODEV, options) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Answers the handshake and then takes requests without ever answering one: whoever waits for it
 * cannot even be killed. Source: include/uapi/linux/fuse.h. */
static void serve_hanging(int fd)
{
	static uint8_t request[1 << 17];
	struct fuse_in_header in;

	while (read(fd, request, sizeof(request)) > 0) {
		memcpy(&in, request, sizeof(in));
		if (in.opcode != FUSE_INIT)
			continue;
		struct {
			struct fuse_out_header head;
			struct fuse_init_out init;
		} out = {
			.head = {.len = sizeof(out), .unique = in.unique},
			.init = {.major = FUSE_KERNEL_VERSION,
				.minor = FUSE_KERNEL_MINOR_VERSION,
				.max_write = 4096},
		};
		if (write(fd, &out, sizeof(out)) < 0)
			_exit(1);
	}
}

TEST(file_system_that_hangs_costs_one_opener_and_no_more)
{
	char dir[] = "/tmp/mperf-test-fuse-XXXXXX", path[64];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	int fd = mount_fuse(dir);
	if (fd < 0) {
		skip("file_system_that_hangs_costs_one_opener_and_no_more", "may not mount FUSE");
		rmdir(dir);
		return;
	}
	pid_t server = fork();
	if (server == 0) {
		serve_hanging(fd);
		_exit(0);
	}
	close(fd);
	begin(NULL);
	snprintf(path, sizeof(path), "%s/program", dir);
	struct file *bad = namer_rig_file(&rig, FILE_ELF, path), *good = this_program();
	struct frame *broken = namer_rig_frame(&rig, bad, 0x1000), *named = ask_landmark(good);
	bool answered = namer_rig_run(&rig);
	struct namer_status s = status();
	size_t n_graves = rig.namer->graves.n;
	enum file_state bad_state = bad->state;
	enum frame_state broken_state = broken->state, named_state = named->state;
	kill(server, SIGKILL); /* its end fails all requests: the stuck opener can die */
	waitpid(server, NULL, 0);
	teardown();
	umount2(dir, MNT_DETACH);
	rmdir(dir);

	ck_assert(answered);
	ck_assert_uint_eq(s.opener.restarts, 1);
	ck_assert_uint_eq(n_graves, 1);
	ck_assert_int_eq(bad_state, FILE_HUNG);
	ck_assert_int_eq(broken_state, FRAME_UNNAMED);
	ck_assert_int_eq(named_state, FRAME_NAMED);
}

/* --- the sandbox ------------------------------------------------------------------------------ */

static int attack(const char *role, const char *how)
{
	int wait_status;
	pid_t pid = fork();

	if (pid == 0) {
		execl(namer_rig_worker(false), "mperf-namer", role, how, NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &wait_status, 0), pid);
	return wait_status;
}

/* libdw tries to, over ordinary files: it is refused, not killed. */
TEST(parser_cannot_open_a_file)
{
	int s = attack("parse", "--try-open");

	ck_assert(WIFEXITED(s));
	ck_assert_int_eq(WEXITSTATUS(s), 10);
}

TEST(parser_that_makes_a_socket_is_killed_by_its_sandbox)
{
	int s = attack("parse", "--try-connect");

	ck_assert(WIFSIGNALED(s));
	ck_assert_int_eq(WTERMSIG(s), SIGSYS);
}

/* The daemon is of the same user: it would take any signal. */
TEST(parser_cannot_signal_the_daemon)
{
	static const char *const ways[] = {"--try-signal", "--try-kill", "--try-owner"};

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		int s = attack("parse", ways[i]);
		ck_assert_msg(WIFSIGNALED(s) && WTERMSIG(s) == SIGSYS, "%s: %x", ways[i], s);
	}
}

TEST(opener_cannot_signal_the_daemon_nor_open_for_writing)
{
#ifdef __SANITIZE_ADDRESS__
	skip("opener_cannot_signal_the_daemon_nor_open_for_writing",
		"shown by the plain run; no filter with sanitizers");
#else
	static const char *const ways[] = {
		"--try-signal", "--try-kill", "--try-owner", "--try-write"};

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		int s = attack("open", ways[i]);
		ck_assert_msg(WIFSIGNALED(s) && WTERMSIG(s) == SIGSYS, "%s: %x", ways[i], s);
	}
#endif
}

static void assert_aborts(const char *role)
{
	int s = attack(role, "--try-abort");

	ck_assert_msg(WIFSIGNALED(s) && WTERMSIG(s) == SIGABRT, "%s: %x", role, s);
}

TEST(worker_that_gives_up_dies_by_its_own_signal)
{
	assert_aborts("open");
	assert_aborts("parse");
}

/* By the number that it has there. */
TEST(worker_in_a_pid_namespace_dies_by_its_own_signal)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (unshare(CLONE_NEWPID) < 0)
			_exit(77);
		/* the first process of a namespace is spared its own signals */
		pid_t first = fork();
		if (first == 0)
			for (;;)
				pause();
		int s = attack("parse", "--try-abort");
		kill(first, SIGKILL);
		_exit(WIFSIGNALED(s) ? WTERMSIG(s) : 1);
	}
	int s;
	ck_assert_int_eq(waitpid(pid, &s, 0), pid);
	if (WIFEXITED(s) && WEXITSTATUS(s) == 77) {
		skip("worker_in_a_pid_namespace_dies_by_its_own_signal", "may not make one");
		return;
	}
	ck_assert_int_eq(WEXITSTATUS(s), SIGABRT);
}

TEST(opener_that_makes_a_socket_is_killed_by_its_sandbox)
{
#ifdef __SANITIZE_ADDRESS__
	skip("opener_that_makes_a_socket_is_killed_by_its_sandbox",
		"shown by the plain run; no filter with sanitizers");
#else
	int s = attack("open", "--try-connect");

	ck_assert(WIFSIGNALED(s));
	ck_assert_int_eq(WTERMSIG(s), SIGSYS);
#endif
}

TEST(wrong_arguments_of_a_worker_are_a_usage_error)
{
	ck_assert_int_eq(
		WEXITSTATUS(namer_rig_shell("'%s' read 2>/dev/null", namer_rig_worker(false))), 2);
	ck_assert_int_eq(
		WEXITSTATUS(namer_rig_shell("'%s' 2>/dev/null", namer_rig_worker(false))), 2);
}
