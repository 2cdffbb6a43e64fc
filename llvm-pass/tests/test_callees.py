# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What loops call that is not counted, by name, and what copies move: in all modes, through the real
runtime, and as mperfctl shows it."""
import json
import shutil
from pathlib import Path

from kernels import KERNELS, failures, mperf_cc, plugin, run, told_totals, versions
from machine import Skip

SECONDS = 30

SOURCES = [KERNELS / "callees.c", KERNELS / "callees_other.c"]
STRANGER = KERNELS / "callees_stranger.c"
COUNTED_WHOLE = "functions=1"


def build_program(build, version, name, flags=("-O2", "-g"), words=""):
    """The counted files by mperf-cc, the stranger by clang alone."""
    work = build / "tests" / "work" / "pass"
    work.mkdir(parents=True, exist_ok=True)
    program, stranger = work / f"callees-{version}-{name}", work / f"callees-{version}-{name}.o"
    run([f"clang-{version}", "-O2", "-c", STRANGER, "-o", stranger])
    done = mperf_cc(build, *flags, *SOURCES, stranger, "-o", program, MPERF_PASS=words,
                    MPERF_CLANG=f"clang-{version}")
    assert done.returncode == 0 and not done.stderr, done.stderr
    return program


def callees(totals, metric="entries"):
    found = {}
    for key, value in totals.items():
        if key[0] == "callee" and key[-1] == metric and value:
            found[key[1]] = found.get(key[1], 0) + value
    return found


def found_versions(build):
    found = versions(build)
    if not found:
        raise Skip("no plugin was built: neither LLVM 16 nor 19 has its headers here")
    return found


def test_calls_and_bytes_are_the_same_in_all_modes(build):
    for version in found_versions(build):
        for mode in ("tree", "block", "sets", "clone"):
            program = build_program(build, version, mode, words=f"mode={mode} {COUNTED_WHOLE}")
            totals = told_totals(program)
            assert callees(totals) == {"rand": 1000, "of_stranger": 100, "of_counted": 1000,
                                       "memcpy": 100, "memset": 100}, (version, mode, totals)
            assert not failures(totals, SOURCES[0]), (version, mode, failures(totals, SOURCES[0]))


def test_blocks_have_the_callees_of_their_calls(build):
    version = found_versions(build)[-1]
    totals = told_totals(build_program(build, version, "blocks", words=f"blocks=1 {COUNTED_WHOLE}"))
    assert callees(totals)["rand"] == 1000 and callees(totals)["memset"] == 100, totals
    assert not failures(totals, SOURCES[0]), failures(totals, SOURCES[0])


def test_only_calls_of_loops_have_callees_by_default(build):
    """qsort is called outside of loops, whose blocks are not counted."""
    version = found_versions(build)[-1]
    totals = told_totals(build_program(build, version, "default"))
    assert "qsort" not in callees(totals) and callees(totals)["rand"] == 1000, totals


def test_with_lto_what_the_program_defines_is_no_callee(build):
    version = found_versions(build)[-1]
    if not shutil.which(f"ld.lld-{version}"):
        raise Skip(f"there is no ld.lld-{version}")
    totals = told_totals(build_program(build, version, "lto", ("-O2", "-g", "-flto=full")))
    found = callees(totals)
    assert "of_counted" not in found and found["rand"] == 1000 and found["of_stranger"] == 100, found


def shown(build, program, *options, arguments=()):
    output = program.with_suffix(".mperf")
    run([program, *arguments], env={"MPERF_OUTPUT": str(output)})
    said = run([build / "mperfctl", "roofline", "-i", output, "--json", *options])
    return json.loads(said.stdout)["rows"]


def test_mperfctl_names_what_no_module_counts(build):
    for version in found_versions(build):
        rows = shown(build, build_program(build, version, "shown"))
        unseen = {r["function"]: r["unseen"] for r in rows if r["kind"] == "loop"}
        assert unseen["sort_of"] == "1000 calls of rand, 100 calls of of_stranger", rows
        assert unseen["copies"] is None, rows


def test_mperfctl_shows_copies_below_their_loop_and_counts_their_bytes_once(build):
    for version in found_versions(build):
        rows = shown(build, build_program(build, version, "copied"))
        loop, = (r for r in rows if r["function"] == "copies")
        copy, = (r for r in rows if r["function"] == "memcpy")
        fill, = (r for r in rows if r["function"] == "memset")
        assert copy["kind"] == fill["kind"] == "copy", rows
        assert copy["depth"] == fill["depth"] == loop["depth"] + 1, rows
        assert (copy["entries"], copy["bytes_loaded"], copy["bytes_stored"]) == (100, 170000, 170000), copy
        assert (fill["entries"], fill["bytes_loaded"], fill["bytes_stored"]) == (100, 0, 409600), fill
        assert loop["bytes_self"] == 100 * (8 + 16), loop  # of the length, and the short copy
        assert loop["bytes_loaded"] + loop["bytes_stored"] == (
            loop["bytes_self"] + copy["bytes_self"] + fill["bytes_self"]), rows
        assert [r["function"] for r in rows].index("copies") < min(
            i for i, r in enumerate(rows) if r["kind"] == "copy"), rows


def test_what_threads_of_openmp_call_is_counted_and_named(build):
    """Each call once, however the iterations are dealt out, below the loop that the directive stands at."""
    if not list(Path("/usr/lib/llvm-19/lib").glob("libomp.so*")) or "19" not in map(str, versions(build)):
        raise Skip("libomp of LLVM 19 is not installed")
    program = build / "tests" / "work" / "pass" / "callees-openmp"
    program.parent.mkdir(parents=True, exist_ok=True)
    done = mperf_cc(build, "-O2", "-g", "-fopenmp", KERNELS / "callees_openmp.c", "-o", program,
                    MPERF_CLANG="clang-19", MPERF_PASS="")
    assert done.returncode == 0 and not done.stderr, done.stderr
    for n_threads in (1, 2, 4):
        totals = told_totals(program, [n_threads])
        assert callees(totals)["erand48"] == 200000, (n_threads, totals)
        rows = shown(build, program, arguments=[str(n_threads)])
        unseen = [r["unseen"] for r in rows if r["function"] == "drawn" and r["unseen"]]
        assert any("200000 calls of erand48" in u for u in unseen), (n_threads, rows)
