# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who ends waits (--wakers): whose time has whom above it, beside programs of which that is known."""
import json
import os
import re
import shutil
import subprocess
import time
from collections import defaultdict

from attacked import MALLORY, VICTOR, UnitService, as_user, need_setuid
from machine import (Folder, Skip, as_nobody, compile_program, everybodys, leave_to_plain, mperfctl, need_root, refused,
                     rows)
from test_offcpu import waiting_of

# Where each thread waits, and the function of whoever wakes it.
WAKER = {"wait_left": "wake_left", "wait_right": "wake_right", "wait_pipe": "wake_pipe", "wait_clock": "[interrupt]"}
OTHER = "[another user's process]"


def program_of(build):
    return compile_program(build, "wakers.c", "-pthread", "-fno-optimize-sibling-calls")


def stacks(folded):
    """[(the sleeper's functions, the waker's or None, seconds)] of folded stacks."""
    found = []
    for line in folded.splitlines():
        stack, value = line.rsplit(" ", 1)
        frames = stack.split(";")
        at = frames.index("[woken by]") if "[woken by]" in frames else None
        found.append((frames[:at], None if at is None else frames[at + 1:], int(value) / 1e9))
    return found


def shares(found):
    """{where it waited: {who woke it, None: not known: seconds}}"""
    times = defaultdict(lambda: defaultdict(float))
    for sleeper, waker, seconds in found:
        where = [f for f in sleeper if f.startswith("wait_")]
        known = [f for f in waker or () if f.startswith("wake_") and f != "wake_up_q" or f in ("[interrupt]", OTHER)]
        if where:
            times[where[-1]][known[0] if known else None if waker is None else "?"] += seconds
    return {where: dict(by) for where, by in times.items()}


def right(times, where):
    return times[where].get(WAKER[where], 0) / sum(times[where].values())


def recorded(build, path, *arguments):
    need_root()
    done = mperfctl(build, "record", "--wakers", "-f", "-o", path, "--", program_of(build), *arguments, check=False)
    if "BPF cannot be loaded" in done.stderr:
        raise Skip("threads that wait are not looked for here: BPF is not available")
    assert done.returncode == 0, done.stderr
    return done


def folded(build, path, *arguments):
    return stacks(mperfctl(build, "flamegraph", "--folded", "-i", path, "--event", "waiting", *arguments).stdout)


def test_each_wait_has_its_own_waker_and_an_interrupt_is_no_task(build):
    with Folder() as folder:
        recorded(build, folder / "r", "6")
        found = folded(build, folder / "r")
        spots = rows(build, "hotspots", "-n", "0", "-i", folder / "r", "--event", "waiting")["rows"]
        text = mperfctl(build, "hotspots", "-i", folder / "r", "--event", "waiting").stdout
    times = shares(found)
    for where in WAKER:
        assert abs(sum(times[where].values()) - 6) < 1, (where, times)
        assert right(times, where) >= 0.95, (where, times)
    for sleeper, waker, _ in found:
        if "wait_left" in sleeper and waker:
            # from where it woke the thread, inwards out; then its name
            assert waker[-1] == "posts-left" and waker.index("wake_left") < waker.index("start_thread"), waker
            # how many functions lie between it and the kernel's own is the kernel's matter
            assert waker[0] in ("try_to_wake_up", "wake_up_q") or "futex" in waker[0], waker
        if "wait_clock" in sleeper and waker:
            assert waker == ["[interrupt]"], waker
    # time stays with who waited; whoever ended it has a part in the total
    for row in spots:
        if row["function"].startswith("wake_") and row["function"] != "wake_up_q" or row["module"] == "[waker]":
            assert row["self_ns"] == 0, row
    whole_s = sum(row["self_ns"] for row in spots) / 1e9
    total = {row["function"]: row["total"] * whole_s for row in spots}
    assert abs(total["wake_left"] - 6) < 1, (total, text)


def test_a_thread_that_waits_by_turns_has_the_waker_of_each_turn(build):
    leave_to_plain(build, "10,000 wakes a second")
    with Folder() as folder:
        done = recorded(build, folder / "r", "15", "often")
        times = shares(folded(build, folder / "r"))
    assert int(done.stdout.split()[0]) > 30000, done.stdout
    for where in "wait_left", "wait_right":
        known = {by: seconds for by, seconds in times[where].items() if by is not None}
        # it may have run while it was looked at, and then nothing is said
        assert known.get(WAKER[where], 0) >= 0.95 * sum(known.values()), times
        assert sum(known.values()) >= 0.6 * sum(times[where].values()), times


