# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cost as work grows: rows of (what, unit, [(size, cost of one), …]). What stays level is linear."""
import json
import statistics
import subprocess
import sys
import time

import tools

SIZES = {"rings": (1, 8, 64), "stacks": (10_000, 100_000, 500_000),
         "tasks": (100, 1_000, 10_000)}


def one(o, what, n, key, rounds):
    program = o.build / "tests" / "bench" / "growth"
    return statistics.median(
        json.loads(subprocess.run([program, what, str(n)], check=True,
                                  stdout=subprocess.PIPE).stdout)[key] for _ in range(rounds))


def row(o, title, what, sizes, key="ns", rounds=3):
    return {"what": title, "unit": key.replace("bytes", "B"),
            "points": [(n, one(o, what, n, key, rounds)) for n in sizes]}


def with_processes(o, folder, n):
    """A machine on which n more processes live: what a service costs to start there, and then."""
    crowd = subprocess.Popen([o.build / "tests" / "bench" / "growth", "spawn", str(n)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if crowd.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{n} processes could not be started")
        with tools.Mperf(folder, 99) as mperf:
            started = mperf.account.look()
            seconds = 4 if o.quick else 20
            time.sleep(seconds)
            idle = (mperf.account.look() - started) / seconds
    finally:
        crowd.communicate()
    return started, idle


def with_clients(o, folder, n):
    """CPU seconds a second of the daemon while n clients look at top."""
    with tools.Mperf(folder, 99) as mperf:
        seconds = 5 if o.quick else 20
        clients = [mperf.ctl("top", "--json", "--for", f"{seconds + 30}s", stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL) for _ in range(n)]
        time.sleep(3)
        before = mperf.account.look()
        time.sleep(seconds)
        cost = (mperf.account.look() - before) / seconds
        gone = [c for c in clients if c.poll() is not None]
        for client in clients:
            client.kill()
            client.wait()
    if gone:
        raise RuntimeError(f"{len(gone)} of {n} clients on top ended early")
    return cost


def measure(o, folder):
    rounds = 1 if o.quick else 5
    rows = [
        row(o, "a sample, out of so many rings", "rings", SIZES["rings"], rounds=rounds),
        row(o, "a distinct stack, first seen", "stacks", SIZES["stacks"], rounds=rounds),
        row(o, "a distinct stack, seen again", "again", SIZES["stacks"], rounds=rounds),
        row(o, "a distinct stack, memory", "stacks", SIZES["stacks"], "bytes", rounds),
        row(o, "a process that begins", "tasks", SIZES["tasks"], rounds=rounds),
        row(o, "a process that lives, memory", "tasks", SIZES["tasks"], "bytes", rounds),
        row(o, "a sample, while so many processes live", "live", SIZES["tasks"], rounds=rounds),
    ]
    crowds = (100, 1000) if o.quick else (100, 1000, 10_000)
    measured = [(n, with_processes(o, folder, n)) for n in crowds]
    rows.append({"what": "starting among so many processes", "unit": "µs a process",
                 "points": [(n, 1e6 * start / n) for n, (start, _) in measured]})
    rows.append({"what": "idle among so many processes", "unit": "ms/s",
                 "points": [(n, 1e3 * idle) for n, (_, idle) in measured]})
    counts = (1, 8) if o.quick else (1, 8, 64)
    try:
        rows.append({"what": "a client on top", "unit": "ms/s",
                     "points": [(n, 1e3 * with_clients(o, folder, n) / n) for n in counts]})
    except RuntimeError as e:
        print(f"left out: {e}", file=sys.stderr)
    return rows
