/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The daemon says how often which address of which file was sampled; mperf-code says what the code
 * there does; together they are loops with their share of time and their operations per byte. Only
 * where instructions were counted beside the samples are there rates, too: operations per
 * instruction times instructions per second.
 */
#include "client/commands/roofline_code.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/commands/capture.h"
#include "client/commands/code.h"
#include "client/commands/command.h"
#include "client/show/csv.h"
#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/say.h"
#include "client/show/table.h"
#include "proto/memory.h"

#define FILES_MAX 32 /* with the most time; each takes 20 ms to a second */
#define NOTES_MAX 8
#define NOTE_BYTES 512

/* A row of the answer to hotspots by address. */
struct place {
	const char *module, *build_id, *function, *source;
	struct code_sample sample;
	double line;
};

/* Places of one file stand together. */
struct file {
	uint32_t first, n;
	double ns;
};

struct found_loop {
	struct code_loop loop;
	const struct place *hottest;
};

struct view {
	const struct options *o;
	struct reply places;
	struct place *place;
	struct file *file;
	uint32_t n_places, n_files;
	struct found_loop *loop;
	uint32_t n_loops;
	double ns, read_ns; /* of all samples; of those whose code was read */
	bool counted;       /* some loop has instructions */
	char note[NOTES_MAX][NOTE_BYTES];
	size_t n_notes;
};

static void view_clear(struct view *v)
{
	reply_clear(&v->places);
	free(v->place);
	free(v->file);
	free(v->loop);
}

__attribute__((format(printf, 2, 3))) static void note(struct view *v, const char *format, ...)
{
	va_list list;
	if (v->n_notes == NOTES_MAX)
		return;
	va_start(list, format);
	vsnprintf(v->note[v->n_notes++], NOTE_BYTES, format, list);
	va_end(list);
}

/* --- samples ---------------------------------------------------------------------------------- */

static int ask(struct source *s, const struct options *o, struct reply *reply)
{
	Mperf__Filter filter;
	source_filter(s, o, &filter);
	Mperf__HotspotsRequest hotspots = MPERF__HOTSPOTS_REQUEST__INIT;
	hotspots.path = s->path;
	hotspots.by = (char *)"address";
	hotspots.filter = &filter;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_HOTSPOTS;
	request.hotspots = &hotspots;
	return source_ask(s, &request, reply_take, reply);
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int r = strcmp(x->module, y->module);
	return r ? r : strcmp(x->build_id, y->build_id);
}

static int compare_files(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	return (x->ns < y->ns) - (x->ns > y->ns);
}

static const char *text(const struct reply *r, size_t row, const char *column)
{
	const char *t = reply_text(r, row, reply_column(r, column));
	return t ? t : "";
}

static double number(const struct reply *r, size_t row, const char *column, double missing)
{
	double n;
	return reply_number(r, row, reply_column(r, column), &n) ? n : missing;
}

static void take_place(struct view *v, size_t row)
{
	const struct reply *r = &v->places;
	double counted = number(r, row, "counted", 1);
	double instructions = number(r, row, "instructions", -1);
	struct place *p = &v->place[v->n_places++];
	*p = (struct place){.module = text(r, row, "module"),
		.build_id = text(r, row, "build_id"),
		.function = text(r, row, "function"),
		.source = text(r, row, "source"),
		.line = number(r, row, "line", 0)};
	p->sample.offset = (uint64_t)number(r, row, "offset", 0);
	p->sample.samples = (uint64_t)number(r, row, "samples", 0);
	p->sample.ns = number(r, row, "self_ns", 0);
	p->sample.instructions = counted < 1 ? -1 : instructions;
	v->ns += p->sample.ns;
}

/* 0, -ENOMEM */
static int sort_places(struct view *v)
{
	size_t n = v->places.n_rows;
	v->place = calloc(n + 1, sizeof(*v->place));
	v->file = calloc(n + 1, sizeof(*v->file));
	v->loop = calloc(n + 1, sizeof(*v->loop));
	if (!v->place || !v->file || !v->loop)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		take_place(v, i);
	qsort(v->place, n, sizeof(*v->place), compare_places);
	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 || compare_places(&v->place[i - 1], &v->place[i]) != 0)
			v->file[v->n_files++].first = i;
		v->file[v->n_files - 1].n++;
		v->file[v->n_files - 1].ns += v->place[i].sample.ns;
	}
	qsort(v->file, v->n_files, sizeof(*v->file), compare_files);
	return 0;
}

