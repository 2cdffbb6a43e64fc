# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Debian of another release in a folder, and commands that run there.

A command has mounts and processes of its own, which end with it, and the folder as its root, as a
machine has it: it is no chroot below another root, so that it may mount and make namespaces. The
kernel, /dev and /sys are the host's. mperf's source stands in /mperf, read-only.
"""
import shlex
import shutil
import subprocess

from container import apt_options
from machine import ROOT, Skip, need_program, need_root

MAKE_SECONDS = 400  # downloads some 60 MB, once
SOURCE = "/mperf"
ENVIRONMENT = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "HOME=/root", "LC_ALL=C.UTF-8", "TERM=dumb", "DEBIAN_FRONTEND=noninteractive"]
ENTER = """
mount --bind "$1" "$1"
cd "$1"
mkdir -p ".$2" build
mount --bind "$3" ".$2"
mount -o remount,bind,ro ".$2"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmp tmp
mount -t tmpfs run run
cp /etc/resolv.conf etc/resolv.conf
pivot_root . mnt
shift 3
exec chroot . "$@"
"""


def made(folder, suite, uri):
    """The root of that suite below folder; mmdebstrap makes it when it is not there. It holds apt and
    make, and nothing else that a bare Debian has not."""
    need_root()
    for program in "mmdebstrap", "unshare", "pivot_root":
        need_program(program)
    root, part = folder / "root", folder / "part"
    if root.is_dir():
        return root
    shutil.rmtree(part, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", *apt_options(),
                               "--include=make,ca-certificates", suite, part,
                               f"deb {uri} {suite} main"],
                              text=True, capture_output=True, timeout=MAKE_SECONDS)
    except subprocess.TimeoutExpired:
        raise Skip(f"{uri} did not give {suite} in {MAKE_SECONDS} s") from None
    if done.returncode != 0:
        raise Skip(f"mmdebstrap made no {suite}: {done.stderr.strip()[-300:]}")
    part.rename(root)
    return root


def run(root, command, timeout):
    """What a shell command printed that ran in the root, in mperf's source; it must succeed."""
    inside = f"umount --lazy /mnt && cd {SOURCE} && {command}"
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER, "sh", root,
         SOURCE, ROOT, *ENVIRONMENT, "sh", "-c", inside],
        text=True, errors="replace", capture_output=True, timeout=timeout)
    assert done.returncode == 0, (f"{shlex.quote(command)} exited {done.returncode}\n"
                                  f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    return done.stdout
