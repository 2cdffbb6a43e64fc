# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A board made by QEMU: Debian's kernel, the programs of our package, and a script that runs there.

The first boot needs no disc: an initramfs holds busybox, the programs and the libraries that they
name. What the script prints comes back over the serial line, in named sections with their exit
status; a boot that does not reach its end is an error with the end of what was said. Each boot is
bounded by QEMU's own end, a time limit, and a kill.
"""
import contextlib
import fcntl
import functools
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import debian
from machine import ROOT, Skip, need_program

HERE = Path(__file__).resolve().parent
TRIPLE = {"riscv64": "riscv64-linux-gnu", "arm64": "aarch64-linux-gnu"}
QEMU = {"riscv64": "qemu-system-riscv64", "arm64": "qemu-system-aarch64"}
CONSOLE = {"riscv64": "ttyS0", "arm64": "ttyAMA0"}
DEB_SECONDS = 1800   # it gives way to all other tests
BOOT_SECONDS = 1500   # a boot takes 3 to 8 s of a machine that does nothing else; beside all tests, minutes

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/bin LC_ALL=C.UTF-8 NO_COLOR=1 HOME=/root TERM=dumb
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp; mount -t tmpfs run /run; mount -t tracefs tracing /sys/kernel/tracing
ip link set lo up 2>/dev/null
hostname board
. /guest.sh
section script sh /script
poweroff -f
"""
# section NAME COMMAND…: run it, and tell the test what it printed and how it ended.
SECTIONS = """
section() {
	name=$of$1
	shift
	echo "@@begin $name"
	"$@" 2>"/tmp/errors.$name"
	status=$?
	echo "@@errors $name"
	cat "/tmp/errors.$name"
	echo "@@end $name $status"
}
"""


def need_what_makes_boards():
    """Skip where that is missing; all of it but the first is what make check installs."""
    if platform.machine() != "x86_64":
        raise Skip("needs an x86-64 machine: QEMU is fetched for that")
    for program in "mmdebstrap", "make", "clang", "ld.lld-19", "readelf", "timeout":
        need_program(program)


class Section:
    """What one command of the script printed, on both channels, and its exit status."""

    def __init__(self, text, errors, status):
        self.text, self.errors, self.status = text, errors, status

    def __str__(self):
        return f"exit {self.status}\n{self.text}\n{self.errors}"


class Making:
    """One at a time makes what tests share: of all threads here, and of other runs' processes."""

    def __init__(self):
        self.lock, self.depth, self.file = threading.RLock(), 0, None

    @contextlib.contextmanager
    def alone(self, folder):
        with self.lock:
            if self.depth == 0:
                folder.mkdir(parents=True, exist_ok=True)
                self.file = open(folder / "making.lock", "w")
                fcntl.flock(self.file, fcntl.LOCK_EX)
            self.depth += 1
            try:
                yield
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.file.close()


MAKING = Making()


def once(make):
    """make(build, …) runs once; others wait until it has."""
    made = functools.cache(make)

    @functools.wraps(make)
    def run(build, *arguments):
        with MAKING.alone(build / "boards"):
            return made(build, *arguments)
    return run


@once
def package(build, arch):
    """make deb for that architecture, without a warning; the package, which boards run. Each job of a run
    is a process of its own, so what is younger than all that it is made of, and was made without a
    complaint, is taken as it is. Without the tree to link with: Skip."""
    need_program(f"{TRIPLE[arch]}-gcc")
    root = sysroot(build, arch)
    made = build / arch / "deb" / "made"  # when what went well began
    newest = max(p.stat().st_mtime for p in (*packaged(build), root.with_suffix(".dpkg") / "board"))
    if not made.exists() or made.stat().st_mtime < newest:
        began = time.time()
        done = subprocess.run(["make", f"BUILD={build}", f"CROSS={arch}", "V=1", "deb"], cwd=ROOT, text=True,
                              capture_output=True, timeout=DEB_SECONDS,
                              env=dict(os.environ, WERROR="-Werror"))
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        assert " -Werror " in done.stdout and f"{TRIPLE[arch]}-gcc " in done.stdout, done.stdout[:2000]
        made.touch()
        os.utime(made, (began, began))  # a source that changed meanwhile is younger
    return next((build / arch / "deb").glob(f"mperf_*_{arch}.deb"))


