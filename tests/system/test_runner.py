# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What runs the tests side by side (tests/jobs.py): seats, order, jobs that die; and what holds them
to their word (machine.py, rates.py)."""
import collections
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from unittest import mock

import rates
from machine import ROOT, SOURCES, Folder, by_itself, need_root, wrong_today
from service import wait_until

sys.path.insert(0, str(ROOT / "tests"))
import jobs  # noqa: E402

SECONDS = 13
WAITS = "jobs that it interrupts"

LEAVE_TO_PLAIN = "what it tests is Python"


class Board:
    """Where jobs write who is at work, for what must not be at the same time."""

    def __init__(self, file):
        self.file = file

    def job(self, name, **options):
        return jobs.Job(name, lambda: self.work(name), **options)

    def work(self, name):
        os.write(self.file, f"+{name}\n".encode())
        for _ in range(1000):  # others may begin, if they are to
            os.sched_yield()
        os.write(self.file, f"-{name}\n".encode())
        return name


def ran(todo, seats):
    """(the results by name, who was at work at each moment as sets)."""
    with tempfile.TemporaryFile() as file:
        os.set_blocking(file.fileno(), True)
        done = {d.job.name: d for d in jobs.run_all(todo(Board(file.fileno())), seats)}
        file.seek(0)
        moments, at_work = [], set()
        for line in file.read().decode().splitlines():
            at_work = at_work | {line[1:]} if line[0] == "+" else at_work - {line[1:]}
            moments.append(at_work)
    return done, moments


def test_no_more_seats_are_taken_than_there_are(build):
    done, moments = ran(lambda b: [b.job(f"one{i}") for i in range(4)] +
                        [b.job(f"two{i}", seats=2) for i in range(4)], 3)
    assert len(done) == 8 and all(d.result == name for name, d in done.items()), done
    taken = [sum(2 if name.startswith("two") else 1 for name in moment) for moment in moments]
    assert max(taken) <= 3, moments


def test_what_wants_all_seats_comes_last_and_by_itself(build):
    _, moments = ran(lambda b: [b.job("alone", seats=jobs.ALL), *(b.job(f"{i}") for i in range(5))], 3)
    assert {"alone"} in moments and all(m == {"alone"} for m in moments if "alone" in m), moments
    assert moments[-2:] == [{"alone"}, set()], moments


def test_a_filler_takes_no_seat_gives_way_and_is_not_beside_what_wants_all(build):
    def niceness(board):
        board.work("filler")
        return os.nice(0)

    done, moments = ran(lambda b: [b.job("alone", seats=jobs.ALL), *(b.job(f"{i}") for i in range(5)),
                                   jobs.Job("filler", lambda: niceness(b), seats=jobs.NO_SEAT, seconds=1)], 1)
    assert done["filler"].result == os.nice(0) + jobs.FILLER_NICE, done["filler"].result
    assert all(m == {"alone"} for m in moments if "alone" in m) and {"alone"} in moments, moments
    assert all(len(m - {"filler"}) <= 1 for m in moments), moments


def test_fillers_are_one_more_than_seats_and_the_longest_begin(build):
    _, moments = ran(lambda b: [b.job(f"{i}", seats=jobs.NO_SEAT, seconds=i) for i in range(5)] + [b.job("one")], 1)
    assert max(len(m - {"one"}) for m in moments) == 2, moments
    begun = [name for before, now in zip([set(), *moments], moments) for name in now - before if name != "one"]
    assert set(begun[:2]) == {"4", "3"} and sorted(begun) == list("01234"), begun


def test_two_that_wait_take_a_seat(build):
    _, moments = ran(lambda b: [b.job(f"{i}", seats=jobs.HALF_A_SEAT) for i in range(4)] + [b.job("one")], 1)
    assert max(len(m) for m in moments) == 2, moments
    assert all(m == {"one"} for m in moments if "one" in m) and {"one"} in moments, moments


def test_what_takes_long_begins_first(build):
    _, moments = ran(lambda b: [b.job("short"), b.job("long", seconds=9), b.job("longer", seconds=10)], 1)
    assert [m for m in moments if m] == [{"longer"}, {"long"}, {"short"}], moments


def test_a_job_that_dies_has_no_result_and_others_have_theirs(build):
    def todo(board):
        return [jobs.Job("dies", lambda: os._exit(3)), board.job("lives")]
    done, _ = ran(todo, 2)
    assert done["dies"].result is None and done["dies"].status != 0, vars(done["dies"])
    assert done["lives"].result == "lives"


def runner():
    """tests/run as a module."""
    loader = importlib.machinery.SourceFileLoader("runner", str(ROOT / "tests" / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
    loader.exec_module(module)
    return module


def outcome(test):
    """"pass", or what a test failed with, and what it printed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            test()
            return "pass", said.getvalue()
        except AssertionError as error:
            return str(error), said.getvalue()


