/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The files of several segments are one table here, so that a file is parsed once for a query, whatever number of
 * segments has frames of it.
 */
#include "daemon/naming/later.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/debuginfod/cache.h"
#include "daemon/debuginfod/fetch.h"
#include "daemon/namer/message.h"
#include "daemon/naming/namer.h"
#include "proto/base/clock.h"

#define WAIT_MS 20 /* at most, between two looks at deadlines */

struct later {
	struct later_options o;
	struct namer *namer;
	bool failed; /* there is no namer, or its time is over */
	struct file_table files;
	bool useless[LATER_FILES_MAX]; /* by id - 1: no debug file was found */
	bool fetches_no_more;          /* servers answer too late, or the client is gone */
	uint64_t waited_ns;
};

struct later *later_new(const struct later_options *o)
{
	struct later *l = calloc(1, sizeof(*l));

	if (l)
		l->o = *o;
	return l;
}

struct later *later_free(struct later *l)
{
	if (!l)
		return NULL;
	namer_free(l->namer);
	file_table_clear(&l->files);
	free(l);
	return NULL;
}

bool later_knows_more(const struct later *l, const struct later_file *file)
{
	char path[PATH_MAX];
	const bool was_read = file->state == FILE_READY || file->state == FILE_NO_SYMBOLS;

	if (!was_read || file->has_debug || file->n_build_id < 2)
		return false;
	return namer_has_debug_file(file->build_id, file->n_build_id) ||
	       (l->o.cache &&
		       debuginfod_cached(l->o.cache, file->build_id, file->n_build_id, path)) ||
	       (l->o.fetches && !l->fetches_no_more && access(file->path, R_OK) == 0);
}

/* Take the debug file of a file that is new here from the cache, or ask the servers. False: they do not have it. */
static bool may_fetch(struct later *l, const struct later_file *file, struct file *f)
{
	const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
	const struct debuginfod_wish w = {
		.build_id = file->build_id,
		.n_build_id = file->n_build_id,
		.shows_progress = true,
		.until_ns = began_ns + l->o.limit_ns - l->waited_ns,
	};
	char path[PATH_MAX];

	if (l->o.cache && debuginfod_cached(l->o.cache, file->build_id, file->n_build_id, path))
		return (f->debug_path = strdup(path));
	if (!l->o.fetches || l->fetches_no_more || l->waited_ns >= l->o.limit_ns)
		return false;
	int r = debuginfod_fetch(&w, path);
	l->waited_ns += clock_ns(CLOCK_MONOTONIC) - began_ns;
	l->fetches_no_more = r == DEBUGINFOD_LATER || r == DEBUGINFOD_OVER;
	if (r == 0 && strlen(path) <= MESSAGE_LINK_BYTES_MAX)
		f->debug_path = strdup(path);
	return f->debug_path;
}

static bool may_start(struct later *l)
{
	const struct namer_options o = {
		.binary = l->o.namer,
		.files = &l->files,
		.parse_timeout_ns = l->o.limit_ns,
		.own = true,
	};

	if (!l->namer && !l->failed)
		l->failed = namer_new(&o, &l->namer) < 0;
	return !l->failed;
}

int later_ask(struct later *l, const struct later_file *file, uint64_t offset,
	const struct frame **ret_frame)
{
	const uid_t uid = geteuid();
	const struct file_key key = {.kind = FILE_ELF,
		.path = file->path,
		.build_id = file->build_id,
		.n_build_id = file->n_build_id,
		.uid = uid,
		.account = uid};
	struct file *f = NULL;
	struct frame *frame = NULL;

	*ret_frame = NULL;
	if (!may_start(l) || l->files.n_frames >= LATER_FRAMES_MAX)
		return 0;
	const uint32_t n_files = l->files.n_files;
	int r = file_get(&l->files, &key, &f);
	if (r == 0 && f->id > LATER_FILES_MAX)
		return 0;
	if (r == 0 && f->id > n_files && !namer_has_debug_file(file->build_id, file->n_build_id))
		l->useless[f->id - 1] = !may_fetch(l, file, f);
	if (r == 0 && l->useless[f->id - 1])
		return 0;
	if (r == 0)
		r = frame_get(&l->files, f, offset, &frame);
	if (r == 0)
		r = namer_name(l->namer, frame, uid);
	*ret_frame = r == 0 ? frame : NULL;
	return r < 0 ? r : 0;
}

int later_wait(struct later *l)
{
	struct pollfd fds[NAMER_FDS_MAX];
	int r = 0;

	if (!l->namer || l->failed)
		return 0;
	const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t now_ns = began_ns;
	while ((r = namer_dispatch(l->namer, now_ns)) == 0 && !namer_idle(l->namer) &&
		l->waited_ns + (now_ns - began_ns) < l->o.limit_ns) {
		(void)poll(fds, (nfds_t)namer_fds(l->namer, fds), WAIT_MS);
		now_ns = clock_ns(CLOCK_MONOTONIC);
	}
	l->waited_ns += now_ns - began_ns;
	l->failed = r < 0 || l->waited_ns >= l->o.limit_ns;
	return r == -ENOMEM ? r : 0;
}