def packaged(build):
    """Files and folders of the source but the tests, of which a package has none."""
    for path in ROOT.iterdir():
        if path.name not in (".git", "tests", "build", build.name):
            yield path
            yield from path.rglob("*")


@once
def unpacked(build, arch):
    """The package's files, as a folder."""
    deb = package(build, arch)
    folder = build / "boards" / "programs" / arch / "package"
    if not folder.exists() or folder.stat().st_mtime < deb.stat().st_mtime:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        subprocess.run(["dpkg-deb", "-x", deb, folder], check=True)
        os.utime(folder)  # which the package's own time would be otherwise
    return folder


def runtime_archive(build, arch):
    """What goes into programs that count themselves, as it was built beside the package."""
    archive, = package(build, arch).parent.glob(f"mperf-*/obj/{arch}-gcc/libmperf-runtime.a")
    return archive


def sysroot(build, arch):
    return debian.tree(arch, build / "boards")


def needed(path):
    """The names of the libraries that an ELF file links with."""
    said = subprocess.run(["readelf", "-d", path], text=True, capture_output=True).stdout
    return re.findall(r"\(NEEDED\) +Shared library: \[(.+)\]", said)


def closure(root, arch, programs):
    """The libraries that the programs need, theirs, and so on, as files of the tree."""
    found, wanted = {}, [n for p in programs for n in needed(p)]
    places = [root / "usr/lib" / TRIPLE[arch], root / "usr/lib",
              root / "usr/lib" / TRIPLE[arch] / "systemd", root / "usr/lib/systemd"]
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        path = next((p / name for p in places if (p / name).exists()), None)
        assert path, f"the tree of {arch} has no {name}"
        found[name] = path
        wanted += needed(path)
    return found


def loader(arch):
    return {"riscv64": "ld-linux-riscv64-lp64d.so.1", "arm64": "ld-linux-aarch64.so.1"}[arch]


def cpio(entries):
    """An archive as the kernel unpacks it: {path: bytes, or None for a folder}; a path that ends
    in "*" is a program. Source: Documentation/driver-api/early-userspace/buffer-format.rst."""
    out = []

    def add(name, mode, data):
        name = name.encode() + b"\0"
        fields = (len(out) + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
        out.append(b"070701" + b"".join(b"%08X" % n for n in fields) + name
                   + b"\0" * (-(110 + len(name)) % 4) + data + b"\0" * (-len(data) % 4))

    folders = {str(parent) for name in entries for parent in Path(name).parents}
    folders |= {name for name, data in entries.items() if data is None}
    for name in sorted(folders - {"."}):
        add(name, stat.S_IFDIR | 0o755, b"")
    for name, data in entries.items():
        if data is not None:
            mode = 0o755 if name.endswith("*") else 0o644
            add(name.rstrip("*"), stat.S_IFREG | mode, data)
    add("TRAILER!!!", 0, b"")
    return b"".join(out)


FLAGS = {"depth.c": ["-fomit-frame-pointer", "-Wl,-z,lazy"]}
ARM_FLAGS = ["-mbranch-protection=pac-ret"]  # as distributions build


@once
def compile_program(build, arch, source):
    """Compile tests/boards/SOURCE or tests/system/SOURCE for the guest; its path. One that marks
    regions has the runtime."""
    path = next(p for p in (HERE / source, ROOT / "tests/system" / source) if p.exists())
    target = build / "boards" / "programs" / arch / path.stem
    archive = runtime_archive(build, arch)
    runtime = ["-Wl,-u,__mperf_region_begin", archive] if "runtime/mperf.h" in path.read_text() else []
    newest = max(p.stat().st_mtime for p in (path, *path.parent.glob("*.h"), *runtime[1:]))
    if not target.exists() or target.stat().st_mtime < newest:
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["clang", f"--target={TRIPLE[arch]}", f"--sysroot={sysroot(build, arch)}",
                        "-fuse-ld=lld-19", "-g", "-O2", *FLAGS.get(source, ["-fno-omit-frame-pointer"]),
                        *(ARM_FLAGS if arch == "arm64" else []), "-I", ROOT,
                        "-o", target, path, *runtime, "-lpthread"], check=True)
    return target


