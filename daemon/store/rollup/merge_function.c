/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Functions that merge.sql calls, beside those of dictionaries: sums with less detail, shares, texts, notes */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/naming/file.h"
#include "daemon/pmu/cores.h"
#include "daemon/store/rollup/merge.h"
#include "daemon/store/segment/note.h"

/* The last part of a task's key. Bits 0 to 37: the user who pays, plus 1; 0: not known. Bits 38 and 39: this user is
 * not the owner, because the uid is NULL (38: the group is not the user's) or 0 (39: the process belongs to nobody).
 * Bit 40, of programs: a thread of the kernel. */
#define PAYER_MASK ((1ull << 38) - 1)
#define WHOSE_UNOWNED (1ull << 38)
#define WHOSE_MASK ((1ull << 40) - 1)

static int64_t integer(sqlite3_value *const *v, int i)
{
	return sqlite3_value_int64(v[i]);
}

/* --- sums with less detail -------------------------------------------------------------------- */

static int leaf(struct merge *m, uint32_t stack, uint32_t *ret_stack)
{
	struct merge_entries *e = &m->of[MERGE_STACK];
	*ret_stack = 0;
	return stack == 0 || stack > e->keys.n_keys
		       ? 0
		       : merge_enter(
				 e, &(struct key){{0, e->keys.key[stack - 1].part[1]}}, ret_stack);
}

/* The stack of the function that replaces several, which are all named or all unnamed. */
static int other_stack(struct merge *m, uint32_t stack, uint32_t *ret_stack)
{
	const struct merge_entries *stacks = &m->of[MERGE_STACK], *frames = &m->of[MERGE_FRAME];
	const bool hour = m->rollup->tier == TIER_HOUR;
	uint32_t text, file = 0, function = 0, names = 0, frame = 0;
	*ret_stack = 0;
	if (stack == 0 || stack > stacks->keys.n_keys)
		return 0;
	uint64_t leaf_frame = stacks->keys.key[stack - 1].part[1];
	uint64_t state = leaf_frame ? frames->keys.key[leaf_frame - 1].part[3] : 0;
	int r = text_get(&m->texts, hour ? "[other]" : SHARE_FUNCTION_FOLDED, &text);
	if (r == 0)
		r = merge_enter(&m->of[MERGE_FILE], &(struct key){{FILE_UNKNOWN, text}}, &file);
	if (r == 0 && (state == FRAME_NAMED || state == FRAME_PLACED))
		r = merge_enter(&m->of[MERGE_FUNCTION], &(struct key){{text}}, &function);
	if (r == 0 && function && !hour)
		r = merge_enter(&m->of[MERGE_NAMES], &(struct key){{0, function}}, &names);
	const struct key key = {{file, hour ? function : 0, names, state}};
	if (r == 0)
		r = merge_enter(&m->of[MERGE_FRAME], &key, &frame);
	return r == 0 ? merge_enter(&m->of[MERGE_STACK], &(struct key){{0, frame}}, ret_stack) : r;
}

static void f_leaf(sqlite3_context *c, int n, sqlite3_value **v)
{
	uint32_t stack;
	int r = leaf(sqlite3_user_data(c), (uint32_t)integer(v, 0), &stack);
	(void)n;
	merge_result(c, r, stack);
}

/* The program that replaces several of the same user and job; task 0: those of nobody. */
static int other_task(struct merge *m, uint32_t task, uint32_t *ret_task)
{
	struct merge_entries *e = &m->of[MERGE_TASK];
	const uint64_t *part = task ? e->keys.key[task - 1].part : NULL;
	uint32_t text;
	int r = text_get(&m->texts, "[other]", &text);
	const struct key key = {{text, 0, part ? part[2] >> 32 << 32 : 0,
		part ? part[3] & WHOSE_MASK : WHOSE_UNOWNED}};
	return r == 0 ? merge_enter(e, &key, ret_task) : r;
}

/* Detail that a step of folding leaves out. */
enum fold { FOLD_CALLERS, FOLD_PROGRAMS, FOLD_FUNCTIONS };

/* fold_key(fold, sum): the coarser sum of an hour. */
static void f_fold_key(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct merge *m = sqlite3_user_data(c);
	struct merge_entries *sums = &m->of[MERGE_SUM];
	const enum fold fold = (enum fold)integer(v, 0);
	uint32_t sum = merge_entry_of(sums, v[1]);
	struct key key = sum ? sums->keys.key[sum - 1] : (struct key){{0}};
	uint32_t task = (uint32_t)(key.part[0] >> 32), stack = (uint32_t)key.part[0];
	int r = fold == FOLD_CALLERS     ? leaf(m, stack, &stack)
		: fold == FOLD_FUNCTIONS ? other_stack(m, stack, &stack)
					 : 0;
	(void)n;
	if (r == 0 && fold != FOLD_CALLERS)
		r = other_task(m, fold == FOLD_FUNCTIONS ? 0 : task, &task);
	key.part[0] = (uint64_t)task << 32 | stack;
	if (r == 0)
		r = merge_enter(sums, &key, &sum);
	merge_result(c, r, sum);
}

