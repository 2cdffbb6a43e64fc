/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of proto/syntax/schedule.c: files as administrators write them, right and wrong; of the wrong ones also
 * what is said and at which line. */

#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/memory.h"
#include "proto/syntax/schedule.h"
#include "tests/unit/test.h"

static struct schedule s;
static struct schedule_error error;

static int parse(const char *text, size_t n, const char *path)
{
	/* On the heap and to the byte, so that a sanitizer sees the first one too many. */
	_cleanup_(freep) char *copy = malloc(n ? n : 1);
	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, n);
	return schedule_parse(copy, n, path, &s, &error);
}

static void takes(const char *lines, const char *says)
{
	char text[512], words[1024];
	snprintf(text, sizeof(text), "[Schedule]\n%s", lines);
	ck_assert_msg(parse(text, strlen(text), "/f/x.schedule") == 0, "%s", error.text);
	ck_assert_str_eq(schedule_says(&s, words, sizeof(words)), says);
}

static void refuses_text(const char *text, size_t n, const char *path, const char *says)
{
	memset(&s, 0x5a, sizeof(s));
	ck_assert_int_eq(parse(text, n, path), SCHEDULE_WRONG);
	ck_assert_str_eq(error.text, says);
	for (size_t i = 0; i < sizeof(s); i++)
		ck_assert_int_eq(((unsigned char *)&s)[i], 0x5a);
}

/* `lines` below [Schedule], which is the first; `says` is what comes behind the file's name. */
static void refuses(const char *lines, const char *says)
{
	char text[2048], whole[512];
	snprintf(text, sizeof(text), "[Schedule]\n%s", lines);
	snprintf(whole, sizeof(whole), "x.schedule:%s", says);
	refuses_text(text, strlen(text), "x.schedule", whole);
}

TEST(a_time_of_the_day_with_rate_and_stacks)
{
	takes("OnCalendar=02:00\nDuration=10min\nFrequency=999\nCallGraph=fp\n",
		"02:00, at most 10 min at 999 Hz with stacks");
	ck_assert_str_eq(s.name, "x");
	ck_assert_int_eq(s.kind, SCHEDULE_CALENDAR);
	ck_assert_uint_eq(s.duration_ns, 600 * SECOND);
	ck_assert_uint_eq(s.hz, 999);
}

TEST(each_job_of_a_unit_whole)
{
	takes("Unit=ci-*.service\n", "each job of unit ci-*.service, at most 60 min with stacks");
	ck_assert_int_eq(s.kind, SCHEDULE_JOBS);
	ck_assert_uint_eq(s.share_ppm, 1000000);
	ck_assert_uint_eq(s.hz, 0);
	ck_assert_uint_eq(s.keep, 10);
	ck_assert_uint_eq(s.max_use, 256u << 20);
}

TEST(a_share_of_jobs)
{
	takes("Share=5%\nFrequency=999\n", "5 % of jobs, at most 60 min at 999 Hz with stacks");
	ck_assert_uint_eq(s.share_ppm, 50000);
	ck_assert_str_eq(s.unit, "");
	ck_assert_uint_eq(s.n_labels, 0);
}

TEST(labels_of_which_all_must_be_there)
{
	takes("# CI\nLabel = job=test*\n "
	      "Label=branch=main\n\nShare=0.5%\nDuration=90s\nCallGraph=no\n"
	      "Keep=3\nMaxUse=1G",
		"0.5 % of jobs with job=test*, branch=main, at most 90 s without stacks");
	ck_assert_uint_eq(s.n_labels, 2);
	ck_assert_str_eq(s.label[1].value, "main");
	ck_assert_uint_eq(s.keep, 3);
	ck_assert_uint_eq(s.max_use, 1u << 30);
	ck_assert(!s.callers);
}

TEST(several_times_are_kept_as_they_are_written)
{
	takes("OnCalendar=Mon *-*-* 02:00\nOnCalendar=nonsense that systemd will refuse\n",
		"Mon *-*-* 02:00; nonsense that systemd will refuse, at most 10 min with stacks");
	ck_assert_uint_eq(s.n_calendars, 2);
}

