# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass, with each LLVM that there is: .ll files with their RUN lines, kernels whose counts are
known, all modes against each other."""
import collections
import os
import re
import shutil
import subprocess
from pathlib import Path

import feed
from kernels import (KERNELS, QUIET, ROOT, WHOLE, comparable, compile_kernel, count, failures, mperf_cc,
                     of_function, plugin, run, sums_of, told_totals, totals_of_file, versions, wrap)
from machine import Folder, Skip

FILLS = "most of it compiles, and counts do not depend on time"
SECONDS = 400

# These want OpenMP's library, half precision, regions, one set of flags, or more than one process or
# file.
APART = ("callees", "lowered", "merged", "iterations", "own_abort", "openmp", "shiloach", "half", "forks", "library", "opener", "lto_", "clocked", "graph",
         "innocent", "regions", "resolver")
SOURCES = sorted(p for p in KERNELS.iterdir() if p.suffix in (".c", ".cc")
                 and not p.name.startswith(APART))
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
    options = (*WHOLE, *options)
    program = compile_kernel(build, version, source, flags, "block", options=options)
    expected, printed = count(program)
    assert not failures(expected, source), failures(expected, source)
    # clone is tree in one of two bodies: all flags with one version, one with the others
    modes = ("tree", "sets") + (("clone",) if version == versions(build)[-1] or flags == ("-O2",) else ())
    for mode in modes:
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
    found = plugins(build)
    for version in found:
        # of the older LLVM, what one would build by; the source of the pass is the same
        for flags in FLAGS if version == max(found) else FLAGS[1:3]:
            # as libraries are, once
            options = () if version == max(found) or flags != FLAGS[1] else ("-mperf-segment=false",)
            for source in SOURCES if runnable(flags) else ():
                check_modes(build, source, version, flags, options)


def test_what_a_code_generator_will_load_is_counted(build):
    """Entries of jump tables, constants, and of words of which a byte is looked at, that byte."""
    for version in plugins(build):
        check_modes(build, KERNELS / "lowered.c", version, ("-O2",))


def seconds_of(command):
    """Of processors, not of the clock."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return usage.ru_utime + usage.ru_stime


def test_time_to_count_a_function_grows_as_its_loops_do(build):
    """Four times the loops take not many times as long: where it was quadratic or worse, 60 times."""
    version = max(plugins(build))
    so, seconds = plugin(build, version), []
    for n in (250, 1000):
        lines = [f"for (int i = 0; i < n; i++) {{ a[i + {k}] += a[i] * {k}.5; if (c[i] > {k}) a[i] -= 1; }}"
                 for k in range(n)]
        with Folder() as folder:
            (folder / "many.c").write_text("\n".join(["extern double a[]; extern int c[];", "void f(int n) {",
                                                      *lines, "}", ""]))
            run([f"clang-{version}", "-O1", "-g1", "-S", "-emit-llvm", "-o", folder / "many.ll", folder / "many.c"])
            plain = [f"opt-{version}", "-passes=verify", "-disable-output", folder / "many.ll"]
            counted = [f"opt-{version}", f"-load={so}", f"-load-pass-plugin={so}", "-passes=mperf",
                       "-disable-output", folder / "many.ll"]
            seconds.append(min(seconds_of(counted) for _ in range(2)) - min(seconds_of(plain) for _ in range(2)))
    assert seconds[1] < 15 * seconds[0], seconds


def test_iterations_are_those_of_the_source(build):
    """Tested first, vectorised, unrolled with and without a remainder."""
    source = KERNELS / "iterations.c"
    for version in plugins(build):
        for flags in (*FLAGS, ("-O1",)) if version == versions(build)[-1] else FLAGS[1:2]:
            if not runnable(flags):
                continue
            totals = count(compile_kernel(build, version, source, flags, "tree"))[0]
            found = collections.Counter()
            for key, value in totals.items():
                if key[0] == "loop" and key[1] in source.read_text() and key[-1] == "iterations":
                    found[key[1]] += value
            for name in re.findall(r"^KERNEL \w+ (\w+)", source.read_text(), re.M):
                assert found[name] == 1000, (version, flags, dict(found))


def test_iterations_of_vectors_that_are_unrolled_are_those_of_the_source(build):
    """Where the loop is left in its middle. A compiler that leaves no loop has none of them."""
    flags = ("-O2", "-mavx2", "-funroll-loops")
    if not runnable(flags):
        raise Skip("no AVX2")
    for version in plugins(build):
        totals = count(compile_kernel(build, version, KERNELS / "iterations_hundred.c", flags, "tree"))[0]
        found = sum(v for k, v in totals.items() if k[:2] == ("loop", "hundred") and k[-1] == "iterations")
        assert found == 1000 or found == 0 and version != "16", (version, found)


