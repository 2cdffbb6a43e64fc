/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each option may be valid alone and still contradict another. We refuse such a pair and name both
 * sides: guessing would measure something that the user did not ask for.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "client/options/letters.h"
#include "client/options/options_private.h"

#define ROOFS_NS_MIN 1000000000ull /* setting up takes longer */
#define ROOFS_NS_MAX 3600000000000ull
#define LIVE_MS_MIN 1000 /* the service writes its counts once a second at most */

/* --- checks beyond pairs of options ----------------------------------------------------------- */

static int check_target(struct parse *p)
{
	const struct options *o = p->o;
	bool kept = o->input || o->narrowing.since_ns || o->narrowing.until_ns;
	bool pid_is_target = o->target.n_pids > 0 && !kept && !o->sampling.loops;
	int targets = (o->target.all && !o->target.command_line) + pid_is_target +
		      (o->target.command_line != NULL);

	if (o->target.all && o->target.n_pids > 0 && !kept)
		return options_wrong(
			p, "-a means every process, so --pid cannot narrow it; give one of them");
	if (targets > 1)
		return options_wrong(
			p, "--pid and a command are two things to measure; give one of them");
	if (p->command == MPERF__REQUEST__BODY_RECORD && kept)
		return 0; /* its rules say what it takes */
	if (p->command == MPERF__REQUEST__BODY_RECORD || p->command == MPERF__REQUEST__BODY_STAT ||
		(p->command == MPERF__REQUEST__BODY_TOPDOWN && !kept)) {
		if (targets == 0)
			return options_wrong(
				p, "there is nothing to measure: give -- CMD, --pid N or -a");
		return 0;
	}

	bool measures = targets > 0 || o->target.for_ns || o->sampling.hz || o->sampling.period ||
			o->sampling.overhead_ppm || o->sampling.n_events || o->sampling.user_only ||
			o->sampling.wakers || options_given(p, "call-graph");
	if (o->input && measures)
		return options_wrong(p,
			"-i reads a recording, so there is nothing to measure: "
			"leave out -i, or the command, -a, --for, -F, -c, --overhead, -e, -g, "
			"-U and --wakers");
	if (kept && measures)
		return options_wrong(p,
			"--since and --until look back into what the service keeps, so there is "
			"nothing to measure: leave them out, or the command, -a, --for, -F, -c, "
			"--overhead, -e, -g, -U and --wakers");
	if (!o->input && measures && targets == 0)
		return options_wrong(
			p, o->sampling.loops
				   ? "there is nothing to run: give -- CMD"
				   : "there is nothing to measure: give -- CMD, --pid N or -a");
	if (o->sampling.loops && o->target.command_line && o->target.n_pids > 0)
		return options_wrong(
			p, "--pid and a command are two things to look at; give one of them");
	return 0;
}

/* --loops and --sample need a program that will count: CMD, or one running process. */
static int check_chosen(struct parse *p)
{
	const struct options *o = p->o;
	bool past = o->input || o->narrowing.since_ns || o->narrowing.until_ns;
	if (o->chooses && !o->target.command_line && (past || o->target.n_pids != 1))
		return options_wrong(p,
			"--loops and --sample choose what a program will count: give -- CMD, or "
			"one --pid");
	return 0;
}

/* Check the name of a picture in -o: it must end like a page or SVG, or have no ending. */
static int check_picture(struct parse *p)
{
	static const char *const drawn[] = {".html", ".htm", ".svg"};
	const struct options *o = p->o;
	const char *path = o->output;
	if (!path || o->look.json || o->look.csv || o->look.raw || o->folded)
		return 0;
	const char *slash = strrchr(path, '/');
	const char *dot = strrchr(slash ? slash : path, '.');
	if (!dot || strncmp(path, "/dev/", strlen("/dev/")) == 0)
		return 0;
	for (size_t i = 0; i < sizeof(drawn) / sizeof(*drawn); i++)
		if (strcasecmp(dot, drawn[i]) == 0)
			return 0;
	return options_wrong(p,
		"-o draws a page or SVG: its file name must end in .html or .svg, unlike '%.200s'",
		path);
}

