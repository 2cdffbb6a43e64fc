# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses, deaths and senseless clients: each is told, and nothing breaks."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from machine import (NOBODY, Folder, as_nobody, compile_program, everybodys, mperfctl,
                     need_program, need_root, refused, rows)
from rates import allowing, rate_allowed
from recorded import known
from running import alive, by, children, command_line, running, share, spinners, wait_until
from service import PATIENCE_S
from wire import (BYTES, CANCEL, DONE, FAILURE, FINISH, LIST, READY, RECORD, Private, field, frame,
                  hello)

SECONDS = 22
# The ring that is full at the very end is drained by the same code.
SANITIZED = "test_samples_that_found_the_ring_full_are_counted_and_shown",


# --- losses --------------------------------------------------------------------------------------

def overrun(build, last_seconds):
    """Record while mperfd sleeps so long that every ring is full; what hotspots says of it."""
    need_root()
    # With so many callers a ring is full in less than a second, but where others run besides.
    for asleep_seconds in (2, 8, 20):
        provenance, lost, text = overrun_of(build, asleep_seconds, last_seconds)
        if lost > 1000:
            break
    assert provenance["samples"] > 1000, provenance
    # What fired while nobody looked is either there or counted.
    assert lost > 1000, provenance
    fired = 9999 * os.cpu_count() * provenance["seconds"]
    assert provenance["samples"] + lost > 0.85 * fired, (fired, provenance)
    assert re.search(r"lost: .*(ring overrun|samples lost by the kernel) \([\d,]+\)", text), text


def overrun_of(build, asleep_seconds, last_seconds):
    with spinners(build, os.cpu_count(), "deep"), \
            running(build, "record", "-F", "9999", "-e", "cpu-clock", "-a", "-o", "r") as r:
        wait_until(r.counts, PATIENCE_S, "samples of a window")
        os.kill(r.daemon, signal.SIGSTOP)
        time.sleep(asleep_seconds)
        if last_seconds == 0:
            r.client.send_signal(signal.SIGINT)
            time.sleep(0.2)
        os.kill(r.daemon, signal.SIGCONT)
        time.sleep(last_seconds)
        if last_seconds > 0:
            r.client.send_signal(signal.SIGINT)
        done = r.end()
        assert done.returncode == 0, done
        provenance = rows(build, "hotspots", "-i", r.folder / "r", "--by", "process")["provenance"]
        text = mperfctl(build, "hotspots", "-i", r.folder / "r").stdout
    lost = provenance["lost"].get("ring overrun", 0) + \
        provenance["lost"].get("samples lost by the kernel", 0)
    return provenance, lost, text


@allowing()
def test_samples_that_found_the_ring_full_are_counted_and_shown(build):
    overrun(build, 0.6)


@allowing()
def test_samples_that_found_the_ring_full_at_the_very_end_are_counted(build):
    """No record follows that could tell of them."""
    overrun(build, 0)


def test_names_still_come_after_a_worker_was_killed(build):
    other = compile_program(build, "known.c", "-O1")  # another build id
    script = f"{known(build)} spin 1000; {other} spin 500"
    for worker in "parse", "open":
        with running(build, "record", "-F", rate_allowed(999), "-o", "r", "--", "sh", "-c", script) as r:
            time.sleep(0.4)
            r.find()
            os.kill(r.workers[worker], signal.SIGKILL)
            done = r.end()
            assert done.returncode == 0, done
            found = by(build, r.folder / "r", "function")
            assert os.listdir(r.folder / "tmp") == []
        for module in known(build), other:
            named = share(found, function="spin", module=str(module))
            everything = share(found, module=str(module))
            assert everything > 0.1 and named > 0.9 * everything, (worker, module, found[:4])


def test_a_daemon_that_is_killed_is_told_in_one_sentence(build):
    for how in ("record", "-o", "r"), ("stat",), ("hotspots",), ("flamegraph", "-o", "f.html"):
        with Folder() as folder:
            environment = dict(os.environ, TMPDIR=str(folder))
            client = subprocess.Popen([build / "mperfctl", *how, "--", known(build), "spin", "700"],
                                      cwd=folder, env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            found = []
            wait_until(lambda: found.extend(p for p in children(client.pid)
                                            if command_line(p)[0].endswith("mperfd")) or found,
                       PATIENCE_S, "a private mperfd")
            time.sleep(0.3)
            os.kill(found[0], signal.SIGKILL)
            out, said = client.communicate(timeout=60)
            said = re.sub(r"^(cpu_us|faults|switches) \d+\n", "", said, flags=re.M)  # the program's
            refused(subprocess.CompletedProcess(how, client.returncode, out, said), 1, "mperfd",
                    "signal 9|Killed", r"\. \S")
            # A daemon that is killed cannot clean up; the client has.
            left = [name for name in os.listdir(folder) if not (folder / name).is_dir()]
            assert left == [], (how, left)


def test_a_daemon_that_cannot_go_on_says_so_and_ends(build):
    """Its segment is taken away under it: no answer can follow, and nobody waits for one."""
    with Folder() as folder:
        (folder / "tmp").mkdir()
        client = subprocess.Popen([build / "mperfctl", "record", "-o", "r", "--", known(build), "spin", "2500"],
                                  cwd=folder, env=dict(os.environ, TMPDIR=str(folder / "tmp")), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: list((folder / "tmp").glob("mperf-*/*")), PATIENCE_S, "a segment")
        time.sleep(0.3)
        for made in (folder / "tmp").glob("mperf-*"):
            shutil.rmtree(made)
        out, said = client.communicate(timeout=PATIENCE_S)
        assert client.returncode == 1 and "cannot be stored in" in said, (client.returncode, said)
        assert not (folder / "r").exists()


def test_a_process_that_is_named_twice_is_sampled_once(build):
    """As a user whose events are opened for each process."""
    need_root()
    need_program("setpriv")
    with Folder() as folder:
        environment = everybodys(build, folder)
        shutil.copy(known(build), folder / "known")
        busy = subprocess.Popen([*NOBODY, folder / "known", "spin", "60000"], stdout=subprocess.DEVNULL)
        try:
            time.sleep(0.2)
            done = as_nobody(folder, environment, "hotspots", "--json", "--pid", busy.pid,
                             "--pid", busy.pid, "--for", "1s")
        finally:
            busy.kill()
            busy.wait()
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)["provenance"]
        assert 0 < told["samples"] < 1.5 * told["hz"] * told["seconds"], told


