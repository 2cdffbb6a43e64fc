/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* firefox: a processed profile, version 60, which profiler.firefox.com upgrades to its own
 *
 * Tables are columns: frames (a place of an address), functions (of a file of machine code), stacks,
 * which all threads share, and a thread's samples. Samples of the store have no time of their own; those of a
 * thread and window (a second) are spread over it, each by its share of the CPU time.
 * Source: https://github.com/firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md and
 * src/types/profile.ts as of version 60.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/export/pair.h"
#include "client/export/spool.h"
#include "proto/base/array.h"
#include "proto/base/memory.h"

#define FORMAT_VERSION 60
#define GECKO_VERSION 30   /* of a recording Firefox; readers only ask whether it is a number */
#define RESOURCE_LIBRARY 1 /* of resourceTable.type */

/* Of meta.categories, in this order; samples without a stack are of the last. */
enum { CATEGORY_USER, CATEGORY_KERNEL, CATEGORY_OTHER };

struct firefox {
	struct spool spool;
	int64_t first_ns, first_realtime_ns; /* of the first window; 0: none yet */
	struct pair_table functions;         /* function, module */
	uint32_t *function_place;            /* by function: one of its places */
	uint32_t size_function_places;
	uint32_t *first_frame; /* by frame: where its places begin in frameTable */
	uint32_t *stack_end;   /* by stack: its innermost node in stackTable */
};

static int begin(struct export_output *o)
{
	o->state = calloc(1, sizeof(struct firefox));
	return o->state ? 0 : -ENOMEM;
}

static int sample(struct export_output *o, const struct profile_sample *s)
{
	struct firefox *p = o->state;
	const struct profile_window *w = &o->profile->window[s->window];
	if (profile_sample_is_counts(s))
		return 0;
	if (p->first_ns == 0 || (w->start_ns > 0 && w->start_ns < p->first_ns)) {
		p->first_ns = w->start_ns;
		p->first_realtime_ns = w->realtime_ns;
	}
	return spool_add(&p->spool, s);
}

/* --- columns ---------------------------------------------------------------------------------- */

static void column_begin(struct export_output *o, const char *name)
{
	fprintf(o->file, "\"%s\":[", name);
}

static void column_end(struct export_output *o)
{
	fputs("],\n", o->file);
}

/* A column of one value. */
static void column_of(struct export_output *o, const char *name, uint32_t n, const char *value)
{
	column_begin(o, name);
	for (uint32_t i = 0; i < n; i++)
		fprintf(o->file, "%s%s", i ? "," : "", value);
	column_end(o);
}

static void number(struct export_output *o, uint32_t i, int64_t value)
{
	fprintf(o->file, "%s%" PRId64, i ? "," : "", value);
}

/* The end of a table. */
static void length(struct export_output *o, uint32_t n, const char *behind)
{
	fprintf(o->file, "\"length\":%" PRIu32 "}%s\n", n, behind);
}

/* --- shared tables ---------------------------------------------------------------------------- */

/* Number functions, and where the places of each frame begin. 0, EXPORT_TOO_LARGE, -ENOMEM. */
static int number_functions(struct export_output *o, struct firefox *p)
{
	const struct profile *f = o->profile;
	uint32_t n_rows = 0;
	p->first_frame = calloc((size_t)f->n_frames + 1, sizeof(*p->first_frame));
	if (!p->first_frame)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n_frames; i++) {
		uint32_t n, function;
		const struct profile_place *place = profile_places(f, &f->frame[i], &n);
		p->first_frame[i] = n_rows;
		n_rows += n;
		for (uint32_t k = 0; k < n; k++) {
			const uint32_t known = p->functions.n;
			int r = pair_get(
				&p->functions, place[k].function, f->frame[i].module, &function);
			if (r != 0)
				return r == PAIR_FULL ? EXPORT_TOO_LARGE : r;
			r = array_grow(&p->function_place, &p->size_function_places,
				p->functions.size, sizeof(*p->function_place));
			if (r < 0)
				return r;
			if (function == known)
				p->function_place[function] = (uint32_t)(&place[k] - f->place);
		}
	}
	p->first_frame[f->n_frames] = n_rows;
	return 0;
}