static int check_vector_bits(struct parse *p)
{
	const uint32_t bits = p->o->vector_bits;
	if (bits & (bits - 1))
		return options_wrong(p, "--vector-bits takes a power of two, not '%u'", bits);
	return 0;
}

static int check_roofs_time(struct parse *p)
{
	const uint64_t ns = p->o->target.for_ns;
	if (ns && (ns < ROOFS_NS_MIN || ns > ROOFS_NS_MAX))
		return options_wrong(p, "--for takes a time from 1s to 1h here");
	return 0;
}

static int check_live_interval(struct parse *p)
{
	const struct options *o = p->o;
	if (o->live && o->sampling.interval_ms && o->sampling.interval_ms < LIVE_MS_MIN)
		return options_wrong(p,
			"%s takes 1s or more with --live: the service writes its counts once a "
			"second at most",
			options_given(p, "interval")->typed);
	return 0;
}

static int check_top_of_tree(struct parse *p)
{
	if (p->o->sampling.n_metrics > 1)
		return options_wrong(p,
			"-M takes one name here, the top of the tree; `mperfctl stat -M` takes "
			"several");
	return 0;
}

static int check_sides(struct parse *p)
{
	if (p->o->n_baselines > 0 && p->o->n_candidates > 0)
		return 0;
	return options_wrong(
		p, p->command == MPERF__REQUEST__BODY_DIFF
			   ? "two sides are compared: give BASELINE and CANDIDATE"
			   : "two sides are compared: give --baseline and --candidate");
}

static int check_times(struct parse *p)
{
	const struct options *o = p->o;
	if (o->narrowing.since_ns && o->narrowing.until_ns &&
		o->narrowing.until_ns <= o->narrowing.since_ns)
		return options_wrong(p, "--until is not after --since");
	return 0;
}

/* --- rules ------------------------------------------------------------------------------------ */

#define EXCLUDE(a, b) {a, b}, NULL, NULL, NULL
#define NEED(a, b) {a}, b, NULL, NULL
#define ONE_OF(list) {NULL}, NULL, list, NULL
#define CHECK(function) {NULL}, NULL, NULL, function, NULL

#define NEEDS_LIVE "%s needs --live: give it too"
#define NEEDS_CODE "--symfs and --vector-bits are for machine code: "
#define NEEDS_COMMAND "--two-phase runs a command several times: give -- CMD"
#define NOTHING_TO_MEASURE "there is nothing to measure: give -- CMD, --pid N or -a"
#define ONE_ANSWER                                                                                 \
	"--json prints one answer at the end and %s prints meanwhile, so they cannot be combined"
#define ONE_PROCESS "--pid takes one process, of job start and job end"

