# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass, with each LLVM that there is: .ll files with their RUN lines, kernels whose counts are
known, all modes against each other."""
import re
import shutil
import subprocess
from pathlib import Path

from kernels import (KERNELS, ROOT, comparable, compile_kernel, count, failures, of_function, plugin,
                     run, versions)
from machine import Skip

# openmp.c wants its library, and lto_*.c are one program.
SOURCES = sorted(p for p in KERNELS.iterdir() if p.suffix in (".c", ".cc")
                 and not p.name.startswith(("openmp", "lto_")))
FLAGS = [("-O0",), ("-O2",), ("-O3", "-mavx2", "-mfma"), ("-O3", "-mavx512f", "-mavx512bw", "-mavx512vl")]


def plugins(build):
    found = versions(build)
    if not found:
        raise Skip("no plugin was built: neither LLVM 16 nor 19 has its headers here")
    return found


def runnable(flags):
    wanted = {f.removeprefix("-m") for f in flags if f.startswith("-m")}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        known = set(re.search(r"^flags\s*:(.*)$", file.read(), re.M).group(1).split())
    return wanted <= known


def test_ll_files_come_out_as_they_say(build):
    files = sorted((ROOT / "llvm-pass" / "tests").glob("*.ll"))
    ran = 0
    for version in plugins(build):
        so = plugin(build, version)
        for path in files:
            lines = re.findall(r"^; RUN: (.*)$", path.read_text(encoding="utf-8"), re.M)
            assert lines, f"{path} says not how to run it"
            for line in lines:
                command = (line.replace("opt ", f"opt-{version} -load={so} -load-pass-plugin={so} ", 1)
                           .replace("FileCheck ", f"FileCheck-{version} ").replace("%s", str(path)))
                done = subprocess.run(["bash", "-o", "pipefail", "-c", command],
                                      capture_output=True, text=True)
                assert done.returncode == 0, f"LLVM {version}: {command}\n{done.stderr[-3000:]}"
                ran += 1
    assert ran >= 2 * len(files) or len(plugins(build)) == 1


def check_modes(build, source, version, flags, options=()):
    program = compile_kernel(build, version, source, flags, "block", options=options)
    expected, printed = count(program)
    assert not failures(expected, source), failures(expected, source)
    for mode in ("tree", "sets"):
        got, also = count(compile_kernel(build, version, source, flags, mode, options=options))
        assert also == printed, f"{source.stem} {flags} {mode} changes what the program does"
        if not differs_by_escapes(source, options):
            assert not failures(got, source), (mode, failures(got, source))
            different = sorted(set(comparable(got).items()) ^ set(comparable(expected).items()))
            assert not different, f"{source.stem} {flags} {mode}: {different[:4]}"


def differs_by_escapes(source, options):
    """What a call threw through a function that knows nothing of it is off by one path, unless all
    such calls are counted."""
    return source.suffix == ".cc" and "-mperf-escapes" not in options


def test_modes_agree_and_counts_are_those_that_are_known(build):
    for version in plugins(build):
        for source in SOURCES:
            for flags in FLAGS:
                if runnable(flags):
                    check_modes(build, source, version, flags)


def test_exceptions_and_jumps_are_exact_where_all_escapes_are_counted(build):
    for version in plugins(build):
        for name in ("exceptions.cc", "flow.c"):
            check_modes(build, KERNELS / name, version, ("-O2",), ("-mperf-escapes",))


def test_callees_behind_a_call_that_threw_are_counted_as_often_as_they_ran(build):
    for version in plugins(build):
        totals = count(compile_kernel(build, version, KERNELS / "exceptions.cc", ("-O2",), "tree"))[0]
        assert of_function(totals, "_ZL11left_behindPd", "fp64_ops") == 900, totals


def test_what_is_printed_is_what_the_plain_program_prints(build):
    for version in plugins(build):
        for source in SOURCES:
            plain = run([compile_kernel(build, version, source, ("-O2",))]).stdout
            counted = count(compile_kernel(build, version, source, ("-O2",), "tree"))[1]
            assert plain == counted, source


def test_blocks_add_up_to_loops_and_functions(build):
    source = KERNELS / "loops.c"
    for version in plugins(build):
        whole = count(compile_kernel(build, version, source, ("-O2",), "tree"))[0]
        parts = count(compile_kernel(build, version, source, ("-O2",), "tree",
                                     options=("-mperf-blocks",)))[0]
        assert any(k[0] == "block" for k in parts)
        for metric in ("fp32_ops", "fp64_ops", "bytes_loaded", "bytes_stored", "instructions"):
            total = sum(v for k, v in whole.items() if k[-1] == metric)
            assert total == sum(v for k, v in parts.items() if k[-1] == metric) and total > 0
        assert of_function(whole, "triad", "entries") == of_function(parts, "triad", "entries") == 1


def test_a_loop_is_known_without_debug_information(build):
    for version in plugins(build):
        totals = count(compile_kernel(build, version, KERNELS / "loops.c", ("-O2",), "tree"))[0]
        loops = {k[1:4] for k in totals if k[0] == "loop" and k[1] == "triangular"}
        assert {nest for _, _, nest in loops} >= {"1", "1.1", "1.1.1"}, loops
        assert all(re.search(r"loops\.c:\d+$", source) for _, source, _ in loops), loops


def mperf_cc(build, *arguments, **environment):
    return subprocess.run([build / "mperf-cc", *map(str, arguments)], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", **environment})


def test_mperf_cc_names_the_versions_that_it_has_plugins_for(build):
    plugins(build)
    done = mperf_cc(build, "-c", KERNELS / "matmul.c", "-o", "/dev/null", MPERF_CLANG="clang-14")
    if not shutil.which("clang-14"):
        raise Skip("there is no clang-14, for which there is no plugin")
    assert done.returncode == 1 and "LLVM 14" in done.stderr and "MPERF_CLANG" in done.stderr, done.stderr


def test_mperf_cc_without_input_is_clang(build):
    plugins(build)
    for arguments in (("--version",), ("-dumpmachine",), ("-print-prog-name=ld",)):
        done = mperf_cc(build, *arguments)
        assert done.returncode == 0 and "mperf" not in done.stdout + done.stderr, done


def test_mperf_cc_refuses_a_compiler_that_is_not_there(build):
    plugins(build)
    done = mperf_cc(build, "-c", "x.c", MPERF_CLANG="clang-of-nowhere")
    assert done.returncode == 1 and "clang-of-nowhere" in done.stderr, done.stderr


def test_mperf_cc_counts_what_it_compiles_and_nothing_where_it_is_off(build):
    plugins(build)
    work = build / "tests" / "work" / "pass"
    work.mkdir(parents=True, exist_ok=True)
    for off, counted in (("", True), ("off", False)):
        done = mperf_cc(build, "-O2", "-c", KERNELS / "matmul.c", "-o", work / "wrapped.o", MPERF_PASS=off)
        assert done.returncode == 0 and not done.stderr, done.stderr
        sections = run(["objdump", "-h", work / "wrapped.o"]).stdout
        assert ("mperf_modules" in sections) == counted
        assert "debug_info" not in sections


def wrapped_totals(build, name, sources, flags, **environment):
    """What a program says of itself that mperf-cc built: totals by (function, metric)."""
    import feed
    from read_counts import METRICS
    work = build / "tests" / "work" / "pass"
    work.mkdir(parents=True, exist_ok=True)
    program, output = work / name, work / f"{name}.mperf"
    objects = [work / f"{name}-{source.stem}.o" for source in sources]
    for source, target in zip(sources, objects):
        done = mperf_cc(build, *flags, "-c", source, "-o", target, **environment)
        assert done.returncode == 0 and not done.stderr, done.stderr
    done = mperf_cc(build, *flags, *objects, "-o", program, "-lm", **environment)
    assert done.returncode == 0 and not done.stderr, done.stderr
    run([program], env={"MPERF_OUTPUT": str(output)})
    messages = feed.read_file(output)
    told = feed.Program(messages)
    first = {(m.object, m.module): m.counter_first for m in messages if m.type == "TABLE"}
    totals = {}
    for key in told.pieces:
        table = told.table(key)
        for i, (_, terms) in enumerate(table.counters):
            value = told.sum(first[key] + i, object=key[0])
            for scope, metric, factor in terms:
                function = table.strings[table.scopes[scope]["function"]].decode()
                at = (function, METRICS[metric >> 2])
                totals[at] = totals.get(at, 0) + value * factor
    return totals


def test_the_runtime_is_told_the_same(build):
    for version in plugins(build):
        totals = wrapped_totals(build, f"real-{version}", [KERNELS / "loops.c"], ["-O2"],
                                MPERF_CLANG=f"clang-{version}")
        assert totals["triad", "fp64_ops"] == 200000, totals
        assert totals["triangular", "fp32_ops"] == 166650, totals


def test_threads_of_openmp_are_counted_for_the_function_they_work_for(build):
    plugins(build)
    if not list(Path("/usr/lib/llvm-19/lib").glob("libomp.so*")) or 19 not in plugins(build):
        raise Skip("libomp of LLVM 19 is not installed")
    totals = wrapped_totals(build, "openmp", [KERNELS / "openmp.c"], ["-O2", "-fopenmp"],
                            MPERF_CLANG="clang-19")
    for function in ("dealt", "as_it_comes"):
        assert totals[function, "fp64_ops"] == 200000, {k: v for k, v in totals.items() if v}


def test_nothing_is_counted_twice_with_lto(build):
    pair = [KERNELS / "lto_main.c", KERNELS / "lto_other.c"]
    for version in plugins(build):
        if not shutil.which(f"ld.lld-{version}"):
            raise Skip(f"there is no ld.lld-{version}")
        for how in ("-flto=thin", "-flto=full", "-fno-lto"):
            totals = wrapped_totals(build, f"lto-{version}{how}", pair, ["-O2", how],
                                    MPERF_CLANG=f"clang-{version}")
            sums = {name: sum(v for (_, metric), v in totals.items() if metric == name)
                    for name in ("fp64_ops", "external_calls")}
            assert sums["fp64_ops"] == 30000, (version, how, totals)


RISCV = ("--target=riscv64-linux-gnu", "-march=rv64gcv", "-O3")


def test_scalable_vectors_are_exact_at_every_length(build):
    """RVV under qemu: one program, three lengths of a vector."""
    found = [p for p in (build / "boards" / "riscv64", build.parent / "boards" / "riscv64")
             if (p / "usr" / "include" / "stdio.h").exists()]
    if not found or not shutil.which("qemu-riscv64") or 19 not in plugins(build):
        raise Skip("no libraries of riscv64 (make CROSS=riscv64 fetches them), no qemu-riscv64, "
                   "or no LLVM 19")
    flags = (*RISCV, f"--sysroot={found[0]}", "-static", "-fuse-ld=lld-19")
    for name in ("vectors.c", "loops.c"):
        programs = {mode: compile_kernel(build, 19, KERNELS / name, flags, mode)
                    for mode in ("block", "tree")}
        for bits in (128, 256, 512):
            runner = ("qemu-riscv64", "-cpu", f"rv64,v=true,vlen={bits},vext_spec=v1.0")
            expected = count(programs["block"], runner, bits // 64)[0]
            got = count(programs["tree"], runner, bits // 64)[0]
            assert comparable(got) == comparable(expected), (name, bits)
            assert not failures(got, KERNELS / name), (bits, failures(got, KERNELS / name))
            if name == "vectors.c":
                assert of_function(got, "dot", "bytes_loaded") == 2 * 8 * 10007
