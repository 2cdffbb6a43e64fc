/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What each format writes of a small profile, and of names that try to break it. */

#include <inttypes.h>
#include <jansson.h>
#include <zlib.h>

#include "client/export/format.h"
#include "client/export/pprof.pb-c.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

/* A line break, a quote, a comma, what separates folded stacks, a backslash, markup, a terminal's
 * escape, bytes that are no UTF-8, and the end of a record as `perf script` writes it. */
#define HOSTILE "a\n\"b\",;\\<c>\x1b[0m\xff (x) 12/34 [000] 1.5: 7 e:"
#define HARMLESS "a\\x0a\"b\",;\\<c>\\x1b[0m\\xff (x) 12/34 [000] 1.5: 7 e:"

static struct profile p;
static struct export_output o;
static Mperf__Provenance provenance;
static char *text;
static size_t n_text, n_rows = 3;

static void end(void)
{
	profile_clear(&p);
	free(text);
	text = NULL;
	n_rows = 3;
}

EACH_TEST(.end = end);

/* One thread of one process; stack 1: frame 1 (inlined + symbol), stack 2: frame 2 below it. */
static void make_entries(Mperf__Profile *part, char *name)
{
	static char *texts[8];
	static Mperf__ProfileModule module = MPERF__PROFILE_MODULE__INIT, *modules[] = {&module};
	static Mperf__ProfileFrame outer = MPERF__PROFILE_FRAME__INIT,
				   leaf = MPERF__PROFILE_FRAME__INIT, *frames[] = {&outer, &leaf};
	static Mperf__ProfileTask task = MPERF__PROFILE_TASK__INIT, *tasks[] = {&task};
	static Mperf__ProfileWindow window = MPERF__PROFILE_WINDOW__INIT, *windows[] = {&window};
	static uint32_t outer_function[] = {5, 6}, outer_source[] = {7, 7}, outer_line[] = {9, 10};
	static uint32_t leaf_function[] = {1}, leaf_source[] = {0}, leaf_line[] = {0};
	static uint32_t callers[] = {0, 1}, stack_frames[] = {1, 2};

	texts[0] = name, texts[1] = (char *)"comm", texts[2] = (char *)"/bin/prog";
	texts[3] = (char *)"0123abcd", texts[4] = (char *)"inlined", texts[5] = (char *)"main";
	texts[6] = (char *)"/src/main.c", texts[7] = (char *)"cpu-clock";
	module.path = 3, module.build_id = 4, module.kind = PROFILE_ELF;
	outer.module = leaf.module = 1;
	outer.offset = 0x1234, leaf.offset = 0x2000;
	outer.n_function = outer.n_source = outer.n_line = 2;
	outer.function = outer_function, outer.source = outer_source, outer.line = outer_line;
	leaf.n_function = leaf.n_source = leaf.n_line = 1;
	leaf.function = leaf_function, leaf.source = leaf_source, leaf.line = leaf_line;
	task.pid = 100, task.tid = 101, task.comm = 1, task.process = 2;
	window.realtime_ns = 5000000000, window.start_ns = 2000000000, window.end_ns = 3000000000;
	part->n_text = 8, part->text = texts;
	part->n_module = 1, part->module = modules;
	part->n_frame = 2, part->frame = frames;
	part->n_task = 1, part->task = tasks;
	part->n_window = 1, part->window = windows;
	part->n_stack_caller = part->n_stack_frame = 2;
	part->stack_caller = callers, part->stack_frame = stack_frames;
}

/* The leaf with 3 samples of 10 ns in all, main with one of 20, one without a stack of 5; a fourth row
 * has 50 cycles of the leaf, which a switch delivered. */
static void make_samples(Mperf__Profile *part)
{
	static uint32_t window[] = {1, 1, 1, 1}, task[] = {1, 1, 1, 1}, stack[] = {2, 1, 0, 2};
	static uint32_t hart[] = {1, 2, 0, 1}, event[] = {8, 8, 8, 8};
	static uint64_t count[] = {3, 1, 1, 0}, ns[] = {10, 20, 5, 0}, cycles[] = {101, 0, 0, 51};
	part->n_sample_window = part->n_sample_task = part->n_sample_stack = n_rows;
	part->n_sample_hart = part->n_sample_event = part->n_sample_count = n_rows;
	part->n_sample_ns = part->n_sample_value = n_rows;
	part->n_sample_cycles = part->n_sample_instructions = n_rows;
	part->sample_window = window, part->sample_task = task, part->sample_stack = stack;
	part->sample_hart = hart, part->sample_event = event, part->sample_count = count;
	part->sample_ns = part->sample_value = ns;
	part->sample_cycles = part->sample_instructions = cycles;
}

