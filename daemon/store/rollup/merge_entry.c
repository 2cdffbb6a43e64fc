/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Dictionaries of a merge, and the functions by which merge.sql uses them */

#include <stdio.h>
#include <string.h>

#include "daemon/loops/table.h"
#include "daemon/store/rollup/merge.h"

/* Maximum ancestors that are written with a process; one beyond them is no parent unless it has a row. */
#define ANCESTORS_MAX 64

static int64_t integer(sqlite3_value *const *v, int i)
{
	return sqlite3_value_int64(v[i]);
}

void merge_result(sqlite3_context *c, int outcome, uint32_t entry)
{
	if (outcome == KEY_TABLE_FULL)
		sqlite3_result_error(c, MERGE_FULL, -1);
	else if (outcome != 0)
		sqlite3_result_error_nomem(c);
	else
		sqlite3_result_int64(c, entry);
}

/* --- entries ---------------------------------------------------------------------------------- */

static int grow(struct merge_entries *e, uint32_t n)
{
	int r = array_grow(&e->row, &e->size_row, n, sizeof(*e->row));
	if (r == 0)
		r = array_grow(&e->origin, &e->size_origin, n, sizeof(*e->origin));
	if (r == 0)
		r = array_grow(&e->parent, &e->size_parent, n, sizeof(*e->parent));
	if (r == 0 && e->which == MERGE_SITE)
		r = array_grow(&e->depth, &e->size_depth, n, sizeof(*e->depth));
	return r == 0 ? array_grow(&e->given, &e->size_given, n, sizeof(*e->given)) : r;
}

int merge_enter(struct merge_entries *e, const struct key *key, uint32_t *ret_entry)
{
	uint32_t index;
	int r = key_get(&e->keys, key, &index);
	*ret_entry = index + 1;
	return r == 0 ? grow(e, index + 2) : r;
}

static int enter_parts(struct merge_entries *e, int n, sqlite3_value *const *v, uint32_t *ret_entry)
{
	struct key key = {{0}};
	for (int i = 0; i < n && i < 4; i++)
		key.part[i] = (uint64_t)integer(v, i);
	uint32_t before = e->keys.n_keys;
	int r = merge_enter(e, &key, ret_entry);
	bool new = e->keys.n_keys > before;
	if (r == 0 && new && e->which == MERGE_STACK)
		e->parent[*ret_entry] = (uint32_t)key.part[0];
	if (r == 0 && new && n == 5) {
		e->parent[*ret_entry] = (uint32_t)integer(v, 4);
		if (e->depth && e->parent[*ret_entry])
			e->depth[*ret_entry] = e->depth[e->parent[*ret_entry]] + 1;
	}
	return r;
}

static int set_id(struct merge_entries *e, int64_t id, uint32_t entry)
{
	int r = array_grow(&e->entry, &e->n_ids, (uint32_t)id + 1, sizeof(*e->entry));
	if (r == 0)
		e->entry[id] = entry;
	return r;
}

/* May the side's row have this id? If not, the target is damaged, or the source if it is an event's; other rows
 * of the source are ignored. */
static bool is_id(sqlite3_context *c, const struct merge_entries *e, int64_t id)
{
	bool event = e->which == MERGE_EVENT;
	if (id > 0 && id <= (event ? ROLLUP_EVENTS_MAX : ROLLUP_IDS_MAX))
		return true;
	if (e->merge->side == MERGE_MAIN)
		sqlite3_result_error(c, "an id is out of bounds", -1);
	else if (event)
		sqlite3_result_error(c, "it has more events than a file can hold", -1);
	return false;
}

/* Is an entry of this dictionary only a text? */
static bool is_name(const struct merge_entries *e)
{
	return e->which == MERGE_CGROUP || e->which == MERGE_LABELS || e->which == MERGE_FUNCTION ||
	       e->which == MERGE_SOURCE;
}

static void f_entry(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct merge_entries *e = sqlite3_user_data(c);
	const int64_t id = integer(v, 0);
	uint32_t entry = 0;
	if (!is_id(c, e, id))
		return;
	if (is_name(e) && sqlite3_value_type(v[1]) == SQLITE_NULL) {
		if (e->merge->side == MERGE_MAIN)
			sqlite3_result_error(c, "a name is missing", -1);
		return; /* in the source it refers to nothing */
	}
	int r = enter_parts(e, n - 1, v + 1, &entry);
	if (r == 0)
		r = set_id(e, id, entry);
	if (r == 0 && e->merge->side == MERGE_MAIN) {
		/* a content with two rows keeps the first; the id of the second is not reused */
		if (e->row[entry] == 0)
			e->row[entry] = (uint32_t)id;
		if (id > e->n_rows)
			e->n_rows = (uint32_t)id;
	} else if (r == 0 && e->origin[entry] == 0)
		e->origin[entry] = (uint32_t)id;
	merge_result(c, r, entry);
}

static void f_key(sqlite3_context *c, int n, sqlite3_value **v)
{
	uint32_t entry = 0;
	int r = enter_parts(sqlite3_user_data(c), n, v, &entry);
	merge_result(c, r, entry);
}