def test_all_escapes_change_no_other_count(build):
    """Except of the function that is left midway."""
    for version in plugins(build):
        for name in ("callers.c", "merged.c"):
            totals = [count(compile_kernel(build, version, KERNELS / name, ("-O2",), "tree", options))[0]
                      for options in (WHOLE, (*WHOLE, "-mperf-escapes"))]
            different = [row for row in set(comparable(totals[0]).items()) ^ set(comparable(totals[1]).items())
                         if row[0][1] != "midway"]
            assert not different, (version, name, different[:4])


def test_exceptions_and_jumps_are_exact_where_all_escapes_are_counted(build):
    for version in plugins(build):
        for name in ("exceptions.cc", "flow.c"):
            check_modes(build, KERNELS / name, version, ("-O2",), ("-mperf-escapes",))


def test_callees_behind_a_call_that_threw_are_counted_as_often_as_they_ran(build):
    for version in plugins(build):
        totals = count(compile_kernel(build, version, KERNELS / "exceptions.cc", ("-O2",), "tree", WHOLE))[0]
        assert of_function(totals, "_ZL11left_behindPd", "fp64_ops") == 900, totals


def test_an_abort_that_jumps_out_leaves_later_callees_exact(build):
    pair = [KERNELS / "own_abort.c", KERNELS / "own_abort_other.c"]
    for version in plugins(build):
        totals = told_totals(wrap(build, f"own-abort-{version}", pair, ["-O2"], MPERF_CLANG=f"clang-{version}"))
        assert not failures(totals, pair[0]), failures(totals, pair[0])


def test_what_is_printed_is_what_the_plain_program_prints(build):
    for version in plugins(build):
        for source in SOURCES:
            plain = run([compile_kernel(build, version, source, ("-O2",))]).stdout
            counted = count(compile_kernel(build, version, source, ("-O2",), "tree"))[1]
            assert plain == counted, source


FLOPS = {"fp16_ops", "fp32_ops", "fp64_ops", "fp_wide_ops"}


def of_loops(totals):
    return {k: v for k, v in totals.items() if k[0] == "loop"}


def total_flops(totals):
    return {name: sum(v for k, v in totals.items() if k[-1] == name) for name in FLOPS}


def check_loops_alone(build, source, version, flags, mode):
    """Returns how many counts the functions have outside of their loops, with and without the option."""
    whole, printed = count(compile_kernel(build, version, source, flags, mode, WHOLE))
    alone, also = count(compile_kernel(build, version, source, flags, mode))
    assert printed == also, source
    different = set(of_loops(comparable(whole)).items()) ^ set(of_loops(comparable(alone)).items())
    assert not different, f"{source.stem} {flags} {mode}: {sorted(different)[:4]}"
    assert total_flops(whole) == total_flops(alone), (source, flags, mode)
    return [len(comparable(totals)) - len(of_loops(comparable(totals))) for totals in (whole, alone)]


def test_loops_alone_have_the_rows_that_they_have_in_whole_functions(build):
    """And no floating-point operation is lost. What jumps or throws past the end of a function is off
    by one path, which need not be the same."""
    found = plugins(build)
    for version in found:
        outside = []
        for flags in FLAGS if version == max(found) else FLAGS[1:2]:
            for source in (*SOURCES, KERNELS / "lowered.c") if runnable(flags) else ():
                if source.suffix == ".cc":
                    continue
                # what a mode leaves out is the same with each LLVM
                for mode in ("tree", "block", "sets") if flags == FLAGS[1] and version == max(found) else ("tree",):
                    outside.append(check_loops_alone(build, source, version, flags, mode))
        assert 0 < sum(alone for _, alone in outside) < sum(whole for whole, _ in outside) / 2, outside


def test_blocks_add_up_to_loops_and_functions(build):
    source = KERNELS / "loops.c"
    for version in plugins(build):
        whole = count(compile_kernel(build, version, source, ("-O2",), "tree", WHOLE))[0]
        parts = count(compile_kernel(build, version, source, ("-O2",), "tree",
                                     options=("-mperf-blocks",)))[0]
        assert any(k[0] == "block" for k in parts)
        for metric in ("fp32_ops", "fp64_ops", "bytes_loaded", "bytes_stored", "instructions"):
            total = sum(v for k, v in whole.items() if k[-1] == metric)
            assert total == sum(v for k, v in parts.items() if k[-1] == metric) and total > 0
        # how often each ran: those of the loop's line are its body, at most once in an iteration
        ran = [v for k, v in parts.items() if k[0] == "block" and k[1] == "triad" and
               k[-1] == "entries"]
        iterations = sum(v for k, v in parts.items() if k[0] == "loop" and k[1] == "triad" and
                         k[-1] == "iterations")
        assert 1 < max(ran) <= iterations, (ran, iterations)
        assert of_function(whole, "triad", "entries") == of_function(parts, "triad", "entries") == 1


