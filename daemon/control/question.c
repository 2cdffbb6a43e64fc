/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The question outlives its message, since it may have to wait: the request is copied by packing and
 * unpacking it, and the names of files are copied because retention may remove some meanwhile. It is
 * no error if a file has been removed by then; the answer says that it is missing.
 *
 * The child chooses pins, from the list that the daemon had when it forked: comparing the labels of
 * all pins with all requested labels takes too long for a round of the loop. The child looks only at
 * pins that the asker may see, so neither the answer nor its time depends on the labels of other
 * users.
 */
#include "daemon/control/question.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/conf/conf.h"
#include "daemon/control/offload_job.h"
#include "daemon/control/peer.h"
#include "daemon/debuginfod/fetch.h"
#include "daemon/kernel/kernel.h"
#include "daemon/loops/feed.h"
#include "daemon/naming/later.h"
#include "daemon/service/service.h"
#include "daemon/store/pin.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Time for names that came after the samples, of one question. */
#define LATER_PRIVATE_NS (60ull * 1000000000u)
#define LATER_SERVICE_NS (5ull * 1000000000u)
/* Programs answer within a millisecond, unless they are not running at all. */
#define ROUND_NS 300000000u

DEFINE_CLEANUP(struct later *, later_free)

struct asking {
	struct job job; /* while it waits for samples that are not stored yet */
	struct question question;
	Mperf__Request *request; /* a copy */
	/* files of the store; paths of sources are absolute and owned */
	struct query_without *without; /* in the child: rows that are in pins among the sources */
	size_t n_without;
	char *folder; /* the store's, at the begin of each source's path; NULL: the sources are named files */
	int64_t since_ns; /* begin of the requested time; 0: open */
};

static void asking_free(void *userdata)
{
	struct asking *a = userdata;
	if (!a)
		return;
	struct question *k = &a->question;
	if (a->request)
		mperf__request__free_unpacked(a->request, NULL);
	for (size_t i = 0; i < k->n_sources && a->folder; i++)
		free((char *)k->source[i].path);
	for (size_t i = 0; i < a->n_without; i++)
		free((char *)a->without[i].labels);
	free(a->without);
	free(k->source);
	free(a->folder);
	if (k->forget && k->known)
		k->forget(k->known);
	free(a);
}

static void asking_freep(struct asking **a)
{
	asking_free(*a);
}

/* --- a request's filter, and the end of its answer -------------------------------------------- */

/* The requested time on CLOCK_MONOTONIC, which is never set, if it is in this boot. */
static void find_since_boot(struct query_filter *f)
{
	int64_t ago_ns = (int64_t)clock_ns(CLOCK_REALTIME) - f->since_ns;
	int64_t since_ns = (int64_t)clock_ns(CLOCK_MONOTONIC) - ago_ns;
	if (f->since_ns <= 0 || ago_ns < 0 || since_ns <= 0)
		return; /* open, to come, or before this boot */
	kernel_boot_id(&kernel_real, f->boot_id);
	f->since_boot_ns = *f->boot_id ? since_ns : 0;
}

struct query_filter query_filter_of(const struct request *q, const Mperf__Filter *m)
{
	const struct peer *p = q->peer;
	const struct conf *conf = p->options->conf;
	struct query_filter f = {
		.only_uid = !p->sees_all,
		.uid = p->uid,
		.gid = p->gid,
		.hide_kernel = !p->sees_all,
		.group = conf && *conf->group ? conf->group : NULL,
	};
	if (!m)
		return f;
	f.pid = m->pid, f.n_pids = m->n_pid;
	f.comm = (const char *const *)m->comm, f.n_comms = m->n_comm;
	f.cgroup = (const char *const *)m->cgroup, f.n_cgroups = m->n_cgroup;
	f.label = (const char *const *)m->label, f.n_labels = m->n_label;
	f.cpu = m->cpu, f.n_cpus = m->n_cpu;
	f.since_ns = m->since_ns;
	f.until_ns = m->until_ns;
	find_since_boot(&f);
	f.event = m->event && *m->event ? m->event : NULL;
	return f;
}

int query_answer_end(struct request *q, struct row_stream *stream, int r,
	const struct query_error *error, int status)
{
	int ended = row_stream_end(stream);
	if (q->peer->options->private && (r == -EPIPE || r == -ECONNRESET))
		return 0; /* the next write to the peer finds that, too */
	if (r == 0)
		r = ended;
	if (r == 0)
		r = request_done(q, status);
	else if (r == QUERY_FAILED && *error->text)
		r = request_fail(q, error->kind, error->remedy, "%s", error->text);
	else if (r > 0)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Ask for less: --limit, or a filter.",
			"the answer is larger than the buffer for a client");
	return r < 0 ? r : 0;
}

/* --- making a question ------------------------------------------------------------------------ */

