/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The walk of one stack: addresses become frames
 *
 * The kernel's callchain lists addresses, leaf first, with markers between the modes. The first of
 * each mode is where that mode really was; all others are return addresses, which may already lie
 * in the next line or even the next function, so that one byte is taken off to stay inside the
 * call. A frame that is new is sent to be named here, since now its process is likely to live.
 *
 * Callers repeat from sample to sample. So the frame of an address is remembered with the
 * generation of the space that it was found in, which no other space ever has; only one that is
 * new, or that nobody asked a name for, goes the long way through mappings and tables.
 */

#include <linux/perf_event.h>

#include "daemon/attribute/station.h"

/* Only what the namer can read is worth asking for. */
static bool frame_nameable(const struct walk *w, const struct frame *frame)
{
	switch (frame->file->kind) {
	case FILE_KERNEL:
		return w->a->kernel.base && !w->a->o.hide_kernel;
	case FILE_ELF:
	case FILE_MODULE:
	case FILE_VDSO:
	case FILE_PERF_MAP:
	case FILE_JITDUMP:
		return true;
	case FILE_ANON:
	case FILE_UNKNOWN:
		break;
	}
	return false;
}

static int frame_ask(struct walk *w, struct frame *frame)
{
	uid_t uid = w->task->process->uid;
	if (frame->state == FRAME_ASKED && w->a->o.namer)
		return namer_hurry(w->a->o.namer, frame, uid);
	if (frame->state != FRAME_NEW)
		return 0;
	if (!frame_nameable(w, frame)) {
		frame->state = FRAME_UNNAMED;
		return 0;
	}
	if (!w->a->o.namer)
		return 0;

	int r = namer_open(w->a->o.namer, frame->file, uid);
	if (r < 0)
		return r;
	return namer_name(w->a->o.namer, frame, uid);
}

static int unknown_file(struct attribute *a, struct file **ret_file)
{
	if (!a->unknown) {
		struct file_key key = {.kind = FILE_UNKNOWN, .path = "[unknown]"};
		int r = file_get(a->o.files, &key, &a->unknown);
		if (r)
			return r;
	}
	*ret_file = a->unknown;
	return 0;
}

/* A caller that is missing cuts the stack there: what lies beyond would hang from the wrong frame.
 */
static int walk_full(struct walk *w)
{
	w->truncated = true;
	lose(w->a, w->hart, LOSS_ROOM, 1);
	return 0;
}

/* Room for one more frame? Else the stack is cut here. */
static bool walk_has_room(struct walk *w)
{
	if (w->truncated)
		return false;
	if (w->n_frames < STACK_FRAMES_MAX)
		return true;
	w->truncated = true;
	lose(w->a, w->hart, LOSS_STACK_TRUNCATED, 1);
	return false;
}

/* The file as the task's user has it, also where the mapping was seen before the user was known. */
static int own_file(struct walk *w, struct file *file, struct file **ret_file)
{
	const struct task *process = w->task->process;
	int r = file_of_user(w->a->o.files, file, task_files_uid(process), ret_file);

	if (r == 0 && (*ret_file)->kind == FILE_ELF && (*ret_file)->pid == 0) {
		(*ret_file)->pid = process->pid;
		(*ret_file)->pid_start_ns = process->start_ns;
	}
	return r;
}

int walk_push(struct walk *w, struct file *file, uint64_t offset)
{
	struct frame *frame;

	if (!walk_has_room(w))
		return 0;
	int r = file ? own_file(w, file, &file) : unknown_file(w->a, &file);
	if (!r)
		r = frame_get(w->a->o.files, file, offset, &frame);
	if (r)
		return r < 0 ? r : walk_full(w);

	w->frame[w->n_frames++] = frame;
	return frame_ask(w, frame);
}

/* Where the frame of that address is remembered, if it is. */
static struct known_place *known_place(
	const struct attribute *a, uint64_t generation, uint64_t addr)
{
	/* Source of the constant: 2^64 divided by the golden ratio, odd. */
	uint64_t x = (addr ^ generation << 40) * 0x9e3779b97f4a7c15u;

	return &a->known[(x >> 32) % PLACES_KNOWN];
}

/* Remember the frame that was pushed last. What has no name yet is looked at each time: it may wait for
 * one user, and be wanted by another. */
static void remember(struct walk *w, struct known_place *place, uint64_t generation, uint64_t addr)
{
	struct frame *frame = w->frame[w->n_frames - 1];
	enum file_kind kind = frame->file->kind;

	if (frame->state == FRAME_NEW || frame->state == FRAME_ASKED || kind == FILE_PERF_MAP || kind == FILE_JITDUMP)
		return;
	*place = (struct known_place){generation, addr, frame};
}

/* Until a file was asked for, whoever runs in it now is the best to open it through. */
static void file_refresh(struct file *file, const struct task *task, const struct map *map)
{
	if (file->kind == FILE_PERF_MAP || file->kind == FILE_JITDUMP) {
		/* whose file it must be, also when the process is gone */
		if (file->pid == task->process->pid && task->process->uid != (uid_t)-1)
			file->uid = task->process->uid;
		return;
	}
	if (file->state != FILE_UNSEEN)
		return;

	file->pid = task->process->pid;
	file->pid_start_ns = task->process->start_ns;
	file->map_start = map->start;
	file->map_end = map->end;
}

