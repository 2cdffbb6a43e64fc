# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The profilers that are compared, each started, asked what it got, and ended in its own way."""
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

from accounting import Account, Watcher

READY_S = 60
SHIPPED_HZ = 99  # the rate of mperf.conf as it is shipped


class Absent(Exception):
    """The tool is not here, or does not run; the text says why."""


class Tool:
    """with tool(hz) …: while inside, it profiles the whole machine. Afterwards: cpu_s, peak_mb,
    n_samples, n_bytes, n_lost (None: it does not say)."""

    name = ""
    settle_s = 1.0
    n_samples = n_bytes = n_lost = None

    def __init__(self, folder, hz):
        self.folder = Path(folder) / self.name.replace(" ", "-")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.hz = hz
        self.process = None

    def popen(self, command, **options):
        # an ignored SIGINT is inherited, and who inherits it never ends
        return subprocess.Popen(command, stdin=subprocess.PIPE, cwd=self.folder,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                                **{"stdout": open(self.folder / "out", "ab"),
                                   "stderr": subprocess.STDOUT, **options})

    def said(self):
        return (self.folder / "out").read_text(errors="replace")

    def roots(self):
        return [self.process.pid]

    def begin(self):
        self.process = self.popen(self.command())

    def settle(self):
        time.sleep(self.settle_s)
        if self.process.poll() is not None:
            raise Absent(f"{self.name}: " + " ".join(self.said().split()[-30:]))

    def end(self):
        self.process.send_signal(signal.SIGINT)

    def collect(self):
        pass

    def __enter__(self):
        self.begin()
        self.account = Account(self.roots)
        self.watcher = Watcher(self.account)
        self.watcher.start()
        try:
            self.settle()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.end()
        # not reaped before the account was taken
        while os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            self.account.look()
            time.sleep(0.01)
        self.watcher.end()
        self.account.look()
        self.process.stdin.close()
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        # whichever knows more: workers that were killed are waited for by nobody
        self.cpu_s = max(usage.ru_utime + usage.ru_stime, sum(self.account.cpu.values()))
        self.peak_mb = self.account.peak_mb()
        if kind is None:
            self.collect()


class Nothing(Tool):
    name = "nothing"

    def __enter__(self):
        self.account = Account(list)
        self.cpu_s = self.peak_mb = 0
        return self

    def __exit__(self, *_):
        pass


class Mperf(Tool):
    """The service, with naming and store, as it is shipped but for the rate, which it keeps."""

    name = "mperf"
    keys = {}

    def __init__(self, folder, hz, build=None, **keys):
        super().__init__(folder, hz)
        self.build = build or self.build
        self.store = self.folder / "store"
        self.socket = self.folder / "socket"
        self.config = self.folder / "mperf.conf"
        keys = {**self.keys, **keys}
        store = "".join(f"{key.replace('_', '-')} = {value}\n" for key, value in keys.items())
        # above it the budget would lower the rate, which is what is compared
        held = "" if hz <= SHIPPED_HZ else "overhead = none\n"
        self.config.write_text(f"[sampling]\nrate = {hz}\n{held}[store]\npath = {self.store}\n"
                               f"min-free = 0\n{store}[control]\nsocket = {self.socket}\n"
                               f"[feed]\nfeed = {self.folder / 'feed'}\n")

    def command(self):
        return [self.build / "mperfd", "--foreground", f"--config={self.config}"]

    def settle(self):
        end = time.monotonic() + READY_S
        while "mperfd: ready" not in self.said():
            if self.process.poll() is not None or time.monotonic() > end:
                raise Absent(f"mperfd: {self.said()}")
            time.sleep(0.05)
        time.sleep(self.settle_s)

    def end(self):
        self.process.send_signal(signal.SIGTERM)

    def ctl(self, *arguments, **options):
        environment = {**os.environ, "MPERF_SOCKET": str(self.socket)}
        return subprocess.Popen([self.build / "mperfctl", *arguments], env=environment,
                                stdin=subprocess.DEVNULL, text=True, **options)

    def collect(self):
        files = [p for p in self.store.rglob("*") if p.is_file()]
        self.n_bytes = sum(p.stat().st_size for p in files)
        self.n_samples = self.n_lost = 0
        for path in files:
            if path.suffix == ".mprf" and path.parent.name == "window":
                db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
                self.n_samples += db.execute("SELECT total(count) FROM sample "
                                              "WHERE event NOT IN (SELECT id FROM event WHERE pmu = 'waiting')").fetchone()[0]
                causes = dict(db.execute("SELECT cause, sum(count) FROM loss GROUP BY cause"))
                self.n_lost += sum(causes.get(c, 0) for c in (
                    "ring overrun", "samples lost by the kernel", "not stored", "memory limit"))
                db.close()


