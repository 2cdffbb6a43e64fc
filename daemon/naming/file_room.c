/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Room that files and frames take: places of their user in the table, and memory of the pool, if there is one. */

#include "daemon/naming/file_room.h"

/* Take memory for a frame or file out of the pool. */
static bool take_bytes(struct file_table *t, uint64_t bytes)
{
	return !t->pool || quota_take(t->pool, t->pool_uid, POOL_BYTES_MAX, bytes);
}

static void give_bytes(struct file_table *t, uint64_t bytes)
{
	if (t->pool)
		quota_give(t->pool, t->pool_uid, bytes);
}

static uint32_t frame_bytes(const struct file *file)
{
	return FRAME_BYTES + (file_grows(file) ? FRAME_VERSION_BYTES : 0);
}

bool room_take_frame(struct file_table *t, const struct file *file, uid_t uid)
{
	if (!quota_take(&t->frames_of, uid, FRAMES_MAX, 1))
		return false;
	if (take_bytes(t, frame_bytes(file)))
		return true;
	quota_give(&t->frames_of, uid, 1);
	return false;
}

void room_give_frame(struct file_table *t, const struct file *file, uid_t uid)
{
	quota_give(&t->frames_of, uid, 1);
	give_bytes(t, frame_bytes(file));
}

bool room_take_file(struct file_table *t, uid_t uid, uint32_t size)
{
	if (!quota_take(&t->files_of, uid, FILES_MAX, size))
		return false;
	if (take_bytes(t, (uint64_t)size * FILE_BYTES))
		return true;
	quota_give(&t->files_of, uid, size);
	return false;
}

void room_give_file(struct file_table *t, uid_t uid, uint32_t size)
{
	quota_give(&t->files_of, uid, size);
	give_bytes(t, (uint64_t)size * FILE_BYTES);
}

bool room_take_more(struct file_table *t, struct file *file, uint64_t bytes)
{
	uint32_t places = (uint32_t)(bytes / FILE_BYTES) + 1;

	if (!room_take_file(t, file->account, places))
		return false;
	file->size += places;
	return true;
}
