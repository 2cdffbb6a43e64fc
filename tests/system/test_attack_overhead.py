# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What clients cost is theirs: the daemon's time for them is neither the budget's of always-on sampling nor
the loop's whole, however many users ask. What the budget does then is shown by test_overhead (unit)."""
import contextlib
import json
import select
import time

import feed_program as feed
from attacked import MALLORY, VICTOR
from machine import Skip
from service import wait_until
from test_attack_limits import OTHERS, SLEEP, STAT, Work, answered, being, client_of, own, program_of, victim
from wire import DONE, FAILURE, STATUS, field

SECONDS = 30

CLIENTS, SAMPLING = "clients and programs", "mperfd and its namer"
ATTACK_S = 5
MEASURED = "side band", "bpf"  # topics of doctor


def counting(service, uid, pid, connections):
    """Connections of that user's, each with all the counters that it may have, read each millisecond."""
    crowd = [client_of(service, uid) for _ in range(connections)]
    for number in range(1, 16):
        for client in crowd:
            client.request(number, STAT, field(1, own(pid)) + field(2, b"task-clock:u") + field(3, 1))
    return crowd


def has_spent_all(service):
    """Until when users have spent what they may at once, all twelve; on a busy machine, some."""
    work, end = Work(service.process.pid), time.monotonic() + 5
    return lambda: work.seconds() > 1.5 or time.monotonic() > end


def passed(seconds):
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def read_all(crowd, is_over, between=lambda: None):
    """Read what they are sent, and call between() some sixty times a second."""
    while not is_over():
        for ready in select.select([c.socket for c in crowd], [], [], 0.016)[0]:
            with contextlib.suppress(ConnectionResetError):
                ready.recv(1 << 20)
        between()


class Cost:
    """What the daemon and its namer took by then, in seconds, and which part of it was for clients; as of
    the last tick."""

    def __init__(self, service):
        status = service.ask("status")
        self.seconds = sum(row["cpu_ns"] for row in status["process"]
                           if row["what"] in ("daemon", "opener", "parser")) / 1e9
        share = {row["cause"]: row["machine_share"] for row in status["overhead"]}
        self.is_known = SAMPLING in share
        clients, sampling = share.get(CLIENTS, 0), share.get(SAMPLING, 0)
        self.part = clients / max(clients + sampling, 1e-9)


def first_tick(service):
    """Costs are counted from there on."""
    return wait_until("costs are known", lambda: (cost := Cost(service)).is_known and cost)


def ask(client, number):
    client.request(number, STATUS, b"")
    assert client.answer(DONE, FAILURE)[0] == DONE


def test_the_daemon_s_time_for_clients_is_not_always_on_sampling_s(build):
    with victim(build, flush="1s", rate="99") as service, program_of(MALLORY, "sh", "-c", SLEEP) as program:
        begin = first_tick(service)
        work = Work(service.process.pid)
        time.sleep(2)
        idle = work.seconds() / 2
        crowd, asker, number = counting(service, MALLORY, program.pid, 20), client_of(service, MALLORY), [0]

        def small_requests():
            number[0] += 1
            ask(asker, number[0])
        work = Work(service.process.pid)
        read_all(crowd, passed(ATTACK_S), small_requests)
        for client in crowd:
            client.socket.close()
        took = work.seconds()
        time.sleep(2.5)  # a tick
        end = Cost(service)
        clients = end.part * (end.seconds - begin.seconds)
        more = took - idle * ATTACK_S
        print(f"  MALLORY's {number[0]} requests and {15 * len(crowd)} counters took {more:.2f} s of the loop, "
              f"and {clients:.2f} s are shown as clients'")
        assert clients > more / 2, f"{clients:.2f} s of {more:.2f} s"


def test_twelve_users_leave_most_of_the_loop_to_sampling_and_another_is_answered(build):
    with victim(build, flush="1s") as service, contextlib.ExitStack() as programs:
        crowd = []
        for uid in OTHERS:
            program = programs.enter_context(program_of(uid, "sh", "-c", SLEEP))
            crowd += counting(service, uid, program.pid, 4)
        read_all(crowd, has_spent_all(service))
        work, began, took = Work(service.process.pid), time.monotonic(), []

        def ask_as_victor():
            waited = Work(service.process.pid)
            with client_of(service, VICTOR) as client:
                ask(client, 1)
            took.append(waited.seconds())
            time.sleep(0.2)
        read_all(crowd, passed(ATTACK_S), ask_as_victor)
        share = work.seconds() / (time.monotonic() - began)
        print(f"  the daemon ran for {share:.2f} of the time; VICTOR waited for {max(took):.3f} s of it at most, "
              f"{len(took)} times")
        assert share < 0.45, f"{share:.2f} of the time"
        assert max(took) < 0.2, took
        answered(service, VICTOR, "status")


def loud_program(service, uid, n=500):
    """A program that reports the same n counts whenever it is let; (its connection, what it sends)."""
    table = feed.Table()
    scope = table.scope(feed.FUNCTION, "f")
    for _ in range(n):
        table.counter((scope, "entries", 1))
    with being(uid):
        program = feed.Connection(service.feed)
    program.send(feed.hello(), feed.object_(n_counters=n))
    program.send(*feed.tables(table))
    program.send(feed.thread())
    program.socket.setblocking(False)
    return program, [feed.deltas({i: 1 for i in range(n)}), feed.round_()]


def test_programs_of_twelve_users_leave_most_of_the_loop_to_sampling(build):
    with victim(build, flush="1s") as service:
        programs = [loud_program(service, uid) for uid in OTHERS for _ in range(2)]

        def report(is_over):
            while not is_over():
                for program, messages in programs:
                    with contextlib.suppress(BlockingIOError):
                        while True:
                            program.send(*messages)
                time.sleep(0.002)
        report(has_spent_all(service))
        work, began = Work(service.process.pid), time.monotonic()
        report(passed(ATTACK_S))
        share = work.seconds() / (time.monotonic() - began)
        print(f"  the daemon ran for {share:.2f} of the time")
        assert share < 0.45, f"{share:.2f} of the time"
        answered(service, VICTOR, "status")


def test_what_a_user_asks_doctor_for_is_not_measured_on_all_harts(build):
    """Root and the group have it measured; status shows what they found, and a user is told that."""
    def found(uid):
        rows = json.loads(service.user(uid, "doctor", "--json").stdout)["rows"]
        return {row["topic"]: (row["state"], row["finding"]) for row in rows if row["topic"] in MEASURED}

    with victim(build, flush="1s") as service:
        before = found(MALLORY)
        assert before and {state for state, _ in before.values()} == {"info"}, before
        first_tick(service)
        prices = {row["cause"]: row["each_ns"] for row in service.ask("status")["overhead"]}
        assert prices["forks"] is None, prices
        measured = found(0).get("side band")
        if not measured or measured[0] != "ok":
            raise Skip(f"this machine does not let it be measured: {measured}")
        assert found(MALLORY)["side band"] == measured
