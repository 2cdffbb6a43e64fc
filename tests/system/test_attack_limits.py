# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What can be used up is used up by one user, or by some, and another one is served all the same."""
import contextlib
import os
import re
import resource
import select
import shutil
import socket
import subprocess
import time
from pathlib import Path

from attacked import DAEMON, MALLORY, VICTOR, UnitService, as_user
from counted import SANITIZE
from machine import Folder, compile_program
from rates import allowing, rate_allowed
from service import Service, children_of, wait_until
from wire import CANCEL, DONE, FAILURE, LIST, READY, RECORD, STATUS, TOP, Client, field, fields, hello

SECONDS = 90

STAT = 5        # of Request.body
LIMIT = 5       # of FailureKind
OTHERS = range(60401, 60413)
# Programs of an attacker, until they are killed.
SLEEP = "echo here; exec sleep 600"
THREADS = """
import threading, time
for _ in range(300):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("here", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def victim(build, kind=UnitService, **keys):
    """A service that is attacked, and still runs at the end."""
    with Folder() as folder, kind(build, folder, **keys) as service:
        yield service
        assert service.process.poll() is None, service.said()


@contextlib.contextmanager
def being(uid):
    """Connections that are made in the body are this user's."""
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def client_of(service, uid):
    """Greeted as well as it goes: the daemon may have hung up before."""
    with being(uid):
        client = Client(service.socket, greet=False)
    with contextlib.suppress(BrokenPipeError):
        client.send(hello(1, 1, b"a test"))
    return client


@contextlib.contextmanager
def program_of(uid, *command):
    """A program of that user's, which has said "here"."""
    with subprocess.Popen(as_user(uid, *command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True) as program:
        try:
            assert program.stdout.readline() == "here\n"
            yield program
        finally:
            program.kill()


def own(pid):
    """A Target: one process, and all that it will start."""
    return field(2, pid)


class Work:
    """What a process' own thread did since then: how long it ran, and for what part of the time in which it
    could have. Time in which it waited for a CPU that others had is no time. Source:
    Documentation/scheduler/sched-stats.rst of Linux, /proc/<pid>/schedstat."""

    def __init__(self, pid):
        self.path = Path(f"/proc/{pid}/schedstat")
        self.begin_ns, (self.ran_ns, self.waited_ns) = time.monotonic_ns(), self._look()

    def _look(self):
        ran, waited, _ = map(int, self.path.read_text().split())
        return ran, waited

    def seconds(self):
        return (self._look()[0] - self.ran_ns) / 1e9

    def share(self):
        ran, waited = self._look()
        could = time.monotonic_ns() - self.begin_ns - (waited - self.waited_ns)
        return (ran - self.ran_ns) / max(could, 1)


def memory_kb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1))


def reason(content):
    """(kind, what) of a Failure."""
    found = dict(fields(content))
    return found.get(1, 0), found.get(2, b"").decode()


def outcome(client):
    """How a request begins: "ready", or why it was refused."""
    case, content = client.answer(READY, DONE, FAILURE)
    if case != FAILURE:
        return "ready"
    kind, what = reason(content)
    assert kind == LIMIT, (kind, what)
    return what


def answered(service, uid, *command, seconds=60):
    """That user is answered."""
    done = service.user(uid, *command, timeout=seconds)
    assert done.returncode == 0, done.stderr


def limits(service):
    """The limits of users, as root sees them."""
    return {row["limit"]: row for row in service.ask("status").get("limit", [])}


def flood(clients, case, body, times):
    """Send each that many times, as far as the socket takes it, without reading any answer."""
    request = 0
    for _ in range(times):
        for client in clients:
            request += 1
            with contextlib.suppress(BlockingIOError):
                client.socket.setblocking(False)
                client.request(request, case, body)


class FewDescriptors(UnitService):
    """The unit's service with less than its LimitNOFILE."""
    FILES = 1024

    def command(self):
        return [f"--nofile={self.FILES}" if str(word).startswith("--nofile=") else word
                for word in super().command()]


class MuchLocked(UnitService):
    """The unit's service with its LimitMEMLOCK, too, which rings of more than a recording or two want; as
    root, where that limit may not be raised (a container)."""

    def command(self):
        first, *rest = super().command()
        if resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] == resource.RLIM_INFINITY:
            return [first, "--memlock=unlimited", *rest]
        return [self.folder / "mperfd", *Service.command(self)[1:]]


def test_when_memory_runs_out_the_parser_goes_before_the_daemon(build):
    """Files of others fill it; in one control group the kernel takes who has most, by these numbers."""
    def score(pid):
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())

    with victim(build) as service:
        workers = wait_until("its workers are there", lambda: [
            pid for pid in children_of(service.process.pid)
            if Path(f"/proc/{pid}/comm").read_text() == "mperf-namer\n"] or None)
        wait_until("one of them goes first", lambda: any(
            score(pid) > score(service.process.pid) for pid in workers))


