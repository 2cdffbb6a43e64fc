# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clients of a service that count the same events at once: the events are open once, and each client has what
was counted in its own span."""
import functools
import grp
import json
import os
import re
import subprocess
import time
from pathlib import Path

from attacked import as_user
from machine import (BAD_WORDS, Folder, Skip, at_end_of_module, everybodys, leave_to_plain, need_program,
                     need_root)
from recorded import known
from running import command_line
from service import PATIENCE_S, Service, children_of, wait_until

SECONDS = 8
WAITS = "intervals of counts"

# A call that nothing else makes while we count it, and that Python can make.
CALL = "syscalls:sys_enter_sched_rr_get_interval"
PAIR = f"{{{CALL},page-faults}}"
ADA, BOB = (20000 + 8 * (os.getpid() % 5000) + i for i in (4, 5))


def some_group():
    for group in grp.getgrall():
        if group.gr_gid not in (0, ADA, BOB) and not group.gr_mem:
            return group
    raise Skip("there is no group but root's")


class Traced(Service):
    """A service that sees tracepoints, also where tracefs is not mounted."""

    def __init__(self, build, folder):
        need_program("unshare")
        need_program("setpriv")
        self.group = some_group()
        super().__init__(build, folder, group=self.group.gr_name)
        self.environment = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8",
                                **everybodys(build, folder), MPERF_SOCKET=str(self.socket))

    def command(self):
        mount = "test -d /sys/kernel/tracing/events || mount -t tracefs none /sys/kernel/tracing; exec \"$@\""
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", mount, "sh", *super().command()]

    def descriptors(self):
        """How many perf events mperfd has open."""
        found = 0
        for descriptor in Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                found += os.readlink(descriptor) == "anon_inode:[perf_event]"
            except OSError:
                pass  # closed meanwhile
        return found

    def held(self, uid):
        """The descriptors that are charged to a user."""
        done = subprocess.run(as_user(uid, self.folder / "mperfctl", "status", "--json"), check=True,
                              env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S)
        limits = json.loads(done.stdout)["limit"]
        return next(row["own"] for row in limits if row["limit"] == "descriptors")


@functools.cache
def service(build):
    need_root()
    leave_to_plain(build, "and another run beside it would make the same calls")
    scratch = Folder()
    traced = Traced(build, scratch.path)
    at_end_of_module(scratch.cleanup)
    at_end_of_module(lambda: traced.__exit__(None, None, None))
    at_end_of_module(service.cache_clear)
    traced.start()
    done = traced.ctl("stat", "-a", "-e", CALL, "--", "true", check=False)
    if done.returncode != 0:
        raise Skip(f"this kernel has no {CALL}")
    return traced


class Count:
    """A client that counts the whole system from here on, until end()."""

    def __init__(self, traced, uid, events, *more):
        command = as_user(uid, traced.folder / "mperfctl", "stat", "-a", "-e", events, *more, "--", "cat",
                          groups=(traced.group.gr_gid,))
        self.process = subprocess.Popen(command, env=traced.environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until("it counts", lambda: self.process.poll() is not None or any(
            command_line(child)[0] == "cat" for child in children_of(self.process.pid)))
        assert self.process.poll() is None, self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def end(self):
        said = self.process.communicate(timeout=PATIENCE_S)[1]
        assert self.process.returncode == 0 and not any(word in said for word in BAD_WORDS), said
        return said

    def rows(self):
        answer = json.loads(self.end())
        return {row["event"]: row for row in answer["rows"]}, answer["provenance"]["notes"]


def call(n):
    for _ in range(n):
        os.sched_rr_get_interval(0)


def fault(build, pages):
    subprocess.run([known(build), "pages", str(pages)], check=True, stdout=subprocess.DEVNULL)


def steady(traced):
    """The number of descriptors once it no longer changes: the service tries events when it starts."""
    before = [None, None]

    def is_same():
        now = traced.descriptors()
        same = before[0] == before[1] == now
        before[:] = before[1], now
        time.sleep(0.1)
        return same
    wait_until("the service opens and closes nothing", is_same)
    return before[1]


def test_two_clients_each_count_from_their_own_start(build):
    traced = service(build)
    with Count(traced, ADA, PAIR, "--json") as first:
        call(100)
        fault(build, 3000)
        with Count(traced, BOB, PAIR, "--json") as second:
            call(20)
            fault(build, 1000)
            with Count(traced, ADA, CALL, "--json") as third:
                call(3)
                found, _ = first.rows()
                call(1000)  # not in the first
                later, _ = second.rows()
                last, _ = third.rows()
    assert found[CALL]["value"] == 123, found
    assert later[CALL]["value"] == 1023, later
    assert last[CALL]["value"] == 1003, last
    for row in *found.values(), *later.values(), *last.values():
        assert row["running_share"] == 1 and row["value"] == row["scaled"], row
    # others fault too, in the span of both
    assert found["page-faults"]["value"] >= 4000 and later["page-faults"]["value"] >= 1000, (found, later)


def opened(traced):
    """Perf events beside the service's own as clients come and go, and what the last of them counted."""
    own = steady(traced)
    with Count(traced, ADA, PAIR) as first:
        found = [steady(traced) - own]
        with Count(traced, BOB, PAIR) as second, Count(traced, BOB, CALL, "--json") as third:
            found.append(steady(traced) - own)
            with Count(traced, BOB, "context-switches") as other:
                found.append(steady(traced) - own)
                other.end()
            first.end()
            found.append(steady(traced) - own)
            second.end()
            found.append(steady(traced) - own)
            call(7)
            counted, _ = third.rows()
    found.append(steady(traced) - own)
    return found, counted[CALL]["value"]


