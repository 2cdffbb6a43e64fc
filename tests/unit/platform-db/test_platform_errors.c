/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What is wrong with a file is said with its line, and the file is left out and nothing else.
 */

#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

#define HEAD                                                                                       \
	"{\n\t\"platform\": \"mine\",\n\t\"title\": \"Mine\",\n\t\"arch\": \"riscv\",\n"           \
	"\t\"source\": \"me\",\n\t\"verified\": \"no\""
#define ORIGIN ", \"source\": \"me\", \"verified\": \"no\"}"
#define EVENT(rest) "{\"name\": \"a\", \"code\": 1, \"topic\": \"t\"" rest
#define GOOD HEAD "\n}\n"

struct wrong {
	const char *text;
	const char *says; /* behind the path */
};

/* Each file is alone wrong beside a good one. */
static void must_all_be_wrong(const struct wrong *wrong, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct made_folder f = made_folder_new();
		made_file(&f, "good.json",
			"{\"platform\": \"good\", \"title\": \"Good\", \"arch\": \"riscv\" "
			", \"source\": \"me\", \"verified\": \"no\", \"events\": [" EVENT(
				ORIGIN) "]}\n");
		made_file(&f, "wrong.json", wrong[i].text);
		_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
		must_complain(db, wrong[i].says);
		must_complain(db, "/wrong.json:");
		ck_assert_ptr_null(platform_db_find(db, "mine"));
		ck_assert_uint_eq(platform_db_find(db, "good")->n_events, 1);
		made_folder_remove(&f);
	}
}
#define ALL_WRONG(table) must_all_be_wrong(table, sizeof(table) / sizeof((table)[0]))

TEST(syntax_errors_are_named_with_their_line)
{
	static const struct wrong wrong[] = {
		{"", "wrong.json:1: "},
		{"{", "wrong.json:1: "},
		{"{\n\"platform\": }\n", "wrong.json:2: "},
		{"[]\n", "wrong.json:1: a platform must be an object in braces"},
		{"\"mine\"\n", "wrong.json:1: "},
		{"{\n\"platform\": \"a\",\n\"platform\": \"b\"}\n", "wrong.json:3: duplicate"},
		{GOOD "}\n", "wrong.json:8: "},
		{"{\n\t\"platform\": \"mi\xffne\"\n}\n", "wrong.json:2: "},
		{"[[[[[[[[[[\n]]]]]]]]]]\n", "wrong.json:1: nested too deeply"},
	};
	ALL_WRONG(wrong);
}

TEST(blanks_at_the_end_of_a_line_are_refused)
{
	static const struct wrong wrong[] = {
		{HEAD " \n}\n", "wrong.json:6: a space at the end of the line"},
		{HEAD "\n}\t\n", "wrong.json:7: a space"},
		{HEAD "\r\n}\n", "wrong.json:6: a space"},
		{HEAD "\n} ", "wrong.json:7: a space"},
	};
	ALL_WRONG(wrong);
}

TEST(keys_that_nobody_knows_are_refused_with_their_line)
{
	static const struct wrong wrong[] = {
		{HEAD ",\n\t\"titel\": \"x\"\n}\n",
			"wrong.json:7: unknown key 'titel'; a platform has:"},
		{HEAD ",\n\t\"events\": [\n\t\t{\"name\": \"a\", \"code\": 1,\n\t\t\"cod\": "
		      "2}]\n}\n",
			"wrong.json:9: unknown key 'cod'; an event has:"},
		{HEAD ",\n\t\"cpus\": [{\n\t\"arch\": \"riscv\",\n\t\"mvendor\": \"0x1\"}]\n}\n",
			"wrong.json:9: unknown key 'mvendor'; a row of cpus has:"},
		{HEAD ",\n\t\"quirks\": [\n{\"quirk\": \"vector\",\n \"bit\": 1}]\n}\n",
			"wrong.json:9: unknown key 'bit'; a quirk of kind vector has:"},
	};
	ALL_WRONG(wrong);
}

