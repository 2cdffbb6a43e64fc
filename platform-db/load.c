/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Folders in layers. A file is taken whole or not at all: it is read into a draft, merged onto the
 * platform's draft from earlier folders, checked against the other files of its own folder and
 * built; only then does the result replace the old one. So a faulty file never changes the
 * database.
 *
 * Drafts in third-party formats have no quirks and describe cores by expressions that cannot be
 * compared, so they stay separate, and are merged onto a platform when a hart matches both.
 */
#include "platform-db/platform.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform-db/draft.h"
#include "platform-db/foreign.h"

#define PLATFORMS_MAX 1024 /* cores; we ship about thirty */
#define MATCHES_MAX 64     /* cached identities; a machine has up to three */
#define VENDOR_DEPTH_MAX 3 /* depth of folders searched for a mapfile.csv */
#define MAPFILE "mapfile.csv"

struct entry {
	struct draft *draft; /* owned */
	const struct platform *platform;
};

struct match {
	struct platform_identity id;
	const struct platform *platform;
};

struct platform_db {
	unsigned n_others; /* references besides the first */
	struct pool *pool;
	struct complaints complaints;
	struct list entries; /* struct entry */
	struct list foreign; /* struct draft *, owned; later folders last */
	struct list built;   /* struct entry: of foreign drafts that were requested by name */
	struct list matches; /* struct match */
	char more[64];       /* the last error if there were too many */
	unsigned layer;
};

static const struct platform platform_empty = {
	.name = "unknown",
	.title = "unknown core",
	.generic = true,
	.origin = {"nothing is known", "no", "", 0},
	.vector_says = "",
	.selector = "",
};

static struct entry *entry_find(const struct platform_db *db, const char *name)
{
	struct entry *e = db->entries.items;
	for (size_t i = 0; i < db->entries.n; i++)
		if (strcmp(e[i].draft->name, name) == 0)
			return &e[i];
	return NULL;
}

/* --- files of our own ------------------------------------------------------------------------- */

static int check_pattern(const struct reader *r, const struct pattern *p, const struct draft *other)
{
	const struct pattern *with = other->cpus.items;
	for (size_t i = 0; i < other->cpus.n; i++)
		if (&with[i] != p && with[i].layer == p->layer && pattern_conflicts(p, &with[i]))
			return reader_wrong(r, p->origin.line,
				"a hart can match both this and %s:%d; add keys to one of them",
				with[i].origin.file, with[i].origin.line);
	return 0;
}

/* No hart may match two platforms of one folder without a rule that decides between them. */
static int check_patterns(
	const struct platform_db *db, const struct reader *r, const struct draft *d)
{
	const struct pattern *p = d->cpus.items;
	const struct entry *e = db->entries.items;
	int error = 0;
	for (size_t i = 0; i < d->cpus.n && !error; i++) {
		error = check_pattern(r, &p[i], d);
		for (size_t j = 0; j < db->entries.n && !error; j++)
			error = check_pattern(r, &p[i], e[j].draft);
	}
	return error;
}

static int place(struct platform_db *db, struct entry *old, struct draft **d,
	const struct platform *platform)
{
	if (!old)
		old = list_add(&db->entries);
	if (!old)
		return -ENOMEM;
	draft_free(old->draft);
	old->draft = TAKE_PTR(*d);
	old->platform = platform;
	return 0;
}

static int take_platform(struct platform_db *db, const struct reader *r, const char *folder)
{
	_cleanup_(draft_freep) struct draft *d = NULL;
	const struct node *root;
	int error = reader_document(r, true, &root);
	if (!error)
		error = draft_read(r, root, folder, &d);
	if (error)
		return error;
	d->layer = db->layer;
	struct pattern *p = d->cpus.items;
	for (size_t i = 0; i < d->cpus.n; i++)
		p[i].layer = db->layer;

	struct entry *old = entry_find(db, d->name);
	if (old && old->draft->layer == db->layer)
		return reader_wrong(r, d->origin.line,
			"a second file for platform %s; the first is %s", d->name,
			old->draft->origin.file);
	if (!old && db->entries.n == PLATFORMS_MAX)
		return reader_wrong(r, 0, "more than %d platforms", PLATFORMS_MAX);
	error = check_patterns(db, r, d);
	if (error)
		return error;

	if (old) {
		struct draft *merged;
		error = draft_merge(old->draft, d, &merged);
		if (error)
			return error;
		draft_free(d);
		d = merged;
	}
	const struct platform *platform;
	error = draft_build(r, d, &platform);
	return error ? error : place(db, old, &d, platform);
}

struct folder {
	struct platform_db *db;
	const char *path;
};

static int take_file(const struct reader *r, void *userdata)
{
	const struct folder *f = userdata;
	int error = take_platform(f->db, r, f->path);
	return error < 0 ? error : 0;
}

/* --- folders ---------------------------------------------------------------------------------- */

static int is_folder(const struct dirent *entry)
{
	return entry->d_name[0] != '.' &&
	       (entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN);
}

static int take_vendors(
	struct platform_db *db, const struct reader *r, const char *path, int depth);

