/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A file is sent once for each user whose processes map it, since users differ in what they may
 * read. Most are the same files nonetheless: on a machine with services of ten users the C library
 * came ten times, each with 8 MB of debug information. Files that were opened for two users and are
 * the same, debug files included, have one image. One user's debug file never serves another: a user who
 * did not get it keeps an image without it, and an image that may want files of split units is not
 * shared.
 */

#include <sys/stat.h>

#include "daemon/namer/parser_private.h"

static bool same_identity(const struct identity *a, const struct identity *b)
{
	return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
	       a->written_ns == b->written_ns && a->changed_ns == b->changed_ns;
}

static int64_t in_ns(const struct timespec *t)
{
	return t->tv_sec * INT64_C(1000000000) + t->tv_nsec;
}

bool parser_identify(int fd, struct identity *ret_identity)
{
	struct stat s;

	if (fd < 0 || fstat(fd, &s) < 0)
		return false;
	*ret_identity = (struct identity){
		.device = s.st_dev,
		.inode = s.st_ino,
		.bytes = s.st_size,
		.written_ns = in_ns(&s.st_mtim),
		.changed_ns = in_ns(&s.st_ctim),
	};
	return true;
}

/* Was the other's image made of the same files, none of which was written to since? */
static bool same_files(const struct parsed_file *f, const struct parsed_file *other)
{
	for (int part = 0; part < N_PARTS; part++) {
		struct identity is;
		if ((f->fd[part] < 0) != (other->fd[part] < 0))
			return false;
		if (f->fd[part] >= 0 && (!parser_identify(f->fd[part], &is) ||
						!same_identity(&is, &other->identity[part])))
			return false;
	}
	return true;
}

bool parser_share(struct parser *p, struct parsed_file *f)
{
	if (f->kind != KIND_ELF)
		return false;
	for (uint32_t i = 0; i < p->n_files; i++) {
		const struct parsed_file *other = &p->file[i];
		if (other == f || other->kind != KIND_ELF || !other->image ||
			image_may_be_split(other->image) || !same_files(f, other))
			continue;
		if (f->image == other->image)
			return true;
		image_free(f->image);
		f->image = image_ref(other->image);
		f->loaded = true;
		f->load = other->load;
		f->lines = other->lines;
		f->units = other->units;
		f->debug_belongs = other->debug_belongs;
		memcpy(f->identity, other->identity, sizeof(f->identity));
		return true;
	}
	return false;
}

void parser_touch_shared(struct parser *p, const struct parsed_file *f)
{
	for (uint32_t i = 0; f->image && image_is_shared(f->image) && i < p->n_files; i++) {
		struct parsed_file *other = &p->file[i];
		if (other->image != f->image)
			continue;
		other->used = f->used;
		other->used_ns = f->used_ns;
		other->rests = false;
	}
}