TEST(what_a_platform_must_say_is_asked_for)
{
	static const struct wrong wrong[] = {
		{"{}\n", "wrong.json:1: a platform lacks its 'platform'"},
		{"\n\n{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"x86\", "
		 "\"source\": \"me\"}\n",
			"wrong.json:3: a platform lacks its 'verified'"},
		{"{\"platform\": \"mine\", \"title\": \"Mine\" " ORIGIN "\n",
			"'mine' is not a known platform; a new one needs a 'title' and an "
			"'arch'"},
		{"{\"platform\": \"mine\", \"arch\": \"x86\" " ORIGIN "\n",
			"'mine' is not a known platform"},
		{"{\"platform\": \"mine\", \"cpus\": []" ORIGIN "\n",
			"wrong.json:1: a platform with 'cpus' needs an 'arch'"},
		{HEAD ",\n\"cpus\": [{\"arch\": \"riscv\", \"source\": \"me\"}]}\n",
			"wrong.json:7: a row of cpus lacks its 'verified'"},
		{HEAD ",\n\"events\": [{\"name\": \"a\", \"topic\": \"t\"" ORIGIN "]}\n",
			"wrong.json:7: an event lacks its 'code'"},
		{HEAD ",\n\"events\": [{\"name\": \"a\", \"code\": 1" ORIGIN "]}\n",
			"wrong.json:7: the event a lacks its 'topic'"},
		{HEAD ",\n\"events\": [" EVENT(", \"source\": \"me\"}") "]}\n",
			"wrong.json:7: the event a lacks 'verified', and so does its list"},
		{HEAD ",\n\"quirks\": [{\"source\": \"me\", \"verified\": \"no\"}]}\n",
			"wrong.json:7: a quirk needs a 'quirk' that is one of: leader"},
	};
	ALL_WRONG(wrong);
}

TEST(values_out_of_their_range_are_refused)
{
	static const struct wrong wrong[] = {
		{HEAD ",\n\"arch\": \"mips\"}\n", "wrong.json:7: duplicate"},
		{"{\"platform\": \"mine\",\n\"arch\": \"mips\"" ORIGIN "\n",
			"wrong.json:2: 'arch' is not one of: riscv, arm64, x86"},
		{"{\"platform\": \"a b\"" ORIGIN "\n", "'platform' is not a name: 'a b'"},
		{"{\"platform\": \"../a\"" ORIGIN "\n", "'platform' is not a name"},
		{"{\"platform\": 7" ORIGIN "\n", "'platform' is not a text"},
		{"{\"platform\": \"\"" ORIGIN "\n", "'platform' is not a text"},
		{"{\"platform\": \"mine\", \"title\": \"a\\nb\"" ORIGIN "\n",
			"'title' is not one line of text"},
		{"{\"platform\": \"mine\", \"title\": \"a \"" ORIGIN "\n",
			"'title' begins or ends with a space"},
		{HEAD ",\n\"events\": {}}\n", "wrong.json:7: 'events' is not a list"},
		{HEAD ",\n\"events\": [7]}\n",
			"wrong.json:7: an event must be an object in braces"},
		{HEAD ",\n\"events\": [{\"name\": \"a\", \"code\": -1}]}\n",
			"wrong.json:7: 'code' is not a whole number"},
		{HEAD ",\n\"events\": [{\"name\": \"a\", \"code\": \"22h\"}]}\n",
			"'code' is not a whole"},
		{HEAD ",\n\"events\": [{\"name\": \"a\", \"code\": \"\"}]}\n",
			"'code' is not a whole"},
		{HEAD ",\n\"events\": [{\"name\": \"a\", \"code\": \"0x\"}]}\n",
			"'code' is not a whole"},
		{HEAD ",\n\"events\": [{\"name\": \"a\", \"code\": \"0x10000000000000000\"}]}\n",
			"'code' is not a whole"},
		{HEAD ",\n\"events\": [{\"name\": \"a\", \"code\": 1.5}]}\n",
			"'code' is not a whole"},
		{HEAD ",\n\"events\": [{\"name\": \"a\", \"code\": null}]}\n",
			"'code' is not a whole"},
		{HEAD ",\n\"events\": [" EVENT(", \"aliases\": \"b\"" ORIGIN) "]}\n",
			"'aliases' is not a list of names"},
		{HEAD ",\n\"events\": [" EVENT(", \"aliases\": [1]" ORIGIN) "]}\n",
			"'aliases' is not a text"},
		{HEAD ",\n\"lists\": [\"../etc\"]}\n", "wrong.json:7: 'lists' is not a name"},
		{HEAD ",\n\"lists\": [\"none\"]}\n", "none cannot be read: No such file"},
		{HEAD ",\n\"quirks\": 1}\n", "wrong.json:7: 'quirks' is not a list"},
		{HEAD ",\n\"cpus\": 1}\n", "wrong.json:7: 'cpus' is not a list"},
	};
	ALL_WRONG(wrong);
}

