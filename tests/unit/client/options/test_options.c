/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Command lines as people type them, right and wrong; of the wrong ones also what is said.
 */

#include "client/options/options.h"
#include "client/options/options_private.h"
#include "proto/syntax/nearest.h"
#include "tests/unit/client/said.h"
#include "tests/unit/test.h"

#define RECORD MPERF__REQUEST__BODY_RECORD
#define HOTSPOTS MPERF__REQUEST__BODY_HOTSPOTS
#define BLOCKS MPERF__REQUEST__BODY_BLOCKS
#define EXPORT MPERF__REQUEST__BODY_EXPORT
#define ROOFLINE MPERF__REQUEST__BODY_ROOFLINE
#define TOPDOWN MPERF__REQUEST__BODY_TOPDOWN
#define FLAMEGRAPH MPERF__REQUEST__BODY_FLAMEGRAPH
#define STAT MPERF__REQUEST__BODY_STAT
#define LIST MPERF__REQUEST__BODY_LIST
#define DOCTOR MPERF__REQUEST__BODY_DOCTOR
#define TOP MPERF__REQUEST__BODY_TOP

/* Words are parted by single spaces; parsed strings point into this. */
static char line_bytes[8192];
static char *argv_words[512];

static int parse(Mperf__Request__BodyCase command, const char *line, struct options *o)
{
	int argc = 0;
	snprintf(line_bytes, sizeof(line_bytes), "%s", line);
	argv_words[argc++] = (char *)"mperfctl";
	for (char *word, *rest = line_bytes; *line && (word = strsep(&rest, " "));)
		argv_words[argc++] = word;
	argv_words[argc] = NULL;
	return options_parse(command, argc, argv_words, o);
}

static struct options parsed(Mperf__Request__BodyCase command, const char *line)
{
	struct options o;
	ck_assert_msg(parse(command, line, &o) == 0, "%s", line);
	return o;
}

/* The line is wrong usage, and what is said has `part` in it. */
static void refused(Mperf__Request__BodyCase command, const char *line, const char *part)
{
	struct said said;
	struct options o;
	memset(&o, 0x5a, sizeof(o));
	said_start(&said);
	int r = parse(command, line, &o);
	const char *text = said_end(&said);
	ck_assert_msg(r == OPTIONS_USAGE, "%s: %d", line, r);
	ck_assert_msg(strstr(text, part) != NULL, "%s: %s", line, text);
	ck_assert_msg(strncmp(text, "mperfctl: ", 10) == 0, "%s", text);
	ck_assert_msg(strchr(text, '\n') == text + strlen(text) - 1, "one line: %s", text);
	ck_assert_int_eq(((unsigned char *)&o)[0], 0x5a); /* untouched */
}

TEST(a_command_takes_all_that_follows)
{
	struct options o = parsed(RECORD, "-F 999 -e cycles:u -- prog -F 1 --help");
	ck_assert_uint_eq(o.sampling.hz, 999);
	ck_assert_uint_eq(o.sampling.n_events, 1);
	ck_assert_str_eq(o.sampling.event[0], "cycles:u");
	ck_assert_str_eq(o.target.command_line[0], "prog");
	ck_assert_str_eq(o.target.command_line[3], "--help");
	ck_assert_ptr_null(o.target.command_line[4]);
}

TEST(a_command_needs_no_dashes_before_it)
{
	struct options o = parsed(STAT, "-r 3 prog -r 9");
	ck_assert_uint_eq(o.repeat, 3);
	ck_assert_str_eq(o.target.command_line[0], "prog");
	ck_assert_str_eq(o.target.command_line[1], "-r");
}

TEST(call_graph_takes_its_word_in_every_way)
{
	static const char *const dwarf[] = {"-g dwarf -- x", "-gdwarf -- x",
		"--call-graph=dwarf -- x", "--call-graph dwarf -- x", "-ag dwarf", "-g dwarf x",
		"-g -g dwarf -- x", "-g tables -- x"};
	for (size_t i = 0; i < sizeof(dwarf) / sizeof(*dwarf); i++)
		ck_assert_int_eq(
			parsed(RECORD, dwarf[i]).sampling.stack, MPERF__STACK_KIND__STACK_DWARF);
	ck_assert_int_eq(parsed(RECORD, "-- x").sampling.stack, MPERF__STACK_KIND__STACK_FP);
	ck_assert_int_eq(
		parsed(RECORD, "-g none -- x").sampling.stack, MPERF__STACK_KIND__STACK_NONE);
}