/* --- their code ------------------------------------------------------------------------------- */

static uint8_t hex_bytes(const char *text, uint8_t bytes[static CODE_BUILD_ID_BYTES])
{
	uint8_t n = 0;
	unsigned byte;
	while (n < CODE_BUILD_ID_BYTES && sscanf(text + 2 * n, "%2x", &byte) == 1)
		bytes[n++] = (uint8_t)byte;
	return n;
}

static const struct place *place_at(const struct place *p, uint32_t n, uint64_t offset)
{
	for (uint32_t i = 0; i < n; i++)
		if (p[i].sample.offset == offset)
			return &p[i];
	return p;
}

static void take_loops(struct view *v, const struct file *f, const struct code_found *found)
{
	const struct place *p = &v->place[f->first];
	for (uint32_t i = 0; i < found->reply.n_loops && v->n_loops < v->n_places; i++) {
		const struct code_loop *l = &found->loop[i];
		v->loop[v->n_loops++] = (struct found_loop){*l, place_at(p, f->n, l->hottest)};
		v->read_ns += l->ns;
		v->counted |= l->instructions > 0;
	}
}

static const char *state_says(uint32_t state)
{
	switch (state) {
	case CODE_OTHER_FILE:
		return "another file is there now (its build id differs)";
	case CODE_UNKNOWN_ISA:
		return "it is not of x86-64, aarch64 or riscv64";
	default:
		return "it is no program or library in ELF";
	}
}

/* 0, CODE_NO_PROGRAM, -errno */
static int take_file(struct view *v, const struct file *f)
{
	uint8_t build_id[CODE_BUILD_ID_BYTES];
	const struct place *p = &v->place[f->first];
	struct code_found found = {.loop = NULL};
	double share = v->ns > 0 ? 100 * f->ns / v->ns : 0;
	int error = 0;
	_cleanup_(freep) struct code_sample *sample = calloc(f->n, sizeof(*sample));
	if (!sample)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n; i++)
		sample[i] = p[i].sample;
	const struct code_question q = {.path = p->module,
		.build_id = build_id,
		.n_build_id = hex_bytes(p->build_id, build_id),
		.sample = sample,
		.n_samples = f->n < CODE_SAMPLES_MAX ? f->n : CODE_SAMPLES_MAX};
	if (f->n > CODE_SAMPLES_MAX)
		note(v, "of %.300s, %u addresses are left out", p->module, f->n - CODE_SAMPLES_MAX);
	int r = code_ask(&q, &found, &error);
	if (r == CODE_NO_FILE)
		note(v, "%.1f %% of time is in %.300s, which cannot be opened: %s", share,
			p->module, strerror(error));
	else if (r == CODE_FAILED)
		note(v, "%.1f %% of time is in %.300s, on which mperf-code failed", share,
			p->module);
	else if (r == 0 && found.reply.state != CODE_READ)
		note(v, "%.1f %% of time is in %.300s: %s", share, p->module,
			state_says(found.reply.state));
	else if (r == 0)
		take_loops(v, f, &found);
	free(found.loop);
	return r == CODE_NO_FILE || r == CODE_FAILED ? 0 : r;
}

/* 0, CODE_NO_PROGRAM, -errno */
static int read_code(struct view *v)
{
	int r = 0;
	double kernel_ns = 0;
	uint32_t n = 0;
	struct say_progress progress = {0};
	say_progress_start(&progress);
	for (uint32_t i = 0; i < v->n_files && r == 0; i++) {
		say_progress(&progress, "reading code", i, v->n_files);
		const char *module = v->place[v->file[i].first].module;
		bool generated = strncmp(module, "/tmp/perf-", 10) == 0; /* names of JIT code */
		if (*module != '/' || generated)
			kernel_ns += v->file[i].ns;
		else if (n++ < FILES_MAX)
			r = take_file(v, &v->file[i]);
	}
	say_progress_end(&progress);
	if (kernel_ns > 0)
		note(v,
			"%.1f %% of time is in the kernel, in generated code or in no file, which "
			"is not read",
			100 * kernel_ns / v->ns);
	if (n > FILES_MAX)
		note(v, "only the %u files with the most time were read, of %u", FILES_MAX, n);
	return r;
}

/* --- rows ------------------------------------------------------------------------------------- */

