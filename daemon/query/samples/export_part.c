/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Arrays that grow and are emptied, so that a long export allocates only at its start. A message
 * holds pointers to its nested messages; they are set when the part is sent, since arrays move as
 * they grow.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/samples/export_part.h"

/* without texts and places: five numbers of ten bytes, tags */
#define ENTRY_BYTES 64
#define PLACE_BYTES 15 /* three numbers of 32 bits */
#define MENDED 4       /* a byte that is no UTF-8 becomes \xNN */

static int append(struct export_list *l, const void *item, uint32_t n, size_t bytes)
{
	int r = array_grow(&l->item, &l->size, l->n + n + 1, bytes);
	if (r < 0)
		return r;
	if (n > 0)
		memcpy((uint8_t *)l->item + l->n * bytes, item, n * bytes);
	l->n += n;
	return 0;
}

static int make_room(struct export_part *p, size_t bytes)
{
	int r = p->bytes > EXPORT_PART_BYTES ? export_part_send(p) : 0;
	p->bytes += bytes;
	return r;
}

int export_part_text(struct export_part *p, uint32_t text)
{
	size_t n = strnlen(text_of(p->texts, text), EXPORT_TEXT_BYTES_MAX);
	int r = make_room(p, MENDED * n + ENTRY_BYTES);
	return r != 0 ? r : append(&p->text, &text, 1, sizeof(text));
}

int export_part_module(struct export_part *p, const Mperf__ProfileModule *m)
{
	int r = make_room(p, ENTRY_BYTES);
	return r != 0 ? r : append(&p->module, m, 1, sizeof(*m));
}

int export_part_task(struct export_part *p, const Mperf__ProfileTask *t)
{
	int r = make_room(p, ENTRY_BYTES);
	return r != 0 ? r : append(&p->task, t, 1, sizeof(*t));
}

int export_part_window(struct export_part *p, const Mperf__ProfileWindow *w)
{
	int r = make_room(p, ENTRY_BYTES);
	return r != 0 ? r : append(&p->window, w, 1, sizeof(*w));
}

int export_part_stack(struct export_part *p, uint32_t caller, uint32_t frame)
{
	int r = make_room(p, 2 * 5);
	if (r == 0)
		r = append(&p->caller, &caller, 1, sizeof(caller));
	return r != 0 ? r : append(&p->stack_frame, &frame, 1, sizeof(frame));
}

int export_part_frame(struct export_part *p, const Mperf__ProfileFrame *f)
{
	uint32_t n = (uint32_t)f->n_function;
	int r = make_room(p, ENTRY_BYTES + n * PLACE_BYTES);
	if (r == 0)
		r = append(&p->function, f->function, n, sizeof(*f->function));
	if (r == 0)
		r = append(&p->source, f->source, n, sizeof(*f->source));
	if (r == 0)
		r = append(&p->line, f->line, n, sizeof(*f->line));
	return r != 0 ? r : append(&p->frame, f, 1, sizeof(*f));
}

int export_part_sample(struct export_part *p, const uint32_t id[N_SAMPLE_IDS],
	const uint64_t value[N_SAMPLE_VALUES])
{
	int r = p->n_samples == EXPORT_SAMPLES_PART ? export_part_send(p) : 0;
	if (r != 0)
		return r;
	for (size_t i = 0; i < N_SAMPLE_IDS; i++)
		p->id[i][p->n_samples] = id[i];
	for (size_t i = 0; i < N_SAMPLE_VALUES; i++)
		p->value[i][p->n_samples] = value[i];
	p->n_samples++;
	return 0;
}

/* --- sending ---------------------------------------------------------------------------------- */

/* Pointers to the messages of a list; NULL without memory. */
static void **pointers(const struct export_list *l, size_t bytes)
{
	void **p = malloc((l->n + 1) * sizeof(*p));
	for (uint32_t i = 0; p && i < l->n; i++)
		p[i] = (uint8_t *)l->item + i * bytes;
	return p;
}

