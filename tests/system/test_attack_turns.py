# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nothing that a client or a program sends keeps the daemon's loop longer than 50 ms of its thread's own
time. The service is the unit's, the senders are an ordinary user's."""
import contextlib
import json
import os
import socket
import time

import feed_program as feed
from attacked import MALLORY, Stage, shared
from service import wait_until
from wire import DONE, FAILURE, Client, field, frame, fields

SECONDS = 60
SANITIZED = "test_a_frame_that_names_a_process_250000_times", "test_a_table_of_names_that_collide"

# Cases of Request.body.
HOTSPOTS, STAT, TOP = 3, 5, 10
PID_FIELD, STAT_TARGET = 2, 1
stage = []


def service_of(build):
    return shared(stage, lambda: Stage(build, sanitized=True, flush="1s", requests_per_second_max="1000"))


def longest_ms_allowed(build):
    """Sanitizers make the same work take several times as long."""
    return 50 * (6 if build.name == "asan" else 1)


def turns(service):
    status = json.loads(service.ctl("status", "--json").stdout)
    return status["loop"][0]


def as_mallory(do):
    """Run do() in a child that is Mallory; what it returns, as JSON."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        said = "null"
        try:
            os.setgroups([])
            os.setresgid(MALLORY, MALLORY, MALLORY)
            os.setresuid(MALLORY, MALLORY, MALLORY)
            said = json.dumps(do())
        except BaseException as e:  # pylint: disable=broad-except
            said = json.dumps({"failed": repr(e)})
        finally:
            os.write(write_end, said.encode())
            os._exit(0)
    os.close(write_end)
    with open(read_end, encoding="utf-8") as f:
        said = f.read()
    os.waitpid(child, 0)
    found = json.loads(said)
    assert not (isinstance(found, dict) and "failed" in found), found
    return found


def expect_short_turns(build, do):
    """do(service) as Mallory; what it returned. Only three attempts with a long turn fail: once a minute
    for each hart the service may try for itself what it can sample by (sampler/hart_share.c), which is a
    long turn too, and the status does not say which turn that was. What Mallory sends is the same each time,
    so work that grows with it is long each time. What is long only now and then would pass."""
    service = service_of(build)
    for attempt in range(3):
        before = turns(service)
        found = as_mallory(lambda: do(service))
        began = time.monotonic()
        after = turns(service)
        assert time.monotonic() - began < 30, "the loop stood still"
        short = after["long"] == before["long"] or after["lately_ns"] < longest_ms_allowed(build) * 1e6
        if short or build.name == "asan":  # whose time says nothing
            return found
        print(f"  attempt {attempt + 1}: {before} {after}", flush=True)
    raise AssertionError(f"turns of up to {after['lately_ns'] / 1e6} ms, three times")


# --- requests -------------------------------------------------------------------------------------------

def packed(number, n, value=b"\x01"):
    return field(number, value * n)


def said_of(service, case, body):
    """What comes back for one request: "done", the sentence that refuses it, or "hung up"."""
    with Client(service.socket) as client:
        client.request(1, case, body)
        while True:
            message = client.message()
            if message is None:
                return "hung up"
            for number, value in message:
                for kind, content in fields(value) if number == 3 else []:
                    if kind == DONE:
                        return "done"
                    if kind == FAILURE:
                        return dict(fields(content))[2].decode()


def test_a_frame_that_names_a_process_250000_times(build):
    def ask(service):
        own = field(1, os.getpid())[1:]  # as a varint
        return said_of(service, STAT, field(STAT_TARGET, packed(PID_FIELD, 250000, own)) +
                       field(2, b"task-clock"))
    said = expect_short_turns(build, ask)
    assert "more often than mperfd accepts" in said, said


