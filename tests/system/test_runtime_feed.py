# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whom the runtime tells: daemons that are slow, dead, talk nonsense or are not there, and files."""
import os
import subprocess

from counted import (A, CONSTRUCTED, EARLY, LIBRARY_COUNTERS, SANITIZE, Told, edges, environment,
                     library, library_sums, linked, program, ran, threads_of)
from feed import Daemon, Program, make, read_file
from machine import Folder, Skip, need_root

SECONDS = 14
WAITS = "programs that tell every second"


# --- daemons --------------------------------------------------------------------------------------

def test_without_a_daemon_nothing_happens(build):
    with Folder() as folder:
        ran(program(build), "threads", 20, MPERF_FEED=folder / "nobody")
        assert not list(folder.iterdir())
        ran(program(build), "threads", 20, MPERF_FEED="/nowhere/" + "x" * 200)
        (folder / "file").write_text("no socket")
        ran(program(build), "threads", 20, MPERF_FEED=folder / "file")
        assert (folder / "file").read_text() == "no socket"


def test_threads_that_are_gone_cost_no_memory_where_nobody_listens(build):
    """Each of them has a record and a block of counters, three pages that it wrote to."""
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer keeps memory of its own for each thread")
    with Folder() as folder:
        for feed in "", folder / "nobody":
            few, many = (int(ran(edges(build), "churn", n, MPERF_FEED=feed).stdout)
                         for n in (100, 3000))
            assert many < 2 * few, (feed, few, many)


def test_an_empty_name_switches_it_off(build):
    with Folder() as folder, Told(folder, program(build), "waits", 1, MPERF_FEED="") as told:
        told.ready()
        assert threads_of(told.process.pid) == 1
        told.go_on()
        told.ready()
        told.go_on()
        told.ends()


def test_switched_off_it_makes_no_system_call_and_reads_no_clock(build):
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer makes system calls of its own")
    ran(edges(build), "confined", MPERF_FEED="")
    ran(edges(build), "filtered", library(build), MPERF_FEED="")


def test_a_program_that_confines_itself_later_is_not_killed_and_counts_on(build):
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer makes system calls of its own")
    with Folder() as folder:
        ran(edges(build), "confines", library(build), MPERF_OUTPUT=folder / "out", MPERF_PERIOD=10)
        told = Program(read_file(folder / "out"))
        own, = [o for o, m in told.objects.items() if m.n_counters != LIBRARY_COUNTERS]
        assert told.sum(A, object=own) == 3 * 102 and told.last, (told.sum(A, object=own), told.last)
        assert set(library_sums(told, 1)[0].values()) == {3}, library_sums(told, 1)
        for period in 10, 1000:  # with nobody to tell, it looks for a daemon each three seconds only
            for _ in range(3):
                ran(edges(build), "confines", library(build), MPERF_FEED=folder / "nobody",
                    MPERF_PERIOD=period)


def test_a_daemon_that_comes_later_hears_all(build):
    with Folder() as folder, Told(folder, program(build), "waits", 1000) as told:
        told.ready()
        with Daemon(folder / "feed") as daemon:
            connection = daemon.accept()
            connection.read_until(lambda p: p.sum(A) == 1000)
            assert connection.program.sum(EARLY) == CONSTRUCTED


def test_a_daemon_that_dies_and_returns_hears_the_rest(build):
    with Folder() as folder, Told(folder, program(build), "waits", 1000) as told:
        with Daemon(folder / "feed") as daemon:
            connection = daemon.accept()
            told.ready()
            connection.read_until(lambda p: p.sum(A) == 1000 and p.sum(EARLY) and p.rounds)
            connection.close()
        os.unlink(folder / "feed")
        told.go_on()
        told.ready()
        with Daemon(folder / "feed") as daemon:
            connection = daemon.accept()
            connection.read_until(lambda p: p.sum(A))
            assert connection.program.sum(A) == 5 and connection.program.sum(EARLY) == 0
            told.go_on()
            told.ends()
            assert connection.read_all().last


