# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A store that cannot be written, and files that were damaged."""
import contextlib
import os
import random
import shutil
import time

from attacked import DAEMON
from machine import BAD_WORDS, mperfctl
from scene import Result, Scene, account, ask, check_account
from service import wait_until
from test_store import HOUR, Disc, name_of, tables

DISC_BYTES = 24 << 20
QUESTIONS = ("hotspots", "--by", "function"), ("hotspots", "--by", "process"), \
    ("flamegraph", "--folded"), ("roofline",)


@contextlib.contextmanager
def a_disc(build):
    """(scene, disc) with the store on a file system of its own."""
    with Scene(build, budget="16M") as scene, \
            Disc(scene.folder / "disc", f"size={DISC_BYTES},uid={DAEMON},gid={DAEMON}") as disc:
        service = scene.service
        service.keys["path"] = service.store = disc.path / "store"
        try:
            yield scene, disc
        finally:
            if service.process and service.process.poll() is None:
                service.kill()  # before the disc goes


def stored_more(service):
    before = account(service)["stored"]
    wait_until("samples are stored", lambda: account(service)["stored"] > before)


def says_why(service, word):
    """It says why nothing is stored; samples are taken, and questions answered, all the while."""
    trouble = wait_until("it says why", lambda: ask(service, "status")["store"][0]["trouble"])
    assert word in trouble, trouble
    assert ask(service, "status")["rate"]
    taken = check_account(service)["taken"]
    wait_until("it samples", lambda: account(service)["taken"] > taken)


def fault_disc_full(build, times):
    """The disc of the store is full, and has room again: storing alone stops, and goes on."""
    with a_disc(build) as (scene, disc):
        service = scene.service.start()
        for _ in range(times):
            stored_more(service)
            disc.fill()
            says_why(service, "space")
            (disc.path / "ballast").unlink()
            stored_more(service)
        now = check_account(service)
        assert now["lost"] > 0, f"nothing was stored, and nothing is counted lost: {now}"
        scene.new_function()
        assert service.stop() == 0, service.said()[-2000:]
    return Result(times, now["taken"], now["lost"], "stored again each time")


def fault_read_only(build, times):
    """The file system of the store is read-only when the service starts, and writable later."""
    taken = lost = 0
    with a_disc(build) as (scene, disc):
        for _ in range(times):
            disc.remount("ro")
            service = scene.service.start()
            says_why(service, "read-only")
            disc.remount("rw")
            stored_more(service)
            now = check_account(service)
            taken, lost = taken + now["taken"], lost + now["lost"]
            assert service.stop() == 0, service.said()[-2000:]
    assert lost > 0, "nothing was stored, and nothing is counted lost"
    return Result(times, taken, lost, "stored as soon as it could be")


def answers(build, path):
    """What a segment answers to every question; None where it is refused."""
    found = []
    for question in QUESTIONS:
        done = mperfctl(build, question[0], "-i", path, *question[1:], check=False)
        assert done.returncode in (0, 1), (question, done)
        # Names of functions may be anything: clang has a SanitizerSet.
        assert not any(word in done.stderr for word in BAD_WORDS), done
        if done.returncode != 0 and question[0] != "roofline":
            assert done.stderr.startswith("mperfctl: "), done
            return None
        found.append(done.stdout)
    return found


def flip(path, chance):
    with open(path, "r+b") as file:
        at = chance.randrange(os.path.getsize(path))
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << chance.randrange(8)]))


def cut(path, chance):
    os.truncate(path, chance.randrange(os.path.getsize(path)))


def a_segment(scene):
    """Some seconds of this machine, sealed."""
    service = scene.service.start()
    scene.new_function()
    assert service.stop() == 0, service.said()[-2000:]
    return sorted((service.store / "window").glob("*.mprf"))[-1]


def fault_damage(build, times):
    """One bit of a sealed segment is flipped, or its end is gone: it answers as before or says that
    it is damaged, in the client as in the store."""
    chance = random.Random(times)
    with Scene(build) as scene:
        seed = a_segment(scene)
        whole = answers(build, seed)
        assert whole, "the segment itself is refused"
        work = scene.folder / "damaged.mprf"
        refused, silent = 0, []
        for i in range(times):
            shutil.copy(seed, work)
            (cut if i % 5 == 4 else flip)(work, chance)
            found = answers(build, work)
            if found is None:
                refused += 1
            elif found != whole:
                silent.append(i)
                shutil.copy(work, scene.build / "tests" / f"silent-{i}.mprf")
        check_the_store(scene, seed, chance)
    assert not silent, f"{len(silent)} of {times} answered otherwise and said nothing: {silent}"
    return Result(times, 0, 0, f"{refused} refused, {times - refused} answered as before")


def check_the_store(scene, seed, chance):
    """A service that finds such files at its start sets aside what does not open, and serves."""
    service = scene.service
    for hour in range(1, 6):
        path = seed.with_name(name_of(time.time() - hour * HOUR))
        shutil.copy(seed, path)
        os.chown(path, DAEMON, DAEMON)
        (cut if hour % 2 else flip)(path, chance)
    service.start()
    assert len(tables(service)[0]) >= 6, tables(service)
    scene.new_function()
    check_account(service)
    assert service.stop() == 0, service.said()[-2000:]
