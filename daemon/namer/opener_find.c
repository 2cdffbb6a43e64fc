/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Candidates for the place of a file. A path that a process mapped is valid only in that process's
 * mount namespace, so /proc/PID/root comes first while the process is alive; then our own
 * namespace, for a process that is gone; then the mapping itself, which still leads to a deleted
 * file; then the mounts of the process's ancestors. A later start time shows that a pid was reused.
 *
 * The mapping and the program's own link lead to a file that may no longer be in any folder; then
 * only its own mode is checked. That is enough: the process has it open, and the mode protects
 * execute-only programs, which are mapped but not readable.
 *
 * /proc/PID is opened once and everything is looked up below that descriptor. It keeps naming the
 * same process, and fails with ESRCH once that is gone.
 */
#include "daemon/namer/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/namer/mounts.h"
#include "proto/base/memory.h"

/* /proc counts start times in ticks of 10 ms, the kernel's records in ns: allow two ticks. */
#define START_SLACK_NS 20000000ull

/* Mounts of one file system in which we look: it may have thousands, in the folders of containers. */
#define KIN_MOUNTS_MAX 16

struct search {
	const struct opener_question *q;
	struct opener_answer *a;
	struct opener_demand demand;
	struct readers readers;
	int proc; /* /proc/PID, or -1 */
	int root; /* its root directory if that is not ours, or -1 */
	pid_t pid_inside;
};

/* The most specific refusal wins: oversize, refused, vanished. */
static void refuse(struct search *s, int error)
{
	uint32_t state = STATE_VANISHED;

	if (error == -EFBIG)
		state = STATE_OVERSIZE;
	else if (error == -EACCES || error == -EPERM)
		state = STATE_REFUSED;
	if (s->a->error == 0 || state > s->a->state || (error == -ESTALE && state == s->a->state)) {
		s->a->state = state;
		s->a->error = -error;
	}
}

static bool try_at(struct search *s, int dir, bool linked, const char *path)
{
	s->demand.linked = linked;
	int r = opener_open(dir, path, &s->demand, s->a);
	if (r < 0) {
		refuse(s, r);
		return false;
	}
	s->a->state = STATE_READY;
	s->a->error = 0;
	snprintf(s->a->path, sizeof(s->a->path), "%s", path);
	return true;
}

/* In the process's root, then in ours. */
static bool try_path(struct search *s, const char *path)
{
	if (path[0] != '/') {
		refuse(s, -ENOENT);
		return false;
	}
	return (s->root >= 0 && try_at(s, s->root, false, path)) ||
	       try_at(s, AT_FDCWD, false, path);
}

static bool read_text(int dir, const char *name, char *text, size_t size)
{
	_cleanup_(closep) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;

	size_t n = 0;
	while (n < size - 1) {
		ssize_t r = read(fd, text + n, size - 1 - n);
		if (r < 0)
			return false;
		if (r == 0)
			break;
		n += (size_t)r;
	}
	text[n] = 0;
	return n > 0;
}

/* Did the process behind proc start no later than start_ns? Its start time counts from boot,
 * including suspends; subtracting the current suspended time makes it earlier, never later. Source:
 * man proc_pid_stat, field 22. */
static bool began_by(int proc, uint64_t start_ns)
{
	char text[2048];
	struct timespec boot, monotonic;

	if (!read_text(proc, "stat", text, sizeof(text)))
		return false;
	const char *p = strrchr(text, ')'); /* the name may contain anything */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return false;

	uint64_t ticks = strtoull(p, NULL, 10);
	uint64_t began_ns = ticks * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	int64_t suspended_ns =
		(boot.tv_sec - monotonic.tv_sec) * 1000000000ll + boot.tv_nsec - monotonic.tv_nsec;
	return (int64_t)began_ns - suspended_ns <= (int64_t)(start_ns + START_SLACK_NS);
}

/* Add the user of the process for file access (fsuid). Source: man proc_pid_status. */
static void read_status(struct search *s)
{
	/* 1 KiB, and up to 11 bytes per group */
	char text[2048 + 11 * READER_GROUPS_MAX];
	struct reader *r = &s->readers.one[s->readers.n];

	if (!read_text(s->proc, "status", text, sizeof(text)) ||
		!reader_of_status(text, r, &s->pid_inside))
		return;
	s->readers.n++;
	s->demand.owner = r->uid;
}

