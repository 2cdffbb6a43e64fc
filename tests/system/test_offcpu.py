# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where threads wait: how long, for what, and whose they are, beside what threads say of themselves."""
import json
import os
import platform
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import defaultdict
from math import sqrt
from pathlib import Path

from attacked import MALLORY, VICTOR, UnitService, as_user
from machine import (Folder, Skip, as_nobody, by_itself, compile_program, everybodys, leave_to_plain, mperfctl,
                     need_root, refused, rows)
from service import Service, wait_until

SECONDS = 80
# The next one is about chance, and its looks are taken by the same code.
SANITIZED = "test_time_adds_up_whatever_threads_wait_for_and_however_long",

LOOK_S = 0.1
# What each kind of thread of offcpu_waits.c waits for, besides a hart.
KINDS = {"sleeps": "sleep", "short_sleeps": "sleep", "half_sleeps": "sleep", "holds": "sleep", "locks": "lock",
         "writes": "sleep", "reads_pipe": "pipe", "reads_socket": "network", "polls": "poll", "child": "child"}


def need_looks(path):
    """Skip where BPF is refused: the recording has no event of threads that wait."""
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as db:
        if not list(db.execute("SELECT 1 FROM event WHERE pmu = 'waiting' LIMIT 1")):
            raise Skip("threads that wait are not looked for here: BPF is not available")


def waits(path):
    """{thread's name: {kind: [seconds, looks that found it]}} of a recording."""
    found = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as db:
        for comm, event, ns, n in db.execute(
                "SELECT comm, e.name, sum(weight_ns), sum(count) FROM sample s JOIN task t ON t.id = s.task "
                "JOIN event e ON e.id = s.event WHERE e.pmu = 'waiting' GROUP BY 1, 2"):
            found[comm][event.removeprefix("waiting:")] = [ns / 1e9, n]
    return found


def recorded(build, path, seconds, through=()):
    """(what threads say: {name: [lived, ran, ready, long waits, threads] in seconds}, what looks found)"""
    need_root()
    program = compile_program(build, "offcpu_waits.c", "-pthread", "-fno-optimize-sibling-calls")
    done = mperfctl(build, "record", "-f", "-o", path, "--", program, str(seconds), through=through)
    need_looks(path)
    said = defaultdict(lambda: [0] * 5)
    for line in done.stdout.splitlines():
        name, *ns = line.split()
        said[name] = [a + b for a, b in zip(said[name], [*(int(n) / 1e9 for n in ns), 1])]
    assert len(said) == 11, done.stdout
    return said, waits(path)


def error_of(expected_s, lived_s, n_threads):
    """Four standard deviations of an estimate by looks, each of which finds a thread waiting by chance; and one look
    more for each thread, which begins and ends within intervals."""
    share = min(1, max(0.02, expected_s / lived_s))
    return 4 * LOOK_S * sqrt(lived_s / LOOK_S * share * (1 - share)) + (n_threads + 1) * LOOK_S


def test_time_adds_up_whatever_threads_wait_for_and_however_long(build):
    with Folder() as folder:
        said, found = recorded(build, folder / "r", 8)
    for name, (lived, ran, ready, _, n) in said.items():
        waited = sum(s for kind, (s, _) in found[name].items() if kind != "hart")
        for what, estimate, true in ("waiting", waited, lived - ran - ready), ("ready", found[name]["hart"][0], ready):
            error = error_of(true, lived, n)
            assert abs(estimate - true) <= error, (name, what, estimate, true, error, dict(found[name]))
        if name in KINDS:
            of_kind = found[name][KINDS[name]][0]
            assert of_kind > 0.7 * waited if name == "holds" else of_kind > 0.95 * waited, (name, dict(found[name]))
    # the test can tell: with a threshold of 10 ms, nothing of the short sleeps would be left
    lived, ran, ready, long, n = said["short_sleeps"]
    assert abs(long - (lived - ran - ready)) > error_of(long, lived, n)


def test_a_thread_in_step_with_intervals_is_found_as_often_as_it_waits(build):
    need_root()
    program = compile_program(build, "offcpu_waits.c", "-pthread")
    with Folder() as folder:
        mperfctl(build, "record", "-f", "-o", folder / "r", "--", program, "0.1")
        need_looks(folder / "r")
        step = "import time\nend = time.monotonic() + 20\nwhile time.monotonic() < end:\n" \
               "    until = time.monotonic() + 0.05\n    while time.monotonic() < until: pass\n    time.sleep(0.05)\n"
        mperfctl(build, "record", "-f", "-o", folder / "r", "--", "python3", "-c", step)
        found = waits(folder / "r")["python3"]
        threads = rows(build, "hotspots", "-i", folder / "r", "--comm", "python3")["provenance"]["threads"]
    error = error_of(threads["waited_s"], threads["lived_s"], 1)
    slept = sum(s for kind, (s, _) in found.items() if kind != "hart")
    assert abs(slept - threads["waited_s"]) < error, (slept, threads, error)


