# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accuracy of `mperfctl roofline --from code`: operations per byte that it reads from a plain program's
samples and machine code, beside those that the pass counts in the same source.

A row is a loop of machine code that moves bytes, with SAMPLES_LEAST samples or more. Its source loop is the one
on the first of its instructions' lines. Loops of machine code are not always loops of the source: a round that
the compiler peels off stands in the loop around it.
"""
import json
import os
import re
import statistics
import sys

from accuracy import counted_totals
from clocks import SECONDS_WANTED, rounds_for
from machine import Folder, mperfctl
from rates import rate_allowed
from subjects import Workshop, kernels, run, x86

HZ = 9999
SAMPLES_LEAST = 500
SECONDS = 0.35       # of one kernel
COUNTED_ROUNDS = 5
# Of a loop that runs as a whole, the figure has no interval; its first and last rounds may be cut short.
TOLERANCE = 1e-3
OPERATIONS = {"fp16_ops", "fp32_ops", "fp64_ops", "fp_wide_ops"}
BYTES = {"bytes_loaded", "bytes_stored", "bytes_loaded.modelled", "bytes_stored.modelled"}

CLASSES = {
    "loop": {"matmul.c": ["matmul"],
             "loops.c": ["triad", "spmv", "triangular", "stencil", "half_open", "constant_trips"],
             "iterations.c": ["scale", "sum_in_order", "sum_constant", "pairs", "recurrence", "by_pointer",
                              "backwards"],
             "merged.c": ["scaled_row", "gemm", "quotients"],
             "lowered.c": ["polynomial", "behind_calls", "flagged"],
             "vectors.c": ["product", "sum32", "sum64", "dot", "gather", "scatter"]},
    "branchy": {"loops.c": ["multiple_exits"],
                "masks.c": ["filter"],
                "flow.c": ["interpret_switch", "interpret_labels", "accumulate"],
                "branches.c": ["either", "rarely", "quarters", "near", "roots", "merge", "cases", "clamp"]},
    "masked": {"masks.c": ["masked_store", "masked", "clip", "sum_of_some"]},
    "calls": {"flow.c": ["fibonacci", "jump_out", "copy", "short_loop"]},
}
OPTIONS = {"-O2": ["-O2"], "-O3": ["-O3"], "-O3 AVX2": ["-O3", "-mavx2", "-mfma"],
           "-O3 AVX-512": ["-O3", "-mavx512f", "-mavx512bw", "-mavx512vl"]}


def segments(program):
    """(address, offset, bytes) of what is loaded of it."""
    text = run(["readelf", "-lW", program]).stdout
    return [(int(address, 16), int(offset, 16), int(n, 16)) for offset, address, n in
            re.findall(r"LOAD\s+0x(\w+)\s+0x(\w+)\s+0x\w+\s+0x(\w+)", text)]


def lines_of(program, source, first, last):
    """The lines of the source that the code between two offsets comes from."""
    start, offset, _ = next(s for s in segments(program) if s[1] <= first < s[1] + s[2])
    asked = "\n".join(hex(at - offset + start) for at in range(first, last + 1))
    text = run(["addr2line", "-e", program], input=asked).stdout
    return {int(line) for line in re.findall(rf"{re.escape(source.name)}:(\d+)", text)} - {0}


def counted_loops(totals, function):
    """{line: [operations, bytes]} of the function's loops, as the pass counts them."""
    found = {}
    for (kind, name, place, *_, metric), value in totals.items():
        if kind == "loop" and name == function:
            sums = found.setdefault(int(place.rpartition(":")[2]), [0, 0])
            sums[0] += value if metric in OPERATIONS else 0
            sums[1] += value if metric in BYTES else 0
    return found


def loop_of(counted, lines):
    """The line of the counted loop that code with these lines is."""
    among = sorted(set(counted) & lines)
    before = sorted(line for line in counted if lines and line <= min(lines))
    return among[0] if among else before[-1] if before else None


def sampled_loops(build, program, name, rounds):
    with Folder() as folder:
        recording = folder / "r.mprf"
        mperfctl(build, "record", "-F", str(rate_allowed(HZ)), "-o", recording, "--", program, name, str(rounds))
        said = mperfctl(build, "roofline", "--from", "code", "--json", "-n", "0", "-i", recording).stdout
    return [r for r in json.loads(said)["rows"]
            if r["function"] == name and r["depth"] and r["samples"] >= SAMPLES_LEAST]


def compare(shop, target, kind, source, name):
    """A row for each of the kernel's loops."""
    plain = shop.program(target, [source], False, ["-g"])
    counted = shop.program(target, [source], True, ["-g"])
    rounds = max(1, int(rounds_for(plain, name, os.environ) * SECONDS / SECONDS_WANTED))
    truth = counted_loops(counted_totals(target, counted, [name, str(COUNTED_ROUNDS)]), name)
    rows = []
    for r in sampled_loops(shop.build, plain, name, rounds):
        line = loop_of(truth, lines_of(plain, source, r["start"], r["last"]))
        operations, n_bytes = truth.get(line, (0, 0))
        if not n_bytes or r["ops_per_byte_self"] is None:
            continue
        value, low, high = (r[f"ops_per_byte_{k}"] for k in ("self", "low", "high"))
        passed = operations / n_bytes
        rows.append({"clang": shop.clang, "target": target.name, "class": kind, "kernel": name, "line": line,
                     "samples": r["samples"], "pass": passed, "code": value, "low": low, "high": high,
                     "limits": r["limits"],
                     "inside": low * (1 - TOLERANCE) <= passed <= high * (1 + TOLERANCE),
                     "error": abs(value / passed - 1) if passed else float(value > 0)})
    return rows


def measure(build, wanted=None, options=None, classes=None, compilers=("clang-16", "clang-19")):
    """Rows of all loops; those of one build come together."""
    rows = []
    for compiler in compilers:
        for title, flags in (options or OPTIONS).items():
            target = x86(title, tuple(flags))
            there = Workshop(build, compiler)
            for kind, source, name in kernels(classes or CLASSES):
                if wanted and not any(w in name for w in wanted):
                    continue
                rows += compare(there, target, kind, source, name)
            loops, inside, middle = summary(rows)
            error = "none" if middle is None else f"{middle:.4f}"
            print(f"code: {compiler} {title}, so far {inside} of {loops} inside, median error {error}",
                  file=sys.stderr, flush=True)
    return rows


def summary(rows):
    """(loops, of them inside the interval, median error) of those with operations; no loops: None for the error."""
    chosen = [r for r in rows if r["pass"] > 0]
    return (len(chosen), sum(r["inside"] for r in chosen),
            statistics.median(r["error"] for r in chosen) if chosen else None)
