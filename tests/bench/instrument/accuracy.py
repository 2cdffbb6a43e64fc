# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How right counts are: operations against what the algorithm has, bytes against every access that a
tool sees of the plain program."""
import os
import re
import subprocess
import sys

from kernels import expectations, of_function, totals_of_file
from subjects import LOWERED, RUN_SECONDS, kernels, run

FLOATING = re.compile(r"fp\w+_ops")
TRACED_ACCESSES = 400_000  # between both repeat counts; a trace is text, a line an access
FEW = 1
ROUNDS_MAX = 200


# --- operations --------------------------------------------------------------------------------------

def counted_totals(target, program, arguments=()):
    """What the counted program says of itself."""
    output = program.with_suffix(".mperf")
    run([*target.runner, program, *arguments], env=dict(os.environ, MPERF_OUTPUT=str(output)))
    return totals_of_file(output)


def flops(shop, target, wanted=None):
    """A row for each kernel whose floating operations are known."""
    rows = []
    for source in dict.fromkeys(source for _, source, _ in kernels()):
        known = [row for row in expectations(source) if FLOATING.fullmatch(row[1]) and
                 (not wanted or any(w in row[0] for w in wanted))]
        if not known:
            continue
        totals = counted_totals(target, shop.program(target, [source], True))
        for function, metric, least, most in known:
            rows.append({"target": target.name, "kernel": function, "metric": metric, "least": least,
                         "most": most, "counted": of_function(totals, function, metric)})
    return rows


# --- bytes -------------------------------------------------------------------------------------------

def sums(text):
    """{(loaded or stored, outside or stack): bytes} of what a tool printed."""
    return {(way, place): int(n) for way, *both in re.findall(r"^(loaded|stored) (\d+) (\d+)$", text, re.M)
            for place, n in zip(("outside", "stack"), both)}


class Lackey:
    """Every access of the program, as valgrind's lackey traces them."""

    def __init__(self, shop):
        self.reader = shop.tool("trace.c")

    def __call__(self, target, program, arguments):
        read, write = os.pipe()
        with subprocess.Popen([self.reader], stdin=read, stdout=subprocess.PIPE, text=True) as reader:
            os.close(read)
            traced = subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-fd=%d" % write,
                                     program, *map(str, arguments)], pass_fds=[write],
                                    stdout=subprocess.DEVNULL, timeout=RUN_SECONDS)
            os.close(write)
            if traced.returncode != 0:
                raise RuntimeError(f"lackey could not run {program}")
            return sums(reader.stdout.read())


class Plugin:
    def __init__(self, shop):
        self.plugin = shop.qemu_plugin()

    def __call__(self, target, program, arguments):
        return sums(run([*target.runner, "-plugin", self.plugin, program, *arguments]).stderr)


def of_process(totals):
    """The same sums of what a program counted, over all its functions."""
    total = {}
    for key, value in totals.items():
        name = key[-1].removesuffix(".modelled")
        total[name] = total.get(name, 0) + value
    return {(way, place): total.get(f"stack_bytes_{way}", 0) if place == "stack" else
            total.get(f"bytes_{way}", 0) - total.get(f"stack_bytes_{way}", 0)
            for way in ("loaded", "stored") for place in ("outside", "stack")}


def difference(many, few):
    return {key: many[key] - few[key] for key in many}


def bytes_of(shop, target, truth, source, name):
    plain, counted = (shop.program(target, [source], c, words="functions=1") for c in (False, True))

    def told(rounds):
        return of_process(counted_totals(target, counted, [name, rounds]))
    one = difference(told(2), told(1))
    accesses = sum(one.values()) / 4
    rounds = min(ROUNDS_MAX, max(1, int(TRACED_ACCESSES / max(accesses, 1))))
    said = difference(told(FEW + rounds), told(FEW))
    true = difference(truth(target, plain, [name, FEW + rounds]), truth(target, plain, [name, FEW]))
    row = {"target": target.name, "kernel": name, "rounds": rounds}
    for place in ("outside", "stack"):
        row[place] = sum(said[way, place] for way in ("loaded", "stored"))
        row[f"{place}_true"] = sum(true[way, place] for way in ("loaded", "stored"))
    return row


# Of a kernel's bytes, the part outside the stack of which a ratio says something: fibonacci moves
# some words in all its rounds, which are the program's around it.
OUTSIDE_LEAST = 0.001


def measure_bytes(shop, target, truth, wanted=None):
    rows = []
    for kind, source, name in kernels() + kernels(LOWERED):
        if wanted and not any(w in name for w in wanted):
            continue
        row = {"class": kind, **bytes_of(shop, target, truth, source, name)}
        all_true = row["outside_true"] + row["stack_true"]
        moves = row["outside_true"] > OUTSIDE_LEAST * all_true
        row["outside_ratio"] = row["outside"] / row["outside_true"] if moves else None
        row["all_ratio"] = (row["outside"] + row["stack"]) / all_true
        rows.append(row)
        print(f"{target.name}: {name} outside {row['outside_ratio']}, all {row['all_ratio']:.4f}",
              file=sys.stderr, flush=True)
    return rows
