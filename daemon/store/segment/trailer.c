/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The hash is of the bytes, not of the rows: it is as fast as the disc, and covers every bit of the
 * file, including indices, free pages and lengths that SQLite trusts. It is after the pages and not
 * in a row, so that it covers all of them. If SQLite writes to the file, the file has only whole
 * pages again, or a wrong hash: changing a sealed file breaks the seal, so remove the seal first.
 */

#include "daemon/store/segment/trailer.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "proto/base/memory.h"

/* Read at once: large enough for the disc, small enough for the cache. */
#define CHUNK_BYTES (256u << 10)
/* Smallest page of SQLite. Source: https://www.sqlite.org/fileformat.html, "Page Size". */
#define PAGE_BYTES_MIN 512

struct trailer {
	char tag[8];
	uint64_t n_bytes; /* before it; little endian */
	XXH128_canonical_t hash;
};
_Static_assert(sizeof(struct trailer) == TRAILER_BYTES, "as drawn in the header");

static const char tag[8] = {'m', 'P', 'r', 'f', 'S', 'e', 'a', 'l'};

static void state_freep(XXH3_state_t **state)
{
	XXH3_freeState(*state);
}

int segment_identify(int fd, struct segment_identity *ret_identity)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_identity = (struct segment_identity){
		.device = st.st_dev,
		.inode = st.st_ino,
		.bytes = (uint64_t)st.st_size,
		.modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
	};
	return 0;
}

bool segment_identity_equal(const struct segment_identity *a, const struct segment_identity *b)
{
	return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
	       a->modified_ns == b->modified_ns;
}

/* All of it; -EIO where the file ends before. */
static int read_all(int fd, void *bytes, size_t n, uint64_t at)
{
	for (size_t done = 0; done < n;) {
		ssize_t m = pread(fd, (char *)bytes + done, n - done, (off_t)(at + done));
		if (m < 0 && errno == EINTR)
			continue;
		if (m <= 0)
			return m < 0 ? -errno : -EIO;
		done += (size_t)m;
	}
	return 0;
}

/* Hash the bytes from..to of the file. */
static int hash_part(int fd, XXH3_state_t *state, char *chunk, uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at < to;) {
		size_t n = to - at < CHUNK_BYTES ? (size_t)(to - at) : CHUNK_BYTES;
		int r = read_all(fd, chunk, n, at);
		if (r < 0)
			return r;
		XXH3_128bits_update(state, chunk, n);
		at += n;
	}
	return 0;
}

static int hash(int fd, uint64_t n_bytes, XXH128_canonical_t *ret_hash)
{
	_cleanup_(freep) char *chunk = malloc(CHUNK_BYTES);
	_cleanup_(state_freep) XXH3_state_t *state = XXH3_createState();
	if (!chunk || !state)
		return -ENOMEM;
	XXH3_128bits_reset(state);
	int r = hash_part(fd, state, chunk, 0, n_bytes);
	if (r == 0)
		XXH128_canonicalFromHash(ret_hash, XXH3_128bits_digest(state));
	return r;
}

/* 0; TRAILER_NONE; -errno. */
static int read_trailer(int fd, struct trailer *ret_trailer, uint64_t *ret_n_bytes)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	uint64_t size = (uint64_t)st.st_size;
	/* otherwise it could be stored text that ends a page */
	if (size % PAGE_BYTES_MIN != TRAILER_BYTES)
		return TRAILER_NONE;
	int r = read_all(fd, ret_trailer, sizeof(*ret_trailer), size - TRAILER_BYTES);
	if (r < 0)
		return r;
	*ret_n_bytes = size - TRAILER_BYTES;
	return memcmp(ret_trailer->tag, tag, sizeof(tag)) == 0 ? 0 : TRAILER_NONE;
}

int trailer_is_there(int fd)
{
	struct trailer t;
	uint64_t n_bytes;
	int r = read_trailer(fd, &t, &n_bytes);
	return r < 0 ? r : r == 0;
}

int trailer_verify(int fd)
{
	struct trailer t;
	uint64_t n_bytes;
	int r = read_trailer(fd, &t, &n_bytes);
	if (r != 0)
		return r;
	XXH128_canonical_t found;
	if (le64toh(t.n_bytes) != n_bytes)
		return TRAILER_OTHER;
	r = hash(fd, n_bytes, &found);
	if (r < 0)
		return r;
	return memcmp(&found, &t.hash, sizeof(found)) == 0 ? 0 : TRAILER_OTHER;
}

/* Whole pages, followed by no seal or an incomplete one. */
static int cut_trailer(int fd, uint64_t *ret_n_bytes)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	uint64_t n = (uint64_t)st.st_size - (uint64_t)st.st_size % PAGE_BYTES_MIN;
	if (n != (uint64_t)st.st_size && ftruncate(fd, (off_t)n) < 0)
		return -errno;
	*ret_n_bytes = n;
	return 0;
}

struct trailer_writer {
	int fd; /* borrowed */
	uint64_t n_bytes, at;
	XXH3_state_t *state;
	char *chunk;
};

struct trailer_writer *trailer_free(struct trailer_writer *w)
{
	if (!w)
		return NULL;
	XXH3_freeState(w->state);
	free(w->chunk);
	free(w);
	return NULL;
}

static void trailer_freep(struct trailer_writer **w)
{
	trailer_free(*w);
}

int trailer_begin(int fd, struct trailer_writer **ret_writer)
{
	_cleanup_(trailer_freep) struct trailer_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fd = fd;
	w->chunk = malloc(CHUNK_BYTES);
	w->state = XXH3_createState();
	if (!w->chunk || !w->state)
		return -ENOMEM;
	XXH3_128bits_reset(w->state);
	int r = cut_trailer(fd, &w->n_bytes);
	if (r == 0)
		*ret_writer = TAKE_PTR(w);
	return r;
}

int trailer_step(struct trailer_writer *w, uint64_t n_bytes)
{
	uint64_t left = w->n_bytes - w->at, n = n_bytes && n_bytes < left ? n_bytes : left;
	int r = hash_part(w->fd, w->state, w->chunk, w->at, w->at + n);
	if (r < 0)
		return r;
	w->at += n;
	if (w->at < w->n_bytes)
		return TRAILER_MORE;
	struct trailer t = {.n_bytes = htole64(w->n_bytes)};
	memcpy(t.tag, tag, sizeof(tag));
	XXH128_canonicalFromHash(&t.hash, XXH3_128bits_digest(w->state));
	ssize_t written = pwrite(w->fd, &t, sizeof(t), (off_t)w->n_bytes);
	return written == sizeof(t) ? 0 : written < 0 ? -errno : -ENOSPC;
}

int trailer_write(int fd)
{
	_cleanup_(trailer_freep) struct trailer_writer *w = NULL;
	int r = trailer_begin(fd, &w);
	return r == 0 ? trailer_step(w, 0) : r;
}

int trailer_write_path(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = trailer_write(fd);
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

int trailer_remove(const char *path)
{
	uint64_t n_bytes;
	_cleanup_(closep) int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int there = trailer_is_there(fd);
	int r = there == 1 ? cut_trailer(fd, &n_bytes) : there;
	return r == 0 && fsync(fd) < 0 ? -errno : r < 0 ? r : there;
}
