# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one user has many of, control groups and processes, costs another neither names nor time. Groups are made in
a folder of the user's own, as each session of systemd has one."""
import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

from attacked import MALLORY, VICTOR, UnitService, as_user, need_plain
from machine import Folder, Skip, by_itself
from service import wait_until
from test_attack_rates import MB, Watch
from test_attack_requests import Crowd
from test_attack_turns import turns

SECONDS = 40

ROOTS = "/sys/fs/cgroup", "/sys/fs/cgroup/unified"
MADE = 45000
GREW_MAX = 110 * MB  # without shares these took 160 MB and more
MANY_GROUPS, MANY_PROCESSES = 15000, 4000

MAKER = """
import os, sys
made, kept = int(sys.argv[2]), int(sys.argv[3])
os.chdir(sys.argv[1])
if not kept:
    for _ in range(13):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
for i in range(made):
    os.mkdir(f"{i:06}" + "x" * 100)
    if i >= kept:
        os.rmdir(f"{i:06}" + "x" * 100)
print("made", flush=True)
sys.stdin.read()
"""


def remove(folder):
    for at, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(at)


@contextlib.contextmanager
def group(name, uid=0):
    """A control group that belongs to that user, as a delegated one does."""
    root = next((Path(root) for root in ROOTS if (Path(root) / "cgroup.controllers").exists()), None)
    if not root or Path("/sys/fs/cgroup/perf_event").exists():
        raise Skip("there is no hierarchy of control groups of version 2 whose numbers samples have")
    folder = root / f"{name}-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise Skip(f"no control group can be made here: {error}") from error
    try:
        os.chown(folder, uid, uid)
        yield folder
    finally:
        wait_until("the group is empty", lambda: (folder / "cgroup.procs").read_text() == "")
        remove(folder)


@contextlib.contextmanager
def maker(folder, made, kept):
    """A program of Mallory's that has made that many groups, and lives on."""
    with subprocess.Popen(as_user(MALLORY, "python3", "-c", MAKER, folder, made, kept), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "made\n"
            yield
        finally:
            process.kill()


@contextlib.contextmanager
def works_in(folder):
    """A busy program of Victor's in that group."""
    with subprocess.Popen(["sh", "-c", f"echo $$ > {folder}/cgroup.procs; exec \"$@\"", "sh",
                           *as_user(VICTOR, "sh", "-c", "while :; do :; done")]) as process:
        try:
            yield
        finally:
            process.kill()


def groups_of_victor(service):
    answer = json.loads(service.user(VICTOR, "hotspots", "--since", "-1m", "--by", "cgroup", "--json").stdout)
    return {row["cgroup"] for row in answer["rows"]}


def test_ever_new_groups_of_one_user_leave_memory_and_names_to_others(build):
    need_plain(build)
    with Folder() as folder, UnitService(build, folder, flush="1s") as service, \
            group("mallory", MALLORY) as own, Watch(service) as watch, maker(own, MADE, 0), \
            group("victor") as victors, works_in(victors):
        wait_until("Victor's group has its name", lambda: f"/{victors.name}" in groups_of_victor(service))
        print(f"  {watch.before / MB:.0f} MB before, {watch.most / MB:.0f} MB at most", flush=True)
        assert watch.most - watch.before < GREW_MAX, (watch.before, watch.most)


@contextlib.contextmanager
def crowd_of(build, service):
    crowd = Crowd(build, service, MANY_PROCESSES)
    try:
        yield crowd
    finally:
        crowd.end()


def long_turns_of_recordings(service):
    """Victor records a program that ends at once, three times; ms of a turn that was too long of each, 0: none."""
    long = []
    for i in range(3):
        before = turns(service)
        done = service.user(VICTOR, "record", "-e", "cpu-clock:u", "-o", service.homes[VICTOR] / f"r{i}.mprf",
                            "--", "true")
        assert done.returncode == 0, done.stderr
        after = turns(service)
        long.append(after["lately_ns"] / 1e6 if after["long"] > before["long"] else 0)
    print(f"  long turns: {long}", flush=True)
    return long


def test_many_groups_of_one_user_do_not_stop_the_loop_when_another_records(build):
    need_plain(build)
    with Folder() as folder, UnitService(build, folder, flush="1s") as service, \
            group("mallory", MALLORY) as own, maker(own, MANY_GROUPS, MANY_GROUPS):
        assert 0 in long_turns_of_recordings(service)


@by_itself("thousands of processes keep other tests from the harts")
def test_many_processes_of_one_user_do_not_stop_the_loop_when_another_records(build):
    need_plain(build)
    with Folder() as folder, UnitService(build, folder, flush="1s") as service, \
            crowd_of(build, service) as crowd:
        crowd.begin()
        assert 0 in long_turns_of_recordings(service)


def test_what_a_process_started_before_it_was_recorded_is_recorded_too(build):
    """A recording reads of /proc only its targets and what is sampled: also what such a one descends from."""
    script = "sh -c 'sh -c \"while :; do :; done\"; :' & echo here; wait"
    with Folder() as folder, UnitService(build, folder, flush="1s") as service, \
            subprocess.Popen(as_user(VICTOR, "sh", "-c", script), stdout=subprocess.PIPE, text=True,
                             start_new_session=True) as process:
        try:
            assert process.stdout.readline() == "here\n"
            file = service.homes[VICTOR] / "r.mprf"
            done = service.user(VICTOR, "record", "-e", "cpu-clock:u", "-F", "99", "--for", "2s", "-o", file,
                                "--pid", process.pid)
            assert done.returncode == 0, done.stderr
            answer = json.loads(service.user(VICTOR, "hotspots", "-i", file, "--by", "process", "--json").stdout)
            assert sum(row["samples"] for row in answer["rows"]) > 20, answer
        finally:
            os.killpg(process.pid, signal.SIGKILL)
