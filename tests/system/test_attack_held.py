# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A user's processes whose memory lock is held, so that a read of their files in /proc blocks for as long as
the user likes (held.c), keep mperfd neither from starting nor from serving others."""
import contextlib
import os
import subprocess
import time

from attacked import MALLORY, VICTOR, UnitService, as_user
from machine import Folder, Skip, compile_program, need_root
from service import wait_until

SECONDS = 20
BY_ITSELF = "all that reads the files of all processes in /proc, as ps does, waits for those that are held"

HELD = 6      # more than those of one user that mperfd waits for
AT_ONCE_S = 5
START_S = 15
SILENT = "process that did not answer"
SPIN = "import time\nwhile True: pass"


@contextlib.contextmanager
def held(build, folder, *how):
    """pids of Mallory's, which are held."""
    need_root()
    if not os.path.exists("/dev/fuse"):
        raise Skip("needs /dev/fuse")
    mount = folder / "held"
    mount.mkdir(mode=0o755)
    with subprocess.Popen([compile_program(build, "held.c"), mount, str(MALLORY), str(HELD), *how],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            pids = [int(pid) for pid in server.stdout.readline().split()]
            if len(pids) != HELD:
                raise Skip("cannot mount FUSE file systems here")
            yield pids
        finally:
            server.stdin.close()


def took_s(do):
    began = time.monotonic()
    do()
    return time.monotonic() - began


def status_of(service, uid):
    done = service.user(uid, "status", timeout=60)
    assert done.returncode == 0, done.stderr


def lost(service):
    rows = service.ask("status")["loss"]
    return sum(row["count"] for row in rows if row["cause"] == SILENT)


def test_held_processes_do_not_keep_mperfd_from_starting(build):
    with Folder() as folder, held(build, folder), \
            subprocess.Popen(as_user(VICTOR, "python3", "-c", SPIN)) as program:
        try:
            began = time.monotonic()
            with UnitService(build, folder, flush="1s") as service:
                took = time.monotonic() - began
                assert took < START_S, took
                assert took_s(lambda: status_of(service, VICTOR)) < AT_ONCE_S

                def named():
                    rows = service.ask("hotspots", "--by", "process", "--since", "-1m")["rows"]
                    return any(row["pid"] == program.pid and SPIN.splitlines()[1] in (row.get("argv") or "")
                               for row in rows)
                wait_until("Victor's program has its arguments", named)
                assert lost(service) > 0
        finally:
            program.kill()


def expect_no_stop(build, *how):
    with Folder() as folder, UnitService(build, folder, flush="1s") as service:
        with held(build, folder, *how) as pids:
            for pid in pids:
                for command in (("stat", "-p", pid, "-e", "task-clock", "--for", "100ms"),
                                ("record", "-p", pid, "--for", "100ms", "-e", "cpu-clock:u",
                                 "-o", service.homes[MALLORY] / f"{pid}"),
                                ("job", "start", "--pid", pid, "a=b")):
                    service.user(MALLORY, *command, timeout=60)
                    assert took_s(lambda: status_of(service, VICTOR)) < AT_ONCE_S, command
        assert service.process.poll() is None


def test_held_processes_do_not_stop_the_loop(build):
    expect_no_stop(build)


def test_processes_in_the_middle_of_an_exec_do_not_stop_the_loop(build):
    expect_no_stop(build, "exec")
