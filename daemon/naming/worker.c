/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One worker process: started with a socket as descriptor 3 and no other descriptor of ours, given
 * one request at a time, killed by SIGKILL. Nothing here waits for it: a worker that is stuck in
 * the kernel does not even die, so it is put on a list and checked again later.
 */
#include "daemon/naming/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/aside/descriptors.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#ifndef MPERF_LIBEXECDIR
#define MPERF_LIBEXECDIR "/usr/local/libexec/mperf"
#endif

#define SOCKET_FD 3 /* the descriptor that a worker expects */
/* waits of 1 ms: the socket closes shortly before the exit status is available */
#define AUTOPSY_TRIES 20

extern char **environ;

static int take_executable(const char *path, char **ret_path)
{
	if (access(path, X_OK) < 0)
		return -errno;
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	*ret_path = copy;
	return 0;
}

/* Candidates: next to us, as in a build; relative to us as installed, so that a tree can be moved;
 * the configured path. */
int worker_find_binary(const char *given, char **ret_path)
{
	static const char *const from_here[] = {"mperf-namer", "../libexec/mperf/mperf-namer"};
	char path[PATH_MAX + sizeof("../libexec/mperf/mperf-namer")];

	if (given)
		return take_executable(given, ret_path);

	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
	for (size_t i = 0; slash && i < sizeof(from_here) / sizeof(*from_here); i++) {
		strcpy(slash + 1, from_here[i]);
		if (take_executable(path, ret_path) == 0)
			return 0;
	}
	return take_executable(MPERF_LIBEXECDIR "/mperf-namer", ret_path);
}

