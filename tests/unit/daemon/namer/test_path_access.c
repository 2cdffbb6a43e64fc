/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A path on foot: what it leads to, where it stops, and that what the kernel lets a user open is
 * what the walk finds for that user, and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/namer/path_access.h"
#include "tests/unit/test.h"

#define MALLORY 60302
#define VICTOR 60303
#define FRIENDS 60310 /* a group of Mallory's */

static char dir[64];
static int root;
static struct readers mallory;

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	char command[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	ck_assert_int_eq(system(command), 0);
}

static bool is_root(const char *test)
{
	if (geteuid() == 0)
		return true;
	printf("SKIP %s: not root\n", test);
	fflush(stdout);
	return false;
}

static void setup(void)
{
	strcpy(dir, "/tmp/mperf-test-way-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chmod(dir, 0755), 0);
	root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	mallory = (struct readers){
		.n = 1,
		.one = {{.uid = MALLORY,
			.groups_known = true,
			.n_groups = 2,
			.group = {FRIENDS, MALLORY}}},
	};
}

static void teardown(void)
{
	close(root);
	shell("rm -rf '%s'", dir);
}

EACH_TEST(.begin = setup, .end = teardown);

static const struct readers nobody_asked = {0};

/* The inode that the path leads to, or -errno. */
static int64_t leads(const char *path, const struct readers *readers, bool no_link)
{
	struct stat s;
	int fd = path_open(root, path, readers, no_link);

	if (fd < 0)
		return fd;
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_PATH, O_PATH);
	ck_assert_int_eq(fstat(fd, &s), 0);
	close(fd);
	return (int64_t)s.st_ino;
}

static int64_t inode(const char *path)
{
	struct stat s;

	ck_assert_int_eq(fstatat(root, path, &s, AT_SYMLINK_NOFOLLOW), 0);
	return (int64_t)s.st_ino;
}

TEST(names_dots_and_links_are_followed)
{
	shell("cd '%s' && mkdir -p a/b && echo x > a/b/f && ln -s a/b ab && ln -s f a/b/l &&"
	      " ln -s ../b/./f a/b/m && ln -s /a/b/f absolute && ln -s a// a_",
		dir);
	static const char *const good[] = {"a/b/f", "/a/b/f", "//a///b//f", "a/./b/../b/f", "ab/f",
		"ab/l", "a/b/m", "absolute", "ab/../b/f", "a_/b/f", "../../a/b/f"};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		ck_assert_msg(
			leads(good[i], &nobody_asked, false) == inode("a/b/f"), "%s", good[i]);
	ck_assert_int_eq(leads("", &nobody_asked, false), -ENOENT);
	ck_assert_int_eq(leads("a/none", &nobody_asked, false), -ENOENT);
	ck_assert_int_eq(leads("a/b/f/x", &nobody_asked, false), -ENOTDIR);
	ck_assert_int_eq(leads("/", &nobody_asked, false), -EISDIR);
	ck_assert_int_eq(leads("a/b/", &nobody_asked, false), -EISDIR);
	ck_assert_int_eq(leads("a/..", &nobody_asked, false), -EISDIR);
}

TEST(nothing_leads_out_of_the_root)
{
	shell("cd '%s' && ln -s /etc/passwd absolute && ln -s ../../../../etc/passwd relative &&"
	      " mkdir sub && ln -s ../../etc sub/etc",
		dir);
	ck_assert_int_eq(leads("absolute", &nobody_asked, false), -ENOENT);
	ck_assert_int_eq(leads("relative", &nobody_asked, false), -ENOENT);
	ck_assert_int_eq(leads("sub/etc/passwd", &nobody_asked, false), -ENOENT);
	ck_assert_int_eq(leads("../../../../../etc/passwd", &nobody_asked, false), -ENOENT);
}