/* The first rule that is broken is reported. */
const struct option_rule option_rules[] = {
	/* clang-format off */
	{C|G|J, ONE_OF("json raw markdown"), "--json, --raw and --markdown exclude each other"},
	{C, EXCLUDE("side-by-side", "margin plan-for any-order"), "--side-by-side tests nothing: leave it out, or --margin, --plan-for and --any-order"},
	{C|G, EXCLUDE("metrics", "by=loop"), "loops have no metrics: leave out -M, or --by loop"},
	{C|G, CHECK(check_sides)},

	{M, EXCLUDE("TOPIC", "input"), "-i reads an earlier measurement: leave out -i or `measure`"},
	{M, NEED("quick for", "TOPIC"), "--quick and --for say how to measure: use `mperfctl roofs measure`"},
	{M, CHECK(check_roofs_time)},

	{J, NEED("TOPIC=run TOPIC=start", "NAME"), "job %s takes the job's name"},
	{J, NEED("TOPIC=pin TOPIC=unpin", "NAME"), "job %s takes a selection: a job's name, or KEY=VALUE"},
	{J, NEED("pin", "TOPIC=run"), "--pin is for job run; use `mperfctl job pin` for others"},
	{J, NEED("keep", "TOPIC=pin pin"), "--keep is for job pin and job run --pin"},
	{J, NEED("TOPIC=run", "COMMAND"), "job run takes a name and a command: job run NAME -- CMD"},
	{J, NEED("label", "TOPIC=run TOPIC=start TOPIC=report"), "--label is for job run, job start and job report"},
	{J, NEED("input since limit markdown", "TOPIC=report"), "-i, --since, -n and --markdown are for job report"},
	{J, EXCLUDE("input", "since"), "--since selects from the service's store, which -i does not read"},
	{J, NEED("pid", "TOPIC=start TOPIC=end"), ONE_PROCESS},
	{J, .when = {"PROCESSES"}, .says = ONE_PROCESS},

	{E, NEED("TOPIC=run", "NAME"), "schedule run takes the name of a schedule"},
	{E, NEED("TOPIC=get", "NAME"), "schedule get takes a recording, as the list names it"},
	{E, NEED("output force", "TOPIC=get"), "-o and --force are for schedule get"},
	{E, EXCLUDE("json raw", "TOPIC=check TOPIC=run TOPIC=get"), "--json and --raw work only with `list`"},

	{H|L|T|U|K|O|B|P|W|N, ONE_OF("json raw"), "--json and --raw are two forms; give one of them"},
	{L, EXCLUDE("decode", "TOPIC all"), "--decode prints one raw code alone: leave out -a and the topic"},

	{O, EXCLUDE("from=counters", "symfs vector-bits"), NEEDS_CODE "leave them out, or use --from code"},
	{O, EXCLUDE("from=counters", "by=loop by=region"), "counters know no loops and regions: use --by function, --by thread or --per-process, or leave out --by for the whole program"},
	{O, .when = {"from=counters", "by", "per-process"}, .says = "--per-process and --by are two ways to group; give one of them"},
	{O, EXCLUDE("from=counters", "ops=int"), "--from counters counts floating-point operations: use --ops fp, sp or dp"},
	{O, EXCLUDE("from=counters", "live two-phase loops sample inclusive"), "--from counters measures any program once: leave it out, or --live, --two-phase, --loops, --sample and --inclusive"},
	{O, EXCLUDE("from=counters", "input since until"), "--from counters measures: leave out -i, --since and --until"},
	{O, NEED("from=counters", "all pid COMMAND"), NOTHING_TO_MEASURE},
	{O, .when = {"from=counters", "freq"}, .unless = "by per-process", .says = "-F is for samples: add --per-process or --by function, or leave it out"},
	{O, NEED("all per-process", "from=counters"), "-a and --per-process are for hardware counters: add --from counters, or leave them out"},
	{O, NEED("symfs vector-bits", "from=code"), NEEDS_CODE "add --from code, or leave them out"},
	{O, CHECK(check_vector_bits)},
	{O, EXCLUDE("from=code", "by=function by=region by=thread"), "--from code knows only loops: leave out --by, or --from"},
	{O, EXCLUDE("from=code", "live two-phase loops sample inclusive SECOND"), "--from code reads samples, not counts of programs: leave it out, or --live, --two-phase, --loops, --sample, --inclusive and a second -i"},
	{O, EXCLUDE("plot", "json csv raw"), "--plot draws a picture: leave it out, or --csv, --json and --raw"},
	{O, CHECK(check_picture)},
	{O, EXCLUDE("live", "output"), "--live draws repeatedly, -o only once: use --plot, or leave out -o"},
	{O, NEED("peaks", "plot output"), "--peaks adds lines to a plot: give --plot or -o FILE"},
	{O, NEED("SECOND", "plot output"), "two files are compared in a plot: give --plot or -o FILE"},
	{O, NEED("title", "output"), "--title is the title of the page: give -o FILE too"},

	{S, ONE_OF("per-hart per-process per-cgroup"), "--per-hart, --per-process and --per-cgroup exclude each other"},
	{S, NEED("per-process per-cgroup", "metrics"), "--per-process and --per-cgroup show metrics: give -M too, such as -M General"},
	{S, EXCLUDE("x", "json per-process per-cgroup explain"), "-x prints only fields: leave it out, or --json, --explain, --per-process and --per-cgroup"},
	{S, EXCLUDE("per-process per-cgroup", "event interval repeat explain"), "--per-process and --per-cgroup print one table of metrics: leave out -e, -I, -r and --explain"},

	{W, CHECK(check_top_of_tree)},
	{W, EXCLUDE("output", "explain"), "-o draws a picture, which explains itself: leave it out, or --explain"},
	{W, CHECK(check_picture)},
	{W, .when = {"since until", "pid"}, .unless = "input", .says = "--since shows counts of whole harts, not of processes: leave it out, or --pid"},
	{W, NEED("cpu", "input since until"), "--cpu narrows what was counted before: give -i or --since"},
	{W, NEED("interval frames", "live"), NEEDS_LIVE},
	{W, EXCLUDE("live", "output raw explain"), "--live shows one tree after another: leave it out, or -o, --raw and --explain"},
	{W, EXCLUDE("explain", "json raw"), "--json and --raw include what --explain prints; give one of them"},

	{F, CHECK(check_picture)},
	{F, NEED("diff", "input"), "--diff compares two recordings: give -i FILE too"},
	{F, EXCLUDE("diff", "folded"), "--diff colours the boxes of a page: leave it out, or --folded"},
	{X, .unless = "as", .says = "no format was given: give --as pprof, folded, speedscope, perf-script, csv or firefox"},

	{O, NEED("two-phase", "COMMAND"), NEEDS_COMMAND},
	{O, EXCLUDE("two-phase", "input since until"), NEEDS_COMMAND},
	{O, EXCLUDE("two-phase", "by=region by=thread"), "--two-phase compares the entries of loops or functions: use --by loop or function"},
	{O, .when = {"two-phase", "sample"}, .unless = "loops", .says = "--two-phase counts each entry in its second run: leave out --sample"},
	{O, CHECK(check_chosen)},
	{R|H|F|X|A, EXCLUDE("count", "freq"), "-F says how many samples a second, and -c how many occurrences of an event a sample stands for: give one of them"},
	{R|H|F|X|A, EXCLUDE("count", "metrics"), "metrics need samples by time: leave out -M, or -c"},
	{R|H|F|X|A, NEED("count", "event"), "-c counts occurrences of an event: name the event with -e, such as -e page-faults"},
	{O|B|W, EXCLUDE("live", "input since until"), "--live shows running programs: leave it out, or -i, --since and --until"},
	{O|B|W, .when = {"live", "COMMAND", "freq for two-phase"}, .says = "--live only watches the command: leave out -F, --for and --two-phase"},
	{O|B|W, CHECK(check_live_interval)},
	{B, EXCLUDE("live", "csv json raw"), "blocks --live draws text: leave it out, or --csv, --json and --raw"},
	{O, NEED("interval frames", "live from=counters"), NEEDS_LIVE},
	{B, NEED("frames", "live"), NEEDS_LIVE},
	{R, EXCLUDE("since until", "COMMAND all for freq count overhead event metrics call-graph user wakers"), "--since saves what the service has kept, so there is nothing to measure: leave out --since, or the command, -a, --for, -F, -c, --overhead, -e, -M, -g, -U and --wakers"},
	{R, NEED("until comm cgroup", "since"), "%s chooses among what the service has kept: give --since too"},
	{H, EXCLUDE("tree callers callees", "by sort limit metrics inlined"), "a call tree has rows of its own: leave it out, or --by, --sort, -n, -M and --inlined"},
	{H, EXCLUDE("tree", "callers callees"), "--tree shows all, --callers and --callees one function: give one of them"},
	{H, EXCLUDE("callers", "callees"), "--callers and --callees are two trees: give one of them"},
	{H, NEED("min-share", "tree callers callees"), "--min-share is of a call tree: give --tree, --callers or --callees too"},
	{H, EXCLUDE("wall by=parallelism", "count metrics"), "wall time is of samples that stand for time: leave it out, or -c and -M"},
	{F, EXCLUDE("wall", "count"), "wall time is of samples that stand for time: leave out --wall, or -c"},
	{H|R, EXCLUDE("metrics", "EVENT"), "-M chooses the events that samples carry: leave it out, or -e"},
	{R|H|F|X|A|N, EXCLUDE("overhead", "EVENT"), "the cost of events that you choose is not measured: leave out -e, or --overhead"},
	{O|B|P, EXCLUDE("csv", "json raw"), "--csv, --json and --raw exclude each other"},
	{R|H|F|S|O|B|P|W|X|A|N, CHECK(check_target)},
	{S, EXCLUDE("interval", "REPEATS"), "-r prints the mean of whole runs and %s the parts of one run, so they cannot be combined"},
	{S, NEED("REPEATS", "COMMAND for"), "-r repeats a command or a time: give -- CMD or --for"},
	{S, EXCLUDE("interval", "json"), ONE_ANSWER},
	{O, .when = {"interval", "json", "from=counters"}, .says = ONE_ANSWER},
	{S, EXCLUDE("json", "REPEATS"), "--json prints the counts of one run and -r repeats it, so they cannot be combined"},
	{R|H|F|O|B|P|W|X|A|N, CHECK(check_times)},
	/* clang-format on */
};

