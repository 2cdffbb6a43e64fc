# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the kernels of tests/kernels with the plugin and the stub runtime, runs them, and reads
what they counted."""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from read_counts import OWN, read_totals

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "tests" / "kernels"
RUN_SECONDS = 120
EXPECT = re.compile(r"^ \* expect: (\S+) ([a-z0-9_]+)(\.least)? (-?\d+)$", re.M)


def plugin(build, version):
    return build / f"llvm-{version}" / "mperf-pass.so"


def versions(build):
    return [v for v in (16, 19) if plugin(build, v).exists()]


def run(command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True,
                          timeout=RUN_SECONDS, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr[-3000:]}"
    return done


def compile_kernel(build, version, source, flags, mode=None, options=()):
    """An executable, plain where mode is None."""
    # What only the linker reads is no complaint.
    flags = (*flags, "-Wno-unused-command-line-argument")
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{source.stem}-{version}-{' '.join(flags)}-{mode}{' '.join(options)}")
    work = build / "tests" / "work" / "pass"
    work.mkdir(parents=True, exist_ok=True)
    program = work / name
    cxx = source.suffix == ".cc"
    compiler = f"clang{'++' if cxx else ''}-{version}"
    stub = work / f"{name}.stub.o"
    run([f"clang-{version}", *[f for f in flags if not f.startswith("-O")], "-O2", "-I", ROOT, "-c", "-o", stub,
         ROOT / "llvm-pass" / "tests" / "stub_runtime.c"])
    load = [] if mode is None else [
        f"-fpass-plugin={plugin(build, version)}", "-Xclang", "-load", "-Xclang",
        plugin(build, version), "-mllvm", f"-mperf-mode={mode}", "-Rpass=^$",
        *[a for o in options for a in ("-mllvm", o)]]
    run([compiler, *flags, *load, "-c", "-o", f"{program}.o", source])
    run([compiler, *flags, f"{program}.o", stub, "-o", program, "-lm", "-lpthread"])
    return program


def count(program, runner=(), vscale=1):
    output = program.with_suffix(".counts")
    done = run([*runner, program], env=dict(os.environ, MPERF_STUB_OUTPUT=str(output)))
    return read_totals(output.read_bytes(), vscale), done.stdout


def comparable(totals):
    """Without what counting itself is, and whether a function has two bodies."""
    return {k[:5] + (k[5] & ~16,) + k[6:]: v for k, v in totals.items() if v and k[-1] not in OWN}


def of_function(totals, function, metric):
    """A function's own and its loops'; entries and rounds are the function's alone."""
    kinds = ("function",) if metric in ("entries", "iterations", "counted_entries") else ("function", "loop", "block")
    return sum(v for k, v in totals.items()
               if k[0] in kinds and k[1] == function and k[-1] == metric)


def expectations(source):
    found = [(f, m, bool(least), int(n)) for f, m, least, n in EXPECT.findall(source.read_text())]
    assert found, f"{source} expects nothing"
    return found


def failures(totals, source):
    wrong = []
    for function, metric, least, expected in expectations(source):
        got = of_function(totals, function, metric)
        if got < expected if least else got != expected:
            wrong.append(f"{function} {metric}: {got}, not {expected}")
    return wrong
