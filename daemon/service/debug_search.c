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

#define LOOK_NS (10ull * 1000000000u)        /* it goes through all frames */
#define AWAY_NS (60ull * 1000000000u)        /* after the process could not be reached, */
#define OVER_NS (600ull * 1000000000u)       /* or could ask no server, or not fetch that file */
#define NONE_NS (24ull * 3600 * 1000000000u) /* after no server had it, or one sent it */
#define ANSWER_NS (DEBUGINFOD_FETCH_NS + 60ull * 1000000000u)

void debug_search_begin(struct debug_search *f)
{
	*f = (struct debug_search){.fd = -1, .uid = (uid_t)-1};
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

/* --- what was asked for ----------------------------------------------------------------------- */

/* The few places where a build id may be. Who makes build ids that share them has files of others asked for sooner. */
static struct debug_asked *places_of(struct debug_search *f, const uint8_t *build_id)
{
	return f->asked[build_id[1] % DEBUG_SEARCH_SETS];
}

static struct debug_asked *find(struct debug_search *f, const uint8_t *build_id, uint8_t n)
{
	struct debug_asked *a = places_of(f, build_id);

	for (uint32_t i = 0; i < DEBUG_SEARCH_PLACES; i++)
		if (a[i].n_build_id == n && memcmp(a[i].build_id, build_id, n) == 0)
			return &a[i];
	return NULL;
}

/* Note that it could not be fetched, which is so until its answer comes. */
static struct debug_asked *note(struct debug_search *f, const struct file *file, uint64_t now_ns)
{
	struct debug_asked *a = find(f, file->build_id, file->n_build_id);

	if (!a) {
		struct debug_asked *place = places_of(f, file->build_id);
		a = place; /* a free one, or the one that may be asked for again first */
		for (uint32_t i = 1; i < DEBUG_SEARCH_PLACES; i++)
			if (place[i].again_ns < a->again_ns)
				a = &place[i];
		*a = (struct debug_asked){.n_build_id = file->n_build_id};
		memcpy(a->build_id, file->build_id, sizeof(a->build_id));
	}
	const uint64_t again_ns = OVER_NS << a->n_failed;
	a->again_ns = now_ns + (again_ns < NONE_NS ? again_ns : NONE_NS);
	a->n_failed += again_ns < NONE_NS;
	return a;
}

static void settle(struct debug_asked *a, uint64_t now_ns)
{
	a->n_failed = 0;
	a->again_ns = now_ns + NONE_NS;
}

/* --- asking ----------------------------------------------------------------------------------- */

struct turn {
	struct debug_search *search;
	uint64_t now_ns;
	bool is_for_others; /* than who was asked for last */
};

static bool may(void *userdata, const struct file *file)
{
	const struct turn *t = userdata;

	if (t->is_for_others && file->account == t->search->uid)
		return false;
	const struct debug_asked *a = find(t->search, file->build_id, file->n_build_id);
	return !a || t->now_ns >= a->again_ns;
}

static const struct file *next_file(struct debug_search *f, struct namer *n, uint64_t now_ns)
{
	struct turn t = {f, now_ns, f->uid != (uid_t)-1};
	const struct file *file = namer_without_debug(n, DEBUG_SEARCH_SAMPLES_MIN, may, &t);

	if (file || !t.is_for_others)
		return file;
	t.is_for_others = false;
	return namer_without_debug(n, DEBUG_SEARCH_SAMPLES_MIN, may, &t);
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
	const struct file *file = next_file(f, n, now_ns);

	f->look_ns = now_ns + LOOK_NS;
	if (!file) {
		hang_up(f); /* it ends when nobody asks */
		return 0;
	}
	if (f->fd < 0 && connect_to(f, conf->debuginfod_socket) < 0)
		return away(f, now_ns);
	f->about = note(f, file, now_ns);
	f->uid = file->account;
	f->until_ns = now_ns + ANSWER_NS;
	if (send(f->fd, file->build_id, file->n_build_id, MSG_NOSIGNAL) < 0)
		return away(f, now_ns);
	f->waits = true;
	return 0;
}

static int hear(struct debug_search *f, const struct conf *conf, struct namer *n, uint64_t now_ns)
{
	struct debug_asked *a = f->about;
	char path[PATH_MAX];
	uint8_t answer = 0;
	const ssize_t n_bytes = recv(f->fd, &answer, 1, 0);

	if (n_bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return now_ns < f->until_ns ? 0 : away(f, now_ns);
	if (n_bytes != 1)
		return away(f, now_ns);
	f->waits = f->away = false;
	f->over = answer == DEBUGINFOD_ANSWER_OVER;
	switch (answer) {
	case DEBUGINFOD_ANSWER_OVER:
		f->look_ns = now_ns + OVER_NS;
		a->n_failed = 0;
		return 0;
	case DEBUGINFOD_ANSWER_NONE:
		settle(a, now_ns);
		return 0;
	case DEBUGINFOD_ANSWER_HAVE:
		settle(a, now_ns);
		return debuginfod_cache_path(
			       conf->debuginfod_cache, a->build_id, a->n_build_id, path)
			       ? namer_fetched(n, a->build_id, a->n_build_id, path)
			       : 0;
	}
	return 0;
}

static void say(const struct debug_search *f, const struct conf *conf, char *ret_news, size_t n)
{
	if (f->away)
		snprintf(ret_news, n,
			"debug symbols of servers are missing, since nothing answers at %s; "
			"`systemctl start mperf-debuginfod.socket`",
			conf->debuginfod_socket);
	else if (f->over)
		snprintf(ret_news, n,
			"debug symbols of servers are missing; `journalctl -u mperf-debuginfod` "
			"says why");
}

int debug_search_tend(struct debug_search *f, const struct conf *conf, struct namer *n,
	uint64_t now_ns, char *ret_news, size_t n_news)
{
	const bool was_said = f->away || f->over;
	int r = debug_watch_settled(&f->watch) ? namer_look_for_debug(n, false) : 0;

	*ret_news = '\0';
	if (r < 0 || !conf_has_debuginfod(conf))
		return r;
	if (f->waits)
		r = hear(f, conf, n, now_ns);
	else if (now_ns >= f->look_ns)
		r = ask(f, conf, n, now_ns);
	if (!was_said)
		say(f, conf, ret_news, n_news);
	return r;
}