const size_t n_option_rules = sizeof(option_rules) / sizeof(*option_rules);

/* The value of a fact on the command line that is not an option; or NULL. */
static const char *fact(const struct options *o, const char *name)
{
	const struct {
		const char *name, *value;
	} facts[] = {
		{"TOPIC", o->topic},
		{"NAME", o->job ? o->job : o->subject[0]},
		{"COMMAND", o->target.command_line ? *o->target.command_line : NULL},
		{"SECOND", o->earlier},                                        /* -i */
		{"EVENT", o->sampling.n_events ? o->sampling.event[0] : NULL}, /* to measure */
		{"PROCESSES", o->target.n_pids > 1 ? "" : NULL},
		{"REPEATS", o->repeat > 1 ? "" : NULL},
	};
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (strcmp(facts[i].name, name) == 0)
			return facts[i].value;
	return NULL;
}

const struct given *options_given(const struct parse *p, const char *name)
{
	for (size_t i = 0; i < n_option_rows; i++) {
		const struct option_row *row = &option_rows[i];
		if (!options_takes(p->command, row) ||
			(row->name ? strcmp(row->name, name) != 0
				   : row->letter != name[0] || name[1]))
			continue;
		for (size_t k = 0; k < p->n_given; k++)
			if (p->given[k].row->store.field == row->store.field)
				return &p->given[k];
	}
	return NULL;
}