static int take(void *userdata, const struct profile_sample *s)
{
	const struct export_format *f = userdata;
	return f->sample(&o, s);
}

static void write_as(const struct export_format *f, const char *name, Mperf__Unit unit)
{
	Mperf__Profile part = MPERF__PROFILE__INIT;
	provenance = (Mperf__Provenance)MPERF__PROVENANCE__INIT;
	provenance.hz = 99;
	provenance.seconds = 1;
	ck_assert_int_eq(profile_init(&p), 0);
	o = (struct export_output){.profile = &p,
		.title = "title",
		.event = "page-faults",
		.provenance_line = "line",
		.provenance = &provenance};
	o.file = open_memstream(&text, &n_text);
	make_entries(&part, (char *)name);
	make_samples(&part);
	part.unit = unit;
	ck_assert_int_eq(f->begin ? f->begin(&o) : 0, 0);
	ck_assert_int_eq(profile_add(&p, &part, take, (void *)f), 0);
	ck_assert_int_eq(f->end ? f->end(&o) : 0, 0);
	if (f->clear)
		f->clear(&o);
	fclose(o.file);
}

static size_t count_of(const char *needle)
{
	size_t n = 0;
	for (const char *at = text; (at = strstr(at, needle)); at += strlen(needle))
		n++;
	return n;
}

static void holds(const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "no '%s' in:\n%s", part, text);
}

/* --- csv -------------------------------------------------------------------------------------- */

TEST(csv_has_a_line_for_each_row)
{
	write_as(&export_csv, "work", MPERF__UNIT__UNIT_NS);
	ck_assert_uint_eq(count_of("\r\n"), 4);
	ck_assert_uint_eq(count_of("\n"), 4);
	holds("5000000000,1000000000,100,101,comm,work,,0,cpu-clock,3,10,10,100,100,work,"
	      "/bin/prog,0123abcd,0x2000,,,\"main;inlined;work\"\r\n");
	holds(",1,cpu-clock,1,20,20,,,inlined,/bin/prog,0123abcd,0x1234,/src/main.c,9,"
	      "\"main;inlined\"\r\n");
	holds(",,cpu-clock,1,5,5,,,[unknown],,,,,,\"\"\r\n");
}

TEST(csv_quotes_what_would_end_a_field)
{
	write_as(&export_csv, HOSTILE, MPERF__UNIT__UNIT_NS);
	ck_assert_uint_eq(count_of("\n"), 4);
	holds(",\"a\\x0a\"\"b\"\",;\\<c>\\x1b[0m\\xff (x)");
	holds("main;inlined;a\\x0a\"\"b\"\",:\\<c>"); /* no function ends in the middle of a name */
}

TEST(csv_has_no_formulas)
{
	write_as(&export_csv, "=1+2", MPERF__UNIT__UNIT_NS);
	holds(",\"'=1+2\",");
	ck_assert_uint_eq(count_of(",=1"), 0);
	ck_assert_uint_eq(count_of("\"=1"), 0);
}

/* --- perf-script ------------------------------------------------------------------------------ */

TEST(perf_script_has_a_record_for_each_sample)
{
	write_as(&export_perf_script, "work", MPERF__UNIT__UNIT_NS);
	ck_assert_uint_eq(count_of("cpu-clock:\n"), 5);
	ck_assert_uint_eq(count_of("\n\n"), 5);
	holds("work   100/101   [000]     2.000000:          4 cpu-clock:\n"
	      "\t            2000 work (/bin/prog)\n"
	      "\t            1234 inlined (inlined)\n"
	      "\t            1234 main (/bin/prog)\n\n");
	holds(" 3 cpu-clock:\n"); /* 10 ns of three samples: 4, 3, 3 */
	holds("\t               0 [unknown] ([unknown])\n\n");
}

