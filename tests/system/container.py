# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Systemd as the first process of a container, booted in a second or two by systemd-nspawn: of a Debian of its
own (Container), or of this machine's files (HostContainer), which needs no image.

The image is made once by mmdebstrap, from this machine's own package sources, and kept in the build
folder; what a test writes goes into memory and is gone with the container. It has the host's kernel
and every capability, so that perf_event_open works as it does outside, seen from its own pids.
"""
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from machine import Skip, need_program, need_root, plain_build

BOOT_SECONDS = 60    # it takes one or two; sixty when everything else runs too
IMAGE_SECONDS = 400  # downloads some 60 MB, once
CGROUPS = [p for p in map(Path, ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd",
                                 "/sys/fs/cgroup")) if (p / "cgroup.procs").exists()]


def apt_sources():
    """This machine's Debian sources as mmdebstrap takes them, and its proxy."""
    for name in "/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list":
        if Path(name).exists() and "debian.org" in Path(name).read_text():
            return [name]
    raise Skip("finds no Debian sources of this machine to make a container from")


def apt_options():
    dump = subprocess.run(["apt-config", "dump", "Acquire::http", "Acquire::https"], text=True,
                          capture_output=True).stdout
    proxies = re.findall(r'^(Acquire::https?::[Pp]roxy "[^"]+";)$', dump, re.M)
    return [f"--aptopt={line}" for line in proxies]


def release():
    return re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.M)


def image(build, packages):
    """The folder of an image that has these packages; made when it is not there."""
    folder = plain_build(build) / "container"
    target, stamp = folder / "root", folder / "packages"
    wanted = " ".join(sorted({"systemd", "systemd-sysv", "procps", *packages}))
    if stamp.exists() and stamp.read_text() == wanted:
        return target
    if not release() or not Path("/etc/debian_version").exists():
        raise Skip("needs Debian, to make a container like it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", *apt_options(),
                           f"--include={wanted.replace(' ', ',')}", release().group(1), target,
                           *apt_sources()], text=True, capture_output=True, timeout=IMAGE_SECONDS)
    if done.returncode != 0:
        raise Skip(f"mmdebstrap made no image: {done.stderr.strip()[-300:]}")
    stamp.write_text(wanted)
    return target


class Container:
    """A booted container; `run` runs a command in it. Stop it when done."""

    def __init__(self, build, packages, bind=None):
        """Binds the host folder `bind` read-only to /mnt."""
        need_root()
        for program in "systemd-nspawn", "mmdebstrap", "nsenter":
            need_program(program)
        self.boot([f"--directory={image(build, packages)}", "--volatile=overlay",
                          *([f"--bind-ro={bind}:/mnt"] if bind else [])])

    def boot(self, options, before=()):
        """`before`: words of a command that runs the rest of its words in the end."""
        self.name = f"mperf-test-{os.getpid()}"
        # Where the host's first process is systemd, nspawn gets a scope from it.
        kept = [] if Path("/run/systemd/system").is_dir() else ["--keep-unit"]
        self.console = tempfile.TemporaryFile()
        self.nspawn = subprocess.Popen(
            [*before, "systemd-nspawn", "--quiet", "--register=no", *kept, f"--machine={self.name}",
             *options, "--boot", "--console=pipe",
             "--capability=all", "--system-call-filter=perf_event_open bpf",
             "systemd.unit=multi-user.target"],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=self.console,
            env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1"),
            preexec_fn=self.enter_cgroup if kept else None)
        self.leader = None
        try:
            self.wait_until_booted()
        except Skip:
            self.stop()
            raise

    def enter_cgroup(self):
        """Where nobody hands out cgroups, each container needs a place of its own."""
        for hierarchy in CGROUPS:
            place = hierarchy / self.name
            place.mkdir(exist_ok=True)
            (place / "cgroup.procs").write_text(str(os.getpid()))

    def wait_until_booted(self):
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline and self.nspawn.poll() is None:
            children = Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children")
            pids = children.read_text().split()
            if pids and Path(f"/proc/{pids[0]}/root/run/systemd/private").exists():
                self.leader = int(pids[0])
                self.run("systemctl is-system-running --wait", check=False)
                # Debian 13's nspawn lays an empty file over the kernel's symbols.
                self.run("umount --quiet /proc/kallsyms", check=False)
                return
            time.sleep(0.05)
        self.console.seek(0)
        said = self.console.read().decode(errors="replace").strip()
        raise Skip(f"systemd did not boot in a container here: {said[-300:]}")

    def run(self, command, user=None, check=True, timeout=240):
        """Run a shell command as root or as a user with all their groups; CompletedProcess."""
        shell = ["sh", "-c", command]
        become = ["runuser", "-u", user, "--"] if user else []
        done = subprocess.run(
            ["nsenter", "-t", str(self.leader), "-a", "--wd", "--", *become, *shell],
            text=True, errors="replace", capture_output=True, timeout=timeout,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                 "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "HOME": "/", "TERM": "dumb",
                 "DEBIAN_FRONTEND": "noninteractive"})
        if check and done.returncode != 0:
            raise AssertionError(f"in the container, as {user or 'root'}: {command}\n"
                                 f"exited {done.returncode}\n{done.stdout}\n{done.stderr}\n"
                                 f"{self.journal()}")
        return done

    def says(self, command, **options):
        return self.run(command, **options).stdout.strip()

    def journal(self):
        return self.run("journalctl --no-pager -q -u mperfd.service | tail -15",
                        check=False).stdout

    def until(self, command, seconds=30, **options):
        """Run a command again and again until it succeeds; the CompletedProcess of that time."""
        deadline = time.monotonic() + seconds
        while True:
            done = self.run(command, check=False, **options)
            if done.returncode == 0:
                return done
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s: {command}\n{done.stdout}\n"
                                     f"{done.stderr}\n{self.journal()}")
            time.sleep(0.2)

    def stop(self):
        if self.leader and self.nspawn.poll() is None:
            os.kill(self.leader, 9)  # the first process: all others go with it
        else:
            self.nspawn.kill()
        self.nspawn.wait()
        self.console.close()
        for hierarchy in CGROUPS:
            for folder, _, _ in os.walk(hierarchy / self.name, topdown=False):
                for _ in range(50):
                    try:
                        os.rmdir(folder)
                        break
                    except OSError:
                        time.sleep(0.02)


class HostContainer(Container):
    """A container of this machine's files, as they are, with those of the folder `installed` over them. What it
    writes goes into memory; `folder` is empty, and is where that is mounted, for nobody else to see."""

    def __init__(self, folder, installed):
        need_root()
        for program in "systemd-nspawn", "nsenter", "unshare":
            need_program(program)
        if not Path("/usr/lib/systemd/systemd").exists():
            raise Skip("needs systemd, to boot it in a container")
        # of the machine's own units none is started but those that systemd brings
        script = (f"mount -t tmpfs tmpfs {folder} && cd {folder} && mkdir upper work root && "
                  "mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root && "
                  "rm -rf root/etc/systemd/system/*.wants root/etc/machine-id && : > root/etc/machine-id && "
                  f"cp -a {installed}/. root/ && exec \"$@\"")
        self.boot([f"--directory={folder}/root"],
                  before=["unshare", "--mount", "--propagation=private", "sh", "-c", script, "sh"])
