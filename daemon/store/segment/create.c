/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The creation of a segment, and its removal if that fails
 *
 * We create the file, exclusively and for its owner alone, before SQLite opens it, and check that
 * SQLite opened that very file. Schema, meta, events and harts are one transaction while the
 * journal is still an ordinary one, so that the header identifies the file as ours from the first
 * moment on; after that the journal is a WAL. No process reads a client's recording before it is
 * sealed, so the index of its WAL is in our memory (locking_mode=EXCLUSIVE). A live segment of the
 * store has the index in a file, and readers in other processes take their locks there.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/sampler/annotate.h"
#include "daemon/store/segment/note.h"
#include "daemon/store/segment/write.h"
#include "proto/base/array.h"
#include "proto/base/memory.h"

#ifndef MPERF_VERSION
#define MPERF_VERSION "0"
#endif

/* Readers never make the writer wait; one that replays the log after a crash may for a moment. */
#define WRITER_WAIT_MS 50

const char segment_schema[] =
#include "daemon/store/segment/schema.sql.inc"
	;

static const char *const statement_text[N_SEGMENT_STATEMENTS] = {
	[BEGIN_TRANSACTION] = "BEGIN IMMEDIATE",
	[COMMIT_TRANSACTION] = "COMMIT",
	[INSERT_META] = "INSERT OR REPLACE INTO meta VALUES (?, ?)",
	[INSERT_EVENT] = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[INSERT_HART] = "INSERT OR IGNORE INTO hart VALUES (?, ?, ?, ?, ?)",
	[INSERT_CGROUP] = "INSERT OR IGNORE INTO cgroup VALUES (?, ?)",
	[INSERT_TASK] = "INSERT INTO task VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[INSERT_LABEL_SET] = "INSERT OR IGNORE INTO label_set VALUES (?, ?, ?)",
	[INSERT_TASK_LABEL_SET] = "INSERT OR REPLACE INTO task_label_set VALUES (?, ?)",
	[INSERT_FILE] = "INSERT INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[INSERT_FRAME] = "INSERT INTO frame VALUES (?, ?, ?, ?)",
	[INSERT_FUNCTION] = "INSERT INTO function VALUES (?, ?)",
	[INSERT_SOURCE] = "INSERT INTO source VALUES (?, ?)",
	[INSERT_PLACE] = "INSERT OR REPLACE INTO place VALUES (?, ?, ?, ?, ?, ?)",
	[INSERT_STACK] = "INSERT INTO stack VALUES (?, ?, ?)",
	[INSERT_WINDOW] = "INSERT INTO window VALUES (?, ?, ?, ?)",
	[INSERT_SAMPLE] = "INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[INSERT_READING] = "INSERT OR REPLACE INTO reading VALUES (?, ?, ?, ?, ?)",
	[INSERT_THREAD_TIME] =
		"INSERT INTO thread_time VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
		"lived_ns = lived_ns + excluded.lived_ns, ran_ns = ran_ns + excluded.ran_ns, "
		"ready_ns = ready_ns + excluded.ready_ns, unsplit_ns = unsplit_ns + "
		"excluded.unsplit_ns",
	[INSERT_MOMENT] = "INSERT INTO moment VALUES (?, ?)",
	[INSERT_SECOND] = "INSERT INTO second VALUES (?, ?, ?, ?)",
	[INSERT_LOSS] = ("INSERT INTO loss VALUES (?, ?, ?, ?) "
			 "ON CONFLICT DO UPDATE SET count = count + excluded.count"),
	[INSERT_LOOP_SITE] = "INSERT INTO loop_site VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[INSERT_LOOP_METRIC] = "INSERT INTO loop_metric VALUES (?, ?, ?)",
	[INSERT_LOOP_COUNT] = "INSERT INTO loop_count VALUES (?, ?, ?, ?, ?, ?)",
	[UPDATE_LOOP_SITE] = "UPDATE loop_site SET subprogram = ?2, source = ifnull(?3, source), "
			     "line = ?4, inlined_at = ?5 WHERE id = ?1",
	/* the parent may have been freed long after its end; it was written earlier */
	[UPDATE_TASK] = "UPDATE task SET pid = ?2, tid = ?3, process = ?4, "
			"parent = ifnull(?5, parent), start_ns = ?6, end_ns = ?7, comm = ?8, "
			"exe = ?9, argv = ?10, cgroup = ?11, uid = ?12, kernel_thread = ?13, "
			"account = ?14 WHERE id = ?1",
	[UPDATE_FILE] = "UPDATE file SET state = ?2, has_symbols = ?3, has_debug = ?4, build_id = "
			"?5 WHERE id = ?1",
	[UPDATE_FRAME] = "UPDATE frame SET state = ?2 WHERE id = ?1",
	[UPDATE_LEADER] = "UPDATE hart SET leader = ?2 WHERE id = ?1",
};

