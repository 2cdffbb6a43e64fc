# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lua 5.4 as Debian builds it: make, and libtool for C and for C++. Its test suite stands in a
repository of its authors alone, which is fetched by the id of its commit."""
import functools
import re

from machine import ROOT
from whole import (COUNTED, PLAIN, compilers, copies, functions, processor_seconds, repository,
                   rows_of_run, run, run_ratio, tell, size_ratios)

# Of tag v5.4.4, which is what Debian 12 has; later releases of 5.4 pass it too.
SUITE_TAG, SUITE_COMMIT = "v5.4.4", "5d708c3f9cae12820e415d4f89c9eacbe2ab964b"
REPOSITORY = "https://github.com/lua/lua"
WORK = ROOT / "tests" / "programs" / "work.lua"


def make(build, folder, flavour):
    """As Debian's rules do it."""
    cc, cxx = compilers(build, flavour)
    tool = folder / "debian" / "libtool"
    tool.mkdir()
    run("cp", folder / "debian" / "configure.ac", tool)
    run("autoreconf", "-f", "-i", cwd=tool, LIBTOOLIZE="libtoolize -i")
    run("./configure", f"CC={cc}", f"CXX={cxx}", cwd=tool)
    (folder / "src" / "lua5.4-deb-multiarch.h").write_text('#define DEB_HOST_MULTIARCH "here"\n')
    # Not -j: two of its rules make the same libraries.
    return processor_seconds("make", "linux", f"LIBTOOL={tool}/libtool", f"CC={cc} -std=gnu99",
                             f"CXX={cxx}", cwd=folder)[0]


@functools.cache
def built(build):
    folders = copies(build, "lua5.4")
    seconds = {flavour: make(build, folder, flavour) for flavour, folder in folders.items()}
    return folders, seconds


def program(folder):
    """The interpreter, into which libtool links the objects of the library."""
    return folder / "src" / "lua5.4"


def suite(build):
    """The folder of the tests; Skip where the repository is not to be reached."""
    return repository(build, "lua-suite", REPOSITORY, SUITE_TAG, SUITE_COMMIT) / "testes"


def test_its_own_tests_pass(build):
    folders, _ = built(build)
    tests, passed = suite(build), {}
    for flavour, folder in folders.items():
        run("cp", "-rT", tests, folder / "testes")
        said = run(program(folder), "-e_U=true", "all.lua", cwd=folder / "testes")
        assert "final OK !!!" in said, said[-2000:]
        passed[flavour] = sorted(re.findall(r"^\*+ FILE '(\S+)'", said, re.M))
    assert passed[PLAIN] == passed[COUNTED] and len(passed[PLAIN]) >= 25, passed
    tell("lua5.4", **{f"files of its tests passed, {k}": len(v) for k, v in passed.items()})


def test_both_builds_compute_the_same_and_what_it_costs(build):
    folders, seconds = built(build)
    said = {k: run(program(f), WORK, 2) for k, f in folders.items()}
    assert said[PLAIN] == said[COUNTED] and said[PLAIN].count("\n") == 2, said
    library = {k: f / "src" / ".libs" / "liblua5.4.so.0.0.0" for k, f in folders.items()}
    tell("lua5.4", compile=seconds[COUNTED] / seconds[PLAIN],
         **size_ratios(build, library),
         run=run_ratio({k: (program(f), WORK, 30) for k, f in folders.items()}))


def test_rows_come_out(build):
    folders, _ = built(build)
    output = folders[COUNTED] / "work.mperf"
    loops, by_function = rows_of_run(build, output, program(folders[COUNTED]), WORK, 3)
    assert {"luaV_execute", "luaH_getint", "luaS_hash"} <= functions(by_function), functions(by_function)
    assert loops and all(row["source"] for row in loops[:5]), loops[:5]
    execute, = (row for row in by_function if row["function"] == "luaV_execute")
    # areas(): five of them for each of a million rounds is what the interpreter does itself.
    assert execute["fp64_ops"] >= 3 * 100000 * 5, execute
    tell("lua5.4", loops=len(loops), functions=len(by_function), flops=execute["fp64_ops"])
