# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What mperf costs when it is left on beside builds: the service as shipped, with its budget, and
perf record beside it.

Each load runs until it is ended: Lua compiled again and again by make, and xz's configure script.
The sources come from Debian, by tests/workloads/debian-source."""
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import tools
from accounting import look

ROOT = Path(__file__).resolve().parent.parent.parent
WARM_UP_S = 15  # of the load: what is new to the service at first is named then

# Lua's own makefile wants Debian's libtool; its files need no more than this.
MAKEFILE = """
objects = $(patsubst %.c,%.o,$(filter-out onelua.c ltests.c,$(wildcard *.c)))
all: lua luac
lua: $(filter-out luac.o,$(objects)); cc -o $@ $^ -lm -ldl
luac: $(filter-out lua.o,$(objects)); cc -o $@ $^ -lm -ldl
%.o: %.c; cc -O2 -c -o $@ $<
clean: ; rm -f *.o lua luac
"""


def source(name, folder):
    done = subprocess.run([ROOT / "tests" / "workloads" / "debian-source", name, folder / "sources"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise tools.Absent(f"the source of {name}: {done.stderr.strip()[-200:]}")
    return Path(done.stdout.strip())


def make_script(folder):
    lua = source("lua5.4", folder) / "src"
    (lua / "again.mk").write_text(MAKEFILE)
    (lua / "lua5.4-deb-multiarch.h").write_text('#define DEB_HOST_MULTIARCH "none"\n')
    jobs = len(os.sched_getaffinity(0))
    return (f"cd {lua} && while make -s -f again.mk clean && make -s -j{jobs} -f again.mk all; "
            "do :; done")


def configure_script(folder):
    xz = source("xz-utils", folder)
    built = folder / "configured"
    built.mkdir(exist_ok=True)
    return f"cd {built} && while {xz}/configure; do :; done"


BURSTS = "while :; do n=0; while [ $n -lt 500 ]; do /bin/true; n=$((n+1)); done; sleep 2; done"
LOADS = {"make": make_script, "configure": configure_script}


@contextlib.contextmanager
def running(script):
    process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
        if process.poll() is not None:
            raise RuntimeError(f"this load ended by itself: {script}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def forks():
    return next(int(line.split()[1]) for line in open("/proc/stat") if line.startswith("processes "))


def switches(pid):
    """How often the process's first thread went to sleep: turns of the service's loop."""
    status = Path(f"/proc/{pid}/task/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines()
                if line.startswith("voluntary_ctxt_switches"))


def given_up(mperf):
    with mperf.ctl("status", "--json", stdout=subprocess.PIPE) as process:
        status = json.loads(process.communicate()[0])
    return {"rate_hz": status["rate"][0]["hz"], "given_up": status["budget"][0]["given_up"]}


def one(kind, folder, script, seconds):
    with kind(folder, 99) as tool, running(script):
        time.sleep(WARM_UP_S)
        begin, cpu = time.monotonic(), tool.account.look()
        n_forks, n_switches = forks(), switches(tool.process.pid)
        time.sleep(seconds)
        took = time.monotonic() - begin
        row = {"tool": kind.name, "own": (tool.account.look() - cpu) / took,
               "forks": (forks() - n_forks) / took,
               "turns": (switches(tool.process.pid) - n_switches) / took}
        if kind is tools.Mperf:
            row.update(given_up(tool))
    return {**row, "peak_mb": tool.peak_mb}


def hour(o, loads, folder):
    """The service beside builds and bursts of short programs: rate and cost of each 20 seconds."""
    seconds, rows = o.seconds if o.seconds > 60 else 3600, []
    with contextlib.ExitStack() as stack:
        tool = stack.enter_context(tools.Mperf(folder, tools.SHIPPED_HZ))
        for script in make_script(folder), BURSTS:
            stack.enter_context(running(script))
        begin = then = time.monotonic()
        cpu, n_forks, n_switches = tool.account.look(), forks(), switches(tool.process.pid)
        while then < begin + seconds:
            time.sleep(min(20, begin + seconds - then))
            now, own, f, s = time.monotonic(), tool.account.look(), forks(), switches(tool.process.pid)
            rows.append({"at": now - begin, "own": (own - cpu) / (now - then), "forks": (f - n_forks) / (now - then),
                         "turns": (s - n_switches) / (now - then), "pss_mb": sum(r["pss_kb"] for r in look(tool)) / 1024,
                         **given_up(tool)})
            then, cpu, n_forks, n_switches = now, own, f, s
            print("{at:.0f} s: {own:.2%} of a hart, {rate_hz} Hz, given up: {given_up}; {turns:.0f} turns and "
                  "{forks:.0f} forks a second, {pss_mb:.0f} MB".format(**rows[-1]), file=sys.stderr, flush=True)
    return {"rows": rows, "n_samples": tool.n_samples, "n_lost": tool.n_lost, "n_bytes": tool.n_bytes}


def hour_lines(result):
    rows = result["rows"]
    rates = sorted({r["rate_hz"] for r in rows}, reverse=True)
    return [f"Left on for {rows[-1]['at'] / 60:.0f} minutes beside make and bursts of /bin/true, "
            f"{statistics.median(r['forks'] for r in rows):.0f} forks a second: "
            f"{100 * statistics.mean(r['own'] for r in rows):.2f} % of a hart, in the median of 20 seconds "
            f"{100 * statistics.median(r['own'] for r in rows):.2f} %, most "
            f"{100 * max(r['own'] for r in rows):.2f} %; "
            + ", ".join(f"{sum(r['rate_hz'] == hz for r in rows) / len(rows):.0%} of the time at {hz} Hz" for hz in rates)
            + f"; {statistics.median(r['pss_mb'] for r in rows):.0f} MB, {max(r['pss_mb'] for r in rows):.0f} at most; "
            f"{int(result['n_samples']):,} samples, {result['n_lost']} lost, "
            f"{result['n_bytes'] / result['n_samples']:.1f} bytes each; given up: "
            + "; ".join(sorted({str(r['given_up']) for r in rows}))]


def measure(o, loads, folder):
    """Rows of each load and tool, interleaved."""
    seconds, rows = max(o.seconds, 15 if o.quick else 60), []
    for name, make in LOADS.items():
        try:
            script = make(folder)
        except tools.Absent as e:
            rows.append({"load": name, "absent": str(e)})
            continue
        for n in range(max(o.rounds, 2)):
            kinds = [tools.Mperf, tools.Record]
            for kind in kinds if n % 2 == 0 else kinds[::-1]:
                rows.append({"load": name, **one(kind, folder, script, seconds)})
    return rows


def lines(rows):
    out = ["| left on at 99 Hz beside | mperf, % of a hart | perf record | turns a second | forks a second | given up |",
           "|---|---|---|---|---|---|"]
    for name in LOADS:
        mine = [r for r in rows if r["load"] == name and r.get("tool") == tools.Mperf.name]
        theirs = [r["own"] for r in rows if r["load"] == name and r.get("tool") == tools.Record.name]
        if not mine:
            out += [f"| {name} | left out: {r['absent']} | | | | |" for r in rows if r["load"] == name]
            continue
        own = [100 * r["own"] for r in mine]
        out.append(f"| {name} | {statistics.median(own):.2f} ({min(own):.2f}–{max(own):.2f}) "
                   f"| {100 * statistics.median(theirs):.2f} "
                   f"| {statistics.median(r['turns'] for r in mine):.0f} "
                   f"| {statistics.median(r['forks'] for r in mine):.0f} "
                   f"| {'; '.join(sorted({str(r['given_up']) for r in mine}))} |")
    return out
