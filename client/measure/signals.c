/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A signalfd instead of handlers: nothing runs asynchronously, and no flag is global.
 */
#include "client/measure/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/show/say.h"

static sigset_t ending(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return set;
}

int signals_block(int *ret_fd)
{
	sigset_t set = ending();
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
		int error = errno;
		char what[256];
		snprintf(what, sizeof(what), "cannot watch for signals: %s", strerror(error));
		say_failure(what, "Raise the limit of open files (`ulimit -n`), or try again");
		if (fd >= 0)
			close(fd);
		return -error;
	}
	*ret_fd = fd;
	return 0;
}

int signals_take(int fd)
{
	struct signalfd_siginfo info;
	return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

void signals_unblock(int fd)
{
	sigset_t set = ending();
	close(fd);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
