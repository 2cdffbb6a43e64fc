# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory of the service and of perf record: at rest, and beside a build at 999 Hz.

Pss counts a page that several processes map in parts, so that its sum over the processes of a tool is
what the tool takes; the sum of VmHWM counts the pages of libraries once for each of its processes."""
import statistics
import time

import left
import tools
from accounting import look

WARM_UP_S = 10
REST = "at rest"
MAKE = "make"


def one(kind, folder, hz, script, seconds):
    """The most Pss of all processes at one time, the last, and the sum of all peaks, in MB."""
    with kind(folder, hz) as tool, left.running(script):
        looks, end = [], time.monotonic() + WARM_UP_S + seconds
        while time.monotonic() < end:
            looks.append(look(tool))
            time.sleep(0.25)
    total = [sum(r["pss_kb"] for r in rows) / 1024 for rows in looks]
    return {"tool": kind.name, "hz": hz, "pss_mb": max(total), "last_pss_mb": total[-1],
            "peak_mb": tool.peak_mb, "processes": looks[-1]}


def measure(o, loads, folder):
    """Rows of each load and tool, interleaved."""
    rows, seconds = [], max(o.seconds, 10 if o.quick else 60)
    scripts = {REST: (99, "exec sleep 100000")}
    try:
        scripts[MAKE] = (999, left.make_script(folder))
    except tools.Absent as e:
        rows.append({"load": MAKE, "absent": str(e)})
    for name, (hz, script) in scripts.items():
        for n in range(max(o.rounds, 2)):
            kinds = [tools.Mperf, tools.Record]
            for kind in kinds if n % 2 == 0 else kinds[::-1]:
                rows.append({"load": name, **one(kind, folder, hz, script, seconds)})
    return rows


def lines(rows):
    out = ["| memory, MB | mperf | perf record | mperf ÷ perf record |", "|---" * 4 + "|"]
    for name in dict.fromkeys(r["load"] for r in rows):
        for r in rows:
            if r["load"] == name and "absent" in r:
                out.append(f"| {name} | left out: {r['absent']} | | |")
        for key, what in (("last_pss_mb", "at the end"), ("pss_mb", "most at one time"),
                          ("peak_mb", "VmHWM of all processes")):
            mine, theirs = ([r[key] for r in rows if r["load"] == name and r.get("tool") == t]
                            for t in (tools.Mperf.name, tools.Record.name))
            if not mine or not theirs:
                continue
            ratio = [a / b for a, b in zip(mine, theirs)]
            cells = [f"{statistics.median(v):.1f} ({min(v):.1f}–{max(v):.1f})" for v in (mine, theirs)]
            out.append(f"| {name}, {what} | {cells[0]} | {cells[1]} | {statistics.median(ratio):.2f} |")
    return out
