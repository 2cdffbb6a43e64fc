/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Key of a row or frame, as content that means the same in every segment
 *
 *      function   function, module; of code without a symbol also the build of the module
 *      module     module
 *      line       function, source, line and build, module
 *      address    function, source and line; module and build id; offset in it
 *      process    boot, pid, start of the process; of the hour tier: comm, path
 *      thread     boot, pid, tid, start of the thread
 *      comm       name of the process
 *      cgroup     path
 *      job        labels
 *      hart       hart, rung
 *      parallelism  number of harts that worked at once
 *
 * All work of the kernel for profilers is one function and one line (hotspots_profiling.c).
 *
 * The function of a frame is its symbol, the
 * last of its places; with `inlined`, and for lines, each place stands for itself and the innermost
 * one is where the time was spent.
 */

#include <errno.h>
#include <stdlib.h>

#include "daemon/query/job_label.h"
#include "daemon/query/samples/hotspots.h"

static int get(struct hotspots *h, const struct key *key, uint32_t *ret_hot)
{
	int r = key_get(&h->keys, key, ret_hot);
	if (r != 0)
		return query_fail_full(&h->loaded, r);
	return array_grow(&h->hotspot, &h->size, *ret_hot + 1, sizeof(*h->hotspot));
}

static int place_key(struct hotspots *h, const struct loaded_frame *f, const struct loaded_place *p,
	uint32_t *ret_hot)
{
	uint32_t unknown = h->loaded.unknown_name;
	uint32_t function = p && p->function ? p->function : unknown;
	uint32_t module = loaded_module(&h->loaded, f);
	const uint64_t build = loaded_build(&h->loaded, f);
	struct key key = {{function, module, build}};
	if (h->by == QUERY_BY_MODULE)
		key = (struct key){{module}};
	else if (h->by == QUERY_BY_LINE)
		key = (struct key){
			{function, p ? p->source : 0, build << 32 | (p ? p->line : 0), module}};
	return get(h, &key, ret_hot);
}

/* The function is the symbol, the line that of the innermost inlined function. Offsets in the kernel
 * are hidden with it. */
static int address_key(struct hotspots *h, const struct loaded_frame *f, uint32_t *ret_hot)
{
	const struct loaded *l = &h->loaded;
	const struct loaded_file *file = &l->file[f->file];
	const struct loaded_place *inner = f->n_places ? &l->place[f->place] : NULL;
	const struct loaded_place *symbol = inner ? inner + f->n_places - 1 : NULL;
	uint64_t function = symbol && symbol->function ? symbol->function : l->unknown_name;
	uint64_t source = inner ? inner->source : 0, line = inner ? inner->line : 0;
	uint64_t build_id = file->hidden ? 0 : file->build_id;
	return get(h,
		&(struct key){{function, source << 32 | line, build_id << 32 | loaded_module(l, f),
			file->hidden ? 0 : f->offset}},
		ret_hot);
}

static int key_places(struct hotspots *h, const struct loaded_frame *f)
{
	for (uint32_t i = f->place; i < f->place + f->n_places; i++) {
		int r = place_key(h, f, &h->loaded.place[i], &h->place_hot[i]);
		if (r != 0)
			return r;
	}
	return 0;
}

int hotspots_key_frames(struct hotspots *h)
{
	const struct loaded *l = &h->loaded;
	h->frame_hot = calloc((size_t)l->n_frames + 1, sizeof(*h->frame_hot));
	if (!h->frame_hot)
		return -ENOMEM;
	if (query_needs_places(h->by, h->inlined)) {
		h->place_hot = calloc((size_t)l->n_places + 1, sizeof(*h->place_hot));
		if (!h->place_hot)
			return -ENOMEM;
	}
	/* frame 0 stands for samples without a stack */
	for (uint32_t i = 0; i <= l->n_frames; i++) {
		const struct loaded_frame *f = &l->frame[i];
		if (i > 0 && f->file == 0 && f->n_places == 0) {
			h->frame_hot[i] = h->frame_hot[0]; /* not there, or not needed */
			continue;
		}
		const struct loaded_place *symbol =
			f->n_places ? &l->place[f->place + f->n_places - 1] : NULL;
		int r = h->by == QUERY_BY_ADDRESS     ? address_key(h, f, &h->frame_hot[i])
			: h->place_hot && f->n_places ? key_places(h, f)
						      : place_key(h, f, symbol, &h->frame_hot[i]);
		if (r != 0)
			return r;
	}
	return 0;
}

