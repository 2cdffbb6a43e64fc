/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * roofs: the service lowers its sampling while a client measures, keeps the measured roofs, and
 * gives them to all users. Lowering and keeping affect every user, so only peers that see all users
 * may ask for them; others measure while sampling goes on, and keep their roofs themselves. The
 * documented figures of the cores are no secret.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/answer/row.h"
#include "daemon/conf/conf.h"
#include "daemon/control/give.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/pmu/cores.h"
#include "daemon/service/roofs_kept.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define SECOND_NS 1000000000u
#define KEEP_REMEDY "See mperf.conf(5); your own roofs are kept in your state folder."

/* --- pausing ---------------------------------------------------------------------------------- */

struct pause_job {
	struct job job;
	struct service *service;
	bool paused;
};

static int pause_finish(struct job *job, struct request *q)
{
	struct pause_job *j = (struct pause_job *)job;
	bool lasted = j->paused && pause_end(&j->service->pause, j, clock_ns(CLOCK_MONOTONIC));
	int r = request_done(q, lasted ? 0 : 1);
	return r < 0 ? r : JOB_DONE;
}

static void pause_free(struct job *job)
{
	struct pause_job *j = (struct pause_job *)job;
	if (j->paused)
		(void)pause_end(&j->service->pause, j, clock_ns(CLOCK_MONOTONIC));
	free(j);
}

static const struct job_kind pause_kind = {.finish = pause_finish, .free = pause_free};

/* Start a pause. If the user's allowance is used up, the measurement runs without a pause; if it
 * would disturb another measurement, it is refused. */
static int start_pause(struct request *q, struct service *s)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	char note[192] = "";
	struct pause_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct pause_job){.job.kind = &pause_kind, .service = s};
	int r = pause_begin(&s->pause, j, q->peer->uid, now_ns);
	unsigned wait_s = (unsigned)((pause_free_ns(&s->pause, now_ns) - now_ns) / SECOND_NS) + 1;
	if (r == PAUSE_BUSY) {
		free(j);
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Try again once they are done.",
			"another client is measuring roofs, for at most %u s more", wait_s);
	}
	j->paused = r == 0;
	q->job = &j->job;
	if (r == PAUSE_TOO_OFTEN)
		snprintf(note, sizeof(note),
			"sampling was lowered often recently, and cannot be lowered again for %u s",
			wait_s);
	return request_ready(q, note);
}

/* --- keeping ---------------------------------------------------------------------------------- */

/* Did the peer's user have sampling paused for as long as the measurement took? Then we assume that
 * the pause was for this measurement. */
static bool was_paused(const struct pause *p, uid_t uid, const struct roofs *roofs)
{
	return !p->who && p->n > 0 && p->uid == uid &&
	       (double)p->took_ns / SECOND_NS >= roofs->took_s;
}

static int keep(struct request *q, const struct service *s, const ProtobufCBinaryData *bytes)
{
	const struct conf *c = q->peer->options->conf;
	char fault[ROOF_NOTE_BYTES];
	struct roofs roofs;
	if (!c->store)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING, KEEP_REMEDY,
			"mperfd keeps no roofs, since mperf.conf says keep = no");
	int r = roofs_kept_read(bytes->data, bytes->len, &roofs, fault);
	if (r > 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_BROKEN,
			"Measure them here, with the mperfctl of this mperfd.",
			"mperfd does not keep these roofs: %s", fault);
	if (r < 0)
		return r;
	roofs.paused = roofs.paused && was_paused(&s->pause, q->peer->uid, &roofs);
	r = roofs_kept_write(c->store_path, &roofs);
	roofs_clear(&roofs);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING, KEEP_REMEDY,
			"mperfd cannot keep roofs in %s: %s", c->store_path, strerror(-r));
	return request_done(q, 0);
}

/* --- giving ----------------------------------------------------------------------------------- */

static int give(struct request *q, const char *name)
{
	const char *path = q->peer->options->conf->store_path;
	int fd;
	uint64_t bytes;
	int r = roofs_kept_open(path, name, &fd, &bytes);
	if (r == ROOFS_NONE)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Run `mperfctl roofs measure` as root.", "mperfd keeps no roofs");
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_BROKEN,
			"Let mperfd's user read them.", "the roofs in %s cannot be read: %s", path,
			strerror(-r));
	return give_file(q, fd, bytes);
}

