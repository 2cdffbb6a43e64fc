/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* speedscope: a sampled profile for each thread, in its order in time
 *
 * A frame in speedscope is a function of a file of machine code. Lines are left out, since a frame
 * has only one, but a function many. Source: the schema that
 * https://www.speedscope.app/file-format-schema.json names.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/export/pair.h"
#include "client/export/spool.h"
#include "proto/base/memory.h"

struct speedscope {
	struct spool spool;
	struct pair_table names; /* function, module */
	uint32_t *name;          /* by place: its pair; then by frame without places */
};

static int begin(struct export_output *o)
{
	o->state = calloc(1, sizeof(struct speedscope));
	return o->state ? 0 : -ENOMEM;
}

static int sample(struct export_output *o, const struct profile_sample *s)
{
	struct speedscope *p = o->state;
	return profile_sample_is_counts(s) ? 0 : spool_add(&p->spool, s);
}

static uint32_t *name_of(
	const struct speedscope *p, const struct profile *f, uint32_t frame, uint32_t place)
{
	const struct profile_frame *at = &f->frame[frame];
	return &p->name[at->n_places > 0 ? at->place + place : f->n_places + frame];
}

static void write_name(
	struct export_output *o, uint32_t frame, const struct profile_place *place, bool is_first)
{
	const struct profile *f = o->profile;
	const char *source = f->text[place->source];
	const char *path = f->text[f->module[f->frame[frame].module].path];
	fputs(is_first ? "\n{\"name\":" : ",\n{\"name\":", o->file);
	export_json_text(o->file, profile_function(f, place));
	if (*source || *path) {
		fputs(",\"file\":", o->file);
		export_json_text(o->file, *source ? source : path);
	}
	fputc('}', o->file);
}

static int write_names(struct export_output *o, struct speedscope *p)
{
	const struct profile *f = o->profile;
	int r = 0;
	p->name = calloc((size_t)f->n_places + f->n_frames, sizeof(*p->name));
	if (!p->name)
		return -ENOMEM;
	fputs("\"shared\":{\"frames\":[", o->file);
	for (uint32_t i = 0; i < f->n_frames && r == 0; i++) {
		uint32_t n;
		const struct profile_place *place = profile_places(f, &f->frame[i], &n);
		for (uint32_t k = 0; k < n && r == 0; k++) {
			const uint32_t known = p->names.n;
			uint32_t *name = name_of(p, f, i, k);
			r = pair_get(&p->names, place[k].function, f->frame[i].module, name);
			if (r == 0 && *name == known)
				write_name(o, i, &place[k], known == 0);
		}
	}
	fputs("]},\n", o->file);
	return r == PAIR_FULL ? EXPORT_TOO_LARGE : r;
}

/* Outermost first. */
static void write_stack(struct export_output *o, const struct speedscope *p, uint32_t leaf)
{
	const struct profile *f = o->profile;
	uint32_t path[PROFILE_DEPTH_MAX], n = 0;
	const char *before = "[";
	for (uint32_t s = leaf; s != 0 && n < PROFILE_DEPTH_MAX; s = f->stack[s].caller)
		path[n++] = f->stack[s].frame;
	if (n == 0)
		path[n++] = 0;
	while (n > 0) {
		const uint32_t frame = path[--n];
		uint32_t n_places;
		(void)profile_places(f, &f->frame[frame], &n_places);
		for (uint32_t k = n_places; k > 0; k--) {
			fprintf(o->file, "%s%" PRIu32, before, *name_of(p, f, frame, k - 1));
			before = ",";
		}
	}
	fputc(']', o->file);
}

static void write_value(struct export_output *o, uint64_t value)
{
	if (o->profile->unit == MPERF__UNIT__UNIT_COUNT)
		fprintf(o->file, "%" PRIu64, value);
	else
		fprintf(o->file, "%" PRIu64 ".%09" PRIu64, value / 1000000000, value % 1000000000);
}

static void write_title(struct export_output *o, uint32_t task)
{
	const struct profile_task *t = &o->profile->task[task];
	const char *process = o->profile->text[t->process], *comm = o->profile->text[t->comm];
	_cleanup_(freep) char *title = NULL;
	int n = t->comm == t->process
			? asprintf(&title, "%s %" PRId32 "/%" PRId32, process, t->pid, t->tid)
			: asprintf(&title, "%s %" PRId32 "/%" PRId32 " %s", process, t->pid, t->tid,
				  comm);
	if (n < 0)
		title = NULL;
	export_json_text(o->file, title ? title : "");
}

static void write_thread(struct export_output *o, const struct speedscope *p, uint32_t task)
{
	const bool counts = o->profile->unit == MPERF__UNIT__UNIT_COUNT;
	const char *before = "";
	fputs("{\"type\":\"sampled\",\"name\":", o->file);
	write_title(o, task);
	fprintf(o->file,
		",\"unit\":\"%s\",\"startValue\":0,\"endValue\":", counts ? "none" : "seconds");
	write_value(o, p->spool.thread[task].value);
	fputs(",\n\"samples\":[", o->file);
	for (const struct spool_row *r = spool_first(&p->spool, task); r;
		r = spool_next(&p->spool, r)) {
		fputs(before, o->file);
		write_stack(o, p, r->stack);
		before = ",\n";
	}
	fputs("],\n\"weights\":[", o->file);
	before = "";
	for (const struct spool_row *r = spool_first(&p->spool, task); r;
		r = spool_next(&p->spool, r)) {
		fputs(before, o->file);
		write_value(o, r->value);
		before = ",";
	}
	fputs("]}", o->file);
}

static int end(struct export_output *o)
{
	struct speedscope *p = o->state;
	uint32_t n = 0, active = 0;
	uint64_t most = 0;
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"mperf " MPERF_VERSION "\",\n\"name\":",
		o->file);
	export_json_text(o->file, o->title);
	fputs(",\n", o->file);
	int r = write_names(o, p);
	if (r != 0)
		return r;
	fputs("\"profiles\":[", o->file);
	for (uint32_t task = 0; task < p->spool.n_threads; task++) {
		if (!spool_first(&p->spool, task))
			continue;
		if (p->spool.thread[task].value > most) {
			most = p->spool.thread[task].value;
			active = n;
		}
		fputs(n++ > 0 ? ",\n" : "\n", o->file);
		write_thread(o, p, task);
	}
	fprintf(o->file, "],\n\"activeProfileIndex\":%" PRIu32 "}\n", active);
	return 0;
}

static void clear(struct export_output *o)
{
	struct speedscope *p = o->state;
	if (!p)
		return;
	spool_clear(&p->spool);
	pair_clear(&p->names);
	free(p->name);
	free(p);
}

const struct export_format export_speedscope = {
	.name = "speedscope", .begin = begin, .sample = sample, .end = end, .clear = clear};
