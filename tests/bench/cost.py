# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What sampling costs the programs that are sampled: the smallest difference that can be measured.

A round runs each load once without and once beside each tool. Figures are taken within a round, since
machines drift; the table has their median and its 95 % interval, beside the aim."""
import json
import math
import statistics
import subprocess
import sys
import time

import tools
from loads import HERE

ALWAYS_MOST = 1.02    # times plain, of sampling that is always on
RECORD_MOST = 0.5     # points more than perf record
TRAPS_NS = 1000       # of one read of a counter: on hardware it takes less than a tenth of that
WARM_UP_SHARE = 0.3   # of a run, for the tool to meet the programs
SURE = 0.95


class Shipped(tools.Mperf):
    """The service with everything as it is shipped."""
    name = "mperf, always on"


class Recorded(tools.Record):
    """perf record by cycles where there are any, which is what mperf samples by there."""
    event = "cpu-clock"

    def command(self):
        return ["perf", "record", "-a", "-g", "-e", self.event, "-F", str(self.hz), "-o",
                self.folder / "perf.data"]


SHIPPED_HZ, RECORD_HZ = 99, 999
# key of a row, tool, rate
RUNS = (("plain", tools.Nothing, 0), ("mperf 99", Shipped, SHIPPED_HZ),
        ("perf 99", Recorded, SHIPPED_HZ), ("mperf 999", tools.Mperf, RECORD_HZ),
        ("perf 999", Recorded, RECORD_HZ))


# --- the machine ---------------------------------------------------------------------------------

def probe(folder):
    """What counter.c finds here."""
    program = folder / "counter"
    subprocess.run(["cc", "-O2", "-o", program, HERE / "counter.c"], check=True)
    return json.loads(subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout)


def rate_limit():
    with open("/proc/sys/kernel/perf_event_max_sample_rate", encoding="ascii") as file:
        return int(file.read())


def kind_says(found):
    """The machine's kind, as a sentence."""
    if not found["counts"]:
        return "no PMU: nothing counts cycles"
    traps = found["read_ns"] > TRAPS_NS
    return (f"a PMU that {'samples' if found['samples'] else 'counts and does not sample'}, "
            f"{'whose registers trap to the host' if traps else 'not trapping'}: one read of a counter "
            f"takes {found['read_ns'] / 1000:.2f} µs")


# --- the runs ------------------------------------------------------------------------------------

def one(key, kind, hz, folder, loads, load):
    with kind(folder, hz) as _:
        loads.run(load, WARM_UP_SHARE)
        usage = loads.usage(load)
    return {"key": key, "load": load, "cpu_s": usage.cpu_s, "n_switches": usage.n_switches}


def measure(o, loads, folder):
    found = probe(folder)
    Recorded.event = "cycles" if found["samples"] else "cpu-clock"
    switching, absent = loads.switching()
    runs, lacking = [], {}
    for load in (*loads.NAMES, *switching):
        loads.calibrate(load, o.seconds / 2)
        for n in range(o.cost_rounds):
            for key, kind, hz in RUNS[n % len(RUNS):] + RUNS[:n % len(RUNS)]:
                if key in lacking:
                    continue
                try:
                    runs.append({**one(key, kind, hz, folder, loads, load), "round": n})
                except tools.Absent as e:
                    lacking[key] = str(e)
                    continue
                print(f"{load}, round {n}, {key}: {runs[-1]['cpu_s']:.3f} s, "
                      f"{runs[-1]['n_switches']} switches", file=sys.stderr, flush=True)
    return {"machine": found, "rate_limit": rate_limit(), "event": Recorded.event, "runs": runs, "seconds": o.seconds / 2,
            "rounds": o.cost_rounds, "absent": [*absent, *lacking.values()],
            "ended": time.strftime("%Y-%m-%d %H:%M")}


# --- the table -----------------------------------------------------------------------------------