enum column {
	FUNCTION,
	SOURCE,
	SHARE,
	GOPS,
	GOPS_LOW,
	GOPS_HIGH,
	GBYTES,
	OPS_PER_BYTE,
	OPS_PER_BYTE_LOW,
	OPS_PER_BYTE_HIGH,
	OPS_PER_INSTRUCTION,
	BYTES_PER_INSTRUCTION,
	SAMPLES,
	TIME,
	INSTRUCTIONS,
	DEPTH,
	LIMITS,
	FROM,
	MODULE,
	START,
	LAST,
	N_CODE_COLUMNS,
};

static const struct {
	const char *name, *title;
	Mperf__Unit unit;
} columns[N_CODE_COLUMNS] = {
	[FUNCTION] = {"function", "Function", 0},
	[SOURCE] = {"source", "Source", 0},
	[SHARE] = {"share_self", "Share", MPERF__UNIT__UNIT_SHARE},
	[GOPS] = {"gops_self", "GFLOP/s", MPERF__UNIT__UNIT_RATIO},
	[GOPS_LOW] = {"gops_low", "from", MPERF__UNIT__UNIT_RATIO},
	[GOPS_HIGH] = {"gops_high", "to", MPERF__UNIT__UNIT_RATIO},
	[GBYTES] = {"gbytes_self", "GB/s", MPERF__UNIT__UNIT_RATIO},
	[OPS_PER_BYTE] = {"ops_per_byte_self", "FLOP/B", MPERF__UNIT__UNIT_RATIO},
	[OPS_PER_BYTE_LOW] = {"ops_per_byte_low", "from", MPERF__UNIT__UNIT_RATIO},
	[OPS_PER_BYTE_HIGH] = {"ops_per_byte_high", "to", MPERF__UNIT__UNIT_RATIO},
	[OPS_PER_INSTRUCTION] = {"ops_per_instruction", "FLOP/instr.", MPERF__UNIT__UNIT_RATIO},
	[BYTES_PER_INSTRUCTION] = {"bytes_per_instruction", "B/instr.", MPERF__UNIT__UNIT_RATIO},
	[SAMPLES] = {"samples", "Samples", MPERF__UNIT__UNIT_COUNT},
	[TIME] = {"self_ns", "Time", MPERF__UNIT__UNIT_NS},
	[INSTRUCTIONS] = {"instructions", "Instructions", MPERF__UNIT__UNIT_COUNT},
	[DEPTH] = {"depth", "Depth", 0},
	[LIMITS] = {"limits", "But", 0},
	[FROM] = {"from", "From", 0},
	[MODULE] = {"module", "Module", 0},
	[START] = {"start", "Start", 0},
	[LAST] = {"last", "Last", 0},
};

/* Of a row: values as messages need them. */
struct cells {
	Mperf__Value value[N_CODE_COLUMNS], *pointer[N_CODE_COLUMNS];
	char source[1024], limits[256];
};

static void put_text(struct cells *c, enum column i, const char *t)
{
	if (!t || !*t)
		return;
	c->value[i].is_case = MPERF__VALUE__IS_TEXT;
	c->value[i].text = (char *)t;
}

static void put_real(struct cells *c, enum column i, double n)
{
	if (!isfinite(n))
		return;
	c->value[i].is_case = MPERF__VALUE__IS_REAL;
	c->value[i].real = n;
}

