# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions that are measured at 1 in N entries, as in Examem's figures 7, 8, 9 and 11: accuracy of bytes and
bandwidth, and overhead without and with three counters.

Kernels are those of tests/kernels/graph.c, whose regions take some microseconds each. The program is
built with mode=clone, so N chooses what its functions count (MPERF_SAMPLE) as well as at which entries
of regions clock and counters are read (MPERF_REGION_SAMPLE)."""
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import accuracy
from machine import Folder, mperfctl
from service import Service
from subjects import KERNELS

NAMES = ("bfs", "pr", "cc", "tc", "sssp")
ONE_IN = (1, 10, 100)  # 100, 10 and 1 %
TRACED = (1, 3)        # rounds, of which lackey sees the difference; less those without regions
SECONDS_WANTED = 0.4   # of a run: the counters come after the first report
PERIOD_MS = 50
LEAST = 1e-3           # bytes, or GB/s: below, a ratio says nothing (tc stores nothing)
EVENTS = "page-faults,task-clock,context-switches"
TIMES_95 = {5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306}  # Student's t by number of runs

# What the paper Examem prints in words; its figures are pictures without numbers.
THEIRS = {
    "figure 7": "bytes: 93 % geometric mean over 24 programs, almost exact on GAPBS (abstract; IV.B)",
    "figure 8": "bandwidth: 87 % (I), under-reported by 10 % on average; half of GAPBS 5 to 15 % too high (IV.C)",
    "figure 9": "1 %: +8 % geometric mean (I); 100 %: mcf, povray more than 3x, at 1 % 1.2x (IV.D)",
    "figure 11": "100 %: mcf, povray more than 80x; a read of a counter 150 ns and more (IV.D)",
}


def undisturbed():
    """Before others on its hart: else preemption, which hits few entries, is most of the difference between
    two runs."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        pass  # a container that may not


class Graph:
    """The kernels, built plain and counted."""

    def __init__(self, shop, target):
        self.shop, self.target = shop, target
        source = [KERNELS / "graph.c"]
        self.plain = shop.program(target, source, False)
        self.counted = shop.program(target, source, True, words="mode=clone")

    def environment(self, one_in, **more):
        return dict(os.environ, MPERF_SAMPLE=str(one_in), MPERF_REGION_SAMPLE=str(one_in),
                    MPERF_PERIOD=str(PERIOD_MS), **more)

    def rounds(self, name):
        """Rounds of which a plain run takes about SECONDS_WANTED."""
        rounds = 16
        while (took := self.run(self.plain, name, rounds, os.environ)[1]) < SECONDS_WANTED / 4:
            rounds *= 4
        return max(1, int(rounds * SECONDS_WANTED / took))

    def run(self, program, name, rounds, environment):
        """CPU seconds of the process, and those of its kernel by its own clock."""
        if "MPERF_OUTPUT" in environment:
            Path(environment["MPERF_OUTPUT"]).unlink(missing_ok=True)
        process = subprocess.Popen([program, name, str(rounds)], env=environment, text=True,
                                   stdout=subprocess.PIPE, preexec_fn=undisturbed)
        text = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"{program} {name}: exit {process.returncode}")
        return used.ru_utime + used.ru_stime, float(text.split()[1])

    def region(self, output):
        said = json.loads(mperfctl(self.shop.build, "roofline", "--by", "region", "--json", "-i",
                                   output).stdout)
        row, = [r for r in said["rows"] if r["region"] == "chunk"]
        return row


def true_bytes(graph, name):
    """{loaded or stored: bytes of one round's regions}, outside the stack, as lackey sees the plain program."""
    seen, of_round = accuracy.Lackey(graph.shop), {}
    for kernel in name, f"-{name}":
        few, many = (seen(graph.target, graph.plain, [kernel, n]) for n in TRACED)
        of_round[kernel] = {way: (many[way, "outside"] - few[way, "outside"]) / (TRACED[1] - TRACED[0])
                            for way in ("loaded", "stored")}
    return {way: of_round[name][way] - of_round[f"-{name}"][way] for way in ("loaded", "stored")}


def middle(values):
    """Median, and a 95 % interval of the mean by Student's t."""
    half = TIMES_95.get(len(values), 3.2) * statistics.stdev(values) / len(values) ** 0.5
    return statistics.median(values), statistics.mean(values) - half, statistics.mean(values) + half


def ratio(part, whole):
    return part / whole if part is not None and whole > LEAST else None