static void key_of_process(const struct loaded *l, uint32_t id, struct key *key)
{
	const struct loaded_task *t = &l->task[id], *process = &l->task[t->process];
	if (l->tier == TIER_HOUR && process->known) {
		*key = (struct key){{HOTSPOT_PROGRAM, process->comm, process->argv}};
		return;
	}
	*key = (struct key){
		{l->boot, (uint32_t)process->pid, (uint64_t)process->start_ns, process->comm}};
	if (!process->known)
		*key = (struct key){{l->boot, (uint32_t)t->pid, UINT64_MAX}};
}

static int key_of_job(struct hotspots *h, uint32_t id, struct key *key)
{
	const struct loaded_task *t = &h->loaded.task[id];
	struct label label[JOB_LABELS_MAX];
	char says[LABELS_BYTES_MAX];
	uint32_t text = 0;
	size_t n = t->labels || t->cgroup ? job_labels(&h->loaded, id, label) : 0;
	int r = n ? text_get(h->loaded.texts, labels_say(label, n, says, sizeof(says)), &text) : 0;
	key->part[0] = text;
	key->part[1] = t->labels ? t->labels_uid : UINT64_MAX; /* others may use the same labels */
	return query_fail_full(&h->loaded, r);
}

static int key_task(struct hotspots *h, uint32_t id, uint32_t *ret_hot)
{
	const struct loaded *l = &h->loaded;
	const struct loaded_task *t = &l->task[id], *process = &l->task[t->process];
	struct key key = {{0}};
	int r = 0;
	if (h->by == QUERY_BY_CGROUP)
		key.part[0] = t->cgroup;
	else if (h->by == QUERY_BY_COMM)
		key.part[0] = process->known ? process->comm : t->comm;
	else if (h->by == QUERY_BY_JOB)
		r = key_of_job(h, id, &key);
	else if (h->by == QUERY_BY_THREAD && l->tier != TIER_HOUR)
		key = (struct key){{l->boot, (uint64_t)(uint32_t)t->tid << 32 | (uint32_t)t->pid,
			(uint64_t)t->start_ns, t->comm}};
	else
		key_of_process(l, id, &key);

	r = r == 0 ? get(h, &key, ret_hot) : r;
	if (r != 0)
		return r;
	/* the last segment that knows them gives their names */
	bool thread = h->by == QUERY_BY_THREAD || !process->known;
	h->hotspot[*ret_hot].name[0] = thread ? t->comm : process->comm;
	if (process->argv)
		h->hotspot[*ret_hot].name[1] = process->argv;
	h->task_hot[id] = *ret_hot + 1;
	return 0;
}

int hotspots_key_row(struct hotspots *h, const struct scan_row *row, uint32_t *ret_hot)
{
	const struct loaded *l = &h->loaded;
	if (h->by == QUERY_BY_HART) {
		uint64_t hart = row->hart == HART_UNKNOWN ? UINT64_MAX : row->hart;
		return get(h, &(struct key){{hart, row->rung}}, ret_hot);
	}
	if (h->by == QUERY_BY_PARALLELISM)
		return get(h, &(struct key){{row->harts}}, ret_hot);
	if (!query_by_kinds[h->by].frames) {
		if (h->task_hot[row->task] == 0)
			return key_task(h, row->task, ret_hot);
		*ret_hot = h->task_hot[row->task] - 1;
		return 0;
	}
	if (hotspots_is_profiling(h, row->stack))
		return get(h, &h->profiling_key, ret_hot);
	const struct loaded_frame *leaf = loaded_leaf(l, row->stack);
	if (h->place_hot && leaf->n_places)
		*ret_hot = h->place_hot[leaf->place];
	else
		*ret_hot = h->frame_hot[leaf - l->frame];
	return 0;
}