TEST(an_empty_file_masks)
{
	ck_assert_int_eq(parse("", 0, "x.schedule"), SCHEDULE_MASKED);
}

TEST(keys_that_are_wrong_are_refused_at_their_line)
{
	refuses("Oncalendar=02:00\n", "2: unknown key 'Oncalendar'; did you mean 'OnCalendar'?");
	refuses("OnCalendar=02:00\nQuux=1\n",
		"3: unknown key 'Quux'; mperf-schedule(5) lists the keys");
	refuses("Unit=a\nUnit=b\n", "3: 'Unit' was already set at line 2; keep one of the two");
	refuses("Keep=1\n\nKeep=1\n", "4: 'Keep' was already set at line 2; keep one of the two");
	refuses("Unit=\n", "2: 'Unit' has no value; leave out the line for the default");
	refuses("Unit=a # b\n", "2: a comment follows the value of 'Unit'; put it on a line of its "
				"own");
	refuses("02:00\n", "2: '02:00' is neither a section nor a 'key = value'; comments begin "
			   "with #");
	refuses("=02:00\n", "2: there is no key before '='");
	refuses("\033[2J=1\n", "2: the line holds the control character 0x1b; remove it");
	refuses("Unit=a\r\n", "2: the line holds a carriage return; save the file with Unix line "
			      "endings");
}

TEST(values_that_are_wrong_are_refused)
{
	refuses("OnCalendar=Mon\t02:00\n",
		"2: the value of 'OnCalendar' holds a tab; write a space");
	refuses("Share=0%\n", "2: Share is '0%', but must be a percentage from 0.0001% to 100%");
	refuses("Share=101%\n",
		"2: Share is '101%', but must be a percentage from 0.0001% to 100%");
	refuses("Share=5\n", "2: Share is '5', but must be a percentage from 0.0001% to 100%");
	refuses("Duration=0\n",
		"2: Duration is '0', but must be a time from 1s to 24h, such as 10min");
	refuses("Duration=25h\n",
		"2: Duration is '25h', but must be a time from 1s to 24h, such as 10min");
	refuses("Duration=ten\n",
		"2: Duration is 'ten', but must be a time from 1s to 24h, such as 10min");
	refuses("Frequency=0\n", "2: Frequency is '0', but must be a whole number from 1 to 50000");
	refuses("Frequency=4294967297\n",
		"2: Frequency is '4294967297', but must be a whole number from 1 to 50000");
	refuses("Frequency=1k\n",
		"2: Frequency is '1k', but must be a whole number from 1 to 50000");
	refuses("Keep=101\n", "2: Keep is '101', but must be a whole number from 1 to 100");
	refuses("MaxUse=1K\n", "2: MaxUse is '1K', but must be a size from 1M to 1T, such as 512M");
	refuses("CallGraph=dwarf\n",
		"2: CallGraph is 'dwarf', but must be tables, fp or no; they are found as callers "
		"in mperf.conf says");
	refuses("Unit=/system.slice/a\n", "2: Unit is '/system.slice/a', but must be the name of a "
					  "unit, such as ci-*.service; * and ? stand for any");
	refuses("Label=branch=a\nLabel=branch=b\n",
		"3: Label=branch is given twice, but a job has only one value of a label");
	refuses("Label=branch=a\\\n", "2: Label=branch ends with a backslash that nothing follows");
	refuses("Label=job\n",
		"2: Label must be KEY=VALUE: label 'job' is not of the form KEY=VALUE");
}

TEST(what_does_not_go_together_is_refused)
{
	refuses("", " it names neither a time nor jobs to record; set OnCalendar=, or Unit=, "
		    "Label= or Share=");
	refuses("Keep=1\n", " it names neither a time nor jobs to record; set OnCalendar=, or "
			    "Unit=, Label= or Share=");
	refuses("OnCalendar=02:00\nShare=5%\n",
		"3: it is for jobs, but OnCalendar= in line 2 is for the whole system; use two "
		"schedules");
	refuses("Unit=a\nLabel=a=b\n", "3: Label= selects jobs by label, but Unit= in line 2 "
				       "selects jobs of units; use two "
				       "schedules");
}