@once
def compile_counted(build, arch, name, *flags):
    """Compile tests/kernels/NAME for the guest by mperf-cc, so that it counts itself, with lines by which
    samples find its loops; its path."""
    if not (build / "llvm-19" / "mperf-pass.so").exists():
        raise Skip("no plugin was built: LLVM 19 has no headers here")
    runtime = runtime_archive(build, arch)
    target = build / "boards" / "programs" / arch / f"counted-{Path(name).stem}"
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([build / "mperf-cc", f"--target={TRIPLE[arch]}",
                    f"--sysroot={sysroot(build, arch)}", "-fuse-ld=lld-19", "-g", "-O3", "-static", *flags,
                    "-o", target, ROOT / "tests/kernels" / name], check=True,
                   env={"PATH": "/usr/bin:/bin", "MPERF_CLANG": "clang-19",
                        "MPERF_RUNTIME": str(runtime)})
    return target


def initramfs(build, arch, sources):
    """The folder's contents as {path: bytes}: busybox, the package's programs with what they know of
    cores, tests' programs, libraries."""
    root = sysroot(build, arch)
    ours = unpacked(build, arch)
    programs = {f"{name}*": ours / name
                for name in ("usr/bin/mperfctl", "usr/sbin/mperfd", "usr/libexec/mperf/mperf-namer")}
    for source in sources:
        path = compile_program(build, arch, source)
        programs[f"usr/local/bin/{path.name}*"] = path
    files = {name: path.read_bytes() for name, path in programs.items()}
    files |= {str(path.relative_to(ours)): path.read_bytes()
              for path in (ours / "usr/share/mperf/platforms").rglob("*.json")}
    libraries = closure(root, arch, programs.values())
    files |= {f"lib/{name}*": path.read_bytes() for name, path in libraries.items()}
    files[f"lib/{loader(arch)}*"] = (root / "usr/lib" / TRIPLE[arch] / loader(arch)).read_bytes()
    files["bin/busybox*"] = (root / "usr/bin/busybox").read_bytes()
    files["etc/passwd"] = b"root:x:0:0::/root:/bin/sh\nmperf:x:998:998::/:/bin/sh\n" \
                          b"user:x:1000:1000::/tmp:/bin/sh\n"
    files["etc/group"] = b"root:x:0:\nmperf:x:998:\nuser:x:1000:\n"
    return files | {name: None for name in ("proc", "sys", "dev", "tmp", "run", "root", "var/lib")}


def qemu(build, arch, tree):
    """The command that starts QEMU from that tree, with the tree's own libraries."""
    root = debian.tree(tree, build / "boards")
    lib = f"{root}/usr/lib/x86_64-linux-gnu:{root}/lib/x86_64-linux-gnu"
    loaders = [root / lib64 / "ld-linux-x86-64.so.2" for lib64 in ("lib64", "usr/lib64")]
    return [next(path for path in loaders if path.exists()), "--library-path", lib,
            root / "usr/bin" / QEMU[arch], "-L", root / "usr/share/qemu",
            *(["-bios", root / "usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.bin"]
              if arch == "riscv64" else [])]


def kernel(root):
    found = sorted((root / "boot").glob("vmlinu[xz]-*"))
    assert found, f"no kernel in {root}/boot"
    return found[-1]


