/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A question and its answer are one allocation that its thread owns while it runs, so the loop may
 * leave at any moment. All wanted parts of a process are read in one visit, since a handover costs as
 * much as a read. The time that the loop waited is charged to the owner of the process's folder, who
 * can be found without waiting for the process.
 */
#include "daemon/attribute/proc_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/auxvec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/aside/aside.h"
#include "daemon/naming/space.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Users whose waiting time is remembered. If there are more, the user who owes least is
 * forgotten. */
#define USERS_KNOWN 64

struct waited_for {
	uid_t uid;
	uint64_t until_ns; /* CLOCK_MONOTONIC, until which the user's share is used up */
};

struct proc_reader {
	struct aside *threads;
	struct waited_for user[USERS_KNOWN];
	uint64_t n_silent;
};

struct visit {
	struct aside_work work;
	unsigned wants;
	size_t n_threads; /* to be read at most */
	struct proc_text_range text;
	uid_t account;
	int (*rights)(int folder_fd, uid_t account, struct rights *ret_rights);
	int outcome;
	struct proc_view view;
	char folder[]; /* path */
};

DEFINE_CLEANUP(DIR *, closedir)

/* --- reading, in a thread --------------------------------------------------------------------- */

static char *read_environment(int folder_fd, size_t *ret_n)
{
	_cleanup_(freep) char *text = malloc(PROC_ENVIRON_BYTES_MAX + 1);
	ssize_t n = text ? scan_text(folder_fd, "environ", text, PROC_ENVIRON_BYTES_MAX + 1) : -1;
	if (n < 0)
		return NULL;
	*ret_n = (size_t)n;
	return TAKE_PTR(text);
}

