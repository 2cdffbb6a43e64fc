/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/store/pin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/store/key.h"
#include "daemon/store/segment/segment.h"
#include "daemon/store/store_private.h"
#include "proto/base/array.h"
#include "proto/base/hash.h"
#include "proto/base/memory.h"

#define FOLDER "pinned/"
#define NAMES_A_SECOND_MAX 1000 /* jobs that began in one second */

DEFINE_CLEANUP(DIR *, closedir)
DEFINE_CLEANUP(sqlite3 *, sqlite3_close)
DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

/* --- names ------------------------------------------------------------------------------------ */

/* Names of pins are those of windows, in another folder. */
static bool is_name(const char *name)
{
	char window[STORE_NAME_BYTES];
	enum tier tier;
	int64_t start_ns;
	if (strncmp(name, FOLDER, strlen(FOLDER)) != 0 || strlen(name) >= sizeof(window))
		return false;
	snprintf(window, sizeof(window), "window/%.*s", (int)(sizeof(window) - sizeof("window/")),
		name + strlen(FOLDER));
	return store_name_parse(window, &tier, &start_ns);
}

/* A file left by a killed child: its name is that of a pin with a suffix. */
static bool is_unfinished(const char *name)
{
	static const char *const suffix[] = {".new", ".new-journal"};
	size_t n = strlen(name);
	for (size_t i = 0; i < sizeof(suffix) / sizeof(*suffix); i++) {
		char pin[STORE_NAME_BYTES];
		size_t n_suffix = strlen(suffix[i]);
		if (n <= n_suffix || n - n_suffix >= sizeof(pin) ||
			strcmp(name + n - n_suffix, suffix[i]) != 0)
			continue;
		snprintf(pin, sizeof(pin), "%.*s", (int)(n - n_suffix), name);
		return is_name(pin);
	}
	return false;
}

