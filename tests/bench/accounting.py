# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What processes cost: CPU to the nanosecond, the most memory they ever had, bytes they wrote."""
import os
import subprocess
import threading
import time
import typing
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def parents():
    """The parent of every process."""
    found = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                stat = Path(entry.path, "stat").read_text()
            except OSError:
                continue
            found[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def with_descendants(roots):
    """These processes and all that descend from them."""
    parent = parents()
    tree = {pid for pid in roots if pid in parent}
    while True:
        more = {pid for pid, above in parent.items() if above in tree} - tree
        if not more:
            return tree
        tree |= more


def cpu_s(pid):
    """CPU seconds of a process: its living threads exactly (/proc/PID/stat counts in ticks of 10 ms,
    too coarse for what takes 0.1 %), and in ticks what its children took that it has waited for."""
    ns = 0
    try:
        for thread in os.scandir(f"/proc/{pid}/task"):
            ns += int(Path(thread.path, "schedstat").read_text().split()[0])
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return ns / 1e9 + (int(fields[13]) + int(fields[14])) * TICK_S


def status_kb(pid, key):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
    except OSError:
        pass
    return None


def rollup_kb(pid):
    """Pss of a process; None if it has ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except OSError:
        pass
    return None


def name_of(pid):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "gone"
    words = [Path(w.decode(errors="replace")).name for w in words[:2]]
    return " ".join(w for w in words if w and not w.startswith("-"))


def look(tool):
    """Of each process of the tool: name, Pss, VmRSS and VmHWM in KiB."""
    rows = []
    for pid in with_descendants(tool.roots()):
        pss = rollup_kb(pid)
        if pss:
            rows.append({"process": name_of(pid), "pss_kb": pss, "rss_kb": status_kb(pid, "VmRSS"),
                         "hwm_kb": status_kb(pid, "VmHWM")})
    return rows


def written_bytes(pid):
    """Bytes that it caused to be sent to a disc."""
    try:
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            if line.startswith("write_bytes:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


class Account:
    """CPU of processes that may end while it is looked at: what was last seen of each counts."""

    def __init__(self, roots):
        self.roots = roots
        self.cpu, self.peak_kb = {}, {}
        self.lock = threading.Lock()

    def look(self):
        """CPU seconds up to now."""
        with self.lock:
            tree = with_descendants(self.roots())
            for pid in set(self.cpu) - tree if tree else ():
                del self.cpu[pid]  # its parent waited for it, and has it in its own figure
            for pid in tree:
                cpu, peak = cpu_s(pid), status_kb(pid, "VmHWM")
                if cpu is not None:
                    self.cpu[pid] = max(cpu, self.cpu.get(pid, 0))
                if peak:
                    self.peak_kb[pid] = max(peak, self.peak_kb.get(pid, 0))
            return sum(self.cpu.values())

    def peak_mb(self):
        """The peaks of all its processes, as if they had come together (VmHWM of each: ru_maxrss of a
        child begins with its parent's size)."""
        return sum(self.peak_kb.values()) / 1024


class Watcher(threading.Thread):
    """Looks often enough that the peak of a process that ends is not missed."""

    def __init__(self, account, every_s=0.1):
        super().__init__(daemon=True)
        self.account, self.every_s = account, every_s
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(self.every_s):
            self.account.look()

    def end(self):
        self.over.set()
        self.join()


class Usage(typing.NamedTuple):
    """Of programs that have ended, with all that they started and waited for: what the kernel has
    charged them with."""
    cpu_s: float
    n_switches: int


def usage_of(commands):
    """Run the commands side by side. Their Usage."""
    children = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 stdin=subprocess.DEVNULL) for c in commands]
    cpu, n_switches = 0.0, 0
    for child in children:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"{child.args}: exit status {child.returncode}")
        cpu += usage.ru_utime + usage.ru_stime
        n_switches += usage.ru_nvcsw + usage.ru_nivcsw
    return Usage(cpu, n_switches)


def run_all(commands):
    """Run the commands side by side. User and system CPU of all that they started, in seconds."""
    return usage_of(commands).cpu_s


def sleep_until(end):
    left = end - time.monotonic()
    if left > 0:
        time.sleep(left)