def test_callers_of_waits_are_whole_and_answers_say_how_they_were_found(build):
    with Folder() as folder:
        recorded(build, folder / "r", 2)
        answer = rows(build, "hotspots", "-i", folder / "r", "--event", "waiting")
        text = mperfctl(build, "hotspots", "-i", folder / "r", "--event", "off-cpu").stdout
        default = mperfctl(build, "hotspots", "-i", folder / "r").stdout
        everything = mperfctl(build, "flamegraph", "--folded", "-i", folder / "r", "--event", "waiting").stdout
        folded = mperfctl(build, "flamegraph", "--folded", "-i", folder / "r", "--event", "waiting:lock").stdout
        with sqlite3.connect(f"file:{folder / 'r'}?immutable=1", uri=True) as db:
            (n, cut), = db.execute("SELECT sum(count), sum(truncated) FROM sample s JOIN event e ON e.id = s.event "
                                   "WHERE pmu = 'waiting'")
    assert cut <= 0.02 * n and n > 200, (n, cut)
    for function in "reads_pipe", "reads_socket", "polls", "locks", "waits_for_child":
        assert f"work;{function};" in everything, (function, everything)
    assert "locks;" in folded and "reads_pipe" not in folded, folded
    assert answer["provenance"]["interval_s"] < 0.5 and answer["provenance"]["rung"] in ("", None), answer["provenance"]
    assert re.search(r"waiting:sleep.*, sampled every \d+ ms; \d+ samples", text), text
    assert "waiting:hart" not in text and "waiting" not in default.splitlines()[0], (text, default)
    assert "; mperfctl hotspots --event waiting shows where" in default, default


def test_waits_under_way_count_and_stopped_processes_are_told_apart(build):
    need_root()
    with Folder() as folder, subprocess.Popen(["sleep", "1000"]) as sleeps, \
            subprocess.Popen(["sleep", "1000"]) as stopped:
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            for process, kind in (sleeps, "sleep"), (stopped, "stopped"):
                mperfctl(build, "record", "-f", "-o", folder / "r", "-p", process.pid, "--for", "2s")
                need_looks(folder / "r")
                found = waits(folder / "r")["sleep"]
                assert abs(found[kind][0] - 2) < 0.5, (kind, dict(found))
                assert sum(s for s, _ in found.values()) < found[kind][0] + 0.3, dict(found)
        finally:
            for process in sleeps, stopped:
                process.kill()


def freezers():
    """(folder of a hierarchy of control groups, its file, the words that freeze and thaw) of those that this machine has."""
    for tree, name, *words in ("freezer", "freezer.state", "FROZEN", "THAWED"), ("unified", "cgroup.freeze", "1", "0"), \
            (".", "cgroup.freeze", "1", "0"):
        root = Path("/sys/fs/cgroup") / tree
        group = root / f"mperf-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        found = (group / name).exists()
        group.rmdir()
        if found:
            yield root, name, words


def test_a_frozen_control_group_is_stopped(build):
    need_root()
    all_freezers = list(freezers())
    if not all_freezers:
        raise Skip("no control group can be frozen here")
    for root, name, (freeze, thaw) in all_freezers:
        group = root / f"mperf-test-{os.getpid()}"
        group.mkdir()
        with Folder() as folder, subprocess.Popen(["sleep", "1000"]) as sleeps:
            try:
                (group / "cgroup.procs").write_text(str(sleeps.pid))
                (group / name).write_text(freeze)
                mperfctl(build, "record", "-f", "-o", folder / "r", "-p", sleeps.pid, "--for", "2s")
                need_looks(folder / "r")
                found = waits(folder / "r")["sleep"]
                assert abs(found["stopped"][0] - 2) < 0.5, (name, dict(found))
            finally:
                (group / name).write_text(thaw)
                sleeps.kill()
                sleeps.wait()
                wait_until("the group is empty", lambda: not (group / "cgroup.procs").read_text())
                group.rmdir()