/* A folder with a map is third-party data; other folders may contain such folders. */
static int take_vendor(struct platform_db *db, const struct reader *r, const char *path, int depth)
{
	_cleanup_(freep) char *map = NULL;
	if (asprintf(&map, "%s/" MAPFILE, path) < 0)
		return -ENOMEM;
	if (access(map, F_OK) < 0)
		return depth < VENDOR_DEPTH_MAX ? take_vendors(db, r, path, depth + 1) : 0;
	struct reader inner = *r;
	inner.file = pool_text(r->pool, map);
	return inner.file ? foreign_read(&inner, path, &db->foreign) : -ENOMEM;
}

static int take_vendors(struct platform_db *db, const struct reader *r, const char *path, int depth)
{
	struct dirent **folders;
	int n = scandir(path, &folders, is_folder, alphasort), error = 0;
	if (n < 0)
		return errno == ENOMEM ? -ENOMEM : 0; /* no folder, or one that we may not read */
	for (int i = 0; i < n; i++) {
		_cleanup_(freep) char *inner = NULL;
		if (!error && asprintf(&inner, "%s/%s", path, folders[i]->d_name) < 0)
			error = -ENOMEM;
		if (!error)
			error = take_vendor(db, r, inner, depth);
		free(folders[i]);
	}
	free(folders);
	return error;
}

static int take_folder(struct platform_db *db, const char *path)
{
	struct reader r = {.pool = db->pool, .complaints = &db->complaints};
	struct folder f = {db, path};
	_cleanup_(freep) char *map = NULL;
	r.file = pool_text(db->pool, path);
	if (!r.file || asprintf(&map, "%s/" MAPFILE, path) < 0)
		return -ENOMEM;
	if (access(map, F_OK) == 0)
		return take_vendor(db, &r, path, 0);

	int error = folder_each(&r, path, take_file, &f);
	if (error == -ENOMEM)
		return error;
	if (error < 0 && (db->layer == 0 || error != -ENOENT)) {
		error = reader_wrong(&r, 0, "the folder cannot be read: %s", strerror(-error));
		return error < 0 ? error : 0;
	}
	return take_vendors(db, &r, path, 0);
}

/* --- the database ----------------------------------------------------------------------------- */

struct platform_db *platform_db_ref(struct platform_db *db)
{
	if (db)
		db->n_others++;
	return db;
}

struct platform_db *platform_db_free(struct platform_db *db)
{
	if (!db)
		return NULL;
	if (db->n_others > 0) {
		db->n_others--;
		return NULL;
	}
	struct entry *e = db->entries.items;
	for (size_t i = 0; i < db->entries.n; i++)
		draft_free(e[i].draft);
	struct draft **d = db->foreign.items;
	for (size_t i = 0; i < db->foreign.n; i++)
		draft_free(d[i]);
	list_clear(&db->entries);
	list_clear(&db->foreign);
	list_clear(&db->built);
	list_clear(&db->matches);
	pool_free(db->pool);
	free(db);
	return NULL;
}

int platform_db_load(const char *const *folders, size_t n, struct platform_db **ret_db)
{
	_cleanup_(platform_db_freep) struct platform_db *db = calloc(1, sizeof(*db));
	if (!db)
		return -ENOMEM;
	*db = (struct platform_db){
		.pool = pool_new(),
		.entries = LIST_OF(struct entry),
		.foreign = LIST_OF(struct draft *),
		.built = LIST_OF(struct entry),
		.matches = LIST_OF(struct match),
	};
	if (!db->pool)
		return -ENOMEM;
	db->complaints.pool = db->pool;
	for (size_t i = 0; i < n; i++) {
		db->layer = (unsigned)i;
		int error = take_folder(db, folders[i]);
		if (error)
			return error;
	}
	if (db->complaints.n_more > 0)
		snprintf(db->more, sizeof(db->more), "and %zu more errors", db->complaints.n_more);
	*ret_db = TAKE_PTR(db);
	return 0;
}

const char *platform_db_error(const struct platform_db *db, size_t i)
{
	if (i == db->complaints.n && db->complaints.n_more > 0)
		return db->more;
	return i < db->complaints.n ? db->complaints.text[i] : NULL;
}

/* A third-party draft by itself, without our data on the core, for harts with that PMU. */
static const struct platform *build_kind(
	struct platform_db *db, const struct draft *d, const char *pmu)
{
	_cleanup_(draft_freep) struct draft *of_kind = NULL;
	struct reader r = {.pool = db->pool, .complaints = &db->complaints, .file = d->origin.file};
	const struct platform *built;
	bool is_built =
		draft_of_pmu(d, pmu, &of_kind) == 0 && draft_build(&r, of_kind, &built) == 0;
	return is_built ? built : &platform_empty;
}

static const struct platform *build_foreign(struct platform_db *db, struct draft *d)
{
	const struct entry *known = db->built.items;
	for (size_t i = 0; i < db->built.n; i++)
		if (known[i].draft == d)
			return known[i].platform;
	struct entry e = {.draft = d, .platform = build_kind(db, d, "")};
	list_append(&db->built, &e, 1); /* without memory it is built again */
	return e.platform;
}

