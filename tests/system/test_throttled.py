# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel's lowest limit: one sample a tick, to which it comes by itself where interrupts take long.

Every sample makes its event silent until the next tick then. mperf is asked for a rate that it cannot
have, and what it says of time, of shares and of counts should still be right."""
import re
import subprocess

from machine import Folder, Skip, compile_program, mperfctl, need_program, rows, wrong_today
from rates import limited_to, rate_limit, ticks_a_second
from recorded import known
from running import share

BY_ITSELF = "it sets the rate that the kernel allows to its lowest"
ASKED = "999"


def need_throttling(folder):
    """Skip where the kernel lets a program be sampled at its lowest limit, as it did before Linux 6.16.
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


def at_the_lowest_limit(build, command, *options):
    """Record a command at the lowest limit: its standard output, and an answer for each of options."""
    with Folder() as folder, limited_to(ticks_a_second()):
        need_throttling(folder)
        done = mperfctl(build, "record", "-F", ASKED, "-o", folder / "r", *options, "--", *command)
        answers = [rows(build, "hotspots", "-i", folder / "r", "--limit", "0", *more)
                   for more in ([], ["--by", "process"])]
        folded = mperfctl(build, "flamegraph", "-i", folder / "r", "--folded", "--event",
                          "page-faults", check=False).stdout
    # Throttling is a loss that is reported, whatever else is wrong.
    lost = answers[0]["provenance"]["lost"]
    print(f"  {answers[0]['provenance']['hz']} Hz, {answers[0]['provenance']['samples']} samples, "
          f"throttled {lost.get('throttled', 0)}")
    return done.stdout, *answers, folded


def test_the_time_of_a_program_is_right_at_the_lowest_limit(build):
    out, _, processes, _ = at_the_lowest_limit(build, [known(build), "spin", "1500"], "-e", "cpu-clock")
    spent = int(re.search(r"cpu_us (\d+)", out)[1]) * 1e3
    got = sum(row["self_ns"] for row in processes["rows"] if row["comm"] == "known")
    assert processes["provenance"]["samples"] > 50, processes["provenance"]
    with wrong_today("a sample stands for a period, and the silence after it for nothing"):
        assert abs(got - spent) < 0.1 * spent, f"{got / 1e9:.3f} s of {spent / 1e9:.3f} s"


def test_shares_of_functions_are_right_at_the_lowest_limit(build):
    library = compile_program(build, "shares_library.c", "-shared", "-fPIC")
    program = compile_program(build, "shares.c", str(library), f"-Wl,-rpath,{library.parent}")
    _, functions, _, _ = at_the_lowest_limit(build, [program, "400"], "-e", "cpu-clock")
    assert share(functions["rows"], module=str(program)) > 0.1, functions["rows"][:5]
    with wrong_today("an event that is silent until the tick samples what runs right after it: the "
                     "kernel's own work at ticks"):
        assert share(functions["rows"], module="[kernel]") < 0.05, functions["rows"][:4]


def test_a_group_is_counted_whole_at_the_lowest_limit(build):
    _, _, _, folded = at_the_lowest_limit(build, [known(build), "pages", "100000", "200"], "-e",
                                          "{cpu-clock,page-faults}")
    counted = sum(int(line.rpartition(" ")[2]) for line in folded.splitlines())
    assert counted > 0, folded
    with wrong_today("the kernel stops the whole group when it throttles its leader, and what the "
                     "siblings would have counted is missing"):
        assert counted > 0.95 * 100000, f"{counted} page faults of 100,000"
