/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/service/debug_search.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/debuginfod/cache.h"
#include "daemon/debuginfod/server.h"
#include "proto/base/clock.h"

#define LOOK_NS (10ull * 1000000000u)  /* it goes through all frames */
#define AWAY_NS (60ull * 1000000000u)  /* after the process could not be reached, */
#define OVER_NS (600ull * 1000000000u) /* or could ask no server */

void debug_search_begin(struct debug_search *f)
{
	*f = (struct debug_search){.fd = -1};
	debug_watch_begin(&f->watch, NAMER_DEBUG_FOLDER);
}

static void hang_up(struct debug_search *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	f->waits = false;
}

void debug_search_end(struct debug_search *f)
{
	hang_up(f);
	debug_watch_end(&f->watch);
}

/* Try again later. */
static int away(struct debug_search *f, uint64_t now_ns)
{
	hang_up(f);
	f->away = true;
	f->look_ns = now_ns + AWAY_NS;
	return 0;
}

static int connect_to(struct debug_search *f, const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	f->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->fd < 0)
		return -errno;
	memcpy(to.sun_path, path, strnlen(path, sizeof(to.sun_path) - 1));
	return connect(f->fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
}

static int ask(struct debug_search *f, const struct conf *conf, struct namer *n, uint64_t now_ns)
{
	const struct file *file = namer_without_debug(n, DEBUG_SEARCH_SAMPLES_MIN);

	f->look_ns = now_ns + LOOK_NS;
	if (!file) {
		hang_up(f); /* it ends when nobody asks */
		return 0;
	}
	if (f->fd < 0 && connect_to(f, conf->debuginfod_socket) < 0)
		return away(f, now_ns);
	f->n_build_id = file->n_build_id;
	memcpy(f->build_id, file->build_id, sizeof(f->build_id));
	if (send(f->fd, f->build_id, f->n_build_id, MSG_NOSIGNAL) < 0)
		return away(f, now_ns);
	f->waits = true;
	return 0;
}

static int hear(struct debug_search *f, const struct conf *conf, struct namer *n, uint64_t now_ns)
{
	char path[PATH_MAX];
	uint8_t answer = 0;
	const ssize_t n_bytes = recv(f->fd, &answer, 1, 0);

	if (n_bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n_bytes != 1)
		return away(f, now_ns);
	f->waits = f->away = false;
	if (answer == DEBUGINFOD_ANSWER_OVER) {
		f->look_ns = now_ns + OVER_NS;
		return 0;
	}
	f->look_ns = now_ns;
	const bool has =
		answer == DEBUGINFOD_ANSWER_HAVE &&
		debuginfod_cached(conf->debuginfod_cache, f->build_id, f->n_build_id, path);
	return namer_fetched(n, f->build_id, f->n_build_id, has ? path : NULL);
}

int debug_search_tend(struct debug_search *f, const struct conf *conf, struct namer *n,
	char *ret_news, size_t n_news)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	const bool was_away = f->away;
	int r = debug_watch_settled(&f->watch) ? namer_look_for_debug(n, false) : 0;

	*ret_news = '\0';
	if (r < 0 || !conf_has_debuginfod(conf))
		return r;
	if (f->waits)
		r = hear(f, conf, n, now_ns);
	else if (now_ns >= f->look_ns)
		r = ask(f, conf, n, now_ns);
	if (f->away && !was_away)
		snprintf(ret_news, n_news,
			"debug symbols of servers are missing, since nothing answers at %s; "
			"`systemctl start mperf-debuginfod.socket`",
			conf->debuginfod_socket);
	return r;
}
