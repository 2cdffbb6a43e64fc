/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each option may be valid alone and still contradict another. We refuse such a pair and name both
 * sides: guessing would measure something that the user did not ask for.
 */
#include "client/options/options_private.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define ROOFS_NS_MIN 1000000000ull /* setting up takes longer */
#define ROOFS_NS_MAX 3600000000000ull
#define LIVE_MS_MIN 1000 /* the service writes its counts once a second at most */

static int check_target(struct parse *p)
{
	const struct options *o = p->o;
	bool kept = o->input || o->since_ns || o->until_ns;
	bool pid_is_target = o->n_pids > 0 && !kept && !o->loops;
	int targets = (o->all && !o->command_line) + pid_is_target + (o->command_line != NULL);

	if (o->all && o->n_pids > 0 && !kept)
		return options_wrong(
			p, "-a means every process, so --pid cannot narrow it; give one of them");
	if (targets > 1)
		return options_wrong(
			p, "--pid and a command are two things to measure; give one of them");
	if (p->command == MPERF__REQUEST__BODY_RECORD || p->command == MPERF__REQUEST__BODY_STAT ||
		(p->command == MPERF__REQUEST__BODY_TOPDOWN && !kept)) {
		if (targets == 0)
			return options_wrong(
				p, "there is nothing to measure: give -- CMD, --pid N or -a");
		return 0;
	}

	bool measures = targets > 0 || o->for_ns || o->hz || o->period || o->overhead_ppm ||
			o->n_events || o->user_only || p->call_graph_given;
	if (o->input && measures)
		return options_wrong(p,
			"-i reads a recording, so there is nothing to measure: "
			"leave out -i, or the command, -a, --for, -F, -c, --overhead, -e, -g "
			"and -U");
	if (kept && measures)
		return options_wrong(p,
			"--since and --until look back into what the service keeps, so there is "
			"nothing to measure: leave them out, or the command, -a, --for, -F, -c, "
			"--overhead, -e, -g and -U");
	if (!o->input && measures && targets == 0)
		return options_wrong(
			p, o->loops ? "there is nothing to run: give -- CMD"
				    : "there is nothing to measure: give -- CMD, --pid N or -a");
	if (o->loops && o->command_line && o->n_pids > 0)
		return options_wrong(
			p, "--pid and a command are two things to look at; give one of them");
	return 0;
}

/* When a sample is taken: -F and -c. */
static int check_period(struct parse *p)
{
	const struct options *o = p->o;
	if (!o->period)
		return 0;
	if (o->hz)
		return options_wrong(p, "-F says how many samples a second, and -c how many "
					"occurrences of an event "
					"a sample stands for: give one of them");
	if (o->n_metrics)
		return options_wrong(p, "metrics need samples by time: leave out -M, or -c");
	if (o->n_events == 0 && !o->of_event)
		return options_wrong(p,
			"-c counts occurrences of an event: say of which with -e, such as -e "
			"page-faults");
	return 0;
}

/* Options that choose loops, or run a command several times. */
static int check_choice(struct parse *p)
{
	const struct options *o = p->o;
	bool past = o->input || o->since_ns || o->until_ns;
	if (o->two_phase && (!o->command_line || past))
		return options_wrong(p, "--two-phase runs a command several times: give -- CMD");
	if (o->two_phase && o->by && strcmp(o->by, "loop") != 0 && strcmp(o->by, "function") != 0)
		return options_wrong(p,
			"--two-phase compares the entries of loops or functions: use --by loop or "
			"function");
	if (o->two_phase && o->chooses && o->n_globs == 0)
		return options_wrong(
			p, "--two-phase counts each entry in its second run: leave out --sample");
	if (o->chooses && !o->command_line && (past || o->n_pids != 1))
		return options_wrong(p,
			"--loops and --sample choose what a program will count: give -- CMD, or "
			"one --pid");
	return 0;
}

