# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Short processes of two users, and how many of their arguments a service has: execs.c says the truth."""
import subprocess
from pathlib import Path

from attacked import MALLORY, VICTOR, as_user
from machine import compile_program

KINDS = "spawn", "fork", "chain", "thread", "script", "long"


class Execs:
    """The program, in a folder that both users may read."""

    def __init__(self, build, folder):
        self.program, self.script = Path(folder) / "execs", Path(folder) / "script"
        self.program.write_bytes(Path(compile_program(build, "execs.c")).read_bytes())
        self.script.write_text(f"#!{self.program} script\n")
        for path in self.program, self.script:
            path.chmod(0o755)

    def start(self, uid, kind, count, cpu_us=0, sleep_ms=0, per_second=0):
        """Popen; its output is a line for each process that it starts."""
        words = "execs", kind, count, cpu_us, sleep_ms, per_second, self.script
        shell = 'program=$1; shift; name=$1; shift; exec -a "$name" "$program" "$@"'
        return subprocess.Popen(as_user(uid, "bash", "-c", shell, "bash", self.program, *words),
                                stdout=subprocess.PIPE, text=True)

    def run(self, kinds, count, *how):
        """The truth, a set of (pid, arguments): so many processes of each kind, of two users at once."""
        truth = set()
        for kind in kinds:
            both = [self.start(uid, kind, count // 2, *how) for uid in (MALLORY, VICTOR)]
            for process in both:
                lines = process.communicate()[0].splitlines()
                assert process.returncode == 0 and len(lines) == count // 2, (kind, process.returncode)
                truth |= {(int(pid), text) for pid, text in (line.split("\t") for line in lines)}
        return truth

    def stored(self, service, truth):
        """Of these processes, as root sees them: the pids of those with samples and their own arguments, of those
        with samples and no arguments, and rows with arguments of another one. One that has not begun its program has
        those of its parent, and one that execs itself has the same number each time."""
        rows = service.ask("hotspots", "--since", "-1h", "--by", "process", "--limit", "0")["rows"]
        numbers = {(pid, *text.split()[-2:]) for pid, text in truth}
        pids = {pid for pid, _ in truth}
        ours = [r for r in rows if (r["argv"] or "").startswith(f"{self.program} ")]
        return ({r["pid"] for r in ours if (r["pid"], r["argv"]) in truth},
                {r["pid"] for r in rows if r["pid"] in pids and not r["argv"] and r["comm"] in ("execs", "script")},
                [r for r in ours if (r["pid"], *r["argv"].split()[-2:]) not in numbers])


def losses(service):
    """Sum of all harts by cause, since the service began."""
    found = {}
    for row in service.ask("status")["loss"]:
        found[row["cause"]] = found.get(row["cause"], 0) + row["count"]
    return found
