# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that count themselves, as the service takes them in: by a program that speaks the feed and
knows the answers, and by others that lie."""
import contextlib
import os
import sqlite3
import struct
import subprocess
import sys
import threading

import feed_program as feed
from machine import NOBODY, ROOT, Folder
from service import Service, wait_until

SECONDS = 21


def stored(service):
    """What the store's sealed and unsealed windows hold of loops: {(function, nest, metric): sum}, by
    a reader of our own."""
    sums = {}
    for path in sorted((service.store / "window").glob("*.mprf")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            for *key, value in db.execute(
                    "SELECT t.pid, s.kind, s.subprogram, s.nest, m.name, sum(c.value) "
                    "FROM loop_count c JOIN loop_site s ON s.id = c.loop "
                    "JOIN loop_metric m ON m.id = c.metric LEFT JOIN task t ON t.id = c.task "
                    "GROUP BY 1, 2, 3, 4, 5"):
                sums[tuple(key)] = sums.get(tuple(key), 0) + value
    return sums


def faults(service):
    return {row["cause"]: row["count"] for row in service.ask("status")["feed_fault"]}


def rounds(service):
    return service.ask("status")["feed"][0]["rounds"]


def test_what_a_program_counts_is_stored(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        with feed.Connection(service.feed) as c:
            table = feed.triad()
            feed.announce(c, table)
            feed.count_triad(c, 2, 20, 5_000_000)
            c.send(feed.round_())
            feed.count_triad(c, 1, 10, 2_500_000)
            c.send(feed.round_())
            wait_until("two rounds came", lambda: rounds(service) == 2)
        me = os.getpid()
        wait_until("it is stored", lambda: stored(service).get((me, 2, "triad", "", "entries")) == 3)
        found = stored(service)
        assert found[me, 1, "triad", "1", "iterations"] == 30
        assert found[me, 1, "triad", "1", "time_ns"] == 7_500_000
        assert found[me, 1, "triad", "1.1", "fp64_ops"] == 30 * 2000
        assert found[me, 1, "triad", "1.1", "bytes_loaded"] == 30 * 16000
        assert (me, 3, "", "", "span_ns") in found
        assert not faults(service), faults(service)


def hung_up_on(service, cause, *messages):
    """Whoever sends these is hung up on, and counted."""
    before = faults(service).get(cause, 0)
    with feed.Connection(service.feed) as c:
        try:
            c.send(*messages)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert c.is_hung_up_on(), cause
    wait_until(cause, lambda: faults(service).get(cause, 0) > before)


def passed_over(service, cause, *messages):
    """What is wrong is counted, and the next round of the same program is taken."""
    before, n_rounds = faults(service).get(cause, 0), rounds(service)
    with feed.Connection(service.feed) as c:
        feed.announce(c, feed.triad())
        c.send(*messages, feed.round_())
        wait_until(f"the round behind '{cause}'", lambda: rounds(service) > n_rounds)
    assert faults(service).get(cause, 0) > before, (cause, faults(service))


def test_who_does_not_speak_the_feed_is_hung_up_on(build):
    table = bytes(feed.triad())
    with Folder() as folder, Service(build, folder) as service:
        announced = [feed.hello(), feed.object_(n_counters=4)]
        for cause, *messages in (
                ("message of a wrong length", b"abc"),
                ("message of a wrong length", feed.hello()[:-1]),
                ("message of a wrong length", feed.message(feed.HELLO, b"\0" * 24, n_bytes=99)),
                ("message of a wrong length", feed.hello(), feed.deltas({0: 1})[:-8]),
                ("message of a wrong length", feed.hello(), b"\0" * (feed.PACKET_BYTES_MAX + 1)),
                ("no hello, or a malformed one", feed.round_()),
                ("no hello, or a malformed one", feed.hello(magic=7)),
                ("program built for another version of mperf", feed.hello(version=99)),
                ("malformed table", *announced, *feed.tables(table[:-1], n_counters=4)),
                ("malformed table", *announced, *feed.tables(table + b"\0", n_counters=4)),
                ("malformed table", feed.hello(), feed.object_(n_counters=3),
                 *feed.tables(table, n_counters=3)),
                ("malformed table", *announced, feed.tables(table, n_counters=4, piece=50)[1])):
            hung_up_on(service, cause, *messages)
        assert service.ask("status")["feed"][0]["programs"] == 0


def test_what_makes_no_sense_is_passed_over_and_counted(build):
    with Folder() as folder, Service(build, folder) as service:
        now = feed.now_ns()
        for cause, *messages in (
                ("counts of something never announced", feed.deltas({0: 1}, thread_=9)),
                ("counts of something never announced", feed.deltas({0: 1}, number=9)),
                ("counts of something never announced", feed.deltas({0: 1}, region_=9)),
                ("counts of something never announced", feed.spent(9, 1)),
                ("counts of something never announced", feed.gone(1, 9)),
                ("counts of something never announced", feed.region(2, "in nothing", parent=1)),
                ("counter out of place", feed.deltas({4: 1})),
                ("counter out of place", feed.message(
                    feed.DELTAS, struct.pack("<IIIIQQ", 0, 0, 0, 2, now, now),
                    struct.pack("<IIQIIQ", 1, 0, 1, 1, 0, 1))),
                ("time that runs backwards", feed.deltas({0: 1}, from_ns=now + 1, until_ns=now)),
                ("announced twice", feed.thread()),
                ("announced twice", feed.hello()),
                ("announced twice", feed.object_(n_counters=4)),
                ("unknown message", feed.message(50, b"")),
                ("too many counters", feed.object_(7, n_counters=1 << 30)),
                ("too many modules", feed.object_(7, n_modules=1 << 30)),
                ("thread without memory for its counts", feed.round_(threads_lost=3)),
                ("thread of another program", feed.thread(5, tid=1),
                 feed.deltas({0: 1}, thread_=5))):
            passed_over(service, cause, *messages)


def test_a_liar_harms_only_his_own_figures(build):
    """Somebody who says the largest numbers, of another's thread, leaves that one's figures alone."""
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        liar = subprocess.Popen(
            [*NOBODY, sys.executable, "-c", f"""
