# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Roofs and the service: who may have its sampling lowered, for how long, what is left of that in
answers; whose roofs it keeps and gives. The service has the unit's capabilities and no more. What
measures is a program of the tests that prints roofs of this machine, measured once, and takes as long
as the test says."""
import grp
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from attacked import DAEMON, EVE, MALLORY, VICTOR, Stage, as_user, shared
from machine import BAD_WORDS, ROOT
from rates import rate_allowed
from service import children_of, wait_until
from wire import DONE, FAILURE, FINISH, READY, TOP, Client, Private, field, fields, hello

SECONDS = 60
ROOFS = 16                       # of Request.body
COLUMNS = 3                      # of Answer.body
PAUSE, KEEP, PEAKS, CACHES = 1, 2, 4, 5  # of RoofsRequest
USAGE, REFUSED, BROKEN = 1, 2, 4  # of FailureKind
HZ = 49
CAUSE = "second with lowered sampling"
TWO = ROOT / "tests" / "fuzz" / "corpus" / "roofs" / "two"
SHARED_BYTES_MAX = 384 << 10
MEASURES = """#!/bin/sh
sleep {seconds}
cat {roofs}
"""
stages = []


class Roofs(Stage):
    """A service, and roofs of this machine."""

    def __init__(self, build):
        self.group = next(g for g in grp.getgrall() if g.gr_gid and not g.gr_mem)
        super().__init__(build, flush="1s", rate=rate_allowed(HZ), group=self.group.gr_name)
        done = subprocess.run([build / "mperf-roofs", "--quick", "--for", "4s"], capture_output=True,
                              text=True, timeout=60, check=True)
        self.roofs = json.loads(done.stdout)
        if not self.roofs["roofs"]:  # the machine has others to serve; one is enough
            self.roofs["roofs"] = json.loads(TWO.read_text())["roofs"]
        self.takes(0)

    def takes(self, seconds, **changes):
        """What measures takes that long, and prints these."""
        path = self.folder / "roofs.json"
        path.write_text(json.dumps({**self.roofs, "took": float(seconds), **changes}))
        path.chmod(0o644)
        program = self.folder / "mperf-roofs"
        program.write_text(MEASURES.format(seconds=seconds, roofs=path))
        program.chmod(0o755)

    def roofs_of(self, uid, *arguments):
        """`mperfctl roofs`, running as that user."""
        state = self.state(uid)
        environment = dict(os.environ, LC_ALL="C.UTF-8", MPERF_SOCKET=str(self.socket),
                           XDG_STATE_HOME=str(state))
        groups = [self.group.gr_gid] if uid == EVE else []
        return subprocess.Popen(as_user(uid, self.folder / "mperfctl", "roofs", *arguments, groups=groups),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=state,
                                env=environment)

    def state(self, uid):
        state = self.folder / f"state-{uid}"
        if not state.exists():
            state.mkdir(mode=0o700)
            os.chown(state, uid, uid)
        return state

    def files(self, uid):
        return sorted((self.state(uid) / "mperf" / "roofs").glob("*.json"))

    def kept(self):
        return sorted((self.store / "roofs").glob("*.json"))

    def row(self, table):
        return self.ask("status")[table][0]

    def hz(self):
        return self.row("rate")["hz"]

    def is_paused(self):
        return self.row("roofs").get("now") is not None

    def forget(self):
        shutil.rmtree(self.store / "roofs", ignore_errors=True)
        for uid in 0, MALLORY, VICTOR, EVE:
            shutil.rmtree(self.state(uid) / "mperf", ignore_errors=True)


def stage(build):
    made = shared(stages, lambda: Roofs(build))
    wait_until("nothing is paused", lambda: made.hz() == rate_allowed(HZ))
    made.forget()
    made.takes(0)
    return made


def end(process, status=0):
    """(what it printed, what it said on stderr)"""
    out, said = process.communicate(timeout=120)
    assert process.returncode == status and not any(word in said for word in BAD_WORDS), said
    return out, said


def request(path, *body):
    """(kind of Failure, its sentence) of a roofs request, by a client made by hand; (0, None): Done."""
    with Client(path) as client:
        client.request(1, ROOFS, b"".join(field(*f) for f in body))
        case, content = client.answer(DONE, FAILURE)
        got = dict(fields(content))
        return (got.get(1, 0), got[2].decode()) if case == FAILURE else (0, None)


def asks_as(s, uid, *body):
    """The same as that user."""
    program = ("import sys; sys.path.insert(0, sys.argv[1]); import test_roofs_service as t; "
               "print(*t.request(sys.argv[2], *eval(sys.argv[3])), sep='\\n')")
    done = subprocess.run(as_user(uid, sys.executable, "-c", program, Path(__file__).parent, s.socket, repr(body)),
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    kind, what = done.stdout.splitlines()
    return int(kind), what


def test_sampling_is_lowered_for_the_group_and_the_gap_is_recorded(build):
    s = stage(build)
    s.takes(4)
    began = time.time()
    before = s.row("roofs")["pauses"]
    process = s.roofs_of(EVE, "measure", "--json")
    wait_until("sampling is lowered", lambda: s.hz() == 1)
    assert s.is_paused() and s.row("rate")["wanted_hz"] == 1
    out, said = end(process)
    assert json.loads(out)["paused"] and "goes on" not in said, said
    wait_until("sampling goes on", lambda: s.hz() == rate_allowed(HZ))
    row = s.row("roofs")
    assert row["pauses"] == before + 1 and row["kept"] == 1 and row["paused_ns"] >= 4e9, row
    assert s.said().count(f"while uid {EVE} measures roofs") == 1, s.said()
    assert s.said().count(f"again: uid {EVE} measured roofs for 4 s") == 1, s.said()

    def notes():
        return s.ask("hotspots", "--since", f"@{began:.0f}")["provenance"]
    found = wait_until("the gap is in the store", lambda: (n := notes())["lost"].get(CAUSE) and n)
    assert any("sampling was lowered for" in note for note in found["notes"]), found
    time.sleep(1.1)
    later = s.ask("hotspots", "--since", f"@{time.time():.0f}")["provenance"]
    assert CAUSE not in later["lost"], later


def test_everybody_is_given_the_machines_roofs(build):
    s = stage(build)
    refused_words = "no roofs have been measured"
    assert refused_words in end(s.roofs_of(MALLORY), 1)[1]
    out, _ = end(s.roofs_of(0, "measure", "--json"))
    measured = json.loads(out)
    assert len(s.kept()) == 1 and s.kept()[0].stat().st_uid == DAEMON
    for uid in MALLORY, VICTOR, EVE, 0:
        assert json.loads(end(s.roofs_of(uid, "--json"))[0]) == measured, uid
        text, said = end(s.roofs_of(uid))
        assert "the machine's, kept by mperfd" in text and "stale" not in said, text + said
    # the user's own come second
    s.takes(0, notes=["mallory's own"])
    out, said = end(s.roofs_of(MALLORY, "measure"))
    assert "mallory's own" in out and len(s.files(MALLORY)) == 1, out
    assert "mallory's own" not in end(s.roofs_of(MALLORY))[0]
    s.kept()[0].unlink()
    text, _ = end(s.roofs_of(MALLORY))
    assert "mallory's own" in text and "(your own)" in text, text


def test_others_measure_beside_sampling(build):
    s = stage(build)
    s.takes(2)
    pauses = s.row("roofs")["pauses"]
    process = s.roofs_of(MALLORY, "measure", "--json")
    time.sleep(1)
    assert s.hz() == rate_allowed(HZ) and not s.is_paused()
    out, said = end(process)
    assert not json.loads(out)["paused"], out
    assert "does not lower its sampling while roofs are measured: you may not lower" in said, said
    assert s.row("roofs")["pauses"] == pauses and not s.kept() and len(s.files(MALLORY)) == 1
    assert s.files(MALLORY)[0].stat().st_uid == MALLORY
    # nor does a client of their own get more, and one user is not shown another's
    body = s.files(MALLORY)[0].read_bytes()
    for uid in MALLORY, VICTOR:
        kind, what = asks_as(s, uid, (PAUSE, 1))
        assert kind == REFUSED and "may not lower" in what, what
        kind, what = asks_as(s, uid, (KEEP, body))
        assert kind == REFUSED and "may not keep" in what, what
        kind, what = asks_as(s, uid, (PAUSE, 1), (KEEP, body))
        assert kind == REFUSED, what
    assert not s.kept() and not s.is_paused()
    assert "no roofs" in end(s.roofs_of(VICTOR), 1)[1]


def test_sampling_comes_back_when_the_client_dies(build):
    s = stage(build)
    with Client(s.socket) as client:
        client.request(7, ROOFS, field(PAUSE, 1))
        assert client.answer(READY, FAILURE) == (READY, b"")
        wait_until("sampling is lowered", lambda: s.hz() == 1)
    wait_until("sampling goes on", lambda: s.hz() == rate_allowed(HZ))
    s.takes(60)
    process = s.roofs_of(0, "measure")
    wait_until("sampling is lowered", lambda: s.hz() == 1)
    measuring, = children_of(process.pid)
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    wait_until("sampling goes on", lambda: s.hz() == rate_allowed(HZ))
    # nor does what measures go on for nobody
    wait_until("it has ended", lambda: not os.path.exists(f"/proc/{measuring}"))


def test_two_do_not_measure_at_once(build):
    s = stage(build)
    with Client(s.socket) as client:
        client.request(7, ROOFS, field(PAUSE, 1))
        client.answer(READY)
        out, said = end(s.roofs_of(EVE, "measure"), 1)
        assert "another client is measuring roofs" in said and "once they are done" in said, said
        assert not out and not s.files(EVE)
        client.request(8, FINISH, field(1, 7))
        assert client.answer(DONE, FAILURE) == (DONE, b"")  # lowered all the time: status 0
    end(s.roofs_of(EVE, "measure"))


def test_a_rate_that_a_client_asks_for_is_kept(build):
    s = stage(build)
    hz = rate_allowed(HZ) // 2
    with Client(s.socket) as top, Client(s.socket) as client:
        client.request(7, ROOFS, field(PAUSE, 1))
        client.answer(READY)
        wait_until("sampling is lowered", lambda: s.hz() == 1)
        top.request(7, TOP, field(1, 1000) + field(2, hz) + field(3, b"function") + field(5, 10))
        wait_until("the rate of top", lambda: s.hz() == hz)
    wait_until("sampling goes on", lambda: s.hz() == rate_allowed(HZ))


def test_only_roofs_of_this_machine_are_kept(build):
    s = stage(build)
    machine = s.roofs["machine"]
    bad = [(b"{", "line 1"), (b"\0", "line 1"), (json.dumps(s.roofs).encode()[:-2], "line 1"),
           (TWO.read_bytes(), "another machine"),
           (json.dumps({**s.roofs, "machine": {**machine, "kernel": "2.6.32"}}).encode(), "another kernel"),
           (json.dumps({**s.roofs, "roofs": []}).encode(), "no roofs in the file"),
           (json.dumps({**s.roofs, "version": 2}).encode(), "version 2"),
           (b" " * (SHARED_BYTES_MAX + 1), "more than"), (b"[" * 100000, "line 1")]
    for body, words in bad:
        kind, what = request(s.socket, (KEEP, body))
        assert kind == BROKEN and words in what, (words, what)
    assert not s.kept()
    assert request(s.socket, (PAUSE, 1), (KEEP, b"{}"))[0] == USAGE
    # what nobody paused for was not measured in a pause
    body = json.dumps({**s.roofs, "paused": True, "took": 1e5, "more": "unknown"}).encode()
    assert request(s.socket, (KEEP, body)) == (0, None)
    kept = json.loads(s.kept()[0].read_text())
    assert kept["paused"] is False and "more" not in kept, kept


def test_stale_roofs_of_the_service_are_never_used_silently(build):
    s = stage(build)
    end(s.roofs_of(0, "measure"))
    kept, = s.kept()
    roofs = json.loads(kept.read_text())
    kept.write_text(json.dumps({**roofs, "machine": {**roofs["machine"], "kernel": "2.6.32"}}))
    text, said = end(s.roofs_of(VICTOR))
    assert "these roofs are stale: they were measured on Linux 2.6.32" in said, said
    text, said = end(s.roofs_of(0))  # has fresh ones
    assert "stale" not in said and "(your own)" in text, said
    # damage is said, and hides nobody's own
    kept.write_text("{")
    assert "cannot read" in end(s.roofs_of(VICTOR), 1)[1]
    assert "(your own)" in end(s.roofs_of(0))[0]


def test_peaks_by_documents_are_for_all(build):
    s = stage(build)
    assert asks_as(s, MALLORY, (PEAKS, 1)) == (0, "None")
    with Client(s.socket) as client:
        client.request(1, ROOFS, field(PEAKS, 1))
        columns = [dict(fields(column))[1] for number, column in fields(client.answer(COLUMNS)[1]) if number == 1]
        assert columns == [b"harts", b"core", b"precision", b"unit", b"ops_per_cycle", b"source"], columns
        client.answer(DONE)
        client.request(2, ROOFS, field(CACHES, 1))
        columns = [dict(fields(column))[1] for number, column in fields(client.answer(COLUMNS)[1]) if number == 1]
        assert columns == [b"harts", b"core", b"level", b"bytes", b"shared_by", b"source"], columns
        client.answer(DONE)
    private = Private(build)
    private.send(hello(1))
    private.request(1, ROOFS, field(PEAKS, 1))
    private.answer(COLUMNS)
    private.answer(DONE)
    private.request(2, ROOFS, b"")
    assert b"keeps no roofs" in private.answer(FAILURE, DONE)[1]
    assert private.end()[0] == 0


def test_a_service_that_keeps_nothing_keeps_no_roofs(build):
    s = stage(build)
    s.write_config(keep="no")
    try:
        s.process.send_signal(signal.SIGHUP)
        wait_until("nothing is stored", lambda: "keep = no" in (s.row("store").get("trouble") or ""))
        out, said = end(s.roofs_of(0, "measure"))
        assert "the roofs are kept for you only: mperfd keeps no roofs, since mperf.conf says keep = no" in said, said
        assert out and len(s.files(0)) == 1 and not s.kept()
    finally:
        s.write_config(keep="yes")
        s.process.send_signal(signal.SIGHUP)
        wait_until("it stores again", lambda: not s.row("store").get("trouble"))
