/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Which tasks two files call the same
 *
 *      process    boot, pid, start, comm, cgroup, whose, labels  (a process that changes its user is
 *                                      another: who may see its samples depends on it)
 *      program    comm, exe, cgroup, whose, labels
 *      thread     boot, pid, tid, start, comm, cgroup, whose     (in an extract, which is of one set
 *                                      of labels)
 *
 * whose: the owner, uid; of what belongs to nobody who pays for it, account.
 */

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/rollup/rollup_private.h"

/* Write this many generations of parents at once; older ones have their row already, or no
 * parent. */
#define ANCESTORS_MAX 64

/* Texts that a task refers to. */
struct task_texts {
	uint32_t cgroup, labels;
};

/* Of a key, its last part: who pays, + 1, 0: not known; whether that is not the owner too, since the process
 * belongs to nobody (uid is 0) or its group is another (uid is NULL); and, of a program, whether it is a thread
 * of the kernel. */
#define WHOSE_MASK ((1ull << 40) - 1)
#define WHOSE_NOBODYS (1ull << 39)
#define WHOSE_UNOWNED (1ull << 38)
#define WHOSE_USER (WHOSE_UNOWNED - 1)
#define KERNEL_THREAD_SHIFT 40

static uint64_t whose_of(sqlite3_stmt *st, int uid_column, int account_column)
{
	bool owned = sqlite3_column_type(st, uid_column) != SQLITE_NULL;
	bool paid = sqlite3_column_type(st, account_column) != SQLITE_NULL;
	uint64_t uid = (uint32_t)sqlite3_column_int64(st, uid_column);
	uint64_t account = (uint32_t)sqlite3_column_int64(st, account_column);
	if (owned && (uid != 0 || (paid && account == 0)))
		return uid + 1;
	return (owned ? WHOSE_NOBODYS : WHOSE_UNOWNED) | (paid ? account + 1 : 0);
}

/* One text of both. */
static int comm_and_cgroup(struct rollup *r, const char *comm, uint32_t cgroup, uint32_t *ret_text)
{
	const char *path = text_of(&r->texts, cgroup);
	char text[PATH_MAX + 64];
	snprintf(text, sizeof(text), "%s\n%s", comm ? comm : "", path ? path : "");
	return rollup_table_outcome(r, text_get(&r->texts, text, ret_text));
}

/* Columns of both files: pid, start_ns, comm, exe, uid, kernel_thread, tid, account. A program's key holds all
 * that its row says. */
static int task_key(struct rollup *r, sqlite3_stmt *st, const int column[8],
	const struct task_texts *texts, struct key *ret_key)
{
	uint64_t labels = (uint64_t)texts->labels << 32;
	uint64_t uid = whose_of(st, column[4], column[7]);
	uint64_t pid = (uint32_t)sqlite3_column_int64(st, column[0]);
	if (r->tier != TIER_HOUR) {
		uint32_t name;
		int outcome = comm_and_cgroup(
			r, (const char *)sqlite3_column_text(st, column[2]), texts->cgroup, &name);
		if (outcome != 0)
			return outcome;
		uint64_t start_ns = (uint64_t)sqlite3_column_int64(st, column[1]),
			 named = (uint64_t)name << 32;
		uint32_t tid = (uint32_t)sqlite3_column_int64(st, column[6]);
		*ret_key = r->tier == TIER_WINDOW
				   ? (struct key){{named | r->boot, pid << 32 | tid, start_ns, uid}}
				   : (struct key){{labels | r->boot, named | pid, start_ns, uid}};
		return 0;
	}
	uint32_t comm, exe = 0;
	int outcome = rollup_text(r, st, column[2], &comm);
	if (outcome == 0)
		outcome = rollup_text(r, st, column[3], &exe);
	uint64_t kernel_thread = sqlite3_column_int64(st, column[5]) != 0;
	*ret_key = (struct key){
		{comm, exe, labels | texts->cgroup, uid | kernel_thread << KERNEL_THREAD_SHIFT}};
	return outcome;
}

static int load_task(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	static const int column[] = {1, 2, 3, 4, 5, 6, 9, 10};
	(void)userdata;
	struct key key;
	struct task_texts texts;
	int outcome = rollup_text(r, st, 7, &texts.cgroup);
	if (outcome == 0)
		outcome = rollup_text(r, st, 8, &texts.labels);
	if (outcome == 0)
		outcome = task_key(r, st, column, &texts, &key);
	return outcome == 0 ? entries_load(r, &r->tasks, &key, sqlite3_column_int64(st, 0))
			    : outcome;
}