TEST(perf_script_refuses_more_records_than_it_writes_before_it_writes_one)
{
	static const uint64_t many[] = {EXPORT_RECORDS_MAX + 1, INT64_MAX, UINT64_MAX};
	struct profile_sample row = {.count = 1};
	write_as(&export_perf_script, "work", MPERF__UNIT__UNIT_NS);
	row.task = 1, row.window = 1;
	for (size_t i = 0; i < sizeof(many) / sizeof(*many); i++) {
		_cleanup_(freep) char *written = NULL;
		size_t n = 0;
		o.file = open_memstream(&written, &n);
		o.n_records = 0;
		row.count = many[i];
		ck_assert_int_eq(export_perf_script.sample(&o, &row), EXPORT_TOO_LARGE);
		o.n_records = EXPORT_RECORDS_MAX - 1;
		row.count = 2; /* rows add up */
		ck_assert_int_eq(export_perf_script.sample(&o, &row), EXPORT_TOO_LARGE);
		ck_assert_int_eq(fclose(o.file), 0);
		ck_assert_uint_eq(n, 0);
	}
}

TEST(perf_script_keeps_names_from_passing_for_fields)
{
	write_as(&export_perf_script, HOSTILE, MPERF__UNIT__UNIT_NS);
	ck_assert_uint_eq(count_of("\n\n"), 5);
	holds("(x)_12/34_[000]_1.5:_7 e:   100/101 "); /* the only number behind a blank */
}

/* --- speedscope and firefox ------------------------------------------------------------------- */

