/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The oldest is pinned first, so that the latest are there at the end, whichever go for them. What was made
 * before one had no room stays, and the report has it.
 */
#include "daemon/jobs/pin_make.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/jobs/pin_find.h"
#include "daemon/store/rollup/extract.h"
#include "daemon/store/rollup/rollup.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

static void __attribute__((format(printf, 4, 5)))
say(struct pin_report *r, enum pin_outcome outcome, const char *remedy, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(r->text, sizeof(r->text), format, args);
	va_end(args);
	snprintf(r->remedy, sizeof(r->remedy), "%s", remedy);
	r->outcome = outcome;
}

/* The oldest pin of theirs, which is the one to go. */
static const struct store_pin *oldest_of(const struct pin_making *m, bool all)
{
	for (size_t i = 0; i < m->store->n_pins; i++)
		if (all || m->store->pin[i].by == m->ask->by)
			return &m->store->pin[i];
	return NULL;
}

static void says_labels(const char *json, char *text, size_t size)
{
	struct label label[LABELS_MAX];
	labels_say(label, labels_read(json, label), text, size);
}

/* As the client takes it, in a shell's quotes, which a value may not end. */
static void says_selection(const char *json, char *text, size_t size)
{
	says_labels(json, text, size);
	for (char *p = text; (p = strchr(p, '\'')) != NULL;)
		*p = '?';
}

static void says_room(const struct pin_making *m, const struct pin_room *room, char text[160])
{
	const uint64_t left = room->bytes >> 10;
	if (m->store->n_pins >= STORE_PINS_MAX)
		snprintf(text, 160, "there are %d pinned jobs, as many as a store keeps",
			STORE_PINS_MAX);
	else if (room->limit == PIN_ROOM_DISC)
		snprintf(text, 160, "the disc has %" PRIu64 " KB left above min-free", left);
	else if (room->limit == PIN_ROOM_USER)
		snprintf(text, 160,
			"user %u has %" PRIu64 " KB left of %" PRIu64 " KB for pinned jobs",
			m->ask->by, left, m->limits.user_bytes >> 10);
	else
		snprintf(text, 160, "%" PRIu64 " KB are left of %" PRIu64 " KB for all pinned jobs",
			left, m->limits.all_bytes >> 10);
}

static void say_full(struct pin_making *m, const struct found_job *job, const struct pin_room *room)
{
	const struct store_pin *oldest = oldest_of(m, m->ask->all_users);
	char says[160], why[160], old[160], remedy[256];
	says_labels(job->labels, says, sizeof(says));
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
	struct pin_making *m, const struct found_job *job, int r, const struct store_error *error)
{
	char says[160];
	says_labels(job->labels, says, sizeof(says));
	if (r == EXTRACT_EMPTY)
		say(m->report, PIN_FAILED,
			"Pin a job while its samples are kept in full (keep-windows).",
			"%s is not pinned: none of its samples are kept as they were taken", says);
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

static void say_unread(struct pin_making *m, const struct found_job *job)
{
	char says[160];
	says_labels(job->labels, says, sizeof(says));
	say(m->report, PIN_FAILED, "Check its disc, and try again.",
		"%s is not pinned: a file of the store that may have a part of it cannot be read "
		"now",
		says);
}

static void add_row(struct pin_making *m, const struct found_job *job, enum pin_state state,
	const char *name, uint64_t bytes)
{
	struct pin_job *row = &m->report->job[m->report->n_jobs];
	*row = (struct pin_job){.state = state, .uid = job->uid, .bytes = bytes};
	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->labels, sizeof(row->labels), "%s", job->labels);
	m->report->n_jobs++; /* now it is there */
}

