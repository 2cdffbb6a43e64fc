# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""diff by loop, of a program that counts its loops: one of them does more work on one side."""
import functools
import json
import os
import subprocess

from machine import ROOT, Folder, at_end_of_module, mperfctl, refused
from rates import rate_allowed
from service import Service
from test_gate import ALONE
from test_roofline_live import compiled

SECONDS = 40
RUNS = 8
MORE = 100      # percent
SAMPLES = 300   # of a run
NEST = "2.1"    # of the loop that does more


def program(build):
    return compiled(build, "compared_loops.c", "-g", folder=ROOT / "tests" / "system")


@functools.cache
def rounds(build):
    """How many make a run long enough."""
    n = 500
    begin = os.times().children_user
    subprocess.run([program(build), str(n)], check=True, stdout=subprocess.DEVNULL, env={})
    return max(1, round(n * SAMPLES / rate_allowed(999) / max(os.times().children_user - begin, 0.01)))


@functools.cache
def sides(build):
    """A folder with main/ and more/, recorded in turns."""
    folder = Folder()
    root = folder.__enter__()
    at_end_of_module(lambda: folder.__exit__(None, None, None))
    for side in "main", "more":
        (root / side).mkdir()
    for i in range(RUNS):
        for side, percent in ("main", 0), ("more", MORE):
            mperfctl(build, "record", "-F", rate_allowed(999), "-o", root / side / f"{i}.mprf", "--", program(build),
                     rounds(build), percent, env=ALONE)
    return root


def compare(build, *arguments):
    return json.loads(mperfctl(build, *arguments, "--json", check=False, env=ALONE).stdout)


def row_of(rows, function, nest):
    found = [r for r in rows if (r["function"], r["nest"]) == (function, nest)]
    assert len(found) == 1, (function, nest, rows)
    return found[0]


def check_rows(rows):
    """What is counted of both sides is exact."""
    more = row_of(rows, "two_loops", NEST)
    assert more["source"] == "compared_loops.c" and more["line"] == "19", more
    for what in "iterations", "ops", "bytes":
        assert abs(more[f"{what}_change"] - MORE / 100) < 1e-9, (what, more)
        same = row_of(rows, "two_loops", "1")
        assert same[f"{what}_change"] == 0 and same[f"baseline_{what}"] > 0, (what, same)
    assert row_of(rows, "hashed", "1")["ops_change"] is None, "a value of 0 has no change"
    # its rate is of its operations and its time
    gops = more["candidate_ops"] / more["candidate_ns"]
    assert 0.8 < more["candidate_gops"] / gops < 1.25, more


def test_the_loop_that_does_more_is_named_and_what_it_counted_changed_by_as_much(build):
    root = sides(build)
    # at the usual margin of 2 % chance alone calls a row slower or faster in one comparison of fifty
    answer = compare(build, "diff", root / "main", root / "more", "--by", "loop", "-n", "0", "--margin", "20%")
    check_rows(answer["change"])
    row = row_of(answer["change"], "two_loops", NEST)
    assert row["verdict"] == "slower" and row["low"] < row["change"] < row["high"], answer
    # what stood still did not shrink, and code without a line is its function's
    slower = {(r["function"], r["nest"]) for r in answer["change"] if r["verdict"] == "slower"}
    assert slower <= {("two_loops", NEST), ("two_loops", "2"), ("two_loops", None)}, answer
    assert not any(r["verdict"] == "faster" for r in answer["change"]), answer
    assert {"same", "undecided", "untested"} >= {row_of(answer["change"], *other)["verdict"]
                                    for other in (("hashed", "1"), ("two_loops", "1"))}, answer
    text = mperfctl(build, "diff", root / "main", root / "more", "--by", "loop", env=ALONE).stdout
    assert "two_loops, compared_loops.c:19: +" in text.splitlines()[0], text
    heads = next(line.split() for line in text.splitlines() if "Change" in line)
    assert {"Iterations", "Operations", "Bytes", "GFLOP/s", "GB/s", "Nest"} <= {*heads}, text
    assert "IPC" not in heads, text


def test_rows_add_up_to_the_program(build):
    root = sides(build)
    by_loop = compare(build, "diff", root / "main", root / "more", "--by", "loop", "-n", "0")
    by_process = compare(build, "diff", root / "main", root / "more", "--by", "process", "-n", "0")
    row, = [r for r in by_process["change"] if r["comm"].startswith("counted-compar")]
    whole = sum(r["baseline_ns"] for r in by_loop["change"])
    # rows of few samples are left out
    assert 0.9 < whole / row["baseline_ns"] <= 1.0001, (by_loop["change"], row)
    assert by_loop["total"][0]["baseline_ns"] <= by_process["total"][0]["baseline_ns"], "only what counts is compared"


def test_the_gate_splits_by_loop_too_and_sides_can_stand_beside_each_other(build):
    root = sides(build)
    done = mperfctl(build, "gate", "--baseline", root / "main", "--candidate", root / "more", "--by", "loop", check=False,
                    env=ALONE)
    assert done.returncode == 3 and done.stdout.startswith("slower: +"), done
    beside = compare(build, "diff", root / "main", root / "more", "--by", "loop", "--side-by-side")["beside"]
    row = row_of(beside, "two_loops", NEST)
    assert abs(row["iterations_b"] / row["iterations_a"] - 2) < 1e-9, row


def test_recordings_without_such_programs_are_named(build):
    with Folder() as folder:
        mperfctl(build, "record", "-o", folder / "a.mprf", "--", "sh", "-c", "for i in 1 2 3 4 5 6; do ls / >/dev/null; done",
                 env=ALONE)
        refused(mperfctl(build, "diff", folder / "a.mprf", folder / "a.mprf", "--by", "loop", check=False, env=ALONE), 1,
                "a.mprf' has no samples of a program that counts its loops", "mperf-cc")
        refused(mperfctl(build, "diff", "a", "b", "--by", "loops", check=False, env=ALONE), 2, "did you mean loop?")


def test_runs_of_the_store_are_split_by_loop_too(build):
    program(build)
    with Folder() as folder, Service(build, folder, flush="1s", rate=rate_allowed(999)) as service:
        for i in range(2):
            for branch, percent in ("main", 0), ("more", MORE):
                subprocess.run([build / "mperfctl", "job", "run", "bench", "--label", f"branch={branch}", "--label",
                                f"run={branch}-{i}", "--", program(build), str(rounds(build)), str(percent)], check=True,
                               stdout=subprocess.DEVNULL,
                               env={**os.environ, "MPERF_SOCKET": str(service.socket), "MPERF_FEED": str(service.feed)})
        answer = json.loads(service.ctl("diff", "branch=main", "branch=more", "--by", "loop", "-n", "0", "--json").stdout)
        check_rows(answer["change"])
        refused(service.ctl("diff", "branch=main", "branch=more", "--by", "loop", "-M", "ipc", check=False), 2,
                "leave out -M")