TEST(links_are_counted)
{
	shell("cd '%s' && ln -s a b && ln -s b a && echo x > f && ln -s f l0 &&"
	      " i=0; while [ $i -lt 40 ]; do ln -s l$i '%s'/l$((i+1)); i=$((i+1)); done",
		dir, dir);
	ck_assert_int_eq(leads("a", &nobody_asked, false), -ELOOP);
	ck_assert_int_eq(leads("l39", &nobody_asked, false), inode("f")); /* forty of them */
	ck_assert_int_eq(leads("l40", &nobody_asked, false), -ELOOP);
	ck_assert_int_eq(leads("l0", &nobody_asked, true), -ELOOP);
	ck_assert_int_eq(leads("f", &nobody_asked, true), inode("f"));
}

TEST(depth_and_length_are_bounded)
{
	char path[2 * PATH_DEPTH_MAX + 8] = "", *p = path, name[NAME_MAX + 3];

	for (int i = 0; i < PATH_DEPTH_MAX - 1; i++)
		p = stpcpy(p, "d/");
	shell("cd '%s' && mkdir -p '%sd' && echo x > '%sf' && echo x > '%sd/f'", dir, path, path,
		path);
	strcpy(p, "f");
	ck_assert_int_eq(leads(path, &nobody_asked, false), inode(path));
	strcpy(p, "d/f");
	ck_assert_int_eq(leads(path, &nobody_asked, false), -ENAMETOOLONG);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	ck_assert_int_eq(leads(name, &nobody_asked, false), -ENAMETOOLONG);
}

TEST(links_of_proc_are_refused)
{
	int everything = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(path_open(everything, "/proc/self/exe", &nobody_asked, false), -ELOOP);
	ck_assert_int_eq(
		path_open(AT_FDCWD, "/proc/1/root/etc/passwd", &nobody_asked, false), -ELOOP);
	close(everything);
}

TEST(device_and_pipe_are_found_without_being_opened)
{
	ck_assert_int_eq(mkfifoat(root, "fifo", 0600), 0);
	ck_assert_int_eq(leads("fifo", &nobody_asked, false), inode("fifo"));
}

/* --- readers ---------------------------------------------------------------------------------- */

TEST(each_folder_on_the_way_must_be_passed)
{
	if (!is_root("each_folder_on_the_way_must_be_passed"))
		return;
	shell("cd '%s' && mkdir -p home/open && echo x > home/open/f && chmod 700 home &&"
	      " chown %d home && ln -s home/open/f link && ln -s /home/open way &&"
	      " mkdir .debug && ln -s ../home/open/f .debug/f",
		dir, VICTOR);
	static const char *const ways[] = {
		"home/open/f", "link", "way/f", ".debug/f", "home/../link", "home/open/../../link"};

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		ck_assert_msg(leads(ways[i], &mallory, false) == -EACCES, "%s", ways[i]);
		ck_assert_int_eq(leads(ways[i], &nobody_asked, false), inode("home/open/f"));
	}
	shell("chmod 711 '%s/home'", dir);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		ck_assert_int_eq(leads(ways[i], &mallory, false), inode("home/open/f"));
	shell("chmod 700 '%s'", dir); /* the root of all */
	ck_assert_int_eq(leads("link", &mallory, false), -EACCES);
}

TEST(all_readers_must_pass)
{
	if (!is_root("all_readers_must_pass"))
		return;
	struct readers both = mallory;

	shell("cd '%s' && mkdir mine && echo x > mine/f && chmod 700 mine && chown %d mine", dir,
		MALLORY);
	ck_assert_int_eq(leads("mine/f", &both, false), inode("mine/f"));
	both.one[both.n++] = (struct reader){.uid = VICTOR};
	ck_assert_int_eq(leads("mine/f", &both, false), -EACCES);
	both.one[1].uid = 0;
	ck_assert_int_eq(leads("mine/f", &both, false), inode("mine/f"));
}

/* --- against the kernel ----------------------------------------------------------------------- */

/* Can a process of Mallory's open it? */
static bool kernel_lets(const char *path)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		gid_t groups[] = {FRIENDS};
		if (setgroups(1, groups) < 0 || setgid(MALLORY) < 0 || setuid(MALLORY) < 0)
			_exit(2);
		_exit(openat(root, path, O_RDONLY | O_CLOEXEC) < 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 0;
}