def interval(values):
    """The median, and the interval of order statistics that has the true median in it with at least 95 %:
    one loud round moves neither. Below six values no interval has that: both ends are None.
    Source: David and Nagaraja, Order Statistics, 3rd ed., 7.1."""
    ordered, n = sorted(values), len(values)
    beyond, k = 0.5 ** n, 0  # the chance of at most k values below the median
    while beyond <= (1 - SURE) / 2:
        k += 1
        beyond += math.comb(n, k) * 0.5 ** n
    return statistics.median(ordered), *((ordered[k - 1], ordered[n - k]) if k else (None, None))


def says(values, digits, sign=""):
    if not values:
        return "–"
    median, low, high = interval(values)
    ends = "" if low is None else f" ({low:{sign}.{digits}f} to {high:{sign}.{digits}f})"
    return f"{median:{sign}.{digits}f}{ends}"


def verdict(values, most):
    """Is the median surely within the aim, surely beyond, or is that not resolved?"""
    if not values:
        return "–"
    _, low, high = interval(values)
    if low is None:
        return "not resolved"
    return "met" if high <= most else "missed" if low > most else "not resolved"


def rounds_of(runs, key, load):
    return {r["round"]: r for r in runs if r["key"] == key and r["load"] == load}


def ratios(runs, key, load):
    """CPU of the load beside the tool over CPU without, by round."""
    plain = rounds_of(runs, "plain", load)
    return {n: r["cpu_s"] / plain[n]["cpu_s"] for n, r in rounds_of(runs, key, load).items()
            if n in plain}


def added_us(runs, key, load):
    """What the tool adds to the load's CPU for each of its switches, in microseconds, by round."""
    plain = rounds_of(runs, "plain", load)
    return [1e6 * (r["cpu_s"] - plain[n]["cpu_s"]) / r["n_switches"]
            for n, r in rounds_of(runs, key, load).items() if n in plain and r["n_switches"]]


def points(runs, load):
    """Percentage points that mperf costs more than perf record, at the same rate."""
    ours, theirs = ratios(runs, "mperf 999", load), ratios(runs, "perf 999", load)
    return [100 * (ours[n] - theirs[n]) for n in ours if n in theirs]


def lines(result):
    runs = result["runs"]
    loads = list(dict.fromkeys(r["load"] for r in runs))
    text = [f"This machine has {kind_says(result['machine'])}. Below: user and system time of pinned "
            f"programs by their own rusage, {result['rounds']} interleaved rounds of "
            f"{result['seconds']:g} s, medians with 95 % intervals; perf record by {result['event']}. The "
            f"kernel allowed {result['rate_limit']} samples a second at the end.",
            "",
            "| load, CPU over plain | mperf, always on | aim 1.02 | perf record, 99 Hz | mperf, 999 Hz | "
            "perf record, 999 Hz | mperf − perf record, points | aim 0.5 |", "|---" * 8 + "|"]
    for load in loads:
        by_key = {key: list(ratios(runs, key, load).values()) for key, _, _ in RUNS}
        more = points(runs, load)
        text.append(f"| {load} | {says(by_key['mperf 99'], 4)} | "
                    f"{verdict(by_key['mperf 99'], ALWAYS_MOST)} | {says(by_key['perf 99'], 4)} | "
                    f"{says(by_key['mperf 999'], 4)} | {says(by_key['perf 999'], 4)} | "
                    f"{says(more, 2, '+')} | {verdict(more, RECORD_MOST)} |")
    for load in loads:
        if load in ("sched pipe", "sched messaging"):
            each = {key: added_us(runs, key, load) for key, _, _ in RUNS}
            text.append(f"| added per switch, µs: {load} | {says(each['mperf 99'], 2, '+')} | | "
                        f"{says(each['perf 99'], 2, '+')} | {says(each['mperf 999'], 2, '+')} | "
                        f"{says(each['perf 999'], 2, '+')} | | |")
    return text + ["Left out: " + reason for reason in result["absent"]]
