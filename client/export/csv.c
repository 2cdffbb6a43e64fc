/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* csv: a line per row of samples
 *
 * Fields are quoted where RFC 4180 requires it; characters that could break a line have been made
 * visible text already.
 */

#include <inttypes.h>
#include <string.h>

#include "client/export/format.h"
#include "client/show/csv.h"
#include "proto/base/memory.h"

static void write_text(FILE *f, const char *text)
{
	if (!csv_is_quoted(text)) {
		fputs(text, f);
		return;
	}
	fputc('"', f);
	if (csv_is_formula(text))
		fputc('\'', f);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', f);
		fputc(*text, f);
	}
	fputc('"', f);
}

/* Within the stack's field, which is quoted. */
static void write_function(FILE *f, const char *name)
{
	for (; *name; name++) {
		if (*name == '"')
			fputc('"', f);
		fputc(*name == ';' ? ':' : *name, f);
	}
}

static int begin(struct export_output *o)
{
	/* Source: RFC 4180, section 2: lines end in CRLF, the first may name the fields */
	fputs("time_ns,window_ns,pid,tid,process,thread,cgroup,hart,event,samples,cpu_ns,value,"
	      "cycles,instructions,function,module,build_id,offset,source,line,stack\r\n",
		o->file);
	return 0;
}

static void write_who(struct export_output *o, const struct profile_sample *s)
{
	const struct profile *p = o->profile;
	const struct profile_window *w = &p->window[s->window];
	const struct profile_task *t = &p->task[s->task];
	fprintf(o->file, "%" PRId64 ",%" PRId64 ",%" PRId32 ",%" PRId32 ",",
		w->realtime_ns + (s->at_ns > 0 ? s->at_ns : 0), w->end_ns - w->start_ns, t->pid,
		t->tid);
	write_text(o->file, p->text[t->process]);
	fputc(',', o->file);
	write_text(o->file, p->text[t->comm]);
	fputc(',', o->file);
	write_text(o->file, p->text[t->cgroup]);
	fputc(',', o->file);
	if (s->hart >= 0)
		fprintf(o->file, "%" PRId32, s->hart);
	fputc(',', o->file);
	write_text(o->file, p->text[s->event]);
}

static void write_values(struct export_output *o, const struct profile_sample *s)
{
	fprintf(o->file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", s->count, s->ns, s->value);
	if (s->has_cycles)
		fprintf(o->file, "%" PRIu64, s->cycles);
	fputc(',', o->file);
	if (s->has_instructions)
		fprintf(o->file, "%" PRIu64, s->instructions);
	fputc(',', o->file);
}

static void write_leaf(struct export_output *o, const struct profile_frame *frame)
{
	const struct profile *p = o->profile;
	const struct profile_module *m = &p->module[frame->module];
	uint32_t n;
	const struct profile_place *leaf = profile_places(p, frame, &n);
	write_text(o->file, profile_function(p, leaf));
	fputc(',', o->file);
	write_text(o->file, p->text[m->path]);
	fprintf(o->file, ",%s,0x%" PRIx64 ",", p->text[m->build_id], frame->offset);
	write_text(o->file, p->text[leaf->source]);
	fputc(',', o->file);
	if (leaf->line > 0)
		fprintf(o->file, "%" PRIu32, leaf->line);
}

/* Outermost first, as folded stacks have it. */
static void write_stack(struct export_output *o, uint32_t leaf)
{
	const struct profile *p = o->profile;
	uint32_t path[PROFILE_DEPTH_MAX], n = 0;
	for (uint32_t s = leaf; s != 0 && n < PROFILE_DEPTH_MAX; s = p->stack[s].caller)
		path[n++] = s;
	fputc('"', o->file);
	for (uint32_t i = n; i > 0; i--) {
		uint32_t n_places;
		const struct profile_place *place =
			profile_places(p, &p->frame[p->stack[path[i - 1]].frame], &n_places);
		for (uint32_t k = n_places; k > 0; k--) {
			const char *function = profile_function(p, &place[k - 1]);
			if (i < n || k < n_places)
				fputc(';', o->file);
			else if (csv_is_formula(function))
				fputc('\'', o->file);
			write_function(o->file, function);
		}
	}
	fputc('"', o->file);
}

static int sample(struct export_output *o, const struct profile_sample *s)
{
	const struct profile *p = o->profile;
	write_who(o, s);
	write_values(o, s);
	if (s->stack != 0)
		write_leaf(o, &p->frame[p->stack[s->stack].frame]);
	else
		fputs("[unknown],,,,,", o->file);
	fputc(',', o->file);
	write_stack(o, s->stack);
	fputs("\r\n", o->file);
	return 0;
}

const struct export_format export_csv = {.name = "csv", .begin = begin, .sample = sample};