/* Is the term of n bytes on the command line? Then return its text for "%s", else NULL. */
static const char *holds(const struct parse *p, const char *term, size_t n)
{
	char name[64];
	snprintf(name, sizeof(name), "%.*s", (int)n, term);
	char *value = strchr(name, '=');
	if (value)
		*value++ = '\0';
	const struct given *g = options_given(p, name);
	const char *is = g ? g->value : fact(p->o, name);
	if ((!g && !is) || (value && (!is || strcmp(is, value) != 0)))
		return NULL;
	return g ? g->typed : is;
}

/* Count the terms of the list that apply; *ret_typed: the first one, if any. */
static size_t count(const struct parse *p, const char *list, const char **ret_typed)
{
	size_t n = 0;
	for (size_t size; *list; list += size + (list[size] == ' ')) {
		size = strcspn(list, " ");
		const char *typed = holds(p, list, size);
		if (typed && n++ == 0)
			*ret_typed = typed;
	}
	return n;
}

static bool is_broken(const struct parse *p, const struct option_rule *rule, const char **ret_typed)
{
	const char *other;
	if (rule->single)
		return count(p, rule->single, ret_typed) > 1;
	for (size_t i = 0; i < sizeof(rule->when) / sizeof(*rule->when) && rule->when[i]; i++)
		if (count(p, rule->when[i], i == 0 ? ret_typed : &other) == 0)
			return false;
	return !rule->unless || count(p, rule->unless, &other) == 0;
}

int options_check(struct parse *p)
{
	for (size_t i = 0; i < n_option_rules; i++) {
		const struct option_rule *rule = &option_rules[i];
		const char *typed = "";
		if (!(rule->commands & 1u << p->command))
			continue;
		if (rule->check && rule->check(p) != 0)
			return EINVAL;
		if (rule->check || !is_broken(p, rule, &typed))
			continue;
		const char *blank = strstr(rule->says, "%s");
		return blank ? options_wrong(p, "%.*s%s%s", (int)(blank - rule->says), rule->says,
				       typed, blank + strlen("%s"))
			     : options_wrong(p, "%s", rule->says);
	}
	return 0;
}
