/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl schedule: mperfd knows what ran, systemd when timers come next; both are asked. check needs
 * neither: it reads files as mperfd and the generator do, and asks systemd-analyze about times.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/commands/tables.h"
#include "client/measure/signals.h"
#include "client/measure/systemd.h"
#include "client/options/command.h"
#include "client/show/escape.h"
#include "client/show/outfile.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "client/wire/ask.h"
#include "proto/base/memory.h"
#include "proto/syntax/schedule.h"
#include "proto/syntax/unit.h"

#define RECORDING_DEFAULT "mperf.mprf"
/* Bytes of a schedule in words. */
#define SAYS_BYTES 4096

static void fill(Mperf__Request *request, Mperf__ScheduleRequest *schedule,
	Mperf__ScheduleAction action, char *name)
{
	*request = (Mperf__Request)MPERF__REQUEST__INIT;
	*schedule = (Mperf__ScheduleRequest)MPERF__SCHEDULE_REQUEST__INIT;
	schedule->action = action;
	if (name)
		schedule->name = name;
	request->body_case = MPERF__REQUEST__BODY_SCHEDULE;
	request->schedule = schedule;
}

/* --- list ------------------------------------------------------------------------------------- */

/* Format a time as the daemon does; "" if there is none. */
static void say_time(int64_t ns, char text[static 40])
{
	struct tm tm;
	time_t seconds = (time_t)(ns / 1000000000);
	*text = '\0';
	size_t n = ns > 0 && localtime_r(&seconds, &tm)
			   ? strftime(text, 39, "%Y-%m-%dT%H:%M:%S%z", &tm)
			   : 0;
	if (n < 3)
		return;
	memmove(text + n - 1, text + n - 2, 3);
	text[n - 2] = ':';
}

/* 0, SYSTEMD_*, -errno. */
static int add_next(struct reply *table, size_t row, int column, const char *name)
{
	char unit[SCHEDULE_NAME_BYTES_MAX + 32], text[40];
	int64_t ns = 0;
	snprintf(unit, sizeof(unit), "mperf-schedule-%.64s.timer", name);
	int r = systemd_timer_next(unit, &ns);
	say_time(ns, text);
	return r == 0 && *text ? reply_set_text(table, row, column, text) : r;
}

static int add_times(struct replies *replies)
{
	static const Mperf__Column next = {.base = {&mperf__column__descriptor, 0, NULL},
		.name = "next",
		.title = "Next",
		.unit = MPERF__UNIT__UNIT_TIME};
	struct reply *table = (struct reply *)replies_table(replies, "schedule");
	int column, kind = table ? reply_column(table, "kind") : -1;
	int name = table ? reply_column(table, "schedule") : -1;
	int r = table ? reply_extend(table, &next, &column) : 0;
	for (size_t i = 0; table && i < table->n_rows && r == 0; i++) {
		const char *of = reply_text(table, i, kind), *is = reply_text(table, i, name);
		if (of && is && strcmp(of, "time") == 0)
			r = add_next(table, i, column, is);
	}
	if (r > 0)
		say_note("systemd does not answer, so the next times of schedules are not known");
	return r == -ENOMEM ? r : 0;
}

static int list(const struct options *o)
{
	static const char *const spare[] = {"uid", "times", "hz", NULL};
	static const struct tables_heading headings[] = {
		{.table = "schedule", .says = "Schedules"},
		{.table = "run", .says = "Recorded and skipped", .spare = spare},
		{.table = "fault", .says = "Left out"},
		{.table = NULL},
	};
	Mperf__Request request;
	Mperf__ScheduleRequest schedule;
	fill(&request, &schedule, MPERF__SCHEDULE_ACTION__SCHEDULE_LIST, NULL);
	return tables_ask_changed(
		o, &request, headings, &(struct tables_change){.amend = add_times});
}

/* --- check ------------------------------------------------------------------------------------ */