/* Are we subject to file modes? Source: man capabilities. */
static bool passes_modes(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	return syscall(SYS_capget, &header, data) < 0 ||
	       data[0].effective & (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
}

/* The uid that represents all owners not mapped in our user namespace; 0 in the initial one, where
 * it may belong to a user. Source: man user_namespaces, "Unmapped user and group IDs". */
static uint32_t unmapped_id(void)
{
	char text[64];
	uint32_t first, outside, n;

	if (read_text(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) &&
		sscanf(text, "%" SCNu32 "%" SCNu32 "%" SCNu32, &first, &outside, &n) == 3 &&
		n == UINT32_MAX)
		return 0;
	if (read_text(AT_FDCWD, "/proc/sys/kernel/overflowuid", text, sizeof(text)) &&
		sscanf(text, "%" SCNu32, &n) == 1 && n != 0)
		return n;
	return 65534; /* Source: DEFAULT_OVERFLOWUID, include/linux/highuid.h */
}

/* The readers that a file is opened for: the user to whom the names are shown, and the current user
 * of the process, which may have changed since the request. If the first is not known (yet), files
 * must be readable by everyone; those that describe generated code are only for the user of the
 * process. If we have only our own user's rights, the kernel decides, and our user may see what it
 * opens. */
static void find_readers(struct search *s)
{
	const struct message_open *o = &s->q->open;
	struct readers *all = &s->readers;

	s->demand.readers = all;
	s->demand.owner = o->has_uid ? o->uid : READER_NOBODY;
	if (s->proc >= 0)
		read_status(s);
	if (!passes_modes() || (o->own && o->part == PART_MAIN && o->kind == KIND_ELF)) {
		if (s->demand.owner == READER_NOBODY)
			s->demand.owner = geteuid();
		all->n = 0;
		return;
	}
	all->unmapped = unmapped_id();
	uint32_t uid = o->has_uid ? o->uid : READER_NOBODY;
	bool generated = o->kind == KIND_PERF_MAP || o->kind == KIND_JITDUMP;
	if (all->n == 0 || (all->one[0].uid != uid && (o->has_uid || !generated)))
		all->one[all->n++] = (struct reader){.uid = uid};
}

static int open_root(int proc)
{
	struct stat theirs, ours;
	_cleanup_(closep) int root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0 || fstat(root, &theirs) < 0)
		return -1;
	/* The same directory may be in another mount namespace, with other things mounted below it;
	 * so it is ours only in the same namespace. */
	struct stat their_mounts, our_mounts;
	if (stat("/", &ours) == 0 && ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev &&
		fstatat(proc, "ns/mnt", &their_mounts, 0) == 0 &&
		stat("/proc/self/ns/mnt", &our_mounts) == 0 &&
		their_mounts.st_ino == our_mounts.st_ino &&
		their_mounts.st_dev == our_mounts.st_dev)
		return -1;
	return TAKE_FD(root);
}

/* The folder in /proc of the process with that number, or -1 if it began later. */
static int open_proc(pid_t pid, uint64_t start_ns)
{
	char path[32];

	if (pid <= 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	_cleanup_(closep) int proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0 || (start_ns && !began_by(proc, start_ns)))
		return -1;
	return TAKE_FD(proc);
}

static void open_process(struct search *s)
{
	const struct message_open *o = &s->q->open;

	s->pid_inside = o->pid;
	s->proc = open_proc(o->pid, o->pid_start_ns);
	s->root = s->proc < 0 ? -1 : open_root(s->proc);
	s->demand.host = s->proc < 0 ? 0 : s->proc;
}

static bool try_mapping(struct search *s)
{
	const struct message_open *o = &s->q->open;
	char path[64];

	if (s->proc < 0 || o->map_end <= o->map_start)
		return false;
	snprintf(path, sizeof(path), "map_files/%" PRIx64 "-%" PRIx64, o->map_start, o->map_end);
	return try_at(s, s->proc, true, path);
}

/* Only if the file is the program itself, identified by inode, by build id (checked by the parser),
 * or by name. */
static bool try_program(struct search *s)
{
	char target[PATH_MAX];
	size_t n_path = strlen(s->q->path);

	if (s->proc < 0)
		return false;
	if (s->demand.inode == 0) {
		ssize_t n = readlinkat(s->proc, "exe", target, sizeof(target) - 1);
		if (n < 0)
			return false;
		target[n] = 0;
		if (strncmp(target, s->q->path, n_path) != 0 ||
			(target[n_path] && strcmp(target + n_path, " (deleted)") != 0))
			return false;
	}
	return try_at(s, s->proc, true, "exe");
}

static bool try_in_root(struct search *s)
{
	return s->root >= 0 && s->q->path[0] == '/' && try_at(s, s->root, false, s->q->path);
}