TEST(a_word_of_call_graph_that_is_none_is_no_command)
{
	refused(RECORD, "-g dwrf -- x", "-g takes tables, fp or none, not 'dwrf'");
	struct options o = parsed(RECORD, "-g x y");
	ck_assert_str_eq(o.target.command_line[0], "x");
}

TEST(gate_names_the_options_of_its_sides)
{
	refused(MPERF__REQUEST__BODY_GATE, "a b", "with --baseline and --candidate, not 'a' alone");
}

TEST(a_list_of_harts_has_a_limit_that_is_named)
{
	refused(HOTSPOTS, "--cpu 99999 -i x", "below 4096, not '99999'");
}

TEST(call_graph_without_a_word_means_frame_pointers)
{
	struct options o = parsed(RECORD, "-g -- dwarf x");
	ck_assert_int_eq(o.sampling.stack, MPERF__STACK_KIND__STACK_FP);
	ck_assert_str_eq(o.target.command_line[0], "dwarf");
	o = parsed(RECORD, "-g prog dwarf");
	ck_assert_int_eq(o.sampling.stack, MPERF__STACK_KIND__STACK_FP);
	ck_assert_str_eq(o.target.command_line[0], "prog");
	ck_assert(parsed(RECORD, "-g -a").target.all);
}

TEST(tables_take_the_bytes_of_stack)
{
	struct options o = parsed(RECORD, "-g tables,16384 -- x");
	ck_assert_int_eq(o.sampling.stack, MPERF__STACK_KIND__STACK_DWARF);
	ck_assert_uint_eq(o.sampling.stack_bytes, 16384);
	refused(RECORD, "-gdwarf,7 -- x", "multiple of 8");
	refused(RECORD, "-gdwarf,65536 -- x", "65528");
	refused(RECORD, "-gdwarf, -- x", "multiple of 8");
	refused(RECORD, "-gfp,16 -- x", "tables, fp or none");
	refused(RECORD, "--call-graph=lbr -- x", "tables, fp or none");
}

TEST(lists_of_pids_and_harts_are_read)
{
	struct options o = parsed(HOTSPOTS, "-i f --pid 12,13 --pid 14 --cpu 0-3,7");
	ck_assert_uint_eq(o.target.n_pids, 3);
	ck_assert_int_eq(o.target.pid[2], 14);
	ck_assert_uint_eq(o.target.n_cpus, 5);
	ck_assert_uint_eq(o.target.cpu[4], 7);
}

TEST(lists_that_are_none_are_refused)
{
	static const char *const pids[] = {"0", "-1", "x", "1,", ",1", "1,,2", "99999999999", "1x"};
	static const char *const cpus[] = {
		"", "-", "3-1", "1-", "-3", "0-99999", "a", "1,,2", "0x1"};
	char line[64];
	for (size_t i = 0; i < sizeof(pids) / sizeof(*pids); i++) {
		snprintf(line, sizeof(line), "--pid=%s", pids[i]);
		refused(RECORD, line, "--pid takes");
	}
	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
		snprintf(line, sizeof(line), "-i f --cpu=%s", cpus[i]);
		refused(HOTSPOTS, line, "--cpu takes");
	}
}

TEST(lists_are_bounded)
{
	char line[4096] = "";
	for (int i = 0; i <= OPTIONS_LIST_MAX; i++)
		strcat(line, "-e cycles ");
	strcat(line, "-- x");
	refused(RECORD, line, "more than 64 times");

	strcpy(line, "--pid=1");
	for (int i = 0; i < OPTIONS_LIST_MAX; i++)
		strcat(line, ",1");
	refused(RECORD, line, "at most 64");
	refused(HOTSPOTS, "-i f --cpu 0-4095,1", "more than 4096");
}

TEST(there_must_be_one_thing_to_measure)
{
	refused(RECORD, "", "nothing to measure");
	refused(STAT, "-e cycles", "nothing to measure");
	refused(RECORD, "--pid 1 -- x", "two things");
	refused(RECORD, "-a --pid 1", "every process");
	refused(HOTSPOTS, "--for 1s", "nothing to measure");
	refused(FLAMEGRAPH, "-F 99", "nothing to measure");
	ck_assert(parsed(STAT, "-a -- x").target.command_line != NULL);
	ck_assert_ptr_null(parsed(HOTSPOTS, "").target.command_line);
}

