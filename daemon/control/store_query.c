/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The request outlives the message it came in, since it may have to wait for its turn: a copy is made
 * by packing and unpacking it, and the names of the files are copied because retention may remove
 * some meanwhile. A file that is gone by then is no trouble; the answer says that it is missing.
 */
#include "daemon/control/store_query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/control/offload.h"
#include "daemon/control/peer.h"
#include "daemon/control/service.h"
#include "daemon/query/query.h"
#include "proto/memory.h"

struct part {
	char *path; /* absolute */
	int64_t since_ns, until_ns;
	bool live;
};

struct store_query {
	Mperf__Request *request; /* a copy */
	struct part *part;
	size_t n_parts;
};

static void store_query_release(void *userdata)
{
	struct store_query *s = userdata;
	if (!s)
		return;
	if (s->request)
		mperf__request__free_unpacked(s->request, NULL);
	for (size_t i = 0; i < s->n_parts; i++)
		free(s->part[i].path);
	free(s->part);
	free(s);
}

static void store_query_releasep(struct store_query **s)
{
	store_query_release(*s);
}

/* NULL without memory. */
static Mperf__Request *request_copy(const Mperf__Request *m)
{
	size_t n = mperf__request__get_packed_size(m);
	_cleanup_(freep) uint8_t *packed = malloc(n + 1);
	if (!packed)
		return NULL;
	mperf__request__pack(m, packed);
	return mperf__request__unpack(NULL, n, packed);
}

/* --- in the child ------------------------------------------------------------------------------- */

static sqlite3 *open_part(const struct part *p, struct segment_error *ret_error)
{
	sqlite3 *db = NULL;
	int r = p->live ? segment_open_live(p->path, &db, ret_error)
			: segment_open(p->path, &db, ret_error);
	return r == 0 ? db : NULL;
}

static int answer(struct request *q, void *userdata)
{
	const struct store_query *s = userdata;
	const Mperf__Request *m = s->request;
	sqlite3 *db[QUERY_SEGMENTS_MAX];
	size_t n = 0;
	for (size_t i = 0; i < s->n_parts && n < QUERY_SEGMENTS_MAX; i++) {
		struct segment_error broken = {"", ""};
		db[n] = open_part(&s->part[i], &broken);
		n += db[n] != NULL;
	}
	struct query_error error = {"", "", 0};
	struct row_stream stream;
	struct answer to = row_stream_answer(&stream, q);
	int r;
	if (m->body_case == MPERF__REQUEST__BODY_HOTSPOTS) {
		const Mperf__HotspotsRequest *h = m->hotspots;
		struct query_filter filter = query_filter_of(q, h->filter);
		int by = query_by_parse(*h->by ? h->by : "function");
		r = query_hotspots(db, n, (enum query_by)by, h->limit, h->inlined, &filter, &to,
			&error);
	} else {
		struct query_filter filter = query_filter_of(q, m->flamegraph->filter);
		r = query_flamegraph(db, n, &filter, &to, &error);
	}
	return query_answer_end(q, &stream, r, &error);
}

/* --- in the daemon ------------------------------------------------------------------------------ */

/* The child found this file of the store broken. */
static void set_aside(struct request *q, void *userdata, const char *path)
{
	struct service *service = q->peer->options->service;
	const struct store_query *s = userdata;
	size_t root = service->store ? strlen(service->store->path) : 0;
	for (size_t i = 0; root > 0 && i < s->n_parts; i++)
		if (strcmp(s->part[i].path, path) == 0 && !s->part[i].live)
			(void)store_set_aside(service->store, path + root + 1); /* or stay as it is */
}

static const struct offload_answer store_query_answer = {
	.run = answer,
	.release = store_query_release,
	.note = set_aside,
};

/* Only the finest tier has lines and threads; pids, harts and what was inlined end with the minutes. */
static enum tier coarsest_for(const Mperf__Request *m, const Mperf__Filter *f)
{
	bool needs_minutes = f && (f->n_pid > 0 || f->n_cpu > 0);
	if (m->body_case == MPERF__REQUEST__BODY_HOTSPOTS) {
		int by = query_by_parse(*m->hotspots->by ? m->hotspots->by : "function");
		if (by == QUERY_BY_LINE || by == QUERY_BY_THREAD)
			return TIER_WINDOW;
		needs_minutes |= by == QUERY_BY_HART || m->hotspots->inlined;
	}
	return needs_minutes ? TIER_MINUTE : TIER_HOUR;
}

static int64_t realtime_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* 0 or -errno. */
static int take_parts(struct store_query *s, const struct service *service,
	const struct store_part *part, size_t n)
{
	s->part = calloc(n + 1, sizeof *s->part);
	if (!s->part)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct part *to = &s->part[s->n_parts];
		if (asprintf(&to->path, "%s/%s", service->store->path, part[i].file->name) < 0)
			return -ENOMEM;
		to->since_ns = part[i].since_ns;
		to->until_ns = part[i].until_ns;
		to->live = !part[i].file->sealed;
		s->n_parts++;
	}
	return 0;
}

static int select_parts(struct store_query *s, struct service *service)
{
	const Mperf__Request *m = s->request;
	const Mperf__Filter *f = m->body_case == MPERF__REQUEST__BODY_HOTSPOTS
		? m->hotspots->filter
		: m->flamegraph->filter;
	int64_t since_ns = f && f->since_ns ? f->since_ns : realtime_ns() - STORE_QUERY_SPAN_NS;
	_cleanup_(freep) struct store_part *part = NULL;
	size_t n = 0;
	int r = service_select(service, since_ns, f ? f->until_ns : 0, coarsest_for(m, f), &part, &n);
	return r < 0 ? r : take_parts(s, service, part, n);
}

static int fail_no_store(struct request *q, const struct service *service)
{
	const char *why = service ? service->store_trouble : "";
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
		"Record what you want to look at: mperfctl record.", "this mperfd keeps no store%s%s",
		*why ? ": " : "", why);
}

int store_query_start(struct request *q, const Mperf__Request *m)
{
	struct service *service = q->peer->options->service;
	int r;
	if (!service || !service->store) {
		r = fail_no_store(q, service);
		return r < 0 ? r : 0;
	}
	_cleanup_(store_query_releasep) struct store_query *s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	s->request = request_copy(m);
	r = s->request ? select_parts(s, service) : -ENOMEM;
	if (r < 0)
		return r;
	if (s->n_parts == 0) {
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Ask for another time (--since, --until).",
			"the store has no samples of that time");
		return r < 0 ? r : 0;
	}
	return offload_start(q, &store_query_answer, TAKE_PTR(s));
}
