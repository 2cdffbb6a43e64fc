/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Exported samples: every row, behind what it refers to, and nothing that the filter leaves out. */

#include "client/export/profile.h"
#include "daemon/query/samples/export.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s, other;
static struct profile p;
static char lines[1 << 16];
static size_t n_parts, n_told, fail_after;
static struct query_error error;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	if (*other.folder)
		stored_end(&other);
	profile_clear(&p);
	memset(&s, 0, sizeof(s));
	memset(&other, 0, sizeof(other));
	fail_after = 0;
}

EACH_TEST(.end = end, .seconds = 60);

static void line(const char *format, ...)
{
	size_t at = strlen(lines);
	va_list args;
	va_start(args, format);
	vsnprintf(lines + at, sizeof(lines) - at, format, args);
	va_end(args);
}

/* "prog/worker 100:101 hart 1 hot@a.c:5<main (/bin/prog) 2 20000000 cycles 7" and a newline. */
static int take_sample(void *userdata, const struct profile_sample *sample)
{
	(void)userdata;
	const struct profile_task *t = &p.task[sample->task];
	line("%s/%s %d:%d hart %d ", p.text[t->process], p.text[t->comm], t->pid, t->tid,
		sample->hart);
	for (uint32_t i = sample->stack; i != 0; i = p.stack[i].caller) {
		uint32_t n;
		const struct profile_frame *f = &p.frame[p.stack[i].frame];
		const struct profile_place *place = profile_places(&p, f, &n);
		for (uint32_t k = 0; k < n; k++)
			line("%s%s", profile_function(&p, &place[k]), k + 1 < n ? "," : "");
		line("(%s+%llx)%s", profile_module_name(&p, f->module),
			(unsigned long long)f->offset, p.stack[i].caller ? "<" : "");
	}
	line(" %llu %llu", (unsigned long long)sample->count, (unsigned long long)sample->value);
	if (sample->has_cycles)
		line(" cycles %llu", (unsigned long long)sample->cycles);
	if (sample->has_instructions)
		line(" instructions %llu", (unsigned long long)sample->instructions);
	line("\n");
	return 0;
}

static int take_part(void *userdata, const Mperf__Profile *part)
{
	(void)userdata;
	n_parts++;
	if (fail_after != 0 && n_parts > fail_after)
		return 77;
	return profile_add(&p, part, take_sample, NULL);
}

static int take_provenance(void *userdata, const struct answer_provenance *provenance)
{
	(void)userdata;
	(void)provenance;
	n_told++;
	return 0;
}

static int ask_of(struct query_source *source, size_t n, const struct query_filter *filter)
{
	static const struct query_filter all;
	const struct export_answer answer = {take_part, take_provenance, NULL};
	profile_clear(&p);
	ck_assert_int_eq(profile_init(&p), 0);
	n_parts = n_told = 0;
	*lines = '\0';
	return query_export(source, n, filter ? filter : &all, &answer, &error);
}

static void ask(const struct query_filter *filter)
{
	int r = ask_of(&(struct query_source){.db = s.db}, 1, filter);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	ck_assert_uint_eq(n_told, 1);
}

TEST(each_row_of_samples_comes_with_all_its_names)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct task *worker = stored_task(&s, 100, 101, "worker");
	struct frame *f = stored_frame(&s, FILE_ELF, "/bin/prog", 16);
	struct frame *root = stored_frame(&s, FILE_ELF, "/bin/prog", 32);
	stored_name(f, "deep@a.h:5", "symbol@c.c:7", NULL);
	stored_name(root, "main@c.c:70", NULL);
	stored_add(&s, &(struct stored_sample){
			       .task = t, .count = 2, .weight_ns = 20, .frame = {f, root}});
	stored_add(&s, &(struct stored_sample){
			       .task = worker, .hart = 1, .weight_ns = 5, .frame = {root}});
	stored_seal(&s);
	ask(NULL);
	ck_assert_str_eq(lines, "prog/prog 100:100 hart 0 deep,symbol(prog+10)<main(prog+20) 2 20\n"
				"prog/worker 100:101 hart 1 main(prog+20) 1 5\n");
	const struct profile_place *deep = &p.place[p.frame[p.stack[2].frame].place];
	ck_assert_str_eq(p.text[deep->source], "a.h");
	ck_assert_uint_eq(deep->line, 5);
	ck_assert_str_eq(p.text[p.module[1].path], "/bin/prog");
	ck_assert_int_eq(p.module[1].kind, PROFILE_ELF);
	ck_assert_int_eq(p.unit, MPERF__UNIT__UNIT_NS);
	ck_assert_uint_eq(p.n_windows - 1, 1);
	ck_assert_int_gt(p.window[1].end_ns, p.window[1].start_ns);
}

