/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* perf-script: the text that `perf script -F +pid` prints, which many tools read
 *
 *      comm  pid/tid [hart] seconds: period event:
 *      	         address function (file)
 *      	         …
 *
 * Its readers are regular expressions, so a name must not contain their separators: a blank at the
 * start of a process's name or before a digit in it, a # at its start (a comment), blanks and
 * parentheses in a file's name. A row of several samples becomes as many records, which share its
 * value. Addresses are offsets in the file.
 */

#include <inttypes.h>
#include <string.h>

#include "client/export/format.h"

static void write_comm(FILE *f, const char *name)
{
	size_t n = strlen(name);
	if (n == 0)
		name = "[unknown]";
	const bool hides = *name == ' ' || *name == '#'; /* what follows */
	for (const char *c = name; *c; c++) {
		const bool splits =
			*c == ' ' && (c[1] == ' ' || c[1] == '\0' || (c[1] >= '0' && c[1] <= '9') ||
					     c[1] == '[');
		fputc(splits || (hides && c == name) ? '_' : *c, f);
	}
	/* stackcollapse-perf.pl expects two characters before the last blank */
	fputs(n == 1 ? "  " : " ", f);
}

static void write_word(FILE *f, const char *text)
{
	for (; *text; text++)
		fputc(*text == ' ' ? '_' : *text == '(' ? '[' : *text == ')' ? ']' : *text, f);
}

/* A colon at its end ends the event's name. */
static void write_event(FILE *f, const char *text)
{
	for (; *text; text++)
		fputc(*text == ' ' ? '_' : *text, f);
	fputs(":\n", f);
}

static void write_frame(struct export_output *o, const struct profile_frame *frame)
{
	const struct profile *p = o->profile;
	const char *path = p->text[p->module[frame->module].path];
	uint32_t n;
	const struct profile_place *place = profile_places(p, frame, &n);
	for (uint32_t i = 0; i < n; i++) {
		fprintf(o->file, "\t%16" PRIx64 " %s (", frame->offset,
			profile_function(p, &place[i]));
		if (i + 1 < n)
			fputs("inlined", o->file);
		else
			write_word(o->file, *path ? path : "[unknown]");
		fputs(")\n", o->file);
	}
}

static void write_record(struct export_output *o, const struct profile_sample *s, uint64_t period)
{
	const struct profile *p = o->profile;
	const struct profile_task *t = &p->task[s->task];
	const int64_t ns = p->window[s->window].start_ns + (s->at_ns > 0 ? s->at_ns : 0);
	write_comm(o->file, p->text[t->comm]);
	fprintf(o->file, "%5" PRId32 "/%-5" PRId32 " ", t->pid, t->tid);
	if (s->hart >= 0)
		fprintf(o->file, "[%03" PRId32 "] ", s->hart);
	fprintf(o->file, "%5" PRId64 ".%06" PRId64 ": %10" PRIu64 " ", ns / 1000000000,
		ns / 1000 % 1000000, period);
	write_event(o->file, p->text[s->event]);
	uint32_t n = 0;
	for (uint32_t i = s->stack; i != 0 && n < PROFILE_DEPTH_MAX; i = p->stack[i].caller, n++)
		write_frame(o, &p->frame[p->stack[i].frame]);
	if (s->stack == 0)
		fputs("\t               0 [unknown] ([unknown])\n", o->file);
	fputc('\n', o->file);
}

/* A row without samples has counts delivered by a context switch: write one record, if the event is
 * shown. */
static int sample(struct export_output *o, const struct profile_sample *s)
{
	const uint64_t n = s->count > 0 ? s->count : !profile_sample_is_counts(s);
	if (n > EXPORT_RECORDS_MAX - o->n_records)
		return EXPORT_TOO_LARGE;
	o->n_records += n;
	for (uint64_t i = 0; i < n && !ferror(o->file); i++)
		write_record(o, s, s->value / n + (i < s->value % n));
	return 0;
}

const struct export_format export_perf_script = {.name = "perf-script", .sample = sample};