/* path with its folder resolved, since SQLITE_OPEN_NOFOLLOW allows no symbolic link in it. */
static int resolve_folder(const char *path, char **ret_path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	if (!*name)
		return -EISDIR;
	_cleanup_(freep) char *folder =
		slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	if (!folder)
		return -ENOMEM;
	_cleanup_(freep) char *real = realpath(folder, NULL);
	if (!real)
		return -errno;
	/* "/" already ends in what the format adds */
	char *joined;
	if (asprintf(&joined, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < 0)
		return -ENOMEM;
	*ret_path = joined;
	return 0;
}

/* SQLite opens a file by name: check that it opened the file that we made. */
static int same_file(struct segment *g)
{
	struct stat ours, there;
	int moved = 0;
	if (fstat(g->fd, &ours) < 0 || lstat(g->path, &there) < 0)
		return -errno;
	sqlite3_file_control(g->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	return moved || ours.st_dev != there.st_dev || ours.st_ino != there.st_ino ? -ESTALE : 0;
}

static int open_file(struct segment *g, const char *path)
{
	int r = resolve_folder(path, &g->path);
	if (r < 0)
		return r;
	mode_t mode = g->live ? 0640 : 0600;
	g->fd = open(g->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (g->fd < 0)
		return errno == ENOSPC || errno == EDQUOT ? SEGMENT_NO_SPACE
		       : errno == EROFS                   ? SEGMENT_READ_ONLY
							  : -errno;
	/* regardless of the umask; SQLite creates the log and its index with the mode of the file
	 * */
	if (fchmod(g->fd, mode) < 0)
		return -errno;
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
		    SQLITE_OPEN_EXRESCODE;
	int rc = sqlite3_open_v2(g->path, &g->db, flags, NULL);
	if (rc != SQLITE_OK)
		return g->db ? segment_outcome(g, rc) : -ENOMEM;
	return same_file(g);
}

static int write_meta(struct segment *g, const struct segment_meta *m, unsigned cut)
{
	const struct {
		const char *key;
		struct cell value;
	} rows[] = {
		{"boot_id", CELL_T(m->boot_id)},
		{"monotonic_ns", CELL_I(m->monotonic_ns)},
		{"realtime_ns", CELL_I(m->realtime_ns)},
		{"host", CELL_T(m->host)},
		{"release", CELL_T(m->release)},
		{"arch", CELL_T(m->arch)},
		{"hz", CELL_I(m->hz)},
		{"command", CELL_T(m->command)},
		{"all", CELL_I(m->all)},
		{"tier", CELL_T(m->tier ? m->tier : "window")},
		{"software", CELL_T("mperfd " MPERF_VERSION)},
		{"sealed", CELL_I(0)},
	};
	int r = 0;
	g->hz = m->hz;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && r == 0; i++)
		if (rows[i].value.kind != CELL_TEXT || rows[i].value.bytes)
			r = ROW(g, INSERT_META, CELL_T(rows[i].key), rows[i].value);
	if (r == 0 && cut)
		r = ROW(g, INSERT_META, CELL_T("switches"), CELL_I(cut));
	g->cut = cut;
	return r;
}

static int event_modifiers(const struct event *e)
{
	return e->exclude_user | e->exclude_kernel << 1 | e->exclude_hv << 2 | e->precise << 4;
}

static bool event_same(const struct event *a, const struct event *b)
{
	return strcmp(a->pmu, b->pmu) == 0 && a->type == b->type && a->config == b->config &&
	       a->config1 == b->config1 && a->config2 == b->config2 &&
	       event_modifiers(a) == event_modifiers(b);
}

static int write_event(struct segment *g, int64_t id, const struct event *e)
{
	return ROW(g, INSERT_EVENT, CELL_I(id), CELL_T(e->pmu), CELL_I(e->type), CELL_I(e->config),
		CELL_I(e->config1), CELL_I(e->config2), CELL_I(event_modifiers(e)), CELL_T(e->name),
		CELL_T(event_is_clock(e) || e->type == EVENT_TYPE_OFFCPU ? "ns" : "count"));
}

/* The id of an event that stands in a list before position n; 0: none does. */
static int64_t id_of_same(
	const struct event *e, const struct event_list *list, int n, const int64_t *id)
{
	for (int i = 0; i < n; i++)
		if (event_same(e, &list->event[i]))
			return id[i];
	return 0;
}

static int write_events(struct segment *g, const struct event_list *list, bool no_waits)
{
	int r = 0;
	g->n_events = list->n_events;
	for (int i = 0; i < list->n_events && r == 0; i++) {
		const struct event *e = &list->event[i];
		g->clock[i] = event_is_clock(e) || e->type == EVENT_TYPE_OFFCPU;
		g->event[i] = id_of_same(e, list, i, g->event);
		if (g->event[i] || (no_waits && e->type == EVENT_TYPE_OFFCPU))
			continue;
		g->event[i] = i + 1;
		r = write_event(g, i + 1, e);
	}
	return r;
}

/* Events that harts count, after the sampling events. Rows of their counts have an event that never
 * samples, so that no reader takes them for samples. */
static int write_counted(
	struct segment *g, const struct segment_meta *m, const struct event_list *sampled)
{
	static const struct event row_of_counts = {.pmu = "software",
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.name = "counted"};
	const struct event_list *list = m->counted;
	int64_t next = sampled->n_events + 1;
	int r = 0;
	if (!list)
		return 0;
	for (int i = 0; i < list->n_events && r == 0; i++) {
		const struct event *e = &list->event[i];
		g->counted[i] = id_of_same(e, sampled, sampled->n_events, g->event);
		if (!g->counted[i])
			g->counted[i] = id_of_same(e, list, i, g->counted);
		if (g->counted[i])
			continue;
		g->counted[i] = next;
		r = write_event(g, next++, e);
	}
	if (r == 0)
		r = write_event(g, next, &row_of_counts);
	g->n_counted = list->n_events;
	g->counted_row = next;
	g->counted_serial = m->counted_serial;
	return r;
}

/* Write which core each hart is: formulas of metrics belong to cores. */
static int write_cores(struct segment *g, const struct sampler *s)
{
	const struct cores *cores = s->options.cores;
	char key[NOTE_KEY_BYTES_MAX], harts[NOTE_KEY_BYTES_MAX - 8];
	int r = 0;
	for (int hart = cores_kind(cores, 0); hart >= 0 && r == 0;
		hart = cores_kind(cores, hart + 1)) {
		const struct platform *p = cores_platform(cores, hart);
		const struct hart_set of = cores_of(cores, p);
		snprintf(key, sizeof(key), "core:%s", hart_set_says(&of, harts, sizeof(harts)));
		r = ROW(g, INSERT_META, CELL_T(key), CELL_T(p->name));
	}
	return r;
}

/* Write the errors that rotation adds to the counts of harts. */
static int write_rotations(struct segment *g, const struct segment_meta *m)
{
	char key[NOTE_KEY_BYTES_MAX];
	int r = 0;
	for (size_t i = 0; i < m->n_rotations && r == 0; i++) {
		const struct hart_rotation *t = &m->rotation[i];
		r = ROW(g, INSERT_META, CELL_T(note_turn_key(&t->harts, t->pass, key)),
			CELL_I((int64_t)(t->part * 1e6)));
	}
	return r;
}

static int write_harts(struct segment *g, const struct sampler *s)
{
	for (int hart = 0; hart < HARTS_MAX; hart++)
		g->hart_leader[hart] = -1;
	for (int hart = 0; s->plan && hart < s->machine.n_harts && hart < HARTS_MAX; hart++) {
		const struct plan *p = &s->plan[hart];
		if (p->rung == RUNG_NONE && !hart_set_has(&s->machine.online, hart))
			continue;
		int leader = -1;
		if (p->rung != RUNG_NONE)
			for (int i = g->n_events - 1; i >= 0; i--)
				if (event_same(&p->leader, &s->events.event[i]))
					leader = i;
		int r = ROW(g, INSERT_HART, CELL_I(hart), CELL_I(p->rung),
			CELL_T(p->reason[0] ? p->reason : NULL),
			CELL_I_OR_NULL(leader >= 0, g->event[leader]), CELL_I(p->user_only));
		if (r != 0)
			return r;
		g->hart_known[hart] = true;
		g->hart_planned[hart] = leader >= 0;
		g->hart_rung[hart] = (uint8_t)p->rung;
		g->hart_leader[hart] = leader;
	}
	return 0;
}

/* Write the number of occurrences that one sample stands for, for events that sample by
 * occurrences. */
static int write_periods(struct segment *g, const struct sampler *s)
{
	char key[NOTE_KEY_BYTES_MAX];
	int r = 0;
	for (int i = 0; s->options.period && i < s->events.n_events && r == 0; i++) {
		if (g->clock[i] || !event_leads(&s->events, i))
			continue;
		snprintf(key, sizeof(key), "period:%lld", (long long)g->event[i]);
		r = ROW(g, INSERT_META, CELL_T(key), CELL_I((int64_t)s->options.period));
	}
	return r;
}

/* Write sentences that every later answer from this file must give. */
static int write_notes(struct segment *g, const struct sampler *s, uint32_t hz)
{
	_cleanup_(freep) struct annotation *all = calloc(ANNOTATIONS_MAX, sizeof(*all));
	int r = all ? 0 : -ENOMEM;
	size_t n = all ? annotate_sampler(s, hz, all) : 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		char key[NOTE_KEY_BYTES_MAX];
		const struct note note = {
			.harts = all[i].harts,
			.event = all[i].event >= 0 ? g->event[all[i].event] : 0,
			.says = all[i].says,
		};
		r = ROW(g, INSERT_META, CELL_T(note_key(&note, key)), CELL_I(1));
	}
	return r;
}

static int prepare(struct segment *g)
{
	for (int i = 0; i < N_SEGMENT_STATEMENTS; i++) {
		int rc = sqlite3_prepare_v3(g->db, statement_text[i], -1, SQLITE_PREPARE_PERSISTENT,
			&g->statement[i], NULL);
		if (rc != SQLITE_OK)
			return segment_outcome(g, rc);
	}
	return 0;
}

static int remember_baseline(struct segment *g, const struct segment_meta *meta)
{
	size_t size = 0;
	if (!meta->lost || meta->n_harts <= 0)
		return 0;
	int r = array_grow_long(&g->lost, &size, (size_t)meta->n_harts, sizeof(*g->lost));
	if (r < 0)
		return r;
	memcpy(g->lost, meta->lost, (size_t)meta->n_harts * sizeof(*g->lost));
	g->n_harts = (int)size;
	return 0;
}

/* From now on the journal is a log; of a live segment its index is where readers find it. */
static int begin_log(struct segment *g)
{
	int r = segment_exec(g, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
	sqlite3_wal_hook(g->db, segment_watch_log, g);
	/* a log that grew long because of a reader is truncated when it restarts */
	char limit[64];
	snprintf(limit, sizeof(limit), "PRAGMA journal_size_limit=%d",
		2 * SEGMENT_WAL_PAGES * SEGMENT_PAGE_BYTES);
	if (r == 0)
		r = segment_exec(g, limit);
	/* read once, so that log and index exist: they show others that it is open */
	return r == 0 && g->live ? segment_exec(g, "SELECT count(*) FROM meta") : r;
}

static int fill(struct segment *g, const struct segment_meta *meta, const struct sampler *s)
{
	char pragmas[256];
	snprintf(pragmas, sizeof(pragmas),
		"PRAGMA page_size=%d; PRAGMA locking_mode=%s; PRAGMA temp_store=MEMORY;"
		"PRAGMA journal_mode=MEMORY; BEGIN; PRAGMA application_id=%d; PRAGMA "
		"user_version=%d",
		SEGMENT_PAGE_BYTES, g->live ? "NORMAL" : "EXCLUSIVE", SEGMENT_APPLICATION_ID,
		SEGMENT_VERSION);
	sqlite3_busy_timeout(g->db, WRITER_WAIT_MS);
	int r = segment_exec(g, pragmas);
	if (r == 0)
		r = segment_exec(g, segment_schema);
	if (r == 0)
		r = prepare(g);
	if (r == 0)
		r = write_meta(g, meta, sampler_cut(s));
	if (r == 0)
		r = write_events(g, &s->events, s->offcpu_of_some && !meta->waits);
	if (r == 0)
		r = write_counted(g, meta, &s->events);
	if (r == 0)
		r = write_harts(g, s);
	if (r == 0)
		r = write_cores(g, s);
	if (r == 0)
		r = write_rotations(g, meta);
	if (r == 0)
		r = write_periods(g, s);
	if (r == 0)
		r = write_notes(g, s, meta->hz);
	if (r == 0)
		r = segment_exec(g, "COMMIT");
	if (r == 0)
		r = begin_log(g);
	return r == 0 ? remember_baseline(g, meta) : r;
}

int segment_create(const char *path, const struct segment_meta *meta, const struct sampler *s,
	struct segment **ret_segment)
{
	struct segment *g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->fd = -1;
	g->live = meta->live;
	g->labels = meta->labels ? strdup(meta->labels) : NULL;
	g->labels_uid = meta->labels_uid;
	int r = meta->labels && !g->labels ? -ENOMEM : open_file(g, path);
	if (r == 0)
		r = fill(g, meta, s);
	if (r != 0) {
		/* do not remove a file that we did not make */
		segment_abandon(g, g->fd >= 0);
		return r;
	}
	*ret_segment = g;
	return 0;
}

static void names_clear(struct names *names)
{
	struct stored_name *name, *next;
	HASH_ITER (hh, names->by_text, name, next) {
		HASH_DEL(names->by_text, name);
		free(name);
	}
}

static void marks_clear(struct marks *m)
{
	for (size_t i = 0; i < m->n_pages; i++)
		free(m->page[i]);
	free(m->page);
}

int segment_close(struct segment *g)
{
	for (int i = 0; i < N_SEGMENT_STATEMENTS; i++)
		sqlite3_finalize(g->statement[i]);
	memset(g->statement, 0, sizeof(g->statement));
	segment_clear_moments(g);
	int r = g->db ? segment_outcome(g, sqlite3_close(g->db)) : 0;
	g->db = NULL;
	return r;
}

struct segment *segment_abandon(struct segment *g, bool remove)
{
	static const char *const suffix[] = {"", "-wal", "-shm", "-journal"};
	if (!g)
		return NULL;
	segment_close(g);
	g->trailer = trailer_free(g->trailer);
	closep(&g->fd);
	for (size_t i = 0; remove && g->path && i < sizeof(suffix) / sizeof(*suffix); i++) {
		char *name;
		if (asprintf(&name, "%s%s", g->path, suffix[i]) < 0)
			continue;
		unlink(name);
		free(name);
	}
	names_clear(&g->functions);
	names_clear(&g->sources);
	marks_clear(&g->tasks);
	marks_clear(&g->files);
	marks_clear(&g->frames);
	marks_clear(&g->stacks);
	marks_clear(&g->sites);
	marks_clear(&g->metrics);
	free(g->unnamed.frame);
	free(g->unnamed_sites.site);
	free(g->sighted.id);
	free(g->chain.id);
	free(g->living);
	free(g->lost);
	free(g->change);
	free(g->written);
	free(g->path);
	free(g->labels);
	free(g);
	return NULL;
}

struct segment *segment_forget(struct segment *g)
{
	/* the last process to close a log empties it; a child must not, though it seems to be the
	 * last */
	if (g && g->db)
		sqlite3_db_config(g->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return segment_abandon(g, false);
}