def test_what_is_wrong_today_passes_until_it_is_right(build):
    def wrong(right, before=True):
        assert before, "this always held"
        with wrong_today("the sum is one short"):
            assert right, "3 of 4"
    state, said = outcome(lambda: wrong(False))
    assert state == "pass" and "one short" in said and "3 of 4" in said, (state, said)
    state, said = outcome(lambda: wrong(True))
    assert "holds now" in state and "one short" in state and not said, (state, said)
    state, said = outcome(lambda: wrong(False, before=False))
    assert state == "this always held" and not said, (state, said)


def test_a_module_that_is_left_to_the_plain_run_is_skipped_with_sanitizers(build):
    module = types.ModuleType("test_left")
    exec("LEAVE_TO_PLAIN = 'it is text'\ndef test_it(build): pass", vars(module))
    results = runner().Results(io.StringIO())
    with mock.patch.dict(sys.modules, test_left=module), contextlib.redirect_stdout(io.StringIO()):
        for kind in "plain", "asan":
            runner().run_function(kind, module.test_it, Path(kind), results)
    assert results.lines == ["pass plain", "skip asan: shown by the plain run; it is text"], results.lines


def test_a_test_that_runs_by_itself_is_a_job_of_its_own(build):
    module = types.ModuleType("test_some")
    module.test_beside = lambda build: None
    module.test_alone = by_itself("it switches the light off")(lambda build: None)
    module.test_limited = rates.allowing(500)(lambda build: None)
    of = {alone: set(runner().functions_of(module, "part", build, None, alone)) for alone in (True, False)}
    assert of == {False: {"part/some/test_beside"},
                  True: {"part/some/test_alone", "part/some/test_limited"}}, of
    module.test_pair = by_itself("two lights are left", at_a_time=2)(lambda build: None)
    assert set(runner().functions_of(module, "part", build, None, 2)) == {"part/some/test_pair"}
    assert set(runner().functions_of(module, "part", build, None, 1)) == of[True]


def test_a_test_under_which_the_limit_falls_is_run_again(build):
    def falling(*limits):
        """How often a test is run that fails, as the limit is these at its begin and end."""
        runs, left = [], list(limits)

        def fails(build):
            runs.append(left.pop(0))
            assert False, "too few"
        with mock.patch.object(rates, "rate_limit", lambda: left[0]):
            state, _ = outcome(lambda: rates.at_one_limit(fails, build))
        assert state == "too few", state
        return len(runs)
    assert falling(1000, 1000) == 1
    assert falling(250, 1000) == 1
    assert falling(1000, 500, 250, 250) == 3
    assert falling(*range(100, 0, -1)) == rates.STEPS_MAX + 1


def test_the_rate_that_a_limit_allows_is_known(build):
    with mock.patch.object(rates, "ticks_a_second", lambda: 250):
        # nothing below a limit of two samples a tick is free; from there on all but the last of a tick are
        for limit, most in (100000, 79799), (1000, 599), (750, 399), (500, 199), (250, 99), (100, 99):
            assert rates.rate_allowed(100000, limit) == most, (limit, rates.rate_allowed(100000, limit))
        assert rates.rate_allowed(50, 250) == 50
        with mock.patch.object(rates, "rate_limit", lambda: 250):
            assert rates.long_enough(100) == 500 and rates.long_enough(100, 99) == 100
            assert rates.rate_granted(999) == 99 and rates.rate_granted(99) == 99
            assert 35 < rates.samples_of(1, 999) < 125 and 30 < rates.samples_of(1, 99) < 70
        with mock.patch.object(rates, "rate_limit", lambda: 100000):
            assert rates.long_enough(100) == 100 and rates.rate_granted(999) == 999
            assert 400 < rates.samples_of(1, 999) < 999
    assert 50 <= rates.ticks_a_second() <= 2000


