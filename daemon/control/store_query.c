/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The request outlives the message it came in, since it may have to wait for its turn: a copy is
 * made by packing and unpacking it, and the names of the files are copied because retention may
 * remove some meanwhile. It is no error if a file has been removed by then; the answer says that it
 * is missing.
 *
 * The child chooses pins, from the list that the daemon had when it forked: comparing the labels of
 * all pins with all requested labels takes too long for a turn of the loop. The child looks only at
 * pins that the asker may see, so neither the answer nor its time depends on the labels of other
 * users.
 */
#include "daemon/control/store_query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/offload_job.h"
#include "daemon/control/peer.h"
#include "daemon/control/query_request.h"
#include "daemon/query/query.h"
#include "daemon/service/service.h"
#include "daemon/store/pin.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

struct store_query {
	const struct store_question *question;
	Mperf__Request *request;        /* a copy */
	struct query_source *source;    /* whose paths are ours, and absolute */
	struct segment_identity *known; /* of each: the state that was last verified */
	size_t n_sources;
	struct query_without *without; /* in the child: what pins among the sources have */
	size_t n_without;
	char *folder;     /* the store's, at the begin of each source's path */
	int64_t since_ns; /* what is asked for begins there; 0: open */
	void *facts;      /* of the question's know */
};

static void store_query_release(void *userdata)
{
	struct store_query *s = userdata;
	if (!s)
		return;
	if (s->request)
		mperf__request__free_unpacked(s->request, NULL);
	for (size_t i = 0; i < s->n_sources; i++)
		free((char *)s->source[i].path);
	for (size_t i = 0; i < s->n_without; i++)
		free((char *)s->without[i].labels);
	free(s->without);
	free(s->source);
	free(s->known);
	free(s->folder);
	if (s->facts)
		s->question->forget(s->facts);
	free(s);
}

static void store_query_releasep(struct store_query **s)
{
	store_query_release(*s);
}

/* --- in the child ----------------------------------------------------------------------------- */

/* Does nothing match, since a label is none or there are too many? */
static bool wish_is_wrong(const char *const *label, size_t n, struct pin_wish *wish)
{
	struct label_fault fault;
	for (wish->n = 0; wish->n < n; wish->n++)
		if (wish->n == LABELS_MAX ||
			label_parse(label[wish->n], &wish->label[wish->n], &fault) != 0)
			return true;
	return n == 0;
}

/* The selections of jobs that are asked for. 0 or -ENOMEM. */
static int wishes_of(const struct store_query *s, const struct query_filter *filter,
	struct pin_wish **ret_wish, size_t *ret_n)
{
	char *const *label = NULL;
	size_t n = 1, kept = 0;
	if (s->question->labels)
		for (n = 0; s->question->labels(s->request, n, &label) > 0; n++)
			;
	struct pin_wish *wish = calloc(n + 1, sizeof(*wish));
	if (!wish)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const size_t n_labels = s->question->labels
						? s->question->labels(s->request, i, &label)
						: filter->n_labels;
		const char *const *text =
			s->question->labels ? (const char *const *)label : filter->label;
		kept += !wish_is_wrong(text, n_labels, &wish[kept]);
	}
	*ret_wish = wish;
	*ret_n = kept;
	return 0;
}

/* The source of one pin, and what the others leave to it. 0 or -ENOMEM. */
static int take_pin(struct store_query *s, const struct pin_part *p)
{
	enum query_pin pin = QUERY_PIN;
	char *path, *labels = strdup(p->pin->labels);
	if (!labels)
		return -ENOMEM;
	s->without[s->n_without++] = (struct query_without){.uid = p->pin->uid,
		.labels = labels,
		.since_ns = p->since_ns,
		.until_ns = p->until_ns,
		.next = p->next};
	for (size_t i = 0; i < s->n_sources; i++)
		if (s->source[i].pin == QUERY_NO_PIN && s->source[i].since_ns < p->until_ns &&
			s->source[i].until_ns > p->since_ns)
			pin = QUERY_PIN_BESIDE;
	if (asprintf(&path, "%s/%s", s->folder, p->pin->name) < 0)
		return -ENOMEM;
	s->known[s->n_sources] = p->pin->verified;
	s->source[s->n_sources++] = (struct query_source){
		.path = path,
		.since_ns = p->since_ns,
		.until_ns = p->until_ns,
		.verified = p->pin->verified,
		.pin = pin,
	};
	return 0;
}

