# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of Mallory's and Eve's at the feed's socket: what they fill is not all that there is."""
import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import termios
import time

import feed_program as feed
from attacked import EVE, MALLORY, VICTOR, Stage, as_user, shared
from counted import program
from machine import ROOT
from service import wait_until
from test_attack_limits import Work, answered, being
from test_feed import stored

SECONDS = 20
WAITS = "programs and flushes"
TEXT_BYTES = 3900  # of a region: its name, and as much for its source
PROGRAM_MB, ALL_MB = 4, 16
PROGRAMS = 24

_stage = []


def stage(build):
    return shared(_stage, lambda: Stage(build, flush="1s", program_bytes_max=f"{PROGRAM_MB}M",
                                        feed_bytes_max=f"{ALL_MB}M", programs_max=str(PROGRAMS),
                                        programs_per_user_max=str(PROGRAMS)))


def is_read(program):
    """All that it sent. Source: man 7 unix, SIOCOUTQ."""
    return struct.unpack("i", fcntl.ioctl(program.socket, termios.TIOCOUTQ, bytes(4)))[0] == 0


def program_of(service, uid, n_regions=0):
    """A program of that user's with so many regions; None: the daemon hung up on it."""
    with being(uid):
        program = feed.Connection(service.feed)
    regions = [feed.region(i + 1, f"{i}-".ljust(TEXT_BYTES, "x"), "y" * TEXT_BYTES) for i in range(n_regions)]
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        program.send(feed.hello(), *regions, feed.round_())
        wait_until("it is read", lambda: is_read(program))
    if program.is_hung_up_on(0.2):
        program.close()
        return None
    return program


@contextlib.contextmanager
def held():
    """Programs, which are closed at the end."""
    programs = []
    try:
        yield programs
    finally:
        for program in programs:
            program.close()


def take_all(service, uid, programs, *sizes):
    """Programs of each of these sizes, until one more is hung up on."""
    for size in sizes:
        while program := program_of(service, uid, size):
            programs.append(program)


def none_is_left(service):
    wait_until("what was held is given back", lambda: service.ask("status")["feed"][0]["programs"] == 0)


def test_memory_of_two_users_programs_is_not_all_that_there_is(build):
    service = stage(build)
    nearly = (PROGRAM_MB << 20) // (2 * TEXT_BYTES + 400)
    with held() as programs:
        for uid in MALLORY, EVE:
            take_all(service, uid, programs, nearly, nearly // 16)
        used = service.ask("status")["feed"][0]["bytes"] >> 20
        print(f"  {len(programs)} programs hold {used} of {ALL_MB} MB")
        assert used >= ALL_MB / 2
        victors = program_of(service, VICTOR, nearly // 4)
        assert victors, service.ask("status")["feed_fault"]
        victors.close()
    none_is_left(service)


def test_two_users_programs_do_not_take_all_connections(build):
    service = stage(build)
    with held() as programs:
        for uid in MALLORY, EVE:
            take_all(service, uid, programs, 0)
        for uid in VICTOR, 0:
            program = program_of(service, uid)
            assert program, f"user {uid} has no place beside {len(programs)} programs"
            programs.append(program)
    none_is_left(service)


# --- connecting ------------------------------------------------------------------------------------

# Connects and goes, as fast as may be, until it is killed.
CONNECTS = """
import socket, sys
while True:
    with socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2])) as s:
        try:
            s.connect(sys.argv[1])
        except OSError:
            pass
"""
# The same, and says something long before it goes: a table that is parsed.
TELLS = """
import sys
sys.path.insert(0, sys.argv[3])
import feed_program as feed
table = feed.Table()
for i in range(3000):
    table.counter((table.scope(feed.FUNCTION, f"f{i}"), "entries", 1))
messages = [feed.hello(), feed.object_(n_counters=3000, build_id=b""), *feed.tables(table)]
while True:
    try:
        with feed.Connection(sys.argv[1]) as program:
            program.socket.settimeout(1)
            program.send(*messages)
    except OSError:
        pass
"""
CROWD = 4
BRIEF = 10
ATTACK_S = 3


@contextlib.contextmanager
def crowd_of(uid, script, path, kind="SOCK_SEQPACKET"):
    """Processes of that user's that run it."""
    command = as_user(uid, sys.executable, "-c", script, path, kind, ROOT / "tests" / "system")
    processes = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(CROWD)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def share_of_the_loop(service):
    work = Work(service.process.pid)
    time.sleep(ATTACK_S)
    return work.share()


def test_who_connects_again_and_again_has_a_part_of_the_loop(build):
    service = stage(build)
    for path, kind in (service.feed, "SOCK_SEQPACKET"), (service.socket, "SOCK_STREAM"):
        with crowd_of(MALLORY, CONNECTS, path, kind):
            share = share_of_the_loop(service)
            answered(service, VICTOR, "status")
        print(f"  {kind}: the loop ran for {share:.2f} of the time in which it could have")
        assert share < 0.45, f"{kind}: {share:.2f} of the time"


def test_programs_that_tell_much_and_go_have_their_users_part_of_the_loop(build):
    service = stage(build)
    with crowd_of(MALLORY, TELLS, service.feed):
        share = share_of_the_loop(service)
    print(f"  the loop ran for {share:.2f} of the time in which it could have")
    assert share < 0.45, f"{share:.2f} of the time"
    none_is_left(service)


def test_a_program_is_heard_while_another_user_fills_the_queue(build):
    """It is over before it would try a second time."""
    service = stage(build)
    brief = shutil.copy(program(build), service.folder / "brief")
    feed_path = dict(os.environ, MPERF_FEED=str(service.feed))
    with crowd_of(MALLORY, CONNECTS, service.feed):
        pids = []
        for _ in range(BRIEF):
            with subprocess.Popen(as_user(VICTOR, brief, "threads", "20"), env=feed_path) as victors:
                pids.append(victors.pid)
            assert victors.returncode == 0

    def heard():
        known = {pid for pid, *_ in stored(service)}
        return [pid for pid in pids if pid in known]
    # each waits 0.1 s for its place, which a busy machine may take longer to give
    wait_until("most are heard", lambda: 2 * len(heard()) >= len(pids), 10)
    print(f"  {len(heard())} of {len(pids)} programs are heard")
