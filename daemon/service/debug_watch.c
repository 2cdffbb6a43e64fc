/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * FOLDER has up to 256 folders, one for the first byte of each build id, and each has a watch of its own. Watches are
 * added after each change, for folders that came with it; a watch that is there already is not added twice.
 */
#include "daemon/service/debug_watch.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "proto/base/memory.h"

/* Files that are complete: written in place, or renamed as dpkg does; and links and folders. */
#define ARRIVALS (IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR)

DEFINE_CLEANUP(DIR *, closedir)

static bool is_byte(const char *name)
{
	return isxdigit((unsigned char)name[0]) && isxdigit((unsigned char)name[1]) && !name[2];
}

/* Watch the nearest folder above that exists. */
static int watch_above(const struct debug_watch *w)
{
	char path[PATH_MAX];
	char *slash;
	int above = -1;

	snprintf(path, sizeof(path), "%s", w->folder);
	while (above < 0 && (slash = strrchr(path, '/')) && slash > path) {
		*slash = '\0';
		above = inotify_add_watch(w->fd, path, ARRIVALS);
	}
	return above;
}

static void watch_all(struct debug_watch *w)
{
	const struct dirent *entry;
	char path[PATH_MAX];

	if (w->above >= 0)
		(void)inotify_rm_watch(w->fd, w->above);
	w->above = -1;
	/* the watch first: what comes while the folder is read is not missed */
	if (inotify_add_watch(w->fd, w->folder, ARRIVALS) < 0) {
		w->above = watch_above(w);
		return;
	}
	_cleanup_(closedirp) DIR *folder = opendir(w->folder);
	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "%s/%s", w->folder, entry->d_name);
		if (is_byte(entry->d_name))
			(void)inotify_add_watch(w->fd, path, ARRIVALS);
	}
}

void debug_watch_begin(struct debug_watch *w, const char *folder)
{
	*w = (struct debug_watch){
		.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), .above = -1, .folder = folder};
	if (w->fd >= 0)
		watch_all(w);
}

/* Take what happened. Was there more than the end of a watch, which is our own work? */
static bool take_events(const struct debug_watch *w)
{
	_Alignas(struct inotify_event) char events[4096];
	bool more = false;
	ssize_t n;

	while (w->fd >= 0 && (n = read(w->fd, events, sizeof(events))) > 0)
		for (const char *at = events; at < events + n;) {
			const struct inotify_event *e = (const void *)at;
			more |= !(e->mask & IN_IGNORED);
			at += sizeof(*e) + e->len;
		}
	return more;
}

bool debug_watch_settled(struct debug_watch *w)
{
	const bool more = take_events(w);

	if (more)
		watch_all(w);
	const bool settled = w->changed && !more;
	w->changed = more;
	return settled;
}

void debug_watch_end(struct debug_watch *w)
{
	if (w->fd > 0) /* 0: it was never begun */
		close(w->fd);
	w->fd = -1;
}
