/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program's own text in anonymous memory
 *
 * To have its text in huge pages, a program copies it, maps anonymous memory in its place, and writes it
 * back (BOLT's hugify, Node.js, Chrome, libraries that are preloaded for it). The kernel reports only
 * executable memory without a name, which otherwise means that code was generated there.
 *
 *      | text of the program           |          what was mapped
 *      | text  |  anonymous    | text  |          what is mapped now: the same code
 *
 * The place of a library is used again once the library is unloaded, which no record reports. The program
 * itself is never unmapped. So for memory in the program's place we only need to know whether it has the
 * program's bytes. We compare them while the process is there. If the process is gone, or its memory may not
 * be read, the position alone decides. This is as certain as for text that was overwritten in place, which
 * keeps its file's name, too. Shared memory (a memfd is shared, however it is mapped) counts as the program's
 * text only if its bytes are the same: a forked emulator maps the memory of its guests in this way. Memory
 * beyond its user's quota of comparisons does not count as the program's text.
 */

#include <string.h>

#include "daemon/attribute/attribute_private.h"

/* The same for a process that is read from /proc. */
#define TEXTS_FILLED_MAX 4u

struct comparisons {
	struct quota of; /* TEXTS_COMPARED_MAX, since the last drain */
};

struct comparisons *remapped_new(void)
{
	return calloc(1, sizeof(struct comparisons));
}

struct comparisons *remapped_free(struct comparisons *c)
{
	if (c)
		quota_clear(&c->of);
	free(c);
	return NULL;
}

void remapped_drained(struct comparisons *c)
{
	quota_clear(&c->of);
}

uint64_t remapped_n_compared(const struct comparisons *c)
{
	return c->of.held;
}

static bool is_program(const struct task *process, const struct file *file)
{
	return file->kind == FILE_ELF && process->exe && strcmp(file->path, process->exe) == 0;
}

static bool goes_on(const struct map *before, const struct map *after)
{
	return before->end == after->start && before->file == after->file &&
	       before->start - before->file_offset == after->start - after->file_offset;
}

/* The mapping of the program's file that contains all of [start, end); NULL: none. */
static const struct map *place_of(const struct task *process, uint64_t start, uint64_t end)
{
	const struct space *space = process->space;
	const struct map *first = space_find(space, start);

	if (!first || !is_program(process, first->file))
		return NULL;
	for (const struct map *m = first; m->end < end; m++)
		if (m + 1 == space->map + space->n_maps || !goes_on(m, m + 1))
			return NULL;
	return first;
}

int remapped_enter(struct attribute *a, struct task *process, const struct record_mmap *m)
{
	if (m->bytes == 0 || m->bytes > UINT64_MAX - m->start)
		return 0;
	struct map map = {.start = m->start, .end = m->start + m->bytes};
	const struct map *was = place_of(process, map.start, map.end);

	if (!was)
		return 0;
	map.file = was->file;
	map.file_offset = was->file_offset + (map.start - was->start);
	if (!quota_take(&a->comparisons->of, task_account(process), TEXTS_COMPARED_MAX, 1))
		return 0;
	const bool shared = m->shared || strncmp(m->path, "/memfd:", strlen("/memfd:")) == 0;
	const int outcome = proc_compare(&a->o, process->pid, &map);
	if (outcome != PROC_SAME && (outcome == PROC_OTHER || shared))
		return 0;
	/* without room it stays what it was, which is the same file */
	int r = space_map(a->o.tasks, process, map.start, m->bytes, map.file_offset, map.file);
	return r < 0 ? r : REMAPPED_DONE;
}

/* The map behind a run of generated code from i on. */
static uint32_t run_end(const struct space *s, uint32_t i)
{
	while (i < s->n_maps && s->map[i].file->kind == FILE_PERF_MAP &&
		s->map[i].start == s->map[i - 1].end)
		i++;
	return i;
}

/* Find replaced text in what /proc shows: only memory between two parts of the program's text is known to have
 * been text. */
int remapped_fill(const struct attribute_options *o, struct task *process)
{
	unsigned n_compared = 0;
	int r = 0;

	for (uint32_t i = 1; process->space && i < process->space->n_maps && r == 0; i++) {
		const struct space *s = process->space;
		const struct map *before = &s->map[i - 1];
		uint32_t end = is_program(process, before->file) ? run_end(s, i) : i;
		if (end == i || end == s->n_maps)
			continue;
		struct map m = {.start = before->end,
			.end = s->map[end].start,
			.file = before->file,
			.file_offset = before->file_offset + (before->end - before->start)};
		if (!goes_on(before, &m) || !goes_on(&m, &s->map[end]) ||
			n_compared++ >= TEXTS_FILLED_MAX ||
			proc_compare(o, process->pid, &m) != PROC_SAME)
			continue;
		r = space_map(o->tasks, process, m.start, m.end - m.start, m.file_offset, m.file);
	}
	return r;
}
