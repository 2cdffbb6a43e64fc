/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What two files call the same: files, frames, stacks
 *
 *      file       kind, path, build id or else device and inode, whether it was deleted
 *      frame      minute: file, offset, its names, what became of naming it
 *                 hour:   file, function, what became of naming it
 *      stack      the caller's stack, frame
 *
 * A frame that one source could not name and another could is two, and each is counted as what it
 * was. A stack of the source is translated from its outermost caller inwards, as far as it was not
 * translated before.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/rollup/rollup_private.h"

/* Functions inlined at one address: compilers nest some tens. */
#define PLACES_MAX 256
#define PLACE_TEXT_BYTES 48

/* --- files ------------------------------------------------------------------------------------ */

/* Columns from the first on: kind, path, build_id, major, minor, inode, deleted. */
static int file_key(struct rollup *r, sqlite3_stmt *st, int first, struct key *ret_key)
{
	uint32_t path, build;
	const uint8_t *id = sqlite3_column_blob(st, first + 2);
	int n = sqlite3_column_bytes(st, first + 2);
	char hex[64] = "";
	for (int i = 0; id && i < n && i < 20; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	int outcome = rollup_text(r, st, first + 1, &path);
	if (outcome == 0)
		outcome = rollup_table_outcome(r, text_get(&r->texts, hex, &build));
	bool has_inode = sqlite3_column_type(st, first + 5) != SQLITE_NULL;
	uint64_t kind = (uint64_t)(sqlite3_column_int64(st, first) & 0xff) |
			(uint64_t)(sqlite3_column_int64(st, first + 6) != 0) << 8 |
			(uint64_t)(n > 0) << 9 | (uint64_t)has_inode << 10;
	*ret_key = (struct key){{kind, path}};
	if (n > 0)
		ret_key->part[2] = build;
	else if (has_inode) {
		ret_key->part[2] = (uint64_t)sqlite3_column_int64(st, first + 3) << 32 |
				   (uint32_t)sqlite3_column_int64(st, first + 4);
		ret_key->part[3] = (uint64_t)sqlite3_column_int64(st, first + 5);
	}
	return outcome;
}

static int load_file(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	(void)userdata;
	struct key key;
	int outcome = file_key(r, st, 1, &key);
	return outcome == 0 ? entries_load(r, &r->files, &key, sqlite3_column_int64(st, 0))
			    : outcome;
}

int rollup_file(struct rollup *r, int64_t id, uint32_t *ret_index)
{
	uint32_t *known, index;
	struct key key;
	*ret_index = 0;
	if (id <= 0 || id > ROLLUP_IDS_MAX)
		return 0;
	int outcome = translation_get(r, &r->file, id, &known);
	if (outcome == 0 && *known == 0) {
		outcome = rollup_get(r, READ_FILE, id);
		if (outcome == 0)
			outcome = file_key(r, r->read[READ_FILE], 0, &key);
		if (outcome == 0)
			outcome = entries_get(r, &r->files, &key, (uint32_t)id, &index);
		if (outcome == 0)
			*known = index + 1;
	}
	if (outcome == 0)
		*ret_index = *known;
	return outcome == ROLLUP_NO_ROW ? 0 : outcome;
}

static int write_other_file(struct rollup *r, uint32_t row, const char *name)
{
	struct cell none = CELL_I_OR_NULL(false, 0);
	return PUT(r, WRITE_FILE, CELL_I(row), CELL_I(FILE_UNKNOWN), CELL_T(name), none, none, none,
		none, CELL_I(0), CELL_I(FILE_UNSEEN), CELL_I(0), CELL_I(0));
}

int rollup_file_row(struct rollup *r, uint32_t index, uint32_t *ret_row)
{
	sqlite3_stmt *st = r->read[READ_FILE];
	*ret_row = index ? rows_get(&r->files.rows, index - 1) : 0;
	if (index == 0 || *ret_row != 0 || r->files.rows.n_rows >= ROLLUP_IDS_MAX)
		return 0;
	uint32_t origin = r->files.origin[index - 1];
	int outcome = rows_add(&r->files.rows, index - 1, ret_row);
	if (outcome == 0 && origin == 0)
		return write_other_file(r, *ret_row,
			text_of(&r->texts, (uint32_t)r->files.keys.key[index - 1].part[1]));
	if (outcome == 0)
		outcome = rollup_get(r, READ_FILE, origin);
	if (outcome != 0)
		return outcome == ROLLUP_NO_ROW ? rollup_fail_source(r, "a file is missing")
						: outcome;
	bool inode = sqlite3_column_type(st, 5) != SQLITE_NULL;
	return PUT(r, WRITE_FILE, CELL_I(*ret_row), CELL_I(sqlite3_column_int64(st, 0)),
		CELL_T(sqlite3_column_text(st, 1)),
		CELL_B(sqlite3_column_blob(st, 2), sqlite3_column_bytes(st, 2)),
		CELL_I_OR_NULL(inode, sqlite3_column_int64(st, 3)),
		CELL_I_OR_NULL(inode, sqlite3_column_int64(st, 4)),
		CELL_I_OR_NULL(inode, sqlite3_column_int64(st, 5)),
		CELL_I(sqlite3_column_int64(st, 6)), CELL_I(sqlite3_column_int64(st, 7)),
		CELL_I(sqlite3_column_int64(st, 8)), CELL_I(sqlite3_column_int64(st, 9)));
}

/* --- frames ----------------------------------------------------------------------------------- */

/* The names of a frame as they are gathered. */
struct places {
	char text[PLACES_MAX * PLACE_TEXT_BYTES];
	size_t n_bytes;
	uint32_t symbol; /* function of the last, which is the outermost */
	uint32_t n;
};

static int places_add(struct rollup *r, struct places *p, uint32_t function, uint32_t source,
	int64_t line, bool inlined)
{
	if (p->n++ >= PLACES_MAX)
		return rollup_fail_source(r, "a frame has too many names");
	p->n_bytes += (size_t)snprintf(p->text + p->n_bytes, PLACE_TEXT_BYTES, "%x,%x,%llx,%d;",
		function, source, (unsigned long long)line, inlined);
	p->symbol = function;
	return 0;
}

static int frame_key(struct rollup *r, const struct places *p, uint32_t file, int64_t offset,
	int64_t state, struct key *ret_key)
{
	*ret_key = (struct key){{file, p->symbol, (uint64_t)(uint8_t)state}};
	if (r->tier == TIER_HOUR)
		return 0;
	uint32_t text;
	int outcome = rollup_table_outcome(r, text_get(&r->texts, p->text, &text));
	*ret_key = (struct key){{file, (uint64_t)offset, text, (uint64_t)(uint8_t)state}};
	return outcome;
}

static int take_places(struct rollup *r, int64_t frame, struct places *p)
{
	p->n_bytes = p->n = p->symbol = 0;
	p->text[0] = '\0';
	int outcome = rollup_get(r, READ_PLACE, frame);
	while (outcome == 0) {
		uint32_t function, source = 0;
		outcome = rollup_name(r, true, rollup_integer(r, READ_PLACE, 1), &function);
		if (outcome == 0 && r->tier != TIER_HOUR)
			outcome = rollup_name(r, false, rollup_integer(r, READ_PLACE, 2), &source);
		if (outcome == 0)
			outcome =
				places_add(r, p, function, source, rollup_integer(r, READ_PLACE, 3),
					rollup_integer(r, READ_PLACE, 4) != 0);
		if (outcome == 0)
			outcome = rollup_next(r, READ_PLACE);
	}
	return outcome == ROLLUP_NO_ROW ? 0 : outcome;
}

/* The index + 1 of a source's frame; 0 for one that is not there. */
static int take_frame(struct rollup *r, int64_t id, uint32_t *ret_index)
{
	uint32_t *known, file, index;
	struct places places;
	struct key key;
	*ret_index = 0;
	if (id <= 0 || id > ROLLUP_IDS_MAX)
		return 0;
	int outcome = translation_get(r, &r->frame, id, &known);
	if (outcome != 0)
		return outcome;
	*ret_index = *known;
	if (*known != 0)
		return 0;
	outcome = rollup_get(r, READ_FRAME, id);
	if (outcome == 0)
		outcome = rollup_file(r, rollup_integer(r, READ_FRAME, 0), &file);
	if (outcome == 0)
		outcome = take_places(r, id, &places);
	if (outcome == 0)
		outcome = frame_key(r, &places, file, rollup_integer(r, READ_FRAME, 1),
			rollup_integer(r, READ_FRAME, 2), &key);
	if (outcome == 0)
		outcome = entries_get(r, &r->frames, &key, (uint32_t)id, &index);
	if (outcome == 0)
		*ret_index = *known = index + 1;
	return outcome == ROLLUP_NO_ROW ? 0 : outcome;
}

static int write_symbol(struct rollup *r, uint32_t row, uint32_t text)
{
	uint32_t function;
	struct cell none = CELL_I_OR_NULL(false, 0);
	if (text == 0)
		return 0;
	int outcome = rollup_name_row(r, true, text, &function);
	return outcome == 0 ? PUT(r, WRITE_PLACE, CELL_I(row), CELL_I(0),
				      CELL_I_OR_NULL(function, function), none, none, CELL_I(0))
			    : outcome;
}

static int write_places(struct rollup *r, uint32_t row, int64_t frame)
{
	sqlite3_stmt *st = r->read[READ_PLACE];
	int outcome = rollup_get(r, READ_PLACE, frame);
	while (outcome == 0) {
		uint32_t text, function, source;
		outcome = rollup_name(r, true, sqlite3_column_int64(st, 1), &text);
		if (outcome == 0)
			outcome = rollup_name_row(r, true, text, &function);
		if (outcome == 0)
			outcome = rollup_name(r, false, sqlite3_column_int64(st, 2), &text);
		if (outcome == 0)
			outcome = rollup_name_row(r, false, text, &source);
		bool line = sqlite3_column_type(st, 3) != SQLITE_NULL;
		if (outcome == 0)
			outcome = PUT(r, WRITE_PLACE, CELL_I(row),
				CELL_I(sqlite3_column_int64(st, 0)),
				CELL_I_OR_NULL(function, function), CELL_I_OR_NULL(source, source),
				CELL_I_OR_NULL(line, sqlite3_column_int64(st, 3)),
				CELL_I(sqlite3_column_int64(st, 4)));
		if (outcome == 0)
			outcome = rollup_next(r, READ_PLACE);
	}
	return outcome == ROLLUP_NO_ROW ? 0 : outcome;
}

/* Where the state of a frame stands in its key. */
static unsigned state_part(const struct rollup *r)
{
	return r->tier == TIER_HOUR ? 2 : 3;
}

/* The frame of that state which stands for several. In minutes, whose key has all its names in the
 * place of the function, only what users are over their share for is such. */
static int other_frame(struct rollup *r, uint64_t state, uint32_t *ret_index)
{
	const char *name = r->tier == TIER_HOUR ? "[other]" : SHARE_FUNCTION_FOLDED;
	uint32_t text, file = 0, index = 0;
	int outcome = rollup_table_outcome(r, text_get(&r->texts, name, &text));
	if (outcome == 0)
		outcome = entries_get(r, &r->files, &(struct key){{FILE_UNKNOWN, text}}, 0, &file);
	struct key key = {{file + 1, state == FRAME_NAMED ? text : 0}};
	key.part[state_part(r)] = state;
	if (outcome == 0)
		outcome = entries_get(r, &r->frames, &key, 0, &index);
	*ret_index = index + 1;
	return outcome;
}

static int frame_row(struct rollup *r, uint32_t index, uint32_t *ret_row)
{
	*ret_row = index ? rows_get(&r->frames.rows, index - 1) : 0;
	if (index == 0 || *ret_row != 0 || r->frames.rows.n_rows >= ROLLUP_IDS_MAX)
		return 0;
	struct key key = r->frames.keys.key[index - 1];
	uint32_t file, origin = r->frames.origin[index - 1];
	int64_t offset = 0;
	int outcome = rollup_file_row(r, (uint32_t)key.part[0], &file);
	if (outcome == 0 && origin != 0) {
		outcome = rollup_get(r, READ_FRAME, origin);
		offset = outcome == 0 ? rollup_integer(r, READ_FRAME, 1) : 0;
	}
	if (outcome == 0)
		outcome = rows_add(&r->frames.rows, index - 1, ret_row);
	if (outcome == 0)
		outcome = PUT(r, WRITE_FRAME, CELL_I(*ret_row), CELL_I(file), CELL_I(offset),
			CELL_I(key.part[state_part(r)]));
	if (outcome == 0)
		outcome = r->tier == TIER_HOUR || origin == 0
				  ? write_symbol(r, *ret_row, (uint32_t)key.part[1])
				  : write_places(r, *ret_row, origin);
	return outcome == ROLLUP_NO_ROW ? rollup_fail_source(r, "a frame is missing") : outcome;
}

/* --- stacks ----------------------------------------------------------------------------------- */

static int get_stack(struct rollup *r, uint32_t parent, uint32_t frame, uint32_t *ret_index)
{
	uint32_t index;
	int outcome = entries_get(r, &r->stacks, &(struct key){{parent, frame}}, 0, &index);
	*ret_index = index + 1;
	return outcome;
}

int rollup_leaf(struct rollup *r, uint32_t stack, uint32_t *ret_index)
{
	*ret_index = 0;
	return stack == 0 ? 0
			  : get_stack(r, 0, (uint32_t)r->stacks.keys.key[stack - 1].part[1],
				    ret_index);
}

int rollup_other_stack(struct rollup *r, uint32_t stack, uint32_t *ret_index)
{
	uint32_t frame;
	*ret_index = 0;
	if (stack == 0)
		return 0;
	frame = (uint32_t)r->stacks.keys.key[stack - 1].part[1];
	int outcome = other_frame(
		r, frame ? r->frames.keys.key[frame - 1].part[state_part(r)] : 0, &frame);
	return outcome == 0 ? get_stack(r, 0, frame, ret_index) : outcome;
}

int rollup_stack(struct rollup *r, int64_t id, uint32_t *ret_index)
{
	uint32_t *known, n = 0, frame;
	int outcome = 0;
	*ret_index = 0;
	if (id <= 0)
		return 0;
	if (id > ROLLUP_IDS_MAX)
		return rollup_fail_source(r, "an id is out of bounds");
	/* up to a caller that is known, or to the outermost */
	while (id > 0 && outcome == 0) {
		outcome = translation_get(r, &r->stack, id, &known);
		if (outcome != 0 || *known != 0)
			break;
		outcome = array_grow(&r->path, &r->size_path, n + 1, sizeof(*r->path));
		if (outcome == 0)
			outcome = rollup_get(r, READ_STACK, id);
		if (outcome == ROLLUP_NO_ROW)
			return rollup_fail_source(r, "a stack is missing");
		if (outcome != 0)
			break;
		r->path[n].id = (uint32_t)id;
		r->path[n++].frame = rollup_integer(r, READ_STACK, 1);
		int64_t parent = rollup_integer(r, READ_STACK, 0);
		if (parent < 0 || parent >= id)
			return rollup_fail_source(r, "a stack comes before its caller");
		id = parent;
	}
	if (outcome == 0 && id > 0)
		*ret_index = *known;
	while (n > 0 && outcome == 0) {
		n--;
		outcome = take_frame(r, r->path[n].frame, &frame);
		if (outcome == 0)
			outcome = get_stack(r, *ret_index, frame, ret_index);
		if (outcome == 0)
			r->stack.index[r->path[n].id] = *ret_index;
	}
	return outcome;
}

static int write_stack(struct rollup *r, uint32_t index, uint32_t parent, uint32_t *ret_row)
{
	uint32_t frame;
	int outcome = frame_row(r, (uint32_t)r->stacks.keys.key[index - 1].part[1], &frame);
	if (outcome == 0)
		outcome = rows_add(&r->stacks.rows, index - 1, ret_row);
	return outcome == 0 ? PUT(r, WRITE_STACK, CELL_I(*ret_row), CELL_I(parent), CELL_I(frame))
			    : outcome;
}

int rollup_stack_row(struct rollup *r, uint32_t index, bool *ret_cut, uint32_t *ret_row)
{
	uint32_t n = 0, row = 0;
	int outcome = 0;
	*ret_cut = false;
	if (index != 0 && rows_get(&r->stacks.rows, index - 1) == 0 &&
		r->stacks.rows.n_rows >= r->stacks_max &&
		r->stacks.keys.key[index - 1].part[0] != 0) {
		outcome = rollup_leaf(r, index, &index);
		*ret_cut = true;
	}
	for (; index != 0 && outcome == 0; n++) {
		row = rows_get(&r->stacks.rows, index - 1);
		if (row != 0)
			break;
		outcome = array_grow(&r->path, &r->size_path, n + 1, sizeof(*r->path));
		if (outcome != 0)
			break;
		r->path[n].id = index;
		index = (uint32_t)r->stacks.keys.key[index - 1].part[0];
	}
	bool room = r->stacks.rows.n_rows + (uint64_t)n <= ROLLUP_IDS_MAX;
	while (n > 0 && outcome == 0 && room)
		outcome = write_stack(r, r->path[--n].id, row, &row);
	*ret_row = room ? row : 0;
	return outcome;
}

/* --- the target's ----------------------------------------------------------------------------- */

/* What rows of the target mean, while it is read. */
struct loading {
	uint32_t *function, *source;    /* row → text */
	uint32_t *file, *frame, *stack; /* row → index + 1 */
	uint32_t n_functions, n_sources, n_files, n_frames, n_stacks;
	struct places places;
	int64_t id, offset, state; /* of the frame under way */
	uint32_t of_file;
};

static int invert(const struct rows *rows, uint32_t more, uint32_t **ret, uint32_t *ret_n)
{
	*ret = calloc((size_t)rows->n_rows + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_n = rows->n_rows;
	for (uint32_t i = 0; i < rows->size; i++)
		if (rows->row[i] != 0)
			(*ret)[rows->row[i]] = i + more;
	return 0;
}

static uint32_t find(const uint32_t *of, uint32_t n, int64_t row)
{
	return row > 0 && row <= n ? of[row] : 0;
}

static int end_frame(struct rollup *r, struct loading *l)
{
	struct key key;
	if (l->id == 0)
		return 0;
	int outcome = frame_key(r, &l->places, l->of_file, l->offset, l->state, &key);
	return outcome == 0 ? entries_load(r, &r->frames, &key, l->id) : outcome;
}

static int load_place(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	struct loading *l = userdata;
	int64_t id = sqlite3_column_int64(st, 0);
	if (id != l->id) {
		int outcome = end_frame(r, l);
		if (outcome != 0)
			return outcome;
		l->places.n = l->places.n_bytes = l->places.symbol = 0;
		l->places.text[0] = '\0';
		l->id = id;
		l->of_file = find(l->file, l->n_files, sqlite3_column_int64(st, 1));
		l->offset = sqlite3_column_int64(st, 2);
		l->state = sqlite3_column_int64(st, 3);
	}
	if (sqlite3_column_type(st, 4) == SQLITE_NULL)
		return 0; /* it has no names */
	if (l->places.n >= PLACES_MAX)
		return rollup_fail_target(r, "a frame has too many names");
	return places_add(r, &l->places,
		find(l->function, l->n_functions, sqlite3_column_int64(st, 5)),
		find(l->source, l->n_sources, sqlite3_column_int64(st, 6)),
		sqlite3_column_int64(st, 7), sqlite3_column_int64(st, 8) != 0);
}

static int load_stack(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	struct loading *l = userdata;
	int64_t id = sqlite3_column_int64(st, 0), parent = sqlite3_column_int64(st, 1);
	uint32_t above = find(l->stack, l->n_stacks, parent), index;
	if (id <= 0 || id > l->n_stacks || parent >= id || (parent != 0 && above == 0))
		return rollup_fail_target(r, "a stack comes before its caller");
	struct key key = {{above, find(l->frame, l->n_frames, sqlite3_column_int64(st, 2))}};
	int outcome = entries_load(r, &r->stacks, &key, id);
	if (outcome == 0)
		outcome = entries_get(r, &r->stacks, &key, 0, &index);
	if (outcome == 0)
		l->stack[id] = index + 1;
	return outcome;
}

static int load_highest(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	int64_t n = sqlite3_column_int64(st, 0);
	if (n < 0 || n > ROLLUP_IDS_MAX)
		return rollup_fail_target(r, "an id is out of bounds");
	*(uint32_t *)userdata = (uint32_t)n;
	return 0;
}

static int load_all(struct rollup *r, struct loading *l)
{
	int outcome = rollup_each(r,
		"SELECT id, kind, path, build_id, major, minor, inode, deleted FROM file "
		"ORDER BY id",
		load_file, NULL);
	if (outcome == 0)
		outcome = invert(&r->functions, 0, &l->function, &l->n_functions);
	if (outcome == 0)
		outcome = invert(&r->sources, 0, &l->source, &l->n_sources);
	if (outcome == 0)
		outcome = invert(&r->files.rows, 1, &l->file, &l->n_files);
	if (outcome == 0)
		outcome = rollup_each(r,
			"SELECT f.id, file, offset, state, depth, function, source, line, inlined "
			"FROM frame f LEFT JOIN place p ON p.frame = f.id ORDER BY f.id, depth",
			load_place, l);
	if (outcome == 0)
		outcome = end_frame(r, l);
	if (outcome == 0)
		outcome = invert(&r->frames.rows, 1, &l->frame, &l->n_frames);
	if (outcome == 0)
		outcome = rollup_each(r, "SELECT max(id) FROM stack", load_highest, &l->n_stacks);
	if (outcome != 0)
		return outcome;
	l->stack = calloc((size_t)l->n_stacks + 1, sizeof(*l->stack));
	if (!l->stack)
		return -ENOMEM;
	return rollup_each(r, "SELECT id, parent, frame FROM stack ORDER BY id", load_stack, l);
}

int rollup_load_stacks(struct rollup *r)
{
	struct loading *l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	int outcome = load_all(r, l);
	free(l->function);
	free(l->source);
	free(l->file);
	free(l->frame);
	free(l->stack);
	free(l);
	return outcome;
}

void rollup_forget_stacks(struct rollup *r)
{
	entries_clear(&r->files);
	entries_clear(&r->frames);
	entries_clear(&r->stacks);
	free(r->file.index);
	free(r->frame.index);
	free(r->stack.index);
	free(r->path);
}
