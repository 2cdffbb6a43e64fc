# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shares that are known, by construction or by another profiler, are found within sampling error."""
import math
import re
import subprocess
from pathlib import Path

from machine import Folder, Skip, compile_program, leave_to_plain, mperfctl, need_program, need_root, rows, workload
from rates import allowing, rate_allowed

SECONDS = 40
SANITIZED = ("test_shares_known_by_construction_are_found",
             "test_callers_without_frame_pointers_are_found_by_call_frame_information")
FIGURES = "its figures are looked at, and test_service records the same with sanitizers"

# How far a share may be off: four standard errors of a binomial share, which one run in 16,000
# exceeds by chance.
SIGMAS = 4


def standard_error(share, samples):
    return math.sqrt(share * (1 - share) / samples)


def shares_of(answer):
    """Self share by function name, over all modules."""
    found = {}
    for row in answer["rows"]:
        found[row["function"]] = found.get(row["function"], 0) + row["self"]
    return found


def symbol_texts(path):
    """What readelf says of the symbols of a file and of its separate debug file."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    found = re.search(r"Build ID: (\w\w)(\w+)", notes)
    debug = Path(f"/usr/lib/debug/.build-id/{found[1]}/{found[2]}.debug") if found else None
    for name in (path, debug):
        if name and Path(name).exists():
            yield subprocess.run(["readelf", "-W", "--syms", name],
                                 capture_output=True, text=True).stdout


def one_name_each(modules):
    """One address may bear many names (memcpy and memmove are one function): {name: first of them}."""
    first = {}
    for path in modules:
        by_address = {}
        for text in symbol_texts(path):
            for address, name in re.findall(r"^ +\d+: (\w+) +\w+ (?:FUNC|IFUNC|NOTYPE) .* (\S+)$",
                                            text, re.M):
                by_address.setdefault(address, set()).add(re.sub("@.*", "", name))
        for names in by_address.values():
            first.update({name: min(names) for name in names})
    return first


def folded(shares, first):
    found = {}
    for name, share in shares.items():
        found[first.get(name, name)] = found.get(first.get(name, name), 0) + share
    return found


def shares_program(build):
    library = compile_program(build, "shares_library.c", "-shared", "-fPIC")
    return compile_program(build, "shares.c", str(library), f"-Wl,-rpath,{library.parent}")


@allowing()
def test_shares_known_by_construction_are_found(build):
    leave_to_plain(build, FIGURES)
    program = shares_program(build)
    with Folder() as folder:
        done = mperfctl(build, "record", "-F", "4999", "-e", "cpu-clock", "-o", folder / "r.mprf", "--",
                        program, "1500")
        spent = {name: int(ns) for name, ns in re.findall(r"^(\w+) (\d+)$", done.stdout, re.M)}
        answer = rows(build, "hotspots", "-i", folder / "r.mprf", "--limit", "0")
    assert set(spent) == {"half", "recursive", "library_spin", "twentieth"}, done.stdout
    samples = answer["provenance"]["samples"]
    found = shares_of(answer)
    total = sum(spent.values())
    assert samples >= 0.9 * 4999 * total / 1e9, f"only {samples} samples of {total / 1e9:.3f} s"
    for name, ns in spent.items():
        truth = ns / total
        allowed = SIGMAS * standard_error(truth, samples) + 0.002  # main and clock_gettime around it
        assert abs(found.get(name, 0) - truth) <= allowed, \
            f"{name}: {found.get(name, 0):.4f}, truth {truth:.4f} ± {allowed:.4f}"


def test_total_counts_a_recursive_function_once(build):
    leave_to_plain(build, FIGURES)
    program = shares_program(build)
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(1999), "-e", "cpu-clock", "-o", folder / "r.mprf",
                 "--", program, "400")
        answer = rows(build, "hotspots", "-i", folder / "r.mprf", "--limit", "0")
    recursive = [r for r in answer["rows"] if r["function"] == "recursive"]
    work = [r for r in answer["rows"] if r["function"] == "work"]
    # Interrupts that the kernel serves meanwhile are in the total; each level of the recursion would
    # add as much again.
    assert recursive and 0 <= recursive[0]["total"] - recursive[0]["self"] < 0.03, recursive
    assert work and work[0]["total"] > 0.9 > 0.05 > work[0]["self"], work


def test_both_threads_and_harts_have_their_share(build):
    leave_to_plain(build, FIGURES)
    program = shares_program(build)
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(999), "-o", folder / "r.mprf", "--", program,
                 "400")
        threads = rows(build, "hotspots", "-i", folder / "r.mprf", "--by", "thread")["rows"]
        harts = rows(build, "hotspots", "-i", folder / "r.mprf", "--by", "hart")["rows"]
    assert len(threads) == 2 and all(0.3 < t["self"] < 0.7 for t in threads), threads
    assert abs(sum(h["self"] for h in harts) - 1) < 1e-6, harts


def test_speedtest1_agrees_with_perf_recording_at_the_same_time(build):
    if build.name == "asan":
        raise Skip("shown by the plain run; test_service records it with sanitizers")
    need_root()
    need_program("perf")
    program = workload(build, "speedtest1")
    with Folder() as folder:
        # perf follows mperfctl and all that it starts, so that both see one run of the program.
        hz = rate_allowed(999)
        subprocess.run(["perf", "record", "-q", "-B", "-N", "-e", "cpu-clock", "-F", str(hz - 2), "-o",
                        folder / "perf.data", "--", build / "mperfctl", "record", "-g", "none", "-F", str(hz), "-e",
                        "cpu-clock", "-o", folder / "r.mprf", "--", program, "--memdb", "--size", "200"],
                       check=True, capture_output=True, timeout=240)
        done = subprocess.run(["perf", "report", "-i", folder / "perf.data", "--stdio",
                               "--no-children", "-g", "none", "--comm", "speedtest1", "--sort",
                               "symbol", "-F", "overhead,symbol", "--percentage", "relative"],
                              check=True, capture_output=True, text=True)
        answer = rows(build, "hotspots", "-i", folder / "r.mprf", "--limit", "0")
    pairs = re.findall(r"^\s+([\d.]+)%\s+\[[.k]\]\s+(\S+)", done.stdout, re.M)
    first = one_name_each({row["module"] for row in answer["rows"] if "/" in row["module"]})
    assert len(first) > 1000, "readelf told no symbols"
    theirs = folded({name: float(share) / 100 for share, name in pairs}, first)
    ours = folded(shares_of(answer), first)
    samples = answer["provenance"]["samples"]
    top = sorted(theirs, key=theirs.get, reverse=True)[:10]
    assert len(top) == 10, done.stdout
    for name in top:
        allowed = max(0.03, SIGMAS * math.sqrt(2) * standard_error(theirs[name], samples))
        assert abs(ours.get(name, 0) - theirs[name]) <= allowed, \
            f"{name}: mperf {ours.get(name, 0):.4f}, perf {theirs[name]:.4f}, allowed {allowed:.4f}"


DEPTH = 20  # calls of descend() in depth.c


def test_callers_without_frame_pointers_are_found_by_call_frame_information(build):
    program = compile_program(build, "depth.c", "-fomit-frame-pointer")
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(499), "-g", "dwarf", "-o", folder / "r.mprf", "--",
                 "timeout", "3", program, DEPTH, check=False)
        folded = mperfctl(build, "flamegraph", "-i", folder / "r.mprf", "--folded").stdout
    stacks = [(line.rpartition(" ")[0].split(";"), int(line.rpartition(" ")[2]))
              for line in folded.splitlines()]
    spinning = [(stack, n) for stack, n in stacks if "spin" in stack]
    whole = sum(n for _, n in spinning)
    right = sum(n for stack, n in spinning if stack.count("descend") == DEPTH and "main" in stack)
    assert whole and right / whole > 0.95, f"{right} of {whole} at depth {DEPTH}\n{folded[:2000]}"


def test_a_stack_that_is_copied_in_part_is_counted_as_truncated(build):
    program = compile_program(build, "depth.c", "-fomit-frame-pointer")
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(499), "-g", "dwarf", "-o", folder / "r.mprf", "--",
                 "timeout", "2", program, 400, check=False)
        answer = rows(build, "hotspots", "-i", folder / "r.mprf")
    losses = answer["provenance"]["lost"]
    assert losses.get("truncated stack", 0) > 0.9 * answer["provenance"]["samples"], losses


def test_a_stack_that_does_not_reach_the_start_of_the_program_is_counted_as_cut(build):
    """Without frame pointers most stacks end at once, and well: no address is wrong. With them, they end in main."""
    for flag, least, most in ("-fomit-frame-pointer", 0.9, 1), ("-fno-omit-frame-pointer", 0, 0.1):
        program = compile_program(build, "depth.c", flag)
        with Folder() as folder:
            done = mperfctl(build, "record", "-F", rate_allowed(499), "-g", "fp", "-o", folder / "r.mprf", "--",
                            "timeout", "1", program, DEPTH, check=False)
            answer = rows(build, "hotspots", "-i", folder / "r.mprf", "--comm",
                          program.name[:15])["provenance"]
            mperfctl(build, "flamegraph", "-i", folder / "r.mprf", "-o", folder / "r.html")
            page = (folder / "r.html").read_text()
        cut = answer["lost"].get("truncated stack", 0)
        assert least * answer["samples"] <= cut <= most * answer["samples"], (flag, answer)
        said = re.search(r"the stacks of ([\d.]+) % of the samples are cut", " ".join(answer["notes"]))
        assert (said and float(said[1]) or 0) <= 100 * cut / answer["samples"] + 0.06, (flag, answer)
        for text in done.stderr, page:
            assert "are cut: callers are missing" in text or least == 0, (flag, text[-4000:])


def shares_of_names(answer):
    shares = {}
    for row in answer["rows"]:
        shares[row["comm"]] = shares.get(row["comm"], 0) + row["self"]
    return shares


def test_samples_belong_to_the_name_that_their_thread_had(build):
    program = compile_program(build, "renamed.c")
    with Folder() as folder:
        mperfctl(build, "record", "-F", rate_allowed(499), "-g", "none", "-o", folder / "r.mprf", "--", program)
        answer = rows(build, "hotspots", "-i", folder / "r.mprf", "--by", "thread")
        processes = rows(build, "hotspots", "-i", folder / "r.mprf", "--by", "process")
        first = rows(build, "hotspots", "-i", folder / "r.mprf", "--comm", "first")["provenance"]["samples"]
    shares = shares_of_names(answer)
    # A seventh each, by CPU time; the program's start is little.
    n = answer["provenance"]["samples"]
    for name in "first", "second", "worker-1", "worker-2", "third", "fourth", "fifth":
        assert abs(shares.get(name, 0) - 1 / 7) < 0.04 + SIGMAS * standard_error(1 / 7, n), (name, answer)
    # The thread ran while its process was the second.
    by_process = shares_of_names(processes)
    for name in "first", "second", "third", "fourth", "fifth":
        share = 3 / 7 if name == "second" else 1 / 7
        assert abs(by_process.get(name, 0) - share) < 0.04 + SIGMAS * standard_error(share, n), (name, processes)
    assert abs(first / n - shares["first"]) < 0.01, (first, answer)