/* Check the name that -o gives a picture: it ends as a page or SVG does, or has no ending. */
static int check_picture(struct parse *p)
{
	static const char *const drawn[] = {".html", ".htm", ".svg"};
	const char *path = p->o->output;
	const char *slash = strrchr(path, '/');
	const char *dot = strrchr(slash ? slash : path, '.');
	if (!dot || strncmp(path, "/dev/", strlen("/dev/")) == 0)
		return 0;
	for (size_t i = 0; i < sizeof(drawn) / sizeof(*drawn); i++)
		if (strcasecmp(dot, drawn[i]) == 0)
			return 0;
	return options_wrong(p,
		"-o draws a page or SVG: end the name in .html or .svg, not as '%.200s' does",
		path);
}

/* Of roofline: a plot is a form of its own. */
static int check_plot(struct parse *p)
{
	const struct options *o = p->o;
	if (p->command != MPERF__REQUEST__BODY_ROOFLINE)
		return 0;
	const bool is_text = o->json || o->csv || o->raw;
	if (o->plot && is_text)
		return options_wrong(p, "--plot draws: leave it out, or --csv, --json and --raw");
	if (o->output && !is_text && check_picture(p) != 0)
		return EINVAL;
	if (o->live && o->output)
		return options_wrong(p,
			"--live draws again and again, and -o once: use --plot, or leave out -o");
	if (o->peaks && !o->plot && !o->output)
		return options_wrong(p, "--peaks adds to a plot: give --plot or -o FILE");
	if (o->earlier && !o->plot && !o->output)
		return options_wrong(p, "two files are compared in a plot: give --plot or -o FILE");
	if (o->title && !o->output)
		return options_wrong(p, "--title is for the page: give -o FILE too");
	return 0;
}

/* Of roofline: what counters of the hardware cannot tell. */
static int check_counters(struct parse *p)
{
	const struct options *o = p->o;
	if (o->symfs || o->vector_bits)
		return options_wrong(p,
			"--symfs and --vector-bits are for machine code: leave them out, or use "
			"--from code");
	if (o->by && strcmp(o->by, "function") != 0 && strcmp(o->by, "thread") != 0)
		return options_wrong(p,
			"counters know no loops and regions: use --by function, --by thread or "
			"--per-process, or leave out --by for all of the program");
	if (o->by && o->per_process)
		return options_wrong(
			p, "--per-process and --by are two ways to group; give one of them");
	if (o->ops && strcmp(o->ops, "int") == 0)
		return options_wrong(p,
			"--from counters counts floating-point operations: use --ops fp, sp or dp");
	if (o->live || o->two_phase || o->chooses || o->inclusive)
		return options_wrong(p,
			"--from counters measures any program once: leave it out, or --live, "
			"--two-phase, --loops, --sample and --inclusive");
	if (o->input || o->since_ns || o->until_ns)
		return options_wrong(
			p, "--from counters measures: leave out -i, --since and --until");
	if (!o->all && o->n_pids == 0 && !o->command_line)
		return options_wrong(p, "there is nothing to measure: give -- CMD, --pid N or -a");
	if (o->hz && !o->by && !o->per_process)
		return options_wrong(p,
			"-F is for samples: add --per-process or --by function, or leave it out");
	return 0;
}

/* Of roofline: what machine code cannot tell. */
static int check_from(struct parse *p)
{
	const struct options *o = p->o;
	if (p->command != MPERF__REQUEST__BODY_ROOFLINE)
		return 0;
	if (o->from && strcmp(o->from, "counters") == 0)
		return check_counters(p);
	if (o->all || o->per_process)
		return options_wrong(p,
			"-a and --per-process are for hardware counters: add --from "
			"counters, or leave them out");
	if (!o->from || strcmp(o->from, "code") != 0)
		return o->symfs || o->vector_bits
			       ? options_wrong(p,
					 "--symfs and --vector-bits are for machine code: add "
					 "--from code, or leave them out")
			       : 0;
	if (o->vector_bits & (o->vector_bits - 1))
		return options_wrong(
			p, "--vector-bits takes a power of two, not '%u'", o->vector_bits);
	if (o->by && strcmp(o->by, "loop") != 0)
		return options_wrong(p, "--from code has loops alone: leave out --by, or --from");
	if (o->live || o->two_phase || o->chooses || o->inclusive || o->earlier)
		return options_wrong(p,
			"--from code reads samples of programs that do not count: leave it out, "
			"or --live, --two-phase, --loops, --sample, --inclusive and a second -i");
	return 0;
}