def test_a_thread_that_nothing_can_interrupt_is_found_all_the_time(build):
    """The parent of a vfork is in state D until its child ends."""
    need_root()
    source = "#include <unistd.h>\nint main(void) { if (vfork() == 0) { sleep(1000); _exit(0); } return 0; }\n"
    with Folder() as folder:
        (folder / "parent.c").write_text(source)
        subprocess.run(["cc", "-w", "-o", folder / "parent", folder / "parent.c"], check=True)
        with subprocess.Popen([folder / "parent"], start_new_session=True) as parent:
            try:
                stat = Path(f"/proc/{parent.pid}/stat")
                wait_until("it is in state D", lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "D")
                mperfctl(build, "record", "-f", "-o", folder / "r", "-p", parent.pid, "--for", "3s")
                need_looks(folder / "r")
                found = waits(folder / "r")["parent"]
                assert abs(found["child"][0] - 3) < 0.5, dict(found)
                text = mperfctl(build, "hotspots", "--event", "waiting:child", "-i", folder / "r").stdout
                assert "vfork" in text, text
            finally:
                os.killpg(parent.pid, signal.SIGKILL)


@by_itself("10,000 threads begin and end")
def test_ten_thousand_threads_that_sleep_cost_no_more_than_looks_may(build):
    leave_to_plain(build, "10,000 threads")
    need_root()
    sleepers = "import threading, time\nthreading.stack_size(65536)\n" \
               "for _ in range(10000): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n" \
               "print('ready', flush=True)\ntime.sleep(1000)\n"
    with Folder() as folder, Service(build, folder, flush="1s") as service, \
            subprocess.Popen(["python3", "-c", sleepers], stdout=subprocess.PIPE, text=True) as crowd:
        try:
            if "every" not in waiting_of(service):
                raise Skip(waiting_of(service))
            assert crowd.stdout.readline() == "ready\n"
            time.sleep(12)  # looks become rare, and threads rest
            before, began = looks_cpu_s(service), time.monotonic()
            time.sleep(6)
            share = (looks_cpu_s(service) - before) / (time.monotonic() - began)
            assert share < 0.02, (share, waiting_of(service))
            found = service.ask("hotspots", "--event", "waiting:sleep", "--pid", crowd.pid, "--since", "-1m")
            assert found["provenance"]["samples"] >= 10000, found["provenance"]
        finally:
            crowd.kill()


def waiting_of(service):
    return service.ask("status")["rate"][0]["waiting"]


def looks_cpu_s(service):
    """CPU time of mperfd, which does little else here, and of the process that looks."""
    return sum(row["cpu_ns"] / 1e9 for row in service.ask("status")["process"] if row["what"] in ("daemon", "looks"))


def test_a_stack_that_hangs_who_reads_it_is_left_alone(build):
    need_root()
    if platform.machine() != "x86_64" or not os.path.exists("/dev/fuse"):
        raise Skip("needs /dev/fuse, and the program's assembly is x86-64's")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True,
                           text=True).stdout.split()
    hangfs, program = compile_program(build, "hangfs.c", *flags), compile_program(build, "hanging_stack.c")
    with Folder() as folder, Service(build, folder, flush="1s", callers="tables") as service:
        if "every" not in waiting_of(service):
            raise Skip(waiting_of(service))
        mount, big = folder / "mount", folder / "big"
        mount.mkdir()
        big.write_bytes(bytes(1 << 20))
        with subprocess.Popen([hangfs, big, mount]) as server:
            try:
                wait_until("the file system is there", lambda: (mount / "program").exists())
                with subprocess.Popen([program, mount / "program"], stdout=subprocess.PIPE, text=True) as hangs:
                    assert hangs.stdout.readline() == "ready\n"
                    wait_until("the look that hangs is given up", lambda: failed(service) >= 1)
                    n = made(service)
                    wait_until("looks go on", lambda: made(service) > n + 10)
                    found = service.ask("hotspots", "--event", "waiting", "--pid", hangs.pid, "--since", "-1m")
                    assert found["provenance"]["samples"] > 0, found
                    assert failed(service) <= 2, waiting_of(service)
                    hangs.kill()
                assert service.stop() == 0
            finally:
                server.kill()
                subprocess.run(["umount", "-l", mount], check=False)


def made(service):
    return int(re.search(r"(\d+) looks", waiting_of(service))[1])


def failed(service):
    return int(re.search(r"(\d+) failed", waiting_of(service))[1])