def test_counters_of_many_threads_leave_the_daemon_its_descriptors(build):
    with victim(build, FewDescriptors, flush="1s") as service, \
            program_of(MALLORY, "python3", "-c", THREADS) as threads:
        crowd = [client_of(service, MALLORY) for _ in range(6)]
        said = []
        for client in crowd:  # 602 descriptors each
            client.request(1, STAT, field(1, own(threads.pid)) + field(2, b"cpu-clock:u") +
                           field(2, b"task-clock:u"))
            said.append(outcome(client))
        # the harts are looked at each second
        time.sleep(2.5)
        assert service.process.poll() is None, service.said()
        assert all("descriptors" in what for what in said if what != "ready"), said
        assert said.count("ready") <= 1, said
        answered(service, VICTOR, "status")
        answered(service, VICTOR, "stat", "-e", "cpu-clock:u", "--", "true")
        answered(service, VICTOR, "list")
        assert "descriptors ran out" not in service.said(), service.said()
        assert service.ask("status")["rate"][0].get("trouble") is None


def test_without_any_descriptor_the_daemon_goes_on_and_says_so(build):
    with victim(build, flush="1s") as service, client_of(service, VICTOR) as before:
        def may_open(most):  # the soft limit: whose process it is may set it
            subprocess.run(as_user(DAEMON, "prlimit", f"--pid={service.process.pid}",
                                   f"--nofile={most}:"), check=True)

        def starve():
            """No more than it has. poll(2) wants the limit above the number of what it waits for, so it
            is not 0."""
            held = {int(fd.name) for fd in Path(f"/proc/{service.process.pid}/fd").iterdir()}
            may_open(min(set(range(1024)) - held))
            return "descriptors ran out" in service.said()
        wait_until("it says what it lacks",
                   lambda: service.process.poll() is not None or starve(), seconds=30)
        time.sleep(3)  # a segment's windows, looks at harts, at the store
        assert service.process.poll() is None, service.said()
        before.request(1, STATUS, b"")
        told, cases = b"", []
        while DONE not in cases and FAILURE not in cases:
            for number, value in before.message():
                told += value if number == 3 else b""
                cases = [case for case, _ in fields(value)] if number == 3 else []
        assert b"descriptors ran out" in told
        may_open(4096)
        answered(service, VICTOR, "status")
        stored = service.ask("status")["account"][0]["stored"]
        wait_until("samples are stored", lambda:
                   service.ask("status")["account"][0]["stored"] > stored)


def test_answers_that_nobody_reads_keep_no_query_from_others(build):
    with victim(build, flush="1s", requests_per_second_max="10000") as service:
        silent = [client_of(service, MALLORY) for _ in range(6)]
        for client in silent:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        workers = set(children_of(service.process.pid))
        flood(silent, STATUS, b"", 1000)  # what they are sent fills all buffers
        flood(silent, LIST, b"", 4)

        def all_places_are_kept():
            kept = set(children_of(service.process.pid)) - workers
            time.sleep(1)
            return len(kept & set(children_of(service.process.pid))) >= 4
        with contextlib.suppress(AssertionError):  # that is the attack: where it fails all is well
            wait_until("four places are taken", all_places_are_kept, seconds=15)
        answered(service, VICTOR, "list")
        answered(service, VICTOR, "hotspots", "--since", "-1h")
        service.ctl("hotspots", "--since", "-1h", timeout=60)


def test_a_silent_client_holds_bytes_of_the_cache_and_no_process(build):
    with victim(build, flush="1s") as service:
        with client_of(service, MALLORY) as silent:
            silent.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            workers = set(children_of(service.process.pid))
            for number in range(1, 17):
                silent.request(number, LIST, b"")
            wait_until("all queries have been answered",
                       lambda: limits(service)["waiting"]["held"] == 0 and
                       limits(service)["queries"]["held"] == 0 and
                       not set(children_of(service.process.pid)) - workers)
        wait_until("all is given back", lambda: limits(service)["cache"]["held"] == 0)


def test_recordings_of_one_user_are_bounded_in_sum_and_another_one_records(build):
    with victim(build, MuchLocked, flush="1s") as service, \
            program_of(MALLORY, "sh", "-c", SLEEP) as program:
        crowd = [client_of(service, MALLORY) for _ in range(31)]
        said = []
        for number in (1, 2):
            for client in crowd:
                client.request(number, RECORD, field(1, own(program.pid)) +
                               field(3, b"cpu-clock:u"))
                said.append(outcome(client))
        assert len(children_of(service.process.pid)) <= 40, said
        refused = [what for what in said if what != "ready"]
        assert refused and all("recordings of their own events" in what for what in refused), said
        answered(service, VICTOR, "record", "-e", "cpu-clock:u", "-o",
                 service.homes[VICTOR] / "own.mprf", "--", "true")
        answered(service, VICTOR, "record", "-g", "fp", "-o", service.homes[VICTOR] / "shared.mprf", "--", "true")


