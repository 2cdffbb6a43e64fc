/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/commands/job_pin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/commands/tables.h"
#include "client/show/say.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

int job_pin_selection(const char *text, struct selection *ret_selection)
{
	_cleanup_(freep) char *named = NULL;
	struct selection_fault fault = {"jobs are pinned by labels, and not by time or user"};
	struct selection s;
	bool is_named = !memchr(text, '=', strcspn(text, ","));
	if (is_named && asprintf(&named, LABEL_JOB "=%s", text) < 0)
		named = NULL;
	const char *meant = is_named ? named : text;
	int r = meant ? selection_parse(meant, (int64_t)clock_ns(CLOCK_REALTIME), &s, &fault)
		      : -ENOMEM;
	if (r == 0 && (s.n_labels == 0 || s.since_ns || s.until_ns || s.n_uids)) {
		selection_clear(&s);
		r = SELECTION_WRONG;
	}
	if (r < 0) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	if (r > 0) {
		say_failure(fault.text, "Write NAME, or KEY=VALUE[,KEY=VALUE...][,last=N]");
		return EXIT_USAGE;
	}
	*ret_selection = s;
	return 0;
}

int job_pin_ask(const struct options *o, Mperf__JobAction action)
{
	bool pins = action == MPERF__JOB_ACTION__JOB_PIN;
	const struct tables_heading headings[] = {
		{.table = "pin", .says = pins ? "Pinned" : "No longer pinned"}, {.table = NULL}};
	Mperf__JobRequest job = MPERF__JOB_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	struct selection s;
	int r = job_pin_selection(o->job, &s);
	if (r != 0)
		return r;
	job.action = action;
	job.label = s.label;
	job.n_label = s.n_labels;
	job.last = s.last;
	job.keep = o->keep;
	request.body_case = MPERF__REQUEST__BODY_JOB;
	request.job = &job;
	r = tables_ask(o, &request, headings);
	selection_clear(&s);
	return r;
}