static int write_functions(struct export_output *o, const struct firefox *p)
{
	const struct profile *f = o->profile;
	const uint32_t n = p->functions.n;
	fputs("\"funcTable\":{", o->file);
	column_begin(o, "name");
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t name = p->functions.pair[i].a;
		number(o, i, name != 0 ? name : f->n_texts); /* "[unknown]" comes last */
	}
	column_end(o);
	column_of(o, "isJS", n, "false");
	column_of(o, "relevantForJS", n, "false");
	column_begin(o, "resource");
	for (uint32_t i = 0; i < n; i++)
		number(o, i, (int64_t)p->functions.pair[i].b - 1); /* module 0: -1, none */
	column_end(o);
	column_begin(o, "source");
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t source = f->place[p->function_place[i]].source;
		if (source != 0)
			number(o, i, source);
		else
			fputs(i ? ",null" : "null", o->file);
	}
	column_end(o);
	column_of(o, "lineNumber", n, "null");
	column_of(o, "columnNumber", n, "null");
	length(o, n, ",");
	return 0;
}

/* Places of an address, the symbol itself first. */
static int write_frames(struct export_output *o, struct firefox *p)
{
	const struct profile *f = o->profile;
	const uint32_t n_rows = p->first_frame[f->n_frames];
	enum { ADDRESS, DEPTH, CATEGORY, FUNC, LINE, N_COLUMNS };
	static const char *const name[] = {"address", "inlineDepth", "category", "func", "line"};
	fputs("\"frameTable\":{", o->file);
	for (int c = 0; c < N_COLUMNS; c++) {
		uint32_t row = 0;
		column_begin(o, name[c]);
		for (uint32_t i = 0; i < f->n_frames; i++) {
			const struct profile_frame *frame = &f->frame[i];
			uint32_t n, function = 0;
			const struct profile_place *place = profile_places(f, frame, &n);
			for (uint32_t k = 0; k < n; k++, row++) {
				const struct profile_place *at = &place[n - 1 - k];
				if (c == FUNC && pair_get(&p->functions, at->function,
							 frame->module, &function) < 0)
					return -ENOMEM;
				number(o, row,
					c == ADDRESS    ? frame->offset <= INT64_MAX && i > 0
								  ? (int64_t)frame->offset
								  : -1
					: c == DEPTH    ? (int64_t)k
					: c == CATEGORY ? (i == 0 ? CATEGORY_OTHER
								  : profile_is_kernel(f, frame)
									  ? CATEGORY_KERNEL
									  : CATEGORY_USER)
					: c == FUNC     ? (int64_t)function
							: (int64_t)at->line);
			}
		}
		column_end(o);
	}
	column_of(o, "subcategory", n_rows, "0");
	column_of(o, "nativeSymbol", n_rows, "null");
	column_of(o, "innerWindowID", n_rows, "0");
	column_of(o, "column", n_rows, "null");
	length(o, n_rows, ",");
	return 0;
}

/* Nodes of a stack: one for each place of its frame, below its caller's last. Row 0 is the unknown
 * place of samples without a stack. */
static int write_stacks(struct export_output *o, struct firefox *p)
{
	const struct profile *f = o->profile;
	uint32_t n_rows = 0;
	p->stack_end = calloc(f->n_stacks, sizeof(*p->stack_end));
	if (!p->stack_end)
		return -ENOMEM;
	fputs("\"stackTable\":{\"frame\":[", o->file);
	for (uint32_t i = 0; i < f->n_stacks; i++) {
		const uint32_t frame = f->stack[i].frame; /* of stack 0: 0 */
		for (uint32_t at = p->first_frame[frame]; at < p->first_frame[frame + 1]; at++)
			number(o, n_rows++, at);
		p->stack_end[i] = n_rows - 1;
	}
	fputs("],\n\"prefix\":[", o->file);
	for (uint32_t i = 0, row = 0; i < f->n_stacks; i++) {
		const uint32_t caller = f->stack[i].caller;
		for (bool first = true; row <= p->stack_end[i]; row++, first = false)
			if (!first)
				number(o, row, row - 1);
			else if (caller != 0)
				number(o, row, p->stack_end[caller]);
			else
				fputs(row ? ",null" : "null", o->file);
	}
	column_end(o);
	length(o, n_rows, ",");
	return 0;
}

