# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries merged as bitcode: with full LTO, what sin and exp compute is counted, which are calls that
nobody sees into where libm is the machine's. The sources of the library are musl's."""
import functools
import re
import shutil

from machine import ROOT, Skip
from whole import COUNTED, fresh, roofline, run, source, tell, version

# What sin and exp call, by file of musl's src/math.
MATH = """exp exp_data sin cos __sin __cos __rem_pio2 __rem_pio2_large scalbn floor __math_oflow
          __math_uflow __math_xflow __math_invalid""".split()
ROUNDS = 1000


@functools.cache
def library(build):
    """libm.a of bitcode, as musl's own makefile compiles its objects but for -flto."""
    llvm = version(build)
    for program in f"ld.lld-{llvm}", f"llvm-ar-{llvm}":
        if not shutil.which(program):
            raise Skip(f"there is no {program}")
    musl = fresh(build, "musl", COUNTED, source(build, "musl"))
    cc = build / "mperf-cc"
    run("./configure", f"CC={cc}", "CFLAGS=-O2 -flto", cwd=musl)
    run("make", "-j2", *(f"obj/src/math/{name}.o" for name in MATH), cwd=musl)
    run(f"llvm-ar-{llvm}", "rc", "libm.a", *(f"obj/src/math/{name}.o" for name in MATH), cwd=musl)
    return musl / "libm.a"


def counted(build, name, *arguments):
    folder = build / "programs" / "musl"
    program, output = folder / name, folder / f"{name}.mperf"
    run(build / "mperf-cc", "-O2", ROOT / "tests" / "programs" / "waves.c", *arguments, "-lm", "-o", program)
    output.unlink(missing_ok=True)
    said = run(program, ROUNDS, MPERF_OUTPUT=output)
    return said, {row["function"]: row for row in roofline(build, output, "--by", "function")}


def unseen(row):
    """Calls that the pass could not see into."""
    found = re.search(r"(\d+) external call", row["unseen"] or "")
    return int(found[1]) if found else 0


def test_a_library_of_bitcode_is_counted_with_the_program(build):
    merged = library(build)
    said, before = counted(build, "calls")
    again, after = counted(build, "merged", "-flto", merged)
    assert said == again, (said, again)
    assert before.keys() == {"main"} and {"main", "sin", "exp"} <= after.keys(), (before, after)
    assert before["main"]["fp64_ops"] == after["main"]["fp64_ops"] == 4 * ROUNDS
    assert unseen(before["main"]) >= 2 * ROUNDS and unseen(after["main"]) < 10, (before, after)
    flops = {name: after[name]["fp64_ops"] for name in ("sin", "exp")}
    assert all(after[name]["entries"] == ROUNDS for name in flops), after
    assert all(n >= 10 * ROUNDS for n in flops.values()), flops
    tell("libm as bitcode", flops_before=4 * ROUNDS, flops_after=4 * ROUNDS + sum(flops.values()),
         calls_unseen_before=unseen(before["main"]), calls_unseen_after=unseen(after["main"]))