/* --- shares ----------------------------------------------------------------------------------- */

static uid_t payer_of(const struct merge *m, uint64_t task)
{
	const struct merge_entries *e = &m->of[MERGE_TASK];
	uint64_t user =
		task && task <= e->keys.n_keys ? e->keys.key[task - 1].part[3] & PAYER_MASK : 0;
	return user ? (uid_t)(user - 1) : (uid_t)-1;
}

static void f_payer(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct merge *m = sqlite3_user_data(c);
	(void)n;
	if (m->rollup->shares)
		sqlite3_result_int64(c, payer_of(m, (uint64_t)integer(v, 0)));
}

/* The sum that a row is added to: with as much detail as its user's share has room for. */
static void f_share_key(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct merge *m = sqlite3_user_data(c);
	struct merge_entries *sums = &m->of[MERGE_SUM];
	uint32_t sum = merge_entry_of(sums, v[0]), stack;
	struct key key = sum ? sums->keys.key[sum - 1] : (struct key){{0}};
	enum share_level level = share_level(m->rollup->shares, payer_of(m, key.part[0] >> 32));
	int r = level >= SHARE_FOLDED ? other_stack(m, (uint32_t)key.part[0], &stack)
		: level >= SHARE_LEAF ? leaf(m, (uint32_t)key.part[0], &stack)
				      : (stack = (uint32_t)key.part[0], 0);
	(void)n;
	key.part[0] = key.part[0] >> 32 << 32 | stack;
	if (r == 0)
		r = merge_enter(sums, &key, &sum);
	merge_result(c, r, sum);
}

/* share_charge(payer, sum, bytes): the sum; charge it when the first row is added to it. */
static void f_share_charge(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct merge *m = sqlite3_user_data(c);
	struct merge_entries *sums = &m->of[MERGE_SUM];
	uint32_t sum = merge_entry_of(sums, v[1]);
	(void)n;
	if (sum && !sums->given[sum])
		merge_charge(m, v[0], (uint64_t)integer(v, 2));
	if (sum)
		sums->given[sum] = 1;
	sqlite3_result_int64(c, sum);
}

/* charge(payer, column, …): true. */
static void f_charge(sqlite3_context *c, int n, sqlite3_value **v)
{
	uint64_t bytes = MERGE_ROW_BYTES;
	for (int i = 1; i < n; i++) {
		int type = sqlite3_value_type(v[i]);
		bytes += type == SQLITE_INTEGER ? MERGE_INTEGER_BYTES
			 : type == SQLITE_NULL  ? 0
						: (uint64_t)sqlite3_value_bytes(v[i]);
	}
	merge_charge(sqlite3_user_data(c), v[0], bytes);
	sqlite3_result_int(c, 1);
}

/* --- texts, harts, notes ---------------------------------------------------------------------- */

/* A text ends at its first NUL. */
static void f_text(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct merge *m = sqlite3_user_data(c);
	uint32_t text = 0;
	int r = text_get(&m->texts, (const char *)sqlite3_value_text(v[0]), &text);
	(void)n;
	if (r != 0 || text)
		merge_result(c, r, text);
}

static void f_words(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct merge *m = sqlite3_user_data(c);
	const char *text = text_of(&m->texts, (uint32_t)integer(v, 0));
	(void)n;
	if (text)
		sqlite3_result_text(c, text, -1, SQLITE_TRANSIENT);
}

/* Arguments end with NUL each, where a text would end. */
static void f_line(sqlite3_context *c, int n, sqlite3_value **v)
{
	const char *bytes = sqlite3_value_blob(v[0]);
	const int n_bytes = sqlite3_value_bytes(v[0]);
	char *line = malloc((size_t)n_bytes + 1);
	(void)n;
	if (!line) {
		sqlite3_result_error_nomem(c);
		return;
	}
	for (int i = 0; i < n_bytes; i++)
		line[i] = bytes[i] ? bytes[i] : '\x1f';
	sqlite3_result_text(c, line, n_bytes, free);
}

static void f_damage(sqlite3_context *c, int n, sqlite3_value **v)
{
	(void)n;
	sqlite3_result_error(c, (const char *)sqlite3_value_text(v[0]), -1);
}