static int write_pin(struct pin_making *m, const struct found_job *job, uint64_t bytes_max,
	int64_t now_ns, struct store_error *error)
{
	const struct extract_note note[] = {
		{"pinned_uid", NULL, job->uid},
		{"pinned_labels", job->labels, 0},
		{"pinned_by", NULL, m->ask->by},
		{"pinned_group", m->group, 0},
		{"pinned_keep", NULL, m->ask->keep},
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
	if (asprintf(&path, "%s/%s", m->store->path, *m->making) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return extract_write(&e, path, error);
}

/* In our copy, what the daemon will do: what this one takes the place of goes. */
static int note(struct pin_making *m, const struct found_job *job)
{
	int r = store_pin_note(m->store, *m->making);
	size_t at, made = store_pin_find(m->store, *m->making);
	/* what cannot be read back now is whole nevertheless: the daemon looks at it, and again later */
	if (r == STORE_CORRUPT || r == -ENOENT || r == -ENOMEM)
		return r;
	const uint64_t bytes = r == 0 ? m->store->pin[made].bytes : 0;
	add_row(m, job, PIN_MADE, *m->making, bytes);
	while ((at = store_pin_surplus(m->store, m->ask->by, m->group, m->ask->keep, 0)) <
		m->store->n_pins)
		store_pin_drop(m->store, at);
	return 0;
}

/* False: it has been said why. */
static bool pin_one(struct pin_making *m, const struct found_job *job)
{
	struct store_error error = {"", ""};
	int64_t now_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	size_t known = store_pin_of(m->store, job->uid, job->labels, job->end_ns);
	if (job->is_partly_unread) {
		say_unread(m, job);
		return false;
	}
	/* one that goes with the next runs is no answer to who keeps it until it is unpinned */
	if (known < m->store->n_pins && (m->store->pin[known].keep == 0 || m->ask->keep > 0)) {
		add_row(m, job, PIN_KNOWN, m->store->pin[known].name, m->store->pin[known].bytes);
		return true;
	}
	/* the pins before this one, and recordings, have taken some since the daemon looked */
	store_pin_measure(m->store, &m->limits);
	const struct pin_room room =
		store_pin_room(m->store, &m->limits, m->ask->by, m->group, m->ask->keep);
	if (m->store->n_pins >= STORE_PINS_MAX || room.bytes < STORE_PIN_BYTES_MIN) {
		say_full(m, job, &room);
		return false;
	}
	int r = store_pin_name(m->store, job->start_ns, job->boot_id, *m->making);
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

/* Those that the report has already still run. */
static bool runs(const struct pin_making *m, const struct found_job *job)
{
	for (uint32_t i = 0; i < m->report->n_jobs; i++)
		if (m->report->job[i].state == PIN_RUNS && m->report->job[i].uid == job->uid &&
			strcmp(m->report->job[i].labels, job->labels) == 0)
			return true;
	return false;
}

/* How many of the latest are wanted; SIZE_MAX: too many are. */
static size_t how_many(const struct pin_making *m, size_t n_found)
{
	size_t most = PIN_JOBS_MAX - m->report->n_jobs, wanted = m->ask->last;
	if (wanted == 0 || (m->ask->keep > 0 && m->ask->keep < wanted))
		wanted = m->ask->keep > 0 ? m->ask->keep : n_found;
	/* the running ones are the latest */
	if (m->ask->last > 0 || m->ask->keep > 0)
		wanted = wanted > m->report->n_jobs ? wanted - m->report->n_jobs : 0;
	wanted = wanted < n_found ? wanted : n_found;
	return wanted > most ? SIZE_MAX : wanted;
}

void pin_make(struct pin_making *m)
{
	struct found_jobs jobs = {0};
	const struct pin_wanted wanted = {
		.all_users = m->ask->all_users && !m->exact,
		.uid = m->exact ? m->exact_uid : m->ask->by,
		.label = m->ask->label,
		.n_labels = m->ask->n_labels,
		.exact = m->exact,
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
		say(m->report, PIN_FAILED, "Try again later.", "jobs cannot be looked for: %s",
			strerror(-r));
	else if (n == 0 && m->report->n_jobs == 0 && jobs.any_unread)
		say(m->report, PIN_FAILED, "Check its disc, and try again.",
			"no such job is found, and a file of the store cannot be read now");
	else if (n == 0 && m->report->n_jobs == 0)
		m->report->outcome = PIN_NONE;
	else
		while (n_wanted > 0 && pin_one(m, &jobs.job[n_wanted - 1]))
			n_wanted--;
	found_jobs_clear(&jobs);
}