static void put_integer(struct cells *c, enum column i, uint64_t n)
{
	c->value[i].is_case = MPERF__VALUE__IS_INTEGER;
	c->value[i].integer = n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static enum code_ops ops_of(const struct options *o)
{
	static const char *const names[N_CODE_OPS] = {"fp", "int", "sp", "dp"};
	for (int i = 0; o->ops && i < N_CODE_OPS; i++)
		if (strcmp(o->ops, names[i]) == 0)
			return (enum code_ops)i;
	return CODE_OPS_FP;
}

static void put_limits(struct cells *c, const struct code_loop *l)
{
	static const struct {
		uint32_t flag;
		const char *says;
	} flags[] = {
		{CODE_MASKED, "masked lanes count: at most"},
		{CODE_SCALABLE, "vectors of 128 bits"},
		{CODE_INCOMPLETE, "instructions not known"},
		{CODE_CALLS, "without what it calls"},
		{CODE_INDIRECT, "computed jumps"},
	};
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (l->flags & flags[i].flag) {
			size_t n = strlen(c->limits);
			snprintf(c->limits + n, sizeof(c->limits) - n, "%s%s", n ? "; " : "",
				flags[i].says);
		}
	put_text(c, LIMITS, c->limits);
}

/* Rates need instructions, of all samples of the loop. Their number is as uncertain as the share of
 * samples that the loop has. */
static void put_rates(struct cells *c, const struct code_loop *l, enum code_ops ops)
{
	if (l->instructions <= 0 || l->ns <= 0)
		return;
	const struct code_estimate *e = &l->operations[ops];
	double per_ns = l->instructions / l->ns, off = 1.96 / sqrt((double)l->samples);
	put_real(c, GOPS, e->value * per_ns);
	put_real(c, GOPS_LOW, e->low * per_ns * (off < 1 ? 1 - off : 0));
	put_real(c, GOPS_HIGH, e->high * per_ns * (1 + off));
	put_real(c, GBYTES, (l->bytes_loaded.value + l->bytes_stored.value) * per_ns);
}

static void fill(const struct view *v, const struct found_loop *found, struct cells *c)
{
	const struct code_loop *l = &found->loop;
	const struct place *p = found->hottest;
	enum code_ops ops = ops_of(v->o);
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < N_CODE_COLUMNS; i++) {
		mperf__value__init(&c->value[i]);
		c->pointer[i] = &c->value[i];
	}
	if (*p->source)
		snprintf(c->source, sizeof(c->source), "%.900s:%.0f", p->source, p->line);
	put_text(c, FUNCTION, p->function);
	put_text(c, SOURCE, c->source);
	put_text(c, MODULE, p->module);
	put_text(c, FROM, "machine code");
	put_real(c, SHARE, v->ns > 0 ? l->ns / v->ns : NAN);
	put_rates(c, l, ops);
	put_real(c, OPS_PER_BYTE, l->intensity[ops].value);
	put_real(c, OPS_PER_BYTE_LOW, l->intensity[ops].low);
	put_real(c, OPS_PER_BYTE_HIGH, l->intensity[ops].high);
	put_real(c, OPS_PER_INSTRUCTION, l->operations[ops].value);
	put_real(c, BYTES_PER_INSTRUCTION, l->bytes_loaded.value + l->bytes_stored.value);
	put_integer(c, SAMPLES, l->samples);
	put_real(c, TIME, l->ns);
	if (l->instructions >= 0)
		put_real(c, INSTRUCTIONS, l->instructions);
	put_integer(c, DEPTH, l->depth);
	put_integer(c, START, l->start);
	put_integer(c, LAST, l->last);
	put_limits(c, l);
}

/* With --ops int, what are FLOPs elsewhere are operations. */
static const char *title_of(enum column c, enum code_ops ops)
{
	if (ops == CODE_OPS_INT && c == GOPS)
		return "GOP/s";
	if (ops == CODE_OPS_INT && c == OPS_PER_BYTE)
		return "OP/B";
	if (ops == CODE_OPS_INT && c == OPS_PER_INSTRUCTION)
		return "OP/instr.";
	return columns[c].title;
}

static int add_columns(struct reply *r, enum code_ops ops)
{
	Mperf__Column column[N_CODE_COLUMNS], *pointer[N_CODE_COLUMNS];
	Mperf__Columns all = MPERF__COLUMNS__INIT;
	Mperf__Answer answer = MPERF__ANSWER__INIT;
	for (size_t i = 0; i < N_CODE_COLUMNS; i++) {
		mperf__column__init(&column[i]);
		column[i].name = (char *)columns[i].name;
		column[i].title = (char *)title_of((enum column)i, ops);
		column[i].unit = columns[i].unit;
		pointer[i] = &column[i];
	}
	all.column = pointer;
	all.n_column = N_CODE_COLUMNS;
	answer.body_case = MPERF__ANSWER__BODY_COLUMNS;
	answer.columns = &all;
	return reply_add(r, &answer);
}

static int add_row(struct reply *r, struct cells *c)
{
	Mperf__Row row = MPERF__ROW__INIT, *rows[] = {&row};
	Mperf__Rows all = MPERF__ROWS__INIT;
	Mperf__Answer answer = MPERF__ANSWER__INIT;
	row.value = c->pointer;
	row.n_value = N_CODE_COLUMNS;
	all.row = rows;
	all.n_row = 1;
	answer.body_case = MPERF__ANSWER__BODY_ROWS;
	answer.rows = &all;
	return reply_add(r, &answer);
}

static int compare_loops(const void *a, const void *b)
{
	const struct found_loop *x = a, *y = b;
	if (x->loop.ns != y->loop.ns)
		return x->loop.ns < y->loop.ns ? 1 : -1;
	return (x->loop.start > y->loop.start) - (x->loop.start < y->loop.start);
}

