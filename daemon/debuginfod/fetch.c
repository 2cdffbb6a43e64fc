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
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define LIBRARY "libdebuginfod.so.1"
#define LOOK_MS 100                  /* between two looks at the time and at who waits for it */
#define TIDY_NS (5ull * 1000000000u) /* at the end, for the library to remove what it has */

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

/* The library believes what a server says of the size of a file, and compares it with DEBUGINFOD_MAXSIZE before it is
 * unpacked: the kernel refuses what is more. At the end of its time the library removes what it has. */
static void bound(const struct debuginfod_wish *w)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	const uint64_t left_ns =
		w->until_ns > now_ns + TIDY_NS ? w->until_ns - now_ns - TIDY_NS : 0;
	char seconds[24];

	snprintf(seconds, sizeof(seconds), "%llu", 1 + (unsigned long long)left_ns / 1000000000);
	setenv("DEBUGINFOD_MAXTIME", seconds, 0);
	setenv("DEBUGINFOD_RETRY_LIMIT", "0", 0);
	setenv("DEBUGINFOD_MAXSIZE", DEBUGINFOD_BYTES_MAX, 0);
	const rlim_t most = strtoull(getenv("DEBUGINFOD_MAXSIZE"), NULL, 10);
	if (most > 0) /* 0: any */
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most});
	signal(SIGXFSZ, SIG_IGN);
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
	bound(w);
	if (w->shows_progress)
		setenv("DEBUGINFOD_PROGRESS", "1", 0); /* on standard error, by the library */
	struct client *c = l.begin();
	if (!c)
		_exit(DEBUGINFOD_LATER);
	const int fd = l.find(c, w->build_id, w->n_build_id, &path);
	if (fd == -ENOENT || fd == -EFBIG)
		_exit(DEBUGINFOD_NONE);
	if (fd < 0)
		fprintf(stderr, "debug symbols were not fetched from servers: %s\n", strerror(-fd));
	_exit(fd >= 0 && path && write(to, path, strlen(path)) > 0 ? 0 : DEBUGINFOD_LATER);
}

/* --- the parent ------------------------------------------------------------------------------- */

/* Wait for the child's path, no longer than until_ns, and no longer than our own parent lives, which asked for it.
 * False: it did not come in time. The path is empty if the child has none. */
static bool wait_for(int from, uint64_t until_ns, char ret_path[PATH_MAX])
{
	struct pollfd p = {.fd = from, .events = POLLIN};
	const pid_t client = getppid();

	while (poll(&p, 1, LOOK_MS) <= 0)
		if (clock_ns(CLOCK_MONOTONIC) >= until_ns || getppid() != client)
			return false;
	const ssize_t n = read(from, ret_path, PATH_MAX - 1);
	ret_path[n > 0 ? n : 0] = '\0';
	return true;
}

int debuginfod_fetch(const struct debuginfod_wish *w, char ret_path[PATH_MAX])
{
	int ends[2], status = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return DEBUGINFOD_LATER;
	_cleanup_(closep) int from = ends[0], to = ends[1];
	const pid_t child = fork();
	if (child == 0)
		fetch(w, to);
	if (child < 0)
		return DEBUGINFOD_LATER;
	close(TAKE_FD(to));
	const bool in_time = wait_for(from, w->until_ns, ret_path);
	if (!in_time)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (in_time && ret_path[0] == '/')
		return 0;
	const int said = WIFEXITED(status) ? WEXITSTATUS(status) : DEBUGINFOD_LATER;
	return said == DEBUGINFOD_NONE || said == DEBUGINFOD_OVER ? said : DEBUGINFOD_LATER;
}