static void write_modules(struct export_output *o)
{
	const struct profile *f = o->profile;
	const uint32_t n = f->n_modules - 1;
	fputs("\"resourceTable\":{", o->file);
	column_begin(o, "lib");
	for (uint32_t i = 0; i < n; i++)
		number(o, i, i);
	column_end(o);
	column_begin(o, "name");
	for (uint32_t i = 0; i < n; i++)
		number(o, i, f->module[i + 1].path);
	column_end(o);
	column_of(o, "host", n, "null");
	column_begin(o, "type");
	for (uint32_t i = 0; i < n; i++)
		number(o, i, RESOURCE_LIBRARY);
	column_end(o);
	length(o, n, ",");
}

/* Sources are indexed by text. A row for every text is simpler than finding the texts that are
 * paths. */
static void write_sources(struct export_output *o)
{
	const uint32_t n = o->profile->n_texts;
	fputs("\"sources\":{", o->file);
	column_of(o, "uuid", n, "null");
	column_begin(o, "filename");
	for (uint32_t i = 0; i < n; i++)
		number(o, i, i);
	column_end(o);
	length(o, n, ",");
	fputs("\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],",
		o->file);
	length(o, 0, ",");
	fputs("\"stringArray\":[", o->file);
	for (uint32_t i = 0; i < n; i++) {
		export_json_text(o->file, o->profile->text[i]);
		fputs(",\n", o->file);
	}
	fputs("\"[unknown]\"]},\n", o->file);
}

static void write_libs(struct export_output *o)
{
	const struct profile *f = o->profile;
	fputs("\"libs\":[", o->file);
	for (uint32_t i = 1; i < f->n_modules; i++) {
		static const char *const key[] = {"name", "path", "debugName", "debugPath"};
		fputs(i > 1 ? ",\n{" : "\n{", o->file);
		for (size_t k = 0; k < 4; k++) {
			fprintf(o->file, "\"%s\":", key[k]);
			export_json_text(o->file,
				k % 2 ? f->text[f->module[i].path] : profile_module_name(f, i));
			fputc(',', o->file);
		}
		fputs("\"arch\":\"\",\"breakpadId\":\"\",\"codeId\":", o->file);
		if (f->module[i].build_id)
			export_json_text(o->file, f->text[f->module[i].build_id]);
		else
			fputs("null", o->file);
		fputc('}', o->file);
	}
	fputs("],\n", o->file);
}

/* --- threads ---------------------------------------------------------------------------------- */

/* The rows of one window, from `from` on: their number and the sum of their values. */
static uint32_t measure(const struct spool *s, const struct spool_row *from, double *ret_sum)
{
	uint32_t n = 0;
	*ret_sum = 0;
	for (const struct spool_row *r = from; r && r->window == from->window;
		r = spool_next(s, r)) {
		*ret_sum += (double)r->value;
		n++;
	}
	return n;
}

/* Each in the middle of its share of the window. Milliseconds from the start of the profile. */
static void write_times(struct export_output *o, const struct firefox *p, uint32_t task)
{
	const struct spool_row *r = spool_first(&p->spool, task);
	uint32_t row = 0;
	column_begin(o, "time");
	while (r) {
		const struct profile_window *w = &o->profile->window[r->window];
		const double start = (double)(w->start_ns - p->first_ns) / 1e6;
		const double span = (double)(w->end_ns - w->start_ns) / 1e6;
		double sum, before = 0;
		for (uint32_t n = measure(&p->spool, r, &sum); n > 0; n--, row++) {
			const double share = sum > 0 ? (before + (double)r->value / 2) / sum : 0.5;
			const double at = r->at_ns >= 0 ? (double)r->at_ns / 1e6 : share * span;
			fprintf(o->file, "%s%.6f", row ? "," : "", start + at);
			before += (double)r->value;
			r = spool_next(&p->spool, r);
		}
	}
	column_end(o);
}

