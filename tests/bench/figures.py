# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The single figures beside the comparison, and the table that all of it ends in."""
import os
import platform
import re
import select
import signal
import statistics
import subprocess
import time

import argv
import cost
import left
import memory
import tools
from accounting import Account, written_bytes

PARTS = ("cost", "compare", "left", "argv", "disk", "first", "flush", "report", "rollups", "growth",
         "memory")


def machine():
    model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    return {"kernel": platform.release(), "harts": os.cpu_count(),
            "model": model.group(1) if model else platform.machine()}


# --- disk ----------------------------------------------------------------------------------------

def disk(o, loads, folder):
    """Bytes per sample: all four workloads one after the other, and the fork-heavy one at 99 Hz."""
    rows = []
    for name, hz, wanted in (("mixed", 999, loads.NAMES), ("forks", 99, ("forks",))):
        for load in wanted:
            if load not in loads.work:
                loads.calibrate(load, o.seconds)
        for kind in (tools.Mperf, tools.Record, tools.RecordZ):
            with kind(folder, hz) as tool:
                for _ in range(2 if o.quick else 4):
                    for load in wanted:
                        loads.run(load)
            rows.append({"load": name, "hz": hz, "tool": kind.name, "n_samples": tool.n_samples,
                         "n_bytes": tool.n_bytes})
    return rows


# --- from start to the first useful line ------------------------------------------------------------

def seconds_until(process, word, limit_s=30):
    """Until the process has printed the word; None: never."""
    begin, seen = time.monotonic(), b""
    while time.monotonic() - begin < limit_s:
        ready, _, _ = select.select([process.stdout], [], [], 0.05)
        if not ready:
            continue
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            return None
        seen = seen[-200:] + piece
        if word in seen:
            return time.monotonic() - begin
    return None


def timed(command, word, **options):
    begin = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, **options)
    started = time.monotonic() - begin
    found = seconds_until(process, word)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    return None if found is None else found + started


def first_line(o, loads, folder):
    """Time from exec to the line that names the hot function, against a daemon that runs."""
    rows = []
    spinning = [subprocess.Popen([loads.spin, "1000000"], stdout=subprocess.DEVNULL)
                for _ in range(os.cpu_count())]
    try:
        with tools.Mperf(folder, 99) as mperf:
            for _ in range(3 if o.quick else 10):
                environment = {**os.environ, "MPERF_SOCKET": str(mperf.socket)}
                ours = timed([o.build / "mperfctl", "top", "--batch", "--frames", "9"], b"spin_hot",
                             env=environment)
                theirs = timed(["perf", "top", "--stdio", "-d", "1", "-e", "cpu-clock"], b"spin_hot")
                rows.append({"mperf_s": ours, "perf_top_s": theirs})
    finally:
        for p in spinning:
            p.kill()
            p.wait()
    return rows


# --- bytes written -----------------------------------------------------------------------------------

def flush(o, loads, folder):
    """Bytes that the service sends to the disc in a minute, at rest and while something compiles; by
    turns, since what else the machine does changes."""
    rows, seconds = [], 61 if o.quick else 91
    loads.calibrate("compiling", 2)
    for load in ("at rest", "compiling"):
        for interval in ("5s", "30s") * (1 if o.quick else 2):
            with tools.Mperf(folder, 99, flush=interval) as tool:
                time.sleep(2)
                before, begin = written_bytes(tool.process.pid), time.monotonic()
                while time.monotonic() - begin < seconds:
                    if load == "compiling":
                        loads.run(load)
                    else:
                        time.sleep(1)
                took = time.monotonic() - begin
                rows.append({"load": load, "flush": interval,
                             "bytes_per_minute":
                                 (written_bytes(tool.process.pid) - before) * 60 / took})
    return rows


# --- hotspots against perf report ----------------------------------------------------------------------

