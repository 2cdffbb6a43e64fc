# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What raises the rate for one raises the loss for nobody else: a high rate, ever new stacks and a storm of
threads of one user leave another user's samples, names and the loop alone, and memory bounded. The service
is the unit's, and its rate-max allows what is asked for."""
import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

from attacked import MALLORY, VICTOR, UnitService, as_user, need_plain
from machine import Folder, compile_program
from rates import rate_allowed, samples_of
from service import children_of, wait_until

SECONDS = 40

HZ = 10000
ATTACK_S = 9  # Victor's program runs within it
VICTOR_MS = 2500
LOST_MAX = 0.01    # of the samples of that time
NAMED_MIN = 0.9    # of Victor's samples
TURN_MS_MAX = 50   # of the loop's thread's own time
MB = 1 << 20
# What an ordinary user's samples may add to the service and its children (mperfd(8), SHARES OF USERS) is
# more; in these seconds it is less, and without limits it was 600 MB.
GREW_MAX = 300 * MB


@contextlib.contextmanager
def mallory_runs(service, program, *arguments):
    """That program as Mallory, until the end of the block or its own."""
    own = service.homes[MALLORY] / f"run-{time.monotonic_ns()}"
    own.mkdir()
    os.chown(own, MALLORY, MALLORY)
    if not (service.folder / program.name).exists():
        shutil.copy(program, service.folder / program.name)
    with subprocess.Popen(as_user(MALLORY, service.folder / program.name,
                                  *(own if a is None else a for a in arguments)),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def mallory_looks(service, *arguments):
    """mperfctl as Mallory, who reads all that comes."""
    environment = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8", HOME=str(service.homes[MALLORY]),
                       MPERF_SOCKET=str(service.socket))
    with subprocess.Popen(as_user(MALLORY, service.folder / "mperfctl", *arguments), env=environment,
                          cwd=service.homes[MALLORY], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as client:
        try:
            yield client
        finally:
            client.kill()


def used_bytes(pid):
    """Memory of one process alone, without what it shares with files."""
    try:
        said = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in said.splitlines()
               if line.startswith(("RssAnon:", "RssShmem:")))


class Watch:
    """The most that the service and its children held, looked at ten times a second."""

    def __init__(self, service):
        self.pid, self.most, self.over = service.process.pid, 0, threading.Event()
        self.before = self.look()
        self.thread = threading.Thread(target=self.run)

    def look(self):
        return used_bytes(self.pid) + sum(used_bytes(pid) for pid in children_of(self.pid))

    def run(self):
        while not self.over.wait(0.1):
            self.most = max(self.most, self.look())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def state(service):
    status = json.loads(service.ctl("status", "--json").stdout)
    lost = {}
    for row in status["loss"]:
        lost[row["cause"]] = lost.get(row["cause"], 0) + row["count"]
    return status["account"][0], lost, status["loop"][0]


def names_of_victor(service):
    """Samples of Victor's program by function, as Victor sees them: all, and those with a name."""
    answer = json.loads(service.user(VICTOR, "hotspots", "--comm", "known", "--since", "-50s", "--limit", "0",
                                     "--json").stdout)
    samples = [(row["function"], row["samples"]) for row in answer["rows"]]
    return sum(n for _, n in samples), sum(n for name, n in samples if name and "unknown" not in name), answer


def victor_works(service, known):
    shutil.copy(known, service.folder / "known")
    subprocess.run(as_user(VICTOR, service.folder / "known", "spin", VICTOR_MS), check=True,
                   stdout=subprocess.DEVNULL)