#define CPU(rest) HEAD ",\n\"cpus\": [\n{\"arch\": \"riscv\", " rest ORIGIN "]}\n"

TEST(patterns_that_make_no_sense_are_refused)
{
	static const struct wrong wrong[] = {
		{CPU("\"mvendorid\": \"710\""), "wrong.json:8: 'mvendorid' is not a pattern"},
		{CPU("\"mvendorid\": \"0x\""), "'mvendorid' is not a pattern"},
		{CPU("\"mvendorid\": \"0x7g\""), "'mvendorid' is not a pattern"},
		{CPU("\"mvendorid\": \"0x[\""), "'mvendorid' is not a pattern"},
		{CPU("\"mvendorid\": \"0x[]\""), "'mvendorid' is not a pattern"},
		{CPU("\"mvendorid\": \"0x[9-1]\""), "'mvendorid' is not a pattern"},
		{CPU("\"mvendorid\": \"0x[1-]\""), "'mvendorid' is not a pattern"},
		{CPU("\"mvendorid\": \"0x11112222333344445\""), "'mvendorid' is not a pattern"},
		{CPU("\"mvendorid\": 1808"), "'mvendorid' is not a text"},
		{CPU("\"midr\": \"0x1\""), "'midr' does not exist on riscv cores"},
		{CPU("\"vendor\": \"Genuine\""), "'vendor' does not exist on riscv cores"},
		{CPU("\"pmu\": \"cpu_atom\""), "'pmu' does not exist on riscv cores"},
		{HEAD ",\n\"cpus\": [\n{\"arch\": \"x86\"" ORIGIN "]}\n",
			"wrong.json:8: the row has another 'arch' than the platform"},
	};
	ALL_WRONG(wrong);
}

#define QUIRK(rest) HEAD ",\n\"quirks\": [\n{\"quirk\": " rest ORIGIN "]}\n"

#define X86(model)                                                                                 \
	"{\n\t\"platform\": \"mine\",\n\t\"title\": \"Mine\",\n\t\"arch\": \"x86\",\n"             \
	"\t\"source\": \"me\",\n\t\"verified\": \"no\",\n\"cpus\": [\n" model "]}\n"
#define MODEL(model)                                                                               \
	"{\"arch\": \"x86\", \"vendor\": \"AMD\", \"family\": 25, \"model\": " model ORIGIN

TEST(models_are_numbers_or_ranges_that_do_not_meet)
{
	static const struct wrong wrong[] = {
		{X86(MODEL("\"0x1f-0x10\"")), "wrong.json:8: 'model' is not a range of codes"},
		{X86(MODEL("\"0x1?\"")), "wrong.json:8: 'model' is not a whole number"},
		{X86(MODEL("-1")), "wrong.json:8: 'model' is not a whole number"},
		{X86(MODEL("1, \"stepping\": 4294967295")),
			"wrong.json:8: 'stepping' is larger than any core has"},
		{X86("{\"arch\": \"x86\", \"vendor\": \"AMD\", \"family\": 4294967296" ORIGIN),
			"wrong.json:8: 'family' is larger than any core has"},
		{X86(MODEL("\"0x10-0x1f\"") ",\n" MODEL("31")),
			"wrong.json:8: a hart can match both this and"},
		{X86(MODEL("\"0x10-0x1f\"") ",\n" MODEL("\"0x0-0xff\"")),
			"a hart can match both this and"},
	};
	ALL_WRONG(wrong);
}

