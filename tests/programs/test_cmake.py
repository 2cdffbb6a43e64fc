# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""jsoncpp by CMake: its compiler id, C++ with exceptions, a shared library, ctest."""
import functools
import re

from whole import (COUNTED, PLAIN, compilers, copies, functions, processor_seconds, rows_of_run, run,
                   run_ratio, tell, size_ratios)


@functools.cache
def built(build):
    folders, seconds = copies(build, "libjsoncpp"), {}
    for flavour, folder in folders.items():
        cc, cxx = compilers(build, flavour)
        said = run("cmake", "-S", folder, "-B", folder / "out", f"-DCMAKE_C_COMPILER={cc}",
                   f"-DCMAKE_CXX_COMPILER={cxx}", "-DCMAKE_BUILD_TYPE=Release",
                   "-DBUILD_OBJECT_LIBS=OFF", "-DJSONCPP_WITH_POST_BUILD_UNITTEST=OFF",
                   "-DJSONCPP_WITH_EXAMPLE=OFF")
        assert "The CXX compiler identification is Clang" in said, said
        seconds[flavour], _ = processor_seconds("cmake", "--build", folder / "out", "-j2")
    return folders, seconds


def test_its_own_tests_pass(build):
    folders, _ = built(build)
    passed = {}
    for flavour, folder in folders.items():
        said = run("ctest", "--output-on-failure", cwd=folder / "out")
        assert re.search(r"100% tests passed, 0 tests failed out of \d+", said), said
        inner = run(next((folder / "out").rglob("jsoncpp_test")))
        passed[flavour], = map(int, re.findall(r"All (\d+) tests passed", inner))
    assert passed[PLAIN] == passed[COUNTED] > 50, passed
    tell("libjsoncpp", **{f"tests passed, {k}": v for k, v in passed.items()})


def document(folder):
    path = folder / "document.json"
    rows = ",\n".join(f'{{"number": {i}, "share": {i / 7}, "name": "the {i}th", "list": [1, 2, {i}]}}'
                      for i in range(4000))
    path.write_text(f"[{rows}]")
    return path


def runner(folder):
    """It reads a document, writes it in two ways, and compares."""
    return next((folder / "out").rglob("jsontestrunner_exe"))


def test_both_builds_compute_the_same_and_what_it_costs(build):
    folders, seconds = built(build)
    written = {}
    for flavour, folder in folders.items():
        run(runner(folder), document(folder))
        written[flavour] = [(folder / f"document.{kind}").read_text() for kind in ("actual", "rewrite")]
    assert written[PLAIN] == written[COUNTED] and written[PLAIN][0]
    libraries = {k: next((f / "out").rglob("libjsoncpp.so")) for k, f in folders.items()}
    tell("libjsoncpp", compile=seconds[COUNTED] / seconds[PLAIN],
         **size_ratios(build, libraries),
         run=run_ratio({k: (runner(f), f / "document.json") for k, f in folders.items()}))


def test_rows_come_out(build):
    folders, _ = built(build)
    folder = folders[COUNTED]
    _, by_function = rows_of_run(build, folder / "run.mperf", runner(folder), document(folder))
    readers = [row for row in by_function if "Reader" in row["function"] and "readValue" in row["function"]]
    assert readers and max(row["entries"] for row in readers) >= 4000 * 8, functions(by_function)
    tell("libjsoncpp", functions=len(by_function))
