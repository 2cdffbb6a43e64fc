# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point operations against the machine code: how often each instruction of a plain program
runs (step.c), times what it computes."""
import platform
import re
from pathlib import Path

from kernels import KERNELS, QUIET, compile_kernel, count, of_function, run
from machine import Skip
from test_intrinsics import opt, table_of
from test_pass import plugins, runnable

SOURCE = KERNELS / "merged.c"
FUNCTIONS = ("scaled_row", "gemm", "quotients")
FLAGS = [("-O3", "-mavx2"), ("-O3", "-mavx2", "-mfma"), ("-O3", "-mavx512f")]
FLOATING = re.compile(r"v?(add|sub|mul|div|fn?m(?:add|sub)\d{3})(s|p)(s|d)$")
REGISTER_BYTES = {"x": 16, "y": 32, "z": 64}


def code_of(program):
    """{address: (function, operations of the instruction there)} of the kernels, and where they begin."""
    code, begins, function = {}, {}, None
    for line in run(["objdump", "-d", "--no-show-raw-insn", program]).stdout.splitlines():
        begin = re.match(r"0*([0-9a-f]+) <(.*)>:$", line)
        if begin:
            function = begin[2]
            begins[function] = begin[1]
        found = re.match(r" *([0-9a-f]+):\s+(\S+)\s*(.*)", line)
        if found and function in FUNCTIONS:
            code[int(found[1], 16)] = (function, operations(found[2], found[3]))
    return code, [begins[f] for f in FUNCTIONS]


def operations(name, operands):
    floating = FLOATING.match(name)
    if not floating:
        return 0
    kind, packed, precision = floating.groups()
    lanes = 1
    if packed == "p":
        widest = max(REGISTER_BYTES[letter] for letter in re.findall(r"%([xyz])mm", operands))
        lanes = widest // (8 if precision == "d" else 4)
    return lanes * (2 if "add" in kind[2:] or "sub" in kind[2:] else 1)


def true_operations(build, program):
    """{function: operations} that the plain program runs."""
    stepper = build / "tests" / "work" / "pass" / "step"
    run(["cc", "-O2", "-Wall", "-o", stepper, Path(__file__).resolve().parent / "step.c"])
    code, begins = code_of(program)
    done = run([stepper, program, *begins])
    totals = dict.fromkeys(FUNCTIONS, 0)
    for address, times in re.findall(r"^([0-9a-f]+) (\d+)$", done.stdout, re.M):
        function, n = code.get(int(address, 16), (None, 0))
        if n:
            totals[function] += n * int(times)
    return totals


def test_operations_that_the_code_generator_merges_count_once(build):
    if platform.machine() != "x86_64":
        raise Skip("step.c reads the registers of x86-64")
    for version in plugins(build):
        for flags in FLAGS if version == max(plugins(build)) else FLAGS[:1]:
            if not runnable(flags):
                continue
            flags = (*flags, "-static", "-fno-pie", "-no-pie", QUIET)
            truth = true_operations(build, compile_kernel(build, version, SOURCE, flags))
            totals = count(compile_kernel(build, version, SOURCE, flags, "tree"))[0]
            counted = {f: sum(of_function(totals, f, metric) for metric in ("fp32_ops", "fp64_ops"))
                       for f in FUNCTIONS}
            assert counted == truth, (version, flags, counted, truth)
            assert all(truth.values()), truth


SPLAT = "shufflevector <2 x double> %{0}, <2 x double> poison, <2 x i32> zeroinitializer"
BROADCASTS = f"  %s = {SPLAT.format('a')}\n  %t = {SPLAT.format('b')}\n"
# What a block counts, of %a and %b, in functions that end with `ret void`
CASES = {
    "equal ones": ("%x = fadd <2 x double> %a, %b\n  %y = fadd <2 x double> %b, %a", {"fp64_ops": 2}),
    "others": ("%x = fsub <2 x double> %a, %b\n  %y = fsub <2 x double> %b, %a", {"fp64_ops": 4}),
    "equal parts of equal ones": (
        "%x = fadd <2 x double> %a, %b\n  %y = fadd <2 x double> %a, %b\n"
        "  %v = fmul <2 x double> %x, %a\n  %w = fmul <2 x double> %y, %a", {"fp64_ops": 4}),
    "equal ones elsewhere": (
        "%x = fadd <2 x double> %a, %b\n  br i1 %i, label %next, label %end\nnext:\n"
        "  %y = fadd <2 x double> %a, %b\n  br label %end\nend:", {"fp64_ops": 4}),
    "equal ones of blocks that are joined": (
        "%x = fadd <2 x double> %a, %b\n  br label %next\nnext:\n"
        "  %y = fadd <2 x double> %a, %b", {"fp64_ops": 2}),
    "equal intrinsics": (
        "%x = call double @llvm.sqrt.f64(double %c)\n  %y = call double @llvm.sqrt.f64(double %c)",
        {"fp64_ops": 1}),
    "broadcasts": (f"\n{BROADCASTS}  %x = fmul <2 x double> %s, %t", {"fp64_ops": 1, "lanes_issued": 0}),
    "a broadcast and its sum": (
        f"\n{BROADCASTS}  %x = fmul <2 x double> %s, %t\n  %y = fadd <2 x double> %x, %s", {"fp64_ops": 2}),
    "a broadcast and a vector": (f"\n{BROADCASTS}  %x = fmul <2 x double> %s, %b", {"fp64_ops": 2}),
    "a broadcast of another block": (
        f"\n{BROADCASTS}  br i1 %i, label %next, label %end\nnext:\n  %x = fmul <2 x double> %s, %t\n"
        "  br label %end\nend:", {"fp64_ops": 2}),
    "loads": ("%x = load double, ptr %p\n  %y = load double, ptr %p", {"loads": 1, "bytes_loaded": 8}),
    "loads around a store": (
        "%x = load double, ptr %p\n  store double 1.0, ptr %q\n  %y = load double, ptr %p",
        {"loads": 2, "bytes_loaded": 16}),
    "volatile loads": (
        "%x = load volatile double, ptr %p\n  %y = load volatile double, ptr %p", {"loads": 2}),
}
FUNCTION = """target datalayout = "e-m:e-i64:64-n32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare double @llvm.sqrt.f64(double)
define void @kernel(<2 x double> %a, <2 x double> %b, double %c, i1 %i, ptr %p, ptr %q) ATTRIBUTES {
  BODY
  ret void
}
"""


def test_only_what_is_equal_in_its_block_is_merged(build):
    for version in plugins(build):
        for name, (body, expected) in CASES.items():
            text = FUNCTION.replace("BODY", body).replace("ATTRIBUTES", "")
            metrics = table_of(opt(build, version, "mperf", text, "-mperf-mode=block"))[1]
            assert {m: metrics[m] for m in expected} == expected, (version, name, dict(metrics))


def test_nothing_is_merged_without_optimisation(build):
    for version in plugins(build):
        for name, operations in (("equal ones", 4), ("broadcasts", 2)):
            text = FUNCTION.replace("BODY", CASES[name][0]).replace("ATTRIBUTES", "noinline optnone")
            assert table_of(opt(build, version, "mperf", text))[1]["fp64_ops"] == operations, name