int store_pin_name(
	struct store *s, int64_t start_ns, const char *boot_id, char name[STORE_NAME_BYTES])
{
	for (unsigned n = 1; n <= NAMES_A_SECOND_MAX; n++) {
		char window[STORE_NAME_BYTES];
		store_name(window, TIER_WINDOW, start_ns, boot_id, n);
		snprintf(name, STORE_NAME_BYTES, FOLDER "%.*s",
			(int)(STORE_NAME_BYTES - sizeof(FOLDER)), strchr(window, '/') + 1);
		if (faccessat(s->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
	}
	return -EEXIST;
}

/* --- the list --------------------------------------------------------------------------------- */

static void pin_clearp(struct store_pin *p)
{
	free(p->labels);
	free(p->group);
	*p = (struct store_pin){0};
}

void store_pin_drop(struct store *s, size_t at)
{
	pin_clearp(&s->pin[at]);
	s->n_pins--;
	memmove(&s->pin[at], &s->pin[at + 1], (s->n_pins - at) * sizeof(*s->pin));
}

size_t store_pin_find(const struct store *s, const char *name)
{
	size_t at = 0;
	while (at < s->n_pins && strcmp(s->pin[at].name, name) != 0)
		at++;
	return at;
}

/* Jobs that began in the same window have the same start: then the job that ended first is older,
 * and among equal jobs the one that was pinned first. Negative: a is older; never 0, since names
 * differ. */
static int compare_age(const struct store_pin *a, const struct store_pin *b)
{
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	if (a->pinned_ns != b->pinned_ns)
		return a->pinned_ns < b->pinned_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

size_t store_pin_older(const struct store *s, const struct store_pin *than)
{
	size_t from = 0, to = s->n_pins;
	while (from < to) {
		const size_t middle = from + (to - from) / 2;
		if (compare_age(&s->pin[middle], than) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from > 0 ? from - 1 : s->n_pins;
}

static uint64_t hash_of(const char *text)
{
	return hash_bytes(text, strlen(text));
}

/* Enter a pin in its place in the list, which takes over its texts. 0; -ENOSPC; -ENOMEM. */
static int enter(struct store *s, struct store_pin *p)
{
	if (s->n_pins >= STORE_PINS_MAX)
		return -ENOSPC;
	int r = array_grow(&s->pin, &s->size_pins, (uint32_t)s->n_pins + 1, sizeof(*p));
	if (r < 0)
		return r;
	p->labels_hash = hash_of(p->labels);
	p->group_hash = hash_of(p->group);
	size_t at = s->n_pins;
	while (at > 0 && compare_age(&s->pin[at - 1], p) > 0)
		at--;
	memmove(&s->pin[at + 1], &s->pin[at], (s->n_pins - at) * sizeof(*p));
	s->pin[at] = *p;
	s->n_pins++;
	*p = (struct store_pin){0};
	return 0;
}

/* --- the meta of a file ----------------------------------------------------------------------- */

/* A file is damaged only if SQLite says so; other errors may be temporary. STORE_CORRUPT or -errno.
 * Source: https://www.sqlite.org/rescode.html. */
static int outcome_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return STORE_CORRUPT;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	default:
		return -EIO;
	}
}

/* The same of SEGMENT_*. A file that a newer mperf wrote stays for that one. */
static int outcome_of_open(int r)
{
	switch (r) {
	case SEGMENT_ABSENT:
		return -ENOENT;
	case SEGMENT_OTHER_VERSION:
		return -ENOTSUP;
	case SEGMENT_HELD:
		return -EBUSY;
	case SEGMENT_REFUSED:
	case SEGMENT_NO_SPACE:
	case SEGMENT_READ_ONLY:
		return -EIO;
	default:
		return r > 0 ? STORE_CORRUPT : r;
	}
}

#define META(key) "(SELECT value FROM meta WHERE key = 'pinned_" key "'), "
static const char pin_text[] = "SELECT " META("labels") META("group") META("uid") META("by") META(
	"keep") META("ns") "min(realtime_ns), max(realtime_ns + end_ns - start_ns) FROM window";

static int take_labels(sqlite3_stmt *q, int column, char **ret_text)
{
	struct label label[LABELS_MAX];
	const char *text = (const char *)sqlite3_column_text(q, column);
	if (!text || labels_read(text, label) == 0)
		return STORE_CORRUPT;
	*ret_text = strdup(text);
	return *ret_text ? 0 : -ENOMEM;
}

/* 0, STORE_CORRUPT, -errno. */
static int read_pin(sqlite3 *db, struct store_pin *p)
{
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, pin_text, -1, &q, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc != SQLITE_ROW)
		return rc == SQLITE_DONE ? STORE_CORRUPT : outcome_of(rc);
	p->uid = (uint32_t)sqlite3_column_int64(q, 2);
	p->by = (uint32_t)sqlite3_column_int64(q, 3);
	p->keep = (uint32_t)sqlite3_column_int64(q, 4);
	p->pinned_ns = sqlite3_column_int64(q, 5);
	p->start_ns = sqlite3_column_int64(q, 6);
	p->end_ns = sqlite3_column_int64(q, 7);
	if (p->start_ns <= 0 || p->end_ns < p->start_ns)
		return STORE_CORRUPT;
	int r = take_labels(q, 0, &p->labels);
	return r == 0 ? take_labels(q, 1, &p->group) : r;
}

/* 0; STORE_CORRUPT; -ENOENT; -ENOTSUP; -errno. */
static int look(const struct store *s, struct store_pin *p)
{
	struct segment_error error = {"", ""};
	struct store_file f = {0};
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	_cleanup_(freep) char *path = store_path(s, p->name);
	if (!path)
		return -ENOMEM;
	memcpy(f.name, p->name, sizeof(f.name));
	int r = store_look_size(s, &f);
	if (r != 0)
		return r == STORE_GONE ? -ENOENT : r;
	p->bytes = f.bytes;
	/* we name files only once they are sealed, so an unsealed one is not ours */
	int whole = segment_seal_is_whole(path);
	if (whole <= 0)
		return whole < 0 ? whole : STORE_CORRUPT;
	r = outcome_of_open(segment_open_live(path, &db, &error));
	return r == 0 ? read_pin(db, p) : r;
}

/* Move it to corrupt/, where it counts against the budget and is removed first. */
static int set_aside(struct store *s, const char *name)
{
	struct store_file f = {.corrupt = true};
	size_t at;
	snprintf(f.name, sizeof(f.name), "corrupt/pinned-%.*s",
		(int)(sizeof(f.name) - sizeof("corrupt/pinned-")), name + strlen(FOLDER));
	if (renameat(s->fd, name, s->fd, f.name) < 0)
		return -errno;
	s->n_corrupt++;
	int r = store_look_size(s, &f);
	return r == 0 ? store_enter(s, &f, &at) : r < 0 ? r : 0;
}

int store_pin_set_aside(struct store *s, const char *name)
{
	size_t at = store_pin_find(s, name);
	if (at == s->n_pins)
		return 0;
	int r = s->read_only ? 0 : set_aside(s, name);
	store_pin_drop(s, at); /* if it cannot be moved, it is not read any more either */
	store_sum(s);
	return r;
}

int store_pin_note(struct store *s, const char *name)
{
	_cleanup_(pin_clearp) struct store_pin p = {0};
	if (!is_name(name))
		return -EINVAL;
	memcpy(p.name, name, strlen(name) + 1);
	size_t at = store_pin_find(s, name);
	if (at < s->n_pins)
		store_pin_drop(s, at);
	int r = look(s, &p);
	if (r == 0)
		r = enter(s, &p);
	else if (r == STORE_CORRUPT && !s->read_only)
		r = set_aside(s, name) < 0 ? -EIO : STORE_CORRUPT;
	s->pins_unread |= r < 0 && r != -ENOENT && r != -ENOTSUP && r != -ENOSPC;
	store_sum(s);
	return r;
}

int store_pin_remove(struct store *s, size_t at)
{
	int r = store_unlink(s, s->pin[at].name);
	if (r < 0)
		return r;
	store_pin_drop(s, at);
	store_sum(s);
	return 0;
}

void store_pin_remove_unfinished(const struct store *s, const char *name)
{
	(void)store_unlink(s, name);
}

/* NULL with *ret_r: 0, there is none; -errno. */
static DIR *open_folder(const struct store *s, int *ret_r)
{
	int fd = openat(s->fd, "pinned", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	*ret_r = d || errno == ENOENT ? 0 : -errno;
	if (!d)
		closep(&fd);
	return d;
}

/* Note at most n_max pins that the list does not have. 0 or -errno. */
static int look_in_folder(struct store *s, size_t n_max, bool tidy)
{
	int r;
	size_t n_unlisted = 0, n_looks = 0;
	_cleanup_(closedirp) DIR *d = open_folder(s, &r);
	if (!d)
		return r;
	s->pins_unread = false;
	for (struct dirent *entry; (entry = readdir(d)) && r != -ENOMEM;) {
		char name[NAME_MAX + sizeof(FOLDER)];
		snprintf(name, sizeof(name), FOLDER "%s", entry->d_name);
		if (tidy && is_unfinished(name))
			unlinkat(s->fd, name, 0);
		if (!is_name(name) || store_pin_find(s, name) < s->n_pins ||
			n_unlisted++ < s->next_pin_look)
			continue;
		if (n_looks == n_max) {
			s->next_pin_look = n_unlisted - 1;
			s->pins_unread = true; /* the others come at the next call */
			return 0;
		}
		n_looks++;
		r = store_pin_note(s, name);
		if (r == 0)
			n_unlisted--;
	}
	/* some files were skipped, if it did not begin with the first */
	s->pins_unread |= s->next_pin_look > 0;
	s->next_pin_look = 0;
	return r == -ENOMEM ? r : 0;
}

int store_scan_pins(struct store *s)
{
	return look_in_folder(s, SIZE_MAX, true);
}

int store_look_for_pins(struct store *s, size_t n_max)
{
	return look_in_folder(s, n_max, false);
}

/* --- groups and room -------------------------------------------------------------------------- */

static bool is_of(const struct store_pin *p, uint32_t by, const char *group, uint64_t group_hash)
{
	return p->by == by && p->group_hash == group_hash && strcmp(p->group, group) == 0;
}

size_t store_pin_of(const struct store *s, uint32_t uid, const char *labels, int64_t end_ns)
{
	const uint64_t hash = hash_of(labels);
	size_t at = 0;
	while (at < s->n_pins &&
		(s->pin[at].uid != uid || s->pin[at].labels_hash != hash ||
			strcmp(s->pin[at].labels, labels) != 0 || s->pin[at].pinned_ns < end_ns))
		at++;
	return at;
}

size_t store_pin_surplus(const struct store *s, uint32_t by, const char *group, uint32_t keep)
{
	const uint64_t hash = hash_of(group);
	size_t n = 0, oldest = s->n_pins;
	if (keep == 0)
		return s->n_pins;
	for (size_t i = 0; i < s->n_pins; i++) {
		if (!is_of(&s->pin[i], by, group, hash))
			continue;
		n++;
		oldest = oldest == s->n_pins ? i : oldest;
	}
	return n > keep ? oldest : s->n_pins;
}

static uint64_t less(uint64_t limit, uint64_t used)
{
	return limit > used ? limit - used : 0;
}

void store_pin_measure(const struct store *s, struct pin_limits *limits)
{
	struct statvfs fs;
	if (fstatvfs(s->fd, &fs) == 0)
		limits->free_bytes = less(fs.f_bavail * fs.f_frsize, limits->min_free_bytes);
}

struct pin_room store_pin_room(const struct store *s, const struct pin_limits *l, uint32_t by,
	const char *group, uint32_t keep)
{
	const uint64_t hash = hash_of(group);
	uint64_t all = 0, users = 0;
	size_t n = 0, n_gone = 0;
	for (size_t i = 0; i < s->n_pins; i++)
		n += is_of(&s->pin[i], by, group, hash);
	/* the oldest of the group, which may be several if fewer are kept than before */
	const size_t goes = keep > 0 && n + 1 > keep ? n + 1 - keep : 0;
	for (size_t i = 0; i < s->n_pins; i++) {
		if (n_gone < goes && is_of(&s->pin[i], by, group, hash)) {
			n_gone++;
			continue;
		}
		all += s->pin[i].bytes;
		users += s->pin[i].by == by ? s->pin[i].bytes : 0;
	}
	struct pin_room room = {less(l->all_bytes, all), PIN_ROOM_ALL};
	uint64_t own = less(l->user_bytes, users);
	if (own < room.bytes)
		room = (struct pin_room){own, PIN_ROOM_USER};
	if (l->free_bytes < room.bytes)
		room = (struct pin_room){l->free_bytes, PIN_ROOM_DISC};
	return room;
}

/* --- for queries ------------------------------------------------------------------------------ */

static bool may_match(const struct pin_wish *wish, const struct label *label, size_t n)
{
	for (size_t i = 0; i < wish->n; i++)
		if (!label_is_of_cgroup(wish->label[i].key) &&
			!label_matches(&wish->label[i], label, n))
			return false;
	return true;
}

static bool may_match_any(const struct store_pin *p, const struct pin_question *q)
{
	struct label label[LABELS_MAX];
	const size_t n = labels_read(p->labels, label);
	for (size_t i = 0; i < q->n_wishes; i++)
		if (may_match(&q->wish[i], label, n))
			return true;
	return false;
}

static bool same_job(const struct store_pin *a, const struct store_pin *b)
{
	return a->uid == b->uid && a->labels_hash == b->labels_hash &&
	       strcmp(a->labels, b->labels) == 0;
}

/* Pins are sorted, oldest first: time that two pins have of the same job is read from the later
 * one. */
static void cut(struct pin_part *part, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n && part[i].next == 0; k++) {
			if (!same_job(part[i].pin, part[k].pin))
				continue;
			part[i].next = (uint32_t)k + 1;
			if (part[k].pin->pinned_ns < part[i].pin->pinned_ns &&
				part[k].until_ns <= part[i].until_ns)
				part[k].until_ns = part[k].since_ns; /* all of its time is in the
								      * other */
			else if (part[i].until_ns > part[k].since_ns)
				part[i].until_ns = part[k].since_ns;
		}
}

int store_pin_select(const struct store *s, const struct pin_question *q,
	struct pin_part **ret_part, size_t *ret_n_parts)
{
	struct pin_part *part = calloc(s->n_pins + 1, sizeof(*part));
	size_t n_parts = 0;
	if (!part)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_pins; i++) {
		const struct store_pin *p = &s->pin[i];
		if ((q->uid && p->uid != *q->uid) || p->end_ns <= q->since_ns ||
			(q->until_ns > 0 && p->start_ns >= q->until_ns) || !may_match_any(p, q))
			continue;
		part[n_parts++] =
			(struct pin_part){.pin = p, .since_ns = p->start_ns, .until_ns = p->end_ns};
	}
	cut(part, n_parts);
	*ret_part = part;
	*ret_n_parts = n_parts;
	return 0;
}

bool store_pin_matches(const char *labels, const struct label *wanted, size_t n)
{
	struct label label[LABELS_MAX];
	return labels_match(wanted, n, label, labels_read(labels, label));
}
