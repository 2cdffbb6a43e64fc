# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that changes its name with its user, and one that does without end: whose each part is, and how many
there are."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from attacked import MALLORY, VICTOR, Stage, as_user, need_setuid, shared
from machine import compile_program
from service import wait_until

SECONDS = 60
# One that Mallory may run; the one that runs this may be in a home.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
LONG_S = 240  # for samples of programs that share two harts with all other tests
NAMES_MAX = 18  # 16 that are told apart, the one of the program's begin, and the last
BYTES_MAX = 64 << 20

# The first thread runs under each name until it is told to go on; another one waits for that.
NAMED = """import ctypes, os, sys, threading
lines = 0
def read():
    global lines
    while os.read(0, 1):
        lines += 1
threading.Thread(target=read, daemon=True).start()
def run_as(name, n):
    ctypes.CDLL(None).prctl(15, name.encode())
    while lines < n:
        sum(range(10000))
"""
MALLORYS = NAMED + """
run_as("mallorys-1", 1)
run_as("mallorys-2", 2)
os.execv(sys.argv[1], ["roots-3", "spin", "3600000", "0"])
"""
ROOTS = NAMED + f"""
run_as("roots-1", 1)
run_as("roots-2", 2)
os.setgroups([]); os.setresgid(*[{MALLORY}] * 3); os.setresuid(*[{MALLORY}] * 3)
run_as("nobodys", 3)
os.execv(sys.argv[1], ["mine", "-c", {MALLORYS!r}, sys.argv[2]])
"""

_stage = []


def stage(build):
    return shared(_stage, lambda: Stage(build, flush="1s", rate="499"))


def names(service, uid, pid, by="thread"):
    """Who owes the loop's time is asked to come later, and does."""
    done = None
    while not done or "try again later" in done.stderr:
        time.sleep(0.5 if done else 0)
        done = service.user(uid, "hotspots", "--since", "-1h", "--by", by, "--limit", "0", "--json", "--pid", pid)
    assert done.returncode == 0, done.stderr
    return {row["comm"] for row in json.loads(done.stdout)["rows"]}


def test_each_name_of_a_process_is_whose_the_process_was_then(build):
    service = stage(build)
    need_setuid(service.folder)
    mine = service.folder / "mine"
    mine.symlink_to(PYTHON)
    roots = service.folder / "roots-3"
    shutil.copy(compile_program(build, "known.c"), roots)
    os.chmod(roots, 0o4755)
    with subprocess.Popen([PYTHON, "-c", ROOTS, mine, roots], stdin=subprocess.PIPE, bufsize=0) as process:
        def seen(name, uid=0):
            wait_until(f"{name} is seen by {uid}", lambda: name in names(service, uid, process.pid), LONG_S)
        try:
            for name in "roots-1", "roots-2", "nobodys", "mallorys-1", "mallorys-2":
                seen(name)
                if name.startswith("mallorys"):
                    seen(name, MALLORY)
                process.stdin.write(b"\n")
            seen("roots-3")
            for by in "thread", "process":
                hers = names(service, MALLORY, process.pid, by)
                assert "mallorys-1" in hers and hers <= {"mine", "mallorys-1", "mallorys-2"}, (by, hers)
                assert not names(service, VICTOR, process.pid, by)
                everything = names(service, 0, process.pid, by)
                assert {"roots-1", "roots-2", "nobodys", "mallorys-1", "mallorys-2", "roots-3"} <= everything, \
                    (by, everything)
        finally:
            process.kill()


def anonymous_bytes(pid):
    return 1024 * int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


def test_names_without_end_take_a_bounded_place(build):
    service = stage(build)
    program = service.homes[MALLORY] / "many_names"
    shutil.copy(compile_program(build, "many_names.c", "-pthread"), program)
    os.chown(program, MALLORY, MALLORY)
    before = anonymous_bytes(service.process.pid)
    with subprocess.Popen(as_user(MALLORY, program, 400_000)) as process:
        try:
            wait_until("the last name is seen", lambda: "last-name" in names(service, MALLORY, process.pid), LONG_S)
            for by in "thread", "process":
                found = names(service, MALLORY, process.pid, by)
                assert 1 < len(found) <= NAMES_MAX, (by, found)
            assert anonymous_bytes(service.process.pid) < before + BYTES_MAX
        finally:
            process.kill()
