# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mallory reads processes that run as Mallory and are not wholly Mallory's: whose memory the kernel
would not show. /proc/PID belongs to Mallory for all of them."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from pathlib import Path

from attacked import (EVE, MALLORY, VICTOR, Stage, UnitService, as_user, need_plain, need_setuid,
                      shared)
from execs import losses
from feed_program import Connection as Feed, hello
from machine import Folder, Skip, compile_program, refused
from service import wait_until
from wire import FAILURE, READY, RECORD, Client, field, fields

SECONDS = 60
TARGETS_MAX = 3
LATE = 3  # samples of Mallory's own part that were still in a ring; the setuid program has some forty
LONG_S = 240  # for samples of programs that share two harts with all other tests
PR_SET_DUMPABLE = 4
CAP_NET_RAW = 13
TICKS = os.sysconf("SC_CLK_TCK")
STAT, ROWS = 5, 4  # of Request.body, of Answer.body

# Half of the time: there are several, and the daemon needs a hart too.
BUSY = "\nimport time\nwhile True:\n    sum(range(100000))\n    time.sleep(0.003)\n"
TURNED = f"""import os
os.setgroups([])
os.setresgid({MALLORY}, {MALLORY}, {MALLORY})
os.setresuid({MALLORY}, {MALLORY}, {MALLORY})
""" + BUSY
HIDDEN = f"""import ctypes
assert ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 0, 0, 0, 0) == 0
""" + BUSY
# Hides itself on request. One thread: what was sampled of it before it was Mallory's is kept
# apart, and of a process of several that is all of it.
HIDES = f"""import ctypes, signal
def hide(number, frame):
    assert ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 0, 0, 0, 0) == 0
    print("hidden", flush=True)
signal.signal(signal.SIGUSR1, hide)
print("ready", flush=True)
""" + BUSY
# Runs another program on request.
EXECS = """import os, sys, threading, time
print("ready", flush=True)
sys.stdin.readline()
os.execv(sys.argv[1], sys.argv[1:])
"""


