# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that are gone, or out of sight, when their samples are read: short runs in mounts of their own, deleted
files, large ones. Programs call themselves what their hot function is called (same.c)."""
import os
import shutil
import subprocess
from pathlib import Path

from machine import Folder, Skip, leave_to_plain, mperfctl, need_program, need_root, rows, SOURCES
from rates import long_enough, rate_allowed
from service import Service, children_of, wait_until

SECONDS = 40


def program(folder, name="alpha"):
    subprocess.run(["cc", "-O1", "-g", "-static", f"-DHOT={name}", f'-DCOMM="{name}"', "-o", folder / "prog",
                    SOURCES / "same.c"], check=True)


def in_mounts_of_its_own(text):
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", text]


def record(build, folder, *command):
    done = mperfctl(build, "record", "-g", "none", "-e", "cpu-clock:u", "-F", rate_allowed(499), "-o", "r.mprf",
                    "-f", "--", *command, cwd=folder, check=False)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        raise Skip(f"cannot be mounted here: {done.stderr.strip()[:200]}")
    assert done.returncode == 0, done.stderr
    return rows(build, "hotspots", "-i", "r.mprf", "--limit", "0", "--comm", "alpha", cwd=folder)["rows"]


def share_of(found, name="alpha"):
    """The part of a program's samples that have its name."""
    total = sum(r["self"] for r in found)
    return sum(r["self"] for r in found if r["function"] == name) / total if total else None


def test_short_runs_in_a_chroot_of_another_mount_namespace_are_named(build):
    need_root()
    need_program("unshare")
    with Folder() as folder:
        program(folder)
        (folder / "m").mkdir()
        found = record(build, folder, *in_mounts_of_its_own(
            "mount -t tmpfs none m; mkdir m/root; cp prog m/root; "
            f"for i in 1 2 3 4 5 6 7 8 9 10; do chroot m/root /prog {long_enough(60)}; done"))
        assert share_of(found) > 0.6, found[:5]


def test_what_ended_is_found_in_the_mounts_of_what_started_it(build):
    """Each runs once, between two looks of the service; the shell that started it stays."""
    need_root()
    need_program("unshare")
    with Folder() as folder, Service(build, folder, flush="1s", rate="499") as service:
        program(folder)
        (folder / "m").mkdir()
        runs = "".join(f"mkdir m/{i}; cp prog m/prog{i}; m/prog{i} 40; mount -t tmpfs r{i} m/{i}; cp prog m/{i}; "
                       f"chroot m/{i} /prog 40; " for i in range(5))
        shell = subprocess.Popen(in_mounts_of_its_own(f"mount -t tmpfs none m; {runs} echo; read end"), cwd=folder,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            if not shell.stdout.readline():
                raise Skip(f"cannot be mounted here: {shell.stderr.read()[:200]}")
            wait_until("they are named", lambda: (share_of(
                [r for r in service.ask("hotspots", "--limit", "0", "--comm", "alpha")["rows"]
                 if "/prog" in (r["module"] or "")]) or 0) > 0.8, 20)
        finally:
            shell.communicate("\n")


def test_programs_that_are_deleted_soon_are_named(build):
    with Folder() as folder:
        program(folder)
        found = record(build, folder, "sh", "-ec", "for i in 1 2 3 4 5 6 7 8 9 10; do "
                       f"cp prog x$i; ./x$i {long_enough(60)}; rm x$i; done")
        assert share_of(found) > 0.4, found[:5]


def test_large_programs_are_named(build):
    """Sparse, in place of debug information of such a size."""
    with Folder() as folder:
        program(folder)
        os.truncate(folder / "prog", 5 << 30)
        found = record(build, folder, "./prog", long_enough(400))
        assert share_of(found) > 0.8, found[:5]


def test_large_programs_of_containers_are_named(build):
    need_root()
    need_program("unshare")
    with Folder() as folder:
        program(folder)
        os.truncate(folder / "prog", 140 << 20)
        for place in "m", "tmp", "low", "low2":
            (folder / place).mkdir()
        shutil.move(folder / "prog", folder / "low")
        # layers that the daemon sees, and one that it does not
        for before, options in (("", "lowerdir=$PWD/low:$PWD/low2"), (
                "mount -t tmpfs none tmp; mkdir tmp/up tmp/work; ",
                "lowerdir=$PWD/low,upperdir=$PWD/tmp/up,workdir=$PWD/tmp/work")):
            found = record(build, folder, *in_mounts_of_its_own(
                f"{before}mount -t overlay -o {options} none m; exec chroot m /prog {long_enough(700)}"))
            assert share_of(found) > 0.8, (options, found[:5])


def held_by(pid, path):
    """Where a process has a file open or mapped."""
    try:
        return [link for link in Path(f"/proc/{pid}/fd").iterdir() if os.readlink(link) == str(path)] + \
            [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if line.endswith(str(path))]
    except FileNotFoundError:
        return []


def test_a_file_system_can_be_unmounted_soon_after_its_programs_were_named(build):
    """Other daemons of the machine may hold it as well, so nothing is unmounted before it is seen that ours does not."""
    leave_to_plain(build, "it is about time")
    need_root()
    with Folder() as folder, Service(build, folder, flush="1s", rate="499") as service:
        program(folder)
        (folder / "m").mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "none", folder / "m"], capture_output=True).returncode:
            raise Skip("cannot be mounted here")
        try:
            held = shutil.copy(folder / "prog", folder / "m")
            running = subprocess.Popen([held, "3000"])
            ours = service.process.pid, *children_of(service.process.pid)
            wait_until("it is opened", lambda: any(held_by(pid, held) for pid in ours))
            assert running.wait() == 0
            assert [r for r in service.ask("hotspots", "--limit", "0", "--comm", "alpha")["rows"]
                    if r["function"] == "alpha"]
            wait_until("it is closed", lambda: not any(held_by(pid, held) for pid in ours), 20)
        finally:
            subprocess.run(["umount", "-l", folder / "m"], capture_output=True)