def test_a_loop_is_known_without_debug_information(build):
    for version in plugins(build):
        totals = count(compile_kernel(build, version, KERNELS / "loops.c", ("-O2",), "tree"))[0]
        loops = {k[1:4] for k in totals if k[0] == "loop" and k[1] == "triangular"}
        assert {nest for _, _, nest in loops} >= {"1", "1.1", "1.1.1"}, loops
        assert all(re.search(r"loops\.c:\d+$", source) for _, source, _ in loops), loops


def test_debug_information_that_nobody_asked_for_ends_with_the_pass(build):
    for version in plugins(build):
        def compiled(*flags):
            done = mperf_cc(build, "-O2", "-S", "-o", "-", *flags, KERNELS / "matmul.c",
                            MPERF_CLANG=f"clang-{version}")
            assert done.returncode == 0, done.stderr
            return done.stdout, done.stderr
        text, _ = compiled("-emit-llvm")
        assert "mperf.table" in text and "!dbg" not in text and "DICompileUnit" not in text
        assert "!dbg" in compiled("-emit-llvm", "-g")[0]
        assert ".debug_line" in compiled("-g1")[0]
        # remarks of the code generator have lines
        said = compiled("-Rpass-analysis=asm-printer")[1]
        assert re.search(r"matmul\.c:\d+:\d+: remark: \d+ instructions in function", said), said
        said = compiled("-Rpass-analysis=size-info")[1]
        assert re.search(r"matmul\.c:\d+:\d+: remark: X86 DAG", said), said
        for name in ("atomic-expand", "gisel-irtranslator", "gisel-legalize", "gisel-select",
                     "hardware-loops", "interleaved-load-combine", "pipeliner", "select-optimize"):
            assert "!dbg" in compiled("-emit-llvm", f"-Rpass={name}")[0], (version, name)
        assert "!dbg" in compiled("-emit-llvm", "-fsave-optimization-record",
                                  "-foptimization-record-file=/dev/null")[0]


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
        # they are 0, and no byte of the file
        of_counters = re.search(r" mperf_counters .*\n(.*)", sections)
        assert bool(of_counters) == counted
        assert not counted or of_counters[1].split() == ["ALLOC"], of_counters[1]
        assert "debug_info" not in sections


def test_the_runtime_is_told_the_same(build):
    for version in plugins(build):
        program = wrap(build, f"real-{version}", [KERNELS / "loops.c"], ["-O2"],
                       MPERF_CLANG=f"clang-{version}")
        assert not failures(told_totals(program), KERNELS / "loops.c")


def test_a_library_that_is_opened_and_closed_is_counted_each_time(build):
    for version in plugins(build):
        environment = {"MPERF_CLANG": f"clang-{version}"}
        library = wrap(build, f"library-{version}.so", [KERNELS / "library.c"],
                       ["-O2", "-fPIC", "-shared", QUIET], **environment)
        program = wrap(build, f"opener-{version}", [KERNELS / "opener.c"], ["-O2"], **environment)
        wrong = failures(told_totals(program, [library]), KERNELS / "library.c")
        assert not wrong, wrong


def test_libraries_without_static_tls_may_be_opened_in_any_number(build):
    """Otherwise glibc refuses one of them, since its room for static TLS is full."""
    n_libraries, n_operations = 400, 400 * 1000 * 2
    for version in plugins(build):
        environment = {"MPERF_CLANG": f"clang-{version}"}
        flags = ["-O2", "-fPIC", "-shared", QUIET]
        program = wrap(build, f"many-{version}", [KERNELS / "opener_of_many.c"], ["-O2"], **environment)
        for dynamic in (True, False):
            if dynamic:
                environment["MPERF_PASS"] = "dynamic-tls=1"
            else:
                del environment["MPERF_PASS"]
            library = wrap(build, f"many-{version}-{dynamic:d}.so", [KERNELS / "library.c"], flags,
                           **environment)
            folder = Path(f"{library}.copies")
            folder.mkdir(exist_ok=True)
            copies = [folder / f"{n}.so" for n in range(n_libraries)]
            for copy in copies:
                shutil.copyfile(library, copy)
            try:
                if dynamic:
                    counted = of_function(told_totals(program, copies), "axpy", "fp64_ops")
                    assert counted == n_operations, (version, counted)
                else:
                    done = subprocess.run([program, *copies], capture_output=True, text=True)
                    assert "static TLS" in done.stderr, (version, done.returncode, done.stderr)
            finally:
                shutil.rmtree(folder)


