# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions marked by pragmas: what they become, and which ones are wrong, by file and line."""
import collections
import json
import os
import re
import subprocess

from kernels import run, versions
from machine import Folder, Skip

PROGRAM = """#include <stdio.h>
#define REGION(verb) _Pragma(verb)
static double a[1000];
double work(int n)
{
	double sum = 0;
#pragma mperf begin solve
	for (int i = 0; i < n; i++) {
#pragma mperf begin "inner part"
		sum += a[i % 1000] * 2;
#pragma mperf end "inner part"
		if (i == 50) {
#pragma mperf end solve
			return sum;
		}
	}
#pragma mperf end solve
#pragma begin_inst
	sum *= 2;
#pragma end_inst
	REGION("mperf begin by_macro")
	sum *= 3;
	REGION("mperf end by_macro")
	return sum;
}
int main(void)
{
	for (int i = 1; i <= 100; i++)
		work(i);
	return 0;
}
"""
# Calls of work with 1 to 100: half of them leave at i == 50.
ENTRIES = {"solve": 100, "inner part": sum(min(i, 51) for i in range(1, 101)), "inst": 50, "by_macro": 50}
CXX = """
#include <cstdlib>
template <typename T> T twice(T value)
{
#pragma mperf begin templates
	value *= 2;
#pragma mperf end templates
	return value;
}
struct Solver {
	double value;
	Solver(double from) try : value(from) {
#pragma mperf begin constructors
		if (from > 10)
			throw 1;
#pragma mperf end constructors
	} catch (...) {
#pragma mperf begin handlers
		abort();
#pragma mperf end handlers
	}
	double method()
	{
#pragma mperf begin methods
		value = twice(value);
#pragma mperf end methods
		return value;
	}
};
int main()
{
	Solver solver(1);
	auto lambda = [&] {
#pragma mperf begin lambdas
		solver.method();
#pragma mperf end lambdas
	};
#pragma mperf begin outside
	for (int i = 0; i < 10; i++) {
		lambda();
		if (solver.value < 0) {
#pragma mperf end outside
			exit(1);
		}
	}
#pragma mperf end outside
	return twice(3) == 6 ? 0 : 1;
}
"""
WRONG_CXX = """static auto by_name = [](int n) {
#pragma mperf begin a
	return n;
};
int call(int n, int (*f)(int) = [](int n) {
#pragma mperf end b
	return n;
})
{
	auto inside = [](int n) {
#pragma mperf begin c
		return n;
	};
	return f(n) + by_name(n) + inside(n);
}
"""
WRONG = {
    # line by line, what is said of it; lines that are not there are right
    "outside a function": ("""#pragma mperf begin top
int x;
#pragma mperf end top
""", {1: "a part of a function", 3: "a part of a function"}),
    "unbalanced": ("""void f(int n)
{
#pragma mperf begin a
	if (n)
#pragma mperf begin b
	n++;
#pragma mperf begin c
#pragma mperf begin d
#pragma mperf end c
#pragma mperf end d
	if (n > 3) {
#pragma mperf end a
		n--;
	}
}
void g(int n)
{
#pragma begin_inst
	n++;
}
void h(int n)
{
#pragma mperf end never
	for (int i = 0; i < n; i++) {
#pragma mperf begin once
	}
}
""", {3: "'a' begins here and does not end", 5: "put it into { }", 9: "'d' is still open inside it", 10: "'c' is still open inside it",
      12: "'a' began outside this block", 18: "'inst' begins here and does not end",
      23: "no region 'never' is open", 25: "'once' begins here and does not end"}),
    "malformed": ("""void f(void)
{
#pragma mperf
#pragma mperf beginn x
#pragma mperf begin
#pragma mperf begin a b
#pragma mperf begin "a%b"
#pragma mperf begin 17
#pragma end_inst a b
#pragma mperf begin ""
}
""", {3: "takes 'begin' or 'end'", 4: "takes 'begin' or 'end'", 5: "take a region's name",
      6: "put a name of several words into quotes", 7: "has 1 to 255 letters", 8: "a word or a string",
      9: "put a name of several words into quotes", 10: "has 1 to 255 letters"}),
}


