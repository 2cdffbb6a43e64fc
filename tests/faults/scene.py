# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the faults share: a service with the unit's rights under load, and its account."""
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
from dataclasses import dataclass
from pathlib import Path

from attacked import DAEMON, MALLORY, UnitService, as_user
from machine import SAMPLES, Folder, compile_program
from running import command_line
from service import children_of, wait_until

HZ = 499  # high enough that a second has its samples, low enough for any machine's limit
# In hand when the daemon is killed: the window that is not flushed yet, and what the rings hold.
IN_HAND_SECONDS = 3

GREETINGS = 12  # times 10 s that mperfctl waits for one


@dataclass
class Result:
    """What a fault did: how often, the samples that the service took meanwhile, and those that are
    counted lost; and a sentence."""
    times: int
    taken: int
    lost: int
    says: str


def ask(service, *question):
    """The answer as parsed JSON. Faults do not test how soon it comes: a daemon under
    sanitizers, on a machine that is overloaded on purpose, may greet later than mperfctl waits."""
    for _ in range(GREETINGS):
        done = service.ctl(*question, "--json", check=False)
        if "did not answer the greeting" not in done.stderr:
            break
    assert done.returncode == 0, (question, done.stdout, done.stderr)
    return json.loads(done.stdout)


def functions(service):
    """Of all that the service keeps."""
    return [row["function"] or "" for row in
            ask(service, "hotspots", "--by", "function", "--limit", "0")["rows"]]


def account(service):
    return next(row for row in ask(service, "status")["account"] if row["period"] == "since start")


def check_account(service):
    """taken = stored + in hand + lost, by one answer; and each loss has a cause."""
    status = ask(service, "status")
    now = next(row for row in status["account"] if row["period"] == "since start")
    assert now["taken"] == now["stored"] + now["in_hand"] + now["lost"], now
    causes = sum(row["count"] for row in status["loss"] if row["samples"] == "yes")
    assert causes == now["lost"], (now, status["loss"])
    return now


def worker(service, role):
    """The pid of the service's opener (open) or parser (parse); None if there is none."""
    for pid in children_of(service.process.pid):
        arguments = command_line(pid)
        if len(arguments) > 1 and arguments[:2] == ["mperf-namer", role]:
            return pid
    return None


class Scene:
    """with Scene(build, **keys of mperf.conf) as scene: a service, two spinning programs and one that
    starts others, as an ordinary user."""

    BENEATH = None  # a folder whose tiers of minutes and hours the store has from the start

    def __init__(self, build, load=True, **keys):
        self.build, self.scratch, self.load = build, Folder(), []
        self.folder = self.scratch.path
        self.service = UnitService(build, self.folder, **{"flush": "1s", "rate": str(HZ), **keys})
        if self.BENEATH and "budget" not in keys:
            self.put_beneath()
        self.wants_load = load
        self.n_programs = 0
        self.place = self.folder / "programs"
        self.place.mkdir(mode=0o755)

    def put_beneath(self):
        self.service.keys |= {"keep_minutes": "730d", "keep_hours": "730d"}
        self.service.store.mkdir(mode=0o700)
        for tier in "minute", "hour":
            shutil.copytree(self.BENEATH / tier, self.service.store / tier)
        for path in self.service.store, *self.service.store.rglob("*"):
            os.chown(path, DAEMON, DAEMON)

    def __enter__(self):
        self.known = self.place / "known"
        subprocess.run(["cp", compile_program(self.build, "known.c"), self.known], check=True)
        if self.wants_load:
            for _ in range(os.cpu_count() or 1):  # below whatever else runs on the machine
                self.begin("nice", "-n", "19", self.known, "spin", "100000000")
            self.begin("sh", "-c", f"while :; do {self.known} processes 20; sleep 0.1; done")
        return self

    def begin(self, *command):
        """A program of an ordinary user's that ends with the scene."""
        process = subprocess.Popen(as_user(MALLORY, "setpriv", "--pdeathsig=KILL", *command),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   cwd="/", start_new_session=True)
        self.load.append(process)
        return process

    def new_function(self):
        """Run a program that nobody has seen, and wait until its function is named."""
        self.n_programs += 1
        name = f"function_{os.getpid()}_{self.n_programs}"
        source, program = self.place / f"{name}.c", self.place / name
        source.write_text(f"volatile unsigned long n; __attribute__((noinline)) void {name}(void)"
                          "{ for (;;) n++; }\n" f"int main(void) {{ {name}(); }}\n")
        subprocess.run(["cc", "-O1", "-g", "-o", program, source], check=True)
        process = self.begin(program)
        try:
            wait_until(f"{name} is named", lambda: name in functions(self.service), 120)
        finally:
            process.kill()
            process.wait()

    def __exit__(self, kind, value, trace):
        for process in self.load:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
        try:
            self.service.__exit__(kind, value, trace)
        finally:
            self.scratch.cleanup()


def check_segments(service):
    """Every file of the store opens, is sound and sealed; (files, samples, lost by a kill)."""
    found = sorted((service.store / "window").glob("*.mprf"))
    stored = killed = 0
    for path in found:
        db = sqlite3.connect(f"file:{path}?immutable=1&mode=ro", uri=True)
        try:
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok", path
            assert db.execute("SELECT value FROM meta WHERE key = 'sealed'").fetchone()[0] == 1, path
            lost = db.execute("SELECT total(count) FROM loss WHERE cause = 'daemon killed'")
            lost = int(lost.fetchone()[0])
            assert lost <= IN_HAND_SECONDS * HZ * os.cpu_count() + 100, (path, lost)
            killed += lost
            stored += int(db.execute(f"SELECT total(count) FROM {SAMPLES}").fetchone()[0])
        finally:
            db.close()
    corrupt = list(Path(service.store / "corrupt").iterdir())
    assert found and not corrupt, (found, corrupt, service.said()[-2000:])
    return len(found), stored, killed