void question_about(
	const struct request *q, struct question *a, char *const *path, const Mperf__Filter *wanted)
{
	question_about_files(q, a, path, 1, wanted);
}

void question_about_files(const struct request *q, struct question *a, char *const *path,
	size_t n_paths, const Mperf__Filter *wanted)
{
	a->path = path;
	a->n_paths = n_paths;
	a->wanted = wanted;
	a->filter = query_filter_of(q, wanted);
	a->query.filter = &a->filter;
}

bool question_is_of_store(const struct request *q, const struct question *a)
{
	return a->n_paths == 0 || (a->n_paths == 1 && !*a->path[0] && !q->peer->options->private);
}

int question_add_metrics(struct request *q, struct question *a, char *const *name, size_t n)
{
	struct machine machine; /* needed only to load the platform database */
	if (n == 0)
		return 0;
	a->metrics = (struct query_metrics){a->cores, name, n};
	a->query.metrics = &a->metrics;
	return request_read_machine(q, &machine);
}

void question_ask_programs(const struct request *q, struct question *a)
{
	const struct service *service = q->peer->options->service;
	struct feed *feed = service && service->walk ? service->walk->feed : NULL;
	if (!feed || a->filter.until_ns)
		return;
	const uint64_t before = feed_rounds(feed);
	const struct feed_reach reach = request_feed_reach(q);
	const uint32_t n = feed_ask(feed, &reach, a->filter.n_pids == 1 ? a->filter.pid[0] : 0);
	a->fresh = n > 0;
	a->n_rounds = before + n;
	a->rounds_until_ns = kernel_real.now_ns(NULL) + ROUND_NS;
}

/* --- in the child ----------------------------------------------------------------------------- */

/* Does nothing match, since a label is malformed or there are too many? */
static bool wish_is_wrong(const char *const *label, size_t n, struct pin_wish *wish)
{
	struct label_fault fault;
	for (wish->n = 0; wish->n < n; wish->n++)
		if (wish->n == LABELS_MAX ||
			label_parse(label[wish->n], &wish->label[wish->n], &fault) != 0)
			return true;
	return n == 0;
}

/* Get the requested selections of jobs. 0 or -ENOMEM. */
static int wishes_of(const struct question *k, struct pin_wish **ret_wish, size_t *ret_n)
{
	char *const *label = NULL;
	size_t n = 1, kept = 0;
	if (k->labels)
		for (n = 0; k->labels(k->request, n, &label) > 0; n++)
			;
	struct pin_wish *wish = calloc(n + 1, sizeof(*wish));
	if (!wish)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const size_t n_labels =
			k->labels ? k->labels(k->request, i, &label) : k->filter.n_labels;
		const char *const *text = k->labels ? (const char *const *)label : k->filter.label;
		kept += !wish_is_wrong(text, n_labels, &wish[kept]);
	}
	*ret_wish = wish;
	*ret_n = kept;
	return 0;
}

/* Add the source of the i-th of n pins, and the rows that other sources must skip for it. 0 or
 * -ENOMEM. */
static int take_pin(struct asking *a, size_t i, size_t n, const struct pin_part *p)
{
	const struct question *k = &a->question;
	enum query_pin pin = QUERY_PIN;
	char *path, *labels = strdup(p->pin->labels);
	if (!labels)
		return -ENOMEM;
	a->without[a->n_without++] = (struct query_without){.uid = p->pin->uid,
		.labels = labels,
		.since_ns = p->since_ns,
		.until_ns = p->until_ns,
		.next = p->next};
	for (size_t other = n; other < k->n_sources; other++)
		if (k->source[other].since_ns < p->until_ns &&
			k->source[other].until_ns > p->since_ns)
			pin = QUERY_PIN_BESIDE;
	if (asprintf(&path, "%s/%s", a->folder, p->pin->name) < 0)
		return -ENOMEM;
	k->source[i] = (struct query_source){
		.path = path,
		.since_ns = p->since_ns,
		.until_ns = p->until_ns,
		.verified = p->pin->verified,
		.pin = pin,
	};
	return 0;
}

/* Make room for the sources of pins, which are read before the others. 0 or -ENOMEM. */
static int make_room(struct asking *a, size_t n_pins)
{
	struct question *k = &a->question;
	struct query_source *source = calloc(k->n_sources + n_pins + 1, sizeof(*source));
	a->without = calloc(n_pins + 1, sizeof(*a->without));
	if (!source || !a->without) {
		free(source);
		return -ENOMEM;
	}
	memcpy(source + n_pins, k->source, k->n_sources * sizeof(*source));
	free(k->source);
	k->source = source;
	k->n_sources += n_pins;
	return 0;
}

