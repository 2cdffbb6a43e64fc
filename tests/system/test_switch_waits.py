# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where threads wait without BPF: by their switches, beside what threads say of themselves and what looks find."""
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import defaultdict
from math import sqrt

from attacked import MALLORY, VICTOR, UnitService
from machine import WITHOUT_BPF, Folder, Skip, compile_program, mperfctl, need_program, need_root, refused, rows
from service import wait_until
from test_offcpu import KINDS, LOOK_S, error_of, need_looks, recorded, waits

GRID_S = 0.01


def record(build, path, *arguments):
    """A recording without BPF; CompletedProcess."""
    need_root()
    need_program("setpriv")
    return mperfctl(build, "record", "-f", "-o", path, *arguments, through=WITHOUT_BPF)


def program_of(build):
    return compile_program(build, "switch_waits.c", "-pthread", "-fno-optimize-sibling-calls")


def folded(build, path, event="waiting"):
    """{stack: seconds}"""
    lines = mperfctl(build, "flamegraph", "--folded", "-i", path, "--event", event).stdout.splitlines()
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}


def share_of(stacks, function):
    """The part of all that this function has."""
    return sum(n for stack, n in stacks.items() if f";{function};" in stack) / sum(stacks.values())


def waits_of_all(path):
    """{kind: [seconds, samples]} of all threads."""
    found = defaultdict(lambda: [0, 0])
    for kinds in waits(path).values():
        for kind, (seconds, n) in kinds.items():
            found[kind] = [found[kind][0] + seconds, found[kind][1] + n]
    return found


def lost(path):
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as db:
        return dict(db.execute("SELECT cause, sum(count) FROM loss GROUP BY 1"))


def test_time_adds_up_whatever_threads_wait_for_and_however_long(build):
    need_program("setpriv")
    with Folder() as folder:
        said, found = recorded(build, folder / "r", 8, through=WITHOUT_BPF)
        n_lost = lost(folder / "r").get("switch of a thread that waits", 0)
    # beside others that want all harts we may come too late for a few of some 50,000
    assert n_lost < 1000, n_lost
    for name, (lived, ran, ready, _, n) in said.items():
        kinds = {kind: s for kind, (s, _) in found[name].items()}
        off = sum(kinds.values())
        # threads began before they could say so, and their last switch may be after their end
        error = 0.01 * lived + n * (GRID_S + 0.05)
        assert -error - 0.1 * lived * (n_lost > 0) <= off - (lived - ran) <= error, (name, off, lived - ran, kinds, n_lost)
        assert abs(kinds.get("hart", 0) - ready) <= 0.05 * lived + n * 2 * GRID_S, (name, ready, kinds)
        waited = off - kinds.get("hart", 0)
        if name in KINDS:
            assert kinds[KINDS[name]] > (0.9 if name == "holds" else 0.97) * waited, (name, kinds)


def test_a_place_has_the_time_that_was_waited_there(build):
    """A wait counts by its length: if each counted as much, places of 1 ms and of 4 ms would have half each."""
    with Folder() as folder:
        done = record(build, folder / "r", "--", program_of(build), "sites", "5000")
        one, four, _, turns = map(int, done.stdout.split())
        stacks = folded(build, folder / "r")
    share, true = share_of(stacks, "one_ms"), one / (one + four)
    # one moment of each 10 ms is drawn
    error = 4 * sqrt(true * (1 - true) / ((one + four) / 1e9 / GRID_S))
    assert abs(share - true) < error and true + error < 0.4, (share, true, error, turns)
    assert abs(share + share_of(stacks, "four_ms") - 1) < 0.02, stacks


def test_a_thread_in_step_with_what_is_drawn_is_found_everywhere(build):
    """Two waits of 5 ms: with moments 10 ms apart, all of them would be in one place."""
    with Folder() as folder:
        done = record(build, folder / "r", "--", program_of(build), "step", "4000")
        left, right, _, _ = map(int, done.stdout.split())
        stacks = folded(build, folder / "r")
    for function, true in ("left", left), ("right", right):
        true /= left + right
        share = share_of(stacks, function)
        assert abs(share - true) < 4 * 0.5 / sqrt((left + right) / 1e9 / GRID_S), (function, share, true)


