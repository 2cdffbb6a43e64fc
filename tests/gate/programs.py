# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SQLite, zlib and Lua from Debian's source packages, each with a loop put into one function.

How often the loop runs is a number in an object file of its own. So a baseline, whose number is 0, and
what is slower by 3, 5 or 10 % have the same code at the same addresses, and differ in the time of that
function alone. The loop runs in one of EVERY calls, and then for long: in each call it would be
hidden behind loads that the function waits for.

The number is found by measurement (calibrate): the function's samples over those of all other
functions, with a loop that adds about as much as the function takes, in runs that take turns with the baseline.
Instructions would not do: the loop's take another time than the function's."""
import dataclasses
import json
import math
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "system"))

EVERY = 64  # calls
FLAGS = ["-O2", "-g", "-fno-omit-frame-pointer"]
RUN_S = 0.5  # of CPU time, about
FIRST_ROUNDS = 500
CALIBRATION_RUNS = 8
LARGE = 0.5, 2.0  # growth of the function from which the number is worked out
SLOW_DOWN = f"""
extern volatile const unsigned slowdown_rounds;
static inline __attribute__((always_inline)) void slow_down(void)
{{
	static unsigned calls;
	if (++calls % {EVERY} == 0)
		for (unsigned i = slowdown_rounds; i > 0; i--)
			__asm__ volatile("");
}}
"""


@dataclasses.dataclass
class Program:
    name: str
    package: str
    function: str
    file: str      # of the function
    pattern: str   # what the loop is put behind
    flags: list
    libraries: list


PROGRAMS = [
    Program("SQLite", "sqlite3", "sqlite3BtreeIndexMoveto", "sqlite3.c",
            r"^SQLITE_PRIVATE int sqlite3BtreeIndexMoveto\([^;{]*\)\s*\{",
            ["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION"], ["-lm"]),
    Program("zlib", "zlib", "longest_match", "deflate.c",
            r"^local uInt longest_match\((?:.|\n)*?\n\{", ["-DHAVE_UNISTD_H", "-D_LARGEFILE64_SOURCE"], []),
    Program("Lua", "lua5.4", "luaV_execute", "lvm.c", r"vmcase\(OP_CALL\) \{",
            ["-DLUA_USE_POSIX", "-DLUA_COMPAT_5_3"], ["-lm", "-ldl"]),
]


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"tests/gate/real: {' '.join(map(str, command))}: exit {done.returncode}\n"
                 f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def copy_source(program, build, to):
    """The C files of the program, with nothing changed."""
    source = Path(run(ROOT / "tests" / "workloads" / "debian-source", program.package,
                      build / "workloads" / "sources").strip())
    if program.package == "sqlite3":
        run(ROOT / "tests" / "workloads" / "speedtest1", build)  # makes the amalgamation
        for path in build / "workloads/sqlite3/sqlite3.c", build / "workloads/sqlite3/sqlite3.h", \
                source / "test/speedtest1.c":
            shutil.copy(path, to)
        return
    folder = source / "src" if program.package == "lua5.4" else source
    for path in folder.glob("*.[ch]"):
        if path.name != "luac.c":
            shutil.copy(path, to)
    if program.package == "zlib":
        shutil.copy(source / "test" / "minigzip.c", to)
    else:
        (to / "lua5.4-deb-multiarch.h").write_text('#define DEB_HOST_MULTIARCH "here"\n')


def compile_objects(program, build):
    """Its object files, with the loop in the function; made once."""
    folder = build / "gate" / program.name / "objects"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        copy_source(program, build, folder)
        path = folder / program.file
        text, n = re.subn(program.pattern, lambda m: m[0] + " slow_down();", path.read_text(errors="surrogateescape"),
                          count=1, flags=re.M)
        if n != 1:
            sys.exit(f"tests/gate/real: {program.function} is not where it was in {path}")
        path.write_text(SLOW_DOWN + text, errors="surrogateescape")
        for source in folder.glob("*.c"):
            run("cc", *FLAGS, *program.flags, f"-I{folder}", "-c", "-o", source.with_suffix(".o"), source)
        (folder / "done").touch()
    return sorted(folder.glob("*.o"))


def link(program, build, side, rounds):
    """A build whose loop runs so many rounds; its path."""
    target = build / "gate" / program.name / side / program.name.lower()
    target.parent.mkdir(parents=True, exist_ok=True)
    number = target.parent / "slowdown.c"
    number.write_text(f"volatile const unsigned slowdown_rounds = {rounds};\n")
    run("cc", *FLAGS, "-o", target, number, *compile_objects(program, build), *program.libraries)
    return target


def arguments(program, build, work):
    """Those of a run that has so much work."""
    if program.package == "sqlite3":
        return ["--memdb", "--size", work]
    if program.package == "lua5.4":
        return [ROOT / "tests" / "programs" / "work.lua", work]
    book = build / "gate" / program.name / "book"
    text = (build / "workloads" / "sources" / "zlib" / "ChangeLog").read_bytes()
    if not book.exists() or book.stat().st_size != len(text) * work:
        book.write_bytes(text * work)
    return ["-c", book]


def cpu_seconds(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def find_work(program, build):
    """How much work takes RUN_S."""
    path = link(program, build, "base", 0)
    seconds = min(cpu_seconds(path, *arguments(program, build, 20)) for _ in range(3))
    return max(1, round(20 * RUN_S / seconds))


def odds(samples, function):
    """The function's samples over those of all others."""
    own = samples.get(function, 0)
    return own / (sum(samples.values()) - own)


def calibrate(program, build, samples_of):
    """Rounds of the loop that make the function one percent slower, and the work of a run; measured once
    and kept. samples_of(path, arguments): {function: samples} of a run."""
    kept = build / "gate" / program.name / "calibration.json"
    if kept.exists():
        return json.loads(kept.read_text())
    work = find_work(program, build)
    given = arguments(program, build, work)
    base, rounds = link(program, build, "base", 0), FIRST_ROUNDS
    for _ in range(5):
        slow = link(program, build, "calibration", rounds)
        pairs = [(odds(samples_of(base, given), program.function), odds(samples_of(slow, given), program.function))
                 for _ in range(CALIBRATION_RUNS)]
        logs = [math.log(b / a) for a, b in pairs]
        growth = math.exp(sum(logs) / len(logs)) - 1
        if LARGE[0] < growth < LARGE[1]:
            found = {"work": work, "rounds_per_percent": rounds / growth / 100, "from_rounds": rounds,
                     "growth": growth}
            kept.write_text(json.dumps(found))
            return found
        rounds = min(10 ** 8, max(1, round(rounds / max(growth, 0.02))))
    sys.exit(f"tests/gate/real: a loop of {rounds} rounds makes {program.function} grow by {100 * growth:.0f} %; "
             "the machine is too loud to calibrate")