/* Add the pins of the requested jobs. 0 or -errno. */
static int take_pins(struct asking *a, const struct store *store)
{
	const struct question *k = &a->question;
	const struct query_filter *filter = &k->filter;
	_cleanup_(freep) struct pin_part *pin = NULL;
	_cleanup_(freep) struct pin_wish *wish = NULL;
	size_t n_pins = 0, n_wishes = 0;
	int r = wishes_of(k, &wish, &n_wishes);
	const struct pin_question question = {.uid = filter->only_uid ? &filter->uid : NULL,
		.wish = wish,
		.n_wishes = n_wishes,
		.since_ns = a->since_ns,
		.until_ns = filter->until_ns};
	if (r == 0 && store && strcmp(store->path, a->folder) == 0 && n_wishes > 0)
		r = store_pin_select(store, &question, &pin, &n_pins);
	if (r == 0)
		r = make_room(a, n_pins);
	for (size_t i = 0; i < n_pins && r == 0; i++)
		r = take_pin(a, i, n_pins, &pin[i]);
	return r;
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

static int note_sources(struct request *q, const struct asking *a)
{
	const struct query_source *source = a->question.source;
	int r = 0;
	for (size_t i = 0; i < a->question.n_sources && a->folder && r == 0; i++)
		if (source[i].outcome == QUERY_BROKEN)
			r = offload_note(q, source[i].path);
		else if (source[i].is_verified_anew)
			r = note_verified(q, &source[i]);
	return r;
}

static int fail_no_store(struct request *q, const struct service *service)
{
	const char *why = service ? service->store_trouble : "";
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
		"Record what you want to look at: mperfctl record.",
		"this mperfd keeps no store%s%s", *why ? ": " : "", why);
}

/* Report that the store has nothing of the requested time, perhaps because nothing is being
 * stored. */
static int fail_nothing(struct request *q, const struct service *service)
{
	if (!*service->store_trouble)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Ask for another time (--since, --until).",
			"the store has no samples of that time");
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
		"See mperfctl store for its size and limits, or ask for another time.",
		"the store has no samples of that time, and stores none now: %s",
		service->store_trouble);
}

/* The workers that name frames which were stored without a name. */
static struct later *later_of(const struct control_options *options)
{
	const struct later_options o = {
		.namer = options->namer,
		.fetches = options->private && debuginfod_has_servers(),
		.cache = options->service && conf_has_debuginfod(options->conf)
				 ? options->conf->debuginfod_cache
				 : NULL,
		.limit_ns = options->private ? LATER_PRIVATE_NS : LATER_SERVICE_NS,
	};
	return later_new(&o);
}

/* In the child if it is about the store. */
static int answer(struct request *q, void *userdata)
{
	struct asking *a = userdata;
	struct question *k = &a->question;
	const struct service *service = q->peer->options->service;
	struct query_error error = {"", "", 0};
	struct row_stream stream;
	struct answer to = row_stream_answer(&stream, q);
	k->filter = query_filter_of(q, k->wanted); /* rights may have changed while it waited */
	int r = a->folder ? take_pins(a, service->store) : 0;
	if (r < 0)
		return r;
	if (k->n_sources == 0)
		return fail_nothing(q, service);
	_cleanup_(later_freep) struct later *later = later_of(q->peer->options);
	k->filter.later = later;
	k->filter.without = a->without;
	k->filter.n_without = a->n_without;
	r = k->run(k, &to, &error);
	int noted = note_sources(q, a);
	return query_answer_end(q, &stream, r == 0 ? noted : r, &error, k->status);
}

/* --- in the daemon ---------------------------------------------------------------------------- */

/* May the child have read this file of the store? */
static bool was_read(const struct request *q, const struct asking *a, const struct store *store,
	const char *name)
{
	const struct query_source *source = a->question.source;
	const size_t root = strlen(a->folder), pin = store_pin_find(store, name);
	if (pin < store->n_pins)
		return q->peer->sees_all || store->pin[pin].uid == q->peer->uid;
	for (size_t i = 0; i < a->question.n_sources; i++)
		if (!source[i].live && strcmp(source[i].path + root + 1, name) == 0)
			return true;
	return false;
}

/* Take the child's result about a file of the store: damaged or sound. A file that is still being
 * written is left to its writer. Files of a store that a reload has replaced are ignored. */