def test_a_thread_that_wakes_on_another_hart_is_counted_once(build):
    with Folder() as folder:
        done = record(build, folder / "r", "--", program_of(build), "moves", "3000")
        took, off, turns = map(int, done.stdout.split())
        found = waits_of_all(folder / "r")
        with sqlite3.connect(f"file:{folder / 'r'}?immutable=1", uri=True) as db:
            harts = [hart for hart, in db.execute("SELECT DISTINCT hart FROM sample s JOIN event e ON e.id = s.event "
                                                  "WHERE e.name = 'waiting:sleep'")]
    total = sum(s for s, _ in found.values())
    assert abs(total - off / 1e9) < 0.03 * off / 1e9 + 2 * GRID_S, (total, took, off, dict(found))
    assert turns > 100
    if os.cpu_count() > 1:
        assert len(harts) > 1, harts


def test_waits_under_way_count_from_the_beginning_and_until_the_end(build):
    need_root()
    with Folder() as folder, subprocess.Popen(["sleep", "1000"]) as sleeps, \
            subprocess.Popen(["sleep", "1000"]) as stopped:
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            for process, kind in (sleeps, "sleep"), (stopped, "stopped"):
                record(build, folder / "r", "-p", process.pid, "--for", "2s")
                found = waits(folder / "r")["sleep"]
                assert abs(found[kind][0] - 2) < 0.2, (kind, dict(found))
                assert len(found) == 1, dict(found)
            # their callers are not known, and the answer says so
            shown = mperfctl(build, "hotspots", "-i", folder / "r", "--event", "waiting:stopped").stdout
            assert "callers are missing" in shown and re.search(r"\w*stop\w* +\[kernel\]", shown), shown
        finally:
            for process in sleeps, stopped:
                process.kill()
        # of two that begin within it, one does not end
        record(build, folder / "r", "--", "sh", "-c", "sleep 4 > /dev/null & sleep 2")
        found = waits(folder / "r")
        assert abs(found["sleep"]["sleep"][0] - 4) < 0.2 and abs(found["sh"]["child"][0] - 2) < 0.2, found
        with sqlite3.connect(f"file:{folder / 'r'}?immutable=1", uri=True) as db:
            (n, cut), = db.execute("SELECT sum(count), sum(truncated) FROM sample s JOIN event e ON e.id = s.event "
                                   "WHERE pmu = 'waiting'")
        assert cut <= 0.02 * n, (n, cut)


def test_a_short_recording_has_the_kinds_of_its_waits(build):
    """Their functions have names only after its end."""
    with Folder() as folder:
        record(build, folder / "r", "--", "sh", "-c", "sleep 0.15")
        found = waits(folder / "r")
    assert found["sleep"]["sleep"][0] > 0.14 and found["sh"]["child"][0] > 0.14, {k: dict(v) for k, v in found.items()}