TEST(counts_of_the_group_come_with_their_samples)
{
	stored_begin_group(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/bin/prog", "g");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .weight_ns = 10,
			       .frame = {f},
			       .read = {{.event = 1, .value = 700}, {.event = 2, .value = 30}},
			       .n_reads = 2});
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 10, .frame = {g}});
	stored_seal(&s);
	ask(NULL);
	ck_assert_msg(strstr(lines, " 1 10 cycles 700 instructions 30\n"), "%s", lines);
	ck_assert_ptr_nonnull(strstr(lines, " 1 10\n")); /* not counted is not 0 */
	ask(&(struct query_filter){.event = "cycles"});
	ck_assert_ptr_nonnull(strstr(lines, " 1 700 cycles 700 instructions 30\n"));
	ck_assert_int_eq(p.unit, MPERF__UNIT__UNIT_COUNT);
}

/* Without them cycles would be fewer than in hotspots. */
TEST(counts_that_a_switch_delivered_are_sent_without_a_sample)
{
	stored_begin_group(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	for (int switched = 0; switched < 2; switched++)
		stored_add(
			&s, &(struct stored_sample){.task = t,
				    .weight_ns = 10,
				    .switched = switched,
				    .hart = switched,
				    .frame = {f},
				    .read = {{.event = 1, .value = 700}, {.event = 2, .value = 30}},
				    .n_reads = 2});
	stored_seal(&s);
	ask(NULL);
	ck_assert_uint_eq(p.n_samples, 2);
	ck_assert_msg(strstr(lines, " 1 10 cycles 700 instructions 30\n"), "%s", lines);
	ck_assert_msg(strstr(lines, " 0 0 cycles 700 instructions 30\n"), "%s", lines);
}

TEST(nothing_that_the_filter_leaves_out_is_sent)
{
	stored_begin_clock(&s);
	struct task *mine = stored_task(&s, 100, 100, "mine");
	struct task *secret = stored_task(&s, 200, 200, "secret");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *g = stored_function(&s, "/home/secret/tool", "secret_function");
	stored_add(&s, &(struct stored_sample){.task = secret, .frame = {g, f}});
	stored_add(&s, &(struct stored_sample){.task = mine, .frame = {f}});
	stored_seal(&s);
	ask(&(struct query_filter){.pid = (int32_t[]){100}, .n_pids = 1});
	ck_assert_uint_eq(p.n_samples, 1);
	for (uint32_t i = 0; i < p.n_texts; i++)
		ck_assert_msg(!strstr(p.text[i], "secret"), "%s", p.text[i]);
	ck_assert_uint_eq(p.n_tasks - 1, 1);
	ck_assert_uint_eq(p.n_modules - 1, 1);
}

TEST(a_hidden_kernel_is_one_frame_without_an_address)
{
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "f");
	struct frame *k = stored_frame(&s, FILE_KERNEL, "[kernel]", 4096);
	struct frame *m = stored_frame(&s, FILE_MODULE, "[nf_tables]", 8192);
	stored_name(k, "do_read", NULL);
	stored_name(m, "nft_do", NULL);
	stored_add(&s, &(struct stored_sample){.task = t, .weight_ns = 7, .frame = {m, k, k, f}});
	stored_seal(&s);
	ask(&(struct query_filter){.hide_kernel = true});
	ck_assert_msg(strstr(lines, "hart 0 [kernel]([kernel]+0)<f(prog+"), "%s", lines);
	for (uint32_t i = 0; i < p.n_texts; i++)
		ck_assert_msg(!strstr(p.text[i], "nft") && !strstr(p.text[i], "do_read"), "%s",
			p.text[i]);
}