/* `roofs` and `roofs measure`. */
static int check_roofs(struct parse *p)
{
	const struct options *o = p->o;
	if (o->topic && o->input)
		return options_wrong(
			p, "-i reads what was measured before: leave it out, or `measure`");
	if (!o->topic && (o->quick || o->for_ns))
		return options_wrong(
			p, "--quick and --for say how to measure: use `mperfctl roofs measure`");
	if (o->for_ns && (o->for_ns < ROOFS_NS_MIN || o->for_ns > ROOFS_NS_MAX))
		return options_wrong(p, "--for takes a time from 1s to 1h here");
	return 0;
}

static int check_job(struct parse *p)
{
	const struct options *o = p->o;
	bool runs = o->topic && strcmp(o->topic, "run") == 0;
	bool starts = o->topic && strcmp(o->topic, "start") == 0;
	bool ends = o->topic && strcmp(o->topic, "end") == 0;
	bool pins = o->topic && strcmp(o->topic, "pin") == 0;
	bool unpins = o->topic && strcmp(o->topic, "unpin") == 0;
	if ((runs || starts) && !o->job)
		return options_wrong(p, "job %s takes the job's name", o->topic);
	if ((pins || unpins) && !o->job)
		return options_wrong(
			p, "job %s takes a selection: a job's name, or KEY=VALUE", o->topic);
	if (o->pins && !runs)
		return options_wrong(p, "--pin is for job run; use `mperfctl job pin` for others");
	if (o->keep && !pins && !o->pins)
		return options_wrong(p, "--keep is for job pin and job run --pin");
	if (runs && !o->command_line)
		return options_wrong(p, "job run takes a name and a command: job run NAME -- CMD");
	if (o->n_labels && !runs && !starts)
		return options_wrong(p, "--label is for job run and job start");
	if (o->n_pids > 1 || (o->n_pids && !starts && !ends))
		return options_wrong(p, "--pid takes one process, of job start and job end");
	return 0;
}

static int check_schedule(struct parse *p)
{
	const struct options *o = p->o;
	bool runs = o->topic && strcmp(o->topic, "run") == 0;
	bool gets = o->topic && strcmp(o->topic, "get") == 0;
	if ((runs || gets) && o->n_subjects == 0)
		return options_wrong(p, "schedule %s takes %s", o->topic,
			runs ? "the name of a schedule" : "a recording, as the list names it");
	if ((o->output || o->force) && !gets)
		return options_wrong(p, "-o and --force are for schedule get");
	if ((o->json || o->raw) && o->topic && strcmp(o->topic, "list") != 0)
		return options_wrong(p, "--json and --raw are for the list");
	return 0;
}

/* Of list. */
static int check_list(struct parse *p)
{
	const struct options *o = p->o;
	if (o->decode && (o->topic || o->all))
		return options_wrong(
			p, "--decode prints one raw code alone: leave out -a and the topic");
	return 0;
}