/* The provenance of the samples, with our notes behind its own. */
static int add_provenance(struct view *v, struct reply *r)
{
	Mperf__Provenance *p = v->places.provenance;
	Mperf__Answer answer = MPERF__ANSWER__INIT;
	if (!p)
		return 0;
	Mperf__Provenance with = *p;
	_cleanup_(freep) char **list = calloc(p->n_note + v->n_notes + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_note + v->n_notes; i++)
		list[i] = i < v->n_notes ? v->note[i] : p->note[i - v->n_notes];
	with.note = list;
	with.n_note = p->n_note + v->n_notes;
	answer.body_case = MPERF__ANSWER__BODY_PROVENANCE;
	answer.provenance = &with;
	return reply_add(r, &answer);
}

static int make_reply(struct view *v, struct reply *r)
{
	_cleanup_(freep) struct cells *cells = malloc(sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	qsort(v->loop, v->n_loops, sizeof(*v->loop), compare_loops);
	int outcome = add_columns(r, ops_of(v->o));
	uint32_t n = v->o->limit && v->o->limit < v->n_loops ? v->o->limit : v->n_loops;
	for (uint32_t i = 0; i < n && outcome == 0; i++) {
		fill(v, &v->loop[i], cells);
		outcome = add_row(r, cells);
	}
	return outcome == 0 ? add_provenance(v, r) : outcome;
}

/* --- what is said about them ------------------------------------------------------------------ */

static void note_all(struct view *v)
{
	if (v->n_loops > 0 && !v->counted)
		note(v, "no rates: instructions were not counted beside these samples; shares and "
			"operations per byte alone are known");
	note(v, "from the machine code: what a loop loads and stores, spills included, weighed by "
		"samples; where its blocks run unequally often, an instruction is taken to take "
		"equally long everywhere in the loop, within 40 %% (one standard deviation)");
	if (v->ns > 0)
		note(v, "%.1f %% of time is in code that was read", 100 * v->read_ns / v->ns);
}

static int show(const struct view *v, const struct reply *r, FILE *f)
{
	static const char *const shown[] = {"function", "source", "share_self", "gops_self",
		"gops_low", "gops_high", "gbytes_self", "ops_per_byte_self", "ops_per_byte_low",
		"ops_per_byte_high", "samples", "limits", NULL};
	struct table_options look = {.raw = v->o->raw};
	if (v->o->json)
		return reply_write_json(r, f);
	if (v->o->csv)
		return csv_write(r, f);
	table_look(stdout, v->o->no_color, &look);
	look.show = v->o->raw ? NULL : shown;
	look.cut_middle = true;
	int outcome = table_print(r, &look, f);
	for (size_t i = 0; outcome == 0 && !v->o->raw && i < v->n_notes; i++) {
		fputs(i == 0 ? "\n" : "", f);
		escape_terminal(f, v->note[i]);
		fputc('\n', f);
	}
	return outcome;
}

static int print_view(struct view *v)
{
	struct print p;
	struct reply reply = {0};
	int r = sort_places(v);
	if (r == 0)
		r = read_code(v);
	if (r == CODE_NO_PROGRAM) {
		say_failure("cannot find mperf-code, which reads machine code for mperfctl",
			"Install it beside mperfctl; it is built where LLVM's C library is");
		return EXIT_FAILED;
	}
	note_all(v);
	if (r == 0)
		r = make_reply(v, &reply);
	if (r == 0)
		r = print_open(&p, STDOUT_FILENO);
	if (r == 0)
		r = print_close(&p, show(v, &reply, p.file));
	if (r != 0)
		print_say_failed(NULL, r < 0 ? r : -E2BIG, "send stdout elsewhere");
	else if (reply.n_rows == 0)
		say_note("no samples match; record longer, raise -F, or relax the filters");
	reply_clear(&reply);
	return r != 0 ? EXIT_FAILED : 0;
}

int roofline_code(const struct options *o)
{
	struct source s;
	struct view *v = calloc(1, sizeof(*v));
	int exit_status = EXIT_FAILED;
	if (!v) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	v->o = o;
	if (source_open(&s, o, &exit_status) == 0)
		exit_status = ask(&s, o, &v->places);
	source_clear(&s);
	if (exit_status == 0)
		exit_status = print_view(v);
	view_clear(v);
	free(v);
	return exit_status;
}
