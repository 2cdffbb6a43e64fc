/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl report: a page of CPU time and waiting. It is asked for twice, since samples of CPU time and of waiting are
 * different events; where there are no waits, the page is without them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/measure/capture.h"
#include "client/options/command.h"
#include "client/report/gather.h"
#include "client/report/page.h"
#include "client/show/escape.h"
#include "client/show/page.h"
#include "client/show/reply.h"
#include "proto/base/memory.h"
#include "proto/syntax/event_name.h"
#include "proto/syntax/unit.h"

struct reporting {
	const struct options *options;
	struct source_request from;
	struct source source;
	struct profile profile; /* of the question under way */
	struct gathered gathered;
	struct say_progress progress;
	Mperf__Provenance *provenance; /* a copy, of CPU time */
	char *provenance_line, *title;
};

static int say_trouble(int r)
{
	if (r == PROFILE_TOO_LARGE)
		say_failure("the report is too large for a page",
			"Narrow it with --pid, --comm, --cpu, --since or --until");
	else if (r == PROFILE_MALFORMED)
		say_failure("mperfd sent a malformed profile",
			"Install mperfctl and mperfd of the same version");
	else
		say_failure("out of memory", "Free some memory, and try again");
	return EXIT_FAILED;
}

static int take_sample(void *userdata, const struct profile_sample *s)
{
	struct reporting *x = userdata;
	return profile_sample_is_counts(s) ? 0 : gather_sample(&x->gathered, &x->profile, s);
}

static int take_provenance(struct reporting *x, const Mperf__Provenance *p)
{
	x->provenance = reply_copy_provenance(p);
	x->provenance_line = reply_provenance_line(p);
	return x->provenance && x->provenance_line ? 0 : -ENOMEM;
}

static int take(void *userdata, const Mperf__Answer *a)
{
	struct reporting *x = userdata;
	int r = 0;
	if (a->body_case == MPERF__ANSWER__BODY_PROVENANCE && !x->provenance)
		r = take_provenance(x, a->provenance);
	else if (a->body_case == MPERF__ANSWER__BODY_PROFILE) {
		r = profile_add(&x->profile, a->profile, take_sample, x);
		say_progress(&x->progress, "reading samples", x->gathered.n_rows, 0);
	}
	if (r == 0)
		return 0;
	say_progress_end(&x->progress);
	say_trouble(r);
	return 1;
}

/* A refusal of mperfd: a page without waits is still a page. */
static void leave_out(void *userdata, const Mperf__Failure *f)
{
	(void)f;
	*(bool *)userdata = true;
}

struct asking {
	bool is_refused; /* first: leave_out has its address */
	struct reporting *reporting;
};

static int take_of(void *userdata, const Mperf__Answer *a)
{
	struct asking *q = userdata;
	return take(q->reporting, a);
}

/* Ask for an event; "": what was sampled. is_tried: a refusal is no failure. Returns the exit status. */
static int ask(struct reporting *x, const char *event, bool is_tried)
{
	struct asking q = {.reporting = x};
	Mperf__Filter filter;
	Mperf__ExportRequest report = MPERF__EXPORT_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_REPORT;
	request.report = &report;
	profile_clear(&x->profile);
	gather_next(&x->gathered);
	if (profile_init(&x->profile) < 0)
		return say_trouble(-ENOMEM);
	source_narrow(&x->source, &x->from, &request, &filter);
	filter.event = (char *)event;
	int exit_status =
		source_try(&x->source, &request, take_of, is_tried ? leave_out : NULL, &q);
	return q.is_refused ? 0 : exit_status;
}

static bool names_waiting(const struct options *o)
{
	return o->narrowing.of_event && event_name_is_waiting(o->narrowing.of_event);
}

/* CPU time and waiting, for which waiting for a CPU is an event of its own; or the one event that the user named. */
static int ask_all(struct reporting *x)
{
	const char *named = names_waiting(x->options) ? NULL : x->options->narrowing.of_event;
	say_progress_start(&x->progress);
	int exit_status = ask(x, named ? named : "", false);
	const bool has_waits = !named && x->gathered.unit == MPERF__UNIT__UNIT_NS;
	if (exit_status == 0 && has_waits)
		exit_status = ask(x, "waiting", true);
	if (exit_status == 0 && has_waits)
		exit_status = ask(x, "waiting:hart", true);
	say_progress_end(&x->progress);
	return exit_status;
}

static int write_page(void *userdata, FILE *out)
{
	const struct reporting *x = userdata;
	static Mperf__Provenance nothing = MPERF__PROVENANCE__INIT;
	const struct report_page page = {
		.title = x->title,
		.first = names_waiting(x->options) ? x->options->narrowing.of_event : NULL,
		.samples = &x->gathered,
		.provenance = x->provenance ? x->provenance : &nothing,
		.provenance_line = x->provenance_line,
	};
	return report_page_write(&page, out);
}

static void say_written(const struct reporting *x, const char *path)
{
	struct stat st;
	char size[UNIT_TEXT_BYTES] = "";
	if (stat(path, &st) == 0)
		unit_text(MPERF__UNIT__UNIT_BYTES, (double)st.st_size, size);
	say_note("wrote %s (%s); %s", path, size, x->provenance_line ? x->provenance_line : "");
}

static int run(struct reporting *x)
{
	const char *path = x->options->output ? x->options->output : "report.html";
	x->title = source_title(x->options, x->source.kept, "Report");
	if (!x->title || gather_init(&x->gathered) < 0)
		return say_trouble(-ENOMEM);
	int exit_status = ask_all(x);
	if (exit_status != 0)
		return exit_status;
	if (gather_finish(&x->gathered) < 0)
		return say_trouble(-ENOMEM);
	if (x->gathered.n_rows == 0)
		say_note("no samples match; %s",
			x->source.kept ? "choose another time with --since and --until, or relax "
					 "the filters"
				       : "record longer, raise -F, or relax the filters");
	exit_status = page_save(path, x->options->force, write_page, x);
	if (exit_status == 0 && strcmp(path, "-") != 0)
		say_written(x, path);
	return exit_status;
}

int client_report(const struct options *o)
{
	struct reporting x = {.options = o, .from = source_request_of(o)};
	int exit_status;
	if (source_start(&x.source, &x.from, &exit_status) == 0)
		exit_status = run(&x);
	source_clear(&x.source);
	profile_clear(&x.profile);
	gather_clear(&x.gathered);
	free(x.title);
	free(x.provenance_line);
	if (x.provenance)
		mperf__provenance__free_unpacked(x.provenance, NULL);
	return exit_status;
}
