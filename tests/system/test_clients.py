# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clients that misbehave: whatever one of them does, others are answered and sampling goes on."""
import contextlib
import os
import random
import re
import select
import socket
import time

from machine import Folder, leave_to_plain, refused
from service import Service, children_of, wait_until
from wire import (CANCEL, DONE, FAILURE, STATUS, TOP, Client, field, fields, frame, hello)

SECONDS = 22
WAITS = "silent clients until they are hung up on"

COLUMNS = 3       # of Answer.body
USAGE, LIMIT, CANCELLED = 1, 5, 6  # FailureKind
PROMPT_S = 2.0    # an answer that needs nothing but the loop; a loaded machine has its own delays


def failure(content):
    """(kind, what) of a Failure."""
    found = dict(fields(content))
    return found.get(1, 0), found.get(2, b"").decode()


def ask_s(service, times=5):
    """The longest of some answers to another client, in seconds."""
    longest = 0
    for number in range(1, times + 1):
        begin = time.monotonic()
        with Client(service.socket) as other:
            other.request(number, STATUS, b"")
            assert other.answer(DONE, FAILURE)[0] == DONE
        longest = max(longest, time.monotonic() - begin)
    return longest


def account(service):
    """What became of the samples since the start."""
    return service.ask("status")["account"][0]


@contextlib.contextmanager
def undisturbed(build, **keys):
    """A service; the body lets clients of it misbehave, and calls what it is given whenever others
    should be as well off as before."""
    with Folder() as folder, Service(build, folder, **keys) as service:
        quiet_s = ask_s(service)
        before = account(service)

        def check():
            slow_s = ask_s(service)
            assert slow_s < PROMPT_S + 20 * quiet_s, f"{slow_s} s, and {quiet_s} s before"
        yield service, check
        check()
        wait_until("sampling goes on", lambda: account(service)["taken"] > before["taken"])
        after = account(service)
        assert after["lost"] == before["lost"], (before, after)


def until_hung_up(client):
    """All failures that are said until the end of the connection."""
    said = []
    while (message := client.message()) is not None:
        for number, value in message:
            if number == 3:
                said += [failure(v) for case, v in fields(value) if case == FAILURE]
    return said


def memory_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


def test_clients_that_say_nothing_disturb_nobody_and_are_hung_up_on(build):
    with undisturbed(build) as (service, check):
        mute = [Client(service.socket, greet=False) for _ in range(20)]
        check()
        for client in mute:
            (kind, what), = until_hung_up(client)
            assert kind == USAGE and "hello" in what, what


def test_half_a_frame_disturbs_nobody(build):
    with undisturbed(build) as (service, check):
        halves = [Client(service.socket) for _ in range(20)]
        whole = frame(field(2, field(1, 1) + field(STATUS, b"")))
        for n, client in enumerate(halves):
            client.send(whole[:1 + n % (len(whole) - 1)])
        check()
        for n, client in enumerate(halves):  # they were only slow
            client.send(whole[1 + n % (len(whole) - 1):])
            assert client.answer(DONE, FAILURE)[0] == DONE


def test_a_length_of_4_gb_is_refused_at_once(build):
    with undisturbed(build) as (service, check):
        with Client(service.socket) as huge:
            huge.send(b"\xff\xff\xff\xff" + b"x" * 100)
            (kind, what), = until_hung_up(huge)
            assert kind == LIMIT and "size" in what, what
        check()


def test_a_client_that_stops_reading_top_costs_a_bounded_amount_of_memory(build):
    leave_to_plain(build, "they keep freed memory, so the daemon's grows with what others do meanwhile")
    with undisturbed(build) as (service, check):
        with Client(service.socket) as deaf:
            deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.request(1, TOP, field(1, 100) + field(3, b"function"))
            assert deaf.answer(COLUMNS, FAILURE)[0] == COLUMNS
            before_kb = memory_kb(service.process.pid)
            time.sleep(3)
            check()
            assert memory_kb(service.process.pid) < before_kb + 16 * 1024
            deaf.request(2, CANCEL, field(1, 1))  # it is still heard, and the rest is read
            kind, what = failure(deaf.answer(FAILURE)[1])
            assert kind == CANCELLED, what


