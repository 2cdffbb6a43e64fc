# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every command of the protocol, with every repeated field at its limit and every text long, asked by an ordinary
user of a store at its limits: none keeps the daemon's loop longer than 50 ms of its thread's own time.

The requests are made from proto/mperf.proto, command.inc and control/limits.c, so that a new command or field is
asked too. What it takes is what the daemon measures of its turns, by its thread's clock."""
import contextlib
import datetime
import json
import os
import re
import subprocess
import time
from pathlib import Path

from attacked import MALLORY, Stage, as_user, need_plain, shared
from machine import ROOT, compile_program
from service import wait_until
from test_attack_turns import as_mallory, turns
from wire import DONE, FAILURE, STATUS, Client, field, fields

SECONDS = 60

PINS, PROCESSES, JOBS = 1000, 2000, 900
ANSWER_S = 0.25  # for what goes on until it is ended, or is answered by a child
JOB = 19
LABEL, PIN, UNPIN = 3, 3, 4
# The longest that a label may be, whose quotes take two bytes each where it is kept; and a pattern that fits it
# only but for its last character, from each place on.
LONG, ALMOST = '"' * 250, "*" + '"' * 124 + "b"
FRAME_BYTES = 1 << 20


# --- the protocol as text -------------------------------------------------------------------------------

def read_protocol():
    """{message: [(repeated, type, name, number)]} and {enum: [values]}."""
    text = re.sub(r"//.*", "", (ROOT / "proto" / "mperf.proto").read_text())
    enums = {name: [int(n) for n in re.findall(r"= (\d+);", body)]
             for name, body in re.findall(r"enum (\w+) {(.*?)}", text, re.S)}
    messages, name = {}, None
    for token in re.finditer(r"message (\w+) {|(repeated )?(\w+) (\w+) = (\d+);", text):
        if token[1]:
            name = token[1]
            messages[name] = []
        elif name:
            messages[name].append((bool(token[2]), token[3], token[4], int(token[5])))
    return messages, enums


def read_limits():
    """{(message, field): most} of control/limits.c."""
    sources = [p.read_text() for folder in ("daemon", "proto") for p in (ROOT / folder).rglob("*.h")]
    numbers = dict(re.findall(r"#define (\w+) (\d+)\b", "\n".join(sources)))
    numbers["METRICS_MAX"] = re.search(r"METRICS_MAX (\d+)",
                                       (ROOT / "daemon/metric/metric_walk.h").read_text())[1]
    rows = re.findall(r'{"mperf\.(\w+)", "(\w+)", (\w+),', (ROOT / "daemon/control/limits.c").read_text())
    assert len(rows) > 15, rows
    return {(message, name): int(numbers.get(most, most)) for message, name, most in rows}


def commands():
    return re.findall(r"^COMMAND\((\w+),", (ROOT / "proto" / "command.inc").read_text(), re.M)


MESSAGES, ENUMS = read_protocol()
LIMITS = read_limits()


# Of one command: what it takes at most of a field that several commands have.
LESS = {("RECORD", "Target", "pid"): 8, ("TOP", "Target", "pid"): 64, ("STAT", "Target", "pid"): 100,
        ("STAT", "StatRequest", "event"): 48, ("STAT", "StatRequest", "metric"): 0,
        ("RECORD", "RecordRequest", "event"): 48, ("RECORD", "RecordRequest", "metric"): 0,
        **{(command, "CompareRequest", side): 0 for command in ("DIFF", "GATE") for side in
           ("baseline", "candidate", "metric")},
        **{(command, "CompareRequest", side): 58 for command in ("DIFF", "GATE") for side in
           ("baseline_run", "candidate_run")},  # FRAME_VALUES_MAX
        **{(command, message, name): 1 for command in ("DIFF", "GATE") for message, name in
           (("RunSelection", "uid"), ("Filter", "pid"), ("Filter", "cpu"))},
        ("ROOFLINE", "Selection", "glob"): 0}


def varint(n):
    return field(1, n)[1:]


