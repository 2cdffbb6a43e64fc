/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The walk of one stack: addresses become frames
 *
 * The kernel's callchain lists addresses, leaf first, with markers between the modes. The first of
 * each mode is the real position; all others are return addresses, which may already belong to the
 * next line or even the next function, so one byte is subtracted to stay inside the call. A new
 * frame is sent to be named here, while its process is likely still alive.
 *
 * Callers repeat from sample to sample. So the frame of an address is cached with the generation of
 * its space, which is unique; only a new frame, or one whose name was never requested, takes the
 * slow path through mappings and tables.
 */

#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "daemon/attribute/attribute_private.h"

/* Ancestors among which we look for live ones: make, a shell, a compiler's driver and what it runs. */
#define KIN_STEPS_MAX 8

/* Source: Documentation/admin-guide/sysctl/kernel.rst, perf_event_max_stack. */
#define STACK_DEPTH_DEFAULT 127

struct walks {
	uint32_t depth_max;   /* addresses at which the kernel cuts a callchain */
	struct file *unknown; /* FILE_UNKNOWN, once needed */
};

static uint32_t read_depth_max(const char *proc)
{
	char path[PATH_MAX], text[32];
	const char *p = text;
	uint64_t n;

	snprintf(path, sizeof(path), "%s/sys/kernel/perf_event_max_stack", proc);
	if (scan_text(AT_FDCWD, path, text, sizeof(text)) <= 0 || !scan_number(&p, 10, &n) || !n ||
		n > UINT32_MAX)
		return STACK_DEPTH_DEFAULT;
	return (uint32_t)n;
}

struct walks *stack_walk_new(const char *proc)
{
	struct walks *w = calloc(1, sizeof(*w));

	if (w)
		w->depth_max = read_depth_max(proc);
	return w;
}

void stack_walk_mark(const struct walks *w, struct sweep *s)
{
	file_marks_keep(&s->code, w->unknown);
}

