/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Arguments that are not options, whose meaning depends on the command.
 */
#include <argp.h>
#include <string.h>

#include "client/options/options_private.h"

/* job [run NAME -- CMD... | start NAME | end | pin SELECTION | unpin SELECTION | report [SELECTION] | list] */
static int take_job(struct parse *p, char *arg, struct argp_state *state)
{
	struct options *o = p->o;
	if (!o->topic)
		return options_choose_word(p, "job", JOB_TOPICS, arg, &o->topic);
	bool runs = strcmp(o->topic, "run") == 0;
	bool named = runs || strcmp(o->topic, "start") == 0 || strcmp(o->topic, "pin") == 0 ||
		     strcmp(o->topic, "unpin") == 0 || strcmp(o->topic, "report") == 0;
	if (!o->job && named) {
		o->job = arg;
		return 0;
	}
	if (!runs)
		return options_wrong(p, "'%.100s' is one argument too many", arg);
	o->target.command_line = state->argv + state->next - 1;
	state->next = state->argc;
	return 0;
}

/* schedule [list | check [FILE...] | run NAME | get RECORDING] */
static int take_schedule(struct parse *p, char *arg)
{
	struct options *o = p->o;
	if (!o->topic)
		return options_choose_word(p, "schedule", SCHEDULE_TOPICS, arg, &o->topic);
	bool one = strcmp(o->topic, "run") == 0 || strcmp(o->topic, "get") == 0;
	if (strcmp(o->topic, "list") == 0 || (one && o->n_subjects > 0))
		return options_wrong(p, "'%.100s' is one argument too many", arg);
	return options_push(p, o->subject, &o->n_subjects, arg);
}

/* A non-option argument: a topic, or the command to run with all that follows. */
int options_take_argument(struct parse *p, char *arg, struct argp_state *state)
{
	bool runs = p->command == MPERF__REQUEST__BODY_RECORD ||
		    p->command == MPERF__REQUEST__BODY_STAT ||
		    p->command == MPERF__REQUEST__BODY_TOPDOWN;
	bool reads = p->o->sampling.loops || options_reads_samples(p->command);

	if (p->command == MPERF__REQUEST__BODY_LIST && !p->o->topic) {
		p->o->topic = arg;
		return 0;
	}
	if (p->command == MPERF__REQUEST__BODY_ROOFS && !p->o->topic)
		return options_choose_word(p, "roofs", ROOFS_TOPICS, arg, &p->o->topic);
	if (p->command == MPERF__REQUEST__BODY_JOB)
		return take_job(p, arg, state);
	if (p->command == MPERF__REQUEST__BODY_SCHEDULE)
		return take_schedule(p, arg);
	if (p->command == MPERF__REQUEST__BODY_DIFF && p->o->n_baselines == 0)
		return options_push(p, p->o->baseline, &p->o->n_baselines, arg);
	if (p->command == MPERF__REQUEST__BODY_DIFF && p->o->n_candidates == 0)
		return options_push(p, p->o->candidate, &p->o->n_candidates, arg);
	if (p->command == MPERF__REQUEST__BODY_GATE)
		return options_wrong(p,
			"gate takes its sides with --baseline and --candidate, not '%.100s' alone",
			arg);
	if (!runs && !reads)
		return options_wrong(p, "'%.100s' is one argument too many", arg);
	if (reads && !state->quoted)
		return options_wrong(p,
			"'%.100s' is not an option: use -i %.100s to read it, -- %.100s to run it",
			arg, arg, arg);
	p->o->target.command_line = state->argv + state->next - 1;
	state->next = state->argc;
	return 0;
}