def expect_all(service, before):
    """Victor's samples have names, hardly a sample was lost, and no turn was long."""
    account, lost, loop = state(service)
    n_taken = account["taken"] - before[0]["taken"]
    n_lost = lost.get("ring overrun", 0) - before[1].get("ring overrun", 0)
    n, n_named, answer = wait_until("Victor's work is stored", lambda: names_of_victor(service)
                                    if names_of_victor(service)[0] else None)
    print(f"  {n_taken} taken, {n_lost} lost, Victor {n_named} named of {n}; loop {loop}; {lost}", flush=True)
    assert n_lost <= LOST_MAX * n_taken, (n_lost, n_taken)
    assert n >= 0.5 * VICTOR_MS / 1000 * 99, (n, answer["provenance"])
    assert n_named >= NAMED_MIN * n, (n_named, n, answer["rows"])
    assert loop["long"] == before[2]["long"] or loop["lately_ns"] < TURN_MS_MAX * 1e6, (before[2], loop)


def test_a_high_rate_and_new_stacks_of_one_user_cost_another_nothing(build):
    need_plain(build)
    noise, known = compile_program(build, "noise.c"), compile_program(build, "known.c")
    with Folder() as folder, UnitService(build, folder, flush="1s", rate_max=HZ) as service:
        before = state(service)
        with contextlib.ExitStack() as attack:
            watch = attack.enter_context(Watch(service))
            for _ in range(2):
                attack.enter_context(mallory_runs(service, noise, None, str(ATTACK_S)))
            attack.enter_context(mallory_looks(service, "top", "-F", str(HZ), "--batch", "--frames", "20",
                                               "--limit", "5"))
            time.sleep(3)
            victor_works(service, known)
            expect_all(service, before)
        print(f"  {watch.before / MB:.0f} MB before, {watch.most / MB:.0f} MB at most", flush=True)
        assert watch.most - watch.before < GREW_MAX, (watch.before, watch.most)


def test_a_storm_of_threads_of_one_user_costs_another_nothing(build):
    need_plain(build)
    storm, known = compile_program(build, "storm.c"), compile_program(build, "known.c")
    with Folder() as folder, UnitService(build, folder, flush="1s") as service:
        before = state(service)
        with contextlib.ExitStack() as attack:
            watch = attack.enter_context(Watch(service))
            attack.enter_context(mallory_runs(service, storm, str(ATTACK_S - 2)))
            time.sleep(1)
            victor_works(service, known)
            expect_all(service, before)
        print(f"  {watch.before / MB:.0f} MB before, {watch.most / MB:.0f} MB at most", flush=True)
        assert watch.most - watch.before < GREW_MAX, (watch.before, watch.most)


def test_a_rate_of_an_ordinary_user_is_for_their_tasks_alone(build):
    need_plain(build)
    known = compile_program(build, "known.c")
    hz = rate_allowed(1999)
    with Folder() as folder, UnitService(build, folder, flush="1s", rate_max=HZ) as service:
        shutil.copy(known, folder / "known")
        file = service.homes[VICTOR] / "recording"
        before = state(service)
        with subprocess.Popen(as_user(MALLORY, folder / "known", "spin", "20000"),
                              stdout=subprocess.DEVNULL) as other:
            done = service.user(VICTOR, "record", "-F", hz, "-o", file, "--", folder / "known", "spin",
                                "1000")
            other.kill()
        assert done.returncode == 0, done.stderr
        taken = state(service)[0]["taken"] - before[0]["taken"]
        answer = json.loads(service.user(VICTOR, "hotspots", "-i", file, "--json").stdout)
        n = sum(row["samples"] for row in answer["rows"])
        # the store's own samples are as many as ever, of all harts
        seconds = (state(service)[0]["duration_ns"] - before[0]["duration_ns"]) / 1e9
        print(f"  {n} at {hz} Hz; the service took {taken} in {seconds:.1f} s", flush=True)
        assert n >= samples_of(1, hz), (n, answer["provenance"])
        assert taken <= 1.5 * 99 * (os.cpu_count() or 1) * seconds, (taken, seconds)
        assert max(row["hz"] for row in json.loads(service.ctl("status", "--json").stdout)["rate"]) <= 99
