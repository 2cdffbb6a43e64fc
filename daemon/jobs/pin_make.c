/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The child finds the jobs of a request and writes a pin for each. The oldest is pinned first, so that the latest are
 * there at the end, whichever go for them. If one has no room, those before it stay, and the report has them.
 *
 * The daemon notes what the child made when it ends, however it ends: the report is in memory that both have, and a
 * row is counted once its file has its name. Only then the pins go that the new one takes the place of. A file without
 * a row is of a child that was killed between the two. Whatever looks at all labels or pins is done by the child, and
 * its rows are noted in slices, since that may remove as many pins as a store has.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/budget/loop_latency.h"
#include "daemon/jobs/pin_find.h"
#include "daemon/jobs/pinner_private.h"
#include "daemon/store/rollup/extract.h"
#include "daemon/store/rollup/rollup.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* --- outcomes --------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 4, 5))) say(
	struct pin_report *r, enum pin_outcome outcome, const char *remedy, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(r->text, sizeof(r->text), format, args);
	va_end(args);
	snprintf(r->remedy, sizeof(r->remedy), "%s", remedy);
	r->outcome = outcome;
}

static void say_waits(struct pin_report *r)
{
	say(r, PIN_FAILED, "Pin fewer of the running jobs, or unpin some.",
		"too many running jobs to pin at once; " PIN_WAITS_SAYS, PIN_WAITS_USER_MAX,
		PIN_WAITS_MAX);
}

/* --- in the child: jobs that run -------------------------------------------------------------- */

static bool is_wanted(const struct pin_ask *ask, const struct label_set *set)
{
	return (ask->all_users || set->uid == ask->by) &&
	       store_pin_matches(set->labels, ask->label, ask->n_labels);
}

/* Insert a set into the list of the latest ones, sorted by id, the latest first, at most
 * PIN_JOBS_MAX + 1. Returns their number. */
static size_t enter_latest(struct label_set **latest, size_t n, struct label_set *set)
{
	size_t at = 0;
	while (at < n && latest[at]->id > set->id)
		at++;
	if (at > PIN_JOBS_MAX)
		return n;
	n += n <= PIN_JOBS_MAX;
	memmove(&latest[at + 1], &latest[at], (n - at - 1) * sizeof(*latest));
	latest[at] = set;
	return n;
}

/* Does this request keep at most as many jobs as it may pin? */
static bool is_bounded(const struct pin_ask *ask)
{
	return (ask->last > 0 && ask->last <= PIN_JOBS_MAX) ||
	       (ask->keep > 0 && ask->keep <= PIN_JOBS_MAX);
}

void pinner_add_running(struct pin_report *report, const struct label_set *set)
{
	struct pin_job *row = &report->job[report->n_jobs++];
	*row = (struct pin_job){.state = PIN_RUNS, .uid = set->uid};
	snprintf(row->labels, sizeof(row->labels), "%s", set->labels);
}

/* Running jobs of the request are pinned later; add them to the report. If there are more than
 * PIN_JOBS_MAX, take the latest, provided that the request keeps no more than that. 0;
 * PINNER_WAITS; PINNER_MANY: it keeps more, and none is taken; -ENOMEM. */
enum { PINNER_MANY = PINNER_WAITS + 1 };
static int take_running(struct pinner *p, const struct pin_request *q)
{
	struct label_set *latest[PIN_JOBS_MAX + 1], *set = p->o.tasks->label_sets.set;
	const struct pin_ask *ask = &q->ask;
	size_t n = 0, most = PIN_JOBS_MAX;
	for (; set; set = set->hh.next)
		if (set->n_live > 0 && is_wanted(ask, set))
			n = enter_latest(latest, n, set);
	if (n > PIN_JOBS_MAX && !is_bounded(ask))
		return PINNER_MANY;
	if (ask->last > 0 && ask->last < most)
		most = ask->last;
	for (size_t i = n < most ? n : most; i-- > 0;) {
		/* also in the child's copy, so that it meets the same limits as the daemon will */
		int r = pinner_await(p, ask, q->group, latest[i], q);
		if (r != 0)
			return r;
		pinner_add_running(&p->shared->report, latest[i]);
	}
	return 0;
}