static void write_samples(struct export_output *o, const struct firefox *p, uint32_t task)
{
	const bool counts = o->profile->unit == MPERF__UNIT__UNIT_COUNT;
	const uint32_t n = p->spool.thread[task].n;
	uint32_t row = 0;
	fputs("\"samples\":{", o->file);
	column_begin(o, "stack");
	for (const struct spool_row *r = spool_first(&p->spool, task); r;
		r = spool_next(&p->spool, r))
		number(o, row++, p->stack_end[r->stack]);
	column_end(o);
	write_times(o, p, task);
	column_begin(o, "weight");
	row = 0;
	for (const struct spool_row *r = spool_first(&p->spool, task); r;
		r = spool_next(&p->spool, r), row++)
		fprintf(o->file, counts ? "%s%.0f" : "%s%.6f", row ? "," : "",
			counts ? (double)r->value : (double)r->value / 1e6);
	column_end(o);
	if (!counts) {
		column_begin(o, "threadCPUDelta");
		row = 0;
		for (const struct spool_row *r = spool_first(&p->spool, task); r;
			r = spool_next(&p->spool, r))
			number(o, row++, (int64_t)r->value);
		column_end(o);
	}
	fprintf(o->file, "\"weightType\":\"%s\",", counts ? "samples" : "tracing-ms");
	length(o, n, ",");
}

static void write_thread(struct export_output *o, const struct firefox *p, uint32_t task)
{
	const struct profile *f = o->profile;
	const struct profile_task *t = &f->task[task];
	fputs("{\"processType\":\"default\",\"processStartupTime\":0,"
	      "\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,"
	      "\"pausedRanges\":[],\"name\":",
		o->file);
	export_json_text(o->file, f->text[t->comm]);
	fputs(",\"processName\":", o->file);
	export_json_text(o->file, f->text[t->process]);
	fprintf(o->file, ",\"isMainThread\":%s,\"pid\":\"%" PRId32 "\",\"tid\":%" PRId32 ",\n",
		t->pid == t->tid ? "true" : "false", t->pid, t->tid);
	write_samples(o, p, task);
	fputs("\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],"
	      "\"category\":[],",
		o->file);
	length(o, 0, "}");
}

/* --- the whole -------------------------------------------------------------------------------- */

static void write_meta(struct export_output *o, const struct firefox *p)
{
	const uint32_t hz = o->provenance->hz ? o->provenance->hz : 1;
	fprintf(o->file,
		"{\"meta\":{\"interval\":%.6f,\"startTime\":%.3f,\"processType\":0,"
		"\"stackwalk\":1,\"version\":%d,\"preprocessedProfileVersion\":%d,"
		"\"symbolicated\":true,\"markerSchema\":[],"
		"\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},"
		"\n\"categories\":["
		"{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},"
		"{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}],"
		"\"importedFrom\":\"mperf " MPERF_VERSION "\",\"product\":",
		1000.0 / hz, (double)p->first_realtime_ns / 1e6, GECKO_VERSION, FORMAT_VERSION);
	export_json_text(o->file, o->title);
	fputs("},\n", o->file);
}

static int write_shared(struct export_output *o, struct firefox *p)
{
	fputs("\"shared\":{", o->file);
	int r = number_functions(o, p);
	if (r == 0)
		r = write_functions(o, p);
	if (r == 0)
		r = write_frames(o, p);
	if (r == 0)
		r = write_stacks(o, p);
	if (r == 0) {
		write_modules(o);
		write_sources(o);
	}
	return r;
}

static int end(struct export_output *o)
{
	struct firefox *p = o->state;
	bool first = true;
	write_meta(o, p);
	write_libs(o);
	int r = write_shared(o, p);
	if (r != 0)
		return r;
	fputs("\"threads\":[", o->file);
	for (uint32_t task = 0; task < p->spool.n_threads; task++) {
		if (!spool_first(&p->spool, task))
			continue;
		fputs(first ? "\n" : ",\n", o->file);
		first = false;
		write_thread(o, p, task);
	}
	fputs("]}\n", o->file);
	return 0;
}

static void clear(struct export_output *o)
{
	struct firefox *p = o->state;
	if (!p)
		return;
	spool_clear(&p->spool);
	pair_clear(&p->functions);
	free(p->function_place);
	free(p->first_frame);
	free(p->stack_end);
	free(p);
}

const struct export_format export_firefox = {
	.name = "firefox", .begin = begin, .sample = sample, .end = end, .clear = clear};
