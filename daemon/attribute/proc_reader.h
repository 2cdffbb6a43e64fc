/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The reader of /proc: texts of one process, read in a thread since a read may block
 *
 * A read of maps, cmdline or environ waits for the memory lock of its process, which a page fault or
 * an mmap() may hold for as long as the server of a FUSE file likes. Even stat and status hold a
 * reference to that memory for a moment: if the process ends then, the task that drops the last reference
 * closes the files that the process had mapped. So the loop makes none of these reads itself. A thread does
 * (aside.h), and the loop waits while it runs, but only a few milliseconds while it is blocked.
 *
 * A process that has not answered is not read again until it has. If a user has PROC_READER_USER_MAX such
 * processes, or has kept the loop waiting for one part in PROC_READER_PART of the time, the user's other processes
 * are not read for a while either.
 */

#include <stdint.h>
#include <sys/types.h>

#include "daemon/attribute/proc_text.h"
#include "daemon/attribute/rights.h"
#include "daemon/attribute/scan.h"

/* Processes that may be blocked at the same time, of all users and of one. */
#define PROC_READER_THREADS_MAX 16u
#define PROC_READER_USER_MAX 2u
/* A user's share of the time for which the loop waits, and the most that may be used in one
 * burst. */
#define PROC_READER_PART 20u
#define PROC_READER_AHEAD_NS 1000000000u
/* Bytes that are read of an environment; later variables are not seen. Environments of CI jobs have some 10 KB.
 * Source: execve(2): a quarter of the stack's limit, of 8 MB by default, at most. */
#define PROC_ENVIRON_BYTES_MAX (256u << 10)
/* Bytes of text of executable mappings; a path has 4 KB at most, and some 50 bytes as a rule. */
#define PROC_MAPS_BYTES_MAX (16u << 20)
#define PROC_THREADS_READ_MAX 65536u
#define PROC_CHILDREN_MAX 65536u

/* Parts to read, in this order: after an exec the kernel sets the owner before the arguments, so once the
 * arguments are in place the owner is the new one. Kernel threads have only the first three
 * and an owner. */
enum {
	PROC_STAT = 1,
	PROC_CGROUP = 2,
	PROC_THREADS = 4,
	PROC_ARGV = 8,
	PROC_RIGHTS = 16,
	PROC_EXE = 32,
	PROC_MAPS = 64,
	PROC_ENVIRON = 128,
	PROC_INNER = 256,    /* with PROC_THREADS: their numbers in their own pid namespace */
	PROC_CHILDREN = 512, /* if the kernel lists them (CONFIG_PROC_CHILDREN) */
	PROC_TEXT = 1024,    /* is it the program's? */
};

struct proc_question {
	const char *folder;          /* "/proc/1" or "/proc/1/task/2" */
	pid_t pid;                   /* of the process */
	uid_t account;               /* its account (rights.h); ACCOUNT_NOBODY: not known */
	unsigned wants;              /* PROC_* */
	size_t n_threads;            /* limit of PROC_THREADS; 0: PROC_THREADS_READ_MAX */
	struct proc_text_range text; /* of PROC_TEXT */
	/* NULL: rights_read */
	int (*rights)(int folder_fd, uid_t account, struct rights *ret_rights);
};

struct proc_thread {
	struct scan_stat stat;
	pid_t inner; /* 0: not read */
};

struct proc_view {
	unsigned has; /* PROC_*: what could be read. Arguments are not read while they are empty. */
	uint64_t reading_ns; /* the thread's own time for all of it; 0: of the caller's thread */
	bool no_argv;        /* the arguments are empty: not in place yet, or a zombie's */
	struct scan_stat stat;
	struct proc_thread *thread; /* n_threads, of which one may be the process's; NULL: none */
	size_t n_threads;
	pid_t *child; /* n_children: processes that its threads started; NULL: none */
	size_t n_children;
	struct rights rights;
	uint64_t rights_ns; /* CLOCK_MONOTONIC, when they were read */
	char *cgroup;       /* the text */
	char *argv;         /* as in struct task */
	uint32_t n_argv;
	char *exe;
	/* with PROC_EXE: the inode of the memfd that was executed; 0: a file was */
	uint64_t memfd_inode;
	bool text_is_same; /* with PROC_TEXT */
	char *maps;        /* whole lines of executable mappings */
	/* The environment, with its owner before and after the reading: left out if the owner changed. */
	struct rights environment_of;
	bool secure; /* the program began with rights that its caller does not have */
	char *environment;
	size_t n_environment; /* without the NUL behind it */
};

struct proc_reader;

int proc_reader_new(struct proc_reader **ret_reader);
struct proc_reader *proc_reader_free(struct proc_reader *r);

/* Read the requested parts of a process. reader NULL: at once, in this thread. 0, even if some parts could not be
 * read, and the caller clears *ret_view; PROC_GONE; PROC_SILENT: it did not answer, or was not asked; -ENOMEM. */
enum { PROC_GONE = 1, PROC_EMPTY, PROC_SILENT, PROC_SAME, PROC_OTHER };
int proc_reader_ask(
	struct proc_reader *r, const struct proc_question *q, struct proc_view *ret_view);
void proc_view_clear(struct proc_view *v);

/* The owner of a process, or of one of its threads (tid; 0: of the process). 0; RIGHTS_GONE; PROC_SILENT. */
int proc_reader_rights(struct proc_reader *r, pid_t pid, pid_t tid, struct rights *ret_rights);

/* The number of reads that were skipped since the start. Exported for tests. */
uint64_t proc_reader_silent(const struct proc_reader *r);
