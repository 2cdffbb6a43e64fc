/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Text becomes a member of struct options. One function per kind of value serves all options of that
 * kind, since the row says which member; a few options have a grammar, and thus a kind, of their own.
 */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/options/options_private.h"
#include "client/show/say.h"
#include "proto/base/clock.h"
#include "proto/syntax/label.h"
#include "proto/syntax/nearest.h"
#include "proto/syntax/unit.h"

#define NS_PER_MS 1000000ull
#define WORDS_MAX 16
#define WORDS_BYTES_MAX 128

/* The member of struct options that the row names. */
static void *member(struct parse *p, const struct option_row *row)
{
	return (char *)p->o + row->store.field;
}

static int take_flag(struct parse *p, const struct option_row *row, char *arg)
{
	(void)arg;
	*(bool *)member(p, row) = true;
	return 0;
}

static int take_string(struct parse *p, const struct option_row *row, char *arg)
{
	if (row->store.wants && !*arg)
		return options_wrong(p, "%s needs %s", p->typed, row->store.wants);
	*(char **)member(p, row) = arg;
	return 0;
}

int options_choose_word(
	struct parse *p, const char *what, const char *words, char *arg, char **ret_word)
{
	char buffer[WORDS_BYTES_MAX], list[WORDS_BYTES_MAX] = "", *rest;
	const char *name[WORDS_MAX];
	size_t n = 0, at = 0;
	snprintf(buffer, sizeof(buffer), "%s", words);
	for (char *word = strtok_r(buffer, " ", &rest); word && n < WORDS_MAX;
		word = strtok_r(NULL, " ", &rest))
		name[n++] = word;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(arg, name[i]) == 0) {
			*ret_word = arg;
			return 0;
		}
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
			i == 0       ? ""
			: i + 1 == n ? " or "
				     : ", ",
			name[i]);
	}
	const char *near = nearest_name(arg, name, n);
	return options_wrong(p, "%s takes %s, not '%.100s'%s%s%s", what, list, arg,
		near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static int take_word(struct parse *p, const struct option_row *row, char *arg)
{
	return options_choose_word(p, p->typed, row->store.words, arg, member(p, row));
}

/* A whole decimal number. */
static bool number(const char *text, uint64_t max, uint64_t *ret_value)
{
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || *end || value > max)
		return false;
	*ret_value = value;
	return true;
}

static int take_number(struct parse *p, const struct option_row *row, char *arg)
{
	const struct option_store *s = &row->store;
	uint64_t value;
	if (!number(arg, s->most, &value) || value < s->least)
		return options_wrong(p, "%s takes a number from %u to %u, not '%.100s'", p->typed,
			s->least, s->most, arg);
	*(uint32_t *)member(p, row) = (uint32_t)value;
	return 0;
}

static int take_share(struct parse *p, const struct option_row *row, char *arg)
{
	uint32_t *ppm = member(p, row);
	if (unit_parse_share(arg, ppm) != 0 || *ppm == 0)
		return options_wrong(p,
			"%s takes a share from 0.0001%% to 100%%, such as 5%%, not '%.100s'",
			p->typed, arg);
	return 0;
}

static int take_duration(struct parse *p, const struct option_row *row, char *arg)
{
	uint64_t *ns = member(p, row);
	if (unit_parse_duration(arg, ns) != 0 || *ns == 0)
		return options_wrong(
			p, "%s takes a time like 10s, 500ms or 2m, not '%.100s'", p->typed, arg);
	return 0;
}