def each(build):
    """The versions whose plugin for pragmas was built."""
    found = [v for v in versions(build) if (build / f"llvm-{v}" / "mperf-pragmas.so").exists()]
    if not found:
        raise Skip("no plugin for pragmas was built: clang's headers (libclang-19-dev) are not here")
    return found


def cc(build, version, *arguments, status=0, name="mperf-cc", **variables):
    done = subprocess.run([build / name, *map(str, arguments)], text=True, capture_output=True, timeout=120,
                          env={"PATH": os.environ["PATH"], "MPERF_CLANG": f"clang-{version}", **variables})
    assert done.returncode == status, (arguments, done)
    return done.stdout + done.stderr


def entries(build, folder, program):
    """{name: entries} of the regions that a program entered."""
    output = folder / "output"
    run([program], env=dict(os.environ, MPERF_OUTPUT=str(output)))
    said = json.loads(run([build / "mperfctl", "roofline", "--by", "region", "--json", "-i", output]).stdout)
    output.unlink()
    found = collections.Counter()
    for row in said["rows"]:  # a region inside two others has two rows
        found[row["region"]] += row["entries"]
    return {name: n for name, n in found.items() if n}, said["rows"]


def test_pragmas_are_regions(build):
    with Folder() as folder:
        source, program = folder / "program.c", folder / "program"
        source.write_text(PROGRAM)
        for version in each(build):
            for flags in (), ("-O0",), ("-O3", "-g"), ("-O2", "-flto", f"-fuse-ld=lld-{version}"):
                said = cc(build, version, "-Wall", "-Werror", *flags, source, "-o", program)
                assert not said, said
                found, rows = entries(build, folder, program)
                assert found == ENTRIES, (version, flags, found)
                lines = {row["region"]: row["source"].rpartition(":")[2] for row in rows if row["source"]}
                assert lines["solve"] == "7" and lines["inst"] == "18", lines


def test_pragmas_are_regions_of_cxx(build):
    with Folder() as folder:
        source, program = folder / "program.cc", folder / "program"
        source.write_text(CXX)
        for version in each(build):
            said = cc(build, version, "-O2", "-Wall", "-Werror", source, "-o", program, name="mperf-c++")
            assert not said, said
            found, _ = entries(build, folder, program)
            assert found == {"outside": 1, "constructors": 1, "lambdas": 10, "methods": 10, "templates": 11}, found


def test_what_is_preprocessed_first_has_the_same_regions(build):
    with Folder() as folder:
        source, program = folder / "program.c", folder / "program"
        source.write_text(PROGRAM)
        for version in each(build):
            cc(build, version, "-E", source, "-o", folder / "program.i")
            cc(build, version, "-O2", folder / "program.i", "-o", program)
            assert entries(build, folder, program)[0] == ENTRIES, version


def errors(build, version, name, source):
    """[(line, message)]"""
    said = cc(build, version, "-c", source, "-o", source.with_suffix(".o"), status=1, name=name)
    return [(int(line), words) for line, words in
            re.findall(rf"{re.escape(source.name)}:(\d+):\d+: error: (.*)", said)]


def test_wrong_pragmas_are_errors_with_their_line(build):
    with Folder() as folder:
        source = folder / "wrong.c"
        for version in each(build):
            for name in "mperf-cc", "mperf-c++":
                for what, (text, expected) in WRONG.items():
                    source.write_text(text)
                    found = dict(errors(build, version, name, source))
                    assert found.keys() == expected.keys(), (version, what, found)
                    for line, words in expected.items():
                        assert words in found[line], (version, what, line, found)


def test_a_lambda_is_checked_wherever_it_stands(build):
    with Folder() as folder:
        source = folder / "wrong.cc"
        source.write_text(WRONG_CXX)
        for version in each(build):
            found = errors(build, version, "mperf-c++", source)
            assert [line for line, _ in found] == [2, 6, 11], (version, found)


def test_other_compilers_warn_at_most(build):
    with Folder() as folder:
        source = folder / "program.c"
        source.write_text(PROGRAM)
        version = each(build)[0]
        said = cc(build, version, "-Wall", "-c", source, "-o", folder / "program.o", MPERF_PASS="off")
        assert "error" not in said and said.count("[-Wunknown-pragmas]") == 9, said
        done = run(["cc", "-Wall", "-c", source, "-o", folder / "program.o"])
        assert "error" not in done.stderr, done.stderr