TEST(quirks_that_make_no_sense_are_refused)
{
	static const struct wrong wrong[] = {
		{QUIRK("\"leadr\""),
			"wrong.json:8: a quirk needs a 'quirk' that is one of: leader"},
		{QUIRK("7"), "wrong.json:8: a quirk needs a 'quirk'"},
		{QUIRK("\"leader\", \"user\": \"nothing\""),
			"wrong.json:8: the leader 'nothing' is neither an event"},
		{QUIRK("\"leader\", \"user\": \"rxyz\""), "the leader 'rxyz' is neither an event"},
		{QUIRK("\"leader\", \"user\": \"r\""), "the leader 'r' is neither an event"},
		{QUIRK("\"overflow\""), "a quirk of kind overflow lacks its 'counters'"},
		{QUIRK("\"overflow\", \"counters\": \"some\""),
			"'counters' is not one of: all, programmable, none"},
		{QUIRK("\"mode-filter\", \"filter\": \"none\", \"says\": \"x\""),
			"a mode-filter needs 'fixed-none' without 'events', or 'none' with "
			"'events'"},
		{QUIRK("\"mode-filter\", \"filter\": \"fixed-none\", \"events\": 1, \"says\": "
		       "\"x\""),
			"a mode-filter needs"},
		{QUIRK("\"mode-filter\", \"filter\": \"none\", \"events\": \"9-1\", \"says\": "
		       "\"x\""),
			"'events' is not a range of codes"},
		{QUIRK("\"mode-filter\", \"filter\": \"none\", \"events\": \"1-\", \"says\": "
		       "\"x\""),
			"'events' is not a range of codes"},
		{QUIRK("\"mode-filter\", \"filter\": \"none\", \"events\": 1"), "lacks its 'says'"},
		{QUIRK("\"counters\""), "either 'mask' or 'event_plus'"},
		{QUIRK("\"counters\", \"mask\": 8, \"event_plus\": 2, \"events\": 1"),
			"either 'mask' or 'event_plus'"},
		{QUIRK("\"counters\", \"event_plus\": 2"),
			"'event_plus' needs a range of 'events'"},
		{QUIRK("\"counters\", \"event_plus\": 64, \"events\": 1"),
			"beyond the last counter"},
		{QUIRK("\"vector\", \"bits\": 0"), "'bits' is not a number from 1 to 65536"},
		{QUIRK("\"cache\", \"level\": 9, \"kind\": \"data\", \"kib\": 1"),
			"'level' is not a number from 1 to 5"},
		{QUIRK("\"cache\", \"level\": 1, \"kind\": \"both\", \"kib\": 1"),
			"'kind' is not one of"},
		{QUIRK("\"peak\", \"precision\": \"fp64\", \"unit\": \"gpu\", \"ops_per_cycle\": "
		       "1"),
			"'unit' is scalar or vector"},
		{QUIRK("\"peak\", \"precision\": \"fp64\", \"unit\": \"vector\", "
		       "\"ops_per_cycle\": 0"),
			"'ops_per_cycle' is not a number above 0"},
		{QUIRK("\"issue\""), "an issue quirk needs 'width', 'slots' or both"},
		{QUIRK("\"note\""), "a quirk of kind note lacks its 'says'"},
	};
	ALL_WRONG(wrong);
}

#define TWICE(quirk) QUIRK(quirk ORIGIN ",\n{\"quirk\": " quirk)

TEST(what_can_hold_once_is_stated_once)
{
	static const struct wrong wrong[] = {
		{TWICE("\"leader\", \"user\": \"r1\""),
			"wrong.json:9: a second leader for the same mode"},
		{TWICE("\"overflow\", \"counters\": \"all\""), "wrong.json:9: a second statement"},
		{TWICE("\"counters\", \"mask\": 8"), "wrong.json:9: a second mask for all events"},
		{TWICE("\"vector\", \"bits\": 128"), "wrong.json:9: a second vector length"},
		{TWICE("\"cache\", \"level\": 1, \"kind\": \"data\", \"kib\": 1"),
			"wrong.json:9: a second cache of that level and kind"},
		{TWICE("\"issue\", \"slots\": 4"), "wrong.json:9: a second statement about issue"},
		{TWICE("\"peak\", \"precision\": \"fp64\", \"unit\": \"vector\", "
		       "\"ops_per_cycle\": 2"),
			"wrong.json:9: a second peak of that precision and unit"},
	};
	ALL_WRONG(wrong);
}

