/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * argp walks the arguments and passes each to the first of three groups that knows it: what to
 * measure, what to ask, and how to show it.
 */
#include "client/options/options.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/options/options_private.h"
#include "client/show/say.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"
#include "proto/code/code.h"
#include "proto/syntax/label.h"
#include "proto/syntax/nearest.h"
#include "proto/syntax/unit.h"

#define HZ_MAX 1000000     /* one sample per microsecond; the kernel's own limit is lower */
#define REPEATS_MAX 100000 /* the spread converges long before */
#define ONE_IN_MAX 10000   /* the runtime's limit (runtime/select.h) */
#define NS_PER_MS 1000000ull
#define KEEP_MAX 4096 /* pins of a store (daemon/store/pin.h) */
#define LOOKS_MAX 20  /* of a gate; each one more asks for more runs */
#define LEVELS_MAX 16 /* of a tree; Intel's deepest has six */
#define ROWS_DEFAULT 30

static const char *const options_formats[] = {
	"pprof", "folded", "speedscope", "perf-script", "csv", "firefox", NULL};

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

struct range {
	uint32_t min, max;
};

static int take_number(struct parse *p, const char *arg, struct range range, uint32_t *ret_value)
{
	uint64_t value;
	if (!number(arg, range.max, &value) || value < range.min)
		return options_wrong(p, "%s takes a number from %u to %u, not '%.100s'", p->typed,
			range.min, range.max, arg);
	*ret_value = (uint32_t)value;
	return 0;
}

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

static int take_period(struct parse *p, const char *arg)
{
	if (!number(arg, INT64_MAX, &p->o->period) || p->o->period == 0)
		return options_wrong(p,
			"%s takes a number of occurrences, such as 100000, not '%.100s'", p->typed,
			arg);
	return 0;
}

static int take_pid(struct parse *p, const char *part)
{
	uint64_t pid;
	if (!number(part, INT32_MAX, &pid) || pid == 0)
		return options_wrong(p, "--pid takes process ids, not '%s'", part);
	if (p->o->n_pids == OPTIONS_LIST_MAX)
		return options_wrong(p, "--pid takes at most %d processes", OPTIONS_LIST_MAX);
	p->o->pid[p->o->n_pids++] = (int32_t)pid;
	return 0;
}

static int take_cpus(struct parse *p, const char *part)
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
		if (p->o->n_cpus == OPTIONS_CPUS_MAX)
			return options_wrong(p, "--cpu names more than %d harts", OPTIONS_CPUS_MAX);
		p->o->cpu[p->o->n_cpus++] = (uint32_t)first;
	}
	return 0;
}

static int take_time(struct parse *p, const char *name, const char *arg, int64_t *ret_ns)
{
	int r = unit_parse_time(arg, (int64_t)clock_ns(CLOCK_REALTIME), ret_ns);
	if (r != 0)
		return options_wrong(p,
			"%s takes a time like 10:30, yesterday, \"2026-11-21 10:00\" or \"5 "
			"minutes ago\", "
			"not '%.100s'",
			name, arg);
	return 0;
}

static int take_for(struct parse *p, const char *arg)
{
	if (unit_parse_duration(arg, &p->o->for_ns) != 0 || p->o->for_ns == 0)
		return options_wrong(
			p, "--for takes a time like 10s, 500ms or 2m, not '%.100s'", arg);
	return 0;
}

static int take_share(struct parse *p, const char *option, const char *arg, uint32_t *ret_ppm)
{
	if (unit_parse_share(arg, ret_ppm) != 0 || *ret_ppm == 0)
		return options_wrong(p,
			"%s takes a share from 0.0001%% to 100%%, such as 5%%, not '%.100s'",
			option, arg);
	return 0;
}