TEST(segments_share_their_entries)
{
	struct stored *both[] = {&s, &other};
	struct query_source two[2] = {{.path = NULL}, {.path = NULL}};
	for (size_t i = 0; i < 2; i++) {
		stored_begin_clock(both[i]);
		struct task *t = stored_task(both[i], 100, 100, "prog");
		if (i == 1) /* other ids for the same things */
			stored_add(both[i], &(struct stored_sample){.task = t,
						    .frame = {stored_frame(
							    both[i], FILE_ELF, "/bin/other", 5)}});
		struct frame *f = stored_frame(both[i], FILE_ELF, "/bin/prog", 16);
		stored_name(f, "f", NULL);
		stored_add(both[i], &(struct stored_sample){.task = t, .frame = {f}});
		two[i].db = stored_seal(both[i]);
	}
	ck_assert_int_eq(ask_of(two, 2, NULL), 0);
	ck_assert_uint_eq(p.n_samples, 3);
	ck_assert_uint_eq(p.n_tasks - 1, 1);
	ck_assert_uint_eq(p.n_modules - 1, 2);
	ck_assert_uint_eq(p.n_frames - 1, 2);
	ck_assert_uint_eq(p.n_stacks - 1, 2);
	ck_assert_uint_eq(p.n_windows - 1, 2);
}

TEST(many_samples_come_in_several_parts)
{
	enum { N = 3 * EXPORT_SAMPLES_PART };
	char name[512];
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	memset(name, 'x', sizeof(name));
	for (int i = 0; i < N; i++) {
		snprintf(name + 480, 32, "%d", i);
		struct frame *f = stored_function(&s, "/bin/prog", name);
		stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	}
	stored_seal(&s);
	ask(NULL);
	ck_assert_uint_eq(p.n_samples, N);
	ck_assert_uint_eq(p.n_frames - 1, N);
	ck_assert_uint_gt(n_parts, N / EXPORT_SAMPLES_PART + 1);
	fail_after = 2;
	ck_assert_int_eq(ask_of(&(struct query_source){.db = s.db}, 1, NULL), 77);
	ck_assert_uint_eq(n_told, 0);
}

TEST(an_event_that_was_not_measured_is_refused)
{
	stored_begin_clock(&s);
	stored_add(&s, &(struct stored_sample){.task = stored_task(&s, 1, 1, "a"),
			       .frame = {stored_function(&s, "/bin/prog", "f")}});
	stored_seal(&s);
	ck_assert_int_eq(ask_of(&(struct query_source){.db = s.db}, 1,
				 &(struct query_filter){.event = "no-such"}),
		QUERY_FAILED);
	ck_assert_int_eq(error.kind, MPERF__FAILURE_KIND__FAILURE_MISSING);
	ck_assert_uint_eq(n_parts, 0);
}

TEST(samples_of_a_file_that_is_damaged_further_on_make_the_export_fail)
{
	struct query_source source[] = {{.path = s.path}};
	const struct query_filter all = {0};
	const struct export_answer answer = {take_part, take_provenance, NULL};
	stored_begin_clock(&s);
	struct task *t = stored_task(&s, 100, 100, "prog");
	for (int i = 0; i < 2 * EXPORT_SAMPLES_PART + 2; i++) {
		struct frame *f = stored_function(&s, "/bin/prog", "f");
		stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
	}
	sqlite3 *db = stored_seal(&s);
	sqlite3_close(db);
	s.db = NULL;
	/* a live file may be changed: its last sample's readings are out of order */
	ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db,
				 "CREATE TABLE more AS SELECT * FROM sample;"
				 "DROP TABLE sample;"
				 "CREATE VIEW sample AS SELECT * FROM more UNION ALL "
				 "SELECT abs(-9223372036854775808), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0;"
				 "UPDATE meta SET value = 0 WHERE key = 'sealed'",
				 NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	source[0].live = true;
	ck_assert_int_eq(profile_init(&p), 0);
	n_parts = n_told = 0;
	int r = query_export(source, 1, &all, &answer, &error);
	ck_assert_msg(r == QUERY_FAILED, "%d after %zu parts", r, n_parts);
	ck_assert_uint_eq(n_told, 0);
}
