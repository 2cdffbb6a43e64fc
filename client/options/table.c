/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One row per option with the commands that take it and the member of struct options that it sets:
 * help, parsing, completion and the hint after a typing error all read this table. Short options are
 * perf's where perf has the same option.
 */
#include "client/options/table.h"

#include "client/options/letters.h"
#include "proto/code/code.h"
#include "proto/mperf.pb-c.h"

#define HZ_MAX 1000000     /* one sample per microsecond; the kernel's own limit is lower */
#define REPEATS_MAX 100000 /* the spread converges long before */
#define ONE_IN_MAX 10000   /* the runtime's limit (runtime/select.h) */
#define KEEP_MAX 4096      /* pins of a store (daemon/store/pin.h) */
#define LOOKS_MAX 20       /* looks of a gate; each further one needs more runs */
#define LEVELS_MAX 16      /* of a tree; Intel's deepest has six */

/* Offset of a member of struct options. It compiles only if the member has the type that `pointer`
 * points to. */
#define FIELD(pointer, member)                                                                     \
	_Generic(&((struct options *)0)->member, pointer: offsetof(struct options, member))
#define LIST_FIELDS(list, n)                                                                       \
	.field = FIELD(char *(*)[OPTIONS_LIST_MAX], list), .count = FIELD(size_t *, n)

/* clang-format off */
#define FLAG(member) {.kind = OPTION_FLAG, .field = FIELD(bool *, member)}
#define STRING(member, ...) {.kind = OPTION_STRING, .field = FIELD(char **, member), .wants = __VA_ARGS__}
#define WORD(member, is) {.kind = OPTION_WORD, .field = FIELD(char **, member), .words = is}
#define NUMBER(member, from, to) {.kind = OPTION_NUMBER, .field = FIELD(uint32_t *, member), .least = from, .most = to}
#define SHARE(member) {.kind = OPTION_SHARE, .field = FIELD(uint32_t *, member)}
#define DURATION(member) {.kind = OPTION_DURATION, .field = FIELD(uint64_t *, member)}
#define TIME(member) {.kind = OPTION_TIME, .field = FIELD(int64_t *, member)}
#define LIST(list, n) {.kind = OPTION_LIST, LIST_FIELDS(list, n)}
#define NAMES(list, n, noun) {.kind = OPTION_NAMES, LIST_FIELDS(list, n), .wants = noun}
/* Kinds for a single option: its function in value.c knows the member. OWN_NONE: it has no member.
 * */
#define OWN(of, member, ...) {.kind = of, .field = offsetof(struct options, member), __VA_ARGS__}
#define OWN_NONE(of) {.kind = of, .field = OPTION_NO_FIELD}

#define PIDS OWN(OPTION_PIDS, target.pid)
#define INTERVAL OWN(OPTION_INTERVAL, sampling.interval_ms)
#define METRICS NAMES(sampling.metric, sampling.n_metrics, "metrics or groups, such as 'ipc,TopdownL1'")