def test_both_sides_of_a_fork_are_counted_once(build):
    """Each process tells a file of its own; together they have each operation once."""
    for version in plugins(build):
        program = wrap(build, f"forks-{version}", [KERNELS / "forks.c"], ["-O2"],
                       MPERF_CLANG=f"clang-{version}")
        for old in program.parent.glob(f"{program.name}.mperf.*"):
            old.unlink()
        run([program], env={"MPERF_OUTPUT": f"{program}.mperf.%p"})
        totals = [totals_of_file(path) for path in program.parent.glob(f"{program.name}.mperf.*")]
        assert len(totals) == 2, totals
        both = {k: sum(t.get(k, 0) for t in totals) for t in totals for k in t}
        assert not failures(both, KERNELS / "forks.c"), failures(both, KERNELS / "forks.c")
        of_child = [of_function(t, "in_child", "fp64_ops") for t in totals]
        assert sorted(of_child) == [0, 5000], of_child


def test_a_signal_handler_may_walk_the_stack_wherever_it_comes(build):
    """Some tens of these signals come within a call of the runtime."""
    for version in plugins(build):
        program = wrap(build, f"unwinds-{version}", [KERNELS / "unwinds.c"], ["-O2"],
                       MPERF_CLANG=f"clang-{version}")
        for _ in range(4):
            run([program, 10000], env={"MPERF_OUTPUT": str(program.with_suffix(".mperf"))})


def test_what_resolvers_call_is_not_counted_and_static_programs_start(build):
    pair = [KERNELS / "resolver.c", KERNELS / "resolver_other.c"]
    for version in plugins(build):
        for how in ("-static", "-static-pie", "-pie"):
            flags = ["-O1", "-fPIE" if "pie" in how else "-fno-pie", how, QUIET]
            program = wrap(build, f"resolver-{version}{how}", pair, flags, MPERF_CLANG=f"clang-{version}")
            wrong = failures(told_totals(program), pair[0])
            assert not wrong, (version, how, wrong)
        done = mperf_cc(build, "-O1", "-Rpass-analysis=mperf", "-c", pair[0], "-o", "/dev/null",
                        MPERF_CLANG=f"clang-{version}")
        assert "n_set_bits is not counted: the resolver choose_sum calls it" in done.stderr, done.stderr


def with_openmp(build, name, flags=("-O2",)):
    if not list(Path("/usr/lib/llvm-19/lib").glob("libomp.so*")) or 19 not in plugins(build):
        raise Skip("libomp of LLVM 19 is not installed")
    return wrap(build, f"{name}-threads", [KERNELS / f"{name}.c"], [*flags, "-fopenmp"],
                MPERF_CLANG="clang-19")


def test_threads_of_openmp_are_counted_for_the_function_they_work_for(build):
    for name in ("openmp", "shiloach_vishkin"):
        program = with_openmp(build, name)
        for n_threads in (1, 2, 4):
            wrong = failures(told_totals(program, [n_threads]), KERNELS / f"{name}.c")
            assert not wrong, (n_threads, wrong)


def test_loops_of_openmp_reach_to_their_last_line(build):
    """Their own debug location is their pragma's alone, and samples are found by lines."""
    source = (KERNELS / "openmp.c").read_text().splitlines()
    pragmas = [n for n, line in enumerate(source, 1) if line.startswith("#pragma omp")]
    for flags in ("-O2",), ("-O2", "-g"), ("-O3", "-g"):
        program = with_openmp(build, "openmp", flags)
        output = program.with_suffix(".mperf")
        run([program, 2], env={"MPERF_OUTPUT": str(output)})
        told = feed.Program(feed.read_file(output))
        scopes = [s for key in told.pieces for s in told.table(key).scopes]
        for line in pragmas:
            last = max((s["line_last"] for s in scopes if s["kind"] == 1 and s["line"] == line), default=None)
            assert last == line + 2, (flags, line, last, scopes)