TEST(reading_and_measuring_exclude_each_other)
{
	refused(HOTSPOTS, "-i f -- x", "-i reads a recording");
	refused(HOTSPOTS, "-i f -a", "-i reads a recording");
	refused(HOTSPOTS, "-i f -g", "-i reads a recording");
	refused(FLAMEGRAPH, "-i f -F 99", "-i reads a recording");
	ck_assert_uint_eq(parsed(HOTSPOTS, "-i f --pid 3").target.n_pids, 1);
}

TEST(a_file_without_its_option_is_explained)
{
	refused(HOTSPOTS, "mperf.mprf", "use -i mperf.mprf to read it");
	refused(DOCTOR, "mperf.mprf", "one argument too many");
	refused(LIST, "hardware software", "'software' is one argument too many");
	ck_assert_str_eq(parsed(LIST, "software").topic, "software");
}

TEST(numbers_are_checked)
{
	refused(RECORD, "-F 0 -- x", "from 1 to");
	refused(RECORD, "-F 99x -- x", "'99x'");
	refused(RECORD, "-F -5 -- x", "'-5'");
	refused(RECORD, "-F 99999999999999999999 -- x", "from 1 to");
	refused(STAT, "-r 0 -- x", "-r takes");
	refused(STAT, "-I 0 -- x", "-I takes");
	refused(HOTSPOTS, "-n 4294967296", "-n takes");
	ck_assert_uint_eq(parsed(HOTSPOTS, "--limit 0").limit, 0);
	ck_assert_uint_eq(parsed(HOTSPOTS, "").limit, 30);
}

TEST(times_are_checked)
{
	ck_assert_uint_eq(parsed(RECORD, "-a --for 500ms").target.for_ns, 500000000);
	refused(RECORD, "-a --for soon", "--for takes a time");
	refused(RECORD, "-a --for 0s", "--for takes a time");
	refused(HOTSPOTS, "-i f --since whenever", "--since takes a time");
	refused(HOTSPOTS, "-i f --since -5m --until -10m", "--until is not after");
	ck_assert_int_gt(parsed(HOTSPOTS, "-i f --since -5m").narrowing.since_ns, 0);
}

TEST(an_overhead_is_a_share_of_what_can_be_priced)
{
	ck_assert_uint_eq(parsed(RECORD, "-a").sampling.overhead_ppm, 0);
	ck_assert_uint_eq(parsed(RECORD, "-a --overhead 5%").sampling.overhead_ppm, 50000);
	ck_assert_uint_eq(parsed(TOP, "--overhead=0.25%").sampling.overhead_ppm, 2500);
	refused(RECORD, "-a --overhead 5", "--overhead takes a share");
	refused(RECORD, "-a --overhead 0%", "--overhead takes a share");
	refused(RECORD, "-a --overhead 101%", "--overhead takes a share");
	refused(RECORD, "-a --overhead none", "--overhead takes a share");
	refused(RECORD, "-a -e cycles --overhead 5%", "leave out -e, or --overhead");
	refused(HOTSPOTS, "-i f --overhead 5%", "leave out -i, or the command");
	refused(STAT, "-a --overhead 5%", "no option '--overhead'");
}

TEST(an_unknown_option_is_named_with_the_nearest)
{
	refused(RECORD, "--frek 3 -- x", "did you mean '--freq'");
	refused(RECORD, "--zzzzzz -- x", "no option '--zzzzzz'");
	refused(RECORD, "--zzzzzz=3 -- x", "no option '--zzzzzz'");
	refused(RECORD, "-Z -- x", "no option '-Z'");
	refused(RECORD, "-aZ", "no option '-Z'");
	refused(RECORD, "-aZg", "no option '-Z'");
	refused(RECORD, "--by function -- x", "record has no option '--by'");
	refused(DOCTOR, "-F 3", "doctor has no option '-F'");
	refused(RECORD, "--fo 3 -- x", "more than one");
}

TEST(values_that_lack_or_are_too_many_are_named)
{
	refused(RECORD, "-F", "'-F' needs a value");
	refused(RECORD, "--freq", "'--freq' needs a value");
	refused(RECORD, "-a -o", "'-o' needs a value");
	refused(RECORD, "--all=yes", "'--all' takes no value");
	refused(RECORD, "-a -e ", "an argument is empty");
	refused(RECORD, "-a --output=", "--output needs");
}

