# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The store over time: budget, damaged files, discs that are full or read-only, who may see it."""
import os
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

from machine import Folder, Skip, as_nobody, everybodys, refused, seal, unseal
from service import Service, wait_until

SECONDS = 16
WAITS = "flushes and retries"

HOUR = 3600
MEGABYTE = 1 << 20


def tables(service):
    found = service.ask("store")
    return found["file"], {row["tier"]: row for row in found["tier"]}, found["next"][0]


def name_of(seconds, boot="aaaaaaaa"):
    return time.strftime(f"%Y%m%dT%H%M%SZ-{boot}.mprf", time.gmtime(seconds))


def a_sealed_segment(build, folder):
    """One that a service wrote, elsewhere."""
    with Service(build, folder, flush="1s", path=folder / "seed") as service:
        wait_until("a segment", lambda: list((folder / "seed" / "window").glob("*.mprf")))
        assert service.stop() == 0
    return next((folder / "seed" / "window").glob("*.mprf"))


def put_aged(store, seed, seconds, megabytes=0):
    """A copy of that segment as if of then, with so much in it."""
    (store / "window").mkdir(parents=True, exist_ok=True)
    path = store / "window" / name_of(seconds)
    shutil.copy(seed, path)
    unseal(path)
    db = sqlite3.connect(path)
    db.execute("UPDATE window SET realtime_ns = ?", (int(seconds) * 10 ** 9,))
    db.executemany("INSERT INTO function VALUES (?, ?)",
                   ((10 ** 9 + i, os.urandom(50000).hex()) for i in range(10 * megabytes)))
    db.commit()
    db.close()
    seal(path)
    return path


def test_the_store_says_what_it_keeps_and_what_goes_next(build):
    with Folder() as folder:
        seed = a_sealed_segment(build, folder)
        service = Service(build, folder, flush="1s", keep_windows="2d")
        old = put_aged(service.store, seed, time.time() - 40 * HOUR)
        with service:
            files, tiers, soon = wait_until(
                "the old segment is rolled up, and a new one written",
                lambda: (lambda found: found if found[1]["hour"]["files"] and any(
                    row["state"] == "being written" for row in found[0]) else None)(
                        tables(service)))
            by_name = {row["file"]: row for row in files}
            row = by_name[f"window/{old.name}"]
            assert row["tier"] == "window" and row["state"] == "sealed", row
            assert row["bytes"] == old.stat().st_size, row
            moment = time.strptime(row["since"][:19], "%Y-%m-%dT%H:%M:%S")
            assert abs(time.mktime(moment) - (time.time() - 40 * HOUR)) < 600, row
            assert tiers["window"]["files"] == 2 and tiers["window"]["since"] == row["since"]
            assert tiers["minute"]["files"] == 1, tiers
            assert soon["file"] == f"window/{old.name}" and soon["reason"] == "age", soon
            assert soon["used"] >= sum(row["bytes"] for row in files), soon
            assert soon["budget"] == 1 << 30 and soon["free"] > 0, soon
            # for people, too
            said = service.ctl("store").stdout
            assert old.name in said and "being written" in said, said


def test_the_budget_is_never_exceeded_and_the_oldest_goes(build):
    with Folder() as folder:
        seed = a_sealed_segment(build, folder)
        service = Service(build, folder, flush="1s", budget="16M")
        now = time.time()
        old = [put_aged(service.store, seed, now - (5 - i) * HOUR, megabytes=4) for i in range(5)]
        with service:
            wait_until("room is made", lambda: not old[1].exists())
            assert not old[0].exists() and old[3].exists() and old[4].exists()
            used = sum(p.stat().st_size for p in service.store.rglob("*") if p.is_file())
            assert used <= 16 * MEGABYTE, used
            soon = tables(service)[2]
            assert soon["file"] == f"window/{old[2].name}" or not old[2].exists(), soon
            assert soon["budget"] == 16 * MEGABYTE, soon


def test_damaged_files_are_set_aside_and_named(build):
    with Folder() as folder:
        seed = a_sealed_segment(build, folder)
        service = Service(build, folder, flush="1s")
        now = time.time()
        good = put_aged(service.store, seed, now - HOUR)
        cut = put_aged(service.store, seed, now - 2 * HOUR)
        os.truncate(cut, 3000)
        noise = service.store / "window" / name_of(now - 3 * HOUR)
        noise.write_bytes(os.urandom(10000))
        (service.store / "window" / "README").write_text("not ours")
        with service:
            rows = {row["file"]: row for row in tables(service)[0]}
            for path in cut, noise:
                assert "set aside" in rows[f"corrupt/window-{path.name}"]["state"], rows
                assert not path.exists()
            assert rows[f"window/{good.name}"]["state"] == "sealed"
            assert "corrupt" in service.said(), service.said()
            assert (service.store / "window" / "README").exists()