static int fill_actions(posix_spawn_file_actions_t *actions, int socket)
{
	int r = posix_spawn_file_actions_adddup2(actions, socket, SOCKET_FD);

	if (r == 0)
		r = posix_spawn_file_actions_addopen(
			actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(
			actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
#ifndef __SANITIZE_ADDRESS__
	/* A worker that is stuck in the kernel must not keep the other end of our client's pipes
	 * open. Sanitizer builds keep stderr for their report. */
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO);
#endif
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(actions, SOCKET_FD + 1);
	return -r;
}

/* Default signals: sd-event blocks those that it handles. */
static int fill_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	int r = posix_spawnattr_setsigmask(attributes, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attributes, &all);
	if (r == 0)
		r = posix_spawnattr_setflags(
			attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return -r;
}

static int spawn(const char *binary, enum worker_role role, int socket, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	const char *argv[] = {"mperf-namer", role == WORKER_OPENER ? "open" : "parse", NULL};

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	int r = fill_actions(&actions, socket);
	if (r == 0)
		r = fill_attributes(&attributes);
	if (r == 0)
		r = -posix_spawn(
			ret_pid, binary, &actions, &attributes, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

struct worker worker_of(enum worker_role role)
{
	return (struct worker){.role = role, .fd = -1, .deadline_ns = UINT64_MAX};
}

static int try_to_start(struct worker *w, const char *binary, uint64_t now_ns)
{
	int pair[2];
	pid_t pid = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	_cleanup_(closep) int ours = pair[0];
	_cleanup_(closep) int theirs = pair[1];
	if (w->role == WORKER_PARSER)
		/* a compromised parser could send us descriptors of hostile files */
		descriptors_refuse(ours);
	/* The worker's end of the socket blocks: the worker has nothing else to do. */
	if (fcntl(theirs, F_SETFL, 0) < 0)
		return -errno;
	/* the default holds two messages, which is enough */
	int bytes = 4 * (int)MESSAGE_BYTES_MAX;
	setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(theirs, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));

	int r = spawn(binary, w->role, theirs, &pid);
	if (r < 0)
		return r;
	w->pid = pid;
	w->fd = TAKE_FD(ours);
	w->state = WORKER_STARTING;
	w->generation++;
	w->deadline_ns = now_ns + WORKER_START_TIMEOUT_NS;
	return 0;
}

/* Schedule the next start. over_question: it ended over a user's request. */
static void schedule(struct worker *w, bool over_question, uint64_t now_ns)
{
	uint64_t delay_ns = WORKER_DELAY_NS;

	w->start_ns = now_ns;
	if (over_question) {
		uint64_t ahead_ns = WORKER_STARTS_MAX * WORKER_START_EVERY_NS;
		if (w->starts_ns < now_ns)
			w->starts_ns = now_ns;
		if (w->starts_ns - now_ns > ahead_ns)
			w->start_ns = w->starts_ns - ahead_ns;
		w->starts_ns += WORKER_START_EVERY_NS;
		return;
	}
	for (uint32_t i = 0; i < w->failures && delay_ns < WORKER_DELAY_MAX_NS; i++)
		delay_ns *= 2;
	w->start_ns += delay_ns < WORKER_DELAY_MAX_NS ? delay_ns : WORKER_DELAY_MAX_NS;
	w->failures++;
}

/* Did it fail for lack of a resource that may be available again soon? Source: man fork,
 * socketpair. */
static bool may_come_right(int error)
{
	return error == -EAGAIN || error == -ENOMEM || error == -EMFILE || error == -ENFILE ||
	       error == -ENOBUFS;
}

int worker_start(struct worker *w, const char *binary, const struct graves *g, uint64_t now_ns)
{
	int r = g->n < WORKER_GRAVES_MAX ? try_to_start(w, binary, now_ns) : -EAGAIN;

	if (r == 0)
		return 0;
	w->error = -r;
	schedule(w, false, now_ns);
	return may_come_right(r) ? 0 : r;
}

void worker_ended(struct worker *w, bool over_question, uint64_t now_ns)
{
	w->restarts++;
	w->ended_ns = now_ns;
	schedule(w, over_question, now_ns);
}

bool worker_is_down(const struct worker *w)
{
	return w->failures >= WORKER_FAILURES_MAX;
}

void worker_recovered(struct worker *w)
{
	w->failures = 0;
}

/* --- killed workers --------------------------------------------------------------------------- */

uint32_t graves_of(const struct graves *g, uid_t uid)
{
	uint32_t found = 0;

	for (size_t i = 0; i < g->n; i++)
		found += g->worker[i].uid == uid;
	return found;
}

void graves_visit(struct graves *g)
{
	for (size_t i = 0; i < g->n;) {
		if (waitpid(g->worker[i].pid, NULL, WNOHANG) == 0)
			i++;
		else
			g->worker[i] = g->worker[--g->n];
	}
}

void graves_leave(struct graves *g, struct graves *later)
{
	for (int i = 0; i < AUTOPSY_TRIES && g->n > 0; i++) {
		graves_visit(g);
		if (g->n > 0)
			poll(NULL, 0, 1);
	}
	if (!later)
		return;
	graves_visit(later);
	while (g->n > 0 && later->n < WORKER_GRAVES_MAX)
		later->worker[later->n++] = g->worker[--g->n];
}

void worker_kill(struct worker *w, struct graves *g, uid_t uid)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->pid > 0) {
		kill(w->pid, SIGKILL);
		/* No worker is started while this array is full. */
		if (g->n < WORKER_GRAVES_MAX) {
			g->worker[g->n].pid = w->pid;
			g->worker[g->n++].uid = uid;
		}
	}
	w->fd = -1;
	w->pid = 0;
	w->state = WORKER_DEAD;
	w->deadline_ns = UINT64_MAX;
}

void worker_answered(struct worker *w)
{
	w->state = WORKER_IDLE;
	w->deadline_ns = UINT64_MAX;
	w->failures = 0;
	w->error = 0;
}

