# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Low limits of the kernel, to which it comes by itself where interrupts take long.

At the lowest, one sample a tick, every sample makes its event silent until the next tick. mperf is asked
for a rate that it cannot have, and what it says of time, of shares and of counts is still right: work of
a known size, at limits of 250, 500 and 1,000 where ticks come 250 times a second."""
import contextlib
import re
import sqlite3
import subprocess
import time

from machine import (Folder, Skip, compile_program, leave_to_plain, mperfctl, need_program, need_root,
                     rows)
from rates import LIMIT, limited_to, rate_granted, rate_limit, ticks_a_second
from recorded import known
from running import share

BY_ITSELF = "it lowers the rate that the kernel allows"
ASKED = "999"
LIMITS = 1, 2, 4  # samples a tick
# Why not with sanitizers too: unit tests replay each kind of throttling with them.
KERNEL_ALONE = "it is the kernel that throttles, and all else runs alone meanwhile"


def need_throttling(folder):
    """Skip where the kernel lets a program be sampled at its lowest limit, as Linux up to 6.15 does without
    its stable updates.
    It is asked through perf, so that this does not depend on what mperf makes of the limit."""
    need_program("perf")
    data = folder / "perf.data"
    subprocess.run(["perf", "record", "-q", "-B", "-N", "-e", "cpu-clock", "-F", str(rate_limit() // 2),
                    "-o", data, "--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"],
                   check=True, capture_output=True, timeout=120)
    said = subprocess.run(["perf", "report", "-i", data, "-D"], check=True, capture_output=True,
                          text=True, errors="replace").stdout
    if "PERF_RECORD_THROTTLE" not in said:
        raise Skip("this kernel does not throttle at one sample a tick")


def recorded_at(build, limit, command, *options):
    """Record a command at that limit, in samples a tick: its standard output, and its answers by function,
    by process, and of page faults."""
    leave_to_plain(build, KERNEL_ALONE)
    with Folder() as folder, limited_to(limit * ticks_a_second()):
        if limit == 1:
            need_throttling(folder)
        done = mperfctl(build, "record", "-F", ASKED, "-o", folder / "r", *options, "--", *command)
        answers = [rows(build, "hotspots", "-i", folder / "r", "--limit", "0", *more)
                   for more in ([], ["--by", "process"])]
        folded = mperfctl(build, "flamegraph", "-i", folder / "r", "--folded", "--event",
                          "page-faults", check=False).stdout
        hz = rate_granted(int(ASKED))
    provenance = answers[0]["provenance"]
    throttled = provenance["lost"].get("throttled", 0)
    print(f"  {provenance['hz']} Hz, {provenance['samples']} samples, throttled {throttled}")
    assert provenance["hz"] == hz, (provenance, hz)
    # Timers are late at times, so that a tick has one more; by rates that are throttled it would be each.
    assert limit == 1 or throttled < 0.05 * provenance["samples"] + 5, provenance
    return done.stdout, *answers, folded


def test_the_time_of_a_program_is_right_at_low_limits(build):
    for limit in LIMITS:
        out, _, processes, _ = recorded_at(build, limit, [known(build), "spin", "1500"], "-e", "cpu-clock")
        spent = int(re.search(r"cpu_us (\d+)", out)[1]) * 1e3
        got = sum(row["self_ns"] for row in processes["rows"] if row["comm"] == "known")
        assert processes["provenance"]["samples"] > 50, processes["provenance"]
        assert abs(got - spent) < 0.1 * spent, f"{got / 1e9:.3f} s of {spent / 1e9:.3f} s at {limit}"


def test_shares_of_functions_are_right_at_low_limits(build):
    library = compile_program(build, "shares_library.c", "-shared", "-fPIC")
    program = compile_program(build, "shares.c", str(library), f"-Wl,-rpath,{library.parent}")
    for limit in LIMITS:
        _, functions, _, _ = recorded_at(build, limit, [program, "400"], "-e", "cpu-clock")
        assert share(functions["rows"], module=str(program)) > 0.1, functions["rows"][:5]
        # An event that is silent until the tick must not sample what runs right after it: the kernel's
        # own work at ticks.
        assert share(functions["rows"], module="[kernel]") < 0.05, functions["rows"][:4]


def test_a_group_is_counted_whole_at_low_limits(build):
    """Since Linux 6.16 the kernel stops the whole group when it throttles its leader."""
    for limit in LIMITS:
        _, _, _, folded = recorded_at(build, limit, [known(build), "pages", "100000", "200"], "-e",
                                      "{cpu-clock,page-faults}")
        counted = sum(int(line.rpartition(" ")[2]) for line in folded.splitlines())
        assert 0.95 * 100000 < counted < 1.1 * 100000, f"{counted} page faults of 100,000 at {limit}"


def test_a_limit_that_falls_is_followed_at_the_next_drain(build):
    need_root()
    leave_to_plain(build, KERNEL_ALONE)
    ticks = ticks_a_second()
    with Folder() as folder, limited_to(400 * ticks):
        recording = subprocess.Popen([build / "mperfctl", "record", "-F", "1999", "-e", "cpu-clock", "-o",
                                      folder / "r", "--", known(build), "spin", "4000"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)
        LIMIT.write_text(f"{4 * ticks}\n")
        out, said = recording.communicate(timeout=120)
        assert recording.returncode == 0, said
        answer = rows(build, "hotspots", "-i", folder / "r", "--by", "process", "--limit", "0")
        with contextlib.closing(sqlite3.connect(folder / "r")) as db:
            throttled, = db.execute("SELECT max(n) FROM (SELECT sum(count) AS n FROM loss "
                                    "WHERE cause = 'throttled' GROUP BY hart)").fetchone()
    print(f"  throttled {throttled}, {answer['provenance']['samples']} samples, {out.strip()}")
    # A busy hart is throttled each tick until the next drain, four of which are in a second.
    assert 0 < (throttled or 0) < 0.5 * ticks, answer["provenance"]
    spent = int(re.search(r"cpu_us (\d+)", out)[1]) * 1e3
    got = sum(row["self_ns"] for row in answer["rows"] if row["comm"] == "known")
    assert abs(got - spent) < 0.1 * spent, f"{got / 1e9:.3f} s of {spent / 1e9:.3f} s"
