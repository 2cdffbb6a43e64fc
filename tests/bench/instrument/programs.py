# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole programs, as tests/programs builds them of Debian's sources: what counting costs SQLite's
speedtest1 and Lua, to run and to compile. Times are user time, the least of runs in turns."""
import subprocess
import sys

import test_lua
import test_sqlite
from clocks import user_seconds
from instructions import by_cachegrind
import whole
from whole import COUNTED, PLAIN, compilers, size_ratios

# Sizes of speedtest1 and rounds of work.lua: below cachegrind, of which the difference is taken, since
# telling the daemon of all tables takes some 34 million instructions of SQLite, once; and timed.
SPEEDTEST, TIMED_SPEEDTEST = (1, 3), 60
WORK, TIMED_WORK = (1, 2), 20
COMPILED_TIMES = 5
NO_WORK = 0  # a size: the program starts, reads what it is to do, and ends
# Rounds of the runtime come by the clock, and cachegrind makes a second of the program some fifty long.
SLOWED_PERIOD_MS = 50_000


def sqlite(build):
    folders, _ = test_sqlite.built(build, ("speedtest1",))
    objects = {k: next(f.glob(".libs/sqlite3.o")) for k, f in folders.items()}
    return {"run": {k: [test_sqlite.binary(f, "speedtest1"), "--memdb", "--size"]
                    for k, f in folders.items()},
            "compile": {k: compilation(build, k, [f / "sqlite3.c"]) for k, f in folders.items()},
            "sizes": size_ratios(build, objects, runtime=False), "counted": SPEEDTEST,
            "timed": TIMED_SPEEDTEST}


def lua(build):
    folders, _ = test_lua.built(build)
    library = {k: f / "src" / ".libs" / "liblua5.4.so.0.0.0" for k, f in folders.items()}
    return {"run": {k: [without_lines(test_lua.program(f)), test_lua.WORK] for k, f in folders.items()},
            "compile": {k: compilation(build, k, sorted((f / "src").glob("l*.c")))
                        for k, f in folders.items()},
            "sizes": size_ratios(build, library), "counted": WORK, "timed": TIMED_WORK}


def compilation(build, flavour, sources, flags=()):
    """One command that compiles them, each to nowhere."""
    cc, _ = compilers(build, flavour)
    each = 'flags=$1 cc=$2; shift 2; for f; do "$cc" -O2 -w $flags -c -o /dev/null "$f"; done'
    return ["sh", "-ec", each, "sh", " ".join(flags), cc, *sources]


def without_lines(program):
    """A copy that valgrind can load: that of Debian 12 cannot read the debug information of clang 19."""
    copy = program.with_name(program.name + "-stripped")
    subprocess.run(["strip", "--strip-debug", "-o", copy, program], check=True)
    return copy


def in_turns(commands, n_rounds, environment):
    """Counted over plain, of the least user time of each, and of each round."""
    took = {PLAIN: [], COUNTED: []}
    for n in range(n_rounds):
        for flavour in (PLAIN, COUNTED) if n % 2 else (COUNTED, PLAIN):
            program, *arguments = commands[flavour]
            took[flavour].append(user_seconds(program, arguments, environment))
    return (min(took[COUNTED]) / min(took[PLAIN]),
            [c / p for c, p in zip(took[COUNTED], took[PLAIN])])


def row_of(shop, name, made, n_rounds):
    def tell(what):
        print(f"{name}: {what} {row[what]:.3f}", file=sys.stderr, flush=True)
    row = {"program": name, **made["sizes"]}
    took, start = {}, {}
    slowed = dict(shop.streaming, MPERF_PERIOD=str(SLOWED_PERIOD_MS))
    for flavour, (program, *arguments) in made["run"].items():
        start[flavour], few, many = (by_cachegrind(program, [*arguments, size], slowed)
                                     for size in (NO_WORK, *made["counted"]))
        took[flavour] = many - few
    row["instructions"] = took[COUNTED] / took[PLAIN]
    row["start"] = (start[COUNTED] - start[PLAIN]) / 1e6
    program, *arguments = made["run"][COUNTED]
    alone = dict(slowed, MPERF_FEED="")
    few, many = (by_cachegrind(program, [*arguments, size], alone) for size in made["counted"])
    row["instructions, nobody listens"] = (many - few) / took[PLAIN]
    tell("instructions")
    tell("instructions, nobody listens")
    tell("start")
    timed = {k: [*command, made["timed"]] for k, command in made["run"].items()}
    row["time"], row["times"] = in_turns(timed, n_rounds, shop.streaming)
    tell("time")
    row["compile time"], row["compile times"] = in_turns(
        made["compile"], min(n_rounds, COMPILED_TIMES), shop.streaming)
    tell("compile time")
    return row


def measure(shop, n_rounds):
    whole.PASS = ""
    return [row_of(shop, name, make(shop.build), n_rounds)
            for name, make in (("SQLite, speedtest1", sqlite), ("Lua, work.lua", lua))]
