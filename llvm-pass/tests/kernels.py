# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the kernels of tests/kernels, with the plugin and the stub runtime or by mperf-cc with the
real one, runs them, and reads what they counted."""
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from read_counts import OWN, add_term, read_table, read_totals, signed

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "tests" / "kernels"
RUN_SECONDS = 120
QUIET = "-Wno-unused-command-line-argument"  # what only the linker reads is no complaint
# Most counts that are known beforehand are those of whole functions; and all nests are timed, so that
# the runtime is called in each.
WHOLE = ("-mperf-functions", "-mperf-all-nests")
WHOLE_WORDS = "functions=1 all-nests=1"
# A count, a range of counts that compilers may make of it, or what it is at least.
EXPECT = re.compile(r"^ \* expect: (\S+) ([a-z0-9_]+(?:\.modelled)?)(\.least)? (\d+)(?:\.\.(\d+))?$", re.M)


def plugin(build, version):
    return build / f"llvm-{version}" / "mperf-pass.so"


def versions(build):
    return [v for v in (16, 19) if plugin(build, v).exists()]


def run(command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True,
                          timeout=RUN_SECONDS, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr[-3000:]}"
    return done


@functools.cache
def compile_stub(work, version, flags):
    """The stub runtime, once for all kernels of one run."""
    stub = work / (re.sub(r"[^A-Za-z0-9]+", "-", f"stub-{version}-{' '.join(flags)}") + ".o")
    run([f"clang-{version}", *flags, "-O2", "-I", ROOT, "-c", "-o", stub,
         ROOT / "llvm-pass" / "tests" / "stub_runtime.c"])
    return stub


def compile_kernel(build, version, source, flags, mode=None, options=()):
    """An executable, plain where mode is None; made once, however many tests of a run want it."""
    return compiled(build, version, source, (*flags, QUIET), mode, tuple(options))


@functools.cache
def compiled(build, version, source, flags, mode, options):
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{source.stem}-{version}-{' '.join(flags)}-{mode}{' '.join(options)}")
    work = build / "tests" / "work" / "pass"
    work.mkdir(parents=True, exist_ok=True)
    program = work / name
    cxx = source.suffix == ".cc"
    compiler = f"clang{'++' if cxx else ''}-{version}"
    stub = compile_stub(work, version, tuple(f for f in flags if not f.startswith("-O")))
    load = [] if mode is None else [
        f"-fpass-plugin={plugin(build, version)}", "-Xclang", "-load", "-Xclang",
        plugin(build, version), "-mllvm", f"-mperf-mode={mode}", "-Rpass=^$",
        *[a for o in options for a in ("-mllvm", o)]]
    run([compiler, *flags, *load, "-c", "-o", f"{program}.o", source])
    run([compiler, *flags, f"{program}.o", stub, "-o", program, "-lm", "-lpthread"])
    return program


@functools.cache
def count(program, runner=(), vscale=1):
    """(totals, what it printed) of a run of a kernel, whose counts are the same each time."""
    output = program.with_suffix(".counts")
    done = run([*runner, program], env=dict(os.environ, MPERF_STUB_OUTPUT=str(output)))
    return read_totals(output.read_bytes(), vscale), done.stdout


def mperf_cc(build, *arguments, **environment):
    return subprocess.run([build / "mperf-cc", *map(str, arguments)], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", **environment})


def wrap(build, name, sources, flags, **environment):
    """A program by mperf-cc (mperf-c++ where a source is C++), of objects that it links itself; with
    functions counted whole."""
    environment.setdefault("MPERF_PASS", WHOLE_WORDS)
    work = build / "tests" / "work" / "pass"
    work.mkdir(parents=True, exist_ok=True)
    program = work / name
    objects = [work / f"{name}-{source.stem}.o" for source in sources]
    libraries = ["-lm", *(["-lstdc++"] if any(s.suffix == ".cc" for s in sources) else [])]
    for target, *arguments in (*((o, "-c", s) for s, o in zip(sources, objects)),
                               (program, *objects, *libraries)):
        done = mperf_cc(build, *flags, *arguments, "-o", target, **environment)
        assert done.returncode == 0 and not done.stderr, done.stderr
    return program


def told_totals(program, arguments=(), **environment):
    """What a program that mperf-cc built tells its file, in the form of count(); all threads."""
    output = program.with_suffix(".mperf")
    run([program, *arguments], env={"MPERF_OUTPUT": str(output), **environment})
    return totals_of_file(output)


def totals_of_file(path):
    import feed
    told = feed.Program(feed.read_file(path))
    assert told.last and not told.threads_lost, (told.last, told.threads_lost)
    return sums_of(told, lambda counter, number: told.sum(counter, object=number))


def sums_of(told, value_of):
    """Totals of a told program; value_of(counter, object) gives a counter's."""
    totals = {}
    for (number, module), data in told.pieces.items():
        scopes, counters = read_table(data)
        for i, (_, terms) in enumerate(counters):
            value = value_of(told.firsts[number, module] + i, number)
            for scope, key, factor in terms:
                add_term(totals, scopes[scope], key, factor * value, told.hello.vscale)
    return signed(totals)


def comparable(totals):
    """Without what counting itself is, and whether a function has two bodies or counts at once."""
    return {k[:5] + (k[5] & ~(16 | 32),) + k[6:]: v for k, v in totals.items() if v and k[-1] not in OWN}


def of_function(totals, function, metric):
    """A function's own and its loops'; entries and rounds are the function's alone. outside_… is what
    does not go to the stack."""
    if metric.startswith("outside_"):
        name = metric.removeprefix("outside_")
        return of_function(totals, function, name) - of_function(totals, function, "stack_" + name)
    kinds = (("function",) if metric in ("entries", "iterations", "counted_entries")
             else ("function", "loop", "block"))
    return sum(v for k, v in totals.items()
               if k[0] in kinds and k[1] == function and k[-1] == metric)


def expectations(source):
    """(function, metric, least, most) of each line in the source that says so."""
    text = source.read_text()
    found = [(f, m, int(n), int(most or n) if not least else 1 << 63)
             for f, m, least, n, most in EXPECT.findall(text)]
    assert found and len(found) == text.count("expect: "), f"{source} expects what nobody reads"
    return found


def failures(totals, source):
    wrong = []
    for function, metric, least, most in expectations(source):
        got = of_function(totals, function, metric)
        if not least <= got <= most:
            wrong.append(f"{function} {metric}: {got}, not {least} to {most}")
    return wrong