/* Several rows of a map may name one folder; the first draft of that name is used. */
static struct draft *foreign_find(const struct platform_db *db, const char *name)
{
	struct draft *const *d = db->foreign.items;
	for (size_t i = 0; i < db->foreign.n; i++)
		if (strcmp(d[i]->name, name) == 0)
			return d[i];
	return NULL;
}

const struct platform *platform_db_at(struct platform_db *db, size_t i)
{
	const struct entry *e = db->entries.items;
	if (i < db->entries.n)
		return e[i].platform;
	struct draft *const *d = db->foreign.items;
	size_t rest = i - db->entries.n;
	for (size_t j = 0; j < db->foreign.n; j++)
		if (!entry_find(db, d[j]->name) && foreign_find(db, d[j]->name) == d[j] &&
			rest-- == 0)
			return build_foreign(db, d[j]);
	return NULL;
}

const struct platform *platform_db_find(struct platform_db *db, const char *name)
{
	const struct entry *e = entry_find(db, name);
	if (e)
		return e->platform;
	char folder[128];
	const char *pmu = strchr(name, ':');
	size_t n = pmu ? (size_t)(pmu - name) : strlen(name);
	snprintf(folder, sizeof(folder), "%.*s", n < sizeof(folder) ? (int)n : 0, name);
	struct draft *d = foreign_find(db, folder);
	return !d ? NULL : pmu ? build_kind(db, d, pmu + 1) : build_foreign(db, d);
}

/* --- finding a hart's platform ---------------------------------------------------------------- */

static const struct entry *own_match(
	const struct platform_db *db, const struct platform_identity *id, bool *ret_generic)
{
	const struct pattern *best = NULL;
	const struct entry *found = NULL, *e = db->entries.items;
	for (size_t i = 0; i < db->entries.n; i++) {
		const struct pattern *p = e[i].draft->cpus.items;
		for (size_t j = 0; j < e[i].draft->cpus.n; j++)
			if (pattern_matches(&p[j], id) &&
				(!best || pattern_is_better(&p[j], best, id))) {
				best = &p[j];
				found = &e[i];
			}
	}
	*ret_generic = !best || best->n_keys == 0;
	return found;
}

/* The last folder wins, and in it the first row. */
static const struct draft *foreign_match(
	const struct platform_db *db, const struct platform_identity *id)
{
	struct draft *const *d = db->foreign.items;
	const struct draft *found = NULL;
	for (size_t i = 0; i < db->foreign.n; i++) {
		const struct pattern *p = d[i]->cpus.items;
		bool newer = !found || p->origin.file != found->origin.file;
		if (newer && pattern_matches(p, id))
			found = d[i];
	}
	return found;
}

/* `pmu`: the hart's, as of its identity. */
static const struct platform *build_match(struct platform_db *db, const struct entry *own,
	const struct draft *over, const char *pmu, bool generic)
{
	_cleanup_(draft_freep) struct draft *d = NULL, *of_kind = NULL;
	struct reader r = {
		.pool = db->pool, .complaints = &db->complaints, .file = over->origin.file};
	const struct platform *built;
	if (draft_of_pmu(over, pmu, &of_kind) < 0 || draft_merge(own->draft, of_kind, &d) < 0)
		return own->platform;
	/* The vendor's name for a core is less specific than ours, but more than "generic". */
	if (generic)
		d->name = over->name;
	else
		d->title = own->draft->title;
	return draft_build(&r, d, &built) == 0 ? built : own->platform;
}

/* The same, and marked as the replacement for an undescribed core. */
static const struct platform *mark_generic(struct platform_db *db, const struct platform *p)
{
	struct platform *marked = pool_copy(db->pool, p, sizeof(*p));
	if (!marked)
		return &platform_empty;
	marked->generic = true;
	return marked;
}

static const struct platform *match(struct platform_db *db, const struct platform_identity *id)
{
	bool generic;
	const struct entry *own = own_match(db, id, &generic);
	const struct draft *over = foreign_match(db, id);
	if (!own)
		return &platform_empty;
	if (over)
		return build_match(db, own, over, id->pmu, generic);
	return generic ? mark_generic(db, own->platform) : own->platform;
}

static bool is_same(const struct platform_identity *a, const struct platform_identity *b)
{
	return a->arch == b->arch && a->read == b->read && a->mvendorid == b->mvendorid &&
	       a->marchid == b->marchid && a->mimpid == b->mimpid && a->midr == b->midr &&
	       a->family == b->family && a->model == b->model && a->stepping == b->stepping &&
	       strcmp(a->vendor, b->vendor) == 0 && strcmp(a->pmu, b->pmu) == 0 &&
	       strcmp(a->compatible, b->compatible) == 0;
}

const struct platform *platform_match(struct platform_db *db, const struct platform_identity *id)
{
	struct match *m = db->matches.items;
	for (size_t i = 0; i < db->matches.n; i++)
		if (is_same(&m[i].id, id))
			return m[i].platform;
	const struct platform *p = match(db, id);
	if (db->matches.n < MATCHES_MAX && (m = list_add(&db->matches)))
		*m = (struct match){*id, p};
	return p;
}