/* Its CPU time; 0 if it cannot be read. */
static uint64_t cpu_ns(const struct worker *w)
{
	struct timespec t;
	clockid_t clock;

	if (w->pid <= 0 || clock_getcpuclockid(w->pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t worker_used_ns(const struct worker *w, uint64_t now_ns)
{
	uint64_t used_ns = cpu_ns(w);

	if (used_ns < w->asked_cpu_ns || used_ns == 0)
		return worker_wall_ns(w, now_ns);
	return used_ns - w->asked_cpu_ns;
}

uint64_t worker_wall_ns(const struct worker *w, uint64_t now_ns)
{
	return now_ns > w->asked_ns ? now_ns - w->asked_ns : 0;
}

enum worker_end worker_autopsy(struct worker *w)
{
	for (int i = 0; i < AUTOPSY_TRIES; i++) {
		int status;
		pid_t r = waitpid(w->pid, &status, WNOHANG);
		if (r == 0) {
			poll(NULL, 0, 1);
			continue;
		}
		if (r == w->pid) {
			w->pid = 0;
			if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
				return WORKER_KILLED;
		}
		break;
	}
	return WORKER_DIED;
}

int worker_ask(struct worker *w, enum message_type type, struct iovec *iov, size_t n_iov, int fd,
	uint64_t deadline_ns)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n_iov; i++)
		bytes += iov[i].iov_len;
	struct message head = {.magic = MESSAGE_MAGIC,
		.type = type,
		.serial = ++w->serial,
		.bytes = (uint32_t)bytes};
	memcpy(iov[0].iov_base, &head, sizeof(head));
	int r = message_send(w->fd, iov, n_iov, fd);
	w->state = r < 0 ? WORKER_BROKEN : WORKER_BUSY;
	w->asked_ns = clock_ns(CLOCK_MONOTONIC);
	w->asked_cpu_ns = cpu_ns(w);
	w->deadline_ns = deadline_ns;
	return r;
}

/* Source: man proc_pid_stat, field 3, which follows the name in parentheses. */
bool worker_is_runnable(const struct worker *w)
{
	char path[32], text[512]; /* a name has at most 64 bytes, and few fields precede it */

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)w->pid);
	_cleanup_(closep) int fd = w->pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *end = strrchr(text, ')'); /* the name may contain anything */
	return end && strncmp(end, ") R", 3) == 0;
}

/* A worker that got little CPU time on a busy machine gets a later deadline: otherwise a user who
 * keeps all harts busy could prevent the naming of other users' files. An opener that hangs is
 * asleep, and a runnable one does not hang; a parser that spins uses CPU time. */
static bool has_time_left(struct worker *w, uint64_t limit_ns, uint64_t wall_ns, uint64_t now_ns)
{
	uint64_t used_ns = worker_used_ns(w, now_ns);

	if (w->state != WORKER_BUSY || used_ns >= limit_ns)
		return false;
	bool may_sleep = wall_ns > 0 && now_ns < w->asked_ns + wall_ns;
	if (!may_sleep && !worker_is_runnable(w))
		return false;
	w->deadline_ns = now_ns + limit_ns - used_ns;
	return true;
}

bool worker_is_over_time(struct worker *w, uint64_t limit_ns, uint64_t wall_ns, uint64_t now_ns)
{
	return now_ns >= w->deadline_ns && !has_time_left(w, limit_ns, wall_ns, now_ns);
}

uint64_t worker_deadline_ns(const struct worker *w)
{
	return w->state == WORKER_BROKEN ? 0
	       : w->state == WORKER_DEAD ? w->start_ns
					 : w->deadline_ns;
}

struct namer_worker_status worker_status(const struct worker *w)
{
	static const char *const states[] = {
		[WORKER_DEAD] = "failed",
		[WORKER_STARTING] = "starts",
		[WORKER_IDLE] = "waits",
		[WORKER_BUSY] = "works",
		[WORKER_BROKEN] = "failed",
	};

	return (struct namer_worker_status){
		.pid = w->pid,
		.restarts = w->restarts,
		.state = states[w->state],
		.ended_ns = w->ended_ns,
		.start_ns = w->state == WORKER_DEAD ? w->start_ns : 0,
		.error = w->state == WORKER_DEAD ? w->error : 0,
	};
}

static bool is_hello(const struct worker *w, const void *buffer, size_t n)
{
	struct message_hello m;

	if (n != sizeof(m))
		return false;
	memcpy(&m, buffer, sizeof(m));
	return m.head.type == MESSAGE_HELLO && m.role == w->role && m.version == MESSAGE_VERSION;
}

ssize_t worker_hear(struct worker *w, void *buffer, size_t size, int *ret_fd)
{
	struct message head;
	int fd = -1;
	ssize_t n = message_receive(
		w->fd, buffer, size, MSG_DONTWAIT, w->role == WORKER_OPENER ? &fd : NULL);

	if (n == -ECONNRESET)
		return 0;
	if (n <= 0)
		return n;
	_cleanup_(closep) int given = fd;
	if (w->state == WORKER_STARTING) {
		if (!is_hello(w, buffer, (size_t)n))
			return -EBADMSG;
		w->state = WORKER_IDLE;
		w->deadline_ns = UINT64_MAX;
		return -EAGAIN;
	}
	memcpy(&head, buffer, sizeof(head));
	if (w->state != WORKER_BUSY || head.serial != w->serial)
		return -EBADMSG;
	*ret_fd = TAKE_FD(given);
	return n;
}
