/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/store/segment/version.h"

#include <stdio.h>

#include "proto/base/memory.h"

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)
DEFINE_CLEANUP(sqlite3 *, sqlite3_close)

static const char schema[] =
#include "daemon/store/segment/schema.sql.inc"
	;

/* What a version added: whole tables, whose text is the schema's, or a column. */
static const struct change {
	int version;
	const char *table;
	const char *add, *drop; /* of a column */
} changes[] = {
	{SEGMENT_HAS_UNCOUNTED, NULL,
		"ALTER TABLE sample ADD COLUMN uncounted INTEGER NOT NULL DEFAULT 0",
		"ALTER TABLE sample DROP COLUMN uncounted"},
	{SEGMENT_HAS_LABELS, "label_set", NULL, NULL},
	{SEGMENT_HAS_LABELS, "task_label_set", NULL, NULL},
	{SEGMENT_HAS_ACCOUNT, NULL,
		"ALTER TABLE task ADD COLUMN account INTEGER; UPDATE task SET account = uid",
		"ALTER TABLE task DROP COLUMN account"},
};
#define N_CHANGES (sizeof(changes) / sizeof(*changes))

int segment_version(sqlite3 *db, int *ret_version)
{
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &s, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc != SQLITE_ROW)
		return rc;
	*ret_version = sqlite3_column_int(s, 0);
	return SQLITE_OK;
}

int segment_make_tables(sqlite3 *db, int version)
{
	char sql[128];
	int rc = sqlite3_exec(db, schema, NULL, NULL, NULL);
	for (size_t i = 0; i < N_CHANGES && rc == SQLITE_OK; i++) {
		const struct change *c = &changes[i];
		if (c->version <= version)
			continue;
		snprintf(sql, sizeof(sql), c->table ? "DROP TABLE %s" : "%s",
			c->table ? c->table : c->drop);
		rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	}
	return rc;
}

/* The table's text as the schema has it, run on another database. */
static int copy_table(sqlite3 *ours, const char *table, sqlite3 *db)
{
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(
		ours, "SELECT sql FROM sqlite_schema WHERE name = ?1", -1, &s, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	return rc == SQLITE_ROW
		       ? sqlite3_exec(db, (const char *)sqlite3_column_text(s, 0), NULL, NULL, NULL)
		       : rc;
}

int segment_raise_version(sqlite3 *db, int version)
{
	_cleanup_(sqlite3_closep) sqlite3 *ours = NULL;
	char sql[64];
	int rc = sqlite3_open_v2(
		":memory:", &ours, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL);
	if (rc == SQLITE_OK)
		rc = segment_make_tables(ours, SEGMENT_VERSION);
	for (size_t i = 0; i < N_CHANGES && rc == SQLITE_OK; i++) {
		const struct change *c = &changes[i];
		if (c->version > version)
			rc = c->table ? copy_table(ours, c->table, db)
				      : sqlite3_exec(db, c->add, NULL, NULL, NULL);
	}
	snprintf(sql, sizeof(sql), "PRAGMA user_version=%d", SEGMENT_VERSION);
	return rc == SQLITE_OK ? sqlite3_exec(db, sql, NULL, NULL, NULL) : rc;
}
