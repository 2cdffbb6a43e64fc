# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time: what counting takes of it, by interleaved runs, and whether rates of a region are those that the
program's own clock gives."""
import json
import os
import statistics
import subprocess
import sys

from machine import mperfctl
from subjects import KERNELS, kernels

SECONDS_WANTED = 0.25  # of one run
ROUNDS_MAX = 1_000_000
PASSES = 40            # of clocked.c: some 200 ms in each region


def user_seconds(program, arguments, environment):
    """Of a process and its threads, from its first instruction to its last."""
    process = subprocess.Popen([program, *map(str, arguments)], env=environment,
                               stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{program}: exit {process.returncode}")
    return used.ru_utime


def rounds_for(program, name, environment):
    """So many that a run takes long enough to be told from nothing."""
    rounds = 1
    while rounds < ROUNDS_MAX:
        took = user_seconds(program, [name, rounds], environment)
        if took >= SECONDS_WANTED / 4:
            return max(1, int(rounds * SECONDS_WANTED / took))
        rounds *= 4
    return rounds


def times(shop, target, n_rounds, wanted=None):
    """Each round runs both builds, by turns first; a ratio is taken within a round."""
    rows, programs = [], {}
    for kind, source, name in kernels():
        if wanted and not any(w in name for w in wanted):
            continue
        if source not in programs:
            programs[source] = [shop.program(target, [source], c) for c in (False, True)]
        repeats = rounds_for(programs[source][0], name, shop.streaming)
        ratios = []
        for n in range(n_rounds):
            both = [0, 0]
            for i in (0, 1) if n % 2 else (1, 0):
                both[i] = user_seconds(programs[source][i], [name, repeats], shop.streaming)
            ratios.append(both[1] / both[0])
        rows.append({"target": target.name, "class": kind, "kernel": name, "rounds": repeats,
                     "ratio": statistics.median(ratios), "ratios": ratios})
        print(f"time: {name} {rows[-1]['ratio']:.3f}", file=sys.stderr, flush=True)
    return rows


# --- rates of a region ---------------------------------------------------------------------------------

def rates(shop, target, n_rounds):
    """Of clocked.c while it streams to the daemon: GFLOP/s and GB/s of each region over the program's
    own."""
    program, found = shop.program(target, [KERNELS / "clocked.c"], True), []
    for _ in range(n_rounds):
        with subprocess.Popen([program, str(PASSES)], env=shop.streaming, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            own = {}
            while len(own) < 3:
                name, *values = process.stdout.readline().split()
                own[name] = list(map(float, values))
            said = json.loads(mperfctl(shop.build, "roofline", "--by", "region", "--json", "--pid",
                                       process.pid, env={"MPERF_SOCKET": str(shop.service.socket)}).stdout)
            process.stdin.close()
        for row in said["rows"]:
            if row["region"] in own:
                seconds, flops, n_bytes = own[row["region"]]
                found.append({"region": row["region"], "own_gflops": flops / seconds / 1e9,
                              "own_gbytes": n_bytes / seconds / 1e9,
                              "gflops": row["gops"] / (flops / seconds / 1e9),
                              "gbytes": row["gbytes"] / (n_bytes / seconds / 1e9),
                              "corrected": row["gbytes_corrected"] / (n_bytes / seconds / 1e9)})
    return found