/* --- in the child: jobs that have ended ------------------------------------------------------- */

struct making {
	struct store *store; /* a copy of the store, whose list is updated as the daemon's will be
			      * */
	const struct pin_request *q;
	struct pin_limits limits;
	struct pin_report *report; /* already reported as a running job, so left out */
	char *making;              /* the name of the pin that is being written */
};

/* The oldest pin, of all users or of the requesting user, which should be unpinned first. NULL:
 * there is none. */
static const struct store_pin *oldest_of(const struct making *m, bool all)
{
	for (size_t i = 0; i < m->store->n_pins; i++)
		if (all || m->store->pin[i].by == m->q->ask.by)
			return &m->store->pin[i];
	return NULL;
}

/* A selection for the client's command line, inside of a shell's quotes, which a value must not
 * close. */
static void says_selection(const char *json, char *text, size_t size)
{
	labels_say_json(json, text, size);
	for (char *p = text; (p = strchr(p, '\'')) != NULL;)
		*p = '?';
}

static void says_room(const struct making *m, const struct pin_room *room, char text[160])
{
	const uint64_t left = room->bytes >> 10;
	if (m->store->n_pins >= STORE_PINS_MAX)
		snprintf(text, 160, "there are already %d pinned jobs, the most that a store keeps",
			STORE_PINS_MAX);
	else if (room->limit == PIN_ROOM_DISC)
		snprintf(text, 160, "the disc has %" PRIu64 " KB left above min-free", left);
	else if (room->limit == PIN_ROOM_USER)
		snprintf(text, 160,
			"user %u has %" PRIu64 " KB left of %" PRIu64 " KB for pinned jobs",
			m->q->ask.by, left, m->limits.user_bytes >> 10);
	else
		snprintf(text, 160, "%" PRIu64 " KB are left of %" PRIu64 " KB for all pinned jobs",
			left, m->limits.all_bytes >> 10);
}

static void say_full(struct making *m, const struct found_job *job, const struct pin_room *room)
{
	const struct store_pin *oldest = oldest_of(m, m->q->ask.all_users);
	char says[160], why[160], old[160], remedy[256];
	labels_say_json(job->labels, says, sizeof(says));
	says_room(m, room, why);
	if (oldest) {
		says_selection(oldest->labels, old, sizeof(old));
		snprintf(remedy, sizeof(remedy), "Unpin the oldest: mperfctl job unpin '%s'.", old);
	} else
		snprintf(remedy, sizeof(remedy),
			"Raise budget or pinned in mperf.conf, or free some space.");
	say(m->report, PIN_FULL, remedy, "%s is not pinned: %s", says, why);
}

static void say_failed(
	struct making *m, const struct found_job *job, int r, const struct store_error *error)
{
	char says[160];
	labels_say_json(job->labels, says, sizeof(says));
	if (r == EXTRACT_EMPTY)
		say(m->report, PIN_FAILED,
			"Pin a job while its samples are kept in full (keep-windows).",
			"%s is not pinned: none of its samples are kept in full", says);
	else if (r == STORE_NO_SPACE)
		say(m->report, PIN_FULL, "Free some space, and try again.",
			"%s is not pinned: the disc of the store is full", says);
	else if (*error->text)
		say(m->report, PIN_FAILED, error->remedy, "%s is not pinned: %.300s", says,
			error->text);
	else
		say(m->report, PIN_FAILED, "See mperfd's journal.", "%s is not pinned: %s", says,
			r < 0 ? strerror(-r) : "the store cannot be read");
}

static void say_unread(struct making *m, const struct found_job *job)
{
	char says[160];
	labels_say_json(job->labels, says, sizeof(says));
	say(m->report, PIN_FAILED, "Check its disc, and try again.",
		"%s is not pinned: a file of the store that may hold some of its samples cannot be "
		"read now",
		says);
}

static void add_row(struct making *m, const struct found_job *job, enum pin_state state,
	const char *name, uint64_t bytes)
{
	struct pin_job *row = &m->report->job[m->report->n_jobs];
	*row = (struct pin_job){.state = state, .uid = job->uid, .bytes = bytes};
	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->labels, sizeof(row->labels), "%s", job->labels);
	m->report->n_jobs++; /* now it exists */
}

