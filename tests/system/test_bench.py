# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How `make bench` works out what sampling costs: known runs give known figures, and what is not
resolved is not called met. No figure is measured here: other tests run meanwhile."""
import json
import os
import subprocess
import sys

from machine import ROOT, Folder, need_program
from service import Service

sys.path.insert(0, str(ROOT / "tests" / "bench"))
import accounting  # noqa: E402
import cost  # noqa: E402
import loads  # noqa: E402


def made(load="sched pipe", more=0.010, rounds=4, noise=0.0):
    """Runs of 1 s and 1000 switches, to which always-on mperf adds `more` and nothing else anything;
    every second round is as much slower for all."""
    runs = []
    for n in range(rounds):
        for key, _, _ in cost.RUNS:
            cpu_s = (1 + n % 2) * (1 + (more if key == "mperf 99" else 0))
            runs.append({"key": key, "load": load, "round": n, "n_switches": 1000,
                         "cpu_s": cpu_s + (noise if n < 2 else 0)})
    return runs


def test_ratios_are_taken_within_a_round(build):
    runs = made()
    assert [round(v, 9) for v in cost.ratios(runs, "mperf 99", "sched pipe").values()] == [1.01] * 4
    assert cost.points(runs, "sched pipe") == [0] * 4
    del runs[0]  # without its plain run a round says nothing
    assert len(cost.ratios(runs, "mperf 99", "sched pipe")) == 3


def test_what_is_added_per_switch_is_known(build):
    added = cost.added_us(made(rounds=1), "mperf 99", "sched pipe")
    assert len(added) == 1 and abs(added[0] - 10) < 1e-6, added
    assert not cost.added_us([dict(r, n_switches=0) for r in made()], "mperf 99", "sched pipe")


def test_intervals_are_those_of_the_books(build):
    """Ranks of the ends, by number of values: any table of the sign test's intervals has them."""
    for n, low, high in ((6, 1, 6), (8, 1, 8), (9, 2, 8), (12, 3, 10), (15, 4, 12), (20, 6, 15)):
        assert cost.interval([float(v) for v in range(1, n + 1)]) == ((n + 1) / 2, low, high), n
    assert cost.interval([7.0]) == (7.0, None, None)
    loud = [1.0] * 11 + [9.0]
    assert cost.interval(loud) == (1.0, 1.0, 1.0)


def test_an_aim_is_met_or_missed_only_beyond_doubt(build):
    assert cost.verdict([1.009, 1.010, 1.011] * 3, 1.02) == "met"
    assert cost.verdict([1.049, 1.050, 1.051] * 3, 1.02) == "missed"
    assert cost.verdict([1.00, 1.03, 1.01] * 3, 1.02) == "not resolved"
    assert cost.verdict([1.00] * 5, 1.02) == "not resolved"
    assert cost.verdict([], 1.02) == "–"


def test_the_kind_of_the_machine_is_said(build):
    for found, words in (({"counts": False, "samples": False}, ["no PMU"]),
                         ({"counts": True, "samples": True, "read_ns": 40.0}, ["not trapping", "0.04 µs"]),
                         ({"counts": True, "samples": False, "read_ns": 18300.0},
                          ["does not sample", "trap to the host", "18.30 µs"])):
        for word in words:
            assert word in cost.kind_says(found), (found, cost.kind_says(found))


def test_the_table_has_every_load_and_the_switches_of_those_that_switch(build):
    result = {"machine": {"counts": False, "samples": False}, "event": "cpu-clock", "rounds": 8,
              "seconds": 5, "rate_limit": 100000, "absent": ["perf: not here"],
              "runs": made(rounds=8) + made("SQL", more=0.1, rounds=8)}
    text = cost.lines(result)
    pipe, = [line for line in text if line.startswith("| sched pipe |")]
    sql, = [line for line in text if line.startswith("| SQL |")]
    assert "| 1.0100 (1.0100 to 1.0100) | met |" in pipe
    assert "| 1.1000 (1.1000 to 1.1000) | missed |" in sql, text
    added, = [line for line in text if line.startswith("| added per switch, µs: sched pipe |")]
    assert "| +15.00 (+10.00 to +20.00) |" in added, added  # 10 and 20, by turns
    assert text[-1] == "Left out: perf: not here"
    assert len({line.count("|") for line in text if line.startswith("|")}) == 1, text


def test_switches_are_not_compared_through_a_service(build):
    with Folder() as folder, Service(build, folder) as service:
        done = subprocess.run([ROOT / "tests" / "bench" / "switches", build, "--rounds", "1"], text=True,
                              capture_output=True, timeout=60,
                              env=dict(os.environ, MPERF_SOCKET=str(service.socket)))
    assert done.returncode == 1 and "a service of mperf answers" in done.stderr, done


def test_a_counter_is_read_and_switches_are_counted(build):
    need_program("taskset")
    with Folder() as folder:
        found = cost.probe(folder)
        assert {"counts", "samples"} <= set(found), found
        assert not found["counts"] or found["read_ns"] >= 0, found
        json.dumps(found)
        wakes = [sys.executable, "-c", "import time\nfor i in range(200): time.sleep(2e-3)"]
        used = accounting.usage_of([wakes])
        # on a busy machine a sleep may be over before it began
        assert used.n_switches >= 100 and used.cpu_s > 0, used
        program = loads.Loads(folder)
        pinned = program.commands("CPU loop", 1)
        assert len({command[2] for command in pinned}) == len(pinned), pinned
        subprocess.run(pinned[0], check=True, stdout=subprocess.DEVNULL)