/* Of stat. */
static int check_stat(struct parse *p)
{
	const struct options *o = p->o;
	bool by_task = o->per_process || o->per_cgroup;
	if (o->per_hart + o->per_process + o->per_cgroup > 1)
		return options_wrong(
			p, "--per-hart, --per-process and --per-cgroup exclude each other");
	if (p->command != MPERF__REQUEST__BODY_STAT)
		return 0;
	if (by_task && o->n_metrics == 0)
		return options_wrong(p,
			"--per-process and --per-cgroup show metrics: give -M too, such as -M "
			"General");
	if (o->separator && (o->json || by_task || o->explain))
		return options_wrong(p,
			"-x prints fields alone: leave it out, or --json, --explain, --per-process "
			"and --per-cgroup");
	if (by_task && (o->n_events || o->interval_ms || o->repeat || o->explain))
		return options_wrong(p,
			"--per-process and --per-cgroup print one table of metrics: leave out -e, "
			"-I, -r and --explain");
	return 0;
}

/* Of topdown. */
static int check_topdown(struct parse *p)
{
	const struct options *o = p->o;
	if (p->command != MPERF__REQUEST__BODY_TOPDOWN)
		return 0;
	if (o->n_metrics > 1)
		return options_wrong(p,
			"-M takes one name here, the top of the tree; `mperfctl stat -M` takes "
			"several");
	if (o->output && o->explain)
		return options_wrong(
			p, "-o draws a picture, which explains itself: leave it out, or --explain");
	if (o->output && !o->json && !o->raw && check_picture(p) != 0)
		return EINVAL;
	if ((o->since_ns || o->until_ns) && !o->input && o->n_pids)
		return options_wrong(p, "--since shows counts of whole harts, not of processes: "
					"leave it out, or --pid");
	if (o->n_cpus && !o->input && !o->since_ns && !o->until_ns)
		return options_wrong(
			p, "--cpu narrows what was counted before: give -i or --since");
	if ((o->interval_ms || o->frames) && !o->live)
		return options_wrong(
			p, "%s needs --live: give it too", *p->interval ? p->interval : "--frames");
	if (o->live && (o->output || o->raw || o->explain))
		return options_wrong(p,
			"--live shows one tree after another: leave it out, or -o, --raw and "
			"--explain");
	if (o->explain && (o->json || o->raw))
		return options_wrong(
			p, "--json and --raw have what --explain prints; give one of them");
	return 0;
}

/* Of flamegraph. */
static int check_flamegraph(struct parse *p)
{
	const struct options *o = p->o;
	if (p->command != MPERF__REQUEST__BODY_FLAMEGRAPH)
		return 0;
	if (o->output && !o->folded && check_picture(p) != 0)
		return EINVAL;
	if (!o->earlier)
		return 0;
	if (!o->input)
		return options_wrong(p, "--diff compares two recordings: give -i FILE too");
	if (o->folded)
		return options_wrong(
			p, "--diff is in the colours of a page: leave it out, or --folded");
	return 0;
}

/* Of export. */
static int check_export(struct parse *p)
{
	if (p->command == MPERF__REQUEST__BODY_EXPORT && !p->o->as)
		return options_wrong(p, "there is no format: give --as pprof, folded, speedscope, "
					"perf-script, csv or firefox");
	return 0;
}

/* diff and gate. */
static int check_compare(struct parse *p)
{
	const struct options *o = p->o;
	if (o->json + o->raw + o->markdown > 1)
		return options_wrong(p, "--json, --raw and --markdown exclude each other");
	if (o->side_by_side && (o->margin_ppm || o->effect_ppm || o->any_order))
		return options_wrong(p,
			"--side-by-side tests nothing: leave it out, or --margin, --plan-for and "
			"--any-order");
	if (o->n_metrics && o->by && strcmp(o->by, "loop") == 0)
		return options_wrong(
			p, "metrics are not known of loops: leave out -M, or --by loop");
	if (o->n_baselines == 0 || o->n_candidates == 0)
		return options_wrong(
			p, p->command == MPERF__REQUEST__BODY_DIFF
				   ? "two sides are compared: give BASELINE and CANDIDATE"
				   : "two sides are compared: give --baseline and "
				     "--candidate");
	return 0;
}

