/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One row per option with the commands that take it: help, parsing and the hint after a typing
 * error all read this table. Short options are perf's where perf has the same option.
 */
#include "client/options/table.h"

#include "proto/mperf.pb-c.h"

#define R COMMAND_BIT(RECORD)
#define H COMMAND_BIT(HOTSPOTS)
#define F COMMAND_BIT(FLAMEGRAPH)
#define S COMMAND_BIT(STAT)
#define L COMMAND_BIT(LIST)
#define D COMMAND_BIT(DOCTOR)
#define T COMMAND_BIT(TOP)
#define U COMMAND_BIT(STATUS)
#define K COMMAND_BIT(STORE)
#define O COMMAND_BIT(ROOFLINE)
#define B COMMAND_BIT(BLOCKS)
#define P COMMAND_BIT(PARALLEL)
#define M COMMAND_BIT(ROOFS)
#define W COMMAND_BIT(TOPDOWN)
#define C COMMAND_BIT(DIFF)
#define G COMMAND_BIT(GATE)
#define J COMMAND_BIT(JOB)
#define X COMMAND_BIT(EXPORT)
#define E COMMAND_BIT(SCHEDULE)

const struct option_row option_rows[] = {
	/* clang-format off */
	{R|H|F|S|W|X, "all", 'a', NULL, false, "measure the whole system"},
	{O,       "all", 'a', NULL, false, "with --from counters: measure the whole system"},
	{L,       "all", 'a', NULL, false, "also show events that do not count here, and why"},
	{R|S|W,   "pid", OPTION_PID, "N[,N]", false, "measure these processes and what they start"},
	{H|F|X,   "pid", OPTION_PID, "N[,N]", false, "measure these processes and what they start; with -i or --since: show only these"},
	{O,       "pid", OPTION_PID, "N[,N]", false, "only these processes; with --from counters: measure these and what they start"},
	{B|P,     "pid", OPTION_PID, "N[,N]", false, "only these processes"},
	{T,       "pid", OPTION_PID, "N[,N]", false, "only these processes and what they start"},
	{R|H|F|S|T|W|X, "for", OPTION_FOR, "TIME", false, "stop after this time: 10s, 500ms, 2m"},
	{R|S,     "event", 'e', "EVENT", false, "event to measure, in perf's grammar; may be repeated (default: the best that works here)"},
	{S,       "per-hart", OPTION_PER_HART, NULL, false, "show the counts of each hart apart"},
	{S,       "per-process", OPTION_PER_PROCESS, NULL, false, "show metrics of each process, counted beside its samples"},
	{O,       "per-process", OPTION_PER_PROCESS, NULL, false, "with --from counters: a mark for each process, counted beside its samples"},
	{S,       "per-cgroup", OPTION_PER_CGROUP, NULL, false, "show metrics of each control group, in the same way"},
	{S,       "metrics", 'M', "NAME[,NAME]", false, "metrics, or groups of them, of this machine's cores: their events are counted and their values printed"},
	{H,       "metrics", 'M', "NAME[,NAME]", false, "metrics, or groups of them, of each row: their events ride on the samples, or did in what is read"},
	{R,       "metrics", 'M', "NAME[,NAME]", false, "let the events of these metrics, or groups of them, ride on the samples: for hotspots -i, diff and topdown -i"},
	{W,       "level", 'l', "LEVEL", false, "show this many levels of the tree (default: as many as can be counted at once)"},
	{C|G,     "metrics", 'M', "NAME[,NAME]", false, "also how metrics, or groups of them, of each row changed, of recordings that counted their events"},
	{W,       "metrics", 'M', "NAME", false, "the tree below this metric, or whose first level is this group (default: TopdownL1)"},
	{S,       "explain", OPTION_EXPLAIN, NULL, false, "also print the plan: which events are counted together, on which counters, and whether they take turns"},
	{L,       "decode", OPTION_DECODE, "RAW", false, "print the fields of this raw code, as r22 or 0x22, and what they mean on this machine's cores"},
	{W,       "explain", OPTION_EXPLAIN, NULL, false, "of each row also print formula, inputs with their counts, passes, error and source"},
	{H|F|X,   "event", 'e', "EVENT", false, "measuring: event to sample, in perf's grammar, may be repeated; reading: the measured event whose counts are shown (default: the sampling event)"},
	{O,       "for", OPTION_FOR, "TIME", false, "stop the measurement after this time: 10s, 500ms, 2m"},
	{B|P,     "for", OPTION_FOR, "TIME", false, "stop CMD's measurement after this time: 10s, 500ms, 2m"},
	{O,       "freq", 'F', "HZ", false, "samples per second and hart while CMD runs (default: 99; with --from code, of some processes: 999)"},
	{P,       "freq", 'F', "HZ", false, "samples per second and hart while CMD runs (default: 99)"},
	{R|H|F|X, "freq", 'F', "HZ", false, "samples per second and hart (default: 999; with -a: 99)"},
	{R|H|F|X, "count", 'c', "PERIOD", false, "instead of -F: a sample every PERIOD occurrences of each event of -e (ns of a clock)"},
	{T,       "freq", 'F', "HZ", false, "samples per second and hart while this runs (default: the daemon's rate for top)"},
	{R|H|F|T|X, "overhead", OPTION_OVERHEAD, "SHARE", false, "sample less where mperf would cost a hart more of its time: 5%, 0.5% (default: no limit)"},
	{R|H|F|P|X, "call-graph", 'g', "KIND", true, "how callers are found: fp (default; dwarf for a CMD without frame pointers), dwarf[,BYTES], none"},
	{R|H|F|S|W|X, "user", 'U', NULL, false, "exclude the kernel"},
	{R,       "output", 'o', "FILE", false, "file to write (default: mperf.mprf); - is stdout"},
	{E,       "output", 'o', "FILE", false, "get: file to write (default: mperf.mprf)"},
	{E,       "force", 'f', NULL, false, "get: overwrite a file that is not a recording"},
	{F,       "output", 'o', "FILE", false, "file to write (default: flame.html); a name that ends in .svg gets plain SVG; - is stdout"},
	{X,       "as", OPTION_AS, "FORMAT", false, "the format to write: pprof, folded, speedscope, perf-script, csv, firefox"},
	{X,       "output", 'o', "FILE", false, "file to write (default: stdout); - is stdout"},
	{O,       "plot", OPTION_PLOT, NULL, false, "draw the loops under the machine's roofs, above the table"},
	{O,       "peaks", OPTION_PEAKS, NULL, false, "draw theoretical peaks of the cores beside measured roofs"},
	{O,       "output", 'o', "FILE", false, "draw the plot into this file: a page, or plain SVG if the name ends in .svg; - is stdout; with --json, --csv or --raw: write that"},
	{W,       "output", 'o', "FILE", false, "draw the tree into this file: a page, or plain SVG if the name ends in .svg; - is stdout; with --json or --raw: write that"},
	{S,       "output", 'o', "FILE", false, "write the figures to FILE instead of stderr"},
	{H|L|D|T|U|K|B|P|M|C|G|J, "output", 'o', "FILE", false, "file to write the answer to (default: stdout)"},
	{R,       "force", 'f', NULL, false, "overwrite a file that is not a recording"},
	{H|F|S|L|D|T|U|K|O|B|P|M|W|C|G|J|X, "force", 'f', NULL, false, "overwrite FILE of -o, whatever it is"},
	{S,       "repeat", 'r', "N", false, "run CMD N times; print the mean and the spread"},
	{S,       "interval", 'I', "TIME", false, "print the counts every TIME: 500ms, 2s; a number alone is in milliseconds"},
	{T,       "interval", 'I', "TIME", false, "time between frames, 100ms to 60s (default: 1s); a number alone is in milliseconds"},
	{T|O|W,   NULL, 'd', "TIME", false, "the same; a number alone is in seconds"},
	{O,       "live", OPTION_LIVE, NULL, false, "keep showing what running programs, or CMD, reached since the last frame"},
	{O|W,     "interval", 'I', "TIME", false, "with --live: time between frames, 1s to 60s (default: 1s); a number alone is in milliseconds"},
	{B,       "live", OPTION_LIVE, NULL, false, "keep drawing the bandwidth of running programs, or CMD, of the last minute, or of sixty intervals of -I"},
	{W,       "live", OPTION_LIVE, NULL, false, "keep showing the tree of the time since the last frame"},
	{T,       "frames", 'n', "N", false, "exit after N frames, as top(1) does"},
	{O|B|W,   "frames", OPTION_FRAMES, "N", false, "exit after N frames"},
	{T,       "batch", 'b', NULL, false, "print frames as text, even on a terminal"},
	{H|F|D|X, "input", 'i', "FILE", false, "read this recording"},
	{W,       "input", 'i', "FILE", false, "show what this recording counted"},
	{O,       "input", 'i', "FILE", false, "read this recording, or the file that a program wrote for MPERF_OUTPUT; of two, draw how loops moved from the first to the second"},
	{B|P,     "input", 'i', "FILE", false, "read this recording, or the file that a program wrote for MPERF_OUTPUT"},
	{M,       "input", 'i', "FILE", false, "show the roofs in this file, as --json wrote it"},
	{M,       "quick", OPTION_QUICK, NULL, false, "measure: the most wanted roofs alone, in 10 s"},
	{M,       "for", OPTION_FOR, "TIME", false, "measure: at most for this time, 1s to 1h (default: 1m)"},
	{H,       "by", OPTION_BY, "WHAT", false, "function (default), module, process, thread, cgroup, job, line, hart, address"},
	{O,       "by", OPTION_BY, "WHAT", false, "loop (default), function, region, thread"},
	{P,       "by", OPTION_BY, "WHAT", false, "region (default), thread, place, wait, loop, function"},
	{O,       "ops", OPTION_OPS, "KIND", false, "operations to count: fp (default), int, sp, dp"},
	{O,       "from", OPTION_FROM, "SOURCE", false, "where figures come from, what loops of programs report, the machine code that samples fell on, or hardware counters of any program: counts (default), code, counters"},
	{O,       "symfs", OPTION_SYMFS, "DIR", false, "with --from code: look for programs and libraries in DIR, by their path there or by name"},
	{O,       "vector-bits", OPTION_VECTOR_BITS, "N", false, "with --from code: bits of a vector register of SVE or RVV where the samples were taken"},
	{O,       "inclusive", OPTION_INCLUSIVE, NULL, false, "show loops with the loops inside, not by themselves"},
	{O,       "columns", OPTION_COLUMNS, "NAME[,NAME]", false, "columns of the table, by their names in --csv; all: every one (default: share, rates, operations per byte, error)"},
	{O,       "notes", OPTION_NOTES, NULL, false, "print all notes on the figures, and what the columns mean"},
	{O,       "loops", OPTION_LOOPS, "GLOB[,GLOB]", false, "from now on count only functions of these names and their loops (program built with mode=clone)"},
	{O,       "sample", OPTION_SAMPLE, "N", false, "count 1 in N entries of these (1: each; 0: none)"},
	{O,       "two-phase", OPTION_TWO_PHASE, NULL, false, "run CMD three times: for time only, counting, and for time again, which gives the errors; refuse loops that ran differently"},
	{B,       "interval", 'I', "TIME", false, "split time into intervals of TIME, 100ms to 1h; a number alone is in milliseconds"},
	{B,       "every", OPTION_EVERY, "TIME", false, "the same"},
	{C|G,     "by", OPTION_BY, "WHAT", false, "function (default), module, process, cgroup, line, loop"},
	{C|G,     "baseline", OPTION_BASELINE, "RUNS", false, "the side to compare with: a recording, a folder of *.mprf, a pattern in quotes, or jobs of the store by their labels; may be repeated"},
	{C|G,     "candidate", OPTION_CANDIDATE, "RUNS", false, "the side that is compared with it; may be repeated"},
	{G,       "max-regression", OPTION_MARGIN, "SHARE", false, "growth that is let through (default: 2%)"},
	{C,       "margin", OPTION_MARGIN, "SHARE", false, "change that is too small to matter (default: 2%)"},
	{C|G,     "plan-for", OPTION_PLAN_FOR, "SHARE", false, "growth for which the needed number of runs is said (default: 5%)"},
	{G,       "layout-allowance", OPTION_ALLOWANCE, "SHARE", false, "growth that another layout of the same code may make (default: none)"},
	{G,       "looks", OPTION_LOOKS, "N", false, "how often you look, with more runs each time, until it is decided (default: 2)"},
	{C|G,     "any-order", OPTION_ANY_ORDER, NULL, false, "decide also where the sides did not run in turns"},
	{C,       "side-by-side", OPTION_SIDE_BY_SIDE, NULL, false, "show both sides beside each other and test nothing, as between two machines"},
	{C|G,     "markdown", OPTION_MARKDOWN, NULL, false, "answer in Markdown"},
	{G,       "junit", OPTION_JUNIT, "FILE", false, "also write JUnit's XML to FILE"},
	{C|G,     "pid", OPTION_PID, "N[,N]", false, "only these processes"},
	{T,       "by", OPTION_BY, "WHAT", false, "function (default), module, process, thread, cgroup, job"},
	{H|F|T|O|B|P|C|G|X, "comm", OPTION_COMM, "NAME", false, "only processes of this name; may be repeated"},
	{H|F|T|C|G|X, "cgroup", OPTION_CGROUP, "PATH", false, "only this cgroup, or all below it if the path ends in /; may be repeated"},
	{H|F|T|C|G|O|B|P|X, "label", OPTION_LABEL, "KEY=VALUE", false, "only jobs with this label, whose value may have * and ?; may be repeated"},
	{R,       "label", OPTION_LABEL, "KEY=VALUE", false, "a label that all processes have in the recording; may be repeated"},
	{J,       "label", OPTION_LABEL, "KEY=VALUE", false, "run, start: a label of the job; may be repeated"},
	{J,       "pin", OPTION_PIN, "SELECTION", true, "run: keep the job's samples beyond keep-windows; with --keep, SELECTION says of which jobs (default: this one)"},
	{J,       "keep", OPTION_KEEP, "N", false, "pin, run --pin: keep the latest N jobs of the selection, and unpin those before (default: until job unpin)"},
	{J,       "pid", OPTION_PID, "N", false, "start, end: this process (default: the one that runs mperfctl)"},
	{H|F|T|C|G|X, "cpu", OPTION_CPU, "LIST", false, "only these harts: 0-3,7"},
	{H|F|O|B|P|X, "since", OPTION_SINCE, "TIME", false, "only from this time: 10:30, yesterday, \"2026-11-21 10:00\", -5m, \"2 weeks ago\"; without -i, from the service's store"},
	{H|F|O|B|P|X, "until", OPTION_UNTIL, "TIME", false, "only until this time, in the same form"},
	{H|O|P|C|G, "limit", 'n', "N", false, "at most N rows (default: 30; 0: all)"},
	{W,       "since", OPTION_SINCE, "TIME", false, "show what the service counted from this time on (topdown-groups in mperf.conf): -1h, 10:30, yesterday"},
	{W,       "until", OPTION_UNTIL, "TIME", false, "only until this time, in the same form"},
	{W,       "cpu", OPTION_CPU, "LIST", false, "with -i or --since: only these harts: 0-3,7"},
	{B,       "limit", 'n', "N", false, "at most N rows (default: all)"},
	{T,       "limit", OPTION_LIMIT, "N", false, "rows per frame (default: 30 as text, 200 on a screen, to scroll)"},
	{H|C|G,   "inlined", OPTION_INLINED, NULL, false, "show inlined functions separately"},
	{F,       "diff", OPTION_DIFF, "FILE", false, "colour boxes by how their share differs from that in this recording"},
	{F,       "folded", OPTION_FOLDED, NULL, false, "write folded stacks for other tools, to stdout unless -o"},
	{F|O,     "title", OPTION_TITLE, "TEXT", false, "the page's title"},
	{H|S|L|D|U|K|O|B|P|M|W|C|G|J|E, "json", OPTION_JSON, NULL, false, "answer in JSON"},
	{O|B|P,   "csv", OPTION_CSV, NULL, false, "answer as comma-separated values, all columns"},
	{T,       "json", OPTION_JSON, NULL, false, "print each frame as one line of JSON"},
	{H|L|T|U|K|O|B|P|W|C|G|J|E, "raw", OPTION_RAW, NULL, false, "plain numbers without units, separated by tabs"},
	{H|L|D|T|U|K|O|B|P|W|C|G|J|E, "no-color", OPTION_NO_COLOR, NULL, false, "no colours (same as setting NO_COLOR)"},
	{S,       NULL, 'x', "SEPARATOR", false, "print fields with this between them, as perf stat -x does"},
	{R|H|F|S|L|D|T|U|K|O|B|P|M|W|C|G|J|X|E, "quiet", 'q', NULL, false, "print no notes on stderr, only errors"},
	{R|H|F|S|L|D|T|U|K|O|B|P|M|W|C|G|J|X|E, "help", 'h', NULL, false, "show this help"},
	/* clang-format on */
};
const size_t n_option_rows = sizeof(option_rows) / sizeof(*option_rows);

