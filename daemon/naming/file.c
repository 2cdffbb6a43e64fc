/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Files that code was mapped from, and the frames in them
 *
 * Which fields identify a file depends on its kind, so the table does not hash fields: it hashes a
 * short byte string that file_key_write builds from the relevant fields. Frames are far more
 * numerous, and have an index of their own.
 */

#include "daemon/naming/file_room.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/memory.h"

/* kind, a tag, then at most user, device, inode, or pid, start, generation, or a build id; and the
 * path */
#define FILE_KEY_BYTES_MAX (2 + 4 + 4 + 8 + 8 + 8 + PATH_MAX)

static const char deleted_suffix[] = " (deleted)";

struct file_entry {
	struct file file;
	size_t n_key;
	uint8_t key[];
};
_Static_assert(offsetof(struct file_entry, file) == 0, "a file is its entry");

static const char *const file_states[] = {
	[FILE_UNSEEN] = "not requested",
	[FILE_OPENING] = "being opened",
	[FILE_READY] = "read",
	[FILE_VANISHED] = "the file is gone or was replaced",
	[FILE_REFUSED] = "access to the file is denied",
	[FILE_NO_SYMBOLS] = "the file has no symbols and no debug information",
	[FILE_MALFORMED] = "the file is malformed",
	[FILE_HUNG] = "opening the file took too long",
	[FILE_SPUN] = "the parser ran out of time",
	[FILE_CRASHED] = "the parser crashed on it",
	[FILE_OVERSIZE] = "the file exceeds the limits of size or memory",
};

const char *file_state_says(enum file_state s)
{
	unsigned int i = s;

	return i < sizeof(file_states) / sizeof(*file_states) ? file_states[i] : "unknown";
}

size_t file_call_code(
	const char *path, uint64_t addr, bool is_start, char ret_name[static CODE_NAME_BYTES])
{
	const char *slash = strrchr(path, '/'), *base = slash && slash[1] ? slash + 1 : path;
	const int n = snprintf(ret_name, CODE_NAME_BYTES, "%.*s+0x%" PRIx64 "%s", NAME_MAX, base,
		is_start ? addr : addr >> 12, is_start ? "" : "xxx");

	return (size_t)n;
}

static bool file_kind_is_own(enum file_kind kind)
{
	return kind == FILE_PERF_MAP || kind == FILE_JITDUMP;
}

static void put(uint8_t *key, size_t *n, const void *bytes, size_t n_bytes)
{
	memcpy(key + *n, bytes, n_bytes);
	*n += n_bytes;
}

/* Write the bytes that identify this file; returns their number. n_path excludes " (deleted)". */
static size_t file_key_write(const struct file_key *k, size_t n_path, uint8_t *key)
{
	size_t n = 0;

	key[n++] = (uint8_t)k->kind;
	if (k->kind == FILE_ELF)
		put(key, &n, &k->uid, sizeof(k->uid));
	if (k->n_build_id && k->kind == FILE_ELF) {
		key[n++] = 'b';
		put(key, &n, k->build_id, k->n_build_id);
		return n;
	}

	if (file_kind_is_own(k->kind)) {
		key[n++] = 'p';
		put(key, &n, &k->pid, sizeof(k->pid));
		put(key, &n, &k->pid_start_ns, sizeof(k->pid_start_ns));
		put(key, &n, &k->generation, sizeof(k->generation));
	} else if (k->kind == FILE_ELF) {
		key[n++] = 'i';
		put(key, &n, &k->major, sizeof(k->major));
		put(key, &n, &k->minor, sizeof(k->minor));
		put(key, &n, &k->inode, sizeof(k->inode));
	} else {
		key[n++] = 'n';
	}
	put(key, &n, k->path, n_path);
	return n;
}

static int file_table_reserve(struct file_table *t)
{
	if (t->n_free_files || t->n_files < t->size_file)
		return 0;

	size_t size = t->size_file ? t->size_file * 2 : 64;
	struct file **file = reallocarray(t->file, size, sizeof(*file));
	if (!file)
		return -ENOMEM;

	t->file = file;
	t->size_file = size;
	return 0;
}