TEST(sections_that_are_wrong_are_refused)
{
	static const char before[] = "Unit=a\n", timer[] = "[Timer]\n",
			  twice[] = "[Schedule]\n\n[Schedule]\n";
	refuses_text(before, strlen(before), "x.schedule",
		"x.schedule:1: 'Unit' comes before any section; put [Schedule] on a line above it");
	refuses_text(timer, strlen(timer), "x.schedule",
		"x.schedule:1: unknown section [Timer]; a schedule has one, [Schedule]");
	refuses_text(twice, strlen(twice), "x.schedule",
		"x.schedule:3: section [Schedule] already began at line 1; put its keys there");
}

TEST(too_much_is_refused)
{
	char text[65537 + 16];
	memset(text, '\n', sizeof(text));
	refuses_text(text, sizeof(text), "x.schedule",
		"x.schedule: the file has more than 65536 bytes, which no schedule needs");
	memset(text, 'a', 300);
	text[300] = '\0';
	char lines[400];
	snprintf(lines, sizeof(lines), "Unit=%.300s\n", text);
	refuses(lines, "2: Unit has 300 bytes, but may have at most 255");
	*text = '\0';
	for (int i = 0; i < 9; i++)
		strcat(text, "OnCalendar=daily\n");
	refuses(text, "10: there are more than 8 OnCalendar=; use another schedule");
}

TEST(names_that_no_unit_can_have_are_refused)
{
	static const char *const bad[] = {"a b.schedule", "/f/-a.schedule", "a%.schedule",
		"\xc3\xa4.schedule", "a@b.schedule"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ck_assert_int_eq(parse("x", 1, bad[i]), SCHEDULE_WRONG);
		ck_assert_msg(strstr(error.text, "rename it") != NULL, "%s", error.text);
	}
	ck_assert_int_eq(parse("x", 1, "x.timer"), SCHEDULE_WRONG);
	ck_assert_ptr_nonnull(strstr(error.text, "does not end in .schedule"));
	ck_assert_int_eq(parse("x", 1, ".schedule"), SCHEDULE_WRONG);
}

/* --- the folder ------------------------------------------------------------------------------- */

static void put(const char *folder, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

TEST(a_file_that_is_wrong_costs_no_other)
{
	char folder[] = "/tmp/mperf-test-XXXXXX", path[256];
	struct schedule_list l;
	ck_assert_ptr_nonnull(mkdtemp(folder));
	put(folder, "b.schedule", "[Schedule]\nUnit=b\n");
	put(folder, "a.schedule", "[Schedule]\nOnCalendar=daily\n");
	put(folder, "wrong.schedule", "[Schedule]\nUnit=\n");
	put(folder, "masked.schedule", "");
	put(folder, "README", "not ours");
	put(folder, ".hidden.schedule", "not ours");
	snprintf(path, sizeof(path), "%s/dir.schedule", folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/pipe.schedule", folder);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(schedules_read(folder, &l), 0);
	ck_assert_uint_eq(l.n, 2);
	ck_assert_str_eq(l.schedule[0].name, "a");
	ck_assert_str_eq(l.schedule[1].name, "b");
	ck_assert_uint_eq(l.n_errors, 3);
	schedules_clear(&l);
	char command[300];
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

TEST(a_folder_that_is_not_there_has_no_schedules)
{
	struct schedule_list l;
	ck_assert_int_eq(schedules_read("/nonexistent/schedules.d", &l), 0);
	ck_assert_uint_eq(l.n + l.n_errors, 0);
	schedules_clear(&l);
	ck_assert_int_eq(schedules_read("/dev/null", &l), 0);
	ck_assert_uint_eq(l.n_errors, 1);
	schedules_clear(&l);
}
