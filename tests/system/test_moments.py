# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When each sample was taken: recordings keep it, and exports tell it. Beside what a program says of its own turns."""
import csv
import io
import json
import re
import sqlite3

from machine import SAMPLES, Folder, compile_program, mperfctl, need_root, seal, unseal
from recorded import known
from service import Service, wait_until

SLACK_NS = 2_000_000  # a window's 65,536th, and the interrupt, which a busy machine delays


def recorded(build, path, *options, ctl=None):
    """[(function, begin, end)] of the program's turns."""
    program = compile_program(build, "phases.c")
    done = (ctl or (lambda *a: mperfctl(build, *a)))("record", "-f", "-o", path, *options, "--", program)
    turns = [line.split() for line in done.stdout.splitlines()]
    assert len(turns) == 20, done.stdout
    return [(name, int(begin), int(end)) for name, begin, end in turns]


def exported(build, path):
    """[(ns, function)] of perf-script's records, in their order."""
    text = mperfctl(build, "export", "--as", "perf-script", "-i", path).stdout
    found = []
    for record in text.split("\n\n"):
        head = re.search(r" (\d+)\.(\d{6}): +\d+ \S+:", record)
        function = re.search(r" (first|second) \(", record)
        if head and function:
            found.append((int(head[1]) * 10**9 + int(head[2]) * 1000, function[1]))
    return found


def are_in_their_turns(samples, turns):
    wrong = [(ns, name) for ns, name in samples
             if not any(name == of and begin - SLACK_NS <= ns <= end + SLACK_NS for of, begin, end in turns)]
    assert len(samples) > 200, len(samples)  # 800 ms at 999 Hz
    assert len(wrong) <= len(samples) * 0.01, (len(samples), wrong[:10], turns)
    times = [ns for ns, _ in samples]
    assert times == sorted(times)
    switches = sum(a != b for (_, a), (_, b) in zip(samples, samples[1:]))
    assert 15 <= switches <= 25, switches


def test_each_sample_is_in_the_turn_of_its_function(build):
    with Folder() as folder:
        turns = recorded(build, folder / "r")
        are_in_their_turns(exported(build, folder / "r"), turns)
        with sqlite3.connect(f"file:{folder / 'r'}?immutable=1", uri=True) as db:
            (n, n_bytes), = db.execute("SELECT (SELECT sum(count) FROM sample), (SELECT sum(length(at)) FROM moment)")
        assert n_bytes == 2 * n, (n, n_bytes)


def test_all_formats_that_have_times_tell_them(build):
    with Folder() as folder:
        turns = recorded(build, folder / "r")
        speedscope = json.loads(mperfctl(build, "export", "--as", "speedscope", "-i", folder / "r").stdout)
        names = [frame["name"] for frame in speedscope["shared"]["frames"]]
        profile = speedscope["profiles"][speedscope["activeProfileIndex"]]
        order = [next(iter({"first", "second"} & {names[i] for i in stack}), None) for stack in profile["samples"]]
        order = [name for name in order if name]
        assert 15 <= sum(a != b for a, b in zip(order, order[1:])) <= 25, order

        firefox = json.loads(mperfctl(build, "export", "--as", "firefox", "-i", folder / "r").stdout)
        times = max((thread["samples"]["time"] for thread in firefox["threads"]), key=len)
        assert times == sorted(times) and len(set(times)) > 200, len(times)
        gaps = sorted(b - a for a, b in zip(times, times[1:]))
        assert 0.5 < gaps[len(gaps) // 2] < 2, gaps[len(gaps) // 2]  # ms

        rows = list(csv.DictReader(io.StringIO(mperfctl(build, "export", "--as", "csv", "-i", folder / "r").stdout)))
        assert all(row["samples"] in ("0", "1") for row in rows)
        span = max(int(row["time_ns"]) for row in rows) - min(int(row["time_ns"]) for row in rows)
        assert abs(span - (turns[-1][2] - turns[0][1])) < 300_000_000, span


def test_sums_stay_what_they_are(build):
    """Each sample has its part of its row's time."""
    with Folder() as folder:
        recorded(build, folder / "r")
        with sqlite3.connect(f"file:{folder / 'r'}?immutable=1", uri=True) as db:
            (count, ns), = db.execute(f"SELECT sum(count), sum(weight_ns) FROM {SAMPLES}")
        rows = list(csv.DictReader(io.StringIO(mperfctl(build, "export", "--as", "csv", "-i", folder / "r").stdout)))
        assert sum(int(row["samples"]) for row in rows) == count
        assert sum(int(row["cpu_ns"]) for row in rows) == ns


def test_recordings_of_the_service_have_them_and_its_store_has_none(build):
    need_root()
    with Folder() as folder, Service(build, folder) as service:
        turns = recorded(build, folder / "r", "-F", "999", ctl=service.ctl)
        are_in_their_turns(exported(build, folder / "r"), turns)
        def summed():
            stored = service.ctl("export", "--as", "csv", "--since", "-1m").stdout
            return any(int(row["samples"]) > 1 for row in csv.DictReader(io.StringIO(stored)))
        wait_until("the store has sums of windows", summed)


def test_moments_that_do_not_fit_are_left_out(build):
    """A file of an earlier version, and one that somebody changed."""
    for change in ("DROP TABLE moment", "UPDATE moment SET at = zeroblob(3)", "UPDATE moment SET at = 7",
                   "UPDATE moment SET at = CAST(at AS TEXT)", "DELETE FROM moment", "INSERT INTO moment VALUES (99, 'x')"):
        with Folder() as folder:
            mperfctl(build, "record", "-o", folder / "r", "--", known(build), "spin", "100")
            before = mperfctl(build, "hotspots", "-i", folder / "r").stdout
            unseal(folder / "r")
            with sqlite3.connect(folder / "r") as db:
                db.execute(change)
            seal(folder / "r")
            assert mperfctl(build, "hotspots", "-i", folder / "r").stdout == before, change
            text = mperfctl(build, "export", "--as", "perf-script", "-i", folder / "r").stdout
            assert "spin" in text, change