/* Lines with an x among the permissions; longer ones than SCAN_LINE_BYTES_MAX are left out. */
static char *read_maps(int folder_fd)
{
	char line[SCAN_LINE_BYTES_MAX], *text = NULL;
	size_t n_text = 0;
	int fd = openat(folder_fd, "maps", O_RDONLY | O_CLOEXEC);
	_cleanup_(fclosep) FILE *from = fd < 0 ? NULL : fdopen(fd, "r");
	FILE *to = from ? open_memstream(&text, &n_text) : NULL;
	unsigned n_kept = 0;
	bool begins = true;

	if (fd >= 0 && !from)
		close(fd);
	for (int i = 0; to && i < SCAN_MAPS_MAX && fgets(line, sizeof(line), from); i++) {
		const char *permissions = strchr(line, ' ');
		bool whole = begins;
		begins = strchr(line, '\n');
		if (!whole || !begins || !permissions || strnlen(permissions, 4) < 4 ||
			permissions[3] != 'x')
			continue;
		if (n_kept++ == MAPS_MAX || ftell(to) > (long)PROC_MAPS_BYTES_MAX)
			break;
		fputs(line, to);
	}
	if (to && fclose(to) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static pid_t name_pid(const char *name)
{
	uint64_t pid;

	return scan_number(&name, 10, &pid) && !*name && pid <= INT32_MAX ? (pid_t)pid : 0;
}

static bool read_thread(int task_fd, pid_t tid, bool inner, struct proc_thread *ret_thread)
{
	char name[64];
	struct proc_thread t = {.inner = 0};
	snprintf(name, sizeof(name), "%d/stat", (int)tid);
	if (!proc_text_stat(task_fd, name, &t.stat) || t.stat.pid != tid)
		return false;
	snprintf(name, sizeof(name), "%d/status", (int)tid);
	if (inner && !proc_text_inner(task_fd, name, &t.inner))
		return false;
	*ret_thread = t;
	return true;
}

static struct proc_thread *read_threads(int folder_fd, bool inner, size_t most, size_t *ret_n)
{
	int fd = openat(folder_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedirp) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct proc_thread *thread = NULL;
	size_t n = 0, size = 0;

	if (fd >= 0 && !d)
		close(fd);
	for (struct dirent *e; d && n < most && (e = readdir(d));) {
		pid_t tid = name_pid(e->d_name);
		if (!tid)
			continue;
		if (n == size) {
			size = size ? 2 * size : 8;
			struct proc_thread *grown = reallocarray(thread, size, sizeof(*grown));
			if (!grown)
				break;
			thread = grown;
		}
		n += read_thread(dirfd(d), tid, inner, &thread[n]);
	}
	*ret_n = n;
	return thread;
}

/* Source: man 5 proc, /proc/pid/task/tid/children: pids, each with a blank behind it. */
static bool add_children(int task_fd, pid_t tid, struct proc_view *v)
{
	char name[64];
	snprintf(name, sizeof(name), "%d/children", (int)tid);
	int fd = openat(task_fd, name, O_RDONLY | O_CLOEXEC);
	_cleanup_(fclosep) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !f)
		close(fd);
	for (int pid; f && v->n_children < PROC_CHILDREN_MAX && fscanf(f, "%d", &pid) == 1;) {
		if ((v->n_children & (v->n_children - 1)) == 0) {
			size_t size = v->n_children ? 2 * v->n_children : 1;
			pid_t *grown = reallocarray(v->child, size, sizeof(*grown));
			if (!grown)
				break;
			v->child = grown;
		}
		v->child[v->n_children++] = pid;
	}
	return f;
}

static bool read_children(int folder_fd, struct proc_view *v)
{
	int fd = openat(folder_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedirp) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	bool any = false;

	if (fd >= 0 && !d)
		close(fd);
	for (struct dirent *e; d && (e = readdir(d));) {
		pid_t tid = name_pid(e->d_name);
		if (tid)
			any |= add_children(dirfd(d), tid, v);
	}
	return any;
}

static char *read_cgroup(int folder_fd)
{
	char text[SCAN_STAT_BYTES_MAX];
	return scan_text(folder_fd, "cgroup", text, sizeof(text)) > 0 ? strdup(text) : NULL;
}

static char *read_exe(int folder_fd)
{
	char path[PATH_MAX];
	return proc_text_exe(folder_fd, path) ? strdup(path) : NULL;
}

static unsigned flag(bool has, unsigned what)
{
	return has ? what : 0;
}

/* Did the program begin with rights that its caller does not have? Source: getauxval(3), AT_SECURE;
 * proc_pid_auxv(5): pairs of words. A 32-bit program has words of 4 bytes: two of them, read as one
 * of 8, exceed any type. */
static bool began_secure(int folder_fd)
{
	union {
		uint64_t wide[128];
		uint32_t narrow[256];
	} auxv = {{0}};
	_cleanup_(closep) int fd = openat(folder_fd, "auxv", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, &auxv, sizeof(auxv));
	bool is_narrow = auxv.wide[0] > UINT32_MAX;
	size_t n_words = n > 0 ? (size_t)n / (is_narrow ? sizeof(uint32_t) : sizeof(uint64_t)) : 0;

	for (size_t i = 0; i + 1 < n_words; i += 2) {
		uint64_t type = is_narrow ? auxv.narrow[i] : auxv.wide[i];
		if (type == AT_SECURE)
			return is_narrow ? auxv.narrow[i + 1] : auxv.wide[i + 1];
	}
	return true; /* it is gone, or not known */
}

/* Read the environment with its owner: the process may have become another program since the exec that the rings
 * brought. */
static void read_environment_of(int folder_fd, const struct visit *q, struct proc_view *v)
{
	struct rights now;
	if (q->rights(folder_fd, ACCOUNT_NOBODY, &v->environment_of) != 0)
		return;
	v->secure = began_secure(folder_fd);
	v->environment = read_environment(folder_fd, &v->n_environment);
	if (v->environment && q->rights(folder_fd, ACCOUNT_NOBODY, &now) == 0 &&
		now.uid == v->environment_of.uid && now.account == v->environment_of.account)
		v->has |= PROC_ENVIRON;
}

static void read_view(int folder_fd, const struct visit *q, struct proc_view *v)
{
	unsigned wants = q->wants;
	if (wants & PROC_STAT)
		v->has |= flag(proc_text_stat(folder_fd, "stat", &v->stat), PROC_STAT);
	if ((v->has & PROC_STAT) && v->stat.kernel_thread)
		wants &= PROC_CGROUP | PROC_THREADS | PROC_CHILDREN | PROC_RIGHTS;
	if (wants & PROC_CGROUP)
		v->has |= flag((v->cgroup = read_cgroup(folder_fd)), PROC_CGROUP);
	if (wants & PROC_ARGV) {
		int r = proc_text_argv(folder_fd, &v->argv, &v->n_argv);
		v->has |= flag(r == 0, PROC_ARGV);
		v->no_argv = r == PROC_EMPTY;
	}
	if (wants & PROC_RIGHTS) {
		v->has |= flag(q->rights(folder_fd, q->account, &v->rights) == 0, PROC_RIGHTS);
		v->rights_ns = clock_ns(CLOCK_MONOTONIC);
	}
	if (wants & PROC_EXE) {
		v->has |= flag((v->exe = read_exe(folder_fd)), PROC_EXE);
		v->memfd_inode = v->exe ? proc_text_memfd(folder_fd, v->exe) : 0;
	}
	if (wants & PROC_TEXT)
		v->has |= flag(proc_text_compare(folder_fd, &q->text, &v->text_is_same), PROC_TEXT);
	if (wants & PROC_MAPS)
		v->has |= flag((v->maps = read_maps(folder_fd)), PROC_MAPS);
	if (wants & PROC_ENVIRON)
		read_environment_of(folder_fd, q, v);
	if (wants & PROC_CHILDREN)
		v->has |= flag(read_children(folder_fd, v), PROC_CHILDREN);
	if (wants & PROC_THREADS)
		v->has |= flag((v->thread = read_threads(folder_fd, wants & PROC_INNER,
					q->n_threads, &v->n_threads)),
			PROC_THREADS);
}

static void visit_run(struct aside_work *w)
{
	struct visit *v = (struct visit *)w;
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	_cleanup_(closep) int fd = open(v->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	v->outcome = fd < 0 ? PROC_GONE : 0;
	if (fd >= 0)
		read_view(fd, v, &v->view);
	v->view.reading_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
}

static void visit_free(struct aside_work *w)
{
	proc_view_clear(&((struct visit *)w)->view);
	free(w);
}

void proc_view_clear(struct proc_view *v)
{
	free(v->thread);
	free(v->child);
	free(v->cgroup);
	free(v->argv);
	free(v->exe);
	free(v->maps);
	free(v->environment);
	*v = (struct proc_view){.has = 0};
}

/* --- asking, in the loop ---------------------------------------------------------------------- */

/* The entry of a user, or the one of the user who owes least. */
static struct waited_for *waited_for(struct proc_reader *r, uid_t uid)
{
	struct waited_for *least = &r->user[0];
	for (size_t i = 0; i < USERS_KNOWN; i++) {
		if (r->user[i].uid == uid && r->user[i].until_ns)
			return &r->user[i];
		if (r->user[i].until_ns < least->until_ns)
			least = &r->user[i];
	}
	return least;
}

static bool may_wait(struct proc_reader *r, uid_t uid, uint64_t now_ns)
{
	const struct waited_for *u = waited_for(r, uid);
	return u->uid != uid || u->until_ns <= now_ns + PROC_READER_AHEAD_NS;
}

static void spend(struct proc_reader *r, uid_t uid, uint64_t now_ns, uint64_t blocked_ns)
{
	struct waited_for *u = waited_for(r, uid);
	uint64_t from_ns = u->uid == uid && u->until_ns > now_ns ? u->until_ns : now_ns;
	*u = (struct waited_for){uid, from_ns + blocked_ns * PROC_READER_PART};
}

static struct visit *visit_new(const struct proc_question *q, uid_t uid)
{
	size_t n = strlen(q->folder) + 1;
	struct visit *v = malloc(sizeof(*v) + n);
	if (!v)
		return NULL;
	*v = (struct visit){
		.work = {.run = visit_run, .free = visit_free, .uid = uid, .key = (uint64_t)q->pid},
		.wants = q->wants,
		.n_threads = q->n_threads ? q->n_threads : PROC_THREADS_READ_MAX,
		.text = q->text,
		.account = q->account,
		.rights = q->rights ? q->rights : rights_read,
	};
	memcpy(v->folder, q->folder, n);
	return v;
}

/* Have a thread make the visit. 0; PROC_SILENT: the thread keeps v. */
static int do_visit(struct proc_reader *r, struct visit *v)
{
	uid_t uid = v->work.uid;
	uint64_t blocked_ns;
	int outcome = aside_do(r->threads, &v->work, &blocked_ns);
	if (blocked_ns > 0)
		spend(r, uid, clock_ns(CLOCK_MONOTONIC), blocked_ns);
	return outcome ? PROC_SILENT : 0;
}

int proc_reader_ask(
	struct proc_reader *r, const struct proc_question *q, struct proc_view *ret_view)
{
	struct stat st;
	if (stat(q->folder, &st) < 0)
		return PROC_GONE;
	/* The folder's owner is the effective user, not the user who started a set-user-ID program,
	 * so the account decides. But a process that root forked may have become any user's by now,
	 * which only the folder shows. */
	const bool known = q->account != ACCOUNT_NOBODY && q->account != 0;
	const uid_t uid = known ? q->account : st.st_uid;
	if (r && !may_wait(r, uid, clock_ns(CLOCK_MONOTONIC))) {
		r->n_silent++;
		return PROC_SILENT;
	}
	struct visit *v = visit_new(q, uid);
	if (!v)
		return -ENOMEM;
	if (!r) {
		visit_run(&v->work);
		v->view.reading_ns = 0;
	} else if (do_visit(r, v) != 0) {
		r->n_silent++;
		return PROC_SILENT;
	}
	int outcome = v->outcome;
	if (outcome == 0)
		*ret_view = v->view;
	free(v);
	return outcome;
}

int proc_reader_rights(struct proc_reader *r, pid_t pid, pid_t tid, struct rights *ret_rights)
{
	char folder[64];
	struct proc_view view;
	if (tid)
		snprintf(folder, sizeof(folder), "/proc/%d/task/%d", (int)pid, (int)tid);
	else
		snprintf(folder, sizeof(folder), "/proc/%d", (int)pid);
	const struct proc_question q = {
		.folder = folder, .pid = pid, .account = ACCOUNT_NOBODY, .wants = PROC_RIGHTS};
	int outcome = proc_reader_ask(r, &q, &view);
	if (outcome != 0)
		return outcome == PROC_SILENT ? PROC_SILENT : RIGHTS_GONE;
	bool has = view.has & PROC_RIGHTS;
	if (has)
		*ret_rights = view.rights;
	proc_view_clear(&view);
	return has ? 0 : RIGHTS_GONE;
}

uint64_t proc_reader_silent(const struct proc_reader *r)
{
	return r ? r->n_silent : 0;
}

int proc_reader_new(struct proc_reader **ret_reader)
{
	struct proc_reader *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	int e = aside_new(PROC_READER_THREADS_MAX, PROC_READER_USER_MAX, &r->threads);
	if (e < 0) {
		free(r);
		return e;
	}
	*ret_reader = r;
	return 0;
}

struct proc_reader *proc_reader_free(struct proc_reader *r)
{
	if (r)
		aside_free(r->threads);
	free(r);
	return NULL;
}