static void f_part(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct merge_entries *e = sqlite3_user_data(c);
	uint32_t entry = merge_entry_of(e, v[0]);
	(void)n;
	sqlite3_result_int64(
		c, entry ? (int64_t)e->keys.key[entry - 1].part[integer(v, 1) & 3] : 0);
}

static void f_is(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct merge_entries *e = sqlite3_user_data(c);
	const int64_t id = integer(v, 0);
	const uint32_t entry = merge_entry_of(e, v[1]);
	(void)n;
	if (!is_id(c, e, id))
		return;
	int r = set_id(e, id, entry);
	if (r == 0 && e->merge->side == MERGE_MAIN && entry) {
		e->row[entry] = e->row[entry] ? e->row[entry] : (uint32_t)id;
		e->n_rows = id > e->n_rows ? (uint32_t)id : e->n_rows;
	}
	merge_result(c, r, entry);
}

static void f_of(sqlite3_context *c, int n, sqlite3_value **v)
{
	(void)n;
	sqlite3_result_int64(c, merge_entry_by_id(sqlite3_user_data(c), integer(v, 0)));
}

static void f_row(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct merge_entries *e = sqlite3_user_data(c);
	uint32_t entry = merge_entry_of(e, v[0]);
	(void)n;
	if (entry && e->row[entry])
		sqlite3_result_int64(c, e->row[entry]);
}

static void f_parent(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct merge_entries *e = sqlite3_user_data(c);
	uint32_t entry = merge_entry_of(e, v[0]);
	(void)n;
	(void)c;
	if (entry && e->parent[entry] == 0)
		e->parent[entry] = merge_entry_of(e, v[1]);
}

/* The site, as a parent; 0 if its children would be too deep: they begin a nest of their own, as for readers
 * (query/loops/read.c). */
static void f_under(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct merge_entries *e = sqlite3_user_data(c);
	uint32_t entry = merge_entry_of(e, v[0]);
	(void)n;
	sqlite3_result_int64(c, entry && e->depth[entry] + 1 < LOOP_DEPTH_MAX ? entry : 0);
}

/* --- rows ------------------------------------------------------------------------------------- */

void merge_charge(struct merge *m, sqlite3_value *payer, uint64_t bytes)
{
	if (m->rollup->shares && sqlite3_value_type(payer) != SQLITE_NULL)
		share_charge(m->rollup->shares, (uid_t)sqlite3_value_int64(payer), bytes);
}

/* Bytes of a row without its text; 0: merge.sql charges them. */
static const uint8_t row_bytes[N_MERGE_DICTIONARIES] = {
	[MERGE_CGROUP] = MERGE_ROW_BYTES + MERGE_INTEGER_BYTES,
	[MERGE_LABELS] = MERGE_ROW_BYTES + MERGE_INTEGER_BYTES,
	[MERGE_FUNCTION] = MERGE_ROW_BYTES + MERGE_INTEGER_BYTES,
	[MERGE_SOURCE] = MERGE_ROW_BYTES + MERGE_INTEGER_BYTES,
	[MERGE_FRAME] = MERGE_ROW_BYTES + 4 * MERGE_INTEGER_BYTES,
	[MERGE_STACK] = MERGE_ROW_BYTES + 3 * MERGE_INTEGER_BYTES,
};

static uint64_t name_bytes(const struct merge *m, const struct merge_entries *e, uint32_t entry)
{
	return is_name(e) ? strlen(text_of(&m->texts, (uint32_t)e->keys.key[entry - 1].part[0]))
			  : 0;
}