def test_the_page_has_what_was_waited_for_below_who_woke(build):
    with Folder() as folder:
        recorded(build, folder / "r", "1")
        mperfctl(build, "flamegraph", "--event", "waiting", "-i", folder / "r", "-o", folder / "page.html")
        mperfctl(build, "flamegraph", "--event", "waiting", "-i", folder / "r", "-o", folder / "page.svg")
        for name in "page.html", "page.svg":
            text = (folder / name).read_text()
            for word in "[woken by]", "wake_right", "[interrupt]", "posts-left":
                assert word in text, (name, word)
        for form in "pprof", "folded", "speedscope", "firefox", "csv", "perf-script":
            mperfctl(build, "export", "--as", form, "-i", folder / "r", "--event", "waiting", "-o", folder / form)
        names = {frame["name"] for frame in json.loads((folder / "speedscope").read_text())["shared"]["frames"]}
        assert {"[woken by]", "wake_left", "wait_left"} <= names, names


def test_waits_under_way_and_without_the_option_have_no_waker(build):
    with Folder() as folder, subprocess.Popen(["sleep", "1000"]) as sleeps:
        try:
            recorded(build, folder / "r", "1")
            mperfctl(build, "record", "--wakers", "-f", "-o", folder / "r", "-p", sleeps.pid, "--for", "2s")
            waits = folded(build, folder / "r")
            assert waits and all(waker is None for _, waker, _ in waits), waits
            assert abs(sum(seconds for *_, seconds in waits) - 2) < 0.5, waits
            mperfctl(build, "record", "-f", "-o", folder / "r", "--", program_of(build), "1")
            assert all(waker is None for _, waker, _ in folded(build, folder / "r"))
        finally:
            sleeps.kill()


def record_as(stage, uid, path, *arguments):
    done = stage.user(uid, "record", "--wakers", "-f", "-o", path, *arguments)
    assert done.returncode == 0, done.stderr
    shown = stage.user(uid, "flamegraph", "--folded", "-i", path, "--event", "waiting")
    assert shown.returncode == 0, shown.stderr
    return stacks(shown.stdout)


def write_now_and_then(fifo, command):
    """A program that writes into the fifo 20 times a second, for some seconds."""
    return subprocess.Popen([*command, "-c", "import sys, time\nf = open(sys.argv[1], 'wb', buffering=0)\n"
                                             "for _ in range(400):\n    time.sleep(0.05)\n    f.write(b'x')\n", fifo],
                            stderr=subprocess.DEVNULL)


def test_an_ordinary_user_sees_their_own_wakers_and_nothing_of_others(build):
    with Folder() as folder, UnitService(build, folder, flush="1s") as stage:
        if "every" not in waiting_of(stage):
            raise Skip(waiting_of(stage))
        program = shutil.copy(program_of(build), stage.folder / "wakers")
        fifo = stage.folder / "fifo"
        os.mkfifo(fifo)
        os.chmod(fifo, 0o666)
        writer = shutil.copy(os.path.realpath(shutil.which("python3")), stage.folder / "mallorys")
        with write_now_and_then(fifo, as_user(MALLORY, writer)) as other:
            try:
                found = record_as(stage, VICTOR, stage.homes[VICTOR] / "r", "--", program, "6", fifo)
            finally:
                other.kill()
        recording = (stage.homes[VICTOR] / "r").read_bytes()
        times = shares(found)
        for where in WAKER:
            assert right(times, where) >= 0.95, (where, times)
        assert times["wait_fifo"].get(OTHER, 0) >= 0.95 * sum(times["wait_fifo"].values()), times
        assert all(waker == [OTHER] for sleeper, waker, _ in found if "wait_fifo" in sleeper and waker), found
        assert b"mallorys" not in recording
        # of their own no more of the kernel than in samples
        own = [waker for sleeper, waker, _ in found if "wait_left" in sleeper and waker]
        assert own and all("[kernel]" in waker and "do_futex" not in waker for waker in own), own