static int write_labels(struct rollup *r, uint32_t task_row, uint32_t labels)
{
	uint32_t row;
	int outcome = rollup_name_row_of(r, WRITE_LABELS, &r->labels, labels, &row);
	return outcome == 0 && row != 0 ? PUT(r, WRITE_TASK_LABELS, CELL_I(task_row), CELL_I(row))
					: outcome;
}

/* process: its row; 0: it is the process. */
static int write_task(struct rollup *r, uint32_t index, uint32_t process, uint32_t parent)
{
	sqlite3_stmt *st = r->read[READ_TASK];
	uint32_t cgroup, cgroup_row, row = rows_get(&r->tasks.rows, index);
	int outcome = rollup_get(r, READ_TASK, r->tasks.origin[index]);
	if (outcome == 0)
		outcome = rollup_name_of(
			r, READ_CGROUP, &r->cgroup, rollup_integer(r, READ_TASK, 9), &cgroup);
	if (outcome == 0)
		outcome = rollup_name_row_of(r, WRITE_CGROUP, &r->cgroups, cgroup, &cgroup_row);
	if (outcome == 0 && row == 0)
		outcome = rows_add(&r->tasks.rows, index, &row);
	uint32_t labels = r->tier == TIER_WINDOW
				  ? r->only
				  : (uint32_t)(r->tasks.keys.key[index].part[0] >> 32);
	if (outcome == 0 && process == 0)
		outcome = write_labels(r, row, labels);
	if (outcome != 0)
		return outcome == ROLLUP_NO_ROW ? rollup_fail_source(r, "a task is missing")
						: outcome;
	bool whole = !r->has_payer || share_level(r->shares, r->payer) == SHARE_WHOLE;
	bool ended = sqlite3_column_type(st, 5) != SQLITE_NULL;
	bool owned = sqlite3_column_type(st, 10) != SQLITE_NULL;
	bool paid = sqlite3_column_type(st, 13) != SQLITE_NULL;
	return PUT(r, WRITE_TASK, CELL_I(row), CELL_I(sqlite3_column_int64(st, 0)),
		CELL_I(sqlite3_column_int64(st, 1)), CELL_I(process ? process : row),
		CELL_I_OR_NULL(parent, parent), CELL_I(sqlite3_column_int64(st, 4)),
		CELL_I_OR_NULL(ended, sqlite3_column_int64(st, 5)),
		CELL_T(sqlite3_column_text(st, 6)), CELL_T(sqlite3_column_text(st, 7)),
		CELL_B(whole ? sqlite3_column_blob(st, 8) : NULL, sqlite3_column_bytes(st, 8)),
		CELL_I_OR_NULL(cgroup_row, cgroup_row),
		CELL_I_OR_NULL(owned, sqlite3_column_int64(st, 10)),
		CELL_I(sqlite3_column_int64(st, 11)),
		CELL_I_OR_NULL(paid, sqlite3_column_int64(st, 13)));
}

static int write_process(struct rollup *r, uint32_t index, uint32_t parent)
{
	return write_task(r, index, 0, parent);
}

static int write_program(struct rollup *r, uint32_t index, uint32_t *ret_row)
{
	const uint64_t *part = r->tasks.keys.key[index].part;
	uint64_t user = part[3] & WHOSE_USER;
	bool nobodys = part[3] & WHOSE_NOBODYS, owned = user != 0 && !(part[3] & WHOSE_UNOWNED);
	uint32_t cgroup_row;
	int outcome =
		rollup_name_row_of(r, WRITE_CGROUP, &r->cgroups, (uint32_t)part[2], &cgroup_row);
	if (outcome == 0)
		outcome = rows_add(&r->tasks.rows, index, ret_row);
	if (outcome == 0)
		outcome = write_labels(r, *ret_row, (uint32_t)(part[2] >> 32));
	if (outcome != 0)
		return outcome;
	return PUT(r, WRITE_TASK, CELL_I(*ret_row), CELL_I(0), CELL_I(0), CELL_I(*ret_row),
		CELL_I_OR_NULL(false, 0), CELL_I(0), CELL_I_OR_NULL(false, 0),
		CELL_T(text_of(&r->texts, (uint32_t)part[0])),
		CELL_T(text_of(&r->texts, (uint32_t)part[1])), CELL_B(NULL, 0),
		CELL_I_OR_NULL(cgroup_row, cgroup_row),
		CELL_I_OR_NULL(owned || nobodys, nobodys ? 0 : user - 1),
		CELL_I(part[3] >> KERNEL_THREAD_SHIFT), CELL_I_OR_NULL(user != 0, user - 1));
}

