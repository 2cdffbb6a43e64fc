/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Dictionaries as arrays. A stack refers to its caller by a lower number, a frame to a module that
 * came before it: so each entry is checked once, when it arrives, and no walk over them can run in a
 * circle.
 */
#include "client/export/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"

/* Room for one more in an array of n. 0, PROFILE_TOO_LARGE, -ENOMEM. */
static int grow(void *array, uint32_t n, uint32_t *size, size_t bytes)
{
	void **p = array;
	if (n < *size)
		return 0;
	if (n >= PROFILE_ENTRIES_MAX)
		return PROFILE_TOO_LARGE;
	uint32_t wanted = *size ? 2 * *size : 256;
	void *grown = reallocarray(*p, wanted, bytes);
	if (!grown)
		return -ENOMEM;
	*p = grown;
	*size = wanted;
	return 0;
}

int profile_init(struct profile *p)
{
	*p = (struct profile){.unit = MPERF__UNIT__UNIT_NS};
	p->text = calloc(256, sizeof(*p->text));
	p->module = calloc(256, sizeof(*p->module));
	p->frame = calloc(256, sizeof(*p->frame));
	p->place = calloc(256, sizeof(*p->place));
	p->task = calloc(256, sizeof(*p->task));
	p->window = calloc(256, sizeof(*p->window));
	p->stack = calloc(256, sizeof(*p->stack));
	if (!p->text || !p->module || !p->frame || !p->place || !p->task || !p->window || !p->stack)
		return -ENOMEM;
	p->size_texts = p->size_modules = p->size_frames = p->size_places = 256;
	p->size_tasks = p->size_windows = p->size_stacks = 256;
	p->n_modules = p->n_frames = p->n_places = p->n_tasks = p->n_windows = p->n_stacks = 1;
	p->module[0].kind = PROFILE_UNKNOWN;
	p->text[0] = strdup("");
	p->n_texts = 1;
	return p->text[0] ? 0 : -ENOMEM;
}

void profile_clear(struct profile *p)
{
	for (uint32_t i = 0; i < p->n_texts; i++)
		free(p->text[i]);
	free(p->text);
	free(p->module);
	free(p->frame);
	free(p->place);
	free(p->task);
	free(p->window);
	free(p->stack);
	*p = (struct profile){0};
}

/* --- entries ---------------------------------------------------------------------------------- */

static int add_text(struct profile *p, const char *text)
{
	int r = grow(&p->text, p->n_texts, &p->size_texts, sizeof(*p->text));
	if (r != 0)
		return r;
	p->text[p->n_texts] = escape_terminal_dup(text);
	return p->text[p->n_texts] ? (p->n_texts++, 0) : -ENOMEM;
}

static int add_module(struct profile *p, const Mperf__ProfileModule *m)
{
	if (m->path >= p->n_texts || m->build_id >= p->n_texts)
		return PROFILE_MALFORMED;
	int r = grow(&p->module, p->n_modules, &p->size_modules, sizeof(*p->module));
	if (r != 0)
		return r;
	p->module[p->n_modules++] = (struct profile_module){
		.path = m->path,
		.build_id = m->build_id,
		.kind = m->kind >= PROFILE_ELF && m->kind < PROFILE_UNKNOWN
				? (enum profile_kind)m->kind
				: PROFILE_UNKNOWN,
	};
	return 0;
}

static int add_place(struct profile *p, const struct profile_place *place)
{
	if (place->function >= p->n_texts || place->source >= p->n_texts)
		return PROFILE_MALFORMED;
	int r = grow(&p->place, p->n_places, &p->size_places, sizeof(*p->place));
	if (r == 0)
		p->place[p->n_places++] = *place;
	return r;
}

static int add_frame(struct profile *p, const Mperf__ProfileFrame *m)
{
	struct profile_frame frame = {m->module, m->offset, p->n_places, (uint32_t)m->n_function};
	int r = grow(&p->frame, p->n_frames, &p->size_frames, sizeof(*p->frame));
	if (m->module >= p->n_modules || m->n_source != m->n_function || m->n_line != m->n_function)
		return PROFILE_MALFORMED;
	for (size_t i = 0; i < m->n_function && r == 0; i++)
		r = add_place(p, &(struct profile_place){m->function[i], m->source[i], m->line[i]});
	if (r != 0)
		return r;
	p->frame[p->n_frames++] = frame;
	if (p->module[m->module].offset_max < m->offset)
		p->module[m->module].offset_max = m->offset;
	return 0;
}

static int add_task(struct profile *p, const Mperf__ProfileTask *m)
{
	if (m->comm >= p->n_texts || m->process >= p->n_texts || m->cgroup >= p->n_texts)
		return PROFILE_MALFORMED;
	int r = grow(&p->task, p->n_tasks, &p->size_tasks, sizeof(*p->task));
	if (r == 0)
		p->task[p->n_tasks++] =
			(struct profile_task){m->pid, m->tid, m->comm, m->process, m->cgroup};
	return r;
}

/* Absurd times of a forged file: sums and differences of others must not overflow. */
static int64_t clamp_time(int64_t ns)
{
	return ns > INT64_MAX / 4 ? INT64_MAX / 4 : ns < -(INT64_MAX / 4) ? -(INT64_MAX / 4) : ns;
}

