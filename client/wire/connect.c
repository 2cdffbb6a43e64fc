/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Both kinds of daemon speak the same protocol, so the rest of the client sees a link and need not
 * know which it is. A private daemon gets its own process group: Ctrl-C is for us and for the
 * command that we run, and the daemon must outlive it to hand over its results.
 */
#include "client/wire/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/show/say.h"
#include "proto/base/memory.h"

#define PATH_BYTES 4096
#define LINGER_MS 5000 /* after we hang up, a daemon only closes files */

static void complain(const struct link *l, const char *what, const char *remedy)
{
	if (!l->quiet)
		say_failure(what, remedy);
}

/* Connect to a Unix socket. */
static int dial(const char *path, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);

	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static bool executable(const char *path)
{
	return *path == '/' && access(path, X_OK) == 0;
}

/* Search $PATH for mperfd; only absolute entries, since anybody may write to ".". */
static bool find_in_path(char *ret_path)
{
	const char *path = getenv("PATH");
	while (path && *path) {
		size_t n = strcspn(path, ":");
		if (n > 0 && n < PATH_BYTES - sizeof("/mperfd")) {
			snprintf(ret_path, PATH_BYTES, "%.*s/mperfd", (int)n, path);
			if (executable(ret_path))
				return true;
		}
		path += n + (path[n] == ':');
	}
	return false;
}

static const char *named_daemon(void)
{
	const char *named = getenv("MPERFD");
	return named && *named ? named : NULL;
}

/* Find mperfd, in this order: $MPERFD; beside mperfctl, as in a build; relative to mperfctl as installed, so that the
 * tree can be moved; the configured path; $PATH. */
static bool find_daemon(char *ret_path)
{
	const char *named = named_daemon();
	if (named) {
		snprintf(ret_path, PATH_BYTES, "%s", named);
		return true; /* if it does not exist, running it reports that */
	}

	static const char *const from_here[] = {"mperfd", "../sbin/mperfd"};
	ssize_t n = readlink("/proc/self/exe", ret_path, PATH_BYTES - sizeof("../sbin/mperfd"));
	char *slash = n > 0 ? memrchr(ret_path, '/', (size_t)n) : NULL;
	for (size_t i = 0; slash && i < sizeof(from_here) / sizeof(from_here[0]); i++) {
		strcpy(slash + 1, from_here[i]);
		if (executable(ret_path))
			return true;
	}
	snprintf(ret_path, PATH_BYTES, "%s/mperfd", MPERF_SBINDIR);
	return executable(ret_path) || find_in_path(ret_path);
}

/* Become the daemon, in the child. Failure is reported by an errno in the pipe. */
static void become_daemon(const char *path, int socket_fd, int trouble_fd)
{
	char argument[32];
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd >= 0) {
		dup2(null_fd, STDIN_FILENO);
		dup2(null_fd, STDOUT_FILENO);
	}
	fcntl(socket_fd, F_SETFD, 0);
	snprintf(argument, sizeof(argument), "--private=%d", socket_fd);
	execl(path, "mperfd", argument, (char *)NULL);

	int error = errno;
	ssize_t n = write(trouble_fd, &error, sizeof(error));
	_exit(n < 0 ? 126 : 127);
}

static void say_not_started(const struct link *l, const char *path, int error)
{
	char what[512];
	snprintf(what, sizeof(what), "cannot run '%.300s'%s: %s", path,
		named_daemon() ? ", which MPERFD names" : "", strerror(error));
	complain(l, what,
		named_daemon() ? "Unset MPERFD, or set it to the path of an mperfd"
			       : "Reinstall mperfd, or set MPERFD to its path");
}