static json_t *parsed(void)
{
	json_error_t error;
	json_t *root = json_loadb(text, n_text, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(root != NULL, "%s in line %d:\n%s", error.text, error.line, text);
	return root;
}

static json_t *at(json_t *j, const char *key)
{
	json_t *found = json_object_get(j, key);
	ck_assert_msg(found != NULL, "no %s", key);
	return found;
}

TEST(speedscope_has_each_thread_with_weights_in_seconds)
{
	write_as(&export_speedscope, HOSTILE, MPERF__UNIT__UNIT_NS);
	json_t *root = parsed(), *frames = at(at(root, "shared"), "frames");
	json_t *profile = json_array_get(at(root, "profiles"), 0);
	json_t *samples = at(profile, "samples"), *weights = at(profile, "weights");
	ck_assert_uint_eq(json_array_size(at(root, "profiles")), 1);
	ck_assert_str_eq(json_string_value(at(profile, "unit")), "seconds");
	ck_assert_uint_eq(json_array_size(samples), 3);
	ck_assert_uint_eq(json_array_size(weights), 3);
	ck_assert_double_eq_tol(json_real_value(at(profile, "endValue")), 35e-9, 1e-15);
	json_t *stack = json_array_get(samples, 0);
	ck_assert_uint_eq(json_array_size(stack), 3);
	json_t *leaf = json_array_get(frames, (size_t)json_integer_value(json_array_get(stack, 2)));
	ck_assert_str_eq(json_string_value(at(leaf, "name")), HARMLESS);
	ck_assert_str_eq(json_string_value(at(leaf, "file")), "/bin/prog");
	ck_assert_uint_eq(json_array_size(json_array_get(samples, 2)), 1);
	json_decref(root);
}

TEST(speedscope_says_of_counts_that_they_are_no_time)
{
	write_as(&export_speedscope, "work", MPERF__UNIT__UNIT_COUNT);
	json_t *root = parsed(), *profile = json_array_get(at(root, "profiles"), 0);
	ck_assert_str_eq(json_string_value(at(profile, "unit")), "none");
	ck_assert_int_eq(json_integer_value(json_array_get(at(profile, "weights"), 1)), 20);
	json_decref(root);
}

static int64_t cell(json_t *table, const char *column, size_t i)
{
	json_t *list = at(table, column);
	ck_assert_uint_eq(json_array_size(list), (size_t)json_integer_value(at(table, "length")));
	return json_integer_value(json_array_get(list, i));
}

TEST(firefox_tables_have_columns_of_their_length_and_rows_that_exist)
{
	write_as(&export_firefox, HOSTILE, MPERF__UNIT__UNIT_NS);
	json_t *root = parsed(), *shared = at(root, "shared");
	json_t *thread = json_array_get(at(root, "threads"), 0);
	json_t *samples = at(thread, "samples"), *stacks = at(shared, "stackTable");
	json_t *frames = at(shared, "frameTable"), *functions = at(shared, "funcTable");
	const size_t leaf = (size_t)cell(samples, "stack", 0);
	const size_t frame = (size_t)cell(stacks, "frame", leaf);
	const size_t function = (size_t)cell(frames, "func", frame);
	const char *name = json_string_value(json_array_get(
		at(shared, "stringArray"), (size_t)cell(functions, "name", function)));
	ck_assert_str_eq(name, HARMLESS);
	ck_assert_int_eq(cell(frames, "address", frame), 0x2000);
	/* below it the inlined function, below that the symbol, at one address */
	const size_t caller = (size_t)cell(stacks, "prefix", leaf);
	ck_assert_int_eq(cell(frames, "inlineDepth", (size_t)cell(stacks, "frame", caller)), 1);
	const size_t root_stack = (size_t)cell(stacks, "prefix", caller);
	ck_assert_int_eq(cell(frames, "line", (size_t)cell(stacks, "frame", root_stack)), 10);
	ck_assert(json_is_null(json_array_get(at(stacks, "prefix"), root_stack)));
	/* without a stack: at the unknown place */
	ck_assert_int_eq(cell(samples, "stack", 2), 0);
	ck_assert_str_eq(json_string_value(at(thread, "pid")), "100");
	ck_assert_int_eq(json_integer_value(at(thread, "tid")), 101);
	ck_assert_str_eq(json_string_value(at(samples, "weightType")), "tracing-ms");
	json_decref(root);
}

TEST(firefox_spreads_samples_of_a_window_over_it)
{
	write_as(&export_firefox, "work", MPERF__UNIT__UNIT_NS);
	json_t *root = parsed(), *thread = json_array_get(at(root, "threads"), 0);
	json_t *time = at(at(thread, "samples"), "time");
	const double wanted[] = {5 / 35.0, 20 / 35.0, 32.5 / 35.0};
	for (size_t i = 0; i < 3; i++)
		ck_assert_double_eq_tol(
			json_real_value(json_array_get(time, i)), 1000 * wanted[i], 1e-3);
	json_decref(root);
}

/* --- pprof ------------------------------------------------------------------------------------ */

static Pprof__Profile *unpacked(void)
{
	static uint8_t bytes[1 << 16];
	z_stream z = {.next_in = (uint8_t *)text, .avail_in = (uInt)n_text};
	z.next_out = bytes, z.avail_out = sizeof(bytes);
	ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
	ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	Pprof__Profile *m = pprof__profile__unpack(NULL, z.total_out, bytes);
	inflateEnd(&z);
	ck_assert_ptr_nonnull(m);
	return m;
}

static const Pprof__Location *location_of(const Pprof__Profile *m, uint64_t id)
{
	for (size_t i = 0; i < m->n_location; i++)
		if (m->location[i]->id == id)
			return m->location[i];
	ck_abort_msg("no location %" PRIu64, id);
}

static const char *function_name(const Pprof__Profile *m, uint64_t id)
{
	for (size_t i = 0; i < m->n_function; i++)
		if (m->function[i]->id == id)
			return m->string_table[m->function[i]->name];
	ck_abort_msg("no function %" PRIu64, id);
}

static const Pprof__Label *label_of(
	const Pprof__Profile *m, const Pprof__Sample *s, const char *key)
{
	for (size_t i = 0; i < s->n_label; i++)
		if (strcmp(m->string_table[s->label[i]->key], key) == 0)
			return s->label[i];
	ck_abort_msg("no label %s", key);
}

TEST(pprof_has_places_labels_and_values_by_their_types)
{
	write_as(&export_pprof, HOSTILE, MPERF__UNIT__UNIT_NS);
	Pprof__Profile *m = unpacked();
	ck_assert_str_eq(m->string_table[0], "");
	ck_assert_uint_eq(m->n_sample_type, 4);
	ck_assert_str_eq(m->string_table[m->sample_type[1]->type], "cpu");
	ck_assert_str_eq(m->string_table[m->sample_type[1]->unit], "nanoseconds");
	ck_assert_str_eq(m->string_table[m->sample_type[2]->type], "cycles");
	ck_assert_uint_eq(m->n_sample, 3);
	const Pprof__Sample *s = m->sample[0];
	ck_assert_uint_eq(s->n_value, 4);
	ck_assert_int_eq(s->value[0], 3);
	ck_assert_int_eq(s->value[1], 10);
	ck_assert_int_eq(s->value[2], 100);
	ck_assert_uint_eq(s->n_location_id, 2);
	const Pprof__Location *leaf = location_of(m, s->location_id[0]);
	const Pprof__Location *outer = location_of(m, s->location_id[1]);
	ck_assert_str_eq(function_name(m, leaf->line[0]->function_id), HARMLESS);
	ck_assert_uint_eq(outer->n_line, 2);
	ck_assert_str_eq(function_name(m, outer->line[0]->function_id), "inlined");
	ck_assert_str_eq(function_name(m, outer->line[1]->function_id), "main");
	ck_assert_int_eq(outer->line[1]->line, 10);
	ck_assert_uint_eq(outer->address, 0x1234);
	ck_assert_uint_eq(m->n_mapping, 1);
	ck_assert_str_eq(m->string_table[m->mapping[0]->build_id], "0123abcd");
	ck_assert_uint_gt(m->mapping[0]->memory_limit, 0x2000);
	ck_assert_int_eq(label_of(m, s, "pid")->num, 100);
	ck_assert_int_eq(label_of(m, s, "thread id")->num, 101);
	ck_assert_str_eq(m->string_table[label_of(m, s, "thread")->str], HARMLESS);
	ck_assert_str_eq(m->string_table[label_of(m, s, "hart")->str], "0");
	ck_assert_uint_eq(m->sample[2]->n_location_id, 1);
	ck_assert_str_eq(
		function_name(
			m, location_of(m, m->sample[2]->location_id[0])->line[0]->function_id),
		"[unknown]");
	ck_assert_int_eq(m->period, 1000000000 / 99);
	ck_assert_int_eq(m->time_nanos, 5000000000);
	pprof__profile__free_unpacked(m, NULL);
}

TEST(counts_without_a_sample_are_in_formats_that_have_a_place_for_them)
{
	n_rows = 4;
	write_as(&export_csv, "work", MPERF__UNIT__UNIT_NS);
	ck_assert_uint_eq(count_of("\r\n"), 5);
	holds(",0,cpu-clock,0,0,0,50,50,work,");
	end();
	n_rows = 4;
	write_as(&export_pprof, "work", MPERF__UNIT__UNIT_NS);
	Pprof__Profile *m = unpacked();
	ck_assert_uint_eq(m->n_sample, 3);
	ck_assert_int_eq(m->sample[0]->value[0], 3);
	ck_assert_int_eq(m->sample[0]->value[2], 150);
	pprof__profile__free_unpacked(m, NULL);
	end();
	n_rows = 4;
	write_as(&export_perf_script, "work", MPERF__UNIT__UNIT_NS);
	ck_assert_uint_eq(count_of("cpu-clock:\n"), 5);
	end();
	n_rows = 4;
	write_as(&export_speedscope, "work", MPERF__UNIT__UNIT_NS);
	json_t *root = parsed();
	ck_assert_uint_eq(
		json_array_size(at(json_array_get(at(root, "profiles"), 0), "samples")), 3);
	json_decref(root);
	end();
	n_rows = 4;
	write_as(&export_firefox, "work", MPERF__UNIT__UNIT_NS);
	root = parsed();
	ck_assert_int_eq(json_integer_value(at(
				 at(json_array_get(at(root, "threads"), 0), "samples"), "length")),
		3);
	json_decref(root);
}

TEST(pprof_shows_a_requested_event_first)
{
	write_as(&export_pprof, "work", MPERF__UNIT__UNIT_COUNT);
	Pprof__Profile *m = unpacked();
	ck_assert_str_eq(m->string_table[m->default_sample_type], "page-faults");
	ck_assert_str_eq(m->string_table[m->sample_type[2]->type], "page-faults");
	pprof__profile__free_unpacked(m, NULL);
}

TEST(a_profile_without_samples_is_one)
{
	static const struct export_format *const formats[] = {&export_csv, &export_firefox,
		&export_perf_script, &export_pprof, &export_speedscope};
	for (size_t i = 0; i < 5; i++) {
		const struct export_format *f = formats[i];
		provenance = (Mperf__Provenance)MPERF__PROVENANCE__INIT;
		ck_assert_int_eq(profile_init(&p), 0);
		o = (struct export_output){.profile = &p,
			.title = "",
			.event = "",
			.provenance_line = "",
			.provenance = &provenance};
		o.file = open_memstream(&text, &n_text);
		ck_assert_int_eq(f->begin ? f->begin(&o) : 0, 0);
		ck_assert_int_eq(f->end ? f->end(&o) : 0, 0);
		if (f->clear)
			f->clear(&o);
		fclose(o.file);
		if (f == &export_firefox || f == &export_speedscope)
			json_decref(parsed());
		end();
	}
}