const struct option_row option_rows[] = {
	{R|H|F|S|W|X|A|N, "all", 'a', NULL, FLAG(target.all), "measure the whole system"},
	{O,       "all", 'a', NULL, FLAG(target.all), "with --from counters: measure the whole system"},
	{G,       "all", 'a', NULL, FLAG(target.all), "also show rows that were not tested"},
	{U,       "all", 'a', NULL, FLAG(target.all), "show all figures; without it, whether all is well"},
	{L,       "all", 'a', NULL, FLAG(target.all), "also show events that do not count here, and why"},
	{R,       "pid", 'p', "N[,N]", PIDS, "measure these processes and what they start; with --since: save only these"},
	{S|W,     "pid", 'p', "N[,N]", PIDS, "measure these processes and what they start"},
	{H|F|X|A|N,   "pid", 'p', "N[,N]", PIDS, "measure these processes and what they start; with -i or --since: show only these"},
	{O,       "pid", 'p', "N[,N]", PIDS, "only these processes; with --from counters: measure these and what they start"},
	{B|P,     "pid", 'p', "N[,N]", PIDS, "only these processes"},
	{T,       "pid", 'p', "N[,N]", PIDS, "only these processes and what they start"},
	{R|H|F|S|T|W|X|A|N, "for", 0, "TIME", DURATION(target.for_ns), "stop after this time: 10s, 500ms, 2m"},
	{R|S,     "event", 'e', "EVENT", LIST(sampling.event, sampling.n_events), "event to measure, in perf's grammar; may be repeated (default: the best that works here)"},
	{S,       "per-hart", 0, NULL, FLAG(per_hart), "show the counts of each hart separately"},
	{S,       "per-process", 0, NULL, FLAG(per_process), "show metrics for each process, counted along with its samples"},
	{O,       "per-process", 0, NULL, FLAG(per_process), "with --from counters: show one row, and one point in the plot, per process"},
	{S,       "per-cgroup", 0, NULL, FLAG(per_cgroup), "show metrics for each control group, counted along with its samples"},
	{S,       "metrics", 'M', "NAME[,NAME]", METRICS, "count the events of these metrics, or groups of metrics, and print their values"},
	{H,       "metrics", 'M', "NAME[,NAME]", METRICS, "show these metrics, or groups of metrics, for each row; their events are counted along with the samples, in a recording by its -M"},
	{R,       "metrics", 'M', "NAME[,NAME]", METRICS, "count the events of these metrics, or groups of metrics, along with the samples: for hotspots -i, diff and topdown -i"},
	{W,       "level", 'l', "LEVEL", NUMBER(levels, 1, LEVELS_MAX), "show this many levels of the tree (default: as many as can be counted at once)"},
	{C|G,     "metrics", 'M', "NAME[,NAME]", METRICS, "also show how these metrics, or groups of metrics, changed in each row, if the recordings counted their events"},
	{W,       "metrics", 'M', "NAME", METRICS, "show the tree below this metric, or the tree whose first level is this group (default: TopdownL1)"},
	{S,       "explain", 0, NULL, FLAG(explain), "also print the plan: which events are counted together, on which counters, and whether they take turns"},
	{L,       "decode", 0, "RAW", STRING(decode, "a raw code, such as r22"), "print the fields of this raw code, such as r22 or 0x22, and their meaning on this machine's cores"},
	{W,       "explain", 0, NULL, FLAG(explain), "also print each row's formula, inputs with their counts, passes, error and source"},
	{H|F|X|A|N, "event", 'e', "EVENT", LIST(sampling.event, sampling.n_events), "measuring: event to sample, in perf's grammar, may be repeated; reading: the measured event whose counts are shown (default: the sampling event); waiting and waiting:KIND show waiting time, with CMD too"},
	{T|C,     "event", 'e', "EVENT", STRING(narrowing.of_event, "an event"), "show this event instead of CPU time: waiting, for the time that threads waited, or waiting:lock, waiting:disk and so on"},
	{O,       "for", 0, "TIME", DURATION(target.for_ns), "stop the measurement after this time: 10s, 500ms, 2m"},
	{B|P,     "for", 0, "TIME", DURATION(target.for_ns), "stop CMD's measurement after this time: 10s, 500ms, 2m"},
	{O,       "freq", 'F', "HZ", NUMBER(sampling.hz, 1, HZ_MAX), "samples per second and hart while CMD runs (default: 99; with --from code: 999)"},
	{P,       "freq", 'F', "HZ", NUMBER(sampling.hz, 1, HZ_MAX), "samples per second and hart while CMD runs (default: 99)"},
	{R|H|F|X|A|N, "freq", 'F', "HZ", NUMBER(sampling.hz, 1, HZ_MAX), "samples per second and hart (default: 999; with -a: 99)"},
	{R|H|F|X|A, "count", 'c', "PERIOD", OWN(OPTION_PERIOD, sampling.period), "instead of -F: a sample every PERIOD occurrences of each event of -e (ns of a clock)"},
	{T,       "freq", 'F', "HZ", NUMBER(sampling.hz, 1, HZ_MAX), "samples per second and hart while this runs (default: the daemon's rate for top)"},
	{R|H|F|T|X|A|N, "overhead", 0, "SHARE", SHARE(sampling.overhead_ppm), "sample less often where mperf would take more than this share of a hart's time: 5%, 0.5% (default: no limit)"},
	{R|H|F|P|X|A, "call-graph", 'g', "KIND", OWN(OPTION_CALL_GRAPH, sampling.stack, .words = "tables fp none", .optional = true), "how callers are found: tables[,BYTES] (default without -e), fp, none"},
	{R|H|F|S|W|X|A|N, "user", 'U', NULL, FLAG(sampling.user_only), "exclude the kernel"},
	{R|H|F|X|A, "wakers", 0, NULL, FLAG(sampling.wakers), "also record who ends each wait: the waker's stack above the waiting thread's (needs BPF: the service, or root; not with -e or -M)"},
	{R,       "output", 'o', "FILE", STRING(output, "the name of a file"), "file to write (default: mperf.mprf); - is stdout"},
	{E,       "output", 'o', "FILE", STRING(output, "the name of a file"), "get: file to write (default: mperf.mprf)"},
	{E,       "force", 'f', NULL, FLAG(force), "get: overwrite a file that is not a recording"},
	{F,       "output", 'o', "FILE", STRING(output, "the name of a file"), "file to write (default: flame.html); a name that ends in .svg gets plain SVG; - is stdout"},
	{A,       "output", 'o', "FILE", STRING(output, "the name of a file"), "file to write (default: report.html); - is stdout"},
	{X,       "as", 0, "FORMAT", WORD(as, "pprof folded speedscope perf-script csv firefox"), "the format to write: pprof, folded, speedscope, perf-script, csv, firefox"},
	{X,       "output", 'o', "FILE", STRING(output, "the name of a file"), "file to write (default: stdout); - is stdout"},
	{O,       "plot", 0, NULL, FLAG(plot), "draw the loops under the machine's roofs, above the table"},
	{O,       "peaks", 0, NULL, FLAG(peaks), "draw theoretical peaks of the cores beside measured roofs"},
	{O,       "output", 'o', "FILE", STRING(output, "the name of a file"), "draw the plot into this file: a page, or plain SVG if the name ends in .svg; - is stdout; with --json, --csv or --raw: write that"},
	{W,       "output", 'o', "FILE", STRING(output, "the name of a file"), "draw the tree into this file: a page, or plain SVG if the name ends in .svg; - is stdout; with --json or --raw: write that"},
	{S,       "output", 'o', "FILE", STRING(output, "the name of a file"), "write the figures to FILE instead of stderr"},
	{H|L|D|T|U|K|B|P|M|C|G|J|N, "output", 'o', "FILE", STRING(output, "the name of a file"), "file to write the answer to (default: stdout)"},
	{R,       "force", 'f', NULL, FLAG(force), "overwrite a file that is not a recording"},
	{H|F|S|L|D|T|U|K|O|B|P|M|W|C|G|J|X|A|N, "force", 'f', NULL, FLAG(force), "overwrite FILE of -o, whatever it is"},
	{S,       "repeat", 'r', "N", NUMBER(repeat, 1, REPEATS_MAX), "run CMD N times; print the mean and the spread"},
	{S,       "interval", 'I', "TIME", INTERVAL, "print the counts every TIME: 500ms, 2s; a number alone is in milliseconds"},
	{T,       "interval", 'I', "TIME", INTERVAL, "time between frames, 100ms to 60s (default: 1s); a number alone is in milliseconds"},
	{T|O|W,   NULL, 'd', "TIME", INTERVAL, "as -I, but a number alone is in seconds"},
	{O,       "live", 0, NULL, FLAG(live), "keep showing the rates that running programs, or CMD, reached since the last frame"},
	{O|W,     "interval", 'I', "TIME", INTERVAL, "with --live: time between frames, 1s to 60s (default: 1s); a number alone is in milliseconds"},
	{B,       "live", 0, NULL, FLAG(live), "keep drawing the bandwidth of running programs, or CMD, over the last minute, or the last sixty intervals of -I"},
	{W,       "live", 0, NULL, FLAG(live), "keep showing the tree for the time since the last frame"},
	{T,       "frames", 'n', "N", NUMBER(frames, 1, UINT32_MAX), "exit after N frames, as top(1) does"},
	{O|B|W,   "frames", 0, "N", NUMBER(frames, 1, UINT32_MAX), "exit after N frames"},
	{T,       "batch", 'b', NULL, FLAG(batch), "print frames as text, even on a terminal"},
	{H|F|X|A|N,   "input", 'i', "FILE", OWN(OPTION_INPUT, input), "read this recording; of several, or of those in a folder, the sum"},
	{D,       "input", 'i', "FILE", OWN(OPTION_INPUT, input), "read this recording"},
	{W,       "input", 'i', "FILE", OWN(OPTION_INPUT, input), "show what this recording counted"},
	{O,       "input", 'i', "FILE", OWN(OPTION_INPUT, input), "read this recording, or the file that a program wrote for MPERF_OUTPUT; given two, draw how loops moved from the first to the second"},
	{B|P,     "input", 'i', "FILE", OWN(OPTION_INPUT, input), "read this recording, or the file that a program wrote for MPERF_OUTPUT"},
	{M,       "input", 'i', "FILE", OWN(OPTION_INPUT, input), "show the roofs in this file, as --json wrote it"},
	{M,       "quick", 0, NULL, FLAG(quick), "measure: only the most important roofs, in 10 s"},
	{M,       "for", 0, "TIME", DURATION(target.for_ns), "measure: at most for this time, 1s to 1h (default: 1m)"},
	{H,       "by", 0, "WHAT", WORD(by, "function module process comm thread cgroup job line hart address parallelism"), "function (default), module, process, comm (processes of one name), thread, cgroup, job, line, hart, address, parallelism (of wall time)"},
	{H,       "tree", 0, NULL, FLAG(tree), "show the call tree: processes, and what their functions call"},
	{H,       "callers", 0, "FUNCTION", STRING(callers, "the name of a function"), "show who calls this function, in all places"},
	{H,       "callees", 0, "FUNCTION", STRING(callees, "the name of a function"), "show what this function calls, in all places"},
	{H,       "min-share", 0, "SHARE", SHARE(min_share_ppm), "with --tree, --callers, --callees: leave out what has less than this share, of all or of the function (default: 1%)"},
	{H,       "sort", 0, "COLUMN", WORD(sort, "self total samples"), "sort rows by this column: self (default), total, samples"},
	{N,       "by", 0, "WHAT", WORD(by, "process hart job"), "process (default), hart, job"},
	{H|F,     "wall", 0, NULL, FLAG(wall), "show wall time: each moment counts once, and is shared among the harts that worked in it"},
	{O,       "by", 0, "WHAT", WORD(by, "loop function region thread"), "loop (default), function, region, thread"},
	{P,       "by", 0, "WHAT", WORD(by, "region thread place wait loop function"), "region (default), thread, place, wait, loop, function"},
	{O,       "ops", 0, "KIND", WORD(ops, "fp int sp dp"), "operations to count: fp (default), int, sp, dp"},
	{O,       "from", 0, "SOURCE", WORD(from, "counts code counters"), "source of the figures, which instrumented programs report, which are estimated from samples and machine code, or which the hardware counts of any program: counts (default), code, counters"},
	{O,       "symfs", 0, "DIR", STRING(symfs, NULL), "with --from code: look for programs and libraries in DIR, by their path there or by name"},
	{O,       "vector-bits", 0, "N", NUMBER(vector_bits, CODE_VECTOR_BITS_LEAST, CODE_VECTOR_BITS_MOST_RVV), "with --from code: width in bits of the SVE or RVV vector registers of the machine that was sampled"},
	{O,       "inclusive", 0, NULL, FLAG(inclusive), "include inner loops in the figures of each loop"},
	{O,       "columns", 0, "NAME[,NAME]", NAMES(look.column, look.n_columns, "columns as in --csv, such as 'time_ns,gops', or all"), "columns of the table, by their names in --csv; all: every one (default: share, rates, operations per byte, error)"},
	{O,       "notes", 0, NULL, FLAG(notes), "print all notes on the figures, and what the columns mean"},
	{O,       "loops", 0, "GLOB[,GLOB]", NAMES(glob, n_globs, "functions, such as 'spmv*,bfs'"), "from now on count only functions with these names, and their loops (the program must be built with mode=clone)"},
	{O,       "sample", 0, "N", NUMBER(one_in, 0, ONE_IN_MAX), "count 1 in N entries of the functions of --loops, or of all (1: each; 0: none)"},
	{O,       "two-phase", 0, NULL, FLAG(two_phase), "run CMD three times: for times, with counting, and for times again to estimate errors; leave out loops that ran differently"},
	{B,       "interval", 'I', "TIME", INTERVAL, "split time into intervals of TIME, 100ms to 1h; a number alone is in milliseconds"},
	{B,       "every", 0, "TIME", INTERVAL, "as --interval"},
	{N,       "every", 0, "TIME", INTERVAL, "length of a stretch, 10ms to 1d (default: as fits the screen, or 100 stretches); a number alone is in milliseconds"},
	{C|G,     "by", 0, "WHAT", WORD(by, "function module process cgroup line loop"), "function (default), module, process, cgroup, line, loop"},
	{C|G,     "baseline", 0, "RUNS", LIST(baseline, n_baselines), "the side to compare with: a recording, a folder of *.mprf, a pattern in quotes, or jobs of the store by their labels; may be repeated"},
	{C|G,     "candidate", 0, "RUNS", LIST(candidate, n_candidates), "the side to compare with the baseline; may be repeated"},
	{G,       "max-regression", 0, "SHARE", SHARE(margin_ppm), "growth that still passes (default: 2%)"},
	{C,       "margin", 0, "SHARE", SHARE(margin_ppm), "change that is too small to matter (default: 2%)"},
	{C|G,     "plan-for", 0, "SHARE", SHARE(effect_ppm), "say how many runs are needed to see a growth of this size (default: 5%)"},
	{G,       "layout-allowance", 0, "SHARE", SHARE(allowance_ppm), "growth that a different layout of the same code may cause (default: none)"},
	{G,       "looks", 0, "N", NUMBER(looks, 1, LOOKS_MAX), "how many times you look, with more runs each time, before the decision (default: 2)"},
	{C|G,     "any-order", 0, NULL, FLAG(any_order), "decide even if the sides did not run in turns"},
	{C,       "side-by-side", 0, NULL, FLAG(side_by_side), "show both sides beside each other and test nothing, as between two machines"},
	{C|G,     "markdown", 0, NULL, FLAG(look.markdown), "answer in Markdown"},
	{J,       "markdown", 0, NULL, FLAG(look.markdown), "report: answer in Markdown, as for the summary of a CI job"},
	{J,       "input", 'i', "FILE", OWN(OPTION_INPUT, input), "report: read this recording: its whole command, or with a selection the processes of that job"},
	{J,       "since", 0, "TIME", TIME(narrowing.since_ns), "report: only jobs that began from this time on: 10:30, yesterday, -5m, \"2 weeks ago\""},
	{J,       "limit", 'n', "N", NUMBER(limit, 0, UINT32_MAX), "report: at most N stretches and programs; shorter stretches are rows together (default: 30; 0: all)"},
	{G,       "junit", 0, "FILE", STRING(junit, "the name of a file"), "also write JUnit's XML to FILE"},
	{C|G,     "pid", 'p', "N[,N]", PIDS, "only these processes"},
	{T,       "by", 0, "WHAT", WORD(by, "function module process thread cgroup job"), "function (default), module, process, thread, cgroup, job"},
	{R,       "comm", 0, "NAME", LIST(narrowing.comm, narrowing.n_comms), "with --since: save only processes of this name; may be repeated"},
	{R,       "cgroup", 0, "PATH", LIST(narrowing.cgroup, narrowing.n_cgroups), "with --since: save only this cgroup, or all below it if the path ends in /; may be repeated"},
	{H|F|T|O|B|P|C|G|X|A|N, "comm", 0, "NAME", LIST(narrowing.comm, narrowing.n_comms), "only processes of this name; may be repeated"},
	{H|F|T|C|G|X|A|N, "cgroup", 0, "PATH", LIST(narrowing.cgroup, narrowing.n_cgroups), "only this cgroup, or all below it if the path ends in /; may be repeated"},
	{H|F|T|C|G|O|B|P|X|A|N, "label", 0, "KEY=VALUE", OWN(OPTION_LABEL, narrowing.label), "only jobs with this label, whose value may have * and ?; may be repeated"},
	{R,       "label", 0, "KEY=VALUE", OWN(OPTION_LABEL, narrowing.label), "a label that all processes have in the recording; with --since: save only jobs with this label; may be repeated"},
	{J,       "label", 0, "KEY=VALUE", OWN(OPTION_LABEL, narrowing.label), "run, start: a label of the job; report: only jobs with this label; may be repeated"},
	{J,       "pin", 0, "SELECTION", STRING(pin, NULL, .optional = true), "run: keep the job's samples beyond keep-windows; with --keep, SELECTION says of which jobs (default: this one)"},
	{J,       "keep", 0, "N", NUMBER(keep, 1, KEEP_MAX), "pin, run --pin: keep the latest N jobs of the selection, and unpin earlier ones (default: keep all until job unpin)"},
	{J,       "pid", 'p', "N", PIDS, "start, end: this process (default: the one that runs mperfctl)"},
	{H|F|T|C|G|X|A|N, "cpu", 0, "LIST", OWN(OPTION_CPUS, target.cpu), "only these harts: 0-3,7"},
	{H|F|O|B|P|X|A|N, "since", 0, "TIME", TIME(narrowing.since_ns), "only from this time: 10:30, yesterday, \"2026-11-21 10:00\", -5m, \"2 weeks ago\"; without -i, from the service's store"},
	{H|F|O|B|P|X|A|N, "until", 0, "TIME", TIME(narrowing.until_ns), "only until this time, in the same form"},
	{R,       "since", 0, "TIME", TIME(narrowing.since_ns), "measure nothing: save what the service has kept from this time on: 10:30, yesterday, \"2026-11-21 10:00\", -5m, \"2 weeks ago\""},
	{R,       "until", 0, "TIME", TIME(narrowing.until_ns), "with --since: only until this time, in the same form"},
	{H|O|P|C|G, "limit", 'n', "N", NUMBER(limit, 0, UINT32_MAX), "at most N rows (default: 30; 0: all)"},
	{W,       "since", 0, "TIME", TIME(narrowing.since_ns), "show what the service counted from this time on (topdown-groups in mperf.conf): -1h, 10:30, yesterday"},
	{W,       "until", 0, "TIME", TIME(narrowing.until_ns), "only until this time, in the same form"},
	{W,       "cpu", 0, "LIST", OWN(OPTION_CPUS, target.cpu), "with -i or --since: only these harts: 0-3,7"},
	{N,       "limit", 'n', "N", NUMBER(limit, 0, UINT32_MAX), "at most N rows, and one for all others (default: 30; 0: all)"},
	{B,       "limit", 'n', "N", NUMBER(limit, 0, UINT32_MAX), "at most N rows (default: all)"},
	{T,       "limit", 0, "N", NUMBER(limit, 0, UINT32_MAX), "rows per frame (default: 30 as text, 200 on a screen, to scroll)"},
	{H|C|G,   "inlined", 0, NULL, FLAG(inlined), "show inlined functions separately"},
	{F,       "diff", 0, "FILE", STRING(earlier, "the name of a recording"), "colour boxes by how their share differs from that in this recording"},
	{F,       "folded", 0, NULL, FLAG(folded), "write folded stacks for other tools, to stdout unless -o"},
	{F|O|A,     "title", 0, "TEXT", STRING(title, NULL), "the page's title"},
	{H|S|L|D|U|K|O|B|P|M|W|C|G|J|E|N, "json", 0, NULL, FLAG(look.json), "answer in JSON"},
	{O|B|P,   "csv", 0, NULL, FLAG(look.csv), "answer as comma-separated values, all columns"},
	{T,       "json", 0, NULL, FLAG(look.json), "print each frame as one line of JSON"},
	{H|L|T|U|K|O|B|P|W|C|G|J|E|N, "raw", 0, NULL, FLAG(look.raw), "plain numbers without units, separated by tabs"},
	{H|L|D|T|U|K|O|B|P|W|C|G|J|E|N, "no-color", 0, NULL, FLAG(look.no_color), "no colours (same as setting NO_COLOR)"},
	{S,       NULL, 'x', "SEPARATOR", STRING(separator, "a separator, such as ,"), "print fields with this between them, as perf stat -x does"},
	{R|H|F|S|L|D|T|U|K|O|B|P|M|W|C|G|J|X|A|E|N, "quiet", 'q', NULL, OWN_NONE(OPTION_QUIET), "print no notes on stderr, only errors"},
	{R|H|F|S|L|D|T|U|K|O|B|P|M|W|C|G|J|X|A|E|N, "help", 'h', NULL, OWN_NONE(OPTION_HELP), "show this help"},
};
/* clang-format on */
const size_t n_option_rows = sizeof(option_rows) / sizeof(*option_rows);

