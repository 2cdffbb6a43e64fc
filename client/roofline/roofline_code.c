/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The daemon says how often which address of which file was sampled; mperf-code says what the code
 * there does; together they are loops with their share of time and their operations per byte. Only
 * where instructions were counted beside the samples are there rates, too: operations per
 * instruction times instructions per second.
 */
#include "client/roofline/roofline_code.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/measure/capture.h"
#include "client/measure/program.h"
#include "client/roofline/code.h"
#include "client/roofline/roofline_code_rows.h"
#include "client/roofline/roofline_plot.h"
#include "client/roofline/roofline_print.h"
#include "client/roofs/machine.h"
#include "client/show/csv.h"
#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/say.h"
#include "client/show/table.h"
#include "proto/base/memory.h"

#define FILES_MAX 32 /* with the most time; each takes 20 ms to a second */

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

static int ask(struct source *s, const struct source_request *from, struct reply *reply)
{
	Mperf__Filter filter;
	source_filter(s, from, &filter);
	Mperf__HotspotsRequest hotspots = MPERF__HOTSPOTS_REQUEST__INIT;
	hotspots.path = &s->path;
	hotspots.n_path = 1;
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

/* Bits of a vector register of SVE or RVV on this machine, the fewest of its harts; 0: none, or not
 * known. */
static uint32_t vector_bits_here(void)
{
	uint32_t bytes = 0;
#if defined(__aarch64__)
	int length = prctl(PR_SVE_GET_VL);
	bytes = length > 0 ? (uint32_t)length & PR_SVE_VL_LEN_MASK : 0;
#elif defined(__riscv)
	struct machine m;
	if (machine_look(&m) < 0)
		return 0;
	for (size_t i = 0; i < m.n_harts; i++)
		if (bytes == 0 || m.hart[i].vlenb < bytes)
			bytes = m.hart[i].vlenb;
	machine_clear(&m);
#endif
	return 8 * bytes;
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
		return "it is not for x86-64, aarch64 or riscv64";
	default:
		return "it is not an ELF program or library";
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
	if (!*p->build_id && !v->o->symfs) {
		note(v,
			"%.1f %% of time is in %.300s, whose build id is not known: the file there "
			"now may be another one. If it is the same, give --symfs (--symfs / if it "
			"has not moved)",
			share, p->module);
		return 0;
	}
	_cleanup_(freep) struct code_sample *sample = calloc(f->n, sizeof(*sample));
	if (!sample)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n; i++)
		sample[i] = p[i].sample;
	const struct code_question q = {.path = p->module,
		.build_id = build_id,
		.symfs = v->o->symfs,
		.vector_bits = v->vector_bits,
		.n_build_id = hex_bytes(p->build_id, build_id),
		.sample = sample,
		.n_samples = f->n < CODE_SAMPLES_MAX ? f->n : CODE_SAMPLES_MAX};
	if (f->n > CODE_SAMPLES_MAX)
		note(v, "%u addresses of %.300s are left out", f->n - CODE_SAMPLES_MAX, p->module);
	int r = code_ask(&q, &found, &error);
	if (r == CODE_NO_FILE)
		note(v, "%.1f %% of time is in %.200s, which cannot be opened%s%.200s: %s", share,
			p->module, v->o->symfs ? " in " : "", v->o->symfs ? v->o->symfs : "",
			strerror(error));
	else if (r == CODE_FAILED)
		note(v, "%.1f %% of time is in %.300s, which mperf-code failed to read", share,
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
			"%.1f %% of time is in the kernel, in generated code or in no file, and is "
			"not analysed",
			100 * kernel_ns / v->ns);
	if (n > FILES_MAX)
		note(v, "only the %u files with the most time were read, out of %u", FILES_MAX, n);
	return r;
}

/* --- what is said about them ------------------------------------------------------------------ */

static void note_all(struct view *v)
{
	if (v->n_loops > 0 && !v->counted)
		note(v, "no rates: instructions were not counted with these samples, so only "
			"shares and operations per byte are known");
	note(v, "from the machine code: the loads and stores of a loop, spills included, weighted "
		"by samples; if its blocks run unequally often, the interval allows for "
		"instruction times that differ by a factor of four between blocks");
	if (v->ns > 0)
		note(v, "%.1f %% of time is in code that was read", 100 * v->read_ns / v->ns);
}

