# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A command whose exec falls on a full ring is recorded all the same."""
import os
import signal
import subprocess
import sys
import time

from machine import NOBODY, Folder, Skip, everybodys, need_root, rows
from service import wait_until
from wire import BYTES, DONE, FAILURE, FINISH, READY, RECORD, Private, field, fields, hello

SECONDS = 20
SANITIZED = "test_a_command_whose_exec_falls_on_a_full_ring_is_recorded",

TOUCH = """
import mmap, os, sys
def touch(blocks):
    for _ in range(blocks):
        block = mmap.mmap(-1, 2048 * mmap.PAGESIZE)
        block.madvise(15)  # MADV_NOHUGEPAGE
        for at in range(0, 2048 * mmap.PAGESIZE, mmap.PAGESIZE):
            block[at] = 1
        block.close()
"""
# What is recorded: it waits for a word, and only then touches pages.
COMMAND = TOUCH + """
sys.stdin.readline()
touch(10)
print("done", flush=True)
sys.stdin.readline()
"""
# It holds until it is let go, as mperfctl's own child does; but then it fills its hart's ring before it
# becomes the command.
HOLDER = TOUCH + """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.read(0, 1)
touch(200)
os.execv(sys.argv[1], sys.argv[1:])
"""


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rpartition(")")[2].split()[0] == "T"


def is_command(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().split(b"\0")[2:3] == [COMMAND.encode()]


def finish(daemon, path):
    daemon.request(2, FINISH, field(1, 1))
    with open(path, "wb") as out:
        while True:
            case, content = daemon.answer(BYTES, DONE, FAILURE)
            if case != BYTES:
                break
            out.write(next(value for number, value in fields(content) if number == 1))
    assert case == DONE, content


def pages_recorded(build, daemon_of, folder, as_user=()):
    """How many page faults of the command a recording holds, and the answer that says so."""
    python = "/usr/bin/python3" if as_user else sys.executable
    if not os.access(python, os.X_OK):
        raise Skip(f"no {python}, which every user may run")
    held = subprocess.Popen([*as_user, python, "-c", HOLDER, python, "-c", COMMAND],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    daemon = daemon_of()
    try:
        daemon.send(hello(1))
        target = field(2, bytes(varint_of(held.pid))) + field(3, 1)
        daemon.request(1, RECORD, field(1, target) + field(3, b"page-faults"))
        case, said = daemon.answer(READY, FAILURE)
        if case == FAILURE and as_user:
            raise Skip(f"an ordinary user may not sample here: {said}")
        assert case == READY, said
        os.kill(daemon.process.pid, signal.SIGSTOP)
        wait_until("it is stopped", lambda: is_stopped(daemon.process.pid))
        held.stdin.write(b"x")
        held.stdin.flush()
        wait_until("it is the command", lambda: is_command(held.pid))
        os.kill(daemon.process.pid, signal.SIGCONT)
        time.sleep(2)  # some drains: there is room again
        held.stdin.write(b"\n")
        held.stdin.flush()
        assert held.stdout.readline() == b"done\n"
        finish(daemon, folder / "r")
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)
        held.kill()
        held.wait()
        daemon.end()
    found = rows(build, "hotspots", "-i", folder / "r", "--event", "page-faults", "--by", "module")
    assert found["provenance"]["lost"]["ring overrun"] > 1000, found["provenance"]
    return sum(row["samples"] for row in found["rows"]), found


def varint_of(n):
    while n > 127:
        yield n & 127 | 128
        n >>= 7
    yield n


def expect_pages(build, daemon_of, folder, as_user=()):
    n, found = pages_recorded(build, daemon_of, folder, as_user)
    assert n > 1000, (n, found["provenance"])  # of 20480; a ring may overrun again
    # and they are found in the command's files
    assert found["rows"][0]["module"] not in ("[unknown]", "-", None), found["rows"]


def test_a_command_whose_exec_falls_on_a_full_ring_is_recorded(build):
    need_root()
    with Folder() as folder:
        expect_pages(build, lambda: Private(build, env=dict(os.environ, TMPDIR=str(folder))), folder)


def test_also_where_an_ordinary_user_records_it(build):
    need_root()
    with Folder() as folder:
        environment = dict(os.environ, **everybodys(build, folder))
        os.chmod(folder, 0o755)
        expect_pages(build, lambda: Private(folder, user=65534, group=65534, extra_groups=[],
                                            env=environment), folder, NOBODY)