def test_unequal_threads_of_openmp_are_told_apart(build):
    """Shortcutting with four threads, three times: the bytes of each are those that its nodes' depths
    come to, and the 4 by which a thread knows its number."""
    program = with_openmp(build, "shiloach_vishkin")
    output = program.with_suffix(".mperf")
    said = run([program, 4, 65536, 3], env={"MPERF_OUTPUT": str(output)}).stdout
    wanted = sorted((int(a) + 3 * 4, int(b)) for a, b in re.findall(r": (\d+) bytes loaded, (\d+) stored", said))
    told = feed.Program(feed.read_file(output))
    found = []
    for thread in told.threads:
        totals = sums_of(told, lambda counter, number: told.sum(counter, thread, number))
        found.append(tuple(of_function(totals, "shortcut", f"outside_bytes_{what}")
                           for what in ("loaded", "stored")))
    assert sorted(found) == wanted and len(set(wanted)) == 4, (found, wanted)


def test_nothing_is_counted_twice_with_lto(build):
    pair = [KERNELS / "lto_main.c", KERNELS / "lto_other.c"]
    for version in plugins(build):
        if not shutil.which(f"ld.lld-{version}"):
            raise Skip(f"there is no ld.lld-{version}")
        for how in ("-flto=thin", "-flto=full", "-fno-lto"):
            program = wrap(build, f"lto-{version}{how}", pair, ["-O2", how],
                           MPERF_CLANG=f"clang-{version}")
            totals = told_totals(program)
            assert sum(v for k, v in totals.items() if k[-1] == "fp64_ops") == 30000, (
                version, how, totals)


RISCV = ("--target=riscv64-linux-gnu", "-O3", "-static", "-fuse-ld=lld-19")


def need_riscv(build):
    """Flags for a static program of riscv64: with Debian's cross C library, or the boards'."""
    if not shutil.which("qemu-riscv64") or 19 not in plugins(build):
        raise Skip("no qemu-riscv64 or no LLVM 19")
    if Path("/usr/riscv64-linux-gnu/lib/libc.a").exists():
        return RISCV
    found = [p for p in (build / "boards" / "riscv64", build.parent / "boards" / "riscv64")
             if (p / "usr" / "include" / "stdio.h").exists()]
    if not found:
        raise Skip("no libraries of riscv64; gcc-riscv64-linux-gnu or make CROSS=riscv64 bring them")
    return (*RISCV, f"--sysroot={found[0]}")


def test_scalable_vectors_are_exact_at_every_length(build):
    """RVV under qemu: one program, three lengths of a vector."""
    flags = (*need_riscv(build), "-march=rv64gcv")
    for name in ("vectors.c", "loops.c", "masks.c"):
        programs = {mode: compile_kernel(build, 19, KERNELS / name, flags, mode, WHOLE)
                    for mode in ("block", "tree")}
        for bits in (128, 256, 512):
            runner = ("qemu-riscv64", "-cpu", f"rv64,v=true,vlen={bits},vext_spec=v1.0")
            expected = count(programs["block"], runner, bits // 64)[0]
            got = count(programs["tree"], runner, bits // 64)[0]
            assert comparable(got) == comparable(expected), (name, bits)
            assert not failures(got, KERNELS / name), (bits, failures(got, KERNELS / name))


def test_the_stack_can_be_walked_from_each_call_on_risc_v(build):
    """Each walk arrives in main or where a thread began. Not of frames with scalable vectors: their size is an
    expression of vlenb, at which libgcc's unwinder aborts."""
    flags = (*need_riscv(build), "-march=rv64gc", "-fasynchronous-unwind-tables")
    program = compile_kernel(build, 19, KERNELS / "unwinds.c", flags, "tree", WHOLE)
    got = count(program, ("qemu-riscv64",))[0]
    assert not failures(got, KERNELS / "unwinds.c"), failures(got, KERNELS / "unwinds.c")


def test_half_precision_is_counted_as_such(build):
    """RISC-V with Zfh under qemu; an x86 with AVX512-FP16 natively."""
    riscv = (*need_riscv(build), "-march=rv64gc_zfh")
    native = ("-O3", "-mavx512fp16")
    for flags, runner in ((riscv, ("qemu-riscv64", "-cpu", "rv64,Zfh=true")),
                          *([(native, ())] if runnable(("-mavx512_fp16",)) else [])):
        totals = [count(compile_kernel(build, 19, KERNELS / "half.c", flags, mode, WHOLE), runner)[0]
                  for mode in ("block", "tree")]
        assert comparable(totals[0]) == comparable(totals[1]), flags
        assert not failures(totals[1], KERNELS / "half.c"), failures(totals[1], KERNELS / "half.c")