TEST(names_of_events_are_unique)
{
	static const struct wrong wrong[] = {
		{HEAD ",\n\"events\": [\n" EVENT(ORIGIN) ",\n" EVENT(ORIGIN) "]}\n",
			"wrong.json:9: a second event named a; the first is at "},
		{HEAD ",\n\"events\": [\n" EVENT(
			 ORIGIN) ",\n{\"name\": \"A\", \"code\": 2, \"topic\": \"t\"" ORIGIN "]}\n",
			"wrong.json:9: a second event named A"},
		{HEAD ",\n\"events\": [\n" EVENT(", \"aliases\": [\"a\"]" ORIGIN) "]}\n",
			"wrong.json:8: a second event named a"},
		{HEAD ",\n\"events\": [\n" EVENT(", \"generic\": [\"cycle\"]" ORIGIN) "]}\n",
			"wrong.json:8: 'cycle' is not a generic event"},
		{HEAD ",\n\"events\": [\n" EVENT(
			 ", \"generic\": [\"L1-dcache-hits\"]" ORIGIN) "]}\n",
			"'L1-dcache-hits' is not a generic event"},
		{HEAD ",\n\"events\": [\n" EVENT(
			 ", \"generic\": [\"cycles\"]" ORIGIN) ",\n{\"name\": \"b\", \"code\": 2, "
							       "\"topic\": \"t\", \"generic\": "
							       "[\"cycles\"]" ORIGIN "]}\n",
			"wrong.json:9: a second event is mapped to the generic cycles"},
	};
	ALL_WRONG(wrong);
}

#define BOTH(name, cpu)                                                                            \
	"{\"platform\": \"" name "\", \"title\": \"x\", \"arch\": \"riscv\"" ORIGIN_OPEN           \
	",\n\"cpus\": [{\"arch\": \"riscv\", " cpu ORIGIN "]}\n"
#define ORIGIN_OPEN ", \"source\": \"me\", \"verified\": \"no\""