/* -I 500ms, -I 500 (milliseconds, as perf has it), -d 2 (seconds, as top and watch have it). */
static int take_interval(struct parse *p, int key, const char *arg)
{
	static const struct {
		uint32_t command;
		uint64_t min_ms, max_ms;
		const char *says;
	} ranges[] = {
		{COMMAND_BIT(STAT), 1, 86400000, "1ms to 1d"},
		/* the daemon's shortest window; how far back queries look by default */
		{COMMAND_BIT(BLOCKS), 100, 3600000, "100ms to 1h"},
		/* nobody reads faster */
		{UINT32_MAX, 100, 60000, "100ms to 60s"},
	};
	size_t i = 0;
	uint64_t ns;
	while (!(ranges[i].command & 1u << p->command))
		i++;
	bool ok = unit_parse_duration(arg, &ns) == 0;
	if (ok && key != 'd' && strspn(arg, "0123456789.") == strlen(arg))
		ns = ns > ranges[i].max_ms * 1000 * NS_PER_MS ? ns : ns / 1000;
	if (!ok || ns < ranges[i].min_ms * NS_PER_MS || ns > ranges[i].max_ms * NS_PER_MS)
		return options_wrong(p,
			"%s takes a time from %s, such as 500ms or 2s, not '%.100s'", p->typed,
			ranges[i].says, arg);
	memcpy(p->interval, p->typed, sizeof(p->interval));
	p->o->interval_ms = (uint32_t)(ns / NS_PER_MS);
	return 0;
}