static bool try_here(struct search *s)
{
	/* A relative or bracketed name ("//anon", "memfd:…") is not a path. */
	return s->q->path[0] == '/' && try_at(s, AT_FDCWD, false, s->q->path);
}

/* Look in the mounts of the file's device: a program in a chroot usually had one of them as its
 * root. */
static bool try_mounts(struct search *s, int proc, int root)
{
	struct mounts *mounts = mounts_begin(proc);
	struct mount_line m;
	bool found = false;
	char path[PATH_MAX];

	for (int n_tried = 0; mounts && !found && n_tried < KIN_MOUNTS_MAX;) {
		if (!mounts_next(mounts, &m))
			break;
		if (m.major != s->demand.major || m.minor != s->demand.minor || !m.place[1])
			continue;
		int n = snprintf(path, sizeof(path), "%s%s", m.place, s->q->path);
		found = n > 0 && (size_t)n < sizeof(path) &&
			try_at(s, root < 0 ? AT_FDCWD : root, false, path);
		n_tried++;
	}
	mounts_end(mounts);
	return found;
}

/* Find the file in the mounts of the process's ancestors. The kernel's records identify it, not the path. */
static bool try_kin(struct search *s)
{
	bool found = false;

	if (s->demand.inode == 0 || s->q->path[0] != '/')
		return false;
	for (size_t i = 0; i < MESSAGE_KIN && !found; i++) {
		const struct message_kin *k = &s->q->open.kin[i];
		_cleanup_(closep) int proc = open_proc(k->pid, k->start_ns);
		if (proc < 0)
			continue;
		_cleanup_(closep) int root = open_root(proc);
		s->demand.host = proc;
		found = (root >= 0 && try_at(s, root, false, s->q->path)) ||
			try_mounts(s, proc, root);
	}
	s->demand.host = s->proc < 0 ? 0 : s->proc;
	return found;
}

static bool find_mapped(struct search *s)
{
	typedef bool try_function(struct search *);
	static try_function *const present[] = {
		try_in_root, try_here, try_mapping, try_program, try_kin};
	static try_function *const deleted[] = {
		try_mapping, try_program, try_in_root, try_here, try_kin};
	try_function *const *order = s->q->open.deleted ? deleted : present;

	for (uint32_t i = s->q->open.first; i < sizeof(present) / sizeof(*present); i++)
		if (order[i](s)) {
			s->a->first = i;
			return true;
		}
	return false;
}

/* Source: Linux tools/perf/Documentation/jit-interface.txt; tools/perf/util/symbol.c uses the pid
 * inside the container and refuses files of other users, except root's. But anyone may mount a file
 * of root's there in their own namespace, so it must belong to the user. */
static bool find_perf_map(struct search *s)
{
	char path[64];

	s->demand.owned = true;
	s->demand.inode = 0;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", s->pid_inside);
	if (s->root >= 0 && try_at(s, s->root, false, path))
		return true;
	/* in a pid namespace, with our mounts */
	if (s->pid_inside != s->q->open.pid && s->proc >= 0 && s->root < 0 &&
		try_at(s, AT_FDCWD, false, path))
		return true;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", s->q->open.pid);
	return try_at(s, AT_FDCWD, false, path);
}

/* Source: GDB manual, "Debugging Information in Separate Files". */
static bool try_build_id(struct search *s, const char *suffix)
{
	const struct message_open *o = &s->q->open;
	char path[sizeof("/usr/lib/debug/.build-id//.debug") + 2 * MESSAGE_BUILD_ID_BYTES];
	int n = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/");

	if (o->n_build_id < 2)
		return false;
	for (int i = 0; i < o->n_build_id; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x%s", o->build_id[i],
			i == 0 ? "/" : "");
	snprintf(path + n, sizeof(path) - (size_t)n, "%s", suffix);
	return try_path(s, path);
}

static bool try_joined(struct search *s, const char *before, size_t n_dir, const char *between)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%.*s%s%s", before, (int)n_dir, s->q->path, between,
		s->q->link);

	/* A file whose link names itself has no debug file. */
	return n > 0 && (size_t)n < sizeof(path) && strcmp(path, s->q->path) != 0 &&
	       try_path(s, path);
}

/* FOLDER/BUILDID/debuginfo in a cache (debuginfod/cache.h). The two last parts belong to him who fetched it: a link that
 * he made is not followed. */