static int add_window(struct profile *p, const Mperf__ProfileWindow *m)
{
	int r = grow(&p->window, p->n_windows, &p->size_windows, sizeof(*p->window));
	if (r == 0)
		p->window[p->n_windows++] = (struct profile_window){
			clamp_time(m->realtime_ns), clamp_time(m->start_ns), clamp_time(m->end_ns)};
	return r;
}

static int add_stack(struct profile *p, uint32_t caller, uint32_t frame)
{
	if (caller >= p->n_stacks || frame == 0 || frame >= p->n_frames)
		return PROFILE_MALFORMED;
	int r = grow(&p->stack, p->n_stacks, &p->size_stacks, sizeof(*p->stack));
	if (r == 0)
		p->stack[p->n_stacks++] = (struct profile_stack){caller, frame};
	return r;
}

static int add_entries(struct profile *p, const Mperf__Profile *m)
{
	int r = m->n_stack_caller == m->n_stack_frame ? 0 : PROFILE_MALFORMED;
	for (size_t i = 0; i < m->n_text && r == 0; i++)
		r = add_text(p, m->text[i]);
	for (size_t i = 0; i < m->n_module && r == 0; i++)
		r = add_module(p, m->module[i]);
	for (size_t i = 0; i < m->n_frame && r == 0; i++)
		r = add_frame(p, m->frame[i]);
	for (size_t i = 0; i < m->n_task && r == 0; i++)
		r = add_task(p, m->task[i]);
	for (size_t i = 0; i < m->n_window && r == 0; i++)
		r = add_window(p, m->window[i]);
	for (size_t i = 0; i < m->n_stack_caller && r == 0; i++)
		r = add_stack(p, m->stack_caller[i], m->stack_frame[i]);
	return r;
}

/* --- samples ---------------------------------------------------------------------------------- */

static bool is_rectangular(const Mperf__Profile *m)
{
	const size_t n = m->n_sample_window;
	return m->n_sample_task == n && m->n_sample_stack == n && m->n_sample_hart == n &&
	       m->n_sample_event == n && m->n_sample_count == n && m->n_sample_ns == n &&
	       (m->n_sample_at == n || m->n_sample_at == 0) && m->n_sample_value == n &&
	       m->n_sample_cycles == n && m->n_sample_instructions == n;
}

/* A count for display; absurd ones are clamped, so that sums and signed readers are safe. */
static uint64_t clamp(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : value;
}

static struct profile_sample sample_of(const Mperf__Profile *m, size_t i)
{
	const uint64_t cycles = m->sample_cycles[i], instructions = m->sample_instructions[i];
	return (struct profile_sample){
		.window = m->sample_window[i],
		.task = m->sample_task[i],
		.stack = m->sample_stack[i],
		.event = m->sample_event[i],
		.hart = m->sample_hart[i] <= INT32_MAX ? (int32_t)m->sample_hart[i] - 1 : -1,
		.count = clamp(m->sample_count[i]),
		.at_ns = -1,
		.ns = clamp(m->sample_ns[i]),
		.value = clamp(m->sample_value[i]),
		.has_cycles = cycles > 0,
		.has_instructions = instructions > 0,
		.cycles = cycles > 0 ? clamp(cycles - 1) : 0,
		.instructions = instructions > 0 ? clamp(instructions - 1) : 0,
	};
}

/* at: as Profile.sample_at. */
static int64_t at_ns(const struct profile_window *w, uint32_t at)
{
	const double span = (double)w->end_ns - (double)w->start_ns;
	return at == 0 || at > 65536 || span < 0 || span > 1e15
		       ? -1
		       : (int64_t)(span * (at - 1) / 65536);
}

int profile_add(struct profile *p, const Mperf__Profile *part,
	int (*take)(void *userdata, const struct profile_sample *s), void *userdata)
{
	int r = is_rectangular(part) ? 0 : PROFILE_MALFORMED;
	if (part->unit == MPERF__UNIT__UNIT_COUNT)
		p->unit = part->unit;
	if (r == 0)
		r = add_entries(p, part);
	for (size_t i = 0; i < part->n_sample_window && r == 0; i++) {
		struct profile_sample s = sample_of(part, i);
		if (s.window >= p->n_windows || s.task >= p->n_tasks || s.stack >= p->n_stacks ||
			s.event >= p->n_texts)
			return PROFILE_MALFORMED;
		p->n_samples++;
		if (part->n_sample_at > 0)
			s.at_ns = at_ns(&p->window[s.window], part->sample_at[i]);
		r = take(userdata, &s);
	}
	return r;
}

/* --- names ------------------------------------------------------------------------------------ */

const char *profile_function(const struct profile *p, const struct profile_place *place)
{
	const char *name = p->text[place->function];
	return *name ? name : "[unknown]";
}

const char *profile_module_name(const struct profile *p, uint32_t module)
{
	const char *path = p->text[p->module[module].path];
	const char *slash = *path == '/' ? strrchr(path, '/') : NULL;
	const char *name = slash && slash[1] ? slash + 1 : path;
	return *name ? name : "[unknown]";
}

bool profile_is_kernel(const struct profile *p, const struct profile_frame *f)
{
	const enum profile_kind kind = p->module[f->module].kind;
	return kind == PROFILE_KERNEL || kind == PROFILE_MODULE;
}

const struct profile_place *profile_places(
	const struct profile *p, const struct profile_frame *f, uint32_t *ret_n)
{
	*ret_n = f->n_places > 0 ? f->n_places : 1;
	return f->n_places > 0 ? &p->place[f->place] : &p->place[0];
}
