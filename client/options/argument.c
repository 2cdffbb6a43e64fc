/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Lists and words; arguments that are not options, and files that are read, whose meaning depends on the
 * command.
 */
#include <argp.h>
#include <string.h>

#include "client/options/options_private.h"
#include "proto/syntax/nearest.h"

/* The word before is the option, unless the value is a part of its word. A long one is named in full. */
void options_note_typed(struct parse *p, int key, const char *arg, const struct argp_state *state)
{
	const char *word = state->next > 0 ? state->argv[state->next - 1] : "";
	const bool apart = arg && (arg < word || arg > word + strlen(word));
	if ((apart || arg == word) && state->next > 1)
		word = state->argv[state->next - 2];
	snprintf(p->typed, sizeof(p->typed), "-%c", key);
	for (size_t i = 0; strncmp(word, "--", 2) == 0 && i < n_option_rows; i++) {
		const struct option_row *row = &option_rows[i];
		if (row->key == key && row->name && options_takes(p->command, row))
			snprintf(p->typed, sizeof(p->typed), "--%s", row->name);
	}
}

int options_push(struct parse *p, char **list, size_t *n, char *value)
{
	if (*n == OPTIONS_LIST_MAX)
		return options_wrong(
			p, "an option is repeated more than %d times", OPTIONS_LIST_MAX);
	if (!*value)
		return options_wrong(p, "an option or an argument is empty");
	list[(*n)++] = value;
	return 0;
}

/* One of the words, NULL-terminated. */
int options_take_word(
	struct parse *p, const char *option, const char *const *words, char *arg, char **ret_word)
{
	char list[128] = "";
	size_t n = 0;
	while (words[n])
		n++;
	for (size_t i = 0, at = 0; i < n; i++) {
		if (strcmp(arg, words[i]) == 0) {
			*ret_word = arg;
			return 0;
		}
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
			i == 0       ? ""
			: i + 1 == n ? " or "
				     : ", ",
			words[i]);
	}
	const char *near = nearest_name(arg, words, n);
	return options_wrong(p, "%s takes %s, not '%.100s'%s%s%s", option, list, arg,
		near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* job [run NAME -- CMD... | start NAME | end | pin SELECTION | unpin SELECTION | list] */
static int take_job(struct parse *p, char *arg, struct argp_state *state)
{
	static const char *const words[] = {"run", "start", "end", "pin", "unpin", "list", NULL};
	struct options *o = p->o;
	if (!o->topic)
		return options_take_word(p, "job", words, arg, &o->topic);
	bool runs = strcmp(o->topic, "run") == 0;
	bool named = runs || strcmp(o->topic, "start") == 0 || strcmp(o->topic, "pin") == 0 ||
		     strcmp(o->topic, "unpin") == 0;
	if (!o->job && named) {
		o->job = arg;
		return 0;
	}
	if (!runs)
		return options_wrong(p, "'%.100s' is one argument too many", arg);
	o->command_line = state->argv + state->next - 1;
	state->next = state->argc;
	return 0;
}

/* schedule [list | check [FILE...] | run NAME | get RECORDING] */
static int take_schedule(struct parse *p, char *arg)
{
	static const char *const words[] = {"list", "check", "run", "get", NULL};
	struct options *o = p->o;
	if (!o->topic)
		return options_take_word(p, "schedule", words, arg, &o->topic);
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
	bool reads = p->o->loops || p->command == MPERF__REQUEST__BODY_HOTSPOTS ||
		     p->command == MPERF__REQUEST__BODY_FLAMEGRAPH ||
		     p->command == MPERF__REQUEST__BODY_EXPORT;

	if (p->command == MPERF__REQUEST__BODY_LIST && !p->o->topic) {
		p->o->topic = arg;
		return 0;
	}
	if (p->command == MPERF__REQUEST__BODY_ROOFS && !p->o->topic)
		return options_take_word(
			p, "roofs", (const char *const[]){"measure", NULL}, arg, &p->o->topic);
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
	p->o->command_line = state->argv + state->next - 1;
	state->next = state->argc;
	return 0;
}

/* Only roofline takes two; else the last one counts. */
int options_take_input(struct parse *p, char *arg)
{
	bool compares = p->command == MPERF__REQUEST__BODY_ROOFLINE;
	if (!*arg)
		return options_wrong(p, "-i needs the name of a recording");
	if (compares && p->o->earlier)
		return options_wrong(p, "-i takes at most two files here, not '%.100s' too", arg);
	if (compares)
		p->o->earlier = p->o->input;
	p->o->input = arg;
	return 0;
}