def test_a_daemon_goes_when_its_client_is_killed(build):
    with running(build, "record", "-o", "r", "--", known(build), "spin", "60000") as r:
        workers = list(r.workers.values())
        time.sleep(0.5)
        r.client.kill()
        wait_until(lambda: not any(map(alive, [r.daemon, *workers])), PATIENCE_S,
                   "mperfd and workers gone")
        assert os.listdir(r.folder / "tmp") == [], os.listdir(r.folder / "tmp")


def test_a_recording_of_the_system_ends_well_on_ctrl_c(build):
    need_root()
    with running(build, "record", "-a", "-o", "r") as r:
        wait_until(r.counts, PATIENCE_S, "samples of a window")
        r.client.send_signal(signal.SIGINT)
        done = r.end()
        assert done.returncode == 0, done
        assert rows(build, "hotspots", "-i", r.folder / "r")["provenance"]["seconds"] > 0.5
        assert os.listdir(r.folder / "tmp") == []


def test_nothing_is_left_behind_by_recordings(build):
    with Folder() as folder:
        (folder / "tmp").mkdir()
        for i in range(5):
            how = [["record", "-o", folder / "r"], ["hotspots"]][i % 2]
            mperfctl(build, *how, "--", "true", env={"TMPDIR": str(folder / "tmp")})
            assert os.listdir(folder / "tmp") == []
        assert sorted(os.listdir(folder)) == ["r", "tmp"], os.listdir(folder)


def test_no_descriptor_leaks_over_many_recordings_of_one_daemon(build):
    with Folder() as folder:
        daemon = Private(build, env=dict(os.environ, TMPDIR=str(folder)))
        try:
            daemon.send(hello(1))
            assert daemon.message()[0][0] == 1
            counts = []
            whom = field(1, field(2, bytes([*varint_of(os.getpid())])))
            for i in range(1, 11, 2):
                daemon.request(i, RECORD, whom)
                case, why = daemon.answer(READY, FAILURE)
                assert case == READY, why
                if i == 5:  # one is given up in the middle
                    daemon.request(i + 1, CANCEL, field(1, i))
                    assert daemon.answer(DONE, FAILURE)[0] == FAILURE
                else:
                    daemon.request(i + 1, FINISH, field(1, i))
                    assert daemon.answer(BYTES)[1], "no bytes of a recording"
                    assert daemon.answer(DONE, FAILURE)[0] == DONE
                daemon.request(100 + i, LIST, b"")  # it has tidied up when it answers this
                assert daemon.answer(DONE, FAILURE)[0] == DONE
                assert os.listdir(folder) == [], os.listdir(folder)
                wait_until(lambda: not any(map(alive, children(daemon.process.pid))), PATIENCE_S,
                           "its workers have ended")
                counts.append(len(os.listdir(f"/proc/{daemon.process.pid}/fd")))
            assert len(set(counts)) == 1, counts
        finally:
            status, said = daemon.end()
        assert status == 0 and said == "", (status, said)


def varint_of(n):
    while n > 127:
        yield n & 127 | 128
        n >>= 7
    yield n


def test_a_client_that_makes_no_sense_is_hung_up_on(build):
    greeting = hello(1)
    for sent in (b"GET / HTTP/1.1\r\n\r\n", frame(b"\xff" * 64), (1 << 31).to_bytes(4, "little"),
                 hello(2), frame(field(2, field(1, 1) + field(LIST, b""))), greeting[:7],
                 greeting + frame(field(2, field(1, 0) + field(LIST, b""))),
                 greeting + frame(field(3, field(1, 1))), greeting + b"\xff" * 1000,
                 greeting + frame(field(2, field(1, 1) + field(RECORD, b"")))):
        with Folder() as folder:
            daemon = Private(build, env=dict(os.environ, TMPDIR=str(folder)))
            daemon.send(sent)
            time.sleep(0.05)
            status, said = daemon.end()
            assert status == 0 and said == "", (sent, status, said)
            assert os.listdir(folder) == []