static int take_time(struct parse *p, const struct option_row *row, char *arg)
{
	if (unit_parse_time(arg, (int64_t)clock_ns(CLOCK_REALTIME), member(p, row)) != 0)
		return options_wrong(p,
			"%s takes a time like 10:30, yesterday, \"2026-11-21 10:00\" or \"5 "
			"minutes ago\", not '%.100s'",
			p->typed, arg);
	return 0;
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

/* The length of the list that the row names. */
static size_t *length(struct parse *p, const struct option_row *row)
{
	return (size_t *)((char *)p->o + row->store.count);
}

static int take_list(struct parse *p, const struct option_row *row, char *arg)
{
	return options_push(p, member(p, row), length(p, row), arg);
}

static int take_names(struct parse *p, const struct option_row *row, char *arg)
{
	char *rest;
	for (char *name = strtok_r(arg, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		int r = options_push(p, member(p, row), length(p, row), name);
		if (r != 0)
			return r;
	}
	return *length(p, row) > 0
		       ? 0
		       : options_wrong(p, "%s takes names of %s", p->typed, row->store.wants);
}

/* --- options with a grammar of their own ------------------------------------------------------ */

/* Call `one` for each part between the commas. */
static int each_part(struct parse *p, const char *list, int (*one)(struct parse *, const char *))
{
	int r = 0;
	do {
		char part[64];
		size_t n = strcspn(list, ",");
		snprintf(part, sizeof(part), "%.*s", (int)n, list);
		r = one(p, part);
		list += n;
	} while (r == 0 && *list++ == ',');
	return r;
}

static int take_pid(struct parse *p, const char *part)
{
	uint64_t pid;
	if (!number(part, INT32_MAX, &pid) || pid == 0)
		return options_wrong(p, "--pid takes process ids, not '%s'", part);
	if (p->o->target.n_pids == OPTIONS_LIST_MAX)
		return options_wrong(p, "--pid takes at most %d processes", OPTIONS_LIST_MAX);
	p->o->target.pid[p->o->target.n_pids++] = (int32_t)pid;
	return 0;
}

static int take_pids(struct parse *p, const struct option_row *row, char *arg)
{
	(void)row;
	return each_part(p, arg, take_pid);
}

static int take_range(struct parse *p, const char *part)
{
	uint64_t first, last;
	char from[64];
	snprintf(from, sizeof(from), "%s", part);
	char *dash = strchr(from, '-');
	if (dash)
		*dash++ = '\0';

	if (!number(from, OPTIONS_CPUS_MAX - 1, &first) ||
		!number(dash ? dash : from, OPTIONS_CPUS_MAX - 1, &last) || last < first)
		return options_wrong(p, "--cpu takes a list like 0-3,7 of harts below %d, not '%s'",
			OPTIONS_CPUS_MAX, part);
	for (; first <= last; first++) {
		if (p->o->target.n_cpus == OPTIONS_CPUS_MAX)
			return options_wrong(p, "--cpu names more than %d harts", OPTIONS_CPUS_MAX);
		p->o->target.cpu[p->o->target.n_cpus++] = (uint32_t)first;
	}
	return 0;
}

static int take_cpus(struct parse *p, const struct option_row *row, char *arg)
{
	(void)row;
	return each_part(p, arg, take_range);
}

static int take_period(struct parse *p, const struct option_row *row, char *arg)
{
	(void)row;
	if (!number(arg, INT64_MAX, &p->o->sampling.period) || p->o->sampling.period == 0)
		return options_wrong(p,
			"%s takes a number of occurrences, such as 100000, not '%.100s'", p->typed,
			arg);
	return 0;
}

/* -I 500ms, -I 500 (milliseconds, as perf has it), -d 2 (seconds, as top and watch have it). */
static int take_interval(struct parse *p, const struct option_row *row, char *arg)
{
	static const struct {
		uint32_t command;
		uint64_t min_ms, max_ms;
		const char *says;
	} ranges[] = {
		{COMMAND_BIT(STAT), 1, 86400000, "1ms to 1d"},
		/* the daemon's shortest window; how far back queries look by default */
		{COMMAND_BIT(TIMELINE), 10, 86400000, "10ms to 1d"},
		{COMMAND_BIT(BLOCKS), 100, 3600000, "100ms to 1h"},
		/* nobody reads faster */
		{UINT32_MAX, 100, 60000, "100ms to 60s"},
	};
	size_t i = 0;
	uint64_t ns;
	while (!(ranges[i].command & 1u << p->command))
		i++;
	bool ok = unit_parse_duration(arg, &ns) == 0;
	if (ok && row->letter != 'd' && strspn(arg, "0123456789.") == strlen(arg))
		ns = ns > ranges[i].max_ms * 1000 * NS_PER_MS ? ns : ns / 1000;
	if (!ok || ns < ranges[i].min_ms * NS_PER_MS || ns > ranges[i].max_ms * NS_PER_MS)
		return options_wrong(p,
			"%s takes a time from %s, such as 500ms or 2s, not '%.100s'", p->typed,
			ranges[i].says, arg);
	p->o->sampling.interval_ms = (uint32_t)(ns / NS_PER_MS);
	return 0;
}

static bool stack_kind(const char *text, Mperf__StackKind *ret_kind)
{
	static const struct {
		const char *name;
		Mperf__StackKind kind;
	} kinds[] = {
		{"fp", MPERF__STACK_KIND__STACK_FP},
		{"tables", MPERF__STACK_KIND__STACK_DWARF},
		{"dwarf", MPERF__STACK_KIND__STACK_DWARF}, /* perf's word for it */
		{"none", MPERF__STACK_KIND__STACK_NONE},
	};
	size_t n = strcspn(text, ",");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strlen(kinds[i].name) != n || strncmp(kinds[i].name, text, n) != 0)
			continue;
		if (text[n] && kinds[i].kind != MPERF__STACK_KIND__STACK_DWARF)
			return false;
		*ret_kind = kinds[i].kind;
		return true;
	}
	return false;
}