def ticks_of(pid):
    """Processor time that a process has had, in ticks of user mode."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def file_capability(path, number):
    """Permitted and effective, of version 2. Source: include/uapi/linux/capability.h."""
    os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << number, 0, 0, 0))


class Cast(Stage):
    """A service, and programs that ran before it and were sampled by it."""

    def __init__(self, build):
        self.running = {}
        super().__init__(build, flush="1s", rate="499")
        wait_until("all are sampled", lambda: set(self.pids()) <= self.seen(0), LONG_S)
        self.all(signal.SIGSTOP)

    def all(self, number):
        """Others need the harts, too: they run where a test wants them to."""
        for process in self.running.values():
            process.send_signal(number)

    @contextlib.contextmanager
    def awake(self):
        self.all(signal.SIGCONT)
        try:
            yield
        finally:
            self.all(signal.SIGSTOP)

    def start(self, ready=True, **popen):
        if not self.running:
            self.begin()
        return super().start(ready, **popen)

    def copy(self, name, mode=0o755, owner=0):
        path = self.folder / name
        path.write_bytes(self.known.read_bytes())
        os.chown(path, owner, owner)
        os.chmod(path, mode)
        return path

    def begin(self):
        self.known = compile_program(self.build, "known.c")
        capable = self.copy("capable")
        file_capability(capable, CAP_NET_RAW)
        spin = "spin", "3600000", "0"
        self.run("own", as_user(MALLORY, self.copy("own"), *spin))
        self.run("capable", as_user(MALLORY, capable, *spin))
        # by a shell of Mallory's: setpriv execs while it still may read anything
        self.run("unreadable", as_user(MALLORY, "sh", "-c", 'exec "$0" "$@"',
                                       self.copy("unreadable", 0o711), *spin))
        self.run("turned", [sys.executable, "-c", TURNED])
        self.run("hidden", as_user(MALLORY, sys.executable, "-c", HIDDEN))
        self.run("other-group", ["setpriv", f"--reuid={MALLORY}", f"--regid={EVE}", "--clear-groups",
                                 "--inh-caps=-all", self.copy("other-group"), *map(str, spin)])
        for name, process in self.running.items():
            wait_until(f"{name} runs as Mallory", lambda p=process: self.is_on(p))
            assert os.stat(f"/proc/{process.pid}").st_uid in (MALLORY, 0), name

    @staticmethod
    def is_on(process):
        assert process.poll() is None, process.args
        status = Path(f"/proc/{process.pid}/status").read_text()
        return re.search(rf"^Uid:\t{MALLORY}\t{MALLORY}\t{MALLORY}", status, re.M) and \
            ticks_of(process.pid) > 5

    def run(self, name, command, **options):
        self.running[name] = subprocess.Popen(["nice", *map(str, command)], **options)

    def pid(self, name):
        return self.running[name].pid

    def pids(self):
        return [p.pid for p in self.running.values()]

    def seen(self, uid, *more):
        """pids that hotspots names to that user."""
        done = self.user(uid, "hotspots", "--since", "-1h", "--by", "process", "--limit", "0", "--json",
                         *more)
        assert done.returncode == 0, done.stderr
        return {row["pid"] for row in json.loads(done.stdout)["rows"]}

    def __exit__(self, kind, value, trace):
        for process in self.running.values():
            process.kill()
            process.wait()
        super().__exit__(kind, value, trace)


_cast = []


def cast(build):
    need_plain(build)
    return shared(_cast, lambda: Cast(build))


NOT_MALLORYS = "capable", "unreadable", "turned", "hidden"


def seen_of(pids):
    """Those of the cast among what was seen, by name."""
    c = _cast[0]
    return {name for name in c.running if c.pid(name) in pids}


def test_a_process_that_is_not_wholly_ones_own_is_not_counted(build):
    c = cast(build)
    for name in NOT_MALLORYS + ("other-group",):
        done = c.user(MALLORY, "stat", "-e", "task-clock", "--for", "1ms", "--pid", c.pid(name))
        refused(done, 1, f"process {c.pid(name)}")
    done = c.user(MALLORY, "stat", "-e", "task-clock", "--for", "1ms", "--pid", c.pid("own"))
    assert done.returncode == 0, done.stderr


def test_a_process_that_is_not_wholly_ones_own_is_not_recorded(build):
    c = cast(build)
    for name in NOT_MALLORYS + ("other-group",):
        for events in (), ("-e", "cpu-clock"):
            done = c.user(MALLORY, "record", *events, "--for", "1ms", "--pid", c.pid(name), "-o",
                          c.homes[MALLORY] / "no.mprf")
            refused(done, 1, f"process {c.pid(name)}")


def test_top_is_not_asked_for_a_process_that_is_not_wholly_ones_own(build):
    c = cast(build)
    for name in NOT_MALLORYS + ("other-group",):
        done = c.user(MALLORY, "top", "--batch", "--frames", "1", "--pid", c.pid(name))
        refused(done, 1, f"process {c.pid(name)}")


def test_the_store_shows_a_user_what_is_wholly_that_users(build):
    c = cast(build)
    wait_until("own is shown", lambda: c.pid("own") in c.seen(MALLORY), LONG_S)
    seen = seen_of(c.seen(MALLORY))
    assert not seen & set(NOT_MALLORYS), seen
    assert set(NOT_MALLORYS) <= seen_of(c.seen(0))


def test_top_shows_a_user_what_is_wholly_that_users(build):
    c = cast(build)

    def shown(uid):
        done = c.user(uid, "top", "--by", "process", "--json", "--frames", "2", "--limit", "1000")
        assert done.returncode == 0, done.stderr
        return seen_of({int(pid) for pid in re.findall(r'"pid":\s*(\d+)', done.stdout)})
    with c.awake():
        assert wait_until("all are shown to root", lambda: set(NOT_MALLORYS) <= shown(0), LONG_S)
        assert shown(MALLORY) <= {"own"}
        wait_until("own is shown", lambda: "own" in shown(MALLORY), LONG_S)


def test_a_recording_of_a_user_has_no_samples_of_what_is_not_wholly_that_users(build):
    """Children are recorded with the process that was named: each of them is looked at."""
    c = cast(build)
    path = c.homes[MALLORY] / "mine.mprf"
    script = f"{c.folder}/capable spin 500 0 & {c.folder}/unreadable spin 500 0 & " \
             f"{c.folder}/own spin 500 0; wait"
    for events in (), ("-e", "cpu-clock"):
        done = c.user(MALLORY, "record", "-F", "499", *events, "-o", path, "--", "sh", "-c", script)
        assert done.returncode == 0, done.stderr
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            found = {comm for comm, in db.execute(
                "SELECT DISTINCT comm FROM sample s JOIN task t ON t.id = s.task")}
        path.unlink()
        assert "own" in found and not found & {"capable", "unreadable"}, (events, found)


def test_what_hides_itself_later_is_hidden_with_what_was_sampled_of_it(build):
    """No record tells of the call: the process is read again before its samples are stored."""
    c = cast(build)
    with subprocess.Popen(as_user(MALLORY, sys.executable, "-c", HIDES), text=True,
                          stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            wait_until("it is shown", lambda: process.pid in c.seen(MALLORY), LONG_S)
            process.send_signal(signal.SIGUSR1)
            assert process.stdout.readline() == "hidden\n"
            wait_until("it is hidden", lambda: process.pid not in c.seen(MALLORY), LONG_S)
            assert process.pid in c.seen(0)
        finally:
            process.kill()


def test_what_root_did_before_it_became_a_users_program_stays_hidden(build):
    """An sshd that becomes the user's shell: what was sampled of it as root is root's."""
    c = cast(build)
    script = "import os, sys, time\nend = time.process_time() + 1\n" \
             "while time.process_time() < end:\n    sum(range(100000))\n" \
             "sys.stdin.readline()\n" \
             f"os.setgroups([]); os.setresgid(*[{MALLORY}] * 3); os.setresuid(*[{MALLORY}] * 3)\n" \
             f"os.execv('{c.folder}/own', ['own', 'spin', '3600000', '0'])\n"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as process:
        try:
            wait_until("root's part is sampled", lambda: process.pid in c.seen(0), LONG_S)
            process.stdin.write(b"\n")
            process.stdin.flush()
            wait_until("the user's part is shown", lambda: process.pid in c.seen(MALLORY), LONG_S)
            done = c.user(MALLORY, "hotspots", "--since", "-1h", "--by", "function", "--limit", "0",
                          "--json", "--pid", process.pid)
            rows = json.loads(done.stdout)["rows"]
            assert rows and not [row for row in rows if "python" in row["module"]], rows
            everything = c.user(0, "hotspots", "--since", "-1h", "--by", "function", "--limit", "0",
                                "--json", "--pid", process.pid)
            assert "python" in everything.stdout
        finally:
            process.kill()


# --- lost records ----------------------------------------------------------------------------------

def samples(service, uid, pid):
    """Those of the process that this user sees."""
    done = service.user(uid, "hotspots", "--since", "-1h", "--by", "process", "--limit", "0", "--json", "--pid", pid)
    assert done.returncode == 0, done.stderr
    return sum(row["samples"] for row in json.loads(done.stdout)["rows"])


def all_is_stored(service, known):
    """What was sampled so far: a process that begins now is shown. The exec of one may be lost, too."""
    begun = []

    def shown():
        if not begun or begun[-1].poll() is not None:
            begun.append(subprocess.Popen(as_user(MALLORY, known, "spin", "500", "0")))
        return any(samples(service, MALLORY, process.pid) for process in begun)
    try:
        wait_until("the next window is stored", shown, LONG_S)
    finally:
        for process in begun:
            process.kill()
            process.wait()


@contextlib.contextmanager
def sampled_target(service, known, program):
    """A target whose own part its user sees, and the samples that its user and root see. Where records were lost before
    it began, it stays hidden: the next one is tried."""
    for _ in range(TARGETS_MAX):
        with Target(program, "spin", "400", busy="sum(range(20_000_000))\n") as target:
            all_is_stored(service, known)
            seen = [samples(service, uid, target.pid) for uid in (MALLORY, 0)]
            if seen[0]:
                yield target, *seen
                return
    raise AssertionError(f"of {TARGETS_MAX} processes of Mallory's none is shown")


def lost_exec_of_a_setuid_program(build, **keys):
    """Mallory's process is sampled, and execs a setuid program of Victor's while Mallory's forks fill the rings of
    a service that has not its turn. That program is gone when the service reads on."""
    need_plain(build)
    with Folder() as folder, UnitService(build, folder, flush="1s", rate="99", **keys) as service:
        need_setuid(folder)
        known, program = folder / "known", folder / "setuid-spin"
        for path, mode, owner in (known, 0o755, 0), (program, 0o4755, VICTOR):
            path.write_bytes(compile_program(build, "known.c").read_bytes())
            os.chown(path, owner, owner)
            os.chmod(path, mode)
        hart = max(os.sched_getaffinity(0))
        with sampled_target(service, known, program) as (target, mallorys, roots):
            os.sched_setaffinity(target.pid, {hart})
            service.process.send_signal(signal.SIGSTOP)
            try:
                subprocess.run(["taskset", "--cpu-list", str(hart), *as_user(MALLORY, known, "processes", "10000")],
                               check=True, stdout=subprocess.DEVNULL)
                target.exec()
                assert target.process.wait(LONG_S) == 0, "the setuid program ran"
            finally:
                service.process.send_signal(signal.SIGCONT)
            all_is_stored(service, known)
            if not losses(service).get("side band overrun"):
                raise Skip("these forks did not fill the ring of this machine's side band")
            if samples(service, 0, target.pid) <= roots:
                raise Skip("the setuid program has no sample")
            now = samples(service, MALLORY, target.pid)
            assert now <= mallorys + LATE, (now, mallorys, roots, samples(service, 0, target.pid))


def test_a_setuid_program_whose_exec_was_lost_is_hidden(build):
    lost_exec_of_a_setuid_program(build)


def test_a_setuid_program_whose_exec_was_lost_is_hidden_without_bpf(build):
    lost_exec_of_a_setuid_program(build, without=("bpf",))


# --- between the check and the counters ---------------------------------------------------------


@contextlib.contextmanager
def as_peer(uid):
    """Connections made meanwhile are that user's to the other end."""
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def stat_request(pids, interval_ms=100):
    packed = b"".join(field(2, pid)[1:] for pid in pids)
    return field(1, field(2, packed)) + field(2, b"task-clock") + field(3, interval_ms)


