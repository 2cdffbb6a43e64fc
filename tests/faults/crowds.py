# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many processes, and one of many mappings."""
import subprocess
import time
from pathlib import Path

from attacked import MALLORY, as_user
from machine import compile_program
from scene import Result, Scene, account, ask, check_account, functions
from service import wait_until
from test_service import number

PROCESSES_A_MINUTE = 10000
MAPPINGS = 100000
MAPPINGS_SYSCTL = Path("/proc/sys/vm/max_map_count")


def fault_processes(build, times):
    """10,000 short processes, as in a minute of a build: all that was sampled is stored or counted,
    and has a process."""
    with Scene(build) as scene:
        service = scene.service.start()
        begin = time.monotonic()
        for _ in range(times):
            for i in range(100):
                subprocess.run(as_user(MALLORY, scene.known, "processes", PROCESSES_A_MINUTE // 100),
                               check=True, stdout=subprocess.DEVNULL)
                if i % 10 == 0:
                    check_account(service)
        seconds = time.monotonic() - begin
        scene.new_function()
        now = check_account(service)
        resident = max(row["rss"] or 0 for row in ask(service, "status")["process"]
                       if row["what"] == "daemon")
        assert service.stop() == 0, service.said()[-2000:]
        path = sorted((service.store / "window").glob("*.mprf"))[-1]
        tasks = number(path, "SELECT count(*) FROM task WHERE comm = 'known'")
    return Result(times, now["taken"], now["lost"],
                  f"{times * PROCESSES_A_MINUTE / seconds * 60:,.0f} a minute, {tasks} of them "
                  f"sampled, daemon {resident >> 20} MB")


def misses_no_samples_for_them(service):
    """Mappings beyond the service's limit are no samples: those are stored, without names."""
    found = [row for row in ask(service, "status")["loss"] if row["cause"] == "memory limit"]
    assert not found, found


def fault_mappings(build, times):
    """A process with 100,000 mappings of code, or as many as this kernel grants: it and others are
    sampled and named."""
    program = compile_program(build, "../faults/mappings.c")
    got = 0
    with Scene(build) as scene:
        crowded = scene.place / "mappings"
        subprocess.run(["cp", program, crowded], check=True)
        service = scene.service.start()
        for _ in range(times):
            process = subprocess.Popen(
                as_user(MALLORY, "setpriv", "--pdeathsig=KILL", crowded, str(MAPPINGS)),
                stdout=subprocess.PIPE, text=True, cwd="/")
            try:
                got = int(process.stdout.readline())
                wait_until("it is sampled and named", lambda: "mapped" in functions(service))
                scene.new_function()
                check_account(service)
                misses_no_samples_for_them(service)
            finally:
                process.kill()
                process.wait()
        # one that has them before the service looks
        taken = account(service)
        process = subprocess.Popen(
            as_user(MALLORY, "setpriv", "--pdeathsig=KILL", crowded, str(MAPPINGS)),
            stdout=subprocess.PIPE, text=True, cwd="/")
        try:
            process.stdout.readline()
            assert service.stop() == 0, service.said()[-2000:]
            service.start()
            scene.new_function()
            now = check_account(service)
        finally:
            process.kill()
            process.wait()
    return Result(times, taken["taken"] + now["taken"], taken["lost"] + now["lost"],
                  f"{got:,} mappings"
                  + ("" if got >= MAPPINGS else f" (vm.max_map_count is {int(MAPPINGS_SYSCTL.read_text()):,})"))