def test_a_waker_that_changed_its_rights_is_hidden_from_who_started_it(build):
    with Folder() as folder, UnitService(build, folder, flush="1s") as stage:
        if "every" not in waiting_of(stage):
            raise Skip(waiting_of(stage))
        need_setuid(stage.folder)
        program = shutil.copy(program_of(build), stage.folder / "wakers")
        fifo = stage.folder / "fifo"
        os.mkfifo(fifo)
        os.chmod(fifo, 0o666)
        writer = shutil.copy(os.path.realpath(shutil.which("python3")), stage.folder / "hidden")
        os.chown(writer, MALLORY, MALLORY)
        os.chmod(writer, 0o4755)
        with write_now_and_then(fifo, as_user(VICTOR, writer)) as other:
            try:
                found = record_as(stage, VICTOR, stage.homes[VICTOR] / "r", "--", program, "3", fifo)
                with open(f"/proc/{other.pid}/status", encoding="ascii") as status:
                    real, effective = re.search(r"^Uid:\s+(\d+)\s+(\d+)", status.read(), re.M).groups()
            finally:
                other.kill()
        assert real != effective, real
        assert all(waker == [OTHER] for sleeper, waker, _ in found if "wait_fifo" in sleeper and waker), found
        assert any(waker for sleeper, waker, _ in found if "wait_fifo" in sleeper), found
        assert b"hidden" not in (stage.homes[VICTOR] / "r").read_bytes()


def test_root_sees_whoever_wakes(build):
    with Folder() as folder:
        need_root()
        fifo = folder / "fifo"
        os.mkfifo(fifo)
        writer = shutil.copy(os.path.realpath(shutil.which("python3")), folder / "writes-fifo")
        with write_now_and_then(fifo, [str(writer)]) as other:
            try:
                recorded(build, folder / "r", "3", fifo)
            finally:
                other.kill()
        wakers = [waker for sleeper, waker, _ in folded(build, folder / "r") if "wait_fifo" in sleeper and waker]
    assert wakers and all(waker[-1] == "writes-fifo" for waker in wakers), wakers
    assert any("write" in waker for waker in wakers), wakers


def test_where_wakers_cannot_be_recorded_the_refusal_says_what_to_do(build):
    need_root()  # to become an ordinary user
    with Folder() as folder:
        environment = everybodys(build, folder)
        done = as_nobody(folder, environment, "record", "--wakers", "--", "true")
        refused(done, 1, "wakers cannot be recorded", "systemctl start mperfd")
    with Folder() as folder:
        for arguments in ("-e", "cycles"), ("-M", "General"):
            done = mperfctl(build, "record", "--wakers", *arguments, "-o", folder / "r", "--", "true", check=False)
            assert done.returncode != 0 and "--wakers" in done.stderr, done.stderr
        done = mperfctl(build, "record", "--wakers", "--since", "-1m", check=False)
        assert done.returncode == 2 and "--wakers" in done.stderr, done.stderr
        done = mperfctl(build, "hotspots", "--wakers", "-i", folder / "r", check=False)
        assert done.returncode == 2 and "--wakers" in done.stderr, done.stderr


def test_without_bpf_a_service_refuses_to_record_wakers(build):
    with Folder() as folder, UnitService(build, folder, flush="1s", without=("bpf",)) as stage:
        refused(stage.user(VICTOR, "record", "--wakers", "-o", stage.homes[VICTOR] / "r", "--", "true"), 1,
                "wakers cannot be recorded", "without --wakers")


def test_the_service_records_no_wakers_by_itself(build):
    """The program is loaded for a recording, and is gone with it."""
    def loaded():
        done = subprocess.run(["bpftool", "prog", "show", "name", "on_waking"], capture_output=True, text=True,
                              check=False)
        return "on_waking" in done.stdout

    if not shutil.which("bpftool"):
        raise Skip("needs bpftool")
    with Folder() as folder, UnitService(build, folder, flush="1s") as stage:
        if "every" not in waiting_of(stage):
            raise Skip(waiting_of(stage))
        assert not loaded()
        command = as_user(VICTOR, stage.folder / "mperfctl", "record", "--wakers", "-o", stage.homes[VICTOR] / "r",
                          "--", "sleep", "3")
        with subprocess.Popen(command, env=dict(os.environ, MPERF_SOCKET=str(stage.socket)), stderr=subprocess.PIPE,
                              cwd=stage.homes[VICTOR]) as records:
            time.sleep(1.5)
            assert loaded()
            records.communicate(timeout=60)
            assert records.returncode == 0
        time.sleep(0.5)
        assert not loaded()
