/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A VFS before the default one, whose files are those of the default one but for xRead. */

#include "tests/unit/faulty_disc.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static sqlite3_vfs faulty, *real_vfs;
static sqlite3_io_methods faulty_methods;
static const sqlite3_io_methods *real_methods;
static int first, n_failing, n_reads, failure;
static pid_t parent; /* 0: no child is killed */

static int faulty_read(sqlite3_file *f, void *bytes, int n, sqlite3_int64 offset)
{
	int at = n_reads++;
	if (parent != 0 && getpid() != parent && at == first)
		kill(getpid(), SIGKILL);
	return at >= first && at < first + n_failing ? failure
						     : real_methods->xRead(f, bytes, n, offset);
}

static int faulty_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	(void)v;
	int rc = real_vfs->xOpen(real_vfs, name, f, flags, out);
	if (rc != SQLITE_OK || !(flags & SQLITE_OPEN_MAIN_DB))
		return rc;
	real_methods = f->pMethods;
	faulty_methods = *real_methods;
	faulty_methods.xRead = faulty_read;
	f->pMethods = &faulty_methods;
	return rc;
}

static void begin(int n, int n_times, int result)
{
	if (!real_vfs) {
		real_vfs = sqlite3_vfs_find(NULL);
		faulty = *real_vfs;
		faulty.zName = "faulty";
		faulty.pNext = NULL;
		faulty.xOpen = faulty_open;
		sqlite3_vfs_register(&faulty, 1);
	}
	first = n;
	n_failing = n_times;
	failure = result;
	n_reads = 0;
	parent = 0;
}

void faulty_disc_fail(int n, int n_times, int result)
{
	begin(n, n_times, result);
}

void faulty_disc_kill_child(int n)
{
	begin(n, 0, SQLITE_OK);
	parent = getpid();
}

int faulty_disc_work(void)
{
	n_failing = 0;
	parent = 0;
	return n_reads;
}