static struct file_entry *file_entry_new(
	const struct file_key *k, size_t n_path, const uint8_t *key, size_t n_key)
{
	_cleanup_(freep) struct file_entry *e = calloc(1, sizeof(*e) + n_key);
	if (!e)
		return NULL;

	e->file.path = strndup(k->path, n_path);
	if (!e->file.path)
		return NULL;

	e->file.kind = k->kind;
	e->file.n_build_id = k->n_build_id;
	if (k->n_build_id)
		memcpy(e->file.build_id, k->build_id, k->n_build_id);
	e->file.major = k->major;
	e->file.minor = k->minor;
	e->file.inode = k->inode;
	e->file.generation = k->generation;
	e->file.deleted = k->path[n_path] != '\0';
	e->file.uid = k->uid;
	e->file.pid = k->pid;
	e->file.pid_start_ns = k->pid_start_ns;
	e->n_key = n_key;
	memcpy(e->key, key, n_key);
	return TAKE_PTR(e);
}

/* Length of the path without " (deleted)", which the kernel appends for unlinked files. */
static size_t file_path_bytes(const char *path)
{
	size_t n = strnlen(path, PATH_MAX), n_suffix = sizeof(deleted_suffix) - 1;

	if (n > n_suffix && !memcmp(path + n - n_suffix, deleted_suffix, n_suffix))
		return n - n_suffix;
	return n;
}

/* An inode number is reused as soon as its file is gone: a program that is built, run, removed and
 * rebuilt has the same one. If the kernel's records give the generation, a new generation is a new
 * file, and the former is no longer found from then on. /proc does not give the generation, so a file known
 * from /proc gets it from a later record. A file rewritten in place keeps its generation; the opener finds
 * that out. A file whose status has changed may have been rewritten: it becomes a former file, whose code can
 * still be named. */
static bool file_is_former(struct file *known, const struct file_key *k)
{
	bool told = k->generation && known->generation != k->generation;
	bool over = known->replaced || known->touched;

	if (k->kind != FILE_ELF || k->n_build_id || !(told || over))
		return false;
	if (!over && !known->generation) {
		known->generation = k->generation;
		return false;
	}
	known->replaced |= !known->touched;
	return true;
}

int file_get(struct file_table *t, const struct file_key *key, struct file **ret_file)
{
	assert(key->n_build_id <= sizeof((*ret_file)->build_id));

	uint8_t bytes[FILE_KEY_BYTES_MAX];
	size_t n_path = file_path_bytes(key->path);
	size_t n = file_key_write(key, n_path, bytes);
	struct file *known;

	HASH_FIND(hh, t->by_key, bytes, n, known);
	bool full = t->n_files >= FILES_MAX && !t->n_free_files;
	if (known && !(!full && file_is_former(known, key))) {
		known->age = t->age;
		*ret_file = known;
		return 0;
	}
	const uint32_t size = 1 + (uint32_t)(n_path / FILE_PATH_BYTES);
	if (full || !room_take_file(t, key->account, size)) {
		t->n_refused++;
		return FILE_TABLE_FULL;
	}

	int r = file_table_reserve(t);
	struct file_entry *e = r == 0 ? file_entry_new(key, n_path, bytes, n) : NULL;
	if (!e) {
		room_give_file(t, key->account, size);
		return -ENOMEM;
	}

	struct file *file = &e->file;
	file->account = key->account;
	file->size = size;
	if (known)
		HASH_DEL(t->by_key, known);
	HASH_ADD_KEYPTR(hh, t->by_key, e->key, e->n_key, file);
	if (!file->hh.tbl) {
		room_give_file(t, key->account, size);
		free(file->path);
		free(e);
		return -ENOMEM;
	}
	file->id = t->n_free_files ? t->free_file[--t->n_free_files] : ++t->n_files;
	file->age = t->age;
	t->file[file->id - 1] = file;
	*ret_file = file;
	return 0;
}

/* Are the files of these two users, which have the same inode, the same file? Yes also if `known` was
 * replaced: the replaced file is still mapped where `file` is. But a file that was mapped only later,
 * and whose generation the kernel does not give, may be the replacement. */
static bool is_same_file(const struct file *known, const struct file *file)
{
	bool later = (known->replaced || known->touched) && file->mapped_ns > known->mapped_ns;

	return known->generation == file->generation && !later;
}