static bool stack_kind(const char *text, Mperf__StackKind *ret_kind)
{
	static const struct {
		const char *name;
		Mperf__StackKind kind;
	} kinds[] = {
		{"fp", MPERF__STACK_KIND__STACK_FP},
		{"dwarf", MPERF__STACK_KIND__STACK_DWARF},
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

/* -g, -gdwarf, -g dwarf, --call-graph=dwarf,16384. getopt does not accept a separate argument as an
 * optional value, so we take the next argument if it is one of ours. */
static int take_call_graph(struct parse *p, const char *arg, struct argp_state *state)
{
	Mperf__StackKind kind = MPERF__STACK_KIND__STACK_FP;
	uint64_t bytes = 0;

	if (!arg && state->next < state->argc && stack_kind(state->argv[state->next], &kind))
		arg = state->argv[state->next++];
	/* record -g dwrf -- CMD: the word is no command, which -- would follow */
	if (!arg && state->next + 1 < state->argc && state->argv[state->next][0] != '-' &&
		strcmp(state->argv[state->next + 1], "--") == 0)
		arg = state->argv[state->next];
	if (arg && !stack_kind(arg, &kind))
		return options_wrong(p, "%s takes fp, dwarf or none, not '%.100s'", p->typed, arg);
	const char *comma = arg ? strchr(arg, ',') : NULL;
	/* PERF_SAMPLE_STACK_USER is a 16-bit size in units of 8.
	 * Source: kernel/events/core.c of Linux 6.12, perf_copy_attr(). */
	if (comma && (!number(comma + 1, 65528, &bytes) || bytes == 0 || bytes % 8 != 0))
		return options_wrong(p,
			"%s dwarf,BYTES takes a multiple of 8 up to 65528, not '%.100s'", p->typed,
			comma + 1);
	p->o->stack = kind;
	p->o->stack_given = arg != NULL;
	p->o->stack_bytes = (uint32_t)bytes;
	p->call_graph_given = true;
	return 0;
}

static int take_by(struct parse *p, char *arg)
{
	static const char *const names[] = {"function", "module", "process", "thread", "cgroup",
		"job", "line", "hart", "address"};
	static const char *const of_loops[] = {"loop", "function", "region", "thread", NULL};
	static const char *const compared[] = {
		"function", "module", "process", "cgroup", "line", "loop", NULL};
	if (p->command == MPERF__REQUEST__BODY_ROOFLINE)
		return options_take_word(p, "--by", of_loops, arg, &p->o->by);
	static const char *const of_regions[] = {
		"region", "thread", "place", "wait", "loop", "function", NULL};
	if (p->command == MPERF__REQUEST__BODY_PARALLEL)
		return options_take_word(p, "--by", of_regions, arg, &p->o->by);
	if (p->command == MPERF__REQUEST__BODY_DIFF || p->command == MPERF__REQUEST__BODY_GATE)
		return options_take_word(p, "--by", compared, arg, &p->o->by);
	/* top has a line per hart anyway, and names of source lines arrive too late for it */
	bool top = p->command == MPERF__REQUEST__BODY_TOP;
	const size_t n = sizeof(names) / sizeof(*names) - (top ? 3 : 0);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(arg, names[i]) == 0) {
			p->o->by = arg;
			return 0;
		}
	}
	const char *near = nearest_name(arg, names, n);
	return options_wrong(p,
		"--by takes function, module, process, thread%s, not '%.100s'%s%s%s",
		top ? ", cgroup or job" : ", cgroup, job, line, hart or address", arg,
		near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* Names with commas between them, into a list. */
static int take_names(struct parse *p, char *arg, char **list, size_t *n, const char *wants)
{
	char *rest;
	for (char *name = strtok_r(arg, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		int r = options_push(p, list, n, name);
		if (r != 0)
			return r;
	}
	return *n > 0 ? 0 : options_wrong(p, "%s takes names of %s", p->typed, wants);
}

static int take_globs(struct parse *p, char *arg)
{
	p->o->chooses = true;
	return take_names(p, arg, p->o->glob, &p->o->n_globs, "functions, such as 'spmv*,bfs'");
}

static int take_columns(struct parse *p, char *arg)
{
	return take_names(p, arg, p->o->column, &p->o->n_columns,
		"columns as in --csv, such as 'time_ns,gops', or all");
}

static int take_metrics(struct parse *p, char *arg)
{
	return take_names(p, arg, p->o->metric, &p->o->n_metrics,
		"metrics or groups, such as 'ipc,TopdownL1'");
}

static int take_label(struct parse *p, char *arg)
{
	struct label label;
	struct label_fault fault;
	if (label_parse(arg, &label, &fault) != 0)
		return options_wrong(p, "%s", fault.text);
	for (size_t i = 0; p->o->gives_labels && i < p->o->n_labels; i++)
		if (strncmp(p->o->label[i], arg, strlen(label.key) + 1) == 0)
			return options_wrong(p, "label '%s' is given twice", label.key);
	return options_push(p, p->o->label, &p->o->n_labels, arg);
}

static int take_frames(struct parse *p, const char *arg)
{
	return take_number(p, arg, (struct range){1, UINT32_MAX}, &p->o->frames);
}

static int take_query(struct parse *p, int key, char *arg)
{
	struct options *o = p->o;
	switch (key) {
	case 'i':
		return options_take_input(p, arg);
	case OPTION_BY:
		return take_by(p, arg);
	case OPTION_COMM:
		return options_push(p, o->comm, &o->n_comms, arg);
	case OPTION_CGROUP:
		return options_push(p, o->cgroup, &o->n_cgroups, arg);
	case OPTION_LABEL:
		o->gives_labels = p->command == MPERF__REQUEST__BODY_RECORD ||
				  p->command == MPERF__REQUEST__BODY_JOB;
		return take_label(p, arg);
	case OPTION_PIN:
		o->pins = true;
		o->pin = arg;
		return 0;
	case OPTION_KEEP:
		return take_number(p, arg, (struct range){1, KEEP_MAX}, &o->keep);
	case OPTION_CPU:
		return each_part(p, arg, take_cpus);
	case OPTION_SINCE:
		return take_time(p, "--since", arg, &o->since_ns);
	case OPTION_UNTIL:
		return take_time(p, "--until", arg, &o->until_ns);
	case 'n':
		if (p->command == MPERF__REQUEST__BODY_TOP)
			return take_frames(p, arg);
		__attribute__((fallthrough));
	case OPTION_LIMIT:
		return take_number(p, arg, (struct range){0, UINT32_MAX}, &o->limit);
	case OPTION_INLINED:
		o->inlined = true;
		return 0;
	case OPTION_INCLUSIVE:
		o->inclusive = true;
		return 0;
	case OPTION_QUICK:
		o->quick = true;
		return 0;
	case OPTION_NOTES:
		o->notes = true;
		return 0;
	case OPTION_COLUMNS:
		return take_columns(p, arg);
	case OPTION_OPS:
		return options_take_word(p, "--ops",
			(const char *const[]){"fp", "int", "sp", "dp", NULL}, arg, &o->ops);
	case OPTION_FROM:
		return options_take_word(p, "--from",
			(const char *const[]){"counts", "code", "counters", NULL}, arg, &o->from);
	case OPTION_SYMFS:
		o->symfs = arg;
		return 0;
	case OPTION_VECTOR_BITS:
		return take_number(p, arg,
			(struct range){CODE_VECTOR_BITS_LEAST, CODE_VECTOR_BITS_MOST_RVV},
			&o->vector_bits);
	case OPTION_TWO_PHASE:
		o->two_phase = true;
		return 0;
	case OPTION_LOOPS:
		return take_globs(p, arg);
	case OPTION_SAMPLE:
		o->chooses = true;
		return take_number(p, arg, (struct range){0, ONE_IN_MAX}, &o->one_in);
	case OPTION_EVERY:
		return take_interval(p, 'I', arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Of diff and gate. */
static int take_compare(struct parse *p, int key, char *arg)
{
	struct options *o = p->o;
	const bool is_gate = p->command == MPERF__REQUEST__BODY_GATE;
	switch (key) {
	case OPTION_BASELINE:
		return options_push(p, o->baseline, &o->n_baselines, arg);
	case OPTION_CANDIDATE:
		return options_push(p, o->candidate, &o->n_candidates, arg);
	case OPTION_MARGIN:
		return take_share(
			p, is_gate ? "--max-regression" : "--margin", arg, &o->margin_ppm);
	case OPTION_PLAN_FOR:
		return take_share(p, "--plan-for", arg, &o->effect_ppm);
	case OPTION_ALLOWANCE:
		return take_share(p, "--layout-allowance", arg, &o->allowance_ppm);
	case OPTION_LOOKS:
		return take_number(p, arg, (struct range){1, LOOKS_MAX}, &o->looks);
	case OPTION_ANY_ORDER:
		o->any_order = true;
		return 0;
	case OPTION_SIDE_BY_SIDE:
		o->side_by_side = true;
		return 0;
	case OPTION_MARKDOWN:
		o->markdown = true;
		return 0;
	case OPTION_JUNIT:
		o->junit = arg;
		return *arg ? 0 : options_wrong(p, "--junit needs the name of a file");
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int take_show(struct parse *p, int key, char *arg)
{
	struct options *o = p->o;
	switch (key) {
	case 'o':
		o->output = arg;
		return *arg ? 0 : options_wrong(p, "%s needs the name of a file", p->typed);
	case 'f':
		o->force = true;
		return 0;
	case OPTION_DECODE:
		o->decode = arg;
		return *arg ? 0 : options_wrong(p, "--decode needs a raw code, such as r22");
	case OPTION_AS:
		return options_take_word(p, "--as", options_formats, arg, &o->as);
	case OPTION_EXPLAIN:
		o->explain = true;
		return 0;
	case OPTION_FOLDED:
		o->folded = true;
		return 0;
	case OPTION_DIFF:
		o->earlier = arg;
		return *arg ? 0 : options_wrong(p, "--diff needs the name of a recording");
	case OPTION_TITLE:
		o->title = arg;
		return 0;
	case OPTION_JSON:
		o->json = true;
		return 0;
	case OPTION_PLOT:
		o->plot = true;
		return 0;
	case OPTION_PEAKS:
		o->peaks = true;
		return 0;
	case OPTION_PER_PROCESS:
		o->per_process = true;
		return 0;
	case OPTION_PER_CGROUP:
		o->per_cgroup = true;
		return 0;
	case OPTION_PER_HART:
		o->per_hart = true;
		return 0;
	case OPTION_LIVE:
		o->live = true;
		return 0;
	case OPTION_CSV:
		o->csv = true;
		return 0;
	case OPTION_RAW:
		o->raw = true;
		return 0;
	case 'x':
		o->separator = arg;
		return *arg ? 0 : options_wrong(p, "-x needs a separator, such as ,");
	case 'q':
		say_quietly();
		return 0;
	case OPTION_NO_COLOR:
		o->no_color = true;
		return 0;
	case 'h':
		p->helped = true;
		options_help(p->command, stdout);
		return EINVAL;
	case 'b':
		o->batch = true;
		return 0;
	case OPTION_FRAMES:
		return take_frames(p, arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int take_measure(struct parse *p, int key, char *arg, struct argp_state *state)
{
	struct options *o = p->o;
	switch (key) {
	case 'a':
		o->all = true;
		return 0;
	case 'U':
		o->user_only = true;
		return 0;
	case OPTION_PID:
		return each_part(p, arg, take_pid);
	case OPTION_FOR:
		return take_for(p, arg);
	case 'e':
		return options_push(p, o->event, &o->n_events, arg);
	case 'M':
		return take_metrics(p, arg);
	case 'l':
		return take_number(p, arg, (struct range){1, LEVELS_MAX}, &o->levels);
	case 'F':
		return take_number(p, arg, (struct range){1, HZ_MAX}, &o->hz);
	case 'c':
		return take_period(p, arg);
	case OPTION_OVERHEAD:
		return take_share(p, "--overhead", arg, &o->overhead_ppm);
	case 'g':
		return take_call_graph(p, arg, state);
	case 'r':
		return take_number(p, arg, (struct range){1, REPEATS_MAX}, &o->repeat);
	case 'I':
	case 'd':
		return take_interval(p, key, arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t take(int key, char *arg, struct argp_state *state)
{
	struct parse *p = state->input;
	if (key == ARGP_KEY_ARG)
		return options_take_argument(p, arg, state);
	if (key == ARGP_KEY_ERROR)
		p->stopped = state->next;

	options_note_typed(p, key, arg, state);
	int r = take_measure(p, key, arg, state);
	if (r == ARGP_ERR_UNKNOWN)
		r = take_query(p, key, arg);
	if (r == ARGP_ERR_UNKNOWN)
		r = take_compare(p, key, arg);
	if (r == ARGP_ERR_UNKNOWN)
		r = take_show(p, key, arg);
	return r;
}

int options_parse(
	Mperf__Request__BodyCase command, int argc, char **argv, struct options *ret_options)
{
	struct argp_option list[OPTION_ROWS_MAX] = {0};
	_cleanup_(freep) struct options *o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->stack = MPERF__STACK_KIND__STACK_FP;
	bool top = command == MPERF__REQUEST__BODY_TOP;
	bool blocks = command == MPERF__REQUEST__BODY_BLOCKS;
	o->limit = top || blocks ? 0 : ROWS_DEFAULT;
	o->one_in = 1;
	o->loops = blocks || command == MPERF__REQUEST__BODY_ROOFLINE ||
		   command == MPERF__REQUEST__BODY_PARALLEL;
	o->callers = command == MPERF__REQUEST__BODY_PARALLEL;

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
	if (o->from && strcmp(o->from, "counters") == 0)
		o->loops = false;
	if (r == 0)
		r = options_show_event(&p);
	if (r != 0 || options_check(&p) != 0)
		return OPTIONS_USAGE;
	options_place_answer(&p);
	*ret_options = *o;
	return 0;
}