def test_what_several_count_is_open_once_and_closed_when_nobody_reads_it(build):
    traced = service(build)
    harts = os.sysconf("SC_NPROCESSORS_ONLN")

    def is_known():
        """The service opens events of its own, at its start and now and then: not while we look."""
        found = opened(traced)
        return found if found[0][-1] == 0 else None
    found, calls = wait_until("the service keeps its own events", is_known)
    assert found == [2 * harts, 2 * harts, 3 * harts, 2 * harts, harts, 0], found
    assert calls == 7, calls


def test_a_client_that_vanishes_leaves_the_others_their_counts(build):
    traced = service(build)
    free = traced.held(ADA)
    with Count(traced, ADA, PAIR) as first:
        call(5)
        with Count(traced, BOB, "page-faults," + CALL, "--json") as second:
            call(11)
            first.process.kill()
            first.process.communicate()
            wait_until("the service has noticed", lambda: traced.held(ADA) == free)
            call(13)
            found, _ = second.rows()
    assert found[CALL]["value"] == 24, found


def test_each_user_is_charged_for_what_is_shared(build):
    traced = service(build)
    whole = 2 * os.sysconf("SC_NPROCESSORS_ONLN") + 1  # the last is of the connection
    free = traced.held(ADA), traced.held(BOB)

    def are_held(*wanted):
        wait_until(f"Ada and Bob hold {wanted}", lambda: wanted == (
            traced.held(ADA) - free[0], traced.held(BOB) - free[1]))
    with Count(traced, ADA, PAIR) as first:
        are_held(whole, 0)
        with Count(traced, BOB, PAIR) as second:
            are_held(whole, whole)
            first.end()
            are_held(0, whole)
            # a member, and the leader that stays for it
            with Count(traced, ADA, "page-faults") as third:
                are_held(whole, whole)
                second.end()
                are_held(whole, 0)
                third.end()
    are_held(0, 0)


def test_intervals_are_of_the_client_that_prints_them(build):
    traced = service(build)
    with Count(traced, ADA, PAIR):
        call(1000)
        with Count(traced, BOB, CALL, "-I", "100") as second:
            for n in 5, 6, 7:
                call(n)
                time.sleep(0.15)
            said = second.end()
    lines = [int(n) for n in re.findall(rf"^\s*[\d.]+\s+(\d+)\s+{CALL}", said, re.M)]
    assert len(lines) >= 2 and sum(lines) == 18, said


def test_explain_says_with_how_many_others_and_never_with_whom(build):
    traced = service(build)
    shared = "is shared with {} other count{}: it takes no further counters and no pass of its own"
    with Count(traced, ADA, PAIR, "--json", "--explain") as first, \
            Count(traced, BOB, CALL, "--explain") as second, \
            Count(traced, BOB, PAIR, "--json", "--explain") as third:
        _, alone = first.rows()
        said = second.end()
        _, notes = third.rows()
    assert not any("shared" in note for note in alone), alone
    assert f"{CALL} {shared.format(1, '')}" in " ".join(said.split()), said
    assert f"the group of {CALL} {shared.format(2, 's')}" in notes, notes
    for text in said, *notes:
        assert str(ADA) not in text and str(first.process.pid) not in text, text
