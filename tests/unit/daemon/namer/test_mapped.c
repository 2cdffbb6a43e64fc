/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Is the file at that path the one that was mapped? By what the kernel calls it, and by its contents.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/namer/mapped.h"
#include "daemon/namer/opener.h"

#include "tests/unit/daemon/namer/opener_rig.inc"
#include "tests/unit/test.h"

static struct mapped *mapped;

static void begin(void)
{
	setup();
	if (mapped_new(&mapped) < 0)
		mapped = NULL;
}

static bool mounted; /* in a namespace of our own */

static void end(void)
{
	static const char *const places[] = {"m", "m", "o2", "o", "t"};

	for (size_t i = 0; mounted && i < sizeof(places) / sizeof(*places); i++)
		umount2(below(places[i]), MNT_DETACH);
	mapped = mapped_free(mapped);
	teardown();
}

EACH_TEST(.begin = begin, .end = end);

static bool asks(const char *test)
{
	if (!mapped)
		skip(test, "no events of our own here");
	return mapped;
}

static bool mounts(const char *test, const char *type, const char *at, const char *options)
{
	mounted =
		unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	if (mounted && mount(type, below(at), type, 0, options) == 0)
		return true;
	skip(test, "nothing can be mounted here");
	return false;
}

static struct mapped_file ask(const char *name)
{
	struct mapped_file f = {0};
	int fd = open(below(name), O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(mapped_ask(mapped, fd, &f), 0);
	close(fd);
	return f;
}

/* Ask for the file that the kernel calls so. */
static uint32_t find(const char *name, const struct mapped_file *f)
{
	if (answer.fd >= 0)
		close(answer.fd);
	snprintf(question.path, sizeof(question.path), "%s", below(name));
	question.open.inode = f->inode;
	question.open.generation = f->generation;
	question.open.major = f->major;
	question.open.minor = f->minor;
	opener_find(&question, mapped, &answer);
	return answer.state;
}

TEST(file_on_a_disk_is_called_what_stat_says)
{
	struct stat s;

	if (!asks("file_on_a_disk_is_called_what_stat_says"))
		return;
	shell("cp /bin/true '%s/a'", dir);
	ck_assert_int_eq(stat("/bin/true", &s), 0);
	if (major(s.st_dev) == 0) {
		skip("file_on_a_disk_is_called_what_stat_says", "/bin is not on a disk");
		return;
	}
	int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
	struct mapped_file f;
	for (int i = 0; i < 1000; i++) { /* more than the ring holds */
		ck_assert_int_eq(mapped_ask(mapped, fd, &f), 0);
		ck_assert_uint_eq(f.inode, s.st_ino);
		ck_assert_uint_eq(f.major, major(s.st_dev));
		ck_assert_uint_eq(f.minor, minor(s.st_dev));
	}
	close(fd);
}

TEST(what_cannot_be_mapped_is_nothing)
{
	struct mapped_file f;
	int fds[2];

	if (!asks("what_cannot_be_mapped_is_nothing"))
		return;
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(mapped_ask(mapped, fds[0], &f), -ENODEV);
	close(fds[0]);
	close(fds[1]);
}

TEST(path_as_long_as_any_has_its_record)
{
	if (!asks("path_as_long_as_any_has_its_record"))
		return;
	ck_assert_int_eq(chdir(dir), 0);
	char name[201];
	memset(name, 'x', 200);
	name[200] = 0;
	for (int i = 0; i < 19; i++) {
		ck_assert_int_eq(mkdir(name, 0700), 0);
		ck_assert_int_eq(chdir(name), 0);
	}
	int fd = open("f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat s;
	struct mapped_file f;
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(mapped_ask(mapped, fd, &f), 0);
	ck_assert_int_eq(fstat(fd, &s), 0);
	ck_assert_uint_eq(f.inode, s.st_ino);
	close(fd);
	ck_assert_int_eq(chdir("/"), 0);
}

TEST(file_of_another_tmpfs_with_the_same_path_and_inode_number_is_another)
{
	static const char test[] =
		"file_of_another_tmpfs_with_the_same_path_and_inode_number_is_another";

	shell("mkdir '%s/m'", dir);
	if (!asks(test) || !mounts(test, "tmpfs", "m", NULL))
		return;
	shell("echo here > '%s/m/prog'", dir);
	struct mapped_file ours = ask("m/prog");
	ck_assert_uint_eq(find("m/prog", &ours), STATE_READY);
	ck_assert_str_eq(found(), "here\n");
	ck_assert_int_eq(mount("other", below("m"), "tmpfs", 0, NULL), 0);
	shell("echo there > '%s/m/prog'", dir);
	struct mapped_file other = ask("m/prog");
	ck_assert_uint_eq(other.inode, ours.inode);
	ck_assert_uint_eq(find("m/prog", &ours), STATE_VANISHED);
	ck_assert_int_eq(answer.error, ENOENT);
	ck_assert_uint_eq(find("m/prog", &other), STATE_READY);
	ck_assert_str_eq(found(), "there\n");
	/* without an event of our own stat says the same */
	struct mapped *kept = mapped;
	mapped = NULL;
	ck_assert_uint_eq(find("m/prog", &ours), STATE_VANISHED);
	ck_assert_uint_eq(find("m/prog", &other), STATE_READY);
	mapped = kept;
}

TEST(inode_number_that_was_used_again_is_another_file)
{
	if (!asks("inode_number_that_was_used_again_is_another_file"))
		return;
	shell("echo here > '%s/a'", dir);
	struct mapped_file f = ask("a");
	if (!f.generation) {
		skip("inode_number_that_was_used_again_is_another_file", "no generations here");
		return;
	}
	ck_assert_uint_eq(find("a", &f), STATE_READY);
	f.generation++;
	ck_assert_uint_eq(find("a", &f), STATE_VANISHED);
	f.generation = 0; /* as /proc tells of it */
	ck_assert_uint_eq(find("a", &f), STATE_READY);
}

/* Layers on two file systems: stat has a device per layer, the records have the overlay's. */
TEST(file_of_an_overlay_is_found_and_that_of_another_overlay_is_not)
{
	static const char test[] = "file_of_an_overlay_is_found_and_that_of_another_overlay_is_not";
	char layers[256];

	shell("mkdir '%s/low' '%s/t' '%s/o' '%s/o2' && echo here > '%s/low/a'", dir, dir, dir, dir,
		dir);
	if (!asks(test) || !mounts(test, "tmpfs", "t", NULL))
		return;
	shell("mkdir '%s/t/low' && echo tmpfs > '%s/t/low/b'", dir, dir);
	snprintf(layers, sizeof(layers), "lowerdir=%s/low:%s/t/low", dir, dir);
	if (mount("overlay", below("o"), "overlay", 0, layers) < 0 ||
		mount("overlay", below("o2"), "overlay", 0, layers) < 0) {
		skip(test, "an overlay cannot be mounted here");
		return;
	}
	static const char *const names[] = {"a", "b"};
	for (int i = 0; i < 2; i++) {
		char one[8], two[8];
		snprintf(one, sizeof(one), "o/%s", names[i]);
		snprintf(two, sizeof(two), "o2/%s", names[i]);
		struct mapped_file f = ask(one);
		ck_assert_uint_eq(find(one, &f), STATE_READY);
		ck_assert_str_eq(found(), i ? "tmpfs\n" : "here\n");
		ck_assert(answer.copied);
		struct mapped_file other = ask(two);
		if (other.minor !=
			f.minor) /* some kernels name the layer's, which is the same file */
			ck_assert_uint_eq(find(two, &f), STATE_VANISHED);
		ck_assert_uint_eq(find(two, &other), STATE_READY);
	}
}

/* --- contents --------------------------------------------------------------------------------- */

static void set_times(const char *name)
{
	const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

	ck_assert_int_eq(utimensat(AT_FDCWD, below(name), old, 0), 0);
}

static uint64_t now_ns(void)
{
	const struct timespec more_than_a_tick = {.tv_nsec = 30000000};

	nanosleep(&more_than_a_tick, NULL);
	uint64_t ns = (uint64_t)clock_ns(CLOCK_MONOTONIC);
	nanosleep(&more_than_a_tick, NULL);
	return ns;
}

static struct mapped_file of_stat(const char *name)
{
	struct stat s;

	ck_assert_int_eq(stat(below(name), &s), 0);
	return (struct mapped_file){major(s.st_dev), minor(s.st_dev), s.st_ino, 0};
}

TEST(copy_over_it_with_equal_times_is_another)
{
	mapped = mapped_free(mapped);
	shell("echo one > '%s/t'", dir);
	set_times("t");
	question.open.not_after_ns = now_ns();
	struct mapped_file f = of_stat("t");
	ck_assert_uint_eq(find("t", &f), STATE_READY);
	shell("echo two > '%s/t'", dir);
	set_times("t");
	ck_assert_uint_eq(find("t", &f), STATE_VANISHED);
	ck_assert_int_eq(answer.error, ESTALE);
	/* the parser compares that */
	question.open.n_build_id = 20;
	ck_assert_uint_eq(find("t", &f), STATE_READY);
	ck_assert_str_eq(found(), "two\n");
	/* who maps it now */
	question.open.n_build_id = 0;
	question.open.not_after_ns = now_ns();
	ck_assert_uint_eq(find("t", &f), STATE_READY);
}

TEST(what_its_first_process_still_has_mapped_is_the_one_also_after_a_chmod)
{
	shell("cp /bin/sleep '%s/t'", dir);
	set_times("t");
	mapped = mapped_free(mapped);
	pid_t pid = fork();
	if (pid == 0) {
		execl(below("t"), "t", "60", NULL);
		_exit(1);
	}
	char exe[64];
	struct stat is, wanted;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
	ck_assert_int_eq(stat(below("t"), &wanted), 0);
	for (int i = 0; i < 1000 && (stat(exe, &is) < 0 || is.st_ino != wanted.st_ino); i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	question.open.not_after_ns = now_ns();
	question.open.pid = pid;
	shell("chmod 700 '%s/t'", dir);
	struct mapped_file f = of_stat("t");
	uint32_t another = find("t", &f);
	question.open.first_mapper = 1;
	uint32_t first = find("t", &f);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert_uint_eq(another, STATE_VANISHED);
	ck_assert_uint_eq(first, STATE_READY);
	ck_assert_uint_eq(find("t", &f), STATE_VANISHED);
}
