# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For how long the threads of a command had a CPU, waited for one, and waited for something else: beside what they
say themselves, which they read from /proc/self/task/TID/schedstat."""
import os
import re
import sqlite3
import time

from machine import Folder, compile_program, mperfctl, need_root, rows, seal, unseal
from service import Service

HARTS = os.cpu_count()


def threads_of(build, path, *options):
    return rows(build, "hotspots", "-i", path, *options)["provenance"]["threads"]


def recorded(build, folder, *arguments, ctl=None):
    """What mperf says of the program's threads, and what they say: (…, [lived, ran, ready] in seconds)."""
    program = compile_program(build, "threads_wait.c", "-pthread")
    done = (ctl or (lambda *a: mperfctl(build, *a)))("record", "-f", "-o", folder / "r", "--", program, *arguments)
    return threads_of(build, folder / "r"), [int(word) / 1e9 for word in done.stdout.split()[-3:]]


def agree(said, true, beside=0):
    """beside: seconds that the first thread lived, which waits for the others and does not count itself."""
    lived, ran, ready = true
    assert abs(said["lived_s"] - lived - beside) < 0.05 * lived + 0.15, (said, true)
    assert abs(said["ran_s"] - ran) < 0.05 * ran + 0.05, (said, true)
    assert abs(said["ready_s"] - ready) < 0.1 * lived + 0.05, (said, true)
    parts = said["ran_s"] + said["ready_s"] + said["waited_s"] + said["unknown_s"]
    assert abs(parts - said["lived_s"]) < 1e-6 and min(said.values()) >= 0, said
    assert said["unknown_s"] < 0.1 * lived, (said, true)


def test_threads_behind_a_lock_wait_for_something_else(build):
    with Folder() as folder:
        begin = time.monotonic()
        said, true = recorded(build, folder, "lock", "4")
        agree(said, true, beside=true[0] / 4)
        assert said["waited_s"] > 0.5 * said["lived_s"], said
        assert time.monotonic() - begin > 2  # 40 times 50 ms, one after the other
        shown = mperfctl(build, "hotspots", "-i", folder / "r").stdout
    assert re.search(r"; threads lived \d.* s: with a CPU \d+\.\d %, waiting for one \d+\.\d %, "
                     r"waiting for something else \d+\.\d %", shown), shown


def test_threads_that_are_too_many_wait_for_a_cpu(build):
    with Folder() as folder:
        said, true = recorded(build, folder, "spin", str(4 * HARTS))
        agree(said, true, beside=true[0] / (4 * HARTS))
    assert said["ready_s"] > 0.4 * said["lived_s"], said


def test_a_thread_counts_once_whatever_it_is_called(build):
    program = compile_program(build, "threads_wait.c", "-pthread")
    with Folder() as folder:
        begin = time.monotonic()
        mperfctl(build, "record", "-o", folder / "r", "--", program, "exec")
        took = time.monotonic() - begin
        said = threads_of(build, folder / "r")
        with sqlite3.connect(f"file:{folder / 'r'}?immutable=1", uri=True) as db:
            names = {name for name, in db.execute(
                "SELECT DISTINCT comm FROM thread_time JOIN task ON task = task.id")}
    assert 1.0 < said["lived_s"] < took + 0.01, (said, took)
    assert 0.1 < said["ran_s"] < 0.3, said  # 0.2, without what was before the first look
    assert "renamed" in names and len(names) >= 2, names


def test_short_programs_count_and_what_is_not_known_is_said(build):
    with Folder() as folder:
        mperfctl(build, "record", "-o", folder / "r", "--", "sh", "-c",
                 "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; sleep 0.05; done")
        said = threads_of(build, folder / "r")
        sleeps = threads_of(build, folder / "r", "--comm", "sleep")
    assert 0.9 < said["lived_s"], said          # the shell, and what it waits for
    assert 0.45 < sleeps["lived_s"] < said["lived_s"] and sleeps["ran_s"] < 0.2, (said, sleeps)


def test_the_service_reads_them_for_recordings_of_processes_alone(build):
    need_root()
    with Folder() as folder, Service(build, folder) as service:
        said, true = recorded(build, folder, "lock", "4", ctl=service.ctl)
        agree(said, true, beside=true[0] / 4)
        service.ctl("record", "-f", "-o", folder / "all", "-a", "--", "sleep", "0.5")
        assert threads_of(build, folder / "all") is None
        # of one hart's samples, nothing is known of threads
        assert threads_of(build, folder / "r", "--cpu", "0") is None


def test_a_file_of_an_earlier_version_has_none(build):
    with Folder() as folder:
        recorded(build, folder, "spin", "1")
        unseal(folder / "r")
        with sqlite3.connect(folder / "r") as db:
            db.execute("DROP TABLE thread_time")
        seal(folder / "r")
        assert threads_of(build, folder / "r") is None