int file_of_user(
	struct file_table *t, struct file *file, uid_t uid, uid_t account, struct file **ret_file)
{
	struct file_key key = {
		.kind = file->kind,
		.path = file->path,
		.build_id = file->build_id,
		.n_build_id = file->n_build_id,
		.major = file->major,
		.minor = file->minor,
		.inode = file->inode,
		.generation = file->generation,
		.uid = uid,
		.account = account,
	};
	uint8_t bytes[FILE_KEY_BYTES_MAX];
	struct file *known;

	*ret_file = file;
	if (file->kind != FILE_ELF || file->uid == uid)
		return 0;
	size_t n = file_key_write(&key, file_path_bytes(file->path), bytes);
	HASH_FIND(hh, t->by_key, bytes, n, known);
	if (known && is_same_file(known, file)) {
		known->age = t->age;
		*ret_file = known;
		return 0;
	}
	int r = file_get(t, &key, &known);
	if (r != 0)
		return r;
	known->deleted = file->deleted;
	if (!known->mapped_ns) {
		known->mapped_ns = file->mapped_ns;
		known->mapper = file->mapper;
	}
	*ret_file = known;
	return 0;
}

static int frame_table_reserve(struct file_table *t)
{
	if (t->n_free_frames || t->n_frames < t->size_frame)
		return 0;

	size_t size = t->size_frame ? t->size_frame * 2 : 1024;
	struct frame **frame = reallocarray(t->frame, size, sizeof(*frame));
	if (!frame)
		return -ENOMEM;

	t->frame = frame;
	t->size_frame = size;
	return 0;
}

static struct frame *frame_new(
	struct file_table *t, struct file *file, uint64_t offset, uint32_t version)
{
	if (frame_table_reserve(t) < 0)
		return NULL;
	size_t bytes = file_grows(file) ? sizeof(struct frame_of_version) : sizeof(struct frame);
	_cleanup_(freep) struct frame *frame = calloc(1, bytes);
	if (!frame)
		return NULL;

	frame->file = file;
	frame->offset = offset;
	if (file_grows(file))
		((struct frame_of_version *)frame)->version = version;
	return frame_index_add(&t->frames, frame) < 0 ? NULL : TAKE_PTR(frame);
}

int frame_get_for(struct file_table *t, struct file *file, uint64_t offset, uint64_t time_ns,
	uid_t account, struct frame **ret_frame)
{
	uint32_t version = file->versions ? version_at(t, file, offset, time_ns) : 0;
	struct frame *known = frame_index_find(&t->frames, file, offset, version);

	if (known) {
		if (known->age != t->age) /* do not dirty cache lines that others read */
			known->age = t->age;
		*ret_frame = known;
		return 0;
	}
	if ((t->n_frames >= FRAMES_MAX && !t->n_free_frames) ||
		!room_take_frame(t, file, account)) {
		t->n_refused++;
		return FILE_TABLE_FULL;
	}
	struct frame *frame = frame_new(t, file, offset, version);
	if (!frame) {
		room_give_frame(t, file, account);
		return -ENOMEM;
	}

	if (file->first_ns == 0)
		file->first_ns = time_ns;
	frame->account = account;
	frame->id = t->n_free_frames ? t->free_frame[--t->n_free_frames] : ++t->n_frames;
	frame->age = t->age;
	t->frame[frame->id - 1] = frame;
	*ret_frame = frame;
	return 0;
}

int frame_get(struct file_table *t, struct file *file, uint64_t offset, struct frame **ret_frame)
{
	return frame_get_for(t, file, offset, 0, file->uid, ret_frame);
}

/* A place takes a quarter of a frame's bytes. */
static uint32_t more_frames(uint16_t n_places)
{
	return n_places > FRAME_PLACES ? (n_places - 1) / FRAME_PLACES : 0;
}

void frame_set_places(struct file_table *t, struct frame *frame, struct place *place, uint16_t n)
{
	quota_give(&t->frames_of, frame->account, more_frames(frame->n_places));
	if (!quota_take(&t->frames_of, frame->account, FRAMES_MAX, more_frames(n))) {
		place[0] = place[n - 1];
		n = 1;
	}
	free(frame->place);
	frame->place = place;
	frame->n_places = n;
}