TEST(hostile_arguments_are_said_escaped)
{
	refused(RECORD, "--\033[2Jx -- x", "\\x1b[2Jx");
	refused(HOTSPOTS, "--by \033]0;x\007", "\\x1b]0;x\\x07");
	refused(RECORD, "-\033", "\\x1b");
}

TEST(what_cannot_go_together_is_refused)
{
	refused(STAT, "-r 3 -I 100 -- x", "cannot be combined");
	refused(STAT, "-r 3 -a", "-r repeats");
	refused(STAT, "--json -I 100 -- x", "--json prints one answer");
	refused(STAT, "--json -r 3 -- x", "--json prints the counts of one run");
	refused(HOTSPOTS, "--json --raw", "two forms");
	refused(HOTSPOTS, "--by functoin", "did you mean function?");
}

TEST(top_takes_an_interval_frames_and_filters)
{
	struct options o = parsed(TOP, "-b -d 500ms -n 3 --limit 7 -F 999 --for 1m --by thread");
	ck_assert(o.batch);
	ck_assert_uint_eq(o.sampling.interval_ms, 500);
	ck_assert_uint_eq(o.frames, 3);
	ck_assert_uint_eq(o.limit, 7);
	ck_assert_uint_eq(o.sampling.hz, 999);
	ck_assert_str_eq(o.by, "thread");
	o = parsed(TOP, "--pid 3 --comm a --cgroup /x/ --cpu 0-1"); /* no two targets */
	ck_assert_uint_eq(o.target.n_pids, 1);
	ck_assert_uint_eq(o.target.n_cpus, 2);
	ck_assert_uint_eq(o.limit, 0); /* as the form calls for */
	ck_assert_uint_eq(o.sampling.interval_ms, 0);
}

TEST(an_interval_is_spelt_in_one_way)
{
	ck_assert_uint_eq(parsed(TOP, "--interval 500").sampling.interval_ms, 500);
	ck_assert_uint_eq(parsed(TOP, "-d 2").sampling.interval_ms, 2000);
	ck_assert_uint_eq(parsed(STAT, "-I 100 -- x").sampling.interval_ms, 100);
	ck_assert_uint_eq(parsed(STAT, "-I 1.5s -- x").sampling.interval_ms, 1500);
	ck_assert_uint_eq(parsed(BLOCKS, "-I 2s").sampling.interval_ms, 2000);
	ck_assert_uint_eq(parsed(BLOCKS, "--every 2000").sampling.interval_ms, 2000);
	ck_assert_uint_eq(parsed(ROOFLINE, "--live -I 3s").sampling.interval_ms, 3000);
	refused(STAT, "-I 0 -- x", "1ms to 1d");
	refused(STAT, "-I 2d -- x", "1ms to 1d");
	refused(STAT, "-I 99999999999999999999 -- x", "1ms to 1d");
	refused(BLOCKS, "-I 5", "-I takes a time from 100ms to 1h");
	refused(BLOCKS, "--every x", "--every takes a time from 100ms to 1h");
	refused(BLOCKS, "--every=x", "--every takes");
	refused(BLOCKS, "--ev 5", "--every takes");
	refused(BLOCKS, "--interval 5", "--interval takes");
	refused(BLOCKS, "-I5", "-I takes");
	refused(ROOFLINE, "--live -d 10ms", "-d takes");
	refused(ROOFLINE, "--live -d 500ms", "-d takes 1s or more");
	refused(ROOFLINE, "-d 5", "-d needs --live");
	refused(ROOFLINE, "--frames 5", "--frames needs --live");
	refused(STAT, "--interval 100 -r 5 -- x", "and --interval the parts");
	refused(ROOFLINE, "--live -I 500ms", "1s or more");
}

TEST(an_error_names_the_option_that_was_typed)
{
	refused(BLOCKS, "--every 500 --frames 3", "--frames needs --live");
	refused(RECORD, "-F x -- y", "-F takes a number");
	refused(RECORD, "-Fx -- y", "-F takes");
	refused(RECORD, "--freq x -- y", "--freq takes");
	refused(RECORD, "--freq=x -- y", "--freq takes");
	refused(RECORD, "-e a --count x -- y", "--count takes");
	refused(HOTSPOTS, "-n x", "-n takes");
	refused(HOTSPOTS, "--limit x", "--limit takes");
	refused(TOP, "-n x", "-n takes");
	refused(TOP, "--frames x", "--frames takes");
	refused(TOP, "--limit x", "--limit takes");
	refused(STAT, "--repeat x -- y", "--repeat takes");
	refused(TOPDOWN, "--level x", "--level takes");
	refused(HOTSPOTS, "--metrics , -- y", "--metrics takes");
	refused(HOTSPOTS, "-M , -- y", "-M takes");
	refused(RECORD, "--call-graph=x -- y", "--call-graph takes");
	refused(RECORD, "-gx -- y", "-g takes");
}

