# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole programs, as tests/programs builds them of Debian's sources: what counting costs SQLite's
speedtest1 and Lua, to run and to compile."""
import statistics
import subprocess
import sys

import test_lua
import test_sqlite
from clocks import user_seconds
from instructions import by_cachegrind
from whole import COUNTED, PLAIN, size_ratios

FEW, MANY = 3, 20        # sizes of speedtest1 and rounds of work.lua: below cachegrind, and timed
TIMED_SPEEDTEST = 60


def sqlite(build):
    folders, seconds = test_sqlite.built(build)
    objects = {k: next(f.glob(".libs/sqlite3.o")) for k, f in folders.items()}
    commands = {k: [test_sqlite.binary(f, "speedtest1"), "--memdb", "--size"] for k, f in folders.items()}
    return commands, seconds, size_ratios(build, objects, runtime=False), (FEW, TIMED_SPEEDTEST)


def lua(build):
    folders, seconds = test_lua.built(build)
    library = {k: f / "src" / ".libs" / "liblua5.4.so.0.0.0" for k, f in folders.items()}
    commands = {k: [without_lines(test_lua.program(f)), test_lua.WORK] for k, f in folders.items()}
    return commands, seconds, size_ratios(build, library), (1, MANY)


def without_lines(program):
    """A copy that valgrind can load: that of Debian 12 cannot read the debug information of clang 19."""
    copy = program.with_name(program.name + "-stripped")
    subprocess.run(["strip", "--strip-debug", "-o", copy, program], check=True)
    return copy


def row_of(shop, name, made, n_rounds):
    commands, seconds, sizes, (few, many) = made

    def of(flavour, measure, size):
        program, *arguments = commands[flavour]
        return measure(program, [*arguments, size], shop.streaming)
    times = []
    for n in range(n_rounds):
        order = (PLAIN, COUNTED) if n % 2 else (COUNTED, PLAIN)
        both = {flavour: of(flavour, user_seconds, many) for flavour in order}
        times.append(both[COUNTED] / both[PLAIN])
    took = {flavour: of(flavour, by_cachegrind, few) for flavour in (PLAIN, COUNTED)}
    row = {"program": name, "instructions": took[COUNTED] / took[PLAIN],
           "time": statistics.median(times), "times": times,
           "compile time": seconds[COUNTED] / seconds[PLAIN],
           "code": sizes["code"], "code and tables": sizes["code and tables"]}
    print(f"{name}: instructions {row['instructions']:.3f}, time {row['time']:.3f}", file=sys.stderr,
          flush=True)
    return row


def measure(shop, n_rounds):
    return [row_of(shop, name, make(shop.build), n_rounds)
            for name, make in (("SQLite, speedtest1", sqlite), ("Lua, work.lua", lua))]
