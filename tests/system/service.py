# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A real mperfd service for a test: its own configuration, socket and store in a scratch folder."""
import json
import signal
import subprocess
import time
from pathlib import Path

from machine import BAD_WORDS, mperfctl, need_root

PATIENCE_S = 60  # for what takes a moment; a loaded machine under sanitizers is slow


def wait_until(what, condition, seconds=PATIENCE_S):
    """Poll until condition() is true, and return what it gave."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain: {what}")
        time.sleep(0.05)


class Service:
    """with Service(build, folder, flush="1s") as service: … keys of mperf.conf by their name, hyphens
    as underscores; `sections` for those that are not in [store]."""

    SECTION = {"rate": "sampling", "top-rate": "sampling", "rate-max": "sampling",
               "callers": "sampling", "job-environment": "sampling", "overhead": "sampling",
               "topdown-groups": "sampling", "waiting": "sampling", "socket": "control", "group": "control",
               "clients-max": "control", "clients-per-user-max": "control",
               "requests-per-second-max": "control", "queries-max": "control",
               "client-bytes-max": "control",
               "feed": "feed", "period": "feed", "programs-max": "feed",
               "programs-per-user-max": "feed", "program-bytes-max": "feed",
               "feed-bytes-max": "feed", "region-events": "feed",
               **{f"debuginfod{key}": "naming" for key in ("", "-cache", "-cache-bytes", "-socket")}}

    def __init__(self, build, folder, **keys):
        need_root()
        self.build, self.folder = Path(build), Path(folder)
        self.socket = self.folder / "socket"
        self.feed = self.folder / "feed"
        self.store = self.folder / "store"
        self.config = self.folder / "mperf.conf"
        self.log = self.folder / "log"
        # Tests run beside others and with sanitizers: what they test is not given up for the budget, and of the
        # programs of all others no tables are made. Tests of callers, of stacks and of the package have them.
        self.keys = {"path": self.store, "socket": self.socket, "overhead": "none",
                     "feed": self.feed, "min_free": "0", "callers": "fp", **keys}
        self.process = None

    def write_config(self, **keys):
        """As editors do: another file takes the place of the old one, which is never seen half."""
        self.keys.update(keys)
        sections = {}
        for key, value in self.keys.items():
            key = key.replace("_", "-")
            sections.setdefault(self.SECTION.get(key, "store"), []).append(f"{key} = {value}")
        part = self.config.with_suffix(".part")
        part.write_text("".join(f"[{name}]\n" + "\n".join(lines) + "\n"
                                for name, lines in sections.items()))
        part.rename(self.config)

    def command(self):
        return [self.build / "mperfd", "--foreground", f"--config={self.config}"]

    def start(self, ready=True, **popen):
        self.write_config()
        before = self.said().count("mperfd: ready")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stderr=log, stdout=log, stdin=subprocess.DEVNULL, **popen)
        if ready:
            wait_until("the service is ready", lambda: self.is_ready(before))
        return self

    def is_ready(self, before):
        if self.process.poll() is not None:
            raise AssertionError(f"mperfd ended with {self.process.returncode}\n{self.said()}")
        return self.said().count("mperfd: ready") > before

    def said(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def ctl(self, *arguments, **options):
        """mperfctl against this service."""
        environment = {"MPERF_SOCKET": str(self.socket), **options.pop("env", {})}
        return mperfctl(self.build, *arguments, env=environment, **options)

    def ask(self, *arguments, **options):
        """The answer of a command as parsed JSON."""
        return json.loads(self.ctl(*arguments, "--json", **options).stdout)

    def hears(self, pid):
        """Wait until a program tells of itself. It connects when it first counts, and its first round
        may have begun before all was counted of which the caller knows; whoever asks after this
        has it all."""
        wait_until(f"process {pid} tells of itself", lambda: self.ask("roofline", "--pid", pid)["rows"])

    def stop(self):
        """End it as systemd does; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"mperfd did not end\n{self.said()}") from None
        said = self.said()
        if any(word in said for word in BAD_WORDS):
            raise AssertionError(said)


def start_of(pid):
    """When a process began, in clock ticks: with the pid it names the process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def children_of(pid):
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and
            _parent(p) == pid]


def _parent(path):
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