TEST(a_sample_is_taken_by_time_or_by_occurrences)
{
	static const Mperf__Request__BodyCase commands[] = {RECORD, HOTSPOTS, FLAMEGRAPH};
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		struct options o = parsed(commands[i], "-e page-faults -c 100000 -- prog");
		ck_assert_uint_eq(o.sampling.period, 100000);
		ck_assert_uint_eq(o.sampling.hz, 0);
		refused(commands[i], "-e page-faults -c 10 -F 99 -- prog", "give one of them");
		refused(commands[i], "-F 99 -c 10 -- prog", "-F");
		refused(commands[i], "-c 10 -- prog", "name the event with -e");
		refused(commands[i], "-e page-faults -c 0 -- prog", "'0'");
		refused(commands[i], "-e page-faults -c 10x -- prog", "'10x'");
		refused(commands[i], "-e page-faults -c -1 -- prog", "'-1'");
		refused(commands[i], "-e page-faults -c 9223372036854775808 -- prog", "-c");
	}
	refused(HOTSPOTS, "-i run.mprf -e page-faults -c 10", "nothing to measure");
	refused(HOTSPOTS, "-M General -c 10 -- prog", "-M");
	refused(TOP, "-c 10", "-c");
	ck_assert_uint_eq(parsed(RECORD, "--count 7 -e cycles -a").sampling.period, 7);
}

TEST(an_event_is_sampled_or_shown)
{
	struct options o = parsed(HOTSPOTS, "-e a -e b -- x");
	ck_assert_uint_eq(o.sampling.n_events, 2);
	ck_assert_ptr_null(o.narrowing.of_event);
	o = parsed(HOTSPOTS, "-i f --event a");
	ck_assert_uint_eq(o.sampling.n_events, 0);
	ck_assert_str_eq(o.narrowing.of_event, "a");
	o = parsed(EXPORT, "--as csv --since -1h -e a");
	ck_assert_str_eq(o.narrowing.of_event, "a");
	o = parsed(FLAMEGRAPH, "-e a"); /* of what is found */
	ck_assert_str_eq(o.narrowing.of_event, "a");
	refused(HOTSPOTS, "-i f -e a -e b", "one event");
}

TEST(an_answer_has_a_place)
{
	struct options o = parsed(HOTSPOTS, "-o f -- x");
	ck_assert_str_eq(o.look.answer, "f");
	ck_assert_ptr_null(o.output);
	o = parsed(ROOFLINE, "--json -o f");
	ck_assert_str_eq(o.look.answer, "f");
	o = parsed(ROOFLINE, "-o f.svg");
	ck_assert_ptr_null(o.look.answer);
	ck_assert_str_eq(o.output, "f.svg");
	ck_assert(parsed(HOTSPOTS, "-- x").look.answers_on_stdout);
	ck_assert(parsed(FLAMEGRAPH, "--folded -- x").look.answers_on_stdout);
	ck_assert(parsed(RECORD, "-o - -- x").look.answers_on_stdout);
	ck_assert(!parsed(FLAMEGRAPH, "-- x").look.answers_on_stdout);
	ck_assert(!parsed(STAT, "-- x").look.answers_on_stdout);
	ck_assert(!parsed(RECORD, "-- x").look.answers_on_stdout);
	refused(FLAMEGRAPH, "-o x.png", "must end in");
	refused(TOPDOWN, "-o x.pdf -- y", "must end in");
	parsed(FLAMEGRAPH, "--folded -o x.png");
	parsed(FLAMEGRAPH, "-o folder.d/flame");
	parsed(FLAMEGRAPH, "-o X.HTML");
}

TEST(what_top_cannot_do_is_refused)
{
	refused(TOP, "-d 99ms", "100ms to 60s");
	refused(TOP, "-d 60001ms", "100ms to 60s");
	refused(TOP, "-d soon", "'soon'");
	refused(TOP, "--frames 0", "--frames takes");
	refused(TOP, "--frames -1", "--frames takes");
	refused(TOP, "--by hart", "cgroup or job, not 'hart'");
	refused(TOP, "--json --raw", "two forms");
	refused(TOP, "-i f", "no option '-i'");
	refused(TOP, "-- make", "one argument too many");
}

