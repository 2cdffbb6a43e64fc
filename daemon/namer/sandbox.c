/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Both workers have a list of system calls that they need; every other one kills the process, so
 * that an exploit of a parser ends as a counted crash. The lists hold names, since a call that an
 * architecture never had (open on arm64) resolves to nothing there and is left out.
 *
 * Opening files fails in the parser (EACCES) but does not kill it: libdw itself looks for split and
 * shared debug files that a file names, even in ordinary programs, and continues without them.
 *
 * A filter sees numbers, so it knows the target of a call. The daemon and the other worker run as the
 * same user and would accept any signal from here. So a worker may signal only its own process, for abort,
 * by its number in its own pid namespace; and it may not set a descriptor to signal another process when
 * there is something to read. Calls that open files open them for reading only.
 *
 * A sanitizer's runtime makes further calls (it reads /proc/self/maps, starts threads, maps terabytes of
 * shadow). So under a sanitizer memory is not limited, and the parser's filter covers only the purpose of
 * the sandbox: opening is refused, connecting and executing kill. The opener is not filtered then.
 */
#include "daemon/namer/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <malloc.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/namer/message.h"
#include "daemon/namer/opener.h"
#include "proto/base/memory.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_LOOSE true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
	__has_feature(memory_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define SANDBOX_LOOSE true
#endif
#endif
#ifndef SANDBOX_LOOSE
#define SANDBOX_LOOSE false
#endif

/* System calls that libc, libelf and libdw use to read, allocate, answer and abort. qsort uses
 * sysinfo to size its buffer. tgkill and fcntl: see below. */
static const char *const allowed_both[] = {"read", "pread64", "fstat", "lseek", "munmap", "mremap",
	"brk", "madvise", "futex", "recvmsg", "sendmsg", "poll", "ppoll", "close", "dup",
	"clock_gettime", "gettimeofday", "getrandom", "rt_sigreturn", "rt_sigprocmask",
	"rt_sigaction", "exit", "exit_group", "getpid", "gettid", "sysinfo", "restart_syscall",
	"riscv_flush_icache", NULL};

/* openat: see below. statfs shows whether a file system may hang; memfd_create, write and ftruncate
 * make copies. */
static const char *const allowed_opener[] = {"newfstatat", "statx", "fstatfs", "readlinkat",
	"readlink", "getxattr", "capget", "memfd_create", "write", "geteuid", NULL};

static const char *const refused_parser[] = {"open", "openat", "openat2", "creat", "readlink",
	"readlinkat", "access", "faccessat", "faccessat2", NULL};

static const char *const deadly_loose[] = {
	"connect", "socket", "execve", "execveat", "ptrace", "unlinkat", "unlink", "kill", NULL};

static int rule(scmp_filter_ctx filter, uint32_t action, const char *name,
	const struct scmp_arg_cmp *condition)
{
	int number = seccomp_syscall_resolve_name(name);

	if (number < 0)
		return 0; /* not on this architecture */
	return condition ? seccomp_rule_add_array(filter, action, number, 1, condition)
			 : seccomp_rule_add(filter, action, number, 0);
}

static int rules(scmp_filter_ctx filter, uint32_t action, const char *const *names)
{
	for (; *names; names++) {
		int r = rule(filter, action, *names, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The fcntl commands of libc and libelf. Not F_SETOWN and F_SETSIG: with O_ASYNC they can send any
 * signal to any process of our user. */
static const int allowed_fcntl[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL};

static int rules_of_both(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp ourselves = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid());
	/* Data only: a compromised worker cannot map code of its own. */
	const struct scmp_arg_cmp no_code = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	int r = rules(filter, SCMP_ACT_ALLOW, allowed_both);

	for (size_t i = 0; r >= 0 && i < sizeof(allowed_fcntl) / sizeof(*allowed_fcntl); i++) {
		const struct scmp_arg_cmp command =
			SCMP_A1_32(SCMP_CMP_EQ, (uint32_t)allowed_fcntl[i]);
		r = rule(filter, SCMP_ACT_ALLOW, "fcntl", &command);
	}
	if (r >= 0)
		r = rule(filter, SCMP_ACT_ALLOW, "tgkill", &ourselves);
	if (r >= 0)
		r = rule(filter, SCMP_ACT_ALLOW, "mmap", &no_code);
	if (r >= 0)
		r = rule(filter, SCMP_ACT_ALLOW, "mprotect", &no_code);
	return r;
}

static int parser_rules(scmp_filter_ctx filter)
{
	/* glibc's fstat is newfstatat(fd, "", …, AT_EMPTY_PATH) on some versions. A filter cannot
	 * read the path, but this flag does not let a path be opened. */
	const struct scmp_arg_cmp empty_path =
		SCMP_A3(SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH);
	/* The last message of an assertion or of the allocator. */
	const struct scmp_arg_cmp standard_error = SCMP_A0(SCMP_CMP_EQ, STDERR_FILENO);
	int r = rules_of_both(filter);

	if (r >= 0)
		r = rules(filter, SCMP_ACT_ERRNO(EACCES), refused_parser);
	if (r >= 0)
		r = rule(filter, SCMP_ACT_ALLOW, "newfstatat", &empty_path);
	if (r >= 0)
		r = rule(filter, SCMP_ACT_ALLOW, "write", &standard_error);
	if (r >= 0)
		r = rule(filter, SCMP_ACT_ALLOW, "writev", &standard_error);
	return r;
}

static int opener_rules(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp read_only =
		SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
	/* whose a mount namespace is */
	const struct scmp_arg_cmp owner = SCMP_A1_32(SCMP_CMP_EQ, NS_GET_USERNS);
	int r = rules_of_both(filter);

	if (r >= 0)
		r = rules(filter, SCMP_ACT_ALLOW, allowed_opener);
	if (r >= 0)
		r = rule(filter, SCMP_ACT_ALLOW, "openat", &read_only);
	if (r >= 0)
		r = rule(filter, SCMP_ACT_ALLOW, "ioctl", &owner);
	return r;
}

static int filter_load(uint32_t fallback, int (*fill)(scmp_filter_ctx))
{
	scmp_filter_ctx filter = seccomp_init(fallback);
	int r;

	if (!filter)
		return -ENOMEM;
	r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r >= 0)
		r = fill(filter);
	if (r >= 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? r : 0;
}

static int loose_rules(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp others = SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid());
	const struct scmp_arg_cmp owner = SCMP_A1_32(SCMP_CMP_EQ, F_SETOWN);
	int r = rules(filter, SCMP_ACT_ERRNO(EACCES), refused_parser);

	if (r >= 0)
		r = rules(filter, SCMP_ACT_KILL_PROCESS, deadly_loose);
	if (r >= 0)
		r = rule(filter, SCMP_ACT_KILL_PROCESS, "tgkill", &others);
	if (r >= 0)
		r = rule(filter, SCMP_ACT_KILL_PROCESS, "fcntl", &owner);
	return r;
}

static int limit(int resource, rlim_t most)
{
	struct rlimit l;

	if (getrlimit(resource, &l) < 0)
		return -errno;
	if (l.rlim_max < most)
		most = l.rlim_max;
	l = (struct rlimit){.rlim_cur = most, .rlim_max = most};
	return setrlimit(resource, &l) < 0 ? -errno : 0;
}

static int enter(rlim_t n_files, rlim_t file_bytes)
{
	int r = limit(RLIMIT_CORE, 0);

	if (r >= 0)
		r = limit(RLIMIT_NOFILE, n_files);
	if (r >= 0 && !SANDBOX_LOOSE)
		r = limit(RLIMIT_FSIZE, file_bytes);
	if (r >= 0 && !SANDBOX_LOOSE)
		r = limit(RLIMIT_DATA, WORKER_DATA_BYTES_MAX);
	if (r >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r;
}

/* The same score as that of children that answer (child/offload.c). */
#define OOM_SCORE "500"

/* The step by which the allocator takes memory from the kernel and returns it. */
#define MAPPED_BYTES (256 << 10)

static int compare_bytes(const void *a, const void *b)
{
	return *(const unsigned char *)a - *(const unsigned char *)b;
}

/* Values that libc looks up once, in some versions from files: the size of memory (qsort), the
 * number of CPUs (a second arena, when the first is out of memory). */
static int prepare_libc(void)
{
	_cleanup_(freep) unsigned char *bytes = calloc(1, 65536);

	if (!bytes)
		return -ENOMEM;
	qsort(bytes, 65536, 1, compare_bytes);
	/* Return the memory of a file's tables when the file is done: by default, the allocator
	 * keeps blocks as large as one that was freed before. A sanitizer's allocator does not
	 * support this and fails. */
	bool done = mallopt(M_ARENA_MAX, 1) == 1 && mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES) == 1 &&
		    mallopt(M_TRIM_THRESHOLD, MAPPED_BYTES) == 1;
	return done || SANDBOX_LOOSE ? 0 : -EINVAL;
}

int sandbox_enter_opener(void)
{
	int r = enter(64, OPENER_COPY_BYTES_MAX);

	if (r < 0 || SANDBOX_LOOSE)
		return r;
	return filter_load(SCMP_ACT_KILL_PROCESS, opener_rules);
}

/* The opener needs the service's capabilities to open files of others; the parser needs none.
 * Source: man capget, which has no wrapper in libc. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	/* no ambient capabilities before Linux 4.3 */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* Let the kernel kill the worker, and not the daemon, if the worker's tables fill the unit's memory. */
static void offer_to_oom_killer(void)
{
	_cleanup_(closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, OOM_SCORE, sizeof(OOM_SCORE) - 1) < 0)
		errno = 0; /* nothing depends on it */
}

int sandbox_enter_parser(void)
{
	offer_to_oom_killer();
	int r = drop_capabilities();

	if (r >= 0)
		r = prepare_libc();
	if (r >= 0)
		r = enter(N_PARTS * PARSER_FILES_MAX + 64, 0);
	if (r < 0)
		return r;
	return SANDBOX_LOOSE ? filter_load(SCMP_ACT_ALLOW, loose_rules)
			     : filter_load(SCMP_ACT_KILL_PROCESS, parser_rules);
}
