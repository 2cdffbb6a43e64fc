/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a server sends is not looked at here: it goes to the parser by descriptor, as any debug file, and gives no name
 * without the right build id. Source: man debuginfod_find_debuginfo.
 */
#include "daemon/debuginfod/fetch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define LIBRARY "libdebuginfod.so.1"
#define LOOK_MS 100 /* between two looks at the time and at who waits for it */

struct client;

struct library {
	struct client *(*begin)(void);
	int (*find)(struct client *c, const unsigned char *id, int n, char **ret_path);
};

bool debuginfod_has_servers(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls;
}

/* --- the child -------------------------------------------------------------------------------- */

static bool load(struct library *l)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return false;
	*(void **)&l->begin = dlsym(handle, "debuginfod_begin");
	*(void **)&l->find = dlsym(handle, "debuginfod_find_debuginfo");
	return l->begin && l->find;
}

static _Noreturn void fetch(const struct debuginfod_wish *w, int to)
{
	struct library l = {NULL, NULL};
	char *path = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!load(&l)) {
		fprintf(stderr, "no debug symbols are fetched from servers, since " LIBRARY
				" is missing: `apt install libdebuginfod1`\n");
		_exit(DEBUGINFOD_OVER);
	}
	setenv("DEBUGINFOD_MAXSIZE", DEBUGINFOD_BYTES_MAX, 0);
	if (w->shows_progress)
		setenv("DEBUGINFOD_PROGRESS", "1", 0); /* on standard error, by the library */
	struct client *c = l.begin();
	if (!c)
		_exit(DEBUGINFOD_NONE);
	int fd = l.find(c, w->build_id, w->n_build_id, &path);
	if (fd < 0 || !path || write(to, path, strlen(path)) < 0)
		_exit(DEBUGINFOD_NONE);
	_exit(0);
}

/* --- the parent ------------------------------------------------------------------------------- */

/* Wait for the child's path, no longer than until_ns, and no longer than our own parent lives, which asked for it. */
static int wait_for(int from, uint64_t until_ns, char ret_path[PATH_MAX])
{
	struct pollfd p = {.fd = from, .events = POLLIN};
	const pid_t client = getppid();

	while (poll(&p, 1, LOOK_MS) <= 0)
		if (clock_ns(CLOCK_MONOTONIC) >= until_ns || getppid() != client)
			return DEBUGINFOD_OVER;
	const ssize_t n = read(from, ret_path, PATH_MAX - 1);
	ret_path[n > 0 ? n : 0] = '\0';
	return n > 0 && ret_path[0] == '/' ? 0 : DEBUGINFOD_NONE;
}

int debuginfod_fetch(const struct debuginfod_wish *w, char ret_path[PATH_MAX])
{
	int ends[2], status = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return DEBUGINFOD_OVER;
	_cleanup_(closep) int from = ends[0], to = ends[1];
	const pid_t child = fork();
	if (child == 0)
		fetch(w, to);
	if (child < 0)
		return DEBUGINFOD_OVER;
	close(TAKE_FD(to));
	const int r = wait_for(from, w->until_ns, ret_path);
	if (r == DEBUGINFOD_OVER)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return r == DEBUGINFOD_NONE && WIFEXITED(status) && WEXITSTATUS(status) == DEBUGINFOD_OVER
		       ? DEBUGINFOD_OVER
		       : r;
}