static int grow(struct store_query *s, size_t n_pins)
{
	const size_t n = s->n_sources + n_pins + 1;
	struct query_source *source = reallocarray(s->source, n, sizeof(*source));
	s->source = source ? source : s->source;
	struct segment_identity *known = reallocarray(s->known, n, sizeof(*known));
	s->known = known ? known : s->known;
	s->without = calloc(n_pins + 1, sizeof(*s->without));
	return source && known && s->without ? 0 : -ENOMEM;
}

/* Pins are read before all others. */
static int put_first(struct store_query *s, size_t n_others)
{
	const size_t n = s->n_sources, n_pins = n - n_others;
	_cleanup_(freep) struct query_source *source = calloc(n + 1, sizeof(*source));
	_cleanup_(freep) struct segment_identity *known = calloc(n + 1, sizeof(*known));
	if (!source || !known)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		source[i] = s->source[i < n_pins ? n_others + i : i - n_pins];
		known[i] = s->known[i < n_pins ? n_others + i : i - n_pins];
	}
	memcpy(s->source, source, n * sizeof(*source));
	memcpy(s->known, known, n * sizeof(*known));
	return 0;
}

/* Pins of the jobs that are asked for. 0 or -errno. */
static int take_pins(
	struct store_query *s, const struct store *store, const struct query_filter *filter)
{
	_cleanup_(freep) struct pin_part *pin = NULL;
	_cleanup_(freep) struct pin_wish *wish = NULL;
	const size_t n_others = s->n_sources;
	size_t n_pins = 0, n_wishes = 0;
	int r = wishes_of(s, filter, &wish, &n_wishes);
	const struct pin_question question = {.uid = filter->only_uid ? &filter->uid : NULL,
		.wish = wish,
		.n_wishes = n_wishes,
		.since_ns = s->since_ns,
		.until_ns = filter->until_ns};
	if (r == 0 && store && strcmp(store->path, s->folder) == 0 && n_wishes > 0)
		r = store_pin_select(store, &question, &pin, &n_pins);
	if (r == 0)
		r = grow(s, n_pins);
	for (size_t i = 0; i < n_pins && r == 0; i++)
		r = take_pin(s, &pin[i]);
	return r == 0 ? put_first(s, n_others) : r;
}

/* "path", or "device inode bytes modified path" of one that was read whole. */
#define VERIFIED "verified %ju %ju %ju %jd "

static int note_verified(struct request *q, const struct query_source *s)
{
	const struct segment_identity *v = &s->verified;
	char text[OFFLOAD_NOTE_BYTES_MAX];
	if (v->bytes == 0 || s->live)
		return 0;
	int n = snprintf(text, sizeof(text), VERIFIED "%s", (uintmax_t)v->device,
		(uintmax_t)v->inode, (uintmax_t)v->bytes, (intmax_t)v->modified_ns, s->path);
	return n < (int)sizeof(text) ? offload_note(q, text) : 0;
}

static int note_sources(struct request *q, const struct store_query *s)
{
	int r = 0;
	for (size_t i = 0; i < s->n_sources && r == 0; i++)
		if (s->source[i].outcome == QUERY_BROKEN)
			r = offload_note(q, s->source[i].path);
		else if (!segment_identity_equal(&s->source[i].verified, &s->known[i]))
			r = note_verified(q, &s->source[i]);
	return r;
}

static int fail_no_store(struct request *q, const struct service *service)
{
	const char *why = service ? service->store_trouble : "";
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
		"Record what you want to look at: mperfctl record.",
		"this mperfd keeps no store%s%s", *why ? ": " : "", why);
}

/* The store has nothing of the requested time, perhaps since nothing is stored now. */
static int fail_nothing(struct request *q, const struct service *service)
{
	if (!*service->store_trouble)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Choose another time with --since and --until.",
			"the store has no samples from that time");
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
		"See mperfctl store for its size and limits, or ask for another time.",
		"the store has no samples from that time, and stores none now: %s",
		service->store_trouble);
}

static int answer(struct request *q, void *userdata)
{
	struct store_query *s = userdata;
	const struct service *service = q->peer->options->service;
	struct query_filter filter = query_filter_of(q, s->question->filter(s->request));
	int r = take_pins(s, service->store, &filter);
	if (r < 0)
		return r;
	if (s->n_sources == 0)
		return fail_nothing(q, service);
	filter.without = s->without;
	filter.n_without = s->n_without;
	struct query_error error = {"", "", 0};
	struct row_stream stream;
	struct answer to = row_stream_answer(&stream, q);
	int status = 0;
	const struct store_question_run run = {.source = s->source,
		.n_sources = s->n_sources,
		.request = s->request,
		.filter = &filter,
		.cores = q->peer->options->cores,
		.to = &to,
		.error = &error,
		.known = s->facts,
		.status = &status};
	r = s->question->run(&run);
	int noted = note_sources(q, s);
	return query_answer_end_with(q, &stream, r == 0 ? noted : r, &error, status);
}