static void f_has_hart(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct hart_set harts;
	const char *list = (const char *)sqlite3_value_text(v[0]);
	(void)n;
	sqlite3_result_int(c, list && hart_set_parse(list, &harts) == 0 &&
				      hart_set_has(&harts, (int)integer(v, 1)));
}

static void f_hart_as(sqlite3_context *c, int n, sqlite3_value **v)
{
	(void)n;
	sqlite3_result_int64(c, merge_hart_as(sqlite3_user_data(c), integer(v, 0)));
}

static void f_hart_is(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct merge *m = sqlite3_user_data(c);
	(void)n;
	if (integer(v, 0) >= 0 && integer(v, 0) < HARTS_MAX)
		m->hart_as[integer(v, 0)] = (int16_t)integer(v, 1);
}

static struct hart_set harts_as(const struct merge *m, const struct hart_set *theirs)
{
	struct hart_set ours = {0};
	for (int i = 0; i < HARTS_MAX; i++)
		if (hart_set_has(theirs, i))
			hart_set_add(&ours, m->hart_as[i]);
	return ours;
}

static const char *our_note(
	const struct merge *m, const char *key, char made[static NOTE_KEY_BYTES_MAX])
{
	const struct merge_entries *e = &m->of[MERGE_EVENT];
	struct note note;
	if (!note_parse(key, &note))
		return NULL;
	note.harts = harts_as(m, &note.harts);
	if (note.event != 0) {
		uint32_t entry = merge_entry_by_id(e, note.event);
		note.event = entry ? e->row[entry] : 0;
		if (note.event == 0)
			return NULL;
	}
	return note_key(&note, made);
}

/* A key of the source's meta with the harts and events of the target; NULL: the target has no such event. */
static void f_our_key(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct merge *m = sqlite3_user_data(c);
	const char *key = (const char *)sqlite3_value_text(v[0]), *ours = NULL;
	char made[NOTE_KEY_BYTES_MAX], list[NOTE_KEY_BYTES_MAX - 8];
	struct hart_set harts;
	unsigned hart, number;
	(void)n;
	if (!key)
		return;
	if (strcmp(key, "hz_lowest") == 0)
		ours = key;
	else if (strncmp(key, "note:", 5) == 0)
		ours = our_note(m, key, made);
	else if (note_turn_parse(key, &harts, &number)) {
		harts = harts_as(m, &harts);
		ours = note_turn_key(&harts, number, made);
	} else if (strncmp(key, "core:", 5) == 0 && hart_set_parse(key + 5, &harts) == 0) {
		harts = harts_as(m, &harts);
		snprintf(made, sizeof(made), "core:%s", hart_set_says(&harts, list, sizeof(list)));
		ours = made;
	} else if (sscanf(key, "leader:%u:%u", &hart, &number) == 2 && hart < HARTS_MAX &&
		   number <= RUNG_ASKED) {
		snprintf(made, sizeof(made), "leader:%d:%u", m->hart_as[hart], number);
		ours = made;
	}
	if (ours)
		sqlite3_result_text(c, ours, -1, SQLITE_TRANSIENT);
}

/* --- extracts --------------------------------------------------------------------------------- */

static void f_takes(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct merge *m = sqlite3_user_data(c);
	(void)n;
	sqlite3_result_int(c, extract_takes_task(m->rollup->choice, integer(v, 0)));
}

/* --- all of them ------------------------------------------------------------------------------ */

int merge_functions(struct merge *m)
{
	static const struct {
		const char *name;
		int n;
		merge_function *f;
	} plain[] = {{"text", 1, f_text}, {"words", 1, f_words}, {"damage", 1, f_damage},
		{"has_hart", 2, f_has_hart}, {"hart_as", 1, f_hart_as}, {"hart_is", 2, f_hart_is},
		{"our_key", 1, f_our_key}, {"leaf", 1, f_leaf}, {"fold_key", 2, f_fold_key},
		{"payer", 1, f_payer}, {"share_key", 1, f_share_key},
		{"share_charge", 3, f_share_charge}, {"charge", -1, f_charge},
		{"takes", 1, f_takes}, {"line", 1, f_line}};
	int rc = SQLITE_OK;
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain) && rc == SQLITE_OK; i++)
		rc = merge_add(m, plain[i].name, plain[i].n, plain[i].f, m);
	for (int i = 0; i < N_MERGE_DICTIONARIES && rc == SQLITE_OK; i++) {
		m->of[i].merge = m;
		m->of[i].which = (enum merge_dictionary)i;
		m->of[i].rows_max = i == MERGE_EVENT  ? ROLLUP_EVENTS_MAX
				    : i == MERGE_TASK ? ROLLUP_MINUTE_IDS
						      : ROLLUP_IDS_MAX;
		rc = merge_add_dictionary(m, &m->of[i]);
	}
	return rc;
}