def notes(service, *arguments):
    return service.ask("hotspots", "--since", "-59m", *arguments)["provenance"]["notes"]


def test_a_file_that_rots_in_the_store_is_set_aside_and_never_answered_from(build):
    with Folder() as folder:
        seed = a_sealed_segment(build, folder)
        service = Service(build, folder, flush="1s")
        (service.store / "window").mkdir(parents=True)
        good = service.store / "window" / name_of(time.time() - 600)
        rotten = service.store / "window" / name_of(time.time() - 1200)
        shutil.copy(seed, good)
        content = bytearray(seed.read_bytes())
        content[len(content) // 2] ^= 1
        rotten.write_bytes(content)
        with service:
            # the first reader finds it, the roll-up or a query
            wait_until("the rotten file is set aside", lambda: notes(service) is not None and not
                       rotten.exists())
            rows = {row["file"]: row["state"] for row in tables(service)[0]}
            assert "set aside" in rows[f"corrupt/window-{rotten.name}"], rows
            assert rows[f"window/{good.name}"] == "sealed", rows
            # a file is read whole once, and again when it has changed
            assert any("not verified: 1 file is still being written" in note
                       for note in notes(service, "--by", "thread")), notes(service)
            with open(good, "r+b") as file:
                file.seek(len(content) // 2)
                file.write(bytes([content[len(content) // 2]]))
            wait_until("the other is found too", lambda: any(
                "damaged and left out" in note for note in notes(service, "--by", "thread"))
                or not good.exists())
            wait_until("and set aside", lambda: notes(service, "--by", "thread") is not None
                       and not good.exists())
            assert not any("damaged" in note for note in notes(service, "--by", "thread"))


class Disc:
    """A file system of its own for a store."""

    def __init__(self, path, options):
        self.path = Path(path)
        self.path.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.path],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise Skip("may not mount a tmpfs")

    def remount(self, options):
        subprocess.run(["mount", "-o", f"remount,{options}", self.path], check=True)

    def fill(self):
        # without a buffer, whose rest would be tried once more when the file is closed
        with open(self.path / "ballast", "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(1 << 16))
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        subprocess.run(["umount", "--lazy", self.path], check=True)


def stored(service):
    return next(row["stored"] for row in service.ask("status")["account"]
                if row["period"] == "since start")


def test_a_disc_that_is_full_or_read_only_stops_storing_alone(build):
    # both at once: storing is tried again every 30 s
    with Folder() as folder, Disc(folder / "full", "size=8m") as full, \
            Disc(folder / "fixed", "ro,size=8m") as fixed:
        services = []
        for disc in full, fixed:
            home = folder / f"of-{disc.path.name}"
            home.mkdir()
            services.append(Service(build, home, flush="1s", path=disc.path / "store",
                                    budget="16M"))
        with services[0] as a, services[1] as b:
            wait_until("samples are stored", lambda: stored(a) > 0)
            full.fill()
            for service, word in (a, "space"), (b, "read-only"):
                wait_until("it says so", lambda: "samples are not stored" in service.said())
                said = [line for line in service.said().splitlines() if "are not stored" in line]
                assert len(said) == 1 and word in said[0], said
                # sampling and top go on
                assert service.ctl("top", "--frames", "1").stdout
            # what is kept can be looked at while nothing comes to it
            assert a.ctl("store").stdout and a.ask("status")["store"][0]["trouble"]
            refused(b.ctl("store", check=False), 1, "nothing is stored now", "read-only")
            (full.path / "ballast").unlink()
            fixed.remount("rw")
            for service in a, b:
                before = stored(service)
                wait_until("samples are stored again", lambda: stored(service) > before)
                assert "samples are stored again" in service.said(), service.said()
                assert service.said().count("samples are not stored") == 1, service.said()


def test_files_are_shown_to_the_group_alone(build):
    with Folder() as folder:
        environment = everybodys(build, folder)
        with Service(build, folder, flush="1s") as service:
            os.chmod(service.socket, 0o666)
            environment["MPERF_SOCKET"] = str(service.socket)
            refused(as_nobody(folder, environment, "store"), 1, "group", "mperf")


def test_without_a_service_there_is_no_store(build):
    with Folder() as folder:
        done = subprocess.run([build / "mperfctl", "store"], capture_output=True, text=True,
                              env=dict(os.environ, MPERF_SOCKET=str(folder / "none")), timeout=60)
        refused(done, 1, "systemctl start mperfd|MPERF_SOCKET|none")
