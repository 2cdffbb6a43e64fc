# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What changes the machine for all that run on it: clock and harts. Only where it is asked for."""
import os
import time

from machine import Skip
from scene import Result, Scene, account, ask, check_account, check_segments
from service import wait_until
from test_harts import second_hart

STEP_SECONDS = 1800  # of the clock: beyond any window, within an hour's file


def step(seconds):
    """Set CLOCK_REALTIME, this far from what it would be without us."""
    true = step.anchor + time.monotonic() if hasattr(step, "anchor") else time.time()
    time.clock_settime(time.CLOCK_REALTIME, true + seconds)


def fault_clock(build, times):
    """The clock is set forward, back, and right again: windows go by the monotonic one."""
    if os.environ.get("MPERF_MACHINE") != "1":
        raise Skip("it sets the machine's clock; MPERF_MACHINE=1 allows it")
    with Scene(build) as scene:
        service = scene.service.start()
        step.anchor = time.time() - time.monotonic()
        try:
            try:
                step(0)
            except PermissionError:
                raise Skip("may not set the clock") from None
            for i in range(times):
                before = account(service)
                step(STEP_SECONDS if i % 2 == 0 else -STEP_SECONDS)
                wait_until("samples are stored after a step",
                           lambda: account(service)["stored"] > before["stored"])
                step(0)
                check_account(service)
        finally:
            step(0)
        scene.new_function()
        now = check_account(service)
        assert now["lost"] == 0, now
        assert service.stop() == 0, service.said()[-2000:]
        files, _, _ = check_segments(service)
    return Result(times, now["taken"], now["lost"], f"{files} segments, all sound")


def fault_hart(build, times):
    """A hart goes and comes back: it is sampled again, and what it had is counted."""
    if os.environ.get("MPERF_MACHINE") != "1":
        raise Skip("it switches a hart off; MPERF_MACHINE=1 allows it")
    with second_hart() as switch, Scene(build) as scene:
        service = scene.service.start()

        def of_hart():
            return sum(row["samples"] for row in ask(service, "hotspots", "--by", "hart")["rows"]
                       if row["hart"] == 1)

        for _ in range(times):
            switch(False)
            taken = account(service)["taken"]
            wait_until("the others are sampled", lambda: account(service)["taken"] > taken)
            switch(True)
            before = of_hart()
            wait_until("it is sampled again", lambda: of_hart() > before)
            check_account(service)
        now = check_account(service)
        assert service.stop() == 0, service.said()[-2000:]
        check_segments(service)
    return Result(times, now["taken"], now["lost"], "sampled again each time")
