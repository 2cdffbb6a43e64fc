# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A board that boots Debian with systemd from a disc, which has mperf's package.

The disc is made once of the tree and never written: what a boot changes is gone with it. Debian's
own packages are unpacked there and called installed, without their maintainer scripts, of which
furnish() does what matters. Ours is installed by dpkg when systemd runs, before the test's script:
its maintainer scripts make user and folders, set the sysctl, enable and start the service.
"""
import lzma
import re
import subprocess
import tempfile
from pathlib import Path

from guest import Guest, compile_program, once, package, sysroot
from machine import need_program, need_root

DISC_BYTES = "1200M"   # three times what is on it; the file is sparse
SYSTEM_SECONDS = 300
# What no board needs that runs no compiler and reads no manual.
LEFT_OUT = ["./boot", "./usr/include", "./usr/share/doc", "./usr/share/man", "./usr/share/locale",
            "./usr/share/info", "./usr/lib/modules", "./usr/lib/gcc", "./var/cache", "*.a",
            "./dev", "./proc", "./sys", "./usr/share/zoneinfo", "./usr/share/i18n",
            "./usr/lib/python3*", "./usr/share/perl"]
# What systemd does on a first boot and no test looks at; it takes seconds here.
IDLE = ["ldconfig.service", "systemd-hwdb-update.service", "systemd-journal-catalog-update.service",
        "systemd-journal-flush.service", "systemd-random-seed.service", "systemd-pcrphase.service",
        "systemd-binfmt.service", "modprobe@.service", "kmod-static-nodes.service",
        "systemd-modules-load.service", "systemd-udevd.service", "systemd-udev-trigger.service",
        "systemd-udev-load-credentials.service", "systemd-udevd-control.socket",
        "systemd-udevd-kernel.socket", "dev-hugepages.mount", "dev-mqueue.mount"]
PASSWD = "alice:x:1000:1000::/home/alice:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\n"
GROUP = "alice:x:1000:\nbob:x:1001:\n"

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in $(cat /modules); do insmod /$module || echo "insmod $module failed"; done
mkdir /disc
mount -t ext4 /dev/vda /disc && cp -a /over/. /disc/ || poweroff -f
umount /proc /sys /dev
exec switch_root /disc /usr/lib/systemd/systemd
"""
# Nothing but this is wanted beside what every boot has, so that no test waits for a login prompt.
TARGET = """[Unit]
Requires=basic.target board.service
After=basic.target board.service
AllowIsolate=yes
"""
SERVICE = """[Unit]
Requires=basic.target
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'exec >/dev/console 2>&1; . /board/guest.sh; section script sh /board/script'
ExecStopPost=/usr/bin/busybox poweroff -f
Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root
Environment=LC_ALL=C.UTF-8 NO_COLOR=1 TERM=dumb
TimeoutStartSec=infinity
"""
INSTALL = """
section install dpkg --install /board/mperf.deb
"""


@once
def disc(build, arch):
    """The file system of a board, made once of the tree; its path."""
    root = sysroot(build, arch)
    image = build / "boards" / f"{arch}.ext4"
    sources = Path(__file__), root.with_suffix(".dpkg") / "board"
    if image.exists() and all(image.stat().st_mtime >= p.stat().st_mtime for p in sources):
        return image
    with tempfile.TemporaryDirectory(dir=build / "boards") as folder:
        left_out = [f"--exclude={pattern}" for pattern in LEFT_OUT]
        out = subprocess.Popen(["tar", "-C", root, *left_out, "-c", "."], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-C", folder, "-x"], stdin=out.stdout, check=True)
        assert out.wait() == 0
        furnish(Path(folder))
        write_status(Path(folder), root)
        part = image.with_suffix(".part")
        part.unlink(missing_ok=True)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", folder, part, DISC_BYTES], check=True,
                       stdout=subprocess.DEVNULL)
        part.rename(image)
    return image