int options_check(struct parse *p)
{
	const struct options *o = p->o;
	if (p->command == MPERF__REQUEST__BODY_DIFF || p->command == MPERF__REQUEST__BODY_GATE)
		return check_compare(p);
	if (p->command == MPERF__REQUEST__BODY_ROOFS)
		return check_roofs(p);
	if (p->command == MPERF__REQUEST__BODY_JOB)
		return check_job(p);
	if (p->command == MPERF__REQUEST__BODY_SCHEDULE)
		return check_schedule(p);
	if (o->json && o->raw)
		return options_wrong(p, "--json and --raw are two forms; give one of them");
	int chosen = p->command == MPERF__REQUEST__BODY_LIST ? check_list(p) : check_from(p);
	if (chosen == 0)
		chosen = check_plot(p);
	if (chosen == 0)
		chosen = check_stat(p);
	if (chosen == 0)
		chosen = check_topdown(p);
	if (chosen == 0)
		chosen = check_flamegraph(p);
	if (chosen == 0)
		chosen = check_export(p);
	if (chosen == 0)
		chosen = check_choice(p);
	if (chosen == 0)
		chosen = check_period(p);
	if (chosen != 0)
		return chosen;
	if (o->live && (o->input || o->since_ns || o->until_ns))
		return options_wrong(p,
			"--live shows running programs: leave it out, or -i, --since and --until");
	if (o->live && o->command_line && (o->hz || o->for_ns || o->two_phase))
		return options_wrong(
			p, "--live only watches the command: leave out -F, --for and --two-phase");
	if (o->live && o->interval_ms && o->interval_ms < LIVE_MS_MIN)
		return options_wrong(p,
			"%s takes 1s or more with --live: the service writes its counts once a "
			"second at most",
			p->interval);
	if (o->live && p->command == MPERF__REQUEST__BODY_BLOCKS && (o->csv || o->json || o->raw))
		return options_wrong(
			p, "blocks --live draws text: leave it out, or --csv, --json and --raw");
	bool splits = p->command == MPERF__REQUEST__BODY_BLOCKS;
	if (!o->live && o->loops && (o->frames || (o->interval_ms && !splits)))
		return options_wrong(
			p, "%s needs --live: give it too", *p->interval ? p->interval : "--frames");
	if (o->n_metrics && o->n_events &&
		(p->command == MPERF__REQUEST__BODY_HOTSPOTS ||
			p->command == MPERF__REQUEST__BODY_RECORD))
		return options_wrong(
			p, "-M chooses the events that samples carry: leave it out, or -e");
	if (o->overhead_ppm && o->n_events > 0)
		return options_wrong(p,
			"the cost of events that you choose is not measured: leave out -e, or "
			"--overhead");
	if (o->csv && (o->json || o->raw))
		return options_wrong(p, "--csv, --json and --raw exclude each other");
	if (p->command == MPERF__REQUEST__BODY_TOP)
		return 0; /* its other options narrow the rows */
	int r = check_target(p);
	if (r != 0)
		return r;
	if (o->repeat > 1 && o->interval_ms > 0)
		return options_wrong(p,
			"-r prints the mean of whole runs and %s the parts of one run, so they "
			"cannot be combined",
			p->interval);
	if (o->repeat > 1 && !o->command_line && !o->for_ns)
		return options_wrong(p, "-r repeats a command or a time: give -- CMD or --for");
	if (o->json && o->interval_ms > 0 && !o->loops && !o->live)
		return options_wrong(p,
			"--json is one answer at the end and %s prints on the way, so they "
			"cannot be combined",
			p->interval);
	if (o->json && o->repeat > 1)
		return options_wrong(p,
			"--json has the counts of one run and -r repeats it, so they cannot "
			"be combined");
	if (o->since_ns && o->until_ns && o->until_ns <= o->since_ns)
		return options_wrong(p, "--until is not after --since");
	return 0;
}