def accuracy_of(graph, name, rounds, n_runs):
    """Figures 7 and 8: a row for each rate. Bandwidth is that of the plain program in a run beside."""
    true, rows = true_bytes(graph, name), []
    for one_in in ONE_IN:
        found = {key: [] for key in ("read", "written", "read_rate", "written_rate")}
        output = graph.shop.folder / "graph.mperf"
        for _ in range(n_runs):
            _, seconds = graph.run(graph.plain, name, rounds, os.environ)
            graph.run(graph.counted, name, rounds, graph.environment(one_in, MPERF_OUTPUT=str(output)))
            row = graph.region(output)
            for way, column, rate in (("read", "bytes_loaded", "gbytes_read_corrected"),
                                      ("written", "bytes_stored", "gbytes_written_corrected")):
                whole = true["loaded" if way == "read" else "stored"] * rounds
                found[way].append(ratio(row[column], whole))
                found[f"{way}_rate"].append(ratio(row[rate], whole / seconds / 1e9))
            last = row
        rows.append({"kernel": name, "one_in": one_in, "measured": last.get("measured_entries"),
                     "entries": last["entries"], "error": last["error"],
                     "sampling_error": last.get("sampling_error"), **{
                         key: middle(v) if None not in v else None for key, v in found.items()}})
        print(f"regions: {name} 1 in {one_in}: {rows[-1]}", file=sys.stderr, flush=True)
    return rows


def overhead_of(graph, name, rounds, n_runs, environments):
    """Figures 9 and 11: CPU time over plain, by turns; {what: (median, least, most)}."""
    ratios = {what: [] for what in environments}
    for _ in range(n_runs):
        plain, _ = graph.run(graph.plain, name, rounds, os.environ)
        for what, environment in environments.items():
            ratios[what].append(graph.run(graph.counted, name, rounds, environment)[0] / plain)
    return {what: middle(values) for what, values in ratios.items()}


def measure(shop, target, n_runs, wanted=None):
    graph, accurate, costs = Graph(shop, target), [], []
    n_runs = max(5, n_runs)
    with Folder() as folder, Service(shop.build, folder, flush="5s", period="50ms",
                                     region_events=EVENTS) as service:
        for name in NAMES:
            if wanted and name not in wanted:
                continue
            rounds = graph.rounds(name)
            accurate += accuracy_of(graph, name, rounds, n_runs)
            environments = {}
            for one_in in ONE_IN:
                environments["without", one_in] = graph.environment(one_in, MPERF_OUTPUT=str(folder / "costs"))
                environments["with", one_in] = graph.environment(one_in, MPERF_FEED=str(service.feed))
            found = overhead_of(graph, name, rounds, n_runs, environments)
            costs += [{"kernel": name, "counters": counters, "one_in": one_in, "ratio": value}
                      for (counters, one_in), value in found.items()]
            print(f"regions: {name} {found}", file=sys.stderr, flush=True)
    return {"accuracy": accurate, "costs": costs, "runs": n_runs}


# --- the table -----------------------------------------------------------------------------------------

def cell(value):
    return "none" if value is None else f"{value[0]:.3f} [{value[1]:.3f}, {value[2]:.3f}]"


def mean_of(values):
    """Geometric mean of medians."""
    values = [v[0] for v in values if v]
    return f"{statistics.geometric_mean(values):.3f}" if values else "none"


def grid(title, rows, value, theirs, kernels):
    """A line for each kernel and one of their means, a column for each rate."""
    lines = [f"### {title}", "", f"Theirs: {theirs}. Source: Examem.", "",
             "| kernel | 100 % | 10 % | 1 % |", "|---|---|---|---|"]
    by = {(r["kernel"], r["one_in"]): value(r) for r in rows}
    for kernel in kernels:
        lines.append(f"| {kernel} | " + " | ".join(cell(by[kernel, n]) for n in ONE_IN) + " |")
    lines.append("| geometric mean | " + " | ".join(
        mean_of([by[k, n] for k in kernels]) for n in ONE_IN) + " |")
    return [*lines, ""]


def lines(result):
    accurate, costs = result["accuracy"], result["costs"]
    kernels = list(dict.fromkeys(r["kernel"] for r in accurate))
    out = [f"Medians of {result['runs']} interleaved runs, with 95 % intervals of the mean.", ""]
    for way in "read", "written":
        out += grid(f"Figure 7: bytes {way}, over what lackey saw", accurate, lambda r: r[way],
                    THEIRS["figure 7"], kernels)
    for way in "read", "written":
        out += grid(f"Figure 8: bandwidth {way} (equations 1 to 5), over the plain program's", accurate,
                    lambda r: r[f"{way}_rate"], THEIRS["figure 8"], kernels)
    for figure, counters in ("9", "without"), ("11", "with"):
        chosen = [r for r in costs if r["counters"] == counters]
        out += grid(f"Figure {figure}: CPU time over plain, {counters} three counters", chosen,
                    lambda r: r["ratio"], THEIRS[f"figure {figure}"], kernels)
    return out
