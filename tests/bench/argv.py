# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Of how many processes the service knows the arguments: some ten thousand short ones of two users, whose arguments
are known, beside a service with the unit's capabilities; with BPF, and without."""
import sys
import time
from pathlib import Path

import left

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "system"))
from attacked import UnitService  # noqa: E402
from execs import KINDS, Execs, losses  # noqa: E402
from machine import Folder  # noqa: E402

FLUSHED_S = 3
# Of all kinds as fast as they end, and like a configure script's, by how long they live.
LOADS = [("all kinds, as fast as they end", KINDS, 200, 0, 0), ("260 a second, of 1 ms", ("spawn",), 1000, 0, 130),
         ("260 a second, of 20 ms", ("spawn",), 1000, 20, 130), ("260 a second, of 50 ms", ("spawn",), 1000, 50, 130)]


def loop_ns(pid):
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])


def one(build, bpf, name, kinds, count, *how):
    # not so many samples that one user has more than may be stored
    with Folder() as folder, UnitService(build, folder, flush="1s", rate="999", without=() if bpf else ("bpf",)) as service:
        execs, pid = Execs(build, folder), service.process.pid
        time.sleep(FLUSHED_S)
        before, begin, cpu, turns = losses(service), time.monotonic(), loop_ns(pid), left.switches(pid)
        truth = execs.run(kinds, count, *how)
        took = time.monotonic() - begin
        row = {"load": name, "bpf": bpf, "processes": len(truth), "per_second": len(truth) / took,
               "loop": (loop_ns(pid) - cpu) / 1e9 / took, "turns": (left.switches(pid) - turns) / took}
        time.sleep(FLUSHED_S)
        right, none, wrong = execs.stored(service, truth)
        unread = losses(service).get("arguments not read", 0) - before.get("arguments not read", 0)
        return {**row, "right": len(right), "none": len(none - right), "wrong": len(wrong), "unread": unread}


def measure(o, _loads, _folder):
    n = 2000 if o.quick else 12000
    return [one(o.build, bpf, load, kinds, n // len(kinds), *how) for load, kinds, *how in LOADS
            for bpf in (True, False)]


def lines(rows):
    out = ["| arguments of short processes | BPF | processes | a second | not read | of those with samples right | wrong "
           "| loop, % of a hart | turns a second |", "|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        out.append(f"| {r['load']} | {'yes' if r['bpf'] else 'no'} | {r['processes']} | {r['per_second']:.0f} "
                   f"| {100 * r['unread'] / r['processes']:.2f} % | {r['right']} of {r['right'] + r['none']} "
                   f"| {r['wrong']} | {100 * r['loop']:.2f} | {r['turns']:.0f} |")
    return out
