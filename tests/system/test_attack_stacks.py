# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies of stacks hold what their owners show nobody: once callers are found it is in no file, and in no memory of
the daemon but the kernel's rings. Their pages cannot be written to, are in no core file, and are used again."""
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from attacked import VICTOR, UnitService, as_user
from machine import Folder, compile_program
from running import children, wait_until
from service import PATIENCE_S

# Of stack_secret.c.
SECRET = b"Pa55w0rd-of-Vic!"


def readable(pid):
    """(address, bytes) of each readable mapping of a process."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights = line.split()[:2]
            start, end = (int(n, 16) for n in span.split("-"))
            if rights[0] != "r" or line.endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]", "[perf_event]")):
                continue
            for at in range(start, end, 1 << 20):
                try:
                    memory.seek(at)
                    yield at, memory.read(min(1 << 20, end - at))
                except (OSError, ValueError):  # such as pages of a ring that the kernel has not made
                    break


def places_of(pid):
    return [f"{pid}: {at:x}" for at, found in readable(pid) if SECRET in found]


def test_a_secret_on_a_stack_is_in_no_file_and_in_no_memory_of_the_daemon(build):
    with Folder() as folder, UnitService(build, folder, flush="1s", rate="499", callers="tables",
                                         overhead="none") as stage:
        program = stage.folder / "victim"
        shutil.copy(compile_program(build, "stack_secret.c", "-fomit-frame-pointer"), program)
        with subprocess.Popen(as_user(VICTOR, program)) as victim:
            try:
                def with_callers():
                    done = stage.user(VICTOR, "flamegraph", "--folded", "--since", "-1h", "--pid", victim.pid)
                    return done.returncode == 0 and "hold;hold;hold" in done.stdout
                wait_until(with_callers, PATIENCE_S, "stacks of the victim, whole")
                os.kill(victim.pid, signal.SIGSTOP)
                time.sleep(2)  # drains and a flush
                assert places_of(victim.pid), "the test looks for what is not there"
                daemon = stage.process.pid
                wait_until(lambda: not places_of(daemon), PATIENCE_S,
                           "the secret gone from mperfd's memory")
                workers = children(daemon)
                assert len(workers) >= 2, workers
                assert not [place for pid in workers for place in places_of(pid)]
                for path in filter(Path.is_file, stage.folder.rglob("*")):
                    assert SECRET not in path.read_bytes(), path
                limits = Path(f"/proc/{daemon}/limits").read_text()
                assert "Max core file size        0                    0" in limits, limits
            finally:
                victim.kill()
