# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SQLite by its own configure and make: the amalgamation, speedtest1, and those of its tests that take
seconds: fuzzcheck on the cases that are kept with it, and some files for its Tcl fixture."""
import functools
import re
import shutil
from pathlib import Path

from machine import Skip
from whole import (COUNTED, PLAIN, compilers, copies, functions, processor_seconds, rows_of_run, run,
                   run_ratio, tell, size_ratios)

# What a query, an index, a transaction and a join are; each takes a second or two.
TCL_TESTS = ("select1 select2 insert update index join where trans expr func aggnested date "
             "in like limit orderby1 subquery trigger1 view window1 with1").split()
SIZE = ("--memdb", "--size", 15)


@functools.cache
def built(build, programs=("speedtest1", "fuzzcheck")):
    """The amalgamation compiled as make does it, with what it took; and programs, of which each
    compiles it once more."""
    folders, seconds = copies(build, "sqlite3"), {}
    for flavour, folder in folders.items():
        cc, _ = compilers(build, flavour)
        run("./configure", f"CC={cc}", "CFLAGS=-O2", "--disable-readline", cwd=folder)
        run("make", "sqlite3.c", "shell.c", cwd=folder)
        seconds[flavour], _ = processor_seconds("make", "sqlite3.lo", cwd=folder)
        run("make", "-j2", *programs, cwd=folder)
    return folders, seconds


def binary(folder, name):
    """The program itself, where libtool put a script in front of it."""
    inner = folder / ".libs" / name
    return inner if inner.exists() else folder / name


def test_fuzzcheck_finds_the_same_and_no_error(build):
    folders, _ = built(build)
    cases = {}
    for flavour, folder in folders.items():
        data = [folder / "test" / f"fuzzdata{i}.db" for i in (1, 2)]
        said = run(folder / "fuzzcheck", *data, cwd=folder)
        cases[flavour], = map(int, re.findall(r"fuzzcheck: 0 errors out of (\d+) tests", said))
    assert cases[PLAIN] == cases[COUNTED] > 10000, cases
    tell("sqlite3", **{f"cases of fuzzcheck, 0 errors, {k}": v for k, v in cases.items()})


def test_its_tcl_tests_pass(build):
    folders, _ = built(build)
    if not Path("/usr/include/tcl8.6/tcl.h").exists() or not shutil.which("tclsh"):
        raise Skip("its test fixture wants tcl-dev")
    ran = {}
    for flavour, folder in folders.items():
        run("make", "-j2", "testfixture", "OPTS=-O1", cwd=folder)
        totals = [0, 0]
        for name in TCL_TESTS:
            said = run(folder / "testfixture", folder / "test" / f"{name}.test", cwd=folder)
            errors, tests = map(int, re.search(r"^(\d+) errors out of (\d+) tests", said, re.M).groups())
            assert errors == 0, said[-2000:]
            totals = [totals[0] + errors, totals[1] + tests]
        ran[flavour] = totals[1]
    assert ran[PLAIN] == ran[COUNTED] > 1000, ran
    tell("sqlite3", **{f"Tcl tests, 0 errors, {k}": v for k, v in ran.items()})


def test_both_builds_compute_the_same_and_what_it_costs(build):
    folders, seconds = built(build)
    said = {k: run(binary(f, "speedtest1"), *SIZE, "--verify") for k, f in folders.items()}
    hashes = {k: re.findall(r"Verification Hash: (\d+ \w+)", text) for k, text in said.items()}
    assert hashes[PLAIN] == hashes[COUNTED] and len(hashes[PLAIN]) == 1, hashes
    objects = {k: next(f.glob(".libs/sqlite3.o")) for k, f in folders.items()}
    tell("sqlite3", compile=seconds[COUNTED] / seconds[PLAIN],
         **size_ratios(build, objects, runtime=False),
         run=run_ratio({k: (binary(f, "speedtest1"), *SIZE) for k, f in folders.items()}))


def test_rows_come_out(build):
    folders, _ = built(build)
    folder = folders[COUNTED]
    loops, by_function = rows_of_run(build, folder / "speedtest1.mperf", binary(folder, "speedtest1"),
                                     *SIZE)
    assert {"sqlite3VdbeExec", "sqlite3BtreeTableMoveto", "sqlite3VdbeRecordCompare"} & \
        functions(by_function), functions(by_function)
    execute, = (row for row in by_function if row["function"] == "sqlite3VdbeExec")
    assert execute["entries"] > 1000 and execute["bytes_loaded"] > 1_000_000, execute
    assert loops and loops[0]["source"], loops[:1]
    tell("sqlite3", loops=len(loops), functions=len(by_function))