def measured(command, **options):
    """Seconds of a command, and the peaks in MB of all its processes together."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, **options)
    account = Account(lambda: [process.pid])
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        account.look()
        time.sleep(0.005)
    took = time.monotonic() - begin
    if process.wait() != 0:
        raise RuntimeError(f"{command}: exit status {process.returncode}")
    return took, account.peak_mb()


def report(o, loads, folder):
    """The same stretch, sampled by both, then summed up by both."""
    seconds = 8 if o.quick else 110
    recorded = folder / "report.mprf"
    environment = {k: v for k, v in os.environ.items() if k != "MPERF_SOCKET"}
    with tools.Record(folder, 4999) as theirs:
        ours = subprocess.Popen([o.build / "mperfctl", "record", "-a", "-g", "-F", "4999", "--for",
                                 f"{seconds}s", "-o", recorded], env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for load in ("CPU loop", "SQL", "compiling"):
            loads.calibrate(load, 1)
        while ours.poll() is None:
            for load in ("CPU loop", "SQL", "compiling"):
                loads.run(load)
        if ours.returncode != 0:
            raise RuntimeError("mperfctl record failed")
    data = folder / "perf-record" / "perf.data"
    rows = []
    for _ in range(2 if o.quick else 5):
        their_s, their_mb = measured(["perf", "report", "--stdio", "-i", data])
        our_s, our_mb = measured([o.build / "mperfctl", "hotspots", "-i", recorded],
                                 env=environment)
        rows.append({"n_samples": theirs.n_samples, "perf_s": their_s, "perf_mb": their_mb,
                     "mperf_s": our_s, "mperf_mb": our_mb})
    return rows


# --- weeks, summed up from roll-ups ------------------------------------------------------------------

# Hours, harts, and how many harts' samples one row drawn stands for; the limit in ms.
STORES = ((24, 2, 1, 100), (168, 2, 1, 1000), (168, 64, 16, 2000))


def made_store(o, folder, hours, harts, scale):
    """The hour tier of so many hours; made once, since it takes minutes. Its files."""
    store = folder / f"rollups-{hours}-{harts}"
    if not (store / "whole").exists():
        store.mkdir(parents=True, exist_ok=True)
        subprocess.run([o.build / "tests/bench/synthesize", store, "--hours", str(hours), "--harts",
                        str(harts), "--hz", "99", "--scale", str(scale), "--minutes", "0",
                        "--keep", "1"], check=True, stdout=subprocess.DEVNULL)
        (store / "whole").touch()
    return sorted((store / "hour").glob("*.mprf"))


def rollups(o, _, folder):
    """CPU time of hotspots over roll-ups, each run a process of its own; the load is none."""
    rows = []
    for hours, harts, scale, limit_ms in STORES[:1] if o.quick else STORES:
        files = made_store(o, folder, hours, harts, scale)
        said = subprocess.run([o.build / "tests/bench/query", *files, "--hours", str(hours),
                               "--repeat", "5" if o.quick else "20"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        found = re.search(r"CPU ([\d.]+) ms \(min ([\d.]+), max ([\d.]+)\).* of (\d+) samples", said)
        rows.append({"hours": hours, "harts": harts, "limit_ms": limit_ms,
                     "ms": [float(found.group(n)) for n in (1, 2, 3)],
                     "n_samples": int(found.group(4)),
                     "n_bytes": sum(f.stat().st_size for f in files)})
    return rows


# --- the table ---------------------------------------------------------------------------------------

def spread(values, digits=3, unit=""):
    values = [v for v in values if v is not None]
    if not values:
        return "–"
    middle = statistics.median(values)
    if len(values) == 1:
        return f"{middle:.{digits}f}{unit}"
    return f"{middle:.{digits}f}{unit} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def pick(runs, **keys):
    return [r for r in runs if all(r[k] == v for k, v in keys.items())]


def by_round(runs, **keys):
    return {(r["load"], r["round"]): r for r in pick(runs, **keys)}


def workload_lines(runs):
    lines = ["| workload CPU, profiled over not | " + " | ".join(
        ("mperf", "perf record", "perf top", "sysprof-cli", "bcc profile"))
        + " | mperf − perf record, points |", "|---" * 7 + "|"]
    for hz in (999, 4999):
        bare = by_round(runs, tool="nothing", hz=hz)
        cells, ratios = [], {}
        for tool in ("mperf", "perf record", "perf top", "sysprof-cli", "bcc profile"):
            ratios[tool] = {k: r["cpu_s"] / bare[k]["cpu_s"]
                            for k, r in by_round(runs, tool=tool, hz=hz).items() if k in bare}
            cells.append(spread(list(ratios[tool].values())))
        points = [100 * (ratios["mperf"][k] - ratios["perf record"][k])
                  for k in ratios["mperf"] if k in ratios["perf record"]]
        lines.append(f"| {hz} Hz | " + " | ".join(cells) + f" | {cost.says(points, 2, '+')} |")
    return lines


def own_lines(runs):
    lines = ["| own CPU, % of one hart | mperf | perf top | sysprof-cli | perf record | bcc profile "
             "| mperf ÷ perf top | mperf ÷ sysprof |", "|---" * 8 + "|"]
    loads = list(dict.fromkeys(r["load"] for r in runs))
    for hz in (999, 4999):
        for load in (*loads, None):
            keys = {"hz": hz, **({"load": load} if load else {})}
            rounds = {t: {k: 100 * r["own_s"] / r["took_s"]
                          for k, r in by_round(runs, tool=t, **keys).items()}
                      for t in ("mperf", "perf top", "sysprof-cli", "perf record", "bcc profile")}
            ours = rounds["mperf"]
            ratio = [[ours[k] / rounds[t][k] for k in ours if rounds[t].get(k)]
                     for t in ("perf top", "sysprof-cli")]
            lines.append(f"| {hz} Hz, {load or 'all'} | "
                         + " | ".join(spread(list(v.values()), 2) for v in rounds.values())
                         + f" | {spread(ratio[0])} | {spread(ratio[1], 2)} |")
    return lines


def peak_lines(runs):
    lines = ["| peak memory, MB (VmHWM of all processes) | mperf | perf record | perf top | "
             "sysprof-cli | bcc profile | mperf ÷ perf record |", "|---" * 7 + "|"]
    for hz in (999, 4999):
        peaks = {t: by_round(runs, tool=t, hz=hz)
                 for t in ("mperf", "perf record", "perf top", "sysprof-cli", "bcc profile")}
        ratio = [r["peak_mb"] / peaks["perf record"][k]["peak_mb"]
                 for k, r in peaks["mperf"].items() if k in peaks["perf record"]]
        lines.append(f"| {hz} Hz | " + " | ".join(
            spread([r["peak_mb"] for r in p.values()], 0) for p in peaks.values())
            + f" | {spread(ratio, 2)} |")
    lost = [r["n_lost"] for r in pick(runs, tool="mperf", hz=4999)]
    taken = sum(r["n_samples"] or 0 for r in pick(runs, tool="mperf", hz=4999))
    lines += ["", f"Samples lost by mperf at 4999 Hz: {sum(lost):.0f} of {taken + sum(lost):.0f}."]
    return lines


def disk_lines(rows):
    lines = ["| bytes per sample | mperf | perf.data | perf record -z | mperf ÷ perf.data |",
             "|---" * 5 + "|"]
    for load in dict.fromkeys(r["load"] for r in rows):
        each = [r["n_bytes"] / r["n_samples"] if r["n_samples"] else None
                for t in ("mperf", "perf record", "perf record -z")
                for r in pick(rows, load=load, tool=t)]
        hz = pick(rows, load=load)[0]["hz"]
        ratio = each[0] / each[1] if each[0] and each[1] else None
        lines.append(f"| {load}, {hz} Hz | " + " | ".join(spread([e], 1) for e in each)
                     + f" | {spread([ratio], 2)} |")
    return lines


def first_lines(rows):
    ratio = [r["mperf_s"] / r["perf_top_s"] for r in rows if r["mperf_s"] and r["perf_top_s"]]
    return ["| to the first line that names the hot function | mperfctl top | perf top -d 1 | ratio |",
            "|---|---|---|---|",
            f"| seconds | {spread([r['mperf_s'] for r in rows], 2)} | "
            f"{spread([r['perf_top_s'] for r in rows], 2)} | {spread(ratio, 2)} |"]


def flush_lines(rows):
    lines = ["| written per minute at 99 Hz, KiB | flush = 5s | flush = 30s |", "|---|---|---|"]
    for load in dict.fromkeys(r["load"] for r in rows):
        each = [[r["bytes_per_minute"] / 1024 for r in pick(rows, load=load, flush=interval)]
                for interval in ("5s", "30s")]
        lines.append(f"| {load} | {spread(each[0], 0)} | {spread(each[1], 0)} |")
    return lines


def report_lines(rows):
    return [f"| summing up {rows[0]['n_samples']} samples | mperfctl hotspots | perf report --stdio | "
            "ratio |", "|---|---|---|---|",
            f"| seconds | {spread([r['mperf_s'] for r in rows])} | "
            f"{spread([r['perf_s'] for r in rows])} | "
            f"{spread([r['mperf_s'] / r['perf_s'] for r in rows])} |",
            f"| MB | {spread([r['mperf_mb'] for r in rows], 0)} | "
            f"{spread([r['perf_mb'] for r in rows], 0)} | "
            f"{spread([r['mperf_mb'] / r['perf_mb'] for r in rows])} |"]


def rollup_lines(rows):
    return ["| hotspots from roll-ups | samples | store, MB | CPU ms | limit |", "|---" * 5 + "|"] + [
        f"| {r['hours'] // 24} days × {r['harts']} harts at 99 Hz | {r['n_samples']:,} | "
        f"{r['n_bytes'] / 1e6:.0f} | {r['ms'][0]:.0f} ({r['ms'][1]:.0f}–{r['ms'][2]:.0f}) | "
        f"{r['limit_ms']} |" for r in rows]


def growth_lines(rows):
    lines = ["| as work grows | size | cost of one | size | cost of one | size | cost of one | "
             "last ÷ first |", "|---" * 8 + "|"]
    for row in rows:
        cells = [f"{n:,} | {cost:.3g} {row['unit']}" for n, cost in row["points"]]
        cells += ["– | –"] * (3 - len(cells))
        ratio = row["points"][-1][1] / row["points"][0][1] if row["points"][0][1] else 0
        lines.append(f"| {row['what']} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    return lines


def table(result):
    m = result["machine"]
    parts = [[f"Measured on {m['model']}, {m['harts']} harts, Linux {m['kernel']}: "
              f"{result['rounds']} rounds of {result['seconds']:g} s, interleaved; medians, with "
              "the least and the most."]]
    if result.get("cost"):
        parts.append(cost.lines(result["cost"]))
    if result.get("runs"):
        parts += [workload_lines(result["runs"]), own_lines(result["runs"]),
                  peak_lines(result["runs"])]
    parts += [["Left out: " + reason] for reason in result.get("absent", [])]
    for key, lines in (("left", left.lines), ("hour", left.hour_lines), ("argv", argv.lines), ("memory", memory.lines), ("disk", disk_lines),
                       ("first", first_lines), ("flush", flush_lines), ("report", report_lines), ("rollups", rollup_lines),
                       ("growth", growth_lines)):
        if result.get(key):
            parts.append(lines(result[key]))
    return "\n\n".join("\n".join(p) for p in parts) + "\n"
