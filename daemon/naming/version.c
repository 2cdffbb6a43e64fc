/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Samples come in order of time, and we learn of changes before we take the samples that they concern.
 * So the valid versions are a list of disjoint ranges, and changes wait in a queue until a sample's time
 * reaches them.
 */

#include "daemon/naming/version.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/naming/file_room.h"

struct range {
	uint64_t start, end;
	uint32_t version;
};

struct versions {
	uint32_t base; /* version of addresses in no range */
	struct range *range;
	uint32_t n, size;
	struct version_change *coming;
	uint32_t n_coming, size_coming;
};

/* Double an array. False: its limit, the user's, or no memory. */
static bool grow(struct file_table *t, struct file *file, void *array, uint32_t *size, size_t bytes)
{
	void **p = array;
	uint32_t more = *size ? *size * 2 : 16;

	if (more > VERSIONS_MAX || !room_take_more(t, file, (more - *size) * bytes))
		return false;
	void *grown = reallocarray(*p, more, bytes);
	if (!grown)
		return false;
	*p = grown;
	*size = more;
	return true;
}

/* The first range that ends behind addr. */
static uint32_t range_behind(const struct versions *v, uint64_t addr)
{
	uint32_t low = 0, high = v->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (v->range[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Replace all ranges that the new one covers; at most two pieces of them remain. */
static bool enter(struct file_table *t, struct file *file, const struct version_change *c)
{
	struct versions *v = file->versions;

	while (v->n + 2 > v->size)
		if (!grow(t, file, &v->range, &v->size, sizeof(*v->range)))
			return false;
	uint32_t first = range_behind(v, c->start), last = first, n = 0;
	struct range piece[3];
	while (last < v->n && v->range[last].start < c->end)
		last++;
	if (first < last && v->range[first].start < c->start)
		piece[n++] =
			(struct range){v->range[first].start, c->start, v->range[first].version};
	piece[n++] = (struct range){c->start, c->end, c->version};
	if (first < last && v->range[last - 1].end > c->end)
		piece[n++] =
			(struct range){c->end, v->range[last - 1].end, v->range[last - 1].version};
	memmove(&v->range[first + n], &v->range[last], (v->n - last) * sizeof(*v->range));
	memcpy(&v->range[first], piece, n * sizeof(*piece));
	v->n += n - (last - first);
	return true;
}

void versions_change_all(struct file *file, uint32_t version)
{
	struct versions *v = file->versions;

	if (!v)
		v = file->versions = calloc(1, sizeof(*v));
	if (!v)
		return;
	v->n = v->n_coming = 0;
	v->base = version;
}

void versions_change(
	struct file_table *t, struct file *file, const struct version_change *c, size_t n)
{
	if (!file->versions && n > 0)
		file->versions = calloc(1, sizeof(*file->versions));
	struct versions *v = file->versions;

	for (size_t i = 0; v && i < n; i++) {
		if (v->n_coming == v->size_coming &&
			!grow(t, file, &v->coming, &v->size_coming, sizeof(*v->coming))) {
			versions_change_all(file, c[n - 1].version);
			return;
		}
		v->coming[v->n_coming++] = c[i];
	}
}

uint32_t version_at(struct file_table *t, struct file *file, uint64_t addr, uint64_t time_ns)
{
	struct versions *v = file->versions;
	uint32_t n = 0;

	if (!v)
		return 0;
	while (n < v->n_coming && v->coming[n].from_ns <= time_ns) {
		uint32_t last = v->coming[v->n_coming - 1].version;
		if (!enter(t, file, &v->coming[n++])) {
			versions_change_all(file, last);
			return last;
		}
	}
	if (n > 0) {
		v->n_coming -= n;
		memmove(v->coming, v->coming + n, v->n_coming * sizeof(*v->coming));
	}
	uint32_t i = range_behind(v, addr);
	return i < v->n && v->range[i].start <= addr ? v->range[i].version : v->base;
}

struct versions *versions_free(struct versions *v)
{
	if (!v)
		return NULL;
	free(v->range);
	free(v->coming);
	free(v);
	return NULL;
}
