# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of a loop is its own: not that of what it calls, and as much as samples of the same run say."""
import json
import subprocess

from kernels import KERNELS, mperf_cc, versions
from machine import Folder, Skip, mperfctl
from rates import rate_allowed

ROUNDS = "1000"  # a second


def built(build):
    found = versions(build)
    if not found:
        raise Skip("no plugin was built: neither LLVM 16 nor 19 has its headers here")
    program = build / "tests" / "work" / "pass" / "innocent"
    program.parent.mkdir(parents=True, exist_ok=True)
    done = mperf_cc(build, "-O2", "-g", KERNELS / "innocent.c", "-o", program,
                    MPERF_CLANG=f"clang-{found[-1]}")
    assert done.returncode == 0 and not done.stderr, done.stderr
    return program


def asked(build, *arguments):
    return json.loads(mperfctl(build, *arguments, "--json").stdout)["rows"]


def by_function(rows, share):
    sums = {}
    for row in rows:
        sums[row["function"]] = sums.get(row["function"], 0) + (row[share] or 0)
    return sums


def test_time_in_a_callee_is_not_that_of_the_loops_that_call_it(build):
    program = built(build)
    with Folder() as folder:
        mperfctl(build, "record", "-F", str(rate_allowed(999)), "-o", folder / "r", "--", program, ROUNDS)
        loops = by_function(asked(build, "roofline", "-i", folder / "r", "-n", "0"), "share_self")
        sampled = asked(build, "hotspots", "-i", folder / "r", "-n", "0")
    n = sum(row["samples"] for row in sampled)
    functions = by_function(sampled, "self")
    assert loops["around"] < 0.02 and loops["work"] > 0.9, loops
    assert sum(loops.values()) <= 1 + 1e-9, loops
    # two measurements of one run: samples scatter by 1 / sqrt(n), and what is no loop's is in neither
    for name in "around", "work":
        assert abs(loops[name] - functions.get(name, 0)) < 4 / n ** 0.5 + 0.02, (loops, functions, n)


def test_a_programs_own_file_has_its_functions_times(build):
    program = built(build)
    with Folder() as folder:
        subprocess.run([program, ROUNDS], check=True, timeout=60, stdout=subprocess.DEVNULL,
                       env={"MPERF_OUTPUT": str(folder / "out")})
        rows = asked(build, "roofline", "-i", folder / "out", "--by", "function", "-n", "0")
    times = {row["function"]: row["time_ns"] for row in rows}
    assert times["work"] and times["work"] > 1e7, times
    assert sum(t for f, t in times.items() if t and f != "work") < 0.05 * times["work"], times