/* Print systemd's interpretation of each time. False: one is not valid. */
static bool check_times(const struct schedule *s)
{
	bool good = true;
	for (size_t i = 0; i < s->n_calendars; i++) {
		char text[SYSTEMD_TEXT_BYTES] = "", what[2 * SYSTEMD_TEXT_BYTES];
		int r = systemd_check_calendar(s->calendar[i], text);
		if (r == 0) {
			printf("  %s: ", s->calendar[i]);
			fputs(*text ? "next " : "never again", stdout);
			escape_terminal(stdout, text);
			fputc('\n', stdout);
		} else if (r == SYSTEMD_REFUSED) {
			snprintf(what, sizeof(what),
				"schedule %s: systemd does not take OnCalendar=%s: %s", s->name,
				s->calendar[i], text);
			say_failure(what, "systemd.time(7) says how times are written");
			good = false;
		} else {
			say_note("the time of schedule %s was not checked, since systemd-analyze "
				 "cannot be run",
				s->name);
		}
	}
	return good;
}

static bool check(const struct schedule *s)
{
	char says[SAYS_BYTES];
	printf("%s: ", s->name);
	escape_terminal(stdout, schedule_says(s, says, sizeof(says)));
	fputc('\n', stdout);
	fflush(stdout);
	return check_times(s);
}

static bool say_wrong(const struct schedule_error *error)
{
	say_failure(error->text, "mperf-schedule(5) lists the allowed values");
	return false;
}

static bool check_file(const char *path)
{
	struct schedule s;
	struct schedule_error error;
	int r = schedule_read(path, &s, &error);
	if (r == SCHEDULE_MASKED)
		printf("%s: empty file, so there is no schedule of this name\n", path);
	else if (r == SCHEDULE_WRONG && access(path, F_OK) != 0)
		say_failure(error.text,
			"Name another file; without a name, check reads all of " SCHEDULES_PATH);
	else if (r == SCHEDULE_WRONG)
		return say_wrong(&error);
	else if (r < 0)
		ask_say_broken("reading", r);
	return r == 0 ? check(&s) : r == SCHEDULE_MASKED;
}

static bool check_folder(void)
{
	struct schedule_list l;
	bool good = true;
	int r = schedules_read(SCHEDULES_PATH, &l);
	if (r < 0) {
		ask_say_broken("reading", r);
		return false;
	}
	for (size_t i = 0; i < l.n; i++)
		good &= check(&l.schedule[i]);
	for (size_t i = 0; i < l.n_errors; i++)
		good &= say_wrong(&l.error[i]);
	if (l.n + l.n_errors == 0)
		say_note("there are no schedules in " SCHEDULES_PATH);
	schedules_clear(&l);
	return good;
}

static int check_all(const struct options *o)
{
	bool good = true;
	for (size_t i = 0; i < o->n_subjects; i++)
		good &= check_file(o->subject[i]);
	if (o->n_subjects == 0)
		good = check_folder();
	return fflush(stdout) == 0 && good ? EXIT_DONE : EXIT_FAILED;
}

/* --- run -------------------------------------------------------------------------------------- */

struct run_state {
	struct ask ask;
	struct reply reply;
	int signal_fd;
};

static int take_run(void *userdata, const Mperf__Answer *a)
{
	struct run_state *s = userdata;
	if (a->body_case == MPERF__ANSWER__BODY_READY)
		return 0;
	return reply_take(&s->reply, a);
}

static int on_signal(void *userdata)
{
	struct run_state *s = userdata;
	return signals_take(s->signal_fd) ? ask_finish(&s->ask) : 0;
}

/* For a terminal, and for the journal of the timer's service. */
static void say_run(const struct reply *r, const char *name)
{
	const char *result = reply_text(r, 0, reply_column(r, "result"));
	const char *why = reply_text(r, 0, reply_column(r, "why"));
	const char *recording = reply_text(r, 0, reply_column(r, "recording"));
	double samples = 0;
	char n[UNIT_TEXT_BYTES];
	(void)reply_number(r, 0, reply_column(r, "samples"), &samples);
	unit_count_text((int64_t)samples, n);
	if (recording)
		say_note("schedule %s %s: %s samples in %s%s%s", name, result ? result : "ended", n,
			recording, why ? "; " : "", why ? why : "");
	else {
		char text[512];
		snprintf(text, sizeof(text), "schedule %s %s: %s", name, result ? result : "ended",
			why ? why : "mperfd gave no reason");
		say_failure(text, NULL);
	}
}