TEST(a_process_in_what_is_kept_is_no_target)
{
	struct options o = parsed(HOTSPOTS, "--since -1h --pid 3");
	ck_assert_uint_eq(o.target.n_pids, 1);
	parsed(FLAMEGRAPH, "--until -1h --pid 3");
	refused(HOTSPOTS, "--since -1h --pid 3 -F 99", "nothing to measure");
	refused(HOTSPOTS, "--since -1h -a", "--since and --until look back");
	refused(FLAMEGRAPH, "--until -1h -- x", "--since and --until look back");
	refused(HOTSPOTS, "--pid 3 -a", "every process");
}

/* An option of one of the commands, and with "=" one of its words. */
static bool is_option(uint32_t commands, const char *term)
{
	size_t n = strcspn(term, "=");
	for (size_t i = 0; i < n_option_rows; i++) {
		const struct option_row *row = &option_rows[i];
		const char letter[] = {(char)row->letter, '\0'},
			   *name = row->name ? row->name : letter;
		if (!(row->commands & commands) || strlen(name) != n || strncmp(name, term, n) != 0)
			continue;
		if (!term[n] || (row->store.words && strstr(row->store.words, term + n + 1)))
			return true;
	}
	return false;
}

static bool is_fact(const char *term)
{
	static const char *const facts[] = {
		"TOPIC", "NAME", "COMMAND", "SECOND", "EVENT", "PROCESSES", "REPEATS"};
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (strncmp(term, facts[i], strcspn(term, "=")) == 0)
			return true;
	return false;
}

TEST(rules_name_options_of_their_commands)
{
	for (size_t i = 0; i < n_option_rules; i++) {
		const struct option_rule *rule = &option_rules[i];
		const char *lists[] = {
			rule->when[0], rule->when[1], rule->when[2], rule->unless, rule->single};
		for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++) {
			char words[256], *rest;
			snprintf(words, sizeof(words), "%s", lists[k] ? lists[k] : "");
			for (char *word = strtok_r(words, " ", &rest); word;
				word = strtok_r(NULL, " ", &rest))
				ck_assert_msg(is_option(rule->commands, word) || is_fact(word),
					"%s: %s", rule->says, word);
		}
		ck_assert_msg((rule->check != NULL) != (rule->says != NULL), "rule %zu", i);
	}
}

TEST(options_of_a_command_have_names_of_their_own)
{
	for (size_t i = 0; i < n_option_rows; i++)
		for (size_t k = 0; k < i; k++) {
			const struct option_row *a = &option_rows[i], *b = &option_rows[k];
			if (!(a->commands & b->commands))
				continue;
			ck_assert_msg(!a->letter || a->letter != b->letter, "-%c", a->letter);
			ck_assert_msg(!a->name || !b->name || strcmp(a->name, b->name) != 0, "--%s",
				a->name);
		}
}

TEST(every_command_has_help_with_examples)
{
#define COMMAND(id, name, summary)                                                                 \
	{                                                                                          \
		char text[16384] = "";                                                             \
		FILE *f = fmemopen(text, sizeof(text), "w");                                       \
		options_help(MPERF__REQUEST__BODY_##id, f);                                        \
		fclose(f);                                                                         \
		ck_assert_ptr_nonnull(strstr(text, "mperfctl " #name));                            \
		ck_assert_ptr_nonnull(strstr(text, "Examples:"));                                  \
	}
#include "proto/command.inc"
#undef COMMAND
}

TEST(the_nearest_name_is_near)
{
	static const char *const names[] = {"record", "hotspots", "flamegraph", "stat"};
	ck_assert_str_eq(nearest_name("recrod", names, 4), "record");
	ck_assert_str_eq(nearest_name("flame", names, 4), "flamegraph");
	ck_assert_str_eq(nearest_name("stats", names, 4), "stat");
	ck_assert_ptr_null(nearest_name("", names, 4));
	ck_assert_ptr_null(nearest_name("x", names, 4));
	ck_assert_ptr_null(nearest_name("completely-else", names, 4));
	ck_assert_ptr_null(nearest_name("recordrecordrecordrecordrecordrecordrecord", names, 4));
}