/* Note in temp.new_… a row that is new, or for which the source has more data. */
static int note(struct merge_entries *e, uint32_t entry, sqlite3_value *payer)
{
	const uint32_t parent = e->parent[entry];
	const int64_t value[] = {e->row[entry], entry, e->origin[entry],
		parent && parent != entry ? e->row[parent] : 0};
	e->given[entry] = 1;
	if (!e->note)
		return SQLITE_OK;
	for (int i = 0; i < 4; i++)
		sqlite3_bind_int64(e->note, i + 1, value[i]);
	sqlite3_bind_null(e->note, 5);
	const bool paid = payer && sqlite3_value_type(payer) != SQLITE_NULL;
	const uid_t uid = paid ? (uid_t)sqlite3_value_int64(payer) : 0;
	if (paid)
		sqlite3_bind_int64(e->note, 5, uid);
	sqlite3_bind_int(
		e->note, 6, !paid || share_level(e->merge->rollup->shares, uid) == SHARE_WHOLE);
	int rc = sqlite3_step(e->note);
	sqlite3_reset(e->note);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int give_row(struct merge_entries *e, uint32_t entry, sqlite3_value *payer)
{
	struct merge *m = e->merge;
	e->row[entry] = ++e->n_rows;
	merge_charge(m, payer, row_bytes[e->which] + name_bytes(m, e, entry));
	return note(e, entry, payer);
}

/* Give rows to the entry and to its ancestors without one, the outermost first. */
static void f_give(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct merge_entries *e = sqlite3_user_data(c);
	struct merge *m = e->merge;
	uint32_t entry = merge_entry_of(e, v[0]), n_path = 0;
	int rc = SQLITE_OK;
	(void)n;
	if (!entry)
		return;
	uint32_t i = entry;
	for (; i && e->row[i] == 0 && (e->which != MERGE_TASK || n_path < ANCESTORS_MAX);
		i = e->parent[i]) {
		if (array_grow(&m->path.entry, &m->path.size, n_path + 1, sizeof(uint32_t)) < 0) {
			sqlite3_result_error_nomem(c);
			return;
		}
		m->path.entry[n_path++] = i;
	}
	/* a task of an earlier source: note it, since this source may have its end; nobody is
	 * charged */
	bool known = e->which == MERGE_TASK && m->rollup->tier != TIER_HOUR;
	if (known && i && e->row[i] && e->origin[i] && !e->given[i])
		rc = note(e, i, NULL);
	if ((uint64_t)e->n_rows + n_path > e->rows_max)
		n_path = 0;
	while (n_path > 0 && rc == SQLITE_OK) {
		i = m->path.entry[--n_path];
		if (e->row[i] == 0) /* otherwise it is a process that claims to be its own parent */
			rc = give_row(e, i, v[1]);
	}
	if (rc != SQLITE_OK)
		sqlite3_result_error_code(c, rc);
	else if (e->row[entry])
		sqlite3_result_int64(c, e->row[entry]);
}

/* May the stack be stored with its callers? Beyond the tier's limit, new ones are cut to their leaf. */
static void f_fits(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct merge_entries *e = sqlite3_user_data(c);
	const uint32_t entry = merge_entry_of(e, v[0]);
	(void)n;
	sqlite3_result_int(c, !entry || e->row[entry] || !e->parent[entry] ||
				      e->n_rows < e->merge->rollup->stacks_max);
}

/* --- all of them ------------------------------------------------------------------------------ */

static const char *const names[N_MERGE_DICTIONARIES] = {
	[MERGE_EVENT] = "event",
	[MERGE_CGROUP] = "cgroup",
	[MERGE_LABELS] = "labels",
	[MERGE_TASK] = "task",
	[MERGE_FILE] = "file",
	[MERGE_FRAME] = "frame",
	[MERGE_FUNCTION] = "function",
	[MERGE_SOURCE] = "source",
	[MERGE_NAMES] = "names",
	[MERGE_STACK] = "stack",
	[MERGE_SITE] = "site",
	[MERGE_METRIC] = "metric",
	[MERGE_SUM] = "sum",
	[MERGE_LOOP] = "loop",
};

int merge_add(struct merge *m, const char *name, int n, merge_function *f, void *userdata)
{
	return sqlite3_create_function_v2(
		m->db, name, n, SQLITE_UTF8 | SQLITE_DIRECTONLY, userdata, f, NULL, NULL, NULL);
}

int merge_add_dictionary(struct merge *m, struct merge_entries *e)
{
	static const struct {
		const char *name;
		int n;
		merge_function *f;
	} of_all[] = {{"entry", -1, f_entry}, {"key", -1, f_key}, {"part", 2, f_part},
		{"is", 2, f_is}, {"of", 1, f_of}, {"row", 1, f_row}, {"parent", 2, f_parent},
		{"give", 2, f_give}, {"under", 1, f_under}, {"fits", 1, f_fits}};
	const char *name = names[e->which];
	char text[160];
	int rc = SQLITE_OK;
	for (size_t i = 0; i < sizeof(of_all) / sizeof(*of_all) && rc == SQLITE_OK; i++) {
		snprintf(text, sizeof(text), "%s_%s", name, of_all[i].name);
		rc = merge_add(m, text, of_all[i].n, of_all[i].f, e);
	}
	if (e->which == MERGE_NAMES || e->which >= MERGE_SUM || e->which == MERGE_EVENT ||
		rc != SQLITE_OK)
		return rc;
	snprintf(text, sizeof(text),
		"CREATE TEMP TABLE new_%s (row INTEGER PRIMARY KEY, entry, origin, parent, payer, "
		"whole)",
		name);
	rc = sqlite3_exec(m->db, text, NULL, NULL, NULL);
	snprintf(text, sizeof(text), "INSERT INTO temp.new_%s VALUES (?, ?, ?, ?, ?, ?)", name);
	return rc == SQLITE_OK ? sqlite3_prepare_v3(
					 m->db, text, -1, SQLITE_PREPARE_PERSISTENT, &e->note, NULL)
			       : rc;
}

void merge_forget(struct merge_entries *e)
{
	key_table_clear(&e->keys);
	if (e->given)
		memset(e->given, 0, e->size_given);
}

void merge_entries_clear(struct merge_entries *e)
{
	key_table_clear(&e->keys);
	free(e->row);
	free(e->origin);
	free(e->parent);
	free(e->depth);
	free(e->given);
	free(e->entry);
	sqlite3_finalize(e->note);
}