static int run(const struct options *o)
{
	struct run_state s = {.signal_fd = -1};
	struct link link;
	Mperf__Request request;
	Mperf__ScheduleRequest schedule;
	int r = link_open_service(&link);
	if (r == LINK_ABSENT)
		link_say_no_service("nothing is recorded");
	if (r != 0)
		return EXIT_FAILED;
	if (signals_block(&s.signal_fd) < 0) {
		link_close(&link);
		return EXIT_FAILED;
	}
	s.ask = (struct ask){.link = &link, .answer = take_run, .userdata = &s};
	for (size_t i = 1; i < ASK_WATCHES_MAX; i++)
		s.ask.watch[i].fd = -1;
	s.ask.watch[0] = (struct ask_watch){.fd = s.signal_fd, .ready = on_signal};
	fill(&request, &schedule, MPERF__SCHEDULE_ACTION__SCHEDULE_RUN, o->subject[0]);
	r = ask_run(&s.ask, &request);
	if (r < 0)
		ask_say_broken("recording", r);
	else if (r == 0 && s.reply.n_rows > 0)
		say_run(&s.reply, o->subject[0]);
	reply_clear(&s.reply);
	signals_unblock(s.signal_fd);
	link_close(&link);
	return r == 0 ? s.ask.status : r > 0 ? s.ask.exit_status : EXIT_FAILED;
}

/* --- get -------------------------------------------------------------------------------------- */

static int take_bytes(void *userdata, const Mperf__Answer *a)
{
	struct outfile *out = userdata;
	if (a->body_case != MPERF__ANSWER__BODY_BYTES)
		return 0;
	int r = outfile_write(out, a->bytes->data.data, a->bytes->data.len);
	if (r < 0)
		print_say_failed(out->path, r, "name a file on another disc with -o");
	return r < 0 ? 1 : 0;
}

static int get_into(struct outfile *out, const char *path, char *name)
{
	char bytes[UNIT_TEXT_BYTES];
	struct link link;
	Mperf__Request request;
	Mperf__ScheduleRequest schedule;
	int r = link_open_service(&link);
	if (r == LINK_ABSENT)
		link_say_no_service("no recording was named");
	if (r != 0)
		return EXIT_FAILED;
	struct ask ask = {.link = &link, .answer = take_bytes, .userdata = out};
	for (size_t i = 0; i < ASK_WATCHES_MAX; i++)
		ask.watch[i].fd = -1;
	fill(&request, &schedule, MPERF__SCHEDULE_ACTION__SCHEDULE_GET, name);
	r = ask_run(&ask, &request);
	link_close(&link);
	if (r < 0)
		ask_say_broken("reading the recording", r);
	if (r != 0)
		return r > 0 && ask.exit_status ? ask.exit_status : EXIT_FAILED;
	uint64_t n = out->bytes;
	r = outfile_commit(out);
	if (r < 0) {
		print_say_failed(path, r, "name another file with -o");
		return EXIT_FAILED;
	}
	unit_text(MPERF__UNIT__UNIT_BYTES, (double)n, bytes);
	say_note("wrote %s (%s)", path, bytes);
	return EXIT_DONE;
}

static int get(const struct options *o)
{
	const char *path = o->output ? o->output : RECORDING_DEFAULT;
	struct outfile out = {.fd = -1};
	char what[512];
	int r = outfile_open(&out, path, o->force ? OUTFILE_OVER_FORCE : OUTFILE_OVER_SEGMENT);
	if (r == OUTFILE_FOREIGN) {
		snprintf(what, sizeof(what), "'%.300s' exists and is not an mperf recording", path);
		say_failure(what, "Name another file with -o, or overwrite it with --force");
	} else if (r < 0) {
		print_say_failed(path, r, "name a file in a folder that you may write to with -o");
	}
	if (r != 0)
		return EXIT_FAILED;
	int exit_status = get_into(&out, path, o->subject[0]);
	outfile_clear(&out);
	return exit_status;
}

/* ---------------------------------------------------------------------------------------------- */

int client_schedule(const struct options *o)
{
	if (!o->topic || strcmp(o->topic, "list") == 0)
		return list(o);
	if (strcmp(o->topic, "check") == 0)
		return check_all(o);
	return strcmp(o->topic, "run") == 0 ? run(o) : get(o);
}