static bool we_let(const char *path)
{
	struct stat s;
	int fd = path_open(root, path, &mallory, false);
	bool may = fd >= 0 && fstat(fd, &s) == 0 && path_may(fd, &s, &mallory, READER_READS);

	if (fd >= 0)
		close(fd);
	return may;
}

static uint32_t dice = 1;

static uint32_t roll(uint32_t n)
{
	dice = dice * 1103515245 + 12345; /* Source: POSIX, rand */
	return (dice >> 16) % n;
}

static bool set_acl(const char *path)
{
	static const uint32_t users[] = {MALLORY, VICTOR}, groups[] = {FRIENDS, 60399};
	uint8_t acl[4 + 6 * 8];
	size_t n = 4;
	const struct {
		uint16_t tag;
		uint32_t id;
	} entries[] = {{1, UINT32_MAX}, {2, users[roll(2)]}, {4, UINT32_MAX}, {8, groups[roll(2)]},
		{16, UINT32_MAX}, {32, UINT32_MAX}};

	memcpy(acl, &(uint32_t){2}, 4);
	for (size_t i = 0; i < 6; i++) {
		uint16_t entry[2] = {entries[i].tag, (uint16_t)roll(8)};
		memcpy(acl + n, entry, 4);
		memcpy(acl + n + 4, &entries[i].id, 4);
		n += 8;
	}
	char whole[256];
	snprintf(whole, sizeof(whole), "%s/%s", dir, path);
	return setxattr(whole, "system.posix_acl_access", acl, n, 0) == 0;
}

#define TRIES 300

TEST(the_walk_lets_pass_whom_the_kernel_does)
{
	static const char name[] = "the_walk_lets_pass_whom_the_kernel_does";
	static const uid_t users[] = {0, MALLORY, VICTOR};
	static const gid_t groups[] = {0, MALLORY, FRIENDS, 60399};
	uint32_t n_let = 0, n_acls = 0;

	if (!is_root(name))
		return;
	for (int i = 0; i < TRIES; i++) {
		static const char *const paths[] = {"d", "d/f"};
		ck_assert_int_eq(mkdirat(root, "d", 0700), 0);
		close(openat(root, "d/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		for (size_t k = 0; k < 2; k++) {
			ck_assert_int_eq(
				fchownat(root, paths[k], users[roll(3)], groups[roll(4)], 0), 0);
			ck_assert_int_eq(fchmodat(root, paths[k], roll(01000), 0), 0);
			if (roll(2))
				n_acls += set_acl(paths[k]);
		}
		bool kernel = kernel_lets("d/f"), we = we_let("d/f");
		ck_assert_msg(kernel == we, "try %d: kernel %d, we %d", i, kernel, we);
		n_let += we;
		ck_assert_int_eq(unlinkat(root, "d/f", 0), 0);
		ck_assert_int_eq(unlinkat(root, "d", AT_REMOVEDIR), 0);
	}
	ck_assert_uint_gt(n_let, TRIES / 20);
	ck_assert_uint_lt(n_let, TRIES * 3 / 4);
	if (n_acls == 0)
		printf("SKIP %s: no access control lists below /tmp; modes alone were compared\n",
			name);
}

/* A bind mount in a namespace of somebody's own: the folder that it hangs in is passed, and what is
 * mounted is judged by itself. */
TEST(mounted_file_is_judged_by_its_own_mode)
{
	if (!is_root("mounted_file_is_judged_by_its_own_mode"))
		return;
	shell("cd '%s' && mkdir home && echo x > home/secret && chmod 600 home/secret &&"
	      " chmod 700 home && echo y > place && chmod 644 place",
		dir);
	char from[128], to[128];
	snprintf(from, sizeof(from), "%s/home/secret", dir);
	snprintf(to, sizeof(to), "%s/place", dir);
	ck_assert(we_let("place"));
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount(from, to, NULL, MS_BIND, NULL) < 0) {
		printf("SKIP mounted_file_is_judged_by_its_own_mode: may not mount\n");
		return;
	}
	close(root);
	root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool let = we_let("place"),
	     ours = leads("place", &nobody_asked, false) == inode("home/secret");
	umount(to);
	ck_assert(ours && !let);
}