TEST(no_hart_can_match_two_platforms)
{
	static const struct {
		const char *first, *second;
		bool conflict;
	} cases[] = {
		{"\"mvendorid\": \"0x1\"", "\"mvendorid\": \"0x1\"", true},
		{"\"mvendorid\": \"0x[1-3]\"", "\"mvendorid\": \"0x[3-5]\"", true},
		{"\"mvendorid\": \"0x??\"", "\"mvendorid\": \"0x4?\"", true},
		{"\"mvendorid\": \"0x1\"", "\"marchid\": \"0x1\"", true},
		{"\"mvendorid\": \"0x1\", \"compatible\": \"a,b\"",
			"\"mvendorid\": \"0x1\", \"compatible\": \"a,b\"", true},
		{"\"mvendorid\": \"0x1\", \"compatible\": \"a,b\"",
			"\"mvendorid\": \"0x1\", \"compatible\": \"a,c\"", false},
		{"\"mvendorid\": \"0x1\", \"compatible\": \"a,b\"", "\"mvendorid\": \"0x1\"",
			false},
		{"\"mvendorid\": \"0x[1-3]\"", "\"mvendorid\": \"0x[4-5]\"", false},
		{"\"mvendorid\": \"0x1\"", "\"mvendorid\": \"0x11\"", false},
		{"\"mvendorid\": \"0x1\"", "\"mvendorid\": \"0x1\", \"marchid\": \"0x1\"", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		struct made_folder f = made_folder_new();
		snprintf(text, sizeof(text), BOTH("one", "%s"), cases[i].first);
		made_file(&f, "1.json", text);
		snprintf(text, sizeof(text), BOTH("two", "%s"), cases[i].second);
		made_file(&f, "2.json", text);
		_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
		ck_assert_ptr_nonnull(platform_db_find(db, "one"));
		if (cases[i].conflict) {
			must_complain(db, "2.json:2: a hart can match both this and ");
			must_complain(db, "/1.json:2; add keys");
			ck_assert_ptr_null(platform_db_find(db, "two"));
		} else {
			must_be_clean(db);
			ck_assert_ptr_nonnull(platform_db_find(db, "two"));
		}
		made_folder_remove(&f);
	}
}

TEST(a_second_file_about_a_platform_is_refused)
{
	struct made_folder f = made_folder_new();
	made_file(&f, "1.json", GOOD);
	made_file(&f, "2.json", GOOD);
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	must_complain(db, "2.json:1: a second file for platform mine; the first is ");
	must_complain(db, "/1.json");
	made_folder_remove(&f);
}

TEST(a_wrong_list_of_events_loses_the_platform_that_names_it_alone)
{
	static const struct wrong wrong[] = {
		{"[]\n", "list/a.json:1: a list of events must be an object in braces"},
		{"{\"topic\": \"t\",\n\"source\": \"me\"}\n",
			"list/a.json:1: a list of events lacks"},
		{"{\"topic\": \"t\",\n\"event\": []}\n", "list/a.json:2: unknown key 'event'"},
		{"{\"topic\": \"t\", \"source\": \"me\", \"verified\": \"no\",\n\"events\": "
		 "[\n{}]}\n",
			"list/a.json:3: an event lacks its 'name'"},
		{"{\"topic\": \"t\", \"source\": \"me\", \"verified\": \"no\", \"events\": []}\n",
			"/list has neither events nor metrics"},
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made_folder f = made_folder_new();
		made_file(&f, "good.json", GOOD);
		made_file(&f, "list/a.json", wrong[i].text);
		made_file(&f, "other.json",
			"{\"platform\": \"other\", \"title\": \"x\", \"arch\": \"x86\", "
			"\"lists\": [\"list\"]" ORIGIN "\n");
		_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
		must_complain(db, wrong[i].says);
		ck_assert_ptr_null(platform_db_find(db, "other"));
		ck_assert_ptr_nonnull(platform_db_find(db, "mine"));
		made_folder_remove(&f);
	}
}

TEST(what_is_no_file_is_named_and_left_out)
{
	struct made_folder f = made_folder_new();
	made_file(&f, "good.json", GOOD);
	made_file(&f, "folder.json/x", "");
	made_file(&f, ".hidden.json", "{");
	made_file(&f, "notes.txt", "{");
	made_file(&f, "old.json~", "{");
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	must_complain(db, "folder.json: is not a regular file");
	ck_assert_ptr_nonnull(platform_db_find(db, "mine"));
	made_folder_remove(&f);
}

TEST(too_large_a_file_is_left_out)
{
	size_t n = 5u << 20;
	_cleanup_(freep) char *text = malloc(n + 1);
	ck_assert_ptr_nonnull(text);
	memset(text, '\n', n);
	text[n] = '\0';
	struct made_folder f = made_folder_new();
	made_file(&f, "wrong.json", text);
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	must_complain(db, "wrong.json: is larger than 4 MB");
	made_folder_remove(&f);
}

TEST(more_values_than_a_file_has_are_refused)
{
	size_t n = 250000;
	_cleanup_(freep) char *text = malloc(2 * n + 8);
	ck_assert_ptr_nonnull(text);
	strcpy(text, "[0");
	for (size_t i = 0; i < n; i++)
		memcpy(text + 2 + 2 * i, ",0", 2);
	strcpy(text + 2 + 2 * n, "]\n");
	struct made_folder f = made_folder_new();
	made_file(&f, "wrong.json", text);
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	must_complain(db, "wrong.json:1: too many values for one file");
	made_folder_remove(&f);
}

TEST(more_errors_than_are_kept_are_counted)
{
	struct made_folder f = made_folder_new();
	for (int i = 0; i < PLATFORM_ERRORS_MAX + 5; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%03d.json", i);
		made_file(&f, name, "{");
	}
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	ck_assert_str_eq(platform_db_error(db, PLATFORM_ERRORS_MAX), "and 5 more errors");
	ck_assert_ptr_null(platform_db_error(db, PLATFORM_ERRORS_MAX + 1));
	made_folder_remove(&f);
}

TEST(errors_are_plain_lines_whatever_the_file_holds)
{
	struct made_folder f = made_folder_new();
	made_file(&f, "wrong.json", "{\"a\\u001b[31m\\u0007\": 1}\n");
	_cleanup_(platform_db_freep) struct platform_db *db = made_load(f.path, NULL);
	must_complain(db, "unknown key 'a?[31m?'");
	made_folder_remove(&f);
}

#define FIELDS(rest) HEAD ",\n\"quirks\": [\n" rest "]}\n"
#define FIELD(name, bits, rest)                                                                    \
	"{\"quirk\": \"field\", \"name\": \"" name "\", \"bits\": \"" bits "\"" rest ORIGIN
#define HOLDS_EVENT ", \"holds\": \"event\""
#define JOINS(a, b)                                                                                \
	", \"holds\": \"operation\", \"joins\": [\"" a "\", \"" b "\"], \"values\": [\"ADD=1\"]"
#define TWO FIELD("A", "0-7", HOLDS_EVENT) ",\n" FIELD("B", "8-15", HOLDS_EVENT) ",\n"

TEST(fields_that_make_no_sense_are_refused)
{
	static const struct wrong wrong[] = {
		{FIELDS("{\"quirk\": \"field\", \"name\": \"A\"" ORIGIN),
			"wrong.json:8: a quirk of kind field lacks its 'bits'"},
		{FIELDS(FIELD("A", "64", "")), "wrong.json:8: 'bits' of A are not ranges of bits"},
		{FIELDS(FIELD("A", "7-0", "")), "'bits' of A are not ranges of bits below 64"},
		{FIELDS(FIELD("A", "8-15,0-7", "")), "lowest first, such as \"0-7,32-35\""},
		{FIELDS(FIELD("A", "0-7,", "")), "'bits' of A"},
		{FIELDS(FIELD("A", "0-7,7-9", "")), "'bits' of A"},
		{FIELDS(FIELD("A", "0:7", "")), "'bits' of A"},
		{FIELDS(FIELD("A", "-7", "")), "'bits' of A"},
		{FIELDS(FIELD("A", "0-7", ", \"holds\": \"events\"")),
			"'holds' is not one of: number, event, set, operation, inhibit"},
		{FIELDS(FIELD("A", "0-7", "") ",\n" FIELD("a", "8-9", "")),
			"wrong.json:9: the field a has the name or bits of A"},
		{FIELDS(FIELD("A", "0-7", "") ",\n" FIELD("B", "7-9", "")),
			"the field B has the name or bits of A"},
		{FIELDS(FIELD("A", "0-1", ", \"values\": [\"ADD\"]")),
			"'values' of A: 'ADD' is not a name and its number, such as ADD=0x4"},
		{FIELDS(FIELD("A", "0-1", ", \"values\": [\"=1\"]")),
			"is not a name and its number"},
		{FIELDS(FIELD("A", "0-1", ", \"values\": [\"ADD=x\"]")),
			"is not a name and its number"},
		{FIELDS(FIELD("A", "0-1", ", \"values\": [\"ADD=4\"]")),
			"'values' of A: ADD=4 does not fit into 2 bits"},
		{FIELDS(FIELD("A", "0-1", ", \"joins\": [\"B\", \"C\"]")),
			"A joins fields, but has no operation"},
		{FIELDS(TWO FIELD("O", "16", ", \"holds\": \"operation\"")),
			"wrong.json:10: the operation O needs the two fields that it 'joins'"},
		{FIELDS(TWO FIELD("O", "16", JOINS("A", "C"))),
			"O joins C, which is not an event or operation above it"},
		{FIELDS(TWO FIELD("O", "16", JOINS("O", "A"))), "O joins O, which is not an event"},
		{FIELDS(TWO FIELD("O", "16", JOINS("A", "A"))), "A is joined twice"},
		{FIELDS(TWO FIELD("O", "16", JOINS("A", "B")) ",\n" FIELD(
			 "P", "17", JOINS("O", "A"))),
			"wrong.json:11: A is joined twice"},
		{FIELDS(FIELD("A", "0-7", HOLDS_EVENT) ",\n" FIELD("B", "8-15", HOLDS_EVENT)),
			"wrong.json:9: no operation joins A or B"},
		{FIELDS("{\"quirk\": \"missing\", \"metrics\": [\"a\"]" ORIGIN),
			"a quirk of kind missing lacks its 'says'"},
		{FIELDS("{\"quirk\": \"missing\", \"metrics\": \"a\", \"says\": \"b\"" ORIGIN),
			"'metrics' is not a list of names"},
		{FIELDS("{\"quirk\": \"selector\", \"name\": \"x\"" ORIGIN
			",\n{\"quirk\": \"selector\", \"name\": \"y\"" ORIGIN),
			"wrong.json:9: a second selector"},
		{FIELDS("{\"quirk\": \"selector\", \"name\": \"x\"" ORIGIN),
			"wrong.json:1: the selector 'x' has no fields"},
		{FIELDS("{\"quirk\": \"selector\", \"name\": \"x/y\"" ORIGIN),
			"'name' is not a name"},
	};
	ALL_WRONG(wrong);
}
