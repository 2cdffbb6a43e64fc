# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A client at work with its daemon and workers, and the machine around it."""
import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

from machine import Folder, rows
from recorded import known
from service import PATIENCE_S


def by(build, path, grouping, *more):
    return rows(build, "hotspots", "-i", path, "--by", grouping, "--limit", "0", *more)["rows"]


def share(found, **wanted):
    return sum(r["self"] for r in found if all(r[k] == v for k, v in wanted.items()))


def on_a_terminal(build, size, *arguments, env=None):
    """What mperfctl prints on a terminal of so many lines and columns."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    with subprocess.Popen([build / "mperfctl", *map(str, arguments)], stdout=there,
                          env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})}) as client:
        os.close(there)
        said = b""
        while True:
            try:
                piece = os.read(here, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            said += piece
    os.close(here)
    assert client.returncode == 0, said
    return said.decode().replace("\r", "")


# --- processes of a recording --------------------------------------------------------------------

def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return [""]


def alive(pid):
    try:
        return not re.search(r"^State:\s+[ZX]", Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return False


def wait_until(condition, seconds, what):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not within {seconds} s: {what}"
        time.sleep(0.02)


class Running:
    """A client at work, with its daemon and the daemon's workers."""

    def __init__(self, build, folder, *arguments):
        self.folder = folder
        environment = dict(os.environ, TMPDIR=str(folder / "tmp"), NO_COLOR="1", LC_ALL="C.UTF-8")
        environment.pop("MPERF_SOCKET", None)
        (folder / "tmp").mkdir()
        self.client = subprocess.Popen([build / "mperfctl", *map(str, arguments)], env=environment,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       errors="replace", cwd=folder)
        self.daemon, self.log_bytes = None, set()
        try:
            wait_until(self.find, PATIENCE_S, "a private mperfd with its workers")
        except AssertionError:
            self.client.kill()
            raise

    def find(self):
        for pid in children(self.client.pid):
            if command_line(pid)[0].endswith("mperfd"):
                self.daemon = pid
        told = [(command_line(pid), pid) for pid in children(self.daemon or 0)]  # read once: they come and go
        self.workers = {line[1]: pid for line, pid in told if len(line) > 2}
        self.commands = [pid for pid in children(self.client.pid) if pid != self.daemon]
        return {"open", "parse"} <= set(self.workers) and \
            list((self.folder / "tmp").glob("mperf-*/segment.mprf"))

    def counts(self):
        """Has its log of writes grown under our eyes? Then it has stored a window since it began."""
        for path in (self.folder / "tmp").glob("mperf-*/segment.mprf-wal"):
            with contextlib.suppress(FileNotFoundError):
                self.log_bytes.add(path.stat().st_size)
        return len(self.log_bytes) > 1

    def end(self):
        """CompletedProcess of the client."""
        out, said = self.client.communicate(timeout=2 * PATIENCE_S)
        return subprocess.CompletedProcess(self.client.args, self.client.returncode, out, said)

    def stop(self):
        """Whatever happened: nothing is left running."""
        for pid in [*self.commands, self.daemon]:
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(pid, signal.SIGKILL)
        self.client.kill()
        self.client.communicate()


@contextlib.contextmanager
def running(build, *arguments):
    with Folder() as folder:
        r = Running(build, folder, *arguments)
        try:
            yield r
        finally:
            r.stop()


@contextlib.contextmanager
def spinners(build, n, what="spin"):
    busy = [subprocess.Popen([known(build), what, "100000"], stdout=subprocess.DEVNULL)
            for _ in range(n)]
    try:
        yield [p.pid for p in busy]
    finally:
        for p in busy:
            p.kill()
            p.wait()
