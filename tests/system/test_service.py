# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The service: it keeps what it samples, whatever happens to it."""
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

from machine import Folder, compile_program, workload
from service import Service, children_of, wait_until


KILLS = int(os.environ.get("MPERF_TEST_KILLS", "5"))


def segments(service, tier="window"):
    return sorted((service.store / tier).glob("*.mprf"))


def number(path, sql):
    db = sqlite3.connect(f"file:{path}?immutable=1&mode=ro", uri=True)
    try:
        return db.execute(sql).fetchone()[0]
    finally:
        db.close()


def meta(path, key):
    return number(path, f"SELECT value FROM meta WHERE key = '{key}'")


def busy(seconds):
    return subprocess.Popen(["timeout", str(seconds), "sh", "-c", "while :; do :; done"])


def rate(service):
    return service.ask("status")["rate"][0]["hz"]


def account(service):
    """What status says of all samples since the start."""
    return next(row for row in service.ask("status")["account"] if row["period"] == "since start")


def test_it_stores_and_answers_from_its_store(build):
    with Folder() as folder, Service(build, folder, flush="1s") as service:
        load = busy(30)
        try:
            found = wait_until("samples are in the store",
                               lambda: service.ask("hotspots", "--by", "process")["rows"])
        finally:
            load.kill()
            load.wait()
        assert found
        assert service.stop() == 0
        path, = segments(service)
        assert meta(path, "sealed") == 1
        assert number(path, "SELECT sum(count) FROM sample") > 0


def test_it_ends_with_its_workers_at_sigterm_and_at_sigint(build):
    for number_of in signal.SIGTERM, signal.SIGINT:
        with Folder() as folder, Service(build, folder) as service:
            children = children_of(service.process.pid)
            assert children
            service.process.send_signal(number_of)
            assert service.process.wait(60) == 0, service.said()
            wait_until("the workers have ended",
                       lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children))
            assert not service.socket.exists()


def test_a_reload_takes_what_is_right_and_keeps_what_is_wrong_out(build):
    with Folder() as folder, Service(build, folder, rate="99") as service:
        service.write_config(rate="199")
        service.process.send_signal(signal.SIGHUP)
        wait_until("the new rate", lambda: rate(service) == 199)
        service.write_config(rate="many")
        service.process.send_signal(signal.SIGHUP)
        wait_until("the complaint", lambda: "stays as it was" in service.said())
        assert f"{service.config}:" in service.said() and "many" in service.said()
        assert rate(service) == 199


def test_a_wrong_configuration_is_an_error_with_file_and_line(build):
    with Folder() as folder:
        service = Service(build, folder, rate="0")
        service.start(ready=False)
        assert service.process.wait(60) == 2
        assert f"{service.config}:" in service.said() and "rate" in service.said()


def test_a_second_daemon_is_told_of_the_first(build):
    with Folder() as folder, Service(build, folder) as service:
        other = Service(build, folder)
        other.log = folder / "other"
        other.start(ready=False)
        assert other.process.wait(60) == 1
        assert "socket" in other.said(), other.said()
        assert service.process.poll() is None
        # of another socket, but of the same store
        other.keys["socket"] = folder / "another"
        other.socket = folder / "another"
        other.config = folder / "other.conf"
        try:
            other.start()
            wait_until("the store is said to be taken", lambda: str(service.process.pid) in other.said())
        finally:
            other.__exit__(None, None, None)
        assert service.ask("store")["file"]


def test_a_socket_that_was_left_behind_is_replaced(build):
    with Folder() as folder:
        service = Service(build, folder).start()
        service.kill()
        assert service.socket.exists()
        with service:
            assert service.ask("status")["account"]


def test_killed_at_any_moment_it_loses_what_is_in_hand_and_counts_it(build):
    chance = random.Random(1)
    with Folder() as folder:
        service = Service(build, folder, flush="1s", rate="999")
        load = [busy(600), subprocess.Popen(
            ["timeout", "600", "sh", "-c", "while :; do /bin/true; done"])]
        try:
            for _ in range(KILLS):
                service.start()
                time.sleep(chance.uniform(0, 3))
                service.kill()
            service.start()
            service.stop()
        finally:
            for process in load:
                process.kill()
                process.wait()
        found = segments(service)
        assert len(found) >= 2, service.said()
        assert not list((service.store / "corrupt").iterdir()), service.said()
        killed = 0
        for path in found:
            db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            assert db.execute("SELECT value FROM meta WHERE key = 'sealed'").fetchone()[0] == 1
            lost = dict(db.execute("SELECT cause, sum(count) FROM loss GROUP BY cause"))
            stored = db.execute("SELECT total(count) FROM sample").fetchone()[0]
            killed += lost.get("daemon killed", 0)
            # two harts at 999 Hz for a flush interval and a drain
            assert lost.get("daemon killed", 0) <= 1.5 * 999 * os.cpu_count() + 100, (path, lost, stored)
            db.close()
        assert killed > 0, f"{KILLS} kills, and nothing was ever in hand"
        print(f"{KILLS} kills, {len(found)} segments, {killed} samples counted lost")


def test_the_rate_is_raised_for_a_recording_and_goes_back(build):
    program = workload(build, "speedtest1")
    with Folder() as folder, Service(build, folder, rate="99") as service:
        recording = subprocess.Popen(
            [build / "mperfctl", "record", "-F", "1999", "-o", folder / "r.mprf", "--", program,
             "--memdb", "--size", "100"], env=dict(os.environ, MPERF_SOCKET=str(service.socket)),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_until("the rate goes up", lambda: rate(service) == 1999)
        said = recording.communicate()[1].decode()
        assert recording.returncode == 0, said
        wait_until("the rate goes back", lambda: rate(service) == 99)
        comms = number(folder / "r.mprf", "SELECT group_concat(DISTINCT comm) FROM sample s "
                       "JOIN task t ON t.id = s.task")
        assert comms == "speedtest1", comms


def busy_seconds():
    """Time that all harts together were not idle since boot, by the kernel's own account."""
    fields = [int(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq = fields[:7]
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def test_samples_taken_are_stored_or_lost_by_cause(build):
    storm = compile_program(build, "known.c")
    source = workload(build, "bzip2")
    with Folder() as folder, Service(build, folder, rate="999", flush="1s") as service:
        tree = folder / "bzip2"
        shutil.copytree(source, tree)
        before, busy_before = account(service), busy_seconds()
        subprocess.run([storm, "processes", "2000"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["make", "-C", tree, "-j2", "-s", "bzip2", "bzip2recover"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(3):
            now = account(service)
            assert now["taken"] == now["stored"] + now["in_hand"] + now["lost"], now
            time.sleep(0.3)
        # taken is what the kernel was to take: one in a period of the time that was not idle
        wanted = 999 * (busy_seconds() - busy_before)
        taken = account(service)["taken"] - before["taken"]
        assert abs(taken - wanted) < 0.1 * wanted, (taken, wanted)
        losses = service.ask("status")["loss"]
        assert sum(row["since_start"] for row in losses if row["samples"] == "yes") == now["lost"]
        assert service.stop() == 0
        path, = segments(service)
        stored = number(path, "SELECT sum(count) FROM sample")
        assert stored + now["lost"] >= taken, (stored, now, taken)