/* -g, -gtables, -g tables, --call-graph=tables,16384. getopt does not accept a separate argument as an
 * optional value, so we take the next argument if it is one of ours. */
static int take_call_graph(struct parse *p, const struct option_row *row, char *arg)
{
	(void)row;
	struct argp_state *state = p->state;
	Mperf__StackKind kind = MPERF__STACK_KIND__STACK_FP;
	uint64_t bytes = 0;

	if (!arg && state->next < state->argc && stack_kind(state->argv[state->next], &kind))
		arg = state->argv[state->next++];
	/* record -g tabels -- CMD: the word is not a command, since -- follows */
	if (!arg && state->next + 1 < state->argc && state->argv[state->next][0] != '-' &&
		strcmp(state->argv[state->next + 1], "--") == 0)
		arg = state->argv[state->next];
	if (arg && !stack_kind(arg, &kind))
		return options_wrong(p, "%s takes tables, fp or none, not '%.100s'", p->typed, arg);
	const char *comma = arg ? strchr(arg, ',') : NULL;
	/* PERF_SAMPLE_STACK_USER is a 16-bit size in units of 8.
	 * Source: kernel/events/core.c of Linux 6.12, perf_copy_attr(). */
	if (comma && (!number(comma + 1, 65528, &bytes) || bytes == 0 || bytes % 8 != 0))
		return options_wrong(p,
			"%s tables,BYTES takes a multiple of 8 up to 65528, not '%.100s'", p->typed,
			comma + 1);
	p->o->sampling.stack = kind;
	p->o->sampling.stack_given = arg != NULL;
	p->o->sampling.stack_bytes = (uint32_t)bytes;
	return 0;
}

static int take_label(struct parse *p, const struct option_row *row, char *arg)
{
	(void)row;
	struct label label;
	struct label_fault fault;
	if (label_parse(arg, &label, &fault) != 0)
		return options_wrong(p, "%s", fault.text);
	for (size_t i = 0; p->o->narrowing.gives_labels && i < p->o->narrowing.n_labels; i++)
		if (strncmp(p->o->narrowing.label[i], arg, strlen(label.key) + 1) == 0)
			return options_wrong(p, "label '%s' is given twice", label.key);
	return options_push(p, p->o->narrowing.label, &p->o->narrowing.n_labels, arg);
}

/* roofline takes two inputs, questions about samples any number. */
static int take_input(struct parse *p, const struct option_row *row, char *arg)
{
	(void)row;
	bool compares = p->command == MPERF__REQUEST__BODY_ROOFLINE;
	if (!*arg)
		return options_wrong(p, "-i needs the name of a recording");
	if (compares && p->o->earlier)
		return options_wrong(p, "-i takes at most two files here, not '%.100s' too", arg);
	if (compares)
		p->o->earlier = p->o->input;
	else if (!options_reads_samples(p->command) && p->o->input)
		return options_wrong(p, "-i takes one file here, not '%.100s' too", arg);
	p->o->input = arg;
	return options_reads_samples(p->command)
		       ? options_push(p, p->o->inputs, &p->o->n_inputs, arg)
		       : 0;
}

static int take_quiet(struct parse *p, const struct option_row *row, char *arg)
{
	(void)p, (void)row, (void)arg;
	say_quietly();
	return 0;
}

static int take_help(struct parse *p, const struct option_row *row, char *arg)
{
	(void)row, (void)arg;
	p->helped = true;
	options_help(p->command, stdout);
	return EINVAL;
}

int options_store(struct parse *p, const struct option_row *row, char *arg)
{
	static int (*const take[])(struct parse *p, const struct option_row *row, char *arg) = {
		[OPTION_FLAG] = take_flag,
		[OPTION_STRING] = take_string,
		[OPTION_WORD] = take_word,
		[OPTION_NUMBER] = take_number,
		[OPTION_SHARE] = take_share,
		[OPTION_DURATION] = take_duration,
		[OPTION_TIME] = take_time,
		[OPTION_LIST] = take_list,
		[OPTION_NAMES] = take_names,
		[OPTION_PIDS] = take_pids,
		[OPTION_CPUS] = take_cpus,
		[OPTION_PERIOD] = take_period,
		[OPTION_INTERVAL] = take_interval,
		[OPTION_CALL_GRAPH] = take_call_graph,
		[OPTION_LABEL] = take_label,
		[OPTION_INPUT] = take_input,
		[OPTION_QUIET] = take_quiet,
		[OPTION_HELP] = take_help,
	};
	return take[row->store.kind](p, row, arg);
}