import sys
sys.path.insert(0, {str(ROOT / "tests" / "system")!r})
import feed_program as feed
c = feed.Connection({str(service.feed)!r})
table = feed.triad()
c.send(feed.hello(), feed.object_(n_counters=4), *feed.tables(table))
c.send(feed.thread(0, tid={os.getpid()}))
for _ in range(3):
    c.send(feed.deltas({{0: 2**62, 1: -1, 2: 2**63, 3: 2**64 - 1}}), feed.round_(2**63))
print("told", flush=True)
sys.stdin.read()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with liar, feed.Connection(service.feed) as c:
            assert liar.stdout.readline() == "told\n"
            feed.announce(c, feed.triad())
            feed.count_triad(c, 1, 10, 1_000_000)
            c.send(feed.round_())
            wait_until("both are stored", lambda: {os.getpid(), liar.pid} <= {
                key[0] for key in stored(service)})
            liar.stdin.close()
        mine = {key[1:]: value for key, value in stored(service).items() if key[0] == os.getpid()}
        assert mine[2, "triad", "", "entries"] == 1 and mine[1, "triad", "1", "time_ns"] == 10**6
        assert mine[1, "triad", "1.1", "fp64_ops"] == 20000, mine
        his = [value for key, value in stored(service).items() if key[0] == liar.pid]
        assert his and min(his) > 0, his
        answer = service.ask("roofline", "--pid", os.getpid())
        assert max(r["fp64_ops"] for r in answer["rows"]) == 20000, answer


def test_programs_are_bounded_for_each_user(build):
    with Folder() as folder, Service(build, folder, programs_per_user_max=3,
                                     program_bytes_max="1M") as service:
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(feed.Connection(service.feed)).send(feed.hello())
            wait_until("they are known", lambda: service.ask("status")["feed"][0]["programs"] == 3)
            with feed.Connection(service.feed) as late:
                assert late.is_hung_up_on()
            assert faults(service)["too many programs of one user"] == 1
        wait_until("they are gone", lambda: service.ask("status")["feed"][0]["programs"] == 0)
        assert service.ask("status")["feed"][0]["bytes"] == 0
        big = feed.Table()
        for i in range(20000):
            big.scope(feed.FUNCTION, "f" * 200, line=i + 1)
        hung_up_on(service, "program above its memory limit", feed.hello(), feed.object_(),
                   *feed.tables(big))
        assert service.ask("status")["feed"][0]["bytes"] == 0


def test_a_flood_of_messages_does_not_starve_sampling(build):
    with Folder() as folder, Service(build, folder) as service:
        stop = threading.Event()

        def flood():
            with feed.Connection(service.feed) as c:
                feed.announce(c, feed.triad())
                c.socket.settimeout(0.2)
                while not stop.is_set():
                    try:
                        feed.count_triad(c, 1, 1, 1)
                        c.send(feed.round_())
                    except TimeoutError:
                        pass
        flooders = [threading.Thread(target=flood) for _ in range(4)]
        for flooder in flooders:
            flooder.start()
        before = service.ask("status")
        wait_until("sampling goes on", lambda: service.ask("status")["account"][0]["taken"] >
                   before["account"][0]["taken"] + 1000)
        after = service.ask("status")
        stop.set()
        for flooder in flooders:
            flooder.join()
        assert after["account"][0]["lost"] == before["account"][0]["lost"], after["account"]
        cpu_ns = after["process"][0]["cpu_ns"] - before["process"][0]["cpu_ns"]
        took_ns = (after["account"][0]["duration_ns"] - before["account"][0]["duration_ns"])
        # a tenth of a hart, and the daemon's own work; read as they come it is all of one
        assert cpu_ns < 0.5 * took_ns, (cpu_ns, took_ns)


def test_programs_are_told_the_period_and_asked_for_rounds(build):
    with Folder() as folder, Service(build, folder, period="200ms") as service:
        with feed.Connection(service.feed) as c:
            c.send(feed.hello(period_ms=1000))
            assert c.asked() == (200, 0)
            service.write_config(period="50ms")
            service.process.send_signal(1)
            assert c.asked() == (50, 0)