def test_nobody_sees_where_another_waits(build):
    with Folder() as folder, UnitService(build, folder, flush="1s") as stage:
        if "every" not in waiting_of(stage):
            raise Skip(waiting_of(stage))
        program = shutil.copy(shutil.which("sleep"), stage.folder / "victim")
        suid = shutil.copy(shutil.which("sleep"), stage.folder / "hidden")
        os.chown(suid, VICTOR, VICTOR)
        os.chmod(suid, 0o4755)
        with subprocess.Popen(as_user(VICTOR, program, "1000")) as victim, \
                subprocess.Popen(as_user(MALLORY, suid, "1000")) as hidden:
            try:
                def seen_by(uid, pid):
                    question = ("hotspots", "--event", "waiting", "--since", "-1h", "--pid", pid)
                    done = stage.ctl(*question) if uid == 0 else stage.user(uid, *question)
                    assert done.returncode == 0, done.stderr
                    return "nanosleep" in done.stdout
                wait_until("root sees both", lambda: seen_by(0, victim.pid) and seen_by(0, hidden.pid))
                wait_until("the victim's own waits", lambda: seen_by(VICTOR, victim.pid))
                assert not seen_by(MALLORY, victim.pid)
                # a program that changed its rights is nobody's, also not of those who started it
                with open(f"/proc/{hidden.pid}/status", encoding="ascii") as status:
                    real, effective = re.search(r"^Uid:\s+(\d+)\s+(\d+)", status.read(), re.M).groups()
                if real == effective:
                    raise Skip("setuid programs do not change their user here (nosuid)")
                assert not seen_by(MALLORY, hidden.pid)
                assert not seen_by(VICTOR, hidden.pid)
            finally:
                victim.kill()
                subprocess.run(["kill", "-9", str(hidden.pid)], check=False)


def test_who_samples_faster_sees_their_waits_all_the_same(build):
    """Samples of a raise take the place of the others: of threads that wait there is one kind."""
    with Folder() as folder, UnitService(build, folder, flush="1s") as stage:
        if "every" not in waiting_of(stage):
            raise Skip(waiting_of(stage))
        program = folder / "tmp" / "works"
        program.write_text("i=0\nwhile [ $i -lt 30 ]; do i=$((i + 1)); sleep 0.1; n=0; while [ $n -lt 3000 ]; do "
                           "n=$((n + 1)); done; done\n")
        recording = stage.homes[VICTOR] / "r"
        done = stage.user(VICTOR, "record", "-F", "999", "-o", recording, "--", "sh", program)
        assert done.returncode == 0, done.stderr
        found = waits(recording)
    assert found["sh"]["child"][0] > 1.5, {name: dict(kinds) for name, kinds in found.items()}


def test_top_shows_a_thread_that_rests_in_each_frame(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service, subprocess.Popen(["sleep", "1000"]) as rests:
        try:
            if "every" not in waiting_of(service):
                raise Skip(waiting_of(service))
            time.sleep(12)  # from when on it rests
            done = service.ctl("top", "--json", "-e", "waiting", "--by", "process", "--frames", "4", "--pid", rests.pid)
            frames = [json.loads(line) for line in done.stdout.splitlines()][1:]
            for frame in frames:
                waited = sum(row["self_ns"] for row in frame["rows"] if row["pid"] == rests.pid) / 1e9
                assert 0.3 < waited < 2, (waited, frame)
            assert len(frames) == 3, done.stdout
        finally:
            rests.kill()


def test_an_ordinary_user_sees_what_threads_wait_for_by_the_kernels_function_alone(build):
    need_root()  # to become an ordinary user
    with Folder() as folder:
        environment = everybodys(build, folder)
        program = shutil.copy(compile_program(build, "offcpu_waits.c", "-pthread", "-fno-optimize-sibling-calls"),
                              folder / "offcpu_waits")
        recording = folder / "tmp" / "r"
        done = as_nobody(folder, environment, "record", "-f", "-o", recording, "--", program, "4")
        assert done.returncode == 0, done.stderr
        shown = as_nobody(folder, environment, "hotspots", "-i", recording, "--event", "waiting").stdout
        found = waits(recording)
    for line in done.stdout.splitlines():
        name, lived, ran, ready, _ = line.split()
        if name not in ("reads_pipe", "reads_socket", "polls"):
            continue
        waited = sum(s for kind, (s, _) in found[name].items() if kind != "hart")
        true = (int(lived) - int(ran) - int(ready)) / 1e9 * (2 if name == "polls" else 1)
        assert abs(waited - true) < 0.2 * true, (name, waited, true, dict(found[name]))
        assert found[name][KINDS[name]][0] > 0.8 * waited, (name, dict(found[name]))
    assert re.search(r"futex_\w+ +\[kernel\]", shown), shown
    assert "callers are missing; there was no room" in shown and "/proc, which has no callers" in shown, shown


def test_without_bpf_status_says_why_and_a_question_what_is_missing(build):
    with Folder() as folder, UnitService(build, folder, flush="1s", without=("bpf",)) as stage:
        said = waiting_of(stage)
        assert re.match(r"off: BPF cannot be loaded \(.+\); it needs", said), said
        time.sleep(1.5)
        refused(stage.ctl("hotspots", "--event", "waiting", "--since", "-1h", check=False), 1,
                "has no samples of waiting threads")


def test_a_service_may_be_told_not_to_look(build):
    with Folder() as folder, Service(build, folder, waiting="no") as service:
        assert waiting_of(service).startswith("off: waiting = no")