static int start_daemon(struct link *l)
{
	char path[PATH_BYTES];
	if (!find_daemon(path)) {
		if (access("/proc/self/exe", F_OK) != 0)
			complain(l, "/proc is not mounted here, and without it mperfd is not found",
				"Mount it: mount -t proc proc /proc");
		else
			complain(l, "cannot find mperfd, which measures for mperfctl",
				"Install it beside mperfctl, or set MPERFD to its path");
		return LINK_FAILED;
	}

	int pair[2], trouble[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	_cleanup_(closep) int ours = pair[0], theirs = pair[1];
	if (pipe2(trouble, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(closep) int trouble_in = trouble[0], trouble_out = trouble[1];

	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_daemon(path, theirs, trouble_out);
	close(TAKE_FD(trouble_out));

	int error;
	if (read(trouble_in, &error, sizeof(error)) == sizeof(error)) {
		waitpid(pid, NULL, 0);
		say_not_started(l, path, error);
		return LINK_FAILED;
	}
	l->daemon_pid = pid;
	l->fd = TAKE_FD(ours);
	return 0;
}

/* Wait until fd is ready; 0, -ETIMEDOUT, -errno. */
static int wait_for(int fd, short events, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	int n;
	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

static int send_hello(struct link *l)
{
	Mperf__Hello hello = MPERF__HELLO__INIT;
	hello.major = PROTOCOL_MAJOR;
	hello.minor = PROTOCOL_MINOR;
	hello.software = (char *)"mperfctl " MPERF_VERSION;
	hello.frame_bytes_max = FRAME_BYTES_MAX;

	Mperf__Message m = MPERF__MESSAGE__INIT;
	m.body_case = MPERF__MESSAGE__BODY_HELLO;
	m.hello = &hello;
	int r = frame_put(&l->out, &m);
	if (r < 0)
		return r;
	int64_t left = frame_buffer_write(&l->out, l->fd); /* a hello always fits a new socket */
	return left < 0 ? (int)left : left > 0 ? -EAGAIN : 0;
}

static int check_hello(struct link *l, const Mperf__Hello *hello)
{
	bool older = hello->major < PROTOCOL_MAJOR;
	if (hello->major == PROTOCOL_MAJOR) {
		snprintf(l->software, sizeof(l->software), "%s", hello->software);
		l->minor = hello->minor;
		return 0;
	}
	char what[256];
	snprintf(what, sizeof(what),
		"mperfctl %s speaks protocol %u.%u and '%.64s' speaks %u.%u, which do not match",
		MPERF_VERSION, PROTOCOL_MAJOR, PROTOCOL_MINOR, hello->software, hello->major,
		hello->minor);
	complain(l, what,
		older ? "Update mperfd and restart it, or use the mperfctl that came with it"
		      : "Update mperfctl to the version of mperfd");
	return LINK_FAILED;
}

/* Read up to the first complete message. */
static int first_message(struct link *l, Mperf__Message **ret_message)
{
	const uint64_t patience_ms = l->quiet ? LINK_TRY_MS : LINK_HELLO_MS;
	uint64_t until_ns = say_now_ns() + patience_ms * 1000000ull;
	for (;;) {
		int r = frame_take(&l->in, ret_message);
		if (r != FRAME_NONE)
			return r;
		uint64_t now_ns = say_now_ns();
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		r = wait_for(l->fd, POLLIN, (int)((until_ns - now_ns) / 1000000) + 1);
		if (r < 0)
			return r;
		int64_t n = frame_buffer_read(&l->in, l->fd);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && n != -EAGAIN && n != -EINTR)
			return (int)n;
	}
}

int link_greet(struct link *l)
{
	Mperf__Message *m = NULL;
	int r = send_hello(l);
	if (r == -ECONNRESET || r == -EPIPE)
		r = 0; /* it has hung up; read its last messages first */
	if (r == 0)
		r = first_message(l, &m);
	if (r == -ECONNRESET || r == -EPIPE) {
		link_say_lost(l);
		return LINK_FAILED;
	}
	if (r == -ETIMEDOUT) {
		complain(l, "mperfd did not answer the greeting within 10 seconds",
			"See its journal or stderr for the cause, or restart it");
		return LINK_FAILED;
	}
	if (r < 0)
		return r;

	if (r > 0 || m->body_case != MPERF__MESSAGE__BODY_HELLO) {
		complain(l, "the peer on the socket does not speak mperf's protocol",
			"Unset MPERF_SOCKET, or point it at mperfd's control socket");
		r = LINK_FAILED;
	} else {
		r = check_hello(l, m->hello);
	}
	if (m)
		mperf__message__free_unpacked(m, NULL);
	return r;
}

/* Reach the service: 0, LINK_FAILED, LINK_ABSENT, or -errno, treated as absent. */
static int dial_service(struct link *l)
{
	const char *named = getenv("MPERF_SOCKET");
	if (named && !*named)
		return LINK_ABSENT;
	int r = dial(named ? named : LINK_SERVICE_SOCKET, &l->fd);
	if (r == 0 || !named)
		return r;

	char what[512];
	snprintf(what, sizeof(what), "no mperfd answers at '%.300s' (%s)", named, strerror(-r));
	complain(l, what, "Start the service, or unset MPERF_SOCKET");
	return LINK_FAILED;
}

/* Greet the daemon; r is the result of connecting. */
static int link_begin(struct link *l, int r)
{
	if (r == 0)
		r = link_greet(l);
	if (r < 0) {
		char what[256];
		snprintf(what, sizeof(what), "cannot reach mperfd: %s", strerror(-r));
		complain(l, what, "Free some resources (see `ulimit -a`), and try again");
	}
	if (r != 0)
		link_close(l);
	return r != 0 ? LINK_FAILED : 0;
}

int link_open(struct link *l)
{
	*l = (struct link){.fd = -1};
	int r = dial_service(l);
	if (r < 0 || r == LINK_ABSENT)
		r = start_daemon(l);
	return link_begin(l, r);
}

int link_open_service(struct link *l)
{
	*l = (struct link){.fd = -1};
	int r = dial_service(l);
	if (r < 0 || r == LINK_ABSENT)
		return LINK_ABSENT;
	return link_begin(l, r);
}

int link_try_service(struct link *l)
{
	*l = (struct link){.fd = -1, .quiet = true};
	int r = dial_service(l);
	return r == 0 && link_begin(l, r) == 0 ? 0 : LINK_ABSENT;
}

int link_try(struct link *l)
{
	if (link_try_service(l) == 0)
		return 0;
	*l = (struct link){.fd = -1, .quiet = true};
	return link_begin(l, start_daemon(l)) == 0 ? 0 : LINK_ABSENT;
}

int link_open_private(struct link *l)
{
	*l = (struct link){.fd = -1};
	return link_begin(l, start_daemon(l));
}

void link_say_no_service(const char *what)
{
	char text[256];
	const char *named = getenv("MPERF_SOCKET");

	snprintf(text, sizeof(text), "no mperfd service answers, so %s", what);
	say_failure(text, named && !*named ? "Unset MPERF_SOCKET, which is empty"
					   : "Start it with `systemctl start mperfd`");
}

/* Wait for a private daemon without hanging: poll, then SIGTERM, then SIGKILL. */
static int reap(pid_t pid, int patience_ms)
{
	int status = 0;
	for (int waited_ms = 0;; waited_ms += 10) {
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid || got < 0)
			return got < 0 ? 0 : status;
		if (waited_ms == patience_ms)
			kill(pid, SIGTERM);
		if (waited_ms == 2 * patience_ms)
			kill(pid, SIGKILL);
		usleep(10000);
	}
}

void link_close(struct link *l)
{
	if (l->fd >= 0)
		close(TAKE_FD(l->fd));
	if (l->daemon_pid > 0)
		reap(l->daemon_pid, LINGER_MS);
	l->daemon_pid = 0;
	frame_buffer_clear(&l->in);
	frame_buffer_clear(&l->out);
}

void link_say_lost(struct link *l)
{
	if (l->daemon_pid <= 0) {
		complain(l, "mperfd hung up before it answered",
			"See `journalctl -u mperfd` for the cause, then try again");
		return;
	}

	char what[128];
	int status = reap(l->daemon_pid, 1000);
	l->daemon_pid = 0;
	if (WIFSIGNALED(status))
		snprintf(what, sizeof(what),
			"mperfd was killed by signal %d (%s) before it answered", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		snprintf(what, sizeof(what), "mperfd exited with status %d before it answered",
			WEXITSTATUS(status));
	complain(l, what,
		named_daemon() ? "If MPERFD does not name an mperfd, unset it; otherwise see its "
				 "output above"
			       : "See its output above, then try again");
}