static void take_note(struct request *q, void *userdata, const char *text)
{
	struct store *store = q->peer->options->service->store;
	const struct asking *a = userdata;
	size_t root = store && strcmp(store->path, a->folder) == 0 ? strlen(a->folder) : 0;
	uintmax_t device, inode, bytes;
	intmax_t modified_ns;
	int at = 0;
	bool well =
		sscanf(text, VERIFIED "%n", &device, &inode, &bytes, &modified_ns, &at) == 4 && at;
	const char *path = text + at;
	if (root == 0 || strncmp(path, a->folder, root) != 0 || path[root] != '/' ||
		!was_read(q, a, store, path + root + 1))
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

static const struct offload_answer asking_answer = {
	.run = answer,
	.release = asking_free,
	.note = take_note,
};

/* 0 or -errno. */
static int take_parts(
	struct asking *a, const struct service *service, const struct store_part *part, size_t n)
{
	struct question *k = &a->question;
	a->folder = strdup(service->store ? service->store->path : "");
	k->source = calloc(n + 1, sizeof(*k->source));
	if (!a->folder || !k->source)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		char *path;
		if (asprintf(&path, "%s/%s", a->folder, part[i].file->name) < 0)
			return -ENOMEM;
		k->source[k->n_sources++] = (struct query_source){
			.path = path,
			.since_ns = part[i].since_ns,
			.until_ns = part[i].until_ns,
			.live = !part[i].file->sealed,
			.verified = part[i].file->verified,
		};
	}
	return 0;
}

static int select_parts(struct asking *a, struct request *q)
{
	struct question *k = &a->question;
	struct service *service = q->peer->options->service;
	_cleanup_(freep) struct store_part *part = NULL;
	size_t n = 0;
	a->since_ns = k->filter.since_ns || k->all_time
			      ? k->filter.since_ns
			      : (int64_t)clock_ns(CLOCK_REALTIME) - QUESTION_SPAN_NS;
	int r = k->know ? k->know(q, k) : 0;
	if (r == 0)
		r = service_select(
			service, a->since_ns, k->filter.until_ns, k->coarsest, &part, &n);
	return r < 0 ? r : take_parts(a, service, part, n);
}

/* Takes over a. 0 or -errno. */
static int read_store(struct request *q, struct asking *asking)
{
	_cleanup_(asking_freep) struct asking *a = asking;
	const struct service *service = q->peer->options->service;
	int r = service && service->store ? select_parts(a, q) : fail_no_store(q, service) ?: 1;
	if (r != 0)
		return r < 0 ? r : 0;
	return offload_start(q, &asking_answer, TAKE_PTR(a));
}

/* --- the wait for what is not stored yet ------------------------------------------------------ */

static void wait_free(struct job *job)
{
	asking_free(job);
}

/* The service's loop runs several times a second, and whenever a program's report arrives. */
static uint64_t wait_deadline_ns(struct job *job, const struct request *q)
{
	const struct question *k = &((struct asking *)job)->question;
	const struct service *service = q->peer->options->service;
	const struct feed *feed = service->walk ? service->walk->feed : NULL;
	uint64_t fresh_ns = service_fresh_ns(service);
	if (k->n_rounds == 0)
		return fresh_ns;
	if (!feed)
		return 0;
	uint64_t round_ns = feed_rounds(feed) >= k->n_rounds ? 0 : k->rounds_until_ns;
	return round_ns > fresh_ns ? round_ns : fresh_ns;
}

static int wait_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	if (now_ns < wait_deadline_ns(job, q))
		return 0;
	q->job = NULL;
	int r = read_store(q, (struct asking *)job);
	return r < 0 ? r : q->job ? 0 : JOB_DONE;
}

static const struct job_kind wait_kind = {
	.deadline_ns = wait_deadline_ns, .dispatch = wait_dispatch, .free = wait_free};

/* --- asking ----------------------------------------------------------------------------------- */

/* The named files of a private peer. 0; positive after a refusal; -errno. */
static int take_files(struct request *q, struct asking *a)
{
	struct question *k = &a->question;
	k->source = calloc(k->n_paths + 1, sizeof(*k->source));
	if (!k->source)
		return -ENOMEM;
	for (size_t i = 0; i < k->n_paths; i++) {
		const int r = request_check_file(q, k->path[i]);
		if (r != 0)
			return r;
		k->source[k->n_sources++] = (struct query_source){
			.path = k->path[i],
			.named = true,
			.output = k->output.bytes ? &k->output : NULL,
		};
	}
	return 0;
}

int question_ask(struct request *q, const Mperf__Request *m, question_make *make)
{
	_cleanup_(asking_freep) struct asking *a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->request = request_copy(&m->base);
	if (!a->request)
		return -ENOMEM;
	a->question.request = a->request;
	a->question.cores = q->peer->options->cores;
	int r = make(q, &a->question);
	const bool of_store = r == 0 && question_is_of_store(q, &a->question);
	if (r == 0 && !of_store)
		r = take_files(q, a);
	if (r != 0)
		return r < 0 ? r : 0;
	if (!of_store)
		return offload_start(q, &asking_answer, TAKE_PTR(a));
	if (!a->question.fresh || !q->peer->options->service)
		return read_store(q, TAKE_PTR(a));
	a->job.kind = &wait_kind;
	q->job = &TAKE_PTR(a)->job;
	return 0;
}