/* Translate the task that READ_TASK stands on, which is a process, or has none that is known. */
static int take_process(struct rollup *r, int64_t id, uint32_t *ret_index)
{
	static const int column[] = {0, 4, 6, 7, 10, 11, 1, 13};
	sqlite3_stmt *st = r->read[READ_TASK];
	struct task_texts texts = {0, 0};
	struct key key;
	int outcome = rollup_name_of(
		r, READ_LABELS, &r->label_set, rollup_integer(r, READ_TASK, 12), &texts.labels);
	if (outcome == 0 && r->only && texts.labels != r->only) {
		*ret_index = ROLLUP_OTHER_JOB - 1;
		return 0;
	}
	if (outcome == 0)
		outcome = rollup_name_of(
			r, READ_CGROUP, &r->cgroup, rollup_integer(r, READ_TASK, 9), &texts.cgroup);
	if (outcome == 0)
		outcome = task_key(r, st, column, &texts, &key);
	if (outcome == 0)
		outcome = entries_get(r, &r->tasks, &key, (uint32_t)id, ret_index);
	if (outcome != 0 || r->tier == TIER_HOUR || rows_get(&r->tasks.rows, *ret_index) == 0)
		return outcome;
	/* known from an earlier source: this one knows better what became of it */
	r->tasks.origin[*ret_index] = (uint32_t)id;
	return write_process(r, *ret_index, 0);
}

/* The process of the task that READ_TASK stands on, where it is there; else the task itself. */
static int find_process(struct rollup *r, int64_t id, int64_t *ret_process)
{
	int64_t process = rollup_integer(r, READ_TASK, 2);
	*ret_process = id;
	if (process <= 0 || process == id || process > ROLLUP_IDS_MAX)
		return 0;
	int outcome = rollup_get(r, READ_TASK, process);
	if (outcome == ROLLUP_NO_ROW)
		return rollup_get(r, READ_TASK, id);
	*ret_process = process;
	return outcome;
}

/* Of an extract: translate a thread whose process, at that index + 1, is of the job. */
static int take_thread(struct rollup *r, int64_t id, uint32_t process, uint32_t *ret_index)
{
	static const int column[] = {0, 4, 6, 7, 10, 11, 1, 13};
	struct task_texts texts = {0, 0};
	struct key key;
	uint32_t index;
	int outcome = rollup_get(r, READ_TASK, id);
	if (outcome == 0)
		outcome = rollup_name_of(
			r, READ_CGROUP, &r->cgroup, rollup_integer(r, READ_TASK, 9), &texts.cgroup);
	if (outcome == 0)
		outcome = task_key(r, r->read[READ_TASK], column, &texts, &key);
	if (outcome == 0)
		outcome = entries_get(r, &r->tasks, &key, (uint32_t)id, &index);
	if (outcome != 0)
		return outcome == ROLLUP_NO_ROW ? rollup_fail_source(r, "a task is missing")
						: outcome;
	*ret_index = index + 1;
	if (rows_get(&r->tasks.rows, index) == 0 || index + 1 == process)
		return 0;
	r->tasks.origin[index] = (uint32_t)id; /* as in take_process */
	return write_task(r, index, rows_get(&r->tasks.rows, process - 1), 0);
}

int rollup_task(struct rollup *r, int64_t id, uint32_t *ret_index)
{
	uint32_t *known, index;
	int64_t process;
	*ret_index = 0;
	if (id <= 0 || id > ROLLUP_IDS_MAX)
		return 0;
	int outcome = translation_get(r, &r->task, id, &known);
	if (outcome != 0 || *known != 0) {
		*ret_index = outcome == 0 && *known != ROLLUP_OTHER_JOB ? *known : 0;
		return outcome;
	}
	outcome = rollup_get(r, READ_TASK, id);
	if (outcome == ROLLUP_NO_ROW)
		return 0; /* nobody knows it */
	if (outcome == 0)
		outcome = find_process(r, id, &process);
	if (outcome == 0)
		outcome = translation_get(r, &r->task, process, &known);
	if (outcome == 0 && *known == 0) {
		outcome = take_process(r, process, &index);
		if (outcome == 0)
			r->task.index[process] = index + 1;
	}
	index = outcome == 0 ? r->task.index[process] : 0;
	if (outcome == 0 && r->only && index != ROLLUP_OTHER_JOB && process != id)
		outcome = take_thread(r, id, index, &index);
	if (outcome == 0) {
		r->task.index[id] = index;
		*ret_index = index == ROLLUP_OTHER_JOB ? 0 : index;
	}
	return outcome;
}