def asks_stat(service, pids):
    with as_peer(MALLORY):
        client = Client(service.socket)
    client.request(1, STAT, stat_request(pids))
    return client


def setuid_program(service):
    need_setuid(service.folder)
    return service.copy("setuid-spin", 0o4755, VICTOR)


class Target:
    """Mallory's process, which execs a program on request."""

    def __init__(self, *program, busy=""):
        self.process = subprocess.Popen(as_user(MALLORY, sys.executable, "-c", busy + EXECS, *program),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def exec(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def is_victors(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return re.search(rf"^Uid:\t{MALLORY}\t{VICTOR}", status, re.M) and \
            ticks_of(self.pid) > TICKS // 10

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def value_of(row):
    """The second cell of a row, an integer, which is zigzag; none where nothing was counted."""
    cells = [cell for number, cell in fields(row) if number == 1]
    return sum(n >> 1 for case, n in fields(cells[1]) if case == 2)


def last_counts(client, target):
    """What is counted of it in the second half of a second that it spins."""
    start, total = ticks_of(target.pid), 0
    while ticks_of(target.pid) < start + TICKS:
        _, content = client.answer(ROWS)
        if ticks_of(target.pid) > start + TICKS // 2:
            total += sum(value_of(row) for number, row in fields(content) if number == 1)
    return total


def test_counters_are_not_had_of_a_program_that_began_during_the_check(build):
    """Another pid, 60,000 times behind the target's, gave 1.7 s between its check and the opening."""
    c = cast(build)
    with Target(setuid_program(c), "spin", "3600000", "0") as target:
        client = asks_stat(c, [target.pid] + [c.pid("own")] * 60000)  # which sleeps
        time.sleep(0.3)  # an attacker's guess; it need not hit
        target.exec()
        wait_until("the setuid program spins", target.is_victors)
        if client.answer(READY, FAILURE)[0] == READY:
            assert last_counts(client, target) == 0
        client.socket.close()


def test_counters_end_when_a_setuid_program_begins(build):
    """The kernel takes them away."""
    c = cast(build)
    with Target(setuid_program(c), "spin", "3600000", "0") as target:
        client = asks_stat(c, [target.pid])
        assert client.answer(READY, FAILURE)[0] == READY
        target.exec()
        wait_until("the setuid program spins", target.is_victors)
        assert last_counts(client, target) == 0
        client.socket.close()


def test_more_processes_than_one_request_may_name_are_refused(build):
    c = cast(build)
    client = asks_stat(c, range(1, 2000))
    case, content = client.answer(READY, FAILURE)
    assert case == FAILURE and b"more than the 256 that one request may name" in content, content
    client.socket.close()


# --- what reaches the kernel, or others ----------------------------------------------------------


def test_the_kernels_part_is_refused_to_a_recording_as_it_is_to_stat(build):
    c = cast(build)
    for event in ("cpu-clock:k", "cycles:k", "{cpu-clock,page-faults:k}", "cpu-clock:h",
                  "context-switches"):
        for command in (("stat", "-e", event, "--", "true"),
                        ("record", "-e", event, "-o", c.homes[MALLORY] / "k.mprf", "--", "true")):
            done = c.user(MALLORY, *command)
            alone = "{" not in event and command[0] == "stat" or command[0] == "record"
            if alone:
                assert done.returncode == 1, (event, command, done.stdout, done.stderr)


def test_an_event_without_a_modifier_records_user_code_alone(build):
    c = cast(build)
    path = c.homes[MALLORY] / "dd.mprf"
    dd = "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=300000"
    done = c.user(MALLORY, "record", "-e", "cpu-clock", "-F", "499", "-o", path, "--", *dd)
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        kinds = {kind for kind, in db.execute("SELECT kind FROM file")}
        assert not kinds & {2, 3}, kinds  # kernel and its modules
        modifiers = {m for m, in db.execute("SELECT modifiers FROM event WHERE name LIKE 'cpu-clock%'")}
        assert all(m & 2 for m in modifiers), modifiers
    path.unlink()


def test_an_event_that_cannot_leave_the_kernel_out_is_refused(build):
    if not Path("/sys/bus/event_source/devices/msr/events/tsc").exists():
        raise Skip("this machine has no PMU msr")
    c = cast(build)
    for command in ("stat",), ("record", "-o", c.homes[MALLORY] / "tsc.mprf"):
        done = c.user(MALLORY, *command, "-e", "msr/tsc/", "--", "true")
        assert done.returncode == 1, (command, done.stdout, done.stderr)


def is_silent(connection, seconds=1.0):
    connection.socket.settimeout(seconds)
    try:
        return connection.socket.recv(4096) == b""
    except TimeoutError:
        return True


def test_a_user_reaches_the_programs_of_another_neither_by_a_period_nor_by_a_question(build):
    """A roofline asks programs for a round at once, a recording for more of them."""
    c = cast(build)
    with as_peer(VICTOR):
        victors = Feed(c.feed)
    with as_peer(MALLORY):
        mallorys = Feed(c.feed)
    with victors, mallorys:
        for program in victors, mallorys:
            program.send(hello())
        wait_until("both are there", lambda: c.ask("status")["feed"][0]["programs"] == 2)
        for command in (("roofline", "--json"), ("blocks", "--json"),
                        ("roofline", "--json", "--pid", os.getpid())):
            done = c.user(MALLORY, *command)
            assert mallorys.asked(60) == (1000, 1), command
        with as_peer(MALLORY):
            client = Client(c.socket)
        client.request(1, RECORD, field(1, field(1, 0) + field(2, c.pid("own"))) + field(10, 10))
        assert client.answer(READY, FAILURE)[0] == READY
        assert mallorys.asked(60) == (10, 0)
        assert is_silent(victors)
        with as_peer(VICTOR):
            late = Feed(c.feed)
        with late:
            late.send(hello())
            wait_until("it is there", lambda: c.ask("status")["feed"][0]["programs"] == 3)
            assert is_silent(late)
            assert c.user(VICTOR, "roofline", "--json").returncode == 0
            assert late.asked(60) == victors.asked(60) == (1000, 1)
            assert c.ctl("roofline", "--json").returncode == 0  # root's question is everybody's
            assert late.asked(60)[1] == victors.asked(60)[1] == 1
        client.socket.close()


# --- without a service ---------------------------------------------------------------------------


def alone(service, *arguments):
    """mperfctl of Mallory's, with a daemon of Mallory's own."""
    return service.user(MALLORY, *arguments, env=dict(
        os.environ, NO_COLOR="1", LC_ALL="C.UTF-8", HOME=str(service.homes[MALLORY]),
        TMPDIR=str(service.folder / "tmp"), MPERF_SOCKET=""))


def test_a_private_daemon_of_mallorys_may_no_more_than_mallory(build):
    """The kernel decides there."""
    c = cast(build)
    own = alone(c, "stat", "-e", "task-clock", "--for", "1ms", "--pid", c.pid("own"))
    if own.returncode != 0:
        raise Skip(f"this machine lets ordinary users count nothing: {own.stderr}")
    for name in NOT_MALLORYS:
        for command in (("stat", "-e", "task-clock"),
                        ("record", "-e", "cpu-clock", "-o", c.homes[MALLORY] / "alone.mprf")):
            done = alone(c, *command, "--for", "1ms", "--pid", c.pid(name))
            assert done.returncode == 1, (name, command, done.stdout, done.stderr)
