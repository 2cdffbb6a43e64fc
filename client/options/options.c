/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * argp walks the arguments; the row of each option says how its value is stored (value.c).
 */
#include "client/options/options.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/options/options_private.h"
#include "proto/base/memory.h"

#define ROWS_DEFAULT 30

/* Note the option as typed, for errors that name it: the previous word, unless the value is part of
 * the same word. Long options are written in full. */
static void note_typed(struct parse *p, const struct option_row *row, const char *arg)
{
	const struct argp_state *state = p->state;
	const char *word = state->next > 0 ? state->argv[state->next - 1] : "";
	const bool apart = arg && (arg < word || arg > word + strlen(word));
	if ((apart || arg == word) && state->next > 1)
		word = state->argv[state->next - 2];
	if (row->name && strncmp(word, "--", 2) == 0)
		snprintf(p->typed, sizeof(p->typed), "--%s", row->name);
	else
		snprintf(p->typed, sizeof(p->typed), "-%c", row->letter);
}

/* Options that set the same member count as one: the last. */
static void note_given(struct parse *p, const struct option_row *row, const char *arg)
{
	size_t i = 0;
	while (i < p->n_given && p->given[i].row->store.field != row->store.field)
		i++;
	p->n_given += i == p->n_given;
	p->given[i] = (struct given){.row = row, .value = arg};
	memcpy(p->given[i].typed, p->typed, sizeof(p->typed));
}

static error_t take(int key, char *arg, struct argp_state *state)
{
	struct parse *p = state->input;
	if (key == ARGP_KEY_ARG)
		return options_take_argument(p, arg, state);
	if (key == ARGP_KEY_ERROR)
		p->stopped = state->next;
	const struct option_row *row = options_row(p->command, key);
	if (!row)
		return ARGP_ERR_UNKNOWN;
	p->state = state;
	note_typed(p, row, arg);
	int r = options_store(p, row, arg);
	if (r == 0)
		note_given(p, row, arg);
	return r;
}

int options_parse(
	Mperf__Request__BodyCase command, int argc, char **argv, struct options *ret_options)
{
	struct argp_option list[OPTION_ROWS_MAX] = {0};
	_cleanup_(freep) struct options *o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->sampling.stack = MPERF__STACK_KIND__STACK_FP;
	bool top = command == MPERF__REQUEST__BODY_TOP;
	bool blocks = command == MPERF__REQUEST__BODY_BLOCKS;
	o->limit = top || blocks ? 0 : ROWS_DEFAULT;
	o->one_in = 1;
	o->sampling.loops = blocks || command == MPERF__REQUEST__BODY_ROOFLINE ||
			    command == MPERF__REQUEST__BODY_PARALLEL;
	o->narrowing.gives_labels =
		command == MPERF__REQUEST__BODY_RECORD || command == MPERF__REQUEST__BODY_JOB;
	o->sampling.callers = command == MPERF__REQUEST__BODY_PARALLEL;

	struct parse p = {.command = command, .o = o};
	const struct argp argp = {.options = list, .parser = take};
	options_fill(command, list);
	int r = argp_parse(&argp, argc, argv,
		ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_IN_ORDER, NULL, &p);
	if (r == ENOMEM)
		return -ENOMEM;
	if (p.helped)
		return OPTIONS_HELPED;
	if (r != 0 && !p.said)
		options_slip(&p, argc, argv);
	if (command == MPERF__REQUEST__BODY_RECORD && o->narrowing.since_ns)
		o->narrowing.gives_labels = false; /* it saves what has its labels */
	if (o->from && strcmp(o->from, "counters") == 0)
		o->sampling.loops = false;
	o->sampling.of_code = o->from && strcmp(o->from, "code") == 0;
	o->chooses = options_given(&p, "loops") || options_given(&p, "sample");
	o->pins = options_given(&p, "pin");
	if (r == 0)
		r = options_show_event(&p);
	if (r != 0 || options_check(&p) != 0)
		return OPTIONS_USAGE;
	options_place_answer(&p);
	if (o->per_process || o->per_cgroup)
		o->by = (char *)(o->per_process ? "process" : "cgroup");
	*ret_options = *o;
	return 0;
}