/* The parent of a process that is new to the target; index + 1, 0: not known. */
static int find_parent(struct rollup *r, uint32_t index, uint32_t *ret_parent)
{
	int outcome = rollup_get(r, READ_TASK, r->tasks.origin[index]);
	if (outcome == 0)
		return rollup_task(r, rollup_integer(r, READ_TASK, 3), ret_parent);
	return outcome == ROLLUP_NO_ROW ? rollup_fail_source(r, "a task is missing") : outcome;
}

/* A process and its ancestors, oldest first. */
static int write_family(struct rollup *r, uint32_t index)
{
	uint32_t chain[ANCESTORS_MAX], n = 0, parent = index + 1;
	int outcome = 0;
	while (parent != 0 && n < ANCESTORS_MAX && rows_get(&r->tasks.rows, parent - 1) == 0) {
		chain[n++] = parent - 1;
		outcome = find_parent(r, parent - 1, &parent);
		if (outcome != 0)
			return outcome;
	}
	while (n > 0 && outcome == 0) {
		uint32_t i = chain[--n];
		if (rows_get(&r->tasks.rows, i) != 0)
			continue; /* a process that claims to be its own parent */
		outcome = find_parent(r, i, &parent);
		if (outcome == 0)
			outcome = write_process(
				r, i, parent ? rows_get(&r->tasks.rows, parent - 1) : 0);
	}
	return outcome;
}

/* Of an extract: a process, or a thread behind its process. Who started them may be of another job, and is
 * left out. */
static int write_member(struct rollup *r, uint32_t index)
{
	uint32_t id = r->tasks.origin[index], process = 0;
	int outcome = rollup_get(r, READ_TASK, id);
	if (outcome == 0)
		outcome = rollup_task(r, rollup_integer(r, READ_TASK, 2), &process);
	if (outcome == ROLLUP_NO_ROW)
		return rollup_fail_source(r, "a task is missing");
	if (outcome != 0 || process == 0 || process == index + 1)
		return outcome == 0 ? write_process(r, index, 0) : outcome;
	if (rows_get(&r->tasks.rows, process - 1) == 0)
		outcome = write_process(r, process - 1, 0);
	return outcome == 0 ? write_task(r, index, rows_get(&r->tasks.rows, process - 1), 0)
			    : outcome;
}

int rollup_task_row(struct rollup *r, uint32_t index, uint32_t *ret_row)
{
	*ret_row = index ? rows_get(&r->tasks.rows, index - 1) : 0;
	if (index == 0 || *ret_row != 0)
		return 0;
	if (r->tasks.rows.n_rows >= ROLLUP_MINUTE_IDS)
		return 0;
	if (r->tier == TIER_HOUR)
		return write_program(r, index - 1, ret_row);
	int outcome = r->only ? write_member(r, index - 1) : write_family(r, index - 1);
	*ret_row = rows_get(&r->tasks.rows, index - 1);
	return outcome;
}

uid_t rollup_uid(const struct rollup *r, uint32_t task)
{
	uint64_t user = task ? r->tasks.keys.key[task - 1].part[3] & WHOSE_USER : 0;
	return user ? (uid_t)(user - 1) : (uid_t)-1;
}

int rollup_other_program(struct rollup *r, uint32_t task, uint32_t *ret_index)
{
	uint32_t comm;
	uint64_t uid = task ? r->tasks.keys.key[task - 1].part[3] & WHOSE_MASK : WHOSE_UNOWNED;
	bool program = task && r->tier == TIER_HOUR;
	uint64_t labels = program ? r->tasks.keys.key[task - 1].part[2] >> 32 << 32 : 0;
	int outcome = rollup_table_outcome(r, text_get(&r->texts, "[other]", &comm));
	if (outcome == 0)
		outcome = entries_get(
			r, &r->tasks, &(struct key){{comm, 0, labels, uid}}, 0, ret_index);
	++*ret_index;
	return outcome;
}

int rollup_load_tasks(struct rollup *r)
{
	return rollup_each(r,
		"SELECT t.id, pid, start_ns, comm, exe, t.uid, kernel_thread, path, "
		"l.uid || ' ' || labels, tid, account "
		"FROM task t LEFT JOIN cgroup c ON c.id = t.cgroup "
		"LEFT JOIN task_label_set ON task = t.id "
		"LEFT JOIN label_set l ON l.id = label_set ORDER BY t.id",
		load_task, NULL);
}