class Maker:
    """Messages whose repeated fields are at their limits. `style`: "bare": other fields have their defaults; "full":
    they have values that are taken; "wild": all is long, and hardly anything is taken."""
    TEXTS = {"event": ["task-clock", "page-faults", "minor-faults", "major-faults"],
             "metric": ["IPC"], "by": ["function"], "path": [""], "callers_of": [""], "needed_metric": [""],
             "feed": [""], "decode": [""], "ops": ["fp"]}
    NUMBERS = {"interval_ms": 100, "since_ns": 1, "until_ns": 0, "stack_bytes": 4096, "window_ms": 100, "keep": 1,
               "hz": 0, "overhead_ppm": 0}

    def __init__(self, command, style, pids, actions):
        self.command, self.style, self.pids, self.actions = command, style, pids, actions
        self.text_bytes = 4000

    def text(self, name, i):
        if name == "label":
            return f"k{i:02}={ALMOST}" if i < 15 else "z=nothing"
        if self.style == "wild":
            return "*a" * (self.text_bytes // 2 - 3) + f"{i:05}"
        if name in self.TEXTS:
            return self.TEXTS[name][i % len(self.TEXTS[name])]
        return f"{'n' * 15}{i:03}"

    def number(self, name, i):
        if name == "pid":
            return self.pids[i % len(self.pids)]
        if name == "uid":
            return MALLORY if i == 0 and self.style != "wild" else i
        if name == "cpu":
            return i % os.cpu_count() if self.style == "full" else i
        if self.style == "wild":
            return (1 << 31) - 1
        return self.NUMBERS.get(name, 0)

    def value(self, kind, name, i, repeated):
        """A field's value; None: leave it out."""
        if kind in MESSAGES:
            return self.message(kind)
        if kind in ENUMS:
            return self.actions.get(kind, 0)
        if kind == "string":
            return self.text(name, i).encode() if repeated or self.style != "bare" else None
        if kind == "bytes":
            return b"{" * (FRAME_BYTES // 2) if self.style == "wild" else None
        if kind == "bool":
            return int(self.style == "wild")
        return self.number(name, i) if repeated or self.style != "bare" else None

    def message(self, message):
        out = b""
        for repeated, kind, name, number in MESSAGES[message]:
            n = LIMITS[message, name] if repeated else 1
            if self.style == "full":
                n = LESS.get((self.command, message, name), n)
            values = [self.value(kind, name, i, repeated) for i in range(n)]
            if (message, name) == ("Filter", "event") and self.style == "full":
                continue  # the event that the samples have
            if repeated and values and isinstance(values[0], int):
                out += field(number, b"".join(map(varint, values)))
            else:
                out += b"".join(field(number, v) for v in values if v is not None)
        return out


def requests(pids):
    """(says, case, body) of each command, style and action."""
    cases = {name: (number, kind) for _, kind, name, number in MESSAGES["Request"]}
    for command in commands():
        number, kind = cases[command.lower()]
        enum = next((k for _, k, _, _ in MESSAGES[kind] if k in ENUMS), None)
        for action in ENUMS.get(enum, [0]):
            for style in "bare", "full", "wild":
                maker = Maker(command, style, pids, {enum: action})
                body = maker.message(kind)
                if len(body) > FRAME_BYTES - 100:
                    maker.text_bytes = 600
                    body = maker.message(kind)
                assert len(body) < FRAME_BYTES - 100, (command, style, len(body))
                yield f"{command} {style} {action}", number, body


# --- the store at its limits ----------------------------------------------------------------------------

class Crowd:
    """Mallory's processes, which only wait; the first is the parent of all others."""

    def __init__(self, build, service, n):
        program = service.folder / "crowd"
        program.write_bytes(compile_program(build, "crowd.c").read_bytes())
        program.chmod(0o755)
        self.process = subprocess.Popen(as_user(MALLORY, program, n), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pids = [self.process.pid]

    def begin(self):
        self.process.stdin.write("x")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line == "all\n":
                break
            self.pids.append(int(line))

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def labels(i):
    return [f"k{k:02}={LONG}".encode() for k in range(15)] + [f"z={i}".encode()]


def give(client, pid, i):
    """Start job i of that process, once the daemon knows it."""
    for _ in range(50):
        client.request(1, JOB, field(1, 1) + field(2, pid) + b"".join(field(LABEL, text) for text in labels(i)))
        case, said = client.answer(DONE, FAILURE)
        if case == DONE:
            return
        time.sleep(0.1)
    raise AssertionError(said)


def make_pin(service):
    """A job of Mallory's that worked, and is pinned."""
    worker = subprocess.Popen(["sh", "-c", "read x; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"],
                              stdin=subprocess.PIPE)
    try:
        with Client(service.socket) as client:
            give(client, worker.pid, 0)
            worker.communicate(b"x\n")
            for _ in range(20):
                client.request(1, JOB, field(1, PIN) + field(LABEL, b"z=0"))
                case, said = client.answer(DONE, FAILURE)
                if case == DONE:
                    return
                time.sleep(0.5)
        raise AssertionError(said)
    finally:
        worker.kill()


def multiply_pins(service, n):
    """The one pin of the store has as many names as a store may have pins."""
    folder = Path(service.store) / "pinned"
    pin = next(folder.glob("*.mprf"))
    boot = pin.name.split("-", 1)[1]
    for i in range(n - 1):
        moment = datetime.datetime(2026, 1, 1) + datetime.timedelta(seconds=i)
        os.link(pin, folder / f"{moment:%Y%m%dT%H%M%SZ}-{boot}")


class Full(Stage):
    """A service whose store has many pins, and whose user Mallory has many processes in many jobs."""

    def __init__(self, build):
        self.crowd = None
        super().__init__(build, flush="1s", requests_per_second_max="10000", budget="4G")
        as_mallory(lambda: make_pin(self))
        wait_until("a pin is there", lambda: list((Path(self.store) / "pinned").glob("*.mprf")))
        assert self.stop() == 0
        multiply_pins(self, PINS)
        super().start()
        self.crowd = Crowd(build, self, PROCESSES)
        as_mallory(self.begin_jobs)
        self.crowd.begin()
        as_mallory(self.begin_more)
        listed = self.ask("job")
        assert len(listed["job"]) > JOBS and len(listed["pin"]) == PINS, (len(listed["job"]), len(listed["pin"]))
        assert sum(job["processes"] for job in listed["job"]) > PROCESSES

    def begin_jobs(self):
        with Client(self.socket) as client:
            give(client, self.crowd.pids[0], 0)

    def begin_more(self):
        with Client(self.socket) as client:
            for i, pid in enumerate(self.crowd.pids[-JOBS:]):
                give(client, pid, i + 1)

    def __exit__(self, kind, value, trace):
        if self.crowd:
            self.crowd.end()
        super().__exit__(kind, value, trace)


stage = []


def full(build):
    need_plain(build)
    return shared(stage, lambda: Full(build))


# --- asking ---------------------------------------------------------------------------------------------

def ask(service, case, body, seconds):
    """One request, whose answer is waited for, or ended after that time; how it ended. A small one behind it says that
    it had its turn, however much its user has spent before."""
    end = time.monotonic() + seconds
    had_turn, said = False, "hung up"
    with contextlib.suppress(ConnectionError), Client(service.socket) as client:
        client.request(1, case, body)
        client.request(2, STATUS, b"")
        while not had_turn or time.monotonic() < end:
            client.socket.settimeout(max(end - time.monotonic(), 0.01) if had_turn else 60)
            try:
                message = client.message()
            except TimeoutError:
                break
            if message is None:
                return said
            for answer in [fields(value) for number, value in message if number == 3]:
                number = dict(answer).get(1)
                for kind, content in answer:
                    if kind == FAILURE and number != 2:
                        said = dict(fields(content))[2].decode(errors="replace")
                    if kind == DONE and number == 1:
                        said = "done"
                    had_turn |= kind == DONE and number == 2
            if said != "hung up" and (had_turn or said != "done"):
                return said
        return "went on"
    return said


def taken(said):
    """None while its user has spent too much, on what was asked before."""
    return None if said == "hung up" or said.startswith("you connect too often") else said


def long_turn(service, case, body, run=as_mallory, seconds=ANSWER_S):
    """(what came back, the ms of a turn that was too long; 0: none was). What the service tries for itself now and then
    is a long turn too (test_attack_turns.py), and is not as often as this."""
    for attempt in range(3):
        before = turns(service)
        said = wait_until("it is taken", lambda: taken(run(lambda: ask(service, case, body, seconds))))
        after = turns(service)
        if after["long"] == before["long"]:
            return said, 0
    return said, after["lately_ns"] / 1e6


def ends_jobs(request):
    """Those that take the store from its limits come last."""
    says = request[0]
    return says.startswith("JOB") and says.endswith(("2", str(UNPIN)))


def test_every_command_with_all_its_fields_at_their_limits(build):
    service = full(build)
    asked = sorted(requests(service.crowd.pids), key=ends_jobs)
    assert len(asked) > 50
    long = {}
    for says, case, body in asked:
        began = time.monotonic()
        said, ms = long_turn(service, case, body)
        if ms > 0:
            long[says] = ms
        print(f"  {says}: {said[:100]} ({time.monotonic() - began:.2f} s, long: {ms})", flush=True)
    assert not long, long


def test_commands_of_those_who_see_all(build):
    """Of the group's members some may want to stop the service, too."""
    service = full(build)
    for says, case, body in requests(service.crowd.pids):
        if says in ("STORE bare 0", "JOB bare 0", "DIFF full 0", "HOTSPOTS full 0", "SCHEDULE bare 0", "STATUS bare 0"):
            said, ms = long_turn(service, case, body, run=lambda do: do())
            print(f"  {says}: {said[:100]}, long: {ms}", flush=True)
            assert ms == 0, (says, said, ms)


def test_a_user_unpins_thousands_of_jobs(build):
    service = full(build)
    body = field(1, UNPIN) + field(LABEL, f"k00={LONG[:-1]}*".encode())
    said, ms = long_turn(service, JOB, body, seconds=60)
    assert said == "done" and ms == 0, (said, ms)
    assert not list((Path(service.store) / "pinned").glob("*.mprf"))