def test_switches_and_looks_find_the_same_on_one_run(build):
    """A process that two recordings watch, one with BPF."""
    need_root()
    need_program("setpriv")
    program = compile_program(build, "offcpu_waits.c", "-pthread", "-fno-optimize-sibling-calls")
    seconds = 10
    with Folder() as folder, subprocess.Popen([program, str(seconds + 6)], stdout=subprocess.DEVNULL) as waiting:
        try:
            time.sleep(1)
            paths = folder / "looks", folder / "switches"
            both = [subprocess.Popen([*through, build / "mperfctl", "record", "-f", "-o", path, "-p", str(waiting.pid),
                                      "--for", f"{seconds}s"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                    for path, through in zip(paths, ((), WITHOUT_BPF))]
            for process in both:
                _, said = process.communicate(timeout=120)
                assert process.returncode == 0, said
            need_looks(paths[0])
            looks, switches = map(waits, paths)
        finally:
            waiting.kill()
    compared = 0
    for name, kind in KINDS.items():
        expected = switches[name][kind][0]
        n = {"sleeps": 2, "short_sleeps": 2, "polls": 2}.get(name, 1)
        error = error_of(expected / n, seconds, 1) * n + LOOK_S
        assert abs(looks[name][kind][0] - expected) < error, (name, kind, dict(looks[name]), dict(switches[name]), error)
        compared += expected > 1
    assert compared >= 6, switches


def test_switches_that_are_too_many_are_lost_in_words(build):
    """Nothing is counted twice, and no more than there was, if records are lost."""
    with Folder() as folder:
        done = record(build, folder / "r", "--", program_of(build), "pingpong", "3000")
        off, turns = map(int, done.stdout.split())
        found = waits_of_all(folder / "r")
        losses = lost(folder / "r")
        threads = rows(build, "hotspots", "-i", folder / "r")["provenance"]["threads"]
    total = sum(s for s, _ in found.values())
    true = threads["lived_s"] - threads["ran_s"]
    assert turns > 10000 and off > 0 and total > 0.3 * true, (turns, total, true, dict(found), losses)
    assert total < 1.05 * true + 0.1, (total, true, dict(found), losses)
    if "switch of a thread that waits" not in losses:
        assert total > 0.95 * true - 0.1, (total, true, dict(found), losses)


def test_through_a_service_without_bpf_users_see_where_their_own_programs_wait(build):
    with Folder() as folder, UnitService(build, folder, flush="1s", without=("bpf",), callers="tables") as stage:
        program = shutil.copy(program_of(build), stage.folder / "switch_waits")
        recording = stage.homes[VICTOR] / "r"
        done = stage.user(VICTOR, "record", "-o", recording, "--", program, "sites", "3000")
        assert done.returncode == 0, done.stderr
        one, four, _, _ = map(int, done.stdout.split())
        found = waits(recording)["switch_waits"]
        shown = stage.user(VICTOR, "flamegraph", "--folded", "-i", recording, "--event", "waiting").stdout
        total = sum(s for s, _ in found.values())
        # beside much other work records are lost; their time is missing, and they are counted
        least = 0 if "switch of a thread that waits" in done.stderr else 0.9
        whole = (one + four) / 1e9
        assert least * whole < total < whole + 0.1 and found["sleep"][0] > 0.7 * total, (total, whole, dict(found), done.stderr)
        assert ";one_ms;" in shown and ";four_ms;" in shown, shown
        # of the kernel an ordinary user sees no function
        assert "[kernel]" in shown and "do_nanosleep" not in shown and "schedule" not in shown, shown
        # another's process is refused, as for samples
        with subprocess.Popen(["sleep", "1000"]) as roots:
            try:
                refused(stage.user(MALLORY, "record", "-o", stage.homes[MALLORY] / "r", "--pid", roots.pid, "--for", "1s"), 1)
            finally:
                roots.kill()
        # the service itself looks at nobody
        time.sleep(1.5)
        refused(stage.ctl("hotspots", "--event", "waiting", "--since", "-1h", check=False), 1,
                "has no samples of waiting threads")
        # with another's recording at the same time, each counts once
        paths = [stage.homes[VICTOR] / name for name in ("a", "b")]
        with subprocess.Popen(["setpriv", f"--reuid={VICTOR}", f"--regid={VICTOR}", "--clear-groups", "sleep", "1000"]) as mine:
            try:
                wait_until("it is the user's", lambda: os.stat(f"/proc/{mine.pid}").st_uid == VICTOR)
                environment = dict(os.environ, MPERF_SOCKET=str(stage.socket), TMPDIR=str(stage.folder / "tmp"))
                both = [subprocess.Popen(["setpriv", f"--reuid={VICTOR}", f"--regid={VICTOR}", "--clear-groups",
                                          "--inh-caps=-all", stage.folder / "mperfctl", "record", "-o", path, "--pid",
                                          str(mine.pid), "--for", "2s"], env=environment, cwd=stage.homes[VICTOR],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for path in paths]
                for process in both:
                    _, said = process.communicate(timeout=120)
                    assert process.returncode == 0, said
            finally:
                mine.kill()
        for path in paths:
            found = waits(path)["sleep"]
            assert abs(found["sleep"][0] - 2) < 0.3, dict(found)
