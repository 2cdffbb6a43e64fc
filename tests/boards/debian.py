#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees of Debian packages, fetched by name from this machine's mirror; unpacked, not installed.

    tests/boards/debian.py TREE FOLDER      makes FOLDER/TREE, unless it is there

TREE is riscv64 or arm64 (Debian 13 as a board runs it, with headers to build for it), qemu, or
qemu-trixie, Debian 13's own. No maintainer script runs, so the tree of another architecture needs
nothing to execute it. The mirror
is read from the machine's apt sources and stands nowhere else.
"""
import fcntl
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "system"))
from container import apt_options, apt_sources  # noqa: E402
from machine import Skip  # noqa: E402

FETCH_SECONDS = 400  # half a minute on a good line; what takes longer than this is no mirror

BOARD = ["base-files", "base-passwd", "bash", "busybox-static", "coreutils", "dash", "diffutils",
         "dpkg", "findutils", "grep", "init-system-helpers", "kmod", "libbpf1", "libc-bin", "libcap2-bin",
         "mount", "passwd", "perl-base", "procps", "sed", "systemd", "systemd-sysv", "tar",
         "util-linux"]
LIBRARIES = ["libc6-dev", "libdw-dev", "libelf-dev", "libgcc-14-dev", "libiberty-dev",
             "libbpf-dev", "libjansson-dev", "liblzma-dev", "libncurses-dev", "libprotobuf-c-dev",
             "libseccomp-dev", "libsqlite3-dev", "libsystemd-dev", "libxxhash-dev", "libzstd-dev",
             "uthash-dev", "zlib1g-dev"]
# QEMU 10.0.2 counts and interrupts. 7.2 (bookworm) hangs with -icount, and 10.0.13 (trixie) never
# interrupts: the packages are those of bookworm-backports whatever Debian this is, but for the test
# of just that.
QEMU = ["opensbi", "qemu-system-arm", "qemu-system-common", "qemu-system-data",
        "qemu-system-riscv"]

TREES = {
    "riscv64": ("riscv64", [*BOARD, *LIBRARIES, "linux-image-riscv64", "linux-perf"], ["trixie"]),
    "arm64": ("arm64", [*BOARD, *LIBRARIES, "linux-image-arm64", "linux-perf"], ["trixie"]),
    "qemu": ("amd64", [f"{name}/bookworm-backports" for name in QEMU],
             ["bookworm", "bookworm-backports"]),
    "qemu-trixie": ("amd64", [n for n in QEMU if n != "qemu-system-arm"], ["trixie"]),
}
ALIASES = {"trixie": "stable"}


def mirror():
    """Where this machine gets its Debian from; security updates live elsewhere."""
    text = Path(apt_sources()[0]).read_text()
    found = re.findall(r"^(?:URIs:|deb(?: \[[^]]*\])?) +(\S+)", text, re.M)
    for uri in found:
        if "security" not in uri:
            return uri
    raise Skip("finds no Debian mirror among this machine's apt sources")


def write_index(root):
    """What dpkg would know had it installed a tree, in TREE.dpkg beside it: which package has which
    library, for dpkg-shlibdeps, and in `board` the status of all, for the dpkg of a board. Runs
    while the archives are still there."""
    target = root.with_suffix("")
    index = target.with_suffix(".dpkg")
    shutil.rmtree(index, ignore_errors=True)
    info = index / "info"
    info.mkdir(parents=True)
    (info / "format").write_text("1\n")
    with open(index / "status", "w") as status, open(index / "board", "w") as board, \
            tempfile.TemporaryDirectory() as control:
        for archive in sorted((root / "var/cache/apt/archives").glob("*.deb")):
            shutil.rmtree(control)
            subprocess.run(["dpkg-deb", "-e", archive, control], check=True)
            fields = (Path(control) / "control").read_text()
            fields = fields.replace("\n", "\nStatus: install ok installed\n", 1) + "\n"
            board.write(fields)
            kept = [p for p in Path(control).iterdir() if p.name in ("symbols", "shlibs")]
            if kept and archive.name.startswith(("lib", "zlib")):
                status.write(fields)
                write_libraries(info, target, archive, fields, kept)


def write_libraries(info, target, archive, fields, kept):
    """The package's files, and what its control files say of its libraries."""
    name = re.search(r"^Package: (.+)$", fields, re.M)[1]
    if re.search(r"^Multi-Arch: same$", fields, re.M):
        name += ":" + re.search(r"^Architecture: (.+)$", fields, re.M)[1]
    for path in kept:
        shutil.copy(path, info / f"{name}.{path.name}")
    listed = subprocess.run(["dpkg-deb", "-c", archive], check=True, text=True,
                            capture_output=True).stdout
    paths = re.findall(r" \./(\S+?)/?(?: -> .*)?$", listed, re.M)
    (info / f"{name}.list").write_text("".join(f"{target}/{p}\n" for p in paths))


