/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Room: the places and memory that files and frames take of their user's quotas */

#include "daemon/naming/file.h"

/* False: the user may have no more. */
bool room_take_frame(struct file_table *t, const struct file *file, uid_t uid);
void room_give_frame(struct file_table *t, const struct file *file, uid_t uid);
/* size: in places. */
bool room_take_file(struct file_table *t, uid_t uid, uint32_t size);
void room_give_file(struct file_table *t, uid_t uid, uint32_t size);
/* Take bytes for data that belongs to a file, until the data is freed. */
bool room_take_more(struct file_table *t, struct file *file, uint64_t bytes);