static bool try_fetched(struct search *s)
{
	const char *file = strrchr(s->q->link, '/'), *folder = file;
	char path[PATH_MAX];

	while (folder && folder > s->q->link && *--folder != '/')
		;
	if (!file || folder == s->q->link || (size_t)(file - s->q->link) >= sizeof(path))
		return false;
	snprintf(path, sizeof(path), "%.*s", (int)(folder - s->q->link), s->q->link);
	_cleanup_(closep) int cache = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%.*s", (int)(file - folder - 1), folder + 1);
	_cleanup_(closep) int fetched =
		openat(cache, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fetched < 0)
		return false;
	s->demand.no_link = true;
	const bool found = try_at(s, fetched, false, file + 1);
	s->demand.no_link = false;
	if (found)
		snprintf(s->a->path, sizeof(s->a->path), "%s", s->q->link);
	return found;
}

static bool find_debug(struct search *s)
{
	const char *slash = strrchr(s->q->path, '/');

	if (s->q->open.fetched && try_fetched(s))
		return true;
	if (try_build_id(s, ".debug"))
		return true;
	if (!slash || !s->q->link[0] || strchr(s->q->link, '/'))
		return false;
	size_t n_dir = (size_t)(slash + 1 - s->q->path);
	return try_joined(s, "", n_dir, "") || try_joined(s, "", n_dir, ".debug/") ||
	       try_joined(s, "/usr/lib/debug", n_dir, "");
}

static bool find_alt(struct search *s)
{
	const char *slash = strrchr(s->q->path, '/');

	if (try_build_id(s, ".debug"))
		return true;
	if (s->q->link[0] == '/')
		return try_path(s, s->q->link);
	return slash && s->q->link[0] && try_joined(s, "", (size_t)(slash + 1 - s->q->path), "");
}

/* Find the package by build id, as debug files; or next to the program, where dwp(1) and llvm-dwp(1) put it. */
static bool find_package(struct search *s)
{
	char path[MESSAGE_PATH_BYTES_MAX + sizeof(".dwp")];

	snprintf(path, sizeof(path), "%s.dwp", s->q->path);
	return try_build_id(s, ".dwp") || try_path(s, path);
}

static bool find_part(struct search *s)
{
	switch (s->q->open.part) {
	case PART_DEBUG:
		return find_debug(s);
	case PART_ALT:
		return find_alt(s);
	case PART_PACKAGE:
		return find_package(s);
	case PART_SPLIT:
		return try_path(s, s->q->path);
	}
	return false;
}

static bool find_main(struct search *s)
{
	switch (s->q->open.kind) {
	case KIND_KERNEL:
	case KIND_MODULE:
		s->readers.n = 0; /* no owner; access to kernel addresses is checked elsewhere */
		return try_at(s, AT_FDCWD, true, "/proc/kallsyms");
	case KIND_PERF_MAP:
		return find_perf_map(s);
	case KIND_JITDUMP:
		s->demand.owned = true;
		return find_mapped(s);
	case KIND_ELF:
		return find_mapped(s);
	}
	return false;
}

/* Convert by the current clock, which may have been set since. File times do not change, so after a
 * step forward fewer files count as written later, and after a step back their times are in the
 * future. */
static int64_t realtime_of(uint64_t monotonic_ns)
{
	struct timespec monotonic, real;

	if (monotonic_ns == 0)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &real);
	return (int64_t)monotonic_ns + (real.tv_sec - monotonic.tv_sec) * 1000000000ll +
	       real.tv_nsec - monotonic.tv_nsec;
}

void opener_find(
	const struct opener_question *q, struct mapped *mapped, struct opener_answer *ret_answer)
{
	const struct message_open *o = &q->open;
	struct search s = {.q = q, .a = ret_answer, .demand.mapped = mapped};

	*ret_answer = (struct opener_answer){.fd = -1, .state = STATE_VANISHED};
	open_process(&s);
	find_readers(&s);
	if (o->part == PART_MAIN) {
		s.demand.inode = o->inode;
		s.demand.generation = o->generation;
		s.demand.major = o->major;
		s.demand.minor = o->minor;
		s.demand.not_after_ns = realtime_of(o->not_after_ns);
		s.demand.not_before_ns = realtime_of(o->not_before_ns);
		s.demand.id_is_checked = o->n_build_id > 0;
		s.demand.mapper = o->first_mapper && s.proc > 0 ? s.proc : 0;
		s.demand.map_start = o->map_start;
		s.demand.map_end = o->map_end;
		find_main(&s);
	} else {
		find_part(&s);
	}
	if (s.root >= 0)
		close(s.root);
	if (s.proc >= 0)
		close(s.proc);
}