def test_a_daemon_that_does_not_read_holds_nobody_up(build):
    """Libraries that come and go fill the socket many times over."""
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "library", library(build), 40, period=10) as told:
        connection = daemon.accept()
        connection.read_until(lambda p: p.hello)
        told.process.wait(60)  # without one more message read
        told.ends()
        connection.read_all()
    # What was taken is sound, and no more than the socket held.
    assert 0 < len(connection.program.objects) < 40, len(connection.program.objects)
    assert not connection.program.last


def test_a_daemon_that_was_behind_hears_all(build):
    """40 periods of 32 KB each are more than the socket holds: they come as fewer, and are all there."""
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "floods", library(build), 40, period=10) as told:
        connection = daemon.accept()
        connection.read_until(lambda p: p.hello)
        told.ready()
        connection.read_until(lambda p: len(p.objects) == 2)  # a round may come before the library
        full = lambda p: all(set(sums.values()) == {40} and len(sums) == LIBRARY_COUNTERS - 4
                             for sums in library_sums(p, 1))
        while not (connection.read() and connection.messages[-1].type == "ROUND"
                   and full(connection.program)):
            pass
        rounds = sum(m.type == "DELTAS" and m.n > 100 for m in connection.messages)
        assert rounds < 30, rounds
        told.go_on()
        told.ends()


def test_a_thread_that_ends_while_the_daemon_is_behind_is_heard_whole(build):
    """Its last counts come after the round that filled the socket had looked at it."""
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "ends-behind", library(build), period=10) as told:
        connection = daemon.accept()
        connection.read_until(lambda p: p.hello)
        wanted = int(told.process.stdout.readline())
        told.ready()
        connection.read_until(lambda p: ("thread", 1) in p.gone)
        assert connection.program.sum(A, thread=1) == wanted, (connection.program.sum(A), wanted)
        told.go_on()


def test_a_slow_daemon_hears_all(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, linked(build, "waits-library", "program.c"), "waits", 1000, period=10) as told:
        connection = daemon.accept()
        told.ready()
        told.go_on()
        told.ready()
        while connection.program.sum(A) < 1005:  # one message, then many periods of silence
            assert connection.read()
            try:
                told.process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        assert connection.program.sum(A) == 1005
        told.go_on()
        told.ends()


def test_a_daemon_that_has_the_tables_is_not_sent_them_again(build):
    for wanted in (0, 1):
        with Folder() as folder, Daemon(folder / "feed") as daemon, \
                Told(folder, program(build), "waits", 1000, period=60000) as told:
            connection = daemon.accept()
            connection.read_until(lambda p: p.objects)
            told.ready()
            for number in connection.program.objects:
                connection.want(number, wanted)
            connection.ask(now=1)
            connection.read_until(lambda p: p.sum(A) == 1000)
            assert bool(connection.program.pieces) == bool(wanted), connection.program.pieces


def test_a_daemon_that_does_not_answer_is_sent_the_tables_at_the_end(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "waits", 1000, period=60000) as told:
        connection = daemon.accept()
        told.ready()
        told.go_on()
        told.ready()
        told.go_on()
        told.ends()
        connection.read_all()
        assert connection.program.last and connection.program.pieces
        assert connection.program.sum(A) == 1005


def test_the_daemon_asks_for_rounds(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "waits", 1000, period=60000) as told:
        connection = daemon.accept()
        told.ready()
        connection.read_until(lambda p: p.rounds)
        assert connection.program.hello.period_ms == 60000
        connection.ask(now=1)
        connection.read_until(lambda p: p.sum(A) == 1000)
        connection.ask(period_ms=10)
        rounds = connection.program.rounds
        connection.read_until(lambda p: p.rounds > rounds + 5)


