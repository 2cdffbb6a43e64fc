# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What runs the tests side by side (tests/jobs.py): seats, order, jobs that die."""
import os
import sys
import tempfile

from machine import ROOT

sys.path.insert(0, str(ROOT / "tests"))
import jobs  # noqa: E402


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


def test_what_takes_long_begins_first(build):
    _, moments = ran(lambda b: [b.job("short"), b.job("long", seconds=9), b.job("longer", seconds=10)], 1)
    assert [m for m in moments if m] == [{"longer"}, {"long"}, {"short"}], moments


def test_a_job_that_dies_has_no_result_and_others_have_theirs(build):
    def todo(board):
        return [jobs.Job("dies", lambda: os._exit(3)), board.job("lives")]
    done, _ = ran(todo, 2)
    assert done["dies"].result is None and done["dies"].status != 0, vars(done["dies"])
    assert done["lives"].result == "lives"