static int write_pin(struct making *m, const struct found_job *job, uint64_t bytes_max,
	int64_t now_ns, struct store_error *error)
{
	const struct extract_note note[] = {
		{"pinned_uid", NULL, job->uid},
		{"pinned_labels", job->labels, 0},
		{"pinned_by", NULL, m->q->ask.by},
		{"pinned_group", m->q->group, 0},
		{"pinned_keep", NULL, m->q->ask.keep},
		{"pinned_ns", NULL, now_ns},
	};
	const struct extract e = {
		.uid = job->uid,
		.labels = job->labels,
		.source = (const char *const *)job->source,
		.n_sources = job->n_sources,
		.bytes_max = bytes_max,
		.note = note,
		.n_notes = sizeof(note) / sizeof(*note),
	};
	_cleanup_(freep) char *path = NULL;
	if (asprintf(&path, "%s/%s", m->store->path, m->making) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return extract_write(&e, path, error);
}

/* Update our copy of the store as the daemon will: note the new pin, and drop the pins that it
 * replaces. */
static int note(struct making *m, const struct found_job *job)
{
	int r = store_pin_note(m->store, m->making);
	size_t at, made = store_pin_find(m->store, m->making);
	/* a file that cannot be read back now is complete nevertheless: the daemon checks it, and
	 * checks again later */
	if (r == STORE_CORRUPT || r == -ENOENT || r == -ENOMEM)
		return r;
	const uint64_t bytes = r == 0 ? m->store->pin[made].bytes : 0;
	add_row(m, job, PIN_MADE, m->making, bytes);
	while ((at = store_pin_surplus(m->store, m->q->ask.by, m->q->group, m->q->ask.keep)) <
		m->store->n_pins)
		store_pin_drop(m->store, at);
	return 0;
}

/* False: the reason was reported. */
static bool pin_one(struct making *m, const struct found_job *job)
{
	struct store_error error = {"", ""};
	int64_t now_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	size_t known = store_pin_of(m->store, job->uid, job->labels, job->end_ns);
	if (job->is_partly_unread) {
		say_unread(m, job);
		return false;
	}
	/* a pin that later runs replace is not enough for a request to keep it until it is unpinned
	 * */
	if (known < m->store->n_pins && (m->store->pin[known].keep == 0 || m->q->ask.keep > 0)) {
		add_row(m, job, PIN_KNOWN, m->store->pin[known].name, m->store->pin[known].bytes);
		return true;
	}
	/* earlier pins and recordings have taken some space since the daemon checked */
	store_pin_measure(m->store, &m->limits);
	const struct pin_room room =
		store_pin_room(m->store, &m->limits, m->q->ask.by, m->q->group, m->q->ask.keep);
	if (m->store->n_pins >= STORE_PINS_MAX || room.bytes < STORE_PIN_BYTES_MIN) {
		say_full(m, job, &room);
		return false;
	}
	int r = store_pin_name(m->store, job->start_ns, job->boot_id, m->making);
	if (r == 0)
		r = write_pin(m, job, room.bytes, now_ns, &error);
	if (r == 0)
		r = note(m, job);
	if (r == EXTRACT_TOO_LARGE)
		say_full(m, job, &room);
	else if (r != 0)
		say_failed(m, job, r, &error);
	return r == 0;
}

/* Is this job still running? Then it is in the report already. */
static bool runs(const struct making *m, const struct found_job *job)
{
	for (uint32_t i = 0; i < m->report->n_jobs; i++)
		if (m->report->job[i].state == PIN_RUNS && m->report->job[i].uid == job->uid &&
			strcmp(m->report->job[i].labels, job->labels) == 0)
			return true;
	return false;
}

/* The number of latest jobs to pin; SIZE_MAX: there are too many. */
static size_t how_many(const struct making *m, size_t n_found)
{
	size_t most = PIN_JOBS_MAX - m->report->n_jobs, wanted = m->q->ask.last;
	if (wanted == 0 || (m->q->ask.keep > 0 && m->q->ask.keep < wanted))
		wanted = m->q->ask.keep > 0 ? m->q->ask.keep : n_found;
	/* running jobs are the latest */
	if (m->q->ask.last > 0 || m->q->ask.keep > 0)
		wanted = wanted > m->report->n_jobs ? wanted - m->report->n_jobs : 0;
	wanted = wanted < n_found ? wanted : n_found;
	return wanted > most ? SIZE_MAX : wanted;
}

static void make_pins(struct making *m)
{
	struct found_jobs jobs = {0};
	const struct pin_wanted wanted = {
		.all_users = m->q->ask.all_users && !m->q->labels,
		.uid = m->q->labels ? m->q->uid : m->q->ask.by,
		.label = m->q->ask.label,
		.n_labels = m->q->ask.n_labels,
		.exact = m->q->labels,
	};
	size_t n = 0;
	/* the daemon's descriptors are closed here */
	m->store->fd = open(m->store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = m->store->fd < 0 ? -errno : pin_find(m->store, &wanted, &jobs);
	for (size_t i = 0; r == 0 && i < jobs.n; i++)
		if (!runs(m, &jobs.job[i])) {
			struct found_job swap = jobs.job[n];
			jobs.job[n++] = jobs.job[i];
			jobs.job[i] = swap;
		}
	size_t n_wanted = r == 0 ? how_many(m, n) : 0;
	m->report->outcome = PIN_WELL;
	if (r == -E2BIG || n_wanted == SIZE_MAX)
		m->report->outcome = PIN_MANY;
	else if (r < 0)
		say(m->report, PIN_FAILED, "Try again later.", "jobs cannot be searched: %s",
			strerror(-r));
	else if (n == 0 && m->report->n_jobs == 0 && jobs.any_unread)
		say(m->report, PIN_FAILED, "Check its disc, and try again.",
			"no such job was found, but a file of the store cannot be read now");
	else if (n == 0 && m->report->n_jobs == 0)
		m->report->outcome = PIN_NONE;
	else
		while (n_wanted > 0 && pin_one(m, &jobs.job[n_wanted - 1]))
			n_wanted--;
	found_jobs_clear(&jobs);
}

static int run_child(void *userdata)
{
	struct pinner *p = userdata;
	const struct pin_request *q = pinner_find(p, p->child_id);
	struct pin_report *report = &p->shared->report;
	struct making m = {p->o.store, q, p->limits, report, p->shared->making};
	int r = q->labels ? 0 : take_running(p, q);
	if (r == PINNER_WAITS)
		say_waits(report);
	else if (r == PINNER_MANY)
		report->outcome = PIN_MANY;
	else if (r == 0)
		make_pins(&m);
	return r < 0;
}

/* --- in the daemon ---------------------------------------------------------------------------- */

/* Keep the report for the client that waits for it. */
static void end_request(struct pinner *p, struct pin_request *q)
{
	const struct pin_report *r = &p->shared->report;
	if (q->nobody_waits) {
		if (r->outcome == PIN_FULL || r->outcome == PIN_FAILED)
			pinner_say_of_nobody(p, clock_ns(CLOCK_MONOTONIC), r->text);
		pinner_remove(p, q);
		return;
	}
	q->report = malloc(sizeof(*q->report));
	if (q->report)
		*q->report = *r;
	else
		pinner_remove(p, q);
}

int pinner_start(struct pinner *p, struct pin_request *q)
{
	/* if its one job runs again, there is nothing to search for */
	if (pinner_await_again(p, q))
		return 0;
	memset(p->shared, 0, sizeof(*p->shared));
	p->shared->report.outcome = PIN_FAILED;
	p->child_id = q->id;
	p->round = q->round;
	/* no process or memory was available: the next dispatch tries again */
	if (offload_run(run_child, p, &p->child) != 0)
		p->child_id = 0;
	return 0;
}

static bool is_replaced(const struct store_pin *old, const struct store_pin *new)
{
	return old != new && old->by == new->by && old->uid == new->uid &&
	       (old->keep > 0 || new->keep == 0) && old->start_ns >= new->start_ns &&
	       old->end_ns <= new->end_ns &&
	       old->labels_hash == new->labels_hash &&strcmp(old->labels, new->labels) == 0;
}

/* Find a pin to remove: one of the same job and user, whose rows are in the new pin; or the surplus
 * one of its group. n_pins: there is none. */
static size_t find_replaced(const struct store *s, const struct pin_request *q, const char *name)
{
	const size_t made = store_pin_find(s, name);
	if (made == s->n_pins)
		return s->n_pins;
	for (size_t i = s->n_pins; i-- > 0;)
		if (is_replaced(&s->pin[i], &s->pin[made]))
			return i;
	return store_pin_surplus(s, q->ask.by, q->group, q->ask.keep);
}

static bool has_row(const struct pin_report *r, const char *name)
{
	for (uint32_t i = 0; i < r->n_jobs; i++)
		if (strcmp(r->job[i].name, name) == 0)
			return true;
	return false;
}

/* The child may have been killed after it named its file but before it counted the row: then the
 * file is complete. */
static void add_last(struct pinner *p)
{
	const struct store *s = p->o.store;
	struct pin_report *r = &p->shared->report;
	const char *name = p->shared->making;
	if (!*name || has_row(r, name) || r->n_jobs >= PIN_JOBS_MAX ||
		store_pin_note(p->o.store, name) != 0)
		return;
	const struct store_pin *pin = &s->pin[store_pin_find(s, name)];
	struct pin_job *row = &r->job[r->n_jobs++];
	*row = (struct pin_job){.state = PIN_MADE, .uid = pin->uid, .bytes = pin->bytes};
	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->labels, sizeof(row->labels), "%s", pin->labels);
}

void pinner_take_end(struct pinner *p, const struct offload_end *end)
{
	struct pin_report *r = &p->shared->report;
	char left[STORE_NAME_BYTES + sizeof(ROLLUP_NEW_SUFFIX)];
	if (end->signal != 0)
		say(r, PIN_FAILED, "Pin fewer jobs at once.",
			"pinning was stopped, since it took too long or too much memory");
	else if (end->status != 0)
		say(r, PIN_FAILED, "Try again later.",
			"there was too little memory to search for jobs");
	if (r->n_jobs > PIN_JOBS_MAX) /* of a child in any state */
		r->n_jobs = PIN_JOBS_MAX;
	add_last(p);
	/* of a killed child */
	snprintf(left, sizeof(left), "%s" ROLLUP_NEW_SUFFIX, p->shared->making);
	if (*p->shared->making)
		store_pin_remove_unfinished(p->o.store, left);
	p->child = offload_free(p->child);
	p->taking = (struct taking){.goes_on = true};
}

/* Add a running job to the wait list, to be pinned later. False: the list is full, so drop the row;
 * other rows of the report stay. */
static bool note_running(struct pinner *p, const struct pin_request *q, struct pin_job *row)
{
	struct pin_report *report = &p->shared->report;
	int r = pinner_await_row(p, q, row);
	if (r == 0)
		return true;
	if (r == PINNER_WAITS)
		say_waits(report);
	else
		say(report, PIN_FAILED, "Try again later.", "there was too little memory");
	memmove(row, row + 1, (size_t)(&report->job[--report->n_jobs] - row) * sizeof(*row));
	return false;
}

/* Do one step: note a row, or remove one pin for it. False: nothing is left to do. */
static bool take_step(struct pinner *p, const struct pin_request *q)
{
	struct taking *at = &p->taking;
	struct store *s = p->o.store;
	struct pin_report *r = &p->shared->report;
	if (at->row >= r->n_jobs)
		return false;
	struct pin_job *row = &r->job[at->row];
	if (row->state == PIN_RUNS && !note_running(p, q, row))
		return true;
	if (row->state == PIN_MADE && !at->is_noted && store_pin_note(s, row->name) == 0) {
		at->is_noted = true;
		return true;
	}
	const size_t goes = at->is_noted ? find_replaced(s, q, row->name) : s->n_pins;
	if (goes == s->n_pins || store_pin_remove(s, goes) < 0)
		*at = (struct taking){.goes_on = true, .row = at->row + 1};
	return true;
}

void pinner_take_made(struct pinner *p)
{
	const uint64_t until_ns = slice_begin();
	struct pin_request *q = pinner_find(p, p->child_id);
	while (take_step(p, q))
		if (slice_is_over(until_ns))
			return;
	p->taking = (struct taking){.goes_on = false};
	p->child_id = 0;
	end_request(p, q);
}