def fetch(name, target):
    """A mirror may have the lists of one day below a suite's code name and those of another day below
    its alias, and only one of them complete: the alias is tried where the code name fails."""
    if not shutil.which("mmdebstrap"):
        raise Skip("needs the program mmdebstrap")
    suites = TREES[name][2]
    try:
        extract(name, target, suites)
    except MissingPart:
        if suites[0] not in ALIASES:
            raise
        shutil.rmtree(target, ignore_errors=True)
        extract(name, target, [ALIASES[suites[0]], *suites[1:]], ["base-files"])  # which has os-release
        release = (target / "usr/lib/os-release").read_text()
        if f"VERSION_CODENAME={suites[0]}\n" not in release:
            raise Skip(f"Debian's mirror lacks a part of {name}, and its {ALIASES[suites[0]]} is not "
                       f"{suites[0]}") from None


class MissingPart(Skip):
    """A mirror has the index of another day than its list of hashes, for hours or days."""


def extract(name, target, suites, more=()):
    architecture, packages, _ = TREES[name]
    uri = mirror()
    command = ["mmdebstrap", "--variant=extract", f"--architectures={architecture}",
               *apt_options(), f"--include={','.join([*packages, *more])}", suites[0], target,
               *([f"--extract-hook={shlex.quote(__file__)} index \"$1\""]
                 if has_index(name) else []),
               *(f"deb {uri} {suite} main" for suite in suites)]
    try:
        done = subprocess.run(command, text=True, capture_output=True, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired:
        raise Skip(f"{uri} did not give the packages of {name} in {FETCH_SECONDS} s") from None
    if done.returncode != 0:
        failed = re.search(r"^E: Failed to fetch .*", done.stderr, re.M)
        if failed:
            raise MissingPart(f"Debian's mirror lacks a part of {name}: {failed[0][3:]}")
        raise Skip(f"mmdebstrap made no tree of {name}: {done.stderr.strip()[-300:]}")


def has_index(name):
    """Trees of libraries have one, those of programs for this machine do not need it."""
    return not name.startswith("qemu")


def tree(name, folder):
    """The folder of a tree, which is made or brought up to date when it is not there."""
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    target, stamp, part = folder / name, folder / f"{name}.packages", folder / f"{name}.part"
    wanted = "\n".join(TREES[name][1])
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = target.is_dir() and (
            not has_index(name) or (target.with_suffix(".dpkg") / "board").exists())
        if not whole or not stamp.exists() or stamp.read_text() != wanted:
            for old in target, part:
                shutil.rmtree(old, ignore_errors=True)
            fetch(name, part)
            part.rename(target)
        stamp.write_text(wanted)  # and newer than this file, for make
    return target


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "index":
        sys.exit(write_index(Path(sys.argv[2])))
    if len(sys.argv) != 3 or sys.argv[1] not in TREES:
        sys.exit(__doc__)
    try:
        tree(sys.argv[1], sys.argv[2])
    except Skip as reason:
        sys.exit(f"There is no {sys.argv[1]} to build with: it {reason}. Mend that and run make "
                 "again.")