def test_what_was_set_for_a_while_is_undone_when_the_tests_are_ended(build):
    code = ("import machine, time\n"
            "with machine.ended_in_order():\n"
            "    try:\n"
            "        print('begun', flush=True)\n"
            "        time.sleep(100)\n"
            "    finally:\n"
            "        print('undone', flush=True)\n")
    with subprocess.Popen([sys.executable, "-B", "-c", code], cwd=SOURCES, text=True,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        assert process.stdout.read() == "undone\n"
        assert process.wait(60) == 143


# What a job of the test below runs: a recording, a service, what does not listen and what goes its own way.
INTERRUPTED = """
import importlib.machinery, importlib.util, os, subprocess, sys, time
from pathlib import Path
sys.path.insert(0, "tests")
loader = importlib.machinery.SourceFileLoader("runner", "tests/run")
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
loader.exec_module(runner)
from machine import Folder
from service import Service
built, scratch = Path(sys.argv.pop(2)), sys.argv[1]

def test_some(build):
    with Folder() as folder, Service(built, folder):
        subprocess.Popen([built / "mperfctl", "record", "-o", folder / "r", "--", "sleep", "100"])
        subprocess.Popen(["sh", "-c", "trap '' TERM INT; sleep 101; sleep 102"])
        subprocess.run("setsid sleep 103 & :", shell=True, check=True)
        os.mkdir(f"{os.environ['TMPDIR']}/left")
        while True:
            time.sleep(0.1)

def test_other(build):
    print("begun", flush=True)
    subprocess.run(["sleep", "104"], check=True)

def add_all(self):
    for name, test in ("some", test_some), ("other", test_other):
        self.add(name, {name: lambda results, n=name, t=test: runner.run_function(n, t, built, results)})
runner.Plan.add_all = add_all
sys.exit(runner.main())
"""


def below(pid):
    """How many processes of each name it has started."""
    names = collections.Counter()
    for descendant in jobs.descendants(pid):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            names[Path(f"/proc/{descendant}/comm").read_text().strip()] += 1
    return names


def test_who_is_interrupted_ends_all_and_leaves_nothing(build):
    need_root()
    wanted = {"mperfd": 1, "mperfctl": 1, "sleep": 4}
    for number in signal.SIGTERM, signal.SIGINT:
        with Folder() as folder, tempfile.TemporaryFile("w+") as said:
            (folder / "tmp").mkdir()
            process = subprocess.Popen([sys.executable, "-B", "-c", INTERRUPTED, folder, build, "--seats", "4"],
                                       cwd=ROOT, stdout=said, stderr=said,
                                       env=dict(os.environ, TMPDIR=str(folder / "tmp"),
                                                PYTHONPATH=str(SOURCES)))
            try:
                wait_until("all runs", lambda: not collections.Counter(wanted) - below(process.pid))
                started = jobs.descendants(process.pid)
                process.send_signal(number)
                assert process.wait(60) == 128 + number
            finally:
                process.kill()
            said.seek(0)
            text = said.read()
            assert text.count(f"interrupted by {number.name}") == 1, text
            assert re.search(r"^after \d+ s, \d+ s after what started us: running (other|some) \(\d+ s\), "
                             r"(other|some) \(\d+ s\); to come nothing$", text, re.M), text
            assert "Traceback" not in text and "fail" not in text, text
            # on a busy machine init takes a moment to reap what was killed
            wait_until("all are gone", lambda: not [p for p in started if os.path.exists(f"/proc/{p}")], seconds=20)
            assert not list((folder / "tmp").iterdir()), list((folder / "tmp").iterdir())