/* Has the walk come to where the stack begins? What calls main or a thread's routine lies in a
 * library that is mostly built without frame pointers, like what may come after it. */
static bool walk_has_start(const struct walk *w)
{
	for (uint32_t i = w->n_frames; i > 0; i--)
		if (stack_starts_have(w->a->o.starts, w->frame[i - 1]))
			return true;
	return false;
}

/* A caller that lies in no code: the frame pointer was none, as in programs built without. Beyond
 * it everything is chance, and each would be a frame of its own that nobody ever sees again. */
static int walk_lost(struct walk *w)
{
	w->ended = true;
	if (w->truncated || walk_has_start(w))
		return 0;
	w->truncated = true;
	lose(w->a, w->hart, LOSS_STACK_TRUNCATED, 1);
	return 0;
}

static int find_user(struct walk *w, const struct space *space, uint64_t addr)
{
	const struct map *map = space_find(space, addr);
	struct file *file;

	if (!map)
		return space && space->n_maps && w->has_user ? walk_lost(w)
							     : walk_push(w, NULL, addr);

	int r = own_file(w, map->file, &file);
	if (r)
		return r < 0 ? r : walk_full(w);
	file_refresh(file, w->task, map);
	switch (file->kind) {
	case FILE_ELF:
		return walk_push(w, file, addr - map->start + map->file_offset);
	case FILE_VDSO:
		return walk_push(w, file, addr - map->start);
	default:
		return walk_push(w, file, addr);
	}
}

/* Push the frame that is remembered. False: it is not. */
static bool walk_known(
	struct walk *w, const struct known_place *p, uint64_t generation, uint64_t addr)
{
	if (p->addr != addr || p->generation != generation)
		return false;
	if (walk_has_room(w))
		w->frame[w->n_frames++] = p->frame;
	return true;
}

int walk_user(struct walk *w, uint64_t addr)
{
	const struct space *space = task_space(w->task);
	if (space && space->uid != task_files_uid(w->task->process))
		space_change_user(w->a->o.tasks, w->task->process);
	if (!space || !space->generation)
		return find_user(w, space, addr);

	struct known_place *known = known_place(w->a, space->generation, addr);
	if (walk_known(w, known, space->generation, addr))
		return 0;
	uint32_t n_frames = w->n_frames;
	int r = find_user(w, space, addr);
	if (!r && w->n_frames > n_frames)
		remember(w, known, space->generation, addr);
	return r;
}

/* The frames of one stack, from the innermost on. */
static int walk_caller(struct walk *w, uint64_t addr)
{
	int r = walk_user(w, addr);
	w->has_user = true;
	return r;
}

static int find_kernel(struct walk *w, uint64_t addr)
{
	struct attribute *a = w->a;
	struct file *file;
	uint64_t offset = 0;

	int r = a->o.hide_kernel ? kernel_map_kernel(&a->kernel, a->o.files, &file)
				 : kernel_map_find(&a->kernel, a->o.files, addr, &file, &offset);
	if (r)
		return r < 0 ? r : walk_full(w);

	const struct frame *last = w->n_frames ? w->frame[w->n_frames - 1] : NULL;
	if (a->o.hide_kernel && last && last->file == file)
		return 0;
	return walk_push(w, file, offset);
}

static int walk_kernel(struct walk *w, uint64_t addr)
{
	if (w->a->o.hide_kernel)
		return find_kernel(w, addr);

	struct known_place *known = known_place(w->a, 0, addr);
	if (walk_known(w, known, 0, addr))
		return 0;
	uint32_t n_frames = w->n_frames;
	int r = find_kernel(w, addr);
	if (!r && w->n_frames > n_frames)
		remember(w, known, 0, addr);
	return r;
}

/* One address in the mode that the last marker named. Hypervisor, guests and what later kernels may
 * mark are not ours to name. */
static int walk_entry(struct walk *w, uint64_t context, uint64_t addr)
{
	switch (context) {
	case PERF_CONTEXT_KERNEL:
		return walk_kernel(w, addr);
	case PERF_CONTEXT_USER:
		if (!w->user_ip)
			w->user_ip = addr;
		return w->kernel_only || w->ended ? 0 : walk_caller(w, addr);
	default:
		return 0;
	}
}

int walk_chain(struct walk *w, const struct record_sample *s)
{
	uint64_t context = s->kernel ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER;
	uint64_t n_addresses = 0;
	bool exact = true;

	for (uint64_t i = 0; i < s->n_callchain; i++) {
		uint64_t addr = record_chain_at(s, i);

		if (addr >= PERF_CONTEXT_MAX) {
			context = addr;
			exact = true;
			continue;
		}
		n_addresses++;
		if (!addr)
			continue;
		int r = walk_entry(w, context, exact ? addr : addr - 1);
		if (r < 0)
			return r;
		exact = false;
	}

	if (n_addresses >= w->a->max_stack && !w->truncated) {
		w->truncated = true;
		lose(w->a, w->hart, LOSS_STACK_TRUNCATED, 1);
	}
	if (n_addresses || !s->ip)
		return 0;
	return walk_entry(w, s->kernel ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER, s->ip);
}