/* Only request what the namer can read. */
static bool frame_nameable(const struct stack_walk *w, const struct frame *frame)
{
	switch (frame->file->kind) {
	case FILE_KERNEL:
		return kernel_map_has_text(&w->a->kernel) && !w->a->o.hide_kernel;
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

static int request_name(struct stack_walk *w, struct frame *frame)
{
	if (frame->state == FRAME_NEW && !frame_nameable(w, frame))
		frame->state = FRAME_UNNAMED;
	if (!w->a->o.namer)
		return 0;
	return namer_name(w->a->o.namer, frame, task_account(w->task));
}

static int unknown_file(struct attribute *a, struct file **ret_file)
{
	struct walks *walks = a->walks;

	if (!walks->unknown) {
		struct file_key key = {.kind = FILE_UNKNOWN, .path = "[unknown]"};
		int r = file_get(a->o.files, &key, &walks->unknown);
		if (r)
			return r;
	}
	*ret_file = walks->unknown;
	return 0;
}

static void walk_cut(struct stack_walk *w)
{
	if (w->truncated)
		return;
	w->truncated = true;
	stack_walk_lose(w, LOSS_STACK_TRUNCATED);
}

/* Cut the stack at a missing caller: the caller's own callers would be attached to the wrong
 * frame. */
static int walk_full(struct stack_walk *w)
{
	w->truncated = true;
	stack_walk_lose(w, LOSS_ROOM);
	return 0;
}

/* Room for one more frame? Else the stack is cut here. */
static bool walk_has_room(struct stack_walk *w)
{
	if (w->truncated)
		return false;
	if (w->n_frames < STACK_FRAMES_MAX)
		return true;
	walk_cut(w);
	return false;
}

/* The file of the task's user, also if the mapping was seen before the user was known. */
static int own_file(struct stack_walk *w, struct file *file, struct file **ret_file)
{
	const struct task *process = w->task->process;
	int r = file_of_user(
		w->a->o.files, file, task_files_uid(process), task_account(process), ret_file);

	if (r == 0 && (*ret_file)->kind == FILE_ELF && (*ret_file)->pid == 0) {
		(*ret_file)->pid = process->pid;
		(*ret_file)->pid_start_ns = process->start_ns;
	}
	return r;
}

int stack_walk_push(struct stack_walk *w, struct file *file, uint64_t offset)
{
	struct frame *frame;

	if (!walk_has_room(w))
		return 0;
	int r = file ? own_file(w, file, &file) : unknown_file(w->a, &file);
	if (!r)
		r = frame_get_for(
			w->a->o.files, file, offset, w->time_ns, task_account(w->task), &frame);
	if (r)
		return r < 0 ? r : walk_full(w);

	w->frame[w->n_frames++] = frame;
	if (file_grows(file) && w->a->o.namer)
		namer_sampled(w->a->o.namer, file);
	return request_name(w, frame);
}

/* Cache the frame that was pushed last. A frame without a name is not cached: it may wait for one
 * user and be wanted by another. */
static void remember(
	struct stack_walk *w, struct cached_place *place, uint64_t generation, uint64_t addr)
{
	struct frame *frame = w->frame[w->n_frames - 1];
	enum file_kind kind = frame->file->kind;

	if (frame->state == FRAME_NEW || frame->state == FRAME_ASKED || kind == FILE_PERF_MAP ||
		kind == FILE_JITDUMP)
		return;
	place_cache_put(place, generation, addr, frame);
}

static void note_kin(const struct attribute *a, const struct task *process, struct file *file)
{
	struct task *t = process->parent;
	size_t n = 0;

	memset(file->kin, 0, sizeof(file->kin));
	for (int i = 0; t && n < FILE_KIN && i < KIN_STEPS_MAX; i++, t = t->parent) {
		t = life_now(a->o.tasks, t);
		if (!t->end_ns)
			file->kin[n++] = (struct file_kin){t->pid, t->start_ns};
	}
}

/* Is the process that the file is opened through gone? */
static bool file_is_orphan(const struct attribute *a, const struct file *file)
{
	const struct task *t = task_find(a->o.tasks, file->pid);

	return !t || t->process->start_ns != file->pid_start_ns;
}

/* Choose the process through which a file is opened. Until it was opened, choose one that runs
 * it now: of many short processes at least the last still runs it. */
static int file_refresh(
	struct attribute *a, struct file *file, const struct task *task, const struct map *map)
{
	const struct task *process = task->process;
	const bool waits = file->state == FILE_OPENING || file->state == FILE_VANISHED;

	if (file_grows(file)) {
		/* the file must belong to this user, also when the process is gone */
		if (file->pid == process->pid && process->uid != (uid_t)-1)
			file->uid = process->uid;
		return 0;
	}
	if (file->state != FILE_UNSEEN && !(waits && file_is_orphan(a, file)))
		return 0;

	file->pid = process->pid;
	file->pid_start_ns = process->start_ns;
	file->map_start = map->start;
	file->map_end = map->end;
	note_kin(a, process, file);
	return a->o.namer ? namer_runs(a->o.namer, file) : 0;
}

static bool frame_starts(const struct stack_walk *w, const struct frame *frame, bool is_innermost)
{
	if (stack_starts_have(w->a->o.starts, frame))
		return true;
	for (uint32_t i = 0; i < frame->n_places; i++)
		if (stack_start_is_name(frame->place[i].function, is_innermost))
			return true;
	return false;
}

/* Has the walk reached the start of the stack? The caller of main or of a thread's routine is in a
 * library that is mostly built without frame pointers, so what follows may be garbage. */
bool stack_walk_has_start(const struct stack_walk *w)
{
	for (uint32_t i = w->n_frames; i > 0 && !file_is_kernel(w->frame[i - 1]->file->kind); i--) {
		bool is_innermost = i < 2 || file_is_kernel(w->frame[i - 2]->file->kind);
		if (frame_starts(w, w->frame[i - 1], is_innermost))
			return true;
	}
	return false;
}

/* Stop at a caller outside all code: the register held no frame pointer, as in programs built
 * without them. All further addresses are random, and each would make a frame that never occurs
 * again. */
static int walk_lost(struct stack_walk *w)
{
	w->ended = true;
	if (!stack_walk_has_start(w))
		walk_cut(w);
	return 0;
}

static int find_user(struct stack_walk *w, const struct space *space, uint64_t addr)
{
	const struct map *map = space_find(space, addr);
	struct file *file;

	if (!map)
		return space && space->n_maps && w->has_user ? walk_lost(w)
							     : stack_walk_push(w, NULL, addr);

	int r = own_file(w, map->file, &file);
	if (r)
		return r < 0 ? r : walk_full(w);
	r = file_refresh(w->a, file, w->task, map);
	if (r < 0)
		return r;
	switch (file->kind) {
	case FILE_ELF:
		return stack_walk_push(w, file, addr - map->start + map->file_offset);
	case FILE_VDSO:
		return stack_walk_push(w, file, addr - map->start);
	default:
		return stack_walk_push(w, file, addr);
	}
}

/* Push the cached frame. False: not cached. */
static bool push_cached(
	struct stack_walk *w, const struct cached_place *place, uint64_t generation, uint64_t addr)
{
	struct frame *frame = place_cache_frame(place, generation, addr);

	if (!frame)
		return false;
	if (walk_has_room(w))
		w->frame[w->n_frames++] = frame;
	return true;
}

int stack_walk_user(struct stack_walk *w, uint64_t addr)
{
	const struct space *space = task_space(w->task);
	if (space && space->uid != task_files_uid(w->task->process))
		space_change_user(w->a->o.tasks, w->task->process);
	if (!space || !space->generation)
		return find_user(w, space, addr);

	struct cached_place *place = place_cache_slot(w->a->places, space->generation, addr);
	if (push_cached(w, place, space->generation, addr))
		return 0;
	uint32_t n_frames = w->n_frames;
	int r = find_user(w, space, addr);
	if (!r && w->n_frames > n_frames)
		remember(w, place, space->generation, addr);
	return r;
}

int attribute_call(
	struct attribute *a, struct task *task, uint64_t return_address, struct frame **ret_frame)
{
	struct stack_walk w = {.a = a, .task = task};
	uint64_t addr = return_address - 1;
	/* an address outside all mappings would get a frame of its own */
	if (!space_find(task_space(task), addr))
		return ATTRIBUTE_NO_FRAME;
	int r = stack_walk_user(&w, addr);
	if (r < 0)
		return r;
	if (w.n_frames == 0)
		return ATTRIBUTE_NO_FRAME;
	*ret_frame = w.frame[0];
	return 0;
}

/* Add the frame of a callchain's user address, which is the innermost or a caller. */
static int walk_caller(struct stack_walk *w, uint64_t addr)
{
	int r = stack_walk_user(w, addr);
	w->has_user = true;
	return r;
}

/* Make the frame of generated kernel code. Each piece is a module of its own, as in perf, and is named by the
 * kernel. The user who runs it is charged for its place in the table. */
static int push_generated(
	struct stack_walk *w, const struct kernel_code_piece *piece, uint64_t addr)
{
	char path[KERNEL_CODE_NAME_BYTES + 2];
	struct namer *namer = w->a->o.namer;
	struct frame *frame;
	struct file *file;

	if (!walk_has_room(w))
		return 0;
	snprintf(path, sizeof(path), "[%s]", piece->name);
	const struct file_key key = {
		.kind = FILE_MODULE, .path = path, .account = task_account(w->task)};
	int r = file_get(w->a->o.files, &key, &file);
	if (!r)
		r = frame_get_for(
			w->a->o.files, file, addr - piece->start, 0, task_account(w->task), &frame);
	if (r)
		return r < 0 ? r : walk_full(w);
	w->frame[w->n_frames++] = frame;
	if (frame->state != FRAME_NEW)
		return 0;
	r = namer ? namer_name_as(namer, frame, piece->name) : 0;
	if (r == NAMER_FULL)
		frame->state = FRAME_UNNAMED;
	return r < 0 ? r : 0;
}

static int find_kernel(struct stack_walk *w, uint64_t addr)
{
	struct attribute *a = w->a;
	const struct kernel_code_piece *piece =
		a->o.hide_kernel ? NULL : generated_find(a, addr, w->time_ns);
	struct file *file;
	uint64_t offset = 0;

	if (piece)
		return push_generated(w, piece, addr);
	int r = a->o.hide_kernel ? kernel_map_kernel(&a->kernel, a->o.files, &file)
				 : kernel_map_find(&a->kernel, a->o.files, addr, &file, &offset);
	if (r)
		return r < 0 ? r : walk_full(w);

	const struct frame *last = w->n_frames ? w->frame[w->n_frames - 1] : NULL;
	if (a->o.hide_kernel && last && last->file == file)
		return 0;
	return stack_walk_push(w, file, offset);
}

static int walk_kernel(struct stack_walk *w, uint64_t addr)
{
	if (w->a->o.hide_kernel)
		return find_kernel(w, addr);

	const uint64_t generation = place_cache_kernel(w->a->places);
	struct cached_place *place = place_cache_slot(w->a->places, generation, addr);
	if (push_cached(w, place, generation, addr))
		return 0;
	uint32_t n_frames = w->n_frames;
	int r = find_kernel(w, addr);
	if (!r && w->n_frames > n_frames)
		remember(w, place, generation, addr);
	return r;
}

/* Walk an address in the mode that the last marker named. Addresses of a hypervisor, of guests and of
 * modes of later kernels are not named. */
static int walk_entry(struct stack_walk *w, uint64_t context, uint64_t addr)
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

int stack_walk_chain(struct stack_walk *w, const struct record_sample *s)
{
	uint64_t context = s->kernel ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER;
	uint64_t n_addresses = 0;
	bool exact = true;

	for (uint64_t i = 0; i < s->n_callchain; i++) {
		uint64_t addr = record_chain_at(s, i);

		if (addr >= PERF_CONTEXT_MAX) {
			context = addr;
			exact = true;
			i += addr == RECORD_CONTEXT_USER_DEFERRED; /* the cookie is no address */
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

	/* A chain that looks complete may end anywhere, since code without frame pointers ends
	 * it at once: it is whole only if it reached the start of the stack. There is no chain
	 * if none was requested; kernel threads have no user part. */
	if ((!w->kernel_only && n_addresses >= w->a->walks->depth_max) ||
		(w->has_user && !w->ended && w->a->o.starts && !stack_walk_has_start(w)))
		walk_cut(w);
	if (n_addresses || !s->ip)
		return 0;
	return walk_entry(w, s->kernel ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER, s->ip);
}

/* The first caller beyond that address in a chain's user part; n_callchain: there is none. */
static uint64_t find_beyond(const struct record_sample *s, uint64_t address)
{
	bool is_user = false, exact = true;

	for (uint64_t i = 0; i < s->n_callchain; i++) {
		const uint64_t addr = record_chain_at(s, i);
		if (addr >= PERF_CONTEXT_MAX) {
			is_user = addr == PERF_CONTEXT_USER;
			exact = true;
			continue;
		}
		if (is_user && (exact ? addr : addr - 1) == address)
			return i + 1;
		exact = false;
	}
	return s->n_callchain;
}

int stack_walk_go_on(struct stack_walk *w, const struct record_sample *s, uint64_t address)
{
	const struct space *space = task_space(w->task);
	const uint32_t n_frames = w->n_frames;
	int r = 0;

	for (uint64_t i = find_beyond(s, address); i < s->n_callchain && r == 0; i++) {
		const uint64_t addr = record_chain_at(s, i);
		if (addr >= PERF_CONTEXT_MAX || !space_find(space, addr - 1) ||
			w->n_frames == STACK_FRAMES_MAX)
			break;
		r = stack_walk_user(w, addr - 1);
	}
	if (r == 0 && !stack_walk_has_start(w))
		w->n_frames = n_frames;
	return r;
}

void stack_walk_sink(struct stack_walk *w, struct attribution *attribution)
{
	attribution->frame = w->frame;
	attribution->n_frames = w->n_frames;
	attribution->truncated = w->truncated;
	w->a->o.sink(w->a->o.userdata, attribution);
}