def furnish(folder):
    """What maintainer scripts would have made."""
    for name in ("dev", "proc", "sys", "run", "tmp", "root", "mnt", "home/alice", "home/bob",
                 "var/log"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    for name, more in ("passwd", PASSWD), ("group", GROUP):
        master = folder / "usr/share/base-passwd" / f"{name}.master"
        (folder / "etc" / name).write_text(master.read_text().replace(":*:", ":x:") + more)
    # With an id it is no first boot, on which systemd would ask questions.
    (folder / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    (folder / "etc/hostname").write_text("board\n")
    (folder / "etc/fstab").write_text("")
    units = folder / "etc/systemd/system"
    units.mkdir(parents=True, exist_ok=True)
    for unit in IDLE:
        (units / unit).symlink_to("/dev/null")
    (units / "board.target").write_text(TARGET)
    (units / "board.service").write_text(SERVICE)


def write_status(folder, root):
    """What dpkg knows: that all packages of the tree are there, of whose files it keeps no list."""
    status = (root.with_suffix(".dpkg") / "board").read_text()
    info = folder / "var/lib/dpkg/info"
    (folder / "var/lib/dpkg/status").write_text(status)
    for fields in status.split("\n\n"):
        name = re.search(r"^Package: (.+)$", fields, re.M)
        if not name:
            continue
        same = re.search(r"^Multi-Arch: same$", fields, re.M)
        arch = ":" + re.search(r"^Architecture: (.+)$", fields, re.M)[1] if same else ""
        (info / f"{name[1]}{arch}.list").write_text("/.\n")


def modules(root, *wanted):
    """Kernel modules and what they depend on, in the order to load them: {path: bytes}."""
    paths = {p.name.split(".")[0]: p for p in (root / "usr/lib/modules").rglob("*.ko*")}
    found = {}

    def add(name):
        if name in found or name not in paths:
            return
        code = paths[name].read_bytes()
        if paths[name].suffix == ".xz":
            code = lzma.decompress(code)
        for dependency in re.search(rb"\0depends=([^\0]*)", code)[1].decode().split(","):
            add(dependency)
        found[name] = code

    for name in wanted:
        assert name in paths, f"the kernel has no module {name}"
        add(name)
    return {f"{name}.ko": code for name, code in found.items()}


def disc_files(build, arch):
    """QEMU's options for the disc, and the kernel modules that mount it with their list."""
    need_root()
    for program in "mke2fs", "tar":
        need_program(program)
    kernel = modules(sysroot(build, arch), "crc32c_generic", "virtio_blk", "ext4", "brd")
    drives = ["-drive", f"file={disc(build, arch)},format=raw,if=none,id=disc,snapshot=on",
              "-device", "virtio-blk-pci,drive=disc"]
    return drives, kernel | {"modules": "\n".join(kernel).encode()}


class WithDisc(Guest):
    """A Guest whose script begins with Debian's disc at /disc, and the store on a disc that is made of
    its own memory; no systemd. To a guest whose clock stops for nobody (icount) the host's discs are
    slow by seconds, and by more when the host is busy: figures are to know nothing of that."""

    def make_files(self, sources):
        self.drives, kernel = disc_files(self.build, self.arch)
        return super().make_files(sources) | kernel

    def scripts(self, script):
        return super().scripts("""
for module in $(cat /modules); do insmod /$module rd_nr=1 rd_size=1048576 || exit 1; done
mkdir -p /disc /var/lib/mperf /etc/mperf
mount -t ext4 /dev/vda /disc || exit 1
for name in proc sys dev tmp; do mount --bind /$name /disc/$name; done
mke2fs -i 1048576 -m 0 /dev/ram0 >/dev/null && mount -t ext4 /dev/ram0 /var/lib/mperf || exit 1
""" + script)


class System(Guest):
    """A Guest whose script runs below systemd; of everything else it is one."""

    append = "systemd.unit=board.target systemd.show_status=no"

    def make_files(self, sources):
        root = sysroot(self.build, self.arch)
        self.drives, kernel = disc_files(self.build, self.arch)
        files = {"over/board/mperf.deb": package(self.build, self.arch).read_bytes()}
        for source in sources:
            path = compile_program(self.build, self.arch, source)
            files[f"over/usr/local/bin/{path.name}*"] = path.read_bytes()
        return files | kernel | {"bin/busybox*": (root / "usr/bin/busybox").read_bytes(),
                                 "proc": None, "sys": None, "dev": None}

    def scripts(self, script):
        base = super().scripts(script)
        return {"init*": INIT.encode(), "over/board/guest.sh": base["guest.sh"],
                "over/board/script": base["script"].replace(b". /guest.sh", b". /board/guest.sh")}

    def run(self, script, seconds=SYSTEM_SECONDS):
        said = super().run(INSTALL + script, seconds)
        assert said["install"].status == 0, said["install"]
        return said