/* --- in the daemon ---------------------------------------------------------------------------- */

/* May the child have read this file of the store? */
static bool was_read(const struct request *q, const struct store_query *s,
	const struct store *store, const char *name)
{
	const size_t root = strlen(s->folder), pin = store_pin_find(store, name);
	if (pin < store->n_pins)
		return q->peer->sees_all || store->pin[pin].uid == q->peer->uid;
	for (size_t i = 0; i < s->n_sources; i++)
		if (!s->source[i].live && strcmp(s->source[i].path + root + 1, name) == 0)
			return true;
	return false;
}

/* The child found this file of the store damaged or sound. A file that is still being written is
 * left to its writer. Files of a store that a reload has replaced are ignored. */
static void take_note(struct request *q, void *userdata, const char *text)
{
	struct store *store = q->peer->options->service->store;
	const struct store_query *s = userdata;
	size_t root = store && strcmp(store->path, s->folder) == 0 ? strlen(s->folder) : 0;
	uintmax_t device, inode, bytes;
	intmax_t modified_ns;
	int at = 0;
	bool well =
		sscanf(text, VERIFIED "%n", &device, &inode, &bytes, &modified_ns, &at) == 4 && at;
	const char *path = text + at;
	if (root == 0 || strncmp(path, s->folder, root) != 0 || path[root] != '/' ||
		!was_read(q, s, store, path + root + 1))
		return;
	if (well)
		store_note_verified(store, path + root + 1,
			&(struct segment_identity){.device = (dev_t)device,
				.inode = (ino_t)inode,
				.bytes = bytes,
				.modified_ns = modified_ns});
	else
		(void)store_set_aside(store, path + root + 1); /* or it stays where it is */
}

static const struct offload_answer store_query_answer = {
	.run = answer,
	.release = store_query_release,
	.note = take_note,
};

/* 0 or -errno. */
static int take_parts(struct store_query *s, const struct service *service,
	const struct store_part *part, size_t n)
{
	s->folder = strdup(service->store ? service->store->path : "");
	s->source = calloc(n + 1, sizeof(*s->source));
	s->known = calloc(n + 1, sizeof(*s->known));
	if (!s->folder || !s->source || !s->known)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		char *path;
		s->known[s->n_sources] = part[i].file->verified;
		if (asprintf(&path, "%s/%s", s->folder, part[i].file->name) < 0)
			return -ENOMEM;
		s->source[s->n_sources++] = (struct query_source){
			.path = path,
			.since_ns = part[i].since_ns,
			.until_ns = part[i].until_ns,
			.live = !part[i].file->sealed,
			.verified = part[i].file->verified,
		};
	}
	return 0;
}

static int select_parts(struct store_query *s, struct request *q)
{
	struct service *service = q->peer->options->service;
	struct query_filter filter = query_filter_of(q, s->question->filter(s->request));
	s->since_ns = filter.since_ns || s->question->all_time
			      ? filter.since_ns
			      : (int64_t)clock_ns(CLOCK_REALTIME) - STORE_QUERY_SPAN_NS;
	_cleanup_(freep) struct store_part *part = NULL;
	size_t n = 0;
	enum tier coarsest = s->question->coarsest(s->request, &filter);
	int r = s->question->know ? s->question->know(q, s->request, &s->facts) : 0;
	if (r == 0)
		r = service_select(service, s->since_ns, filter.until_ns, coarsest, &part, &n);
	return r < 0 ? r : take_parts(s, service, part, n);
}

int store_query_start(
	struct request *q, const Mperf__Request *m, const struct store_question *question)
{
	struct service *service = q->peer->options->service;
	int r;
	if (!service || !service->store) {
		r = fail_no_store(q, service);
		return r < 0 ? r : 0;
	}
	_cleanup_(store_query_releasep) struct store_query *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->question = question;
	s->request = request_copy(&m->base);
	r = s->request ? select_parts(s, q) : -ENOMEM;
	if (r < 0)
		return r;
	return offload_start(q, &store_query_answer, TAKE_PTR(s));
}