def test_a_daemon_that_talks_nonsense_is_not_listened_to(build):
    good = make("ASK", period_ms=10)
    nonsense = [b"", b"x", good[:-1], good + b"x", b"\0" * 16, make("ASK", period_ms=1),
                make("ASK", period_ms=2**32 - 1), make("ASK", now=2), make("GRANT", n=5),
                make("GRANT", thread=99, n=1), make("SELECT", globs_bytes=7), make("HELLO"),
                make("SELECT", rest=b"x" * 8000, globs_bytes=8000), os.urandom(5000)]
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "waits", 1000, period=100) as told:
        connection = daemon.accept()
        told.ready()
        descriptors = lambda: len(os.listdir(f"/proc/{told.process.pid}/fd"))
        connection.read_until(lambda p: p.rounds)
        before = descriptors()
        for message in nonsense[1:]:
            connection.socket.send(message)
            rounds = connection.program.rounds
            connection.read_until(lambda p, n=rounds: p.rounds > n + 1)
        connection.grant(99, [0, 1, 2])
        rounds = connection.program.rounds
        connection.read_until(lambda p: p.rounds > rounds + 2)
        assert descriptors() == before
        told.go_on()
        told.ready()
        told.go_on()
        told.ends()
        assert connection.read_all().sum(A) == 1005


def test_descriptors_that_a_program_takes_for_itself_are_left_alone(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "takes-descriptors", period=10) as told:
        connection = daemon.accept()
        told.ready()
        connection.read_until(lambda p: p.rounds)
        told.go_on()
        told.ready()
        # It finds its socket gone, comes again, and its own file stays empty.
        again = daemon.accept()
        again.read_until(lambda p: p.rounds > 3)
        told.go_on()
        told.ends()


def test_descriptors_are_closed_at_exec(build):
    with Folder() as folder, Daemon(folder / "feed") as daemon, \
            Told(folder, program(build), "waits", 1) as told:
        connection = daemon.accept()
        told.ready()
        connection.read_until(lambda p: p.rounds)
        flags = {}
        for fd in os.listdir(f"/proc/{told.process.pid}/fd"):
            with open(f"/proc/{told.process.pid}/fdinfo/{fd}", encoding="ascii") as info:
                flags[int(fd)] = int(next(x for x in info if x.startswith("flags")).split()[1], 8)
        ours = {fd: f for fd, f in flags.items() if fd > 2}
        assert ours and all(f & os.O_CLOEXEC for f in ours.values()), ours


# --- files ----------------------------------------------------------------------------------------

def test_a_file_that_cannot_be_written_changes_nothing(build):
    with Folder() as folder:
        for bad in (folder, folder / "no" / "folder", "/dev/null", "/dev/full", "/proc/self/mem"):
            ran(program(build), "threads", 3, MPERF_OUTPUT=bad)
        assert not list(folder.iterdir())


def test_a_full_disc_leaves_whole_messages(build):
    """A limit of the file's size is the disc's end that anybody can have."""
    with Folder() as folder:
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", program(build), "library", library(build), "3"],
            env=environment(MPERF_OUTPUT=folder / "out"), capture_output=True, timeout=60)
        assert done.returncode == 0, done
        assert (folder / "out").stat().st_size <= 1024
        assert Program(read_file(folder / "out")).hello


def test_a_setuid_program_does_not_listen_to_its_environment(build):
    need_root()
    if build.name in SANITIZE:
        raise Skip("shown by the plain run; a sanitizer does not work in a setuid program")
    with Folder() as folder:
        copy = folder / "program"
        copy.write_bytes(program(build).read_bytes())
        os.chown(copy, 65534, 65534)
        os.chmod(copy, 0o6755)
        os.chmod(folder, 0o777)
        done = subprocess.run([copy, "threads", "1"], capture_output=True, timeout=60,
                              env=environment(MPERF_OUTPUT=folder / "out"))
        assert done.returncode == 0 and not (folder / "out").exists(), done