#define WHOM "[-a | --pid N[,N] | -- CMD...]"

const struct command_text *command_text(int command)
{
	static const struct command_text record = {
		.arguments = WHOM,
		.says = "Sample a command, processes or the whole system into a file.",
		.examples =
			"Examples:\n"
			"  mperfctl record -- make -j2\n"
			"  mperfctl record -F 999 -g dwarf -o run.mprf -- ./program --its-option\n"
			"  mperfctl record -a --for 10s\n"
			"  mperfctl record --pid 1234      (until it exits, or Ctrl-C)\n"
			"  mperfctl record --label branch=main -o main.mprf -- ./program\n",
	};
	static const struct command_text hotspots = {
		.arguments = "[-i FILE | -a | --pid N[,N] | -- CMD...]",
		.says = "Show where the time went. Without -i and without anything to measure, "
			"./mperf.mprf is read; with --since or --until, or if there is no such "
			"file, the service's store (the last hour unless --since).",
		.examples = "Examples:\n"
			    "  mperfctl hotspots -- ./program\n"
			    "  mperfctl hotspots -i run.mprf --by line --comm cc1\n"
			    "  mperfctl hotspots --since yesterday --until today --by process\n"
			    "  mperfctl hotspots -M General -F 499 -- ./program\n"
			    "  mperfctl hotspots -a --for 10s --by process --json\n",
	};
	static const struct command_text flamegraph = {
		.arguments = "[-i FILE | -a | --pid N[,N] | -- CMD...]",
		.says = "Draw the call tree as one self-contained page. Without -i and without "
			"anything to measure, ./mperf.mprf is read; with --since or --until, or if "
			"there is no such file, the service's store (the last hour unless "
			"--since).",
		.examples = "Examples:\n"
			    "  mperfctl flamegraph -o flame.html -- ./program\n"
			    "  mperfctl record -e cpu-clock,page-faults -o run.mprf -- ./program\n"
			    "  mperfctl flamegraph -i run.mprf --event page-faults -o faults.svg\n"
			    "  mperfctl flamegraph -i after.mprf --diff before.mprf -o diff.html\n"
			    "  mperfctl flamegraph -i run.mprf --folded > stacks.txt\n",
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
		.says = "Show the parallel regions of OpenMP programs that run with LLVM's runtime "
			"and libmperf-ompt.so, which CMD is given: the time of their threads, how "
			"evenly they work, and what they wait for. Without -i and CMD, the "
			"service's store is read (the last hour unless --since).",
		.examples = "Examples:\n"
			    "  mperfctl parallel -- ./program\n"
			    "  mperfctl parallel --by wait -- ./program\n"
			    "  mperfctl parallel --by function -F 999 -g dwarf -- ./program\n"
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
			"others were lost to, as a tree of the core's own metrics, with the worst "
			"path marked and what to look at next.",
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
			"removed next. It is of all users, so for root and the group mperf.",
		.examples = "Examples:\n  mperfctl store\n  mperfctl store --raw\n",
	};
	static const struct command_text roofs = {
		.arguments = "[measure]",
		.says = "Show what this machine can do at most: operations per second by precision "
			"and vector unit, and bytes per second by level of memory. `measure` "
			"measures them first, on all harts, and keeps them in your state folder.",
		.examples = "Examples:\n"
			    "  mperfctl roofs measure\n"
			    "  mperfctl roofs measure --quick --json > roofs.json\n"
			    "  mperfctl roofs\n",
	};
	static const struct command_text job = {
		.arguments =
			"[run NAME -- CMD... | start NAME | end | pin SELECTION | unpin SELECTION "
			"| list]",
		.says = "Give labels to a command, or with start to all that a shell starts from "
			"then on, so that samples can be asked for by job. pin keeps the samples "
			"of "
			"jobs in full beyond keep-windows. SELECTION is a job's name, or "
			"KEY=VALUE[,KEY=VALUE...][,last=N]. Without arguments, list the jobs that "
			"have processes, and those that are pinned.",
		.examples = "Examples:\n"
			    "  mperfctl job run build --label branch=main -- make -j2\n"
			    "  mperfctl job start tests --label branch=main\n"
			    "  mperfctl job end\n"
			    "  mperfctl job pin build,last=1\n"
			    "  mperfctl job pin branch=main --keep 20\n"
			    "  mperfctl job unpin branch=main\n"
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