/* --- by documents ----------------------------------------------------------------------------- */

#define CACHE_LEVELS_MAX 5

#define PEAK_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(harts, "Harts", text, harts)                                                        \
	COLUMN(core, "Core", text, p->title)                                                       \
	COLUMN(precision, "Precision", text, peak->precision)                                      \
	COLUMN(unit, "Unit", text, peak->unit)                                                     \
	COLUMN(ops_per_cycle, "Operations a cycle", ratio, peak->ops_per_cycle)                    \
	COLUMN(source, "Source", text, peak->origin.source)

static int send_peaks(const struct answer *to, const struct platform *p, const char *harts)
{
	int r = 0;
	for (size_t i = 0; i < p->n_peaks && r == 0; i++) {
		const struct platform_peak *peak = &p->peak[i];
		r = TABLE_ROW(to, PEAK_TABLE);
	}
	return r;
}

#define CACHE_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(harts, "Harts", text, harts)                                                        \
	COLUMN(core, "Core", text, p->title)                                                       \
	COLUMN(level, "Level", count, level)                                                       \
	COLUMN(bytes, "Bytes", bytes, c->bytes)                                                    \
	COLUMN(shared_by, "Shared by", count, c->shared_by)                                        \
	COLUMN(source, "Source", text, c->origin.source)

static const struct platform_cache *cache_of(const struct platform *p, int level)
{
	for (size_t i = 0; i < p->n_caches; i++)
		if (p->cache[i].level == level && p->cache[i].kind != 'i')
			return &p->cache[i];
	return NULL;
}

/* By level, without a gap. */
static int send_caches(const struct answer *to, const struct platform *p, const char *harts)
{
	const struct platform_cache *c;
	int r = 0;
	for (int level = 1; level <= CACHE_LEVELS_MAX && r == 0 && (c = cache_of(p, level));
		level++)
		r = TABLE_ROW(to, CACHE_TABLE);
	return r;
}

/* Send the documented figures of each kind of core: peaks, or caches. */
static int tell_documented(struct request *q, bool peaks)
{
	const struct cores *cores = q->peer->options->cores;
	struct row_stream stream;
	struct machine machine;
	int r = request_read_machine(q, &machine);
	if (r != 0)
		return r < 0 ? r : 0;
	const struct answer to = row_stream_answer(&stream, q);
	r = peaks ? TABLE_BEGIN(&to, "peak", PEAK_TABLE) : TABLE_BEGIN(&to, "cache", CACHE_TABLE);
	for (int h = cores_kind(cores, 0); h >= 0 && r == 0; h = cores_kind(cores, h + 1)) {
		const struct platform *p = cores_platform(cores, h);
		const struct hart_set of = cores_of(cores, p);
		char harts[256];
		hart_set_says(&of, harts, sizeof(harts));
		r = (peaks ? send_peaks : send_caches)(&to, p, harts);
	}
	return row_stream_done(&stream, r);
}

int control_roofs(struct request *q, const Mperf__Request *m)
{
	struct service *s = q->peer->options->service;
	const Mperf__RoofsRequest *roofs = m->roofs;
	int r;
	if (roofs->peaks || roofs->caches)
		r = tell_documented(q, roofs->peaks);
	else if (!s)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Run `systemctl start mperfd`, and try again.",
			"this mperfd keeps no roofs: it serves only one client");
	else if (!roofs->pause && !roofs->keep.len)
		r = give(q, roofs->name);
	else if (!q->peer->sees_all)
		r = request_refuse_group(q, roofs->pause
						    ? "you may not lower the sampling of all users"
						    : "you may not keep roofs for all users");
	else if (roofs->pause && roofs->keep.len)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Send one request after the other.",
			"one request cannot both lower the sampling and keep roofs");
	else
		r = roofs->pause ? start_pause(q, s) : keep(q, s, &roofs->keep);
	return r < 0 ? r : 0;
}