def test_a_thousand_requests_a_second_are_slowed(build):
    with undisturbed(build, requests_per_second_max="50") as (service, check):
        with Client(service.socket) as hasty:
            sent = answered = 0
            begin = time.monotonic()
            hasty.socket.setblocking(False)

            def push(seconds):
                """Ask as fast as the socket takes it, and read what comes."""
                nonlocal sent, answered
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    with contextlib.suppress(BlockingIOError):
                        hasty.request(sent + 1, STATUS, b"")
                        sent += 1
                    if select.select([hasty.socket], [], [], 0.001)[0]:
                        hasty.buffer += hasty.socket.recv(1 << 20)
                while len(hasty.buffer) >= 4:
                    n = 4 + int.from_bytes(hasty.buffer[:4], "little")
                    if len(hasty.buffer) < n:
                        break
                    whole, hasty.buffer = hasty.buffer[4:n], hasty.buffer[n:]
                    for number, value in fields(whole):
                        cases = [case for case, _ in fields(value)] if number == 3 else []
                        assert FAILURE not in cases, failure(dict(fields(value))[FAILURE])
                        answered += DONE in cases
            push(1)
            check()
            push(1)
            took = time.monotonic() - begin
            assert 0 < answered <= 50 * (took + 2), f"{answered} answers in {took} s"
            assert sent > answered, f"{sent} requests were sent, and all were answered"


def test_two_hundred_clients_at_once_are_all_answered(build):
    with undisturbed(build) as (service, check):
        crowd = [Client(service.socket) for _ in range(200)]
        for n, client in enumerate(crowd):
            client.request(n + 1, STATUS, b"")
        for client in crowd:
            assert client.answer(DONE, FAILURE)[0] == DONE
        check()
        for client in crowd:
            client.socket.close()


def test_a_client_too_many_is_told_which_limit(build):
    with undisturbed(build, clients_max="3") as (service, _):
        crowd = [Client(service.socket) for _ in range(3)]
        for client in crowd:
            assert client.message() is not None

        def one_too_many():  # one of them may have been refused, beside a client that was leaving
            done = service.ctl("status", check=False)
            if done.returncode == 0:
                with contextlib.suppress(OSError):
                    crowd.append(Client(service.socket))
            return done.returncode and done
        refused(wait_until("there is no room", one_too_many), 1, "clients-max", "Close some")
        for client in crowd:
            client.socket.close()
        wait_until("there is room again", lambda: service.ctl("status", check=False).returncode == 0)


def test_garbage_ends_its_own_connection_alone(build):
    chance = random.Random(1)
    with undisturbed(build) as (service, check):
        for n in range(40):
            with Client(service.socket, greet=n % 2) as noisy:
                noise = chance.randbytes(chance.randrange(1, 3000))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    noisy.send(noise)
                    if n % 3 == 0:
                        noisy.send(hello(1) * 3)
                    noisy.socket.shutdown(socket.SHUT_WR)
                    until_hung_up(noisy)
        check()


def test_a_query_that_is_killed_fails_alone(build):
    with undisturbed(build, queries_max="1") as (service, check):
        workers = set(children_of(service.process.pid))
        with Client(service.socket) as asking:
            victims = []

            def ask_and_kill():
                asking.request(len(victims) + 1, 6, b"")  # list tries events out, which takes a while
                victims.append(0)
                end = time.monotonic() + 1
                while time.monotonic() < end:
                    for pid in set(children_of(service.process.pid)) - workers:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, 9)
                    if select.select([asking.socket], [], [], 0)[0]:
                        break
                case, content = asking.answer(DONE, FAILURE)
                return case == FAILURE and "signal 9" in failure(content)[1]
            wait_until("one is killed before it has answered", ask_and_kill)
        check()


def test_clients_are_told_when_the_service_stops(build):
    with Folder() as folder, Service(build, folder) as service:
        idle, looking = Client(service.socket), Client(service.socket)
        looking.request(1, TOP, field(1, 100))
        assert looking.answer(COLUMNS, FAILURE)[0] == COLUMNS
        assert service.stop() == 0
        for client in idle, looking:
            (kind, what), = until_hung_up(client)
            assert kind == CANCELLED and "stopping" in what, what


def test_a_file_that_a_query_finds_broken_is_named_and_set_aside(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        wait_until("something is stored", lambda: account(service)["stored"] > 0)
        assert service.stop() == 0
        sealed, = (service.store / "window").glob("*.mprf")
        service.start()
        wait_until("it is rolled up, so that nobody but a query reads it again",
                   lambda: list((service.store / "hour").glob("*.mprf")))
        whole = sealed.read_bytes()
        sealed.write_bytes(whole[:4096] + b"\x7f" * (len(whole) - 4096))  # the header stays
        found = service.ask("hotspots", "--since", "-1h", "--by", "line")
        assert any(sealed.name in note for note in found["provenance"]["notes"]), found
        wait_until("it is set aside", lambda: list((service.store / "corrupt").glob("*")))
        assert not sealed.exists()
        again = service.ask("hotspots", "--since", "-1h", "--by", "line")
        assert not any(sealed.name in note for note in again["provenance"]["notes"]), again