static struct frame *frame_free(struct file_table *t, struct frame *frame)
{
	if (!frame)
		return NULL;
	quota_give(&t->frames_of, frame->account, more_frames(frame->n_places));
	room_give_frame(t, frame->file, frame->account);
	free(frame->place);
	free(frame);
	return NULL;
}

static struct file *file_free(struct file_table *t, struct file *file)
{
	if (!file)
		return NULL;
	room_give_file(t, file->account, file->size);
	versions_free(file->versions);
	free(file->path);
	free(file->debug_path);
	free(file);
	return NULL;
}

/* Remove a file from the index, unless it is a former one: a former file's key finds no file, or
 * another one. */
static void file_unlist(struct file_table *t, struct file *file)
{
	struct file_entry *e = (struct file_entry *)file;
	struct file *known;

	HASH_FIND(hh, t->by_key, e->key, e->n_key, known);
	if (known == file)
		HASH_DEL(t->by_key, file);
}

/* The reusable ids, the lowest last. *n_ids becomes the highest id in use. */
static uint32_t list_free(void **entry, const uint8_t *mark, uint32_t *n_ids, uint32_t *free_id)
{
	uint32_t n_free = 0;

	while (*n_ids && !entry[*n_ids - 1] && mark[*n_ids - 1] == SWEEP_FREE)
		--*n_ids;
	for (uint32_t i = *n_ids; i-- > 0;)
		if (!entry[i] && mark[i] == SWEEP_FREE)
			free_id[n_free++] = i + 1;
	return n_free;
}

static uint32_t *free_ids_new(const uint8_t *mark, uint32_t n)
{
	size_t n_free = 0;

	for (uint32_t i = 0; i < n; i++)
		n_free += mark[i] == SWEEP_FREE;
	return calloc(n_free + 1, sizeof(uint32_t));
}

/* Shrink an array that is much too long. Without memory it stays as it is. */
static void shrink(void *array, size_t *size, size_t n, size_t element_bytes)
{
	void **p = array;
	size_t wanted = n > 1024 ? n : 1024;
	void *shorter = *size / 4 > wanted ? reallocarray(*p, wanted, element_bytes) : NULL;

	if (!shorter)
		return;
	*p = shorter;
	*size = wanted;
}

int file_table_sweep(struct file_table *t, const struct file_marks *marks)
{
	uint32_t *free_frame = free_ids_new(marks->frame, t->n_frames);
	uint32_t *free_file = free_ids_new(marks->file, t->n_files);

	if (!free_frame || !free_file) {
		free(free_frame);
		free(free_file);
		return -ENOMEM;
	}
	bool any = false;
	for (uint32_t i = 0; i < t->n_frames; i++) {
		struct frame *frame = t->frame[i];

		if (!frame || marks->frame[i] == SWEEP_KEPT)
			continue;
		t->frame[i] = frame_free(t, frame);
		any = true;
	}
	for (uint32_t i = 0; i < t->n_files; i++) {
		struct file *file = t->file[i];

		if (!file || marks->file[i] == SWEEP_KEPT)
			continue;
		file_unlist(t, file);
		t->file[i] = file_free(t, file);
	}
	free(t->free_frame);
	free(t->free_file);
	t->free_frame = free_frame;
	t->free_file = free_file;
	t->n_free_frames = list_free((void **)t->frame, marks->frame, &t->n_frames, t->free_frame);
	t->n_free_files = list_free((void **)t->file, marks->file, &t->n_files, t->free_file);
	shrink(&t->frame, &t->size_frame, t->n_frames, sizeof(*t->frame));
	shrink(&t->file, &t->size_file, t->n_files, sizeof(*t->file));
	if (any)
		frame_index_set(&t->frames, t->frame, t->n_frames);
	return 0;
}

void file_table_clear(struct file_table *t)
{
	frame_index_clear(&t->frames);
	HASH_CLEAR(hh, t->by_key);
	for (uint32_t i = 0; i < t->n_frames; i++)
		frame_free(t, t->frame[i]);
	for (uint32_t i = 0; i < t->n_files; i++)
		file_free(t, t->file[i]);
	free(t->frame);
	free(t->file);
	free(t->free_frame);
	free(t->free_file);
	quota_clear(&t->files_of);
	quota_clear(&t->frames_of);
	*t = (struct file_table){0};
}