#define WHOM "[-a | --pid N[,N] | -- CMD...]"

const struct command_text *command_text(int command)
{
	static const struct command_text record = {
		.arguments = "[-a | --pid N[,N] | --since TIME | -- CMD...]",
		.says = "Sample a command, processes or the whole system into a file. With "
			"--since, save what the service has kept of a time instead.",
		.examples = "Examples:\n"
			    "  mperfctl record -- make -j2\n"
			    "  mperfctl record -F 999 -o run.mprf -- ./program --its-option\n"
			    "  mperfctl record -a --for 10s\n"
			    "  mperfctl record --pid 1234      (until it exits, or Ctrl-C)\n"
			    "  mperfctl record --label branch=main -o main.mprf -- ./program\n"
			    "  mperfctl record --wakers -o waits.mprf -- ./program\n"
			    "  mperfctl record --since -10m -o incident.mprf\n",
	};
	static const struct command_text hotspots = {
		.arguments = "[-i FILE | -a | --pid N[,N] | -- CMD...]",
		.says = "Show where the time went. Without -i and without anything to measure, "
			"./mperf.mprf is read; with --since or --until, or if there is no such "
			"file, the service's store (the last hour unless --since).",
		.examples = "Examples:\n"
			    "  mperfctl hotspots -- ./program\n"
			    "  mperfctl hotspots -i run.mprf --by line --comm cc1\n"
			    "  mperfctl hotspots -i run.mprf --callers malloc\n"
			    "  mperfctl hotspots --since yesterday --until today --by process\n"
			    "  mperfctl hotspots -M General -F 499 -- ./program\n"
			    "  mperfctl hotspots --wall --by process -- make -j8\n"
			    "  mperfctl hotspots -a --for 10s --by process --json\n",
	};
	static const struct command_text flamegraph = {
		.arguments = "[-i FILE | -a | --pid N[,N] | -- CMD...]",
		.says = "Draw the call tree as one self-contained page, by CPU time, waiting and "
			"wall time. Without -i and without "
			"anything to measure, ./mperf.mprf is read; with --since or --until, or if "
			"there is no such file, the service's store (the last hour unless "
			"--since).",
		.examples = "Examples:\n"
			    "  mperfctl flamegraph -o flame.html -- ./program\n"
			    "  mperfctl flamegraph -e waiting -i run.mprf   # waiting first\n"
			    "  mperfctl flamegraph -e waiting --wakers -- ./program\n"
			    "  mperfctl record -e cpu-clock,page-faults -o run.mprf -- ./program\n"
			    "  mperfctl flamegraph -i run.mprf --event page-faults -o faults.svg\n"
			    "  mperfctl flamegraph -i after.mprf --diff before.mprf -o diff.html\n"
			    "  mperfctl flamegraph -i run.mprf --folded > stacks.txt\n",
	};
	static const struct command_text report = {
		.arguments = "[-i FILE | -a | --pid N[,N] | -- CMD...]",
		.says = "Write one self-contained page: a timeline in which a range is dragged, "
			"flame graph, call tree and functions of it, by CPU time and waiting. "
			"Without -i and without anything to measure, ./mperf.mprf is read; with "
			"--since or --until, or if there is no such file, the service's store (the "
			"last hour unless --since).",
		.examples = "Examples:\n"
			    "  mperfctl report -- ./program\n"
			    "  mperfctl report -i run.mprf -o run.html\n"
			    "  mperfctl report --since -20m --comm cc1 -o build.html\n"
			    "  mperfctl report -a --for 10s -o machine.html\n",
	};
	static const struct command_text timeline = {
		.arguments = "[-i FILE | -a | --pid N[,N] | -- CMD...]",
		.says = "Show how busy each process, hart or job was over time, a line each, and "
			"when something was lost. Without -i and without anything to measure, "
			"./mperf.mprf is read; with --since or --until, or if there is no such "
			"file, the service's store (the last hour unless --since).",
		.examples = "Examples:\n"
			    "  mperfctl timeline -- make -j8\n"
			    "  mperfctl timeline -i run.mprf\n"
			    "  mperfctl timeline --since -10m --by hart\n"
			    "  mperfctl timeline --since -1h --label job=build --every 10s\n"
			    "  mperfctl timeline -i run.mprf -e waiting:disk\n"
			    "  mperfctl timeline --since -5m --every 1s --json\n",
	};
	static const struct command_text export = {
		.arguments = "--as FORMAT [-i FILE | -a | --pid N[,N] | -- CMD...]",
		.says = "Write samples in the format of another tool: pprof (compressed), folded "
			"stacks, speedscope, `perf script`, comma-separated values, or the Firefox "
			"Profiler. Without -i and without anything to measure, ./mperf.mprf is "
			"read; with --since or --until, or if there is no such file, the service's "
			"store (the last hour unless --since).",
		.examples = "Examples:\n"
			    "  mperfctl export --as pprof -o profile.pb.gz -i run.mprf\n"
			    "  mperfctl export --as speedscope -o run.json -- ./program\n"
			    "  mperfctl export --as firefox --since -10m --comm cc1 -o cc1.json\n"
			    "  mperfctl export --as csv -i run.mprf > samples.csv\n",
	};
	static const struct command_text roofline = {
		.arguments = "[-i FILE | -a | --pid N[,N] | -- CMD...]",
		.says = "Show the hot loops of programs built with mperf-cc: operations and bytes "
			"per second. Without -i and CMD, the service's store is read (the last "
			"hour unless --since), and running programs report first.",
		.examples = "Examples:\n"
			    "  mperfctl roofline -- ./program\n"
			    "  mperfctl roofline --pid 1234 --by function\n"
			    "  mperfctl roofline --from code -F 999 -- xz -k file\n"
			    "  mperfctl roofline --from code -i board.mprf --symfs sysroot\n"
			    "  mperfctl roofline --from counters --plot -- ./program\n"
			    "  mperfctl roofline --from counters -a --for 10s --per-process\n"
			    "  mperfctl roofline --pid 1234 --live -d 2s\n"
			    "  mperfctl roofline --live -- ./program\n"
			    "  mperfctl roofline --since -10m --ops dp --json\n"
			    "  mperfctl roofline --two-phase -- ./program\n"
			    "  mperfctl roofline -o plot.html -- ./program\n"
			    "  mperfctl roofline --plot -i before.out -i after.out\n"
			    "  mperfctl roofline --pid 1234 --loops 'spmv*' --sample 100 --live\n"
			    "  MPERF_OUTPUT=run.out ./program; mperfctl roofline -i run.out\n",
	};
	static const struct command_text blocks = {
		.arguments = "[-i FILE | --pid N[,N] | -- CMD...]",
		.says = "Show the counts of programs built with mperf-cc by time, region, thread "
			"and "
			"block (or loop, if blocks are not counted); as text, the bandwidth of "
			"each "
			"thread over time.",
		.examples = "Examples:\n"
			    "  mperfctl blocks --every 500 -- ./program\n"
			    "  mperfctl blocks --csv --every 1000 --pid 1234 > blocks.csv\n",
	};
	static const struct command_text parallel = {
		.arguments = "[-i FILE | --pid N[,N] | -- CMD...]",
		.says = "Show the parallel regions of OpenMP programs: the time of their threads, "
			"how evenly they work, and what they wait for. It needs LLVM's runtime and "
			"libmperf-ompt.so, which CMD is given. Without -i and CMD, the "
			"service's store is read (the last hour unless --since).",
		.examples = "Examples:\n"
			    "  mperfctl parallel -- ./program\n"
			    "  mperfctl parallel --by wait -- ./program\n"
			    "  mperfctl parallel --by function -F 999 -- ./program\n"
			    "  mperfctl parallel --since -10m --by thread --json\n",
	};
	static const struct command_text stat = {
		.arguments = WHOM,
		.says = "Count events. The figures go to stderr; CMD's output is unchanged.",
		.examples = "Examples:\n"
			    "  mperfctl stat -- ./program\n"
			    "  mperfctl stat -e task-clock,cycles,instructions -r 5 -- ./program\n"
			    "  mperfctl stat -a -I 1000 --for 10s\n"
			    "  mperfctl stat -M General --per-process -- make -j2\n"
			    "  mperfctl stat -M General --per-hart -a --for 10s\n",
	};
	static const struct command_text topdown = {
		.arguments = "[-i FILE | -a | --pid N[,N] | -- CMD...]",
		.says = "Show what share of the machine's slots did useful work, and what the "
			"others were lost to, as a tree of the core's own metrics. The worst path "
			"is marked, with what to look at next.",
		.examples = "Examples:\n"
			    "  mperfctl topdown -- ./program\n"
			    "  mperfctl topdown -l 1 --explain -a --for 10s\n"
			    "  mperfctl topdown -M backend_bound --pid 1234 --for 30s\n"
			    "  mperfctl topdown -a --live -d 2s\n"
			    "  mperfctl topdown --since -1h\n"
			    "  mperfctl topdown -o tree.html -- ./program\n",
	};
	static const struct command_text list = {
		.arguments = "[TOPIC]",
		.says = "List the events that count on this machine, found by trying each.",
		.examples = "Examples:\n  mperfctl list\n  mperfctl list software\n  mperfctl list "
			    "-a cache\n  mperfctl list --decode r40000002007\n",
	};
	static const struct command_text doctor = {
		.arguments = "",
		.says = "Show what this machine can do, what it cannot, and how to fix it. "
			"The exit status is 1 if nothing can be sampled.",
		.examples = "Examples:\n  mperfctl doctor\n  mperfctl doctor -i run.mprf\n",
	};
	static const struct command_text top = {
		.arguments = "",
		.says = "Watch live what the machine is doing: a line per hart, and the functions, "
			"processes, threads, control groups or modules that take the time. On a "
			"terminal it fills the screen, and `?` shows the keys; otherwise it prints "
			"frames as text.",
		.examples = "Examples:\n"
			    "  mperfctl top\n"
			    "  mperfctl top --by process -d 5s\n"
			    "  mperfctl top -F 999 --comm cc1plus\n"
			    "  mperfctl top -b -n 3 --limit 10 > frames.txt\n"
			    "  mperfctl top --json --for 1m | jq -c '.rows[0]'\n",
	};
	static const struct command_text status = {
		.arguments = "",
		.says = "Show what the service costs, stored and lost, by hart and cause, since "
			"its "
			"start and in the last minute.",
		.examples = "Examples:\n  mperfctl status\n  mperfctl status --json\n",
	};
	static const struct command_text store = {
		.arguments = "",
		.says = "Show what the service keeps, for how long at this rate, and what is "
			"removed next. It covers all users, so only root and the group mperf may "
			"see it.",
		.examples = "Examples:\n  mperfctl store\n  mperfctl store --raw\n",
	};
	static const struct command_text roofs = {
		.arguments = "[measure]",
		.says = "Show the limits of this machine: operations per second by precision and "
			"vector unit, and bytes per second by level of memory. `measure` measures "
			"them first, on all harts, and keeps them in your state folder.",
		.examples = "Examples:\n"
			    "  mperfctl roofs measure\n"
			    "  mperfctl roofs measure --quick --json > roofs.json\n"
			    "  mperfctl roofs\n",
	};
	static const struct command_text job = {
		.arguments =
			"[run NAME -- CMD... | start NAME | end | pin SELECTION | unpin SELECTION "
			"| report [SELECTION] | list]",
		.says = "Give labels to a command, or with start to everything that a shell starts "
			"from then on, so that you can select samples by job. pin keeps the "
			"samples "
			"of "
			"jobs in full beyond keep-windows. SELECTION is a job's name, or "
			"KEY=VALUE[,KEY=VALUE...][,last=N]. report shows which processes bounded "
			"how long the latest run took, and how long it would take without each "
			"program. Without arguments, list the jobs that "
			"have processes, and those that are pinned.",
		.examples = "Examples:\n"
			    "  mperfctl job run build --label branch=main -- make -j2\n"
			    "  mperfctl job start tests --label branch=main\n"
			    "  mperfctl job end\n"
			    "  mperfctl job pin build,last=1\n"
			    "  mperfctl job pin branch=main --keep 20\n"
			    "  mperfctl job unpin branch=main\n"
			    "  mperfctl job report build --markdown >> \"$GITHUB_STEP_SUMMARY\"\n"
			    "  mperfctl job report -i mperf.mprf\n"
			    "  mperfctl hotspots --since -1h --by job\n"
			    "  mperfctl hotspots --since -1h --label branch=main\n",
	};
	static const struct command_text schedule = {
		.arguments = "[list | check [FILE...] | run NAME | get RECORDING]",
		.says = "Show the schedules of /etc/mperf/schedules.d: what they recorded, what "
			"was skipped and why, and what comes next. check reads files and says what "
			"is wrong with them; run begins a schedule that has a time, as its timer "
			"does; get writes a recording to a file.",
		.examples =
			"Examples:\n"
			"  mperfctl schedule\n"
			"  mperfctl schedule check ./nightly.schedule\n"
			"  mperfctl schedule run nightly\n"
			"  mperfctl schedule get nightly/20261121T020000Z-12.mprf -o night.mprf\n",
	};
	static const struct command_text diff = {
		.arguments = "BASELINE CANDIDATE",
		.says = "Show what changed between two sides of runs, by function, and how "
			"sure that is. A side is a recording, a folder of them, a pattern in "
			"quotes, or jobs of the service's store by their labels; with at least 5 "
			"on each, in turns, changes are tested. Recordings of two instruction sets "
			"are shown side by side.",
		.examples = "Examples:\n"
			    "  mperfctl diff before.mprf after.mprf\n"
			    "  mperfctl diff main/ branch/ --by module\n"
			    "  mperfctl diff main/ branch/ --by loop\n"
			    "  mperfctl diff laptop.mprf riscv-board.mprf\n"
			    "  mperfctl diff 'runs/main-*.mprf' 'runs/pr-*.mprf' --json\n"
			    "  mperfctl diff job=bench,branch=main,last=10 job=bench,branch=pr\n"
			    "  mperfctl diff since=09:00,until=10:00 since=10:00,until=11:00\n",
	};
	static const struct command_text gate = {
		.arguments = "--baseline RUNS --candidate RUNS",
		.says = "Say whether the candidate is slower than the baseline. Exit status: 0 "
			"within the margin, 3 slower, 4 not enough to tell, 1 failed, 2 wrong "
			"usage.",
		.examples =
			"Examples:\n"
			"  mperfctl gate --baseline main/ --candidate branch/\n"
			"  mperfctl gate --baseline main/ --candidate branch/ --max-regression 5%\n"
			"  mperfctl gate --baseline main/ --candidate pr/ --markdown > report.md\n"
			"  mperfctl gate --baseline main/ --candidate pr/ --junit gate.xml\n"
			"  mperfctl gate --baseline branch=main,last=20 --candidate "
			"branch=feature\n",
	};
	switch (command) {
#define COMMAND(id, name, summary)                                                                 \
	case MPERF__REQUEST__BODY_##id:                                                            \
		return &name;
#include "proto/command.inc"
#undef COMMAND
	default:
		return NULL;
	}
}

const char *command_name(int command)
{
	switch (command) {
#define COMMAND(id, name, summary)                                                                 \
	case MPERF__REQUEST__BODY_##id:                                                            \
		return #name;
#include "proto/command.inc"
#undef COMMAND
	default:
		return NULL;
	}
}