class Guest:
    """A board: its kind of hart, how many, memory, clock. `run` boots it once with a script.

    icount is QEMU's shift: a hart takes 2**icount ns of guest time per instruction, whatever the
    host does; with None it follows the host's clock. sources are C programs that go into
    /usr/local/bin. files, {path: bytes}, is
    what the initramfs holds; a test may add to it.
    """

    append = ""
    qemu_tree = "qemu"

    def __init__(self, build, arch="riscv64", cpu="rv64", harts=2, memory="1G", icount=1,
                 machine="virt", sources=("board.c",)):
        self.build, self.arch = build, arch
        self.machine = ["-M", machine, "-cpu", cpu, "-smp", str(harts), "-m", memory]
        if icount is not None:
            self.machine += ["-icount", f"shift={icount},sleep=off"]
        self.drives, self.dtb = [], None
        self.files = self.make_files(sources)

    def make_files(self, sources):
        """What the initramfs holds, but for the script: {path: bytes}."""
        return initramfs(self.build, self.arch, sources)

    def own_device_tree(self):
        """Dump the board's device tree and boot by that file from now on; its path. Change it."""
        self.dtb = tempfile.NamedTemporaryFile(dir=self.build / "boards", suffix=".dtb")
        command = [*qemu(self.build, self.arch, self.qemu_tree), *self.machine, "-nographic",
                   "-nodefaults"]
        command[command.index("-M") + 1] += f",dumpdtb={self.dtb.name}"
        subprocess.run(["timeout", "-k", "5", "30", *command], check=True, capture_output=True)
        return self.dtb.name

    def scripts(self, script):
        """The files that make the board run the script and then power off."""
        return {"init*": INIT.encode(), "guest.sh": SECTIONS.encode(), "script": script.encode()}

    def run_each(self, seconds=BOOT_SECONDS, **scripts):
        """Boot once for several scripts, one after the other, each in a shell of its own; {name of the
        script: {name: Section}}. What a script leaves behind (services, files), the next ones find."""
        found = self.run("".join(f"(\nof={name}.\n{script}\n)\n" for name, script in scripts.items()),
                         seconds)
        return {name: {section.removeprefix(f"{name}."): said for section, said in found.items()
                       if section.startswith(f"{name}.")} for name in scripts}

    def run(self, script, seconds=BOOT_SECONDS):
        """Boot, run the shell script, power off; {name: Section} of what it reported."""
        command = [*qemu(self.build, self.arch, self.qemu_tree), *self.machine, "-nographic",
                   "-nodefaults", "-serial", "stdio", "-no-reboot", "-kernel",
                   kernel(sysroot(self.build, self.arch)), *self.drives, "-append",
                   f"console={CONSOLE[self.arch]} loglevel=1 panic=-1 {self.append}"]
        if self.dtb:
            command += ["-dtb", self.dtb.name]
        with tempfile.NamedTemporaryFile(dir=self.build / "boards", suffix=".cpio") as archive:
            archive.write(cpio(self.files | self.scripts(". /guest.sh\n" + script)))
            archive.flush()
            done = subprocess.run(["timeout", "-k", "5", str(seconds), *command, "-initrd",
                                   archive.name], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return sections(done.stdout.decode(errors="replace").replace("\r", ""), done.returncode)


def sections(said, status):
    """Take the serial line apart. The script itself is the section that encloses all others."""
    found, opened = {}, []
    for line in said.splitlines(keepends=True):
        mark = re.search(r"@@(begin|errors|end) (\S+)(?: (\d+))?$", line.rstrip("\n"))
        if not mark:
            if opened:
                opened[-1][opened[-1][3]] += line
        elif mark[1] == "begin":
            opened.append([mark[2], "", "", 1])
        elif opened and opened[-1][0] == mark[2]:
            if mark[1] == "errors":
                opened[-1][3] = 2
            else:
                name, text, errors, _ = opened.pop()
                found[name] = Section(text, errors, int(mark[3]))
    assert "script" in found, f"the board did not reach its end (QEMU: {status}): {said[-3000:]}"
    return found