@allowing()
def test_a_recording_that_ends_for_want_of_room_says_so(build):
    with victim(build, MuchLocked, flush="1s", budget="16M") as service:
        home = service.homes[VICTOR]
        noise = shutil.copy(compile_program(build, "noise.c"), home)
        done = service.user(VICTOR, "record", "-e", "cpu-clock:u", "-F", rate_allowed(4000), "-o",
                            home / "own.mprf", "--", noise, home, "8", timeout=120)
        assert "it ended early: your recordings have used up your space" in done.stderr, done.stderr


def test_unread_answers_of_all_connections_have_one_limit(build):
    keys = {"client_bytes_max": "2M", "requests_per_second_max": "10000"}
    with victim(build, flush="1s", **keys) as service:
        answered(service, VICTOR, "status")
        before_kb = memory_kb(service.process.pid)
        crowd = [client_of(service, MALLORY) for _ in range(30)]
        end = time.monotonic() + 15
        while time.monotonic() < end:
            flood(crowd, STATUS, b"", 50)
        grown_kb = memory_kb(service.process.pid) - before_kb
        # 2 MB, some KB more for each connection, and what samples of all that runs here take, which is
        # some ten MB beside other tests; 30 connections had 60 MB. Sanitizers keep what was freed.
        assert grown_kb < 45 * 1024 or build.name in SANITIZE, f"{grown_kb} KB more"
        answered(service, VICTOR, "status")
        assert limits(service)["unread"]["held"] < 8 << 20


def test_counters_read_a_thousand_times_a_second_take_a_share_of_the_loop(build):
    with victim(build, flush="1s") as service, program_of(MALLORY, "sh", "-c", SLEEP) as program:
        crowd = [client_of(service, MALLORY) for _ in range(20)]
        for number in range(1, 17):
            for client in crowd:
                client.request(number, STAT, field(1, own(program.pid)) +
                               field(2, b"task-clock:u") + field(3, 1))
        assert outcome(crowd[0]) == "ready"
        work, end = Work(service.process.pid), time.monotonic() + 8
        while time.monotonic() < end:  # they do read
            for ready in select.select([c.socket for c in crowd], [], [], 0.1)[0]:
                ready.recv(1 << 20)
        assert work.share() < 0.4, f"{work.share():.2f} of the time"
        answered(service, VICTOR, "status")


def test_who_asks_on_two_hundred_connections_asks_as_often_as_on_one(build):
    with victim(build, flush="1s") as service:
        crowd = [client_of(service, MALLORY) for _ in range(200)]
        flood(crowd, STATUS, b"", 150)
        took = []
        for _ in range(3):
            work = Work(service.process.pid)
            with client_of(service, VICTOR) as other:
                other.request(1, STATUS, b"")
                assert other.answer(DONE, FAILURE)[0] == DONE
            took.append(work.seconds())
            flood(crowd, STATUS, b"", 50)
            for ready in select.select([c.socket for c in crowd], [], [], 0)[0]:
                ready.recv(1 << 20)
        print("VICTOR waited for", [f"{s:.3f} s" for s in took], "of the daemon's work")
        assert max(took) < 0.5, f"VICTOR waited for {took} s of the daemon's work"


def test_two_users_do_not_fill_all_places_nor_do_twelve(build):
    with victim(build, flush="1s") as service:
        for users in OTHERS[:2], OTHERS[2:]:
            crowd = [client_of(service, uid) for uid in users for _ in range(256)]
            answered(service, VICTOR, "status")
            service.ctl("status")
            with client_of(service, VICTOR) as victor:
                victor.request(1, STATUS, b"")
                assert victor.answer(DONE, FAILURE)[0] == DONE
            for client in crowd:
                client.socket.close()


def test_tops_of_one_user_are_bounded(build):
    with victim(build, flush="1s") as service:
        crowd = [client_of(service, MALLORY) for _ in range(2)]
        said = []
        for number in range(1, 11):
            for client in crowd:
                client.request(number, TOP, field(1, 10000 + 100 * len(said)))  # each at its own pace
                said.append(outcome(client))
        refused = [what for what in said if what != "ready"]
        assert refused and all("tops" in what for what in refused), said
        with client_of(service, VICTOR) as victor:
            victor.request(1, TOP, b"")
            assert outcome(victor) == "ready"
            victor.request(2, CANCEL, field(1, 1))