def test_one_more_than_the_limit_is_refused_by_name(build):
    def ask(service):
        return [said_of(service, STAT, field(STAT_TARGET, packed(PID_FIELD, 257))),
                said_of(service, HOTSPOTS, field(3, b"".join(field(2, b"c%d" % i) for i in range(65)))),
                said_of(service, HOTSPOTS, field(3, packed(4, 1025))),
                said_of(service, STAT, b"".join(field(2, b"task-clock") for _ in range(65)))]
    said = expect_short_turns(build, ask)
    for sentence, name, most in zip(said, ("pid", "comm", "cpu", "event"), (256, 64, 1024, 64)):
        assert f"are more than the {most} that one request may name ({name})" in sentence, said


def test_frames_that_say_one_thing_again_and_again(build):
    def send(service):
        outcomes = []
        for piece in (field(1, field(3, b"")), field(15, b""), bytes([0x78, 1]),
                      field(2, field(3, field(3, field(1, 1))))):
            with Client(service.socket) as client:
                client.send(frame(piece * ((1 << 20) // len(piece))))
                client.socket.shutdown(socket.SHUT_WR)
                while client.message() is not None:
                    pass
                outcomes.append("over")
        return outcomes
    assert len(expect_short_turns(build, send)) == 4


def test_requests_with_all_their_fields_at_the_limit(build):
    own = os.getpid()

    def ask(service):
        pids = b"".join(field(2, i) for i in [os.getpid(), *range(own, own + 255)])
        filter_ = (b"".join(field(1, i + 1) for i in range(256)) +
                   b"".join(field(2, b"c" * 15 + b"%02d" % i) for i in range(64)) +
                   b"".join(field(3, b"/a" * 2000 + b"%02d" % i) for i in range(64)) +
                   packed(4, 1000))
        said = []
        for _ in range(4):
            said += [said_of(service, STAT, field(1, pids) + b"".join(
                         field(2, b"task-clock") for _ in range(64))),
                     said_of(service, HOTSPOTS, field(2, b"function") + field(3, filter_)),
                     said_of(service, TOP, field(3, b"function") + field(4, filter_) + field(5, 1 << 20))]
        return said
    assert len(expect_short_turns(build, ask)) == 12


def test_many_connections_that_ask_at_once(build):
    def ask(service):
        with contextlib.ExitStack() as stack:
            clients = []
            for _ in range(32):
                with contextlib.suppress(OSError):
                    clients.append(stack.enter_context(Client(service.socket)))
            body = field(STAT_TARGET, packed(PID_FIELD, 20000)) + field(2, b"task-clock")
            for client in clients:
                with contextlib.suppress(OSError):
                    for i in range(1, 17):
                        client.request(i, STAT, body)
            for client in clients:
                with contextlib.suppress(OSError):
                    client.socket.shutdown(socket.SHUT_WR)
                    client.socket.settimeout(120)
                    while client.message() is not None:
                        pass
            return len(clients)
    assert expect_short_turns(build, ask) > 0


# --- tables ---------------------------------------------------------------------------------------------

PRIME, MASK = 0x100000001b3, (1 << 17) - 1
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$"


def fnv(state, data):
    for byte in data:
        state = ((state ^ byte) * PRIME) & MASK
    return state


def names_that_collide(n, state):
    """Names whose FNV-1a agrees in its low bits, which need no others: the last three letters lead each
    of them back to the same state."""
    inverse = pow(PRIME, -1, MASK + 1)
    suffix = {}
    for a in LETTERS:
        one = (inverse * 0x1234 & MASK) ^ a
        for b in LETTERS:
            two = (inverse * one & MASK) ^ b
            for c in LETTERS:
                suffix[(inverse * two & MASK) ^ c] = bytes([c, b, a])
    found, i = [], 0
    while len(found) < n:
        prefix = b"%x_" % i
        tail = suffix.get(fnv(state, prefix))
        if tail:
            found.append(prefix + tail)
        i += 1
    return found


def table_of(names, kind=feed.FUNCTION, counters=0):
    """A table with a scope for each name, as bytes; Table's own search for texts is quadratic."""
    out = bytearray(feed.uleb(1) + feed.uleb(len(names) + 1) + feed.uleb(0))
    for name in names:
        out += feed.uleb(len(name)) + name
    out += feed.uleb(len(names))
    for i in range(len(names)):
        out += feed.uleb(kind) + feed.uleb(0) + feed.uleb(i + 1) + bytes(7)
    out += feed.uleb(counters) + bytes(2 * counters)
    return bytes(out)


def send_table(service, table, n_counters=0):
    """Until it is taken, or refused by hanging up."""
    with feed.Connection(service.feed) as c:
        with contextlib.suppress(OSError):
            c.send(feed.hello(), feed.object_(n_counters=n_counters))
            c.send(*feed.tables(table, n_counters=n_counters))
            c.send(feed.round_())
        c.socket.shutdown(socket.SHUT_WR)
        c.is_hung_up_on(60)
    return len(table)


def settled(service):
    wait_until("no program is left", lambda: json.loads(
        service.ctl("status", "--json").stdout)["feed"][0]["programs"] == 0)


def test_a_table_of_names_that_collide(build):
    state = fnv(0xcbf29ce484222325 & MASK, bytes([feed.FUNCTION]))
    state = fnv(state, b"\x5a" * 20 + bytes(4))
    table = table_of(names_that_collide(30000, state))
    expect_short_turns(build, lambda service: send_table(service, table))
    settled(service_of(build))
    expect_short_turns(build, lambda service: None)


def test_a_table_of_as_many_scopes_as_may_be(build):
    table = table_of([b"%x" % i for i in range(1 << 17)])
    expect_short_turns(build, lambda service: send_table(service, table))
    settled(service_of(build))
    expect_short_turns(build, lambda service: None)


def test_a_table_of_as_many_bytes_as_may_be(build):
    names = [b"%x" % i + b"n" * 4000 for i in range(1900)]
    expect_short_turns(build, lambda service: send_table(service, table_of(names)))
    settled(service_of(build))
    expect_short_turns(build, lambda service: None)


def test_a_table_of_as_many_counters_as_may_be(build):
    table = table_of([b"f"], counters=1 << 19)
    expect_short_turns(build, lambda service: send_table(service, table, 1 << 19))
    settled(service_of(build))
    expect_short_turns(build, lambda service: None)


def test_a_round_of_many_sums(build):
    n = 16000  # LOOP_WINDOW_ROWS_PER_USER_MAX is 16384

    def send(service):
        out = bytearray(feed.uleb(1) + feed.uleb(n + 1) + feed.uleb(0))
        for i in range(n):
            out += feed.uleb(6) + b"%06x" % i
        out += feed.uleb(n)
        for i in range(n):
            out += feed.uleb(feed.FUNCTION) + feed.uleb(0) + feed.uleb(i + 1) + bytes(7)
        out += feed.uleb(n)
        for i in range(n):
            out += feed.uleb(0) + feed.uleb(1) + feed.uleb(i) + feed.uleb(feed.METRICS["entries"] << 2) + \
                feed.sleb(1)
        with feed.Connection(service.feed) as c, contextlib.suppress(OSError):
            c.send(feed.hello(), feed.object_(n_counters=n))
            c.send(*feed.tables(bytes(out), n_counters=n))
            c.send(feed.thread())
            for _ in range(3):
                for first in range(0, n, 2000):
                    c.send(feed.deltas({i: 1 for i in range(first, min(first + 2000, n))}))
                c.send(feed.round_())
            # who asks has what is in hand written first
            said_of(service, HOTSPOTS, b"")
            c.socket.shutdown(socket.SHUT_WR)
            c.is_hung_up_on(60)
        return n
    expect_short_turns(build, send)
    settled(service_of(build))
    expect_short_turns(build, lambda service: None)
