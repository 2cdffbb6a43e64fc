/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What -e and -o mean, which depends on what else was given.
 */
#include <string.h>

#include "client/options/options_private.h"
#include "proto/syntax/event_name.h"

int options_show_event(struct parse *p)
{
	struct options *o = p->o;
	const bool reads = options_reads_samples(p->command);
	const bool kept =
		o->input || o->narrowing.since_ns || o->narrowing.until_ns ||
		/* threads that wait are looked for along with samples, and need not be asked for */
		(o->sampling.n_events == 1 && event_name_is_waiting(o->sampling.event[0]));
	if (!reads || o->sampling.n_events == 0 ||
		(!kept && (o->target.all || o->target.n_pids || o->target.command_line)))
		return 0;
	if (o->sampling.n_events > 1)
		return options_wrong(p, "one event is shown at a time: give -e once");
	o->narrowing.of_event = o->sampling.event[0];
	o->sampling.n_events = 0;
	return 0;
}

/* Commands whose -o names a recording, a picture or another format, which they write themselves. */
#define WRITES_ITSELF                                                                              \
	(COMMAND_BIT(RECORD) | COMMAND_BIT(FLAMEGRAPH) | COMMAND_BIT(REPORT) |                     \
		COMMAND_BIT(EXPORT) | COMMAND_BIT(SCHEDULE) | COMMAND_BIT(STAT))
#define DRAWS (COMMAND_BIT(ROOFLINE) | COMMAND_BIT(TOPDOWN))

void options_place_answer(struct parse *p)
{
	struct options *o = p->o;
	const uint32_t bit = 1u << p->command;
	const bool is_text = o->look.json || o->look.csv || o->look.raw;
	const bool by_task = o->per_process || o->per_cgroup;
	const bool is_picture = bit & DRAWS && o->output && !is_text;
	if ((!(bit & WRITES_ITSELF) && !is_picture) || (bit & COMMAND_BIT(STAT) && by_task)) {
		o->look.answer = o->output;
		o->output = NULL;
	}
	const bool is_stdout =
		o->output ? strcmp(o->output, "-") == 0
			  : o->folded || !(bit & (COMMAND_BIT(FLAMEGRAPH) | COMMAND_BIT(REPORT)));
	o->look.answers_on_stdout = bit & COMMAND_BIT(STAT) ? by_task || (o->output && is_stdout)
				    : bit & COMMAND_BIT(RECORD) ? o->output && is_stdout
				    : bit & COMMAND_BIT(JOB)    ? false
				    : is_picture                ? is_stdout || o->plot
								: is_stdout;
}