static int show(
	const struct showing *s, const struct view *v, const struct roofline_plot *plot, FILE *f)
{
	static const char *const shown[] = {"dot", "function", "source", "share_self", "gops_self",
		"gops_low", "gops_high", "of_roof", "gbytes_self", "ops_per_byte_self",
		"ops_per_byte_low", "ops_per_byte_high", "bound_by", "samples", "limits", NULL};
	struct table_options look = {.raw = v->o->look.raw};
	int outcome = 0;
	if (v->o->look.json)
		return reply_write_json(s->reply, f);
	if (v->o->look.csv)
		return csv_write(s->reply, f);
	table_look(stdout, v->o->look.no_color, &look);
	look.show = v->o->look.raw ? NULL : shown;
	look.cut_middle = true;
	if (v->o->plot)
		outcome = roofline_draw(s, plot, &look, v->n_notes, f);
	if (outcome == 0)
		outcome = table_print(s->reply, &look, f);
	for (size_t i = 0; outcome == 0 && !v->o->look.raw && i < v->n_notes; i++) {
		fputs(i == 0 ? "\n" : "", f);
		escape_terminal(f, v->note[i]);
		fputc('\n', f);
	}
	return outcome;
}

/* A dot needs a rate and an intensity. Does any row have both? */
static bool has_dots(const struct roofline_plot *plot)
{
	for (size_t i = 0; i < plot->plot.n_dots; i++)
		if (plot_dot_has_place(&plot->plot.dot[i]))
			return true;
	return false;
}

static int print_reply(const struct showing *s, const struct view *v)
{
	_cleanup_(roofline_plot_clear) struct roofline_plot plot = {.first = 0};
	const struct reply *const runs[] = {s->reply};
	struct print p;
	if (roofline_plot_make(v->o, runs, 1, NULL, &plot) != 0 ||
		roofline_plot_extend(&plot, s->reply) < 0) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	if ((v->o->plot || v->o->output) && !has_dots(&plot)) {
		say_failure("cannot draw loops: no instructions were counted with their samples, "
			    "so their rates are not known",
			"Leave out --plot and -o for a table of shares and operations per byte, or "
			"sample on a machine that counts instructions (see mperfctl doctor)");
		return EXIT_FAILED;
	}
	int exit_status = v->o->output ? roofline_save(s, &plot) : 0;
	if (exit_status != 0 || (v->o->output && !v->o->plot))
		return exit_status;
	int r = print_open(&p, STDOUT_FILENO, options_ask_data(s->o) ? PRINT_DATA : PRINT_TEXT);
	if (r == 0)
		r = print_close(&p, show(s, v, &plot, p.file));
	if (r != 0)
		print_say_failed(NULL, r < 0 ? r : -E2BIG, "send stdout elsewhere");
	return r != 0 ? EXIT_FAILED : 0;
}

static void say_no_program(void)
{
	say_failure("cannot find mperf-code, which reads machine code for mperfctl",
		"Install the package mperf-code (apt install ./mperf-code_*.deb), or put the "
		"program beside mperfctl; make builds it where LLVM's C library is");
}

static int print_view(struct view *v)
{
	struct reply reply = {0};
	const struct showing showing = {.o = v->o, .reply = &reply, .kept = v->kept};
	int r = sort_places(v);
	if (r == 0)
		r = read_code(v);
	if (r == CODE_NO_PROGRAM) {
		say_no_program();
		return EXIT_FAILED;
	}
	note_all(v);
	if (r == 0)
		r = roofline_code_rows(v, &reply);
	if (r != 0)
		say_failure("cannot show the loops: out of memory, or too many rows",
			"Give fewer with -n, or free some memory");
	int exit_status = r != 0 ? EXIT_FAILED : 0;
	if (exit_status == 0)
		exit_status = print_reply(&showing, v);
	if (exit_status == 0 && reply.n_rows == 0)
		say_note(v->ns > 0 ? "no machine code was read; the notes of the table say why"
				   : "no samples match; record longer, raise -F, or relax the "
				     "filters");
	reply_clear(&reply);
	return exit_status;
}

int roofline_code(const struct options *o)
{
	struct source s;
	char program[PROGRAM_PATH_BYTES];
	int exit_status = EXIT_FAILED;
	if (!program_find("mperf-code", program)) { /* before anything is measured for it */
		say_no_program();
		return EXIT_FAILED;
	}
	struct view *v = calloc(1, sizeof(*v));
	if (!v) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	v->o = o;
	v->vector_bits = o->vector_bits || o->input ? o->vector_bits : vector_bits_here();
	const struct source_request from = source_request_of(o);
	if (source_start(&s, &from, &exit_status) == 0)
		exit_status = ask(&s, &from, &v->places);
	v->kept = s.kept;
	source_clear(&s);
	if (exit_status == 0)
		exit_status = print_view(v);
	view_clear(v);
	free(v);
	return exit_status;
}
