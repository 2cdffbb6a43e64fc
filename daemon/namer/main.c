/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperf-namer ROLE [--fd N] [--try-WHAT]: one of the two workers of mperfd, which starts it with a
 * socket as descriptor 3. It sends a hello once its sandbox is set up, so that a failing sandbox is
 * distinguished from a file on which the parser fails.
 *
 * --try-open and the like attack the sandbox, for the tests that show that it holds: --try-open
 * ends with TRY_REFUSED, --try-abort by SIGABRT as any program that gives up, all others by SIGSYS.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/namer/mapped.h"
#include "daemon/namer/message.h"
#include "daemon/namer/opener.h"
#include "daemon/namer/parser.h"
#include "daemon/namer/sandbox.h"

#define SOCKET_FD 3
#define TRY_REFUSED 10 /* exit status */

static int say_hello(int fd, uint32_t role)
{
	struct message_hello m = {
		.head = {.magic = MESSAGE_MAGIC, .type = MESSAGE_HELLO, .bytes = sizeof(m)},
		.role = role,
		.version = MESSAGE_VERSION,
	};
	struct iovec iov = {&m, sizeof(m)};

	return message_send(fd, &iov, 1, -1);
}

static int usage(void)
{
	fputs("mperf-namer: only mperfd starts this program, as: mperf-namer open|parse [--fd N]\n",
		stderr);
	return 2;
}

static int fail(const char *role, const char *what, int error)
{
	fprintf(stderr, "mperf-namer %s: %s: %s\n", role, what, strerror(-error));
	return 1;
}

static int try_open(void)
{
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

	return fd < 0 && errno == EACCES ? TRY_REFUSED : 0;
}

static int try_connect(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ? 1 : 0;
}

/* Signal 0 only tests permission. */
static int try_signal(void)
{
	return syscall(SYS_tgkill, getppid(), getppid(), 0) == 0 ? 0 : 1;
}

static int try_kill(void)
{
	return kill(getppid(), 0) == 0 ? 0 : 1;
}

/* The owner of a descriptor receives its signals. */
static int try_owner(void)
{
	return fcntl(STDIN_FILENO, F_SETOWN, getppid()) == 0 ? 0 : 1;
}

static int try_write(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? 1 : 0;
}

static int try_abort(void)
{
	abort();
}

static const struct {
	const char *option;
	int (*attack)(void);
} attacks[] = {
	{"--try-open", try_open},
	{"--try-connect", try_connect},
	{"--try-signal", try_signal},
	{"--try-kill", try_kill},
	{"--try-owner", try_owner},
	{"--try-write", try_write},
	{"--try-abort", try_abort},
};

static int (*find_attack(const char *option))(void)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++)
		if (strcmp(option, attacks[i].option) == 0)
			return attacks[i].attack;
	return NULL;
}

#ifdef __SANITIZE_ADDRESS__
/* A file that is truncated while it is read ends the parser by SIGBUS, as intended: not a memory
 * error, so the sanitizer must not report it as one. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "handle_sigbus=0";
}
#endif

int main(int argc, char **argv)
{
	int fd = SOCKET_FD;
	int (*attack)(void) = NULL;

	if (argc < 2 || (strcmp(argv[1], "open") != 0 && strcmp(argv[1], "parse") != 0))
		return usage();
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--fd") == 0 && i + 1 < argc)
			fd = atoi(argv[++i]);
		else if (!(attack = find_attack(argv[i])))
			return usage();
	}

	bool parses = strcmp(argv[1], "parse") == 0;
	/* The socket also closes when the daemon ends, but a worker that hangs or spins does not
	 * read it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The sandbox opens no events. Where the kernel refuses this one, it refuses samples as well. */
	struct mapped *mapped = NULL;
	if (!parses)
		(void)mapped_new(&mapped);
	int r = parses ? sandbox_enter_parser() : sandbox_enter_opener();
	if (r < 0)
		return fail(argv[1], "cannot set up the sandbox", r);
	if (attack)
		_exit(attack());
	r = say_hello(fd, parses ? WORKER_PARSER : WORKER_OPENER);
	if (r == 0)
		r = parses ? parser_run(fd) : opener_run(fd, mapped);
	/* Without atexit: there is nothing to clean up, and a leak checker would try to open
	 * files. */
	/* A worker usually ends because the daemon is gone. */
	if (r == -ECONNRESET || r == -EPIPE)
		r = 0;
	_exit(r < 0 ? fail(argv[1], "stopped by a malformed message or a socket error", r) : 0);
}
