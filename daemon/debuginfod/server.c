/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One client, the service, and one file at a time: names that come a minute later are early enough.
 */
#include "daemon/debuginfod/server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/debuginfod/cache.h"
#include "daemon/debuginfod/fetch.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define IDLE_MS 60000 /* more than the time between two files of a busy service */
#define FILES_MIN 4   /* have room in the cache, however large */

/* Set the variables by which the library finds servers and cache. 0 or -errno. */
static int set_environment(const struct debuginfod_options *o)
{
	_cleanup_(freep) char *urls = strdup(strcmp(o->urls, "none") == 0 ? "" : o->urls);
	char bytes[32];

	if (!urls)
		return -ENOMEM;
	for (char *comma = urls; (comma = strchr(comma, ','));)
		*comma = ' ';
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)o->cache_bytes_max / FILES_MIN);
	return setenv("DEBUGINFOD_URLS", urls, 1) < 0 ||
			       setenv("DEBUGINFOD_CACHE_PATH", o->cache, 1) < 0 ||
			       setenv("DEBUGINFOD_MAXSIZE", bytes, 1) < 0
		       ? -errno
		       : 0;
}

static enum debuginfod_answer fetch(
	const struct debuginfod_options *o, const uint8_t *build_id, uint8_t n)
{
	const struct debuginfod_wish w = {.build_id = build_id,
		.n_build_id = n,
		.until_ns = clock_ns(CLOCK_MONOTONIC) + DEBUGINFOD_FETCH_NS};
	char path[PATH_MAX];

	if (n < 2 || !debuginfod_has_servers())
		return DEBUGINFOD_ANSWER_OVER;
	switch (debuginfod_fetch(&w, path)) {
	case 0:
		return debuginfod_cache_open(o->cache, build_id, n) == 0 ? DEBUGINFOD_ANSWER_HAVE
									 : DEBUGINFOD_ANSWER_LATER;
	case DEBUGINFOD_NONE:
		return DEBUGINFOD_ANSWER_NONE;
	case DEBUGINFOD_OVER:
		return DEBUGINFOD_ANSWER_OVER;
	}
	return DEBUGINFOD_ANSWER_LATER;
}

/* After each fetch, since one that failed leaves something, too. */
static void trim(const struct debuginfod_options *o)
{
	const int64_t bytes = debuginfod_cache_trim(o->cache, o->cache_bytes_max);

	if (bytes < 0)
		fprintf(stderr, "%s: %s\n", o->cache, strerror((int)-bytes));
}

/* Until the client hangs up. */
static void serve_client(int fd, const struct debuginfod_options *o)
{
	uint8_t build_id[DEBUGINFOD_ID_BYTES_MAX];
	ssize_t n;

	while ((n = recv(fd, build_id, sizeof(build_id), 0)) > 0) {
		const uint8_t answer = (uint8_t)fetch(o, build_id, (uint8_t)n);
		trim(o);
		if (send(fd, &answer, 1, MSG_NOSIGNAL) < 0)
			break;
	}
}

int debuginfod_serve(int listen_fd, const struct debuginfod_options *o)
{
	struct pollfd p = {.fd = listen_fd, .events = POLLIN};
	int n = set_environment(o);

	if (n < 0)
		return n;
	umask(022);
	while ((n = poll(&p, 1, IDLE_MS)) != 0) {
		_cleanup_(closep) int fd =
			n > 0 ? accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC) : -1;
		if (fd >= 0)
			serve_client(fd, o);
		else if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
			return -errno;
	}
	return 0;
}