static void set_places(struct export_part *p)
{
	Mperf__ProfileFrame *frame = p->frame.item;
	size_t at = 0;
	for (uint32_t i = 0; i < p->frame.n; i++) {
		frame[i].function = (uint32_t *)p->function.item + at;
		frame[i].source = (uint32_t *)p->source.item + at;
		frame[i].line = (uint32_t *)p->line.item + at;
		at += frame[i].n_function;
	}
}

/* Texts unchanged but cut. NULL without memory. */
static char **cut_texts(const struct export_part *p)
{
	const uint32_t *id = p->text.item;
	char **text = calloc((size_t)p->text.n + 1, sizeof(*text));
	for (uint32_t i = 0; text && i < p->text.n; i++) {
		text[i] = strndup(text_of(p->texts, id[i]), EXPORT_TEXT_BYTES_MAX);
		if (!text[i]) {
			while (i > 0)
				free(text[--i]);
			free(text);
			return NULL;
		}
	}
	return text;
}

static void set_samples(struct export_part *p, Mperf__Profile *m)
{
	m->sample_window = p->id[SAMPLE_WINDOW];
	m->sample_task = p->id[SAMPLE_TASK];
	m->sample_stack = p->id[SAMPLE_STACK];
	m->sample_hart = p->id[SAMPLE_HART];
	m->sample_event = p->id[SAMPLE_EVENT];
	m->sample_at = p->id[SAMPLE_AT];
	m->sample_count = p->value[SAMPLE_COUNT];
	m->sample_ns = p->value[SAMPLE_NS];
	m->sample_value = p->value[SAMPLE_VALUE];
	m->sample_cycles = p->value[SAMPLE_CYCLES];
	m->sample_instructions = p->value[SAMPLE_INSTRUCTIONS];
	m->n_sample_window = m->n_sample_task = m->n_sample_stack = m->n_sample_hart = p->n_samples;
	m->n_sample_event = m->n_sample_count = m->n_sample_ns = m->n_sample_value = p->n_samples;
	m->n_sample_cycles = m->n_sample_instructions = m->n_sample_at = p->n_samples;
}

static void empty(struct export_part *p)
{
	p->text.n = p->module.n = p->frame.n = p->task.n = p->window.n = 0;
	p->function.n = p->source.n = p->line.n = p->caller.n = p->stack_frame.n = 0;
	p->n_sent += p->n_samples;
	p->n_samples = 0;
	p->bytes = 0;
}

int export_part_send(struct export_part *p)
{
	_cleanup_(freep) void **module = pointers(&p->module, sizeof(Mperf__ProfileModule));
	_cleanup_(freep) void **frame = pointers(&p->frame, sizeof(Mperf__ProfileFrame));
	_cleanup_(freep) void **task = pointers(&p->task, sizeof(Mperf__ProfileTask));
	_cleanup_(freep) void **window = pointers(&p->window, sizeof(Mperf__ProfileWindow));
	Mperf__Profile m = MPERF__PROFILE__INIT;

	m.text = cut_texts(p);
	if (!m.text || !module || !frame || !task || !window) {
		for (uint32_t i = 0; m.text && i < p->text.n; i++)
			free(m.text[i]);
		free(m.text);
		return -ENOMEM;
	}
	set_places(p);
	m.unit = p->unit;
	m.n_text = p->text.n;
	m.module = (Mperf__ProfileModule **)module, m.n_module = p->module.n;
	m.frame = (Mperf__ProfileFrame **)frame, m.n_frame = p->frame.n;
	m.task = (Mperf__ProfileTask **)task, m.n_task = p->task.n;
	m.window = (Mperf__ProfileWindow **)window, m.n_window = p->window.n;
	m.stack_caller = p->caller.item, m.n_stack_caller = p->caller.n;
	m.stack_frame = p->stack_frame.item, m.n_stack_frame = p->stack_frame.n;
	set_samples(p, &m);
	int r = p->answer->part(p->answer->userdata, &m);
	for (size_t i = 0; i < m.n_text; i++)
		free(m.text[i]);
	free(m.text);
	empty(p);
	return r;
}

void export_part_clear(struct export_part *p)
{
	struct export_list *list[] = {&p->text, &p->module, &p->task, &p->window, &p->frame,
		&p->function, &p->source, &p->line, &p->caller, &p->stack_frame};
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		free(list[i]->item);
}