class Record(Tool):
    name = "perf record"
    flags = []

    def command(self):
        return ["perf", "record", "-a", "-g", "-e", "cpu-clock", "-F", str(self.hz), *self.flags,
                "-o", self.folder / "perf.data"]

    def collect(self):
        self.n_bytes = (self.folder / "perf.data").stat().st_size
        found = re.search(r"\((\d+) samples\)", self.said())
        self.n_samples = int(found.group(1)) if found else self.count()
        lost = re.search(r"LOST \w+ events|lost (\d+)", self.said())
        self.n_lost = int(lost.group(1) or 1) if lost else 0


    def count(self):
        """What it does not say of a compressed file."""
        done = subprocess.run(["perf", "report", "--stats", "-i", self.folder / "perf.data"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found = re.search(r"SAMPLE events:\s+(\d+)", done.stdout)
        return int(found.group(1)) if found else None


class RecordZ(Record):
    name = "perf record -z"
    flags = ["-z"]


class Top(Tool):
    name = "perf top"

    def command(self):
        return ["perf", "top", "--stdio", "-e", "cpu-clock", "-F", str(self.hz)]

    def end(self):
        self.process.send_signal(signal.SIGTERM)


class Sysprof(Tool):
    """It has one rate, and its helper is asked for over the system's bus, which machines without a
    service manager lack: then it gets one of its own."""

    name = "sysprof-cli"

    def command(self):
        target = self.folder / "capture.syscap"
        if os.path.exists("/run/dbus/system_bus_socket"):
            return ["sysprof-cli", "-f", target]
        return ["unshare", "-m", "--propagation", "private", "sh", "-c",
                "mount -t tmpfs none /run && mkdir /run/dbus && "
                "{ dbus-daemon --system --nofork --nopidfile & } && sleep 0.5 && "
                f"sysprof-cli -f {target}; kill $!"]

    def sysprofs(self):
        found = []
        for pid in self.everyone():
            try:
                if Path(f"/proc/{pid}/comm").read_text().startswith("sysprof"):
                    found.append(pid)
            except OSError:
                pass
        return found

    @staticmethod
    def everyone():
        return [int(e.name) for e in os.scandir("/proc") if e.name.isdigit()]

    def roots(self):
        return self.sysprofs()

    def settle(self):
        time.sleep(self.settle_s + 1)
        if "Recording" not in self.said():
            raise Absent(f"sysprof-cli: {' '.join(self.said().split()[-30:])}")

    def end(self):
        for pid in self.sysprofs():
            if "sysprof-cli" in Path(f"/proc/{pid}/comm").read_text():
                os.kill(pid, signal.SIGINT)

    def collect(self):
        self.cpu_s = sum(self.account.cpu.values())
        self.n_bytes = (self.folder / "capture.syscap").stat().st_size


class Bcc(Tool):
    name = "bcc profile"
    settle_s = 4.0

    def command(self):
        return ["profile-bpfcc", "-F", str(self.hz), "-f"]

    def begin(self):
        if not shutil.which("profile-bpfcc"):
            raise Absent("profile-bpfcc is not installed")
        environment = dict(os.environ)
        headers = self.headers()
        if headers:
            environment["BCC_KERNEL_SOURCE"] = str(headers)
        self.process = self.popen(self.command(), env=environment)

    def headers(self):
        """Debian splits a kernel's headers in two folders; clang wants them in one."""
        if os.path.exists(f"/lib/modules/{os.uname().release}/build"):
            return None
        common = sorted(Path("/usr/src").glob("linux-headers-*-common"))
        if not common:
            return None
        whole = self.folder / "headers"
        whole.mkdir()
        for part in (common[-1], *Path("/usr/src").glob(common[-1].name[:-len("common")] + "*64")):
            subprocess.run(["cp", "-rsf", f"{part}/.", whole], check=True)
        return whole


PEERS = (Record, Top, Sysprof, Bcc)
