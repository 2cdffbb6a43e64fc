# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""At which rate the kernel lets us sample, for tests that shall hold at any.

kernel.perf_event_max_sample_rate is 100,000 at first. Where interrupts of a PMU take long, the kernel
lowers it by steps while tests run, for everybody, down to its tick rate, and never raises it again.
At a limit L and a tick rate HZ it allows m = L/HZ samples in a tick, and an event that takes the m-th
is silent for the rest of the tick: samples are lost, what is in its group counts less, and the next
sample comes right after the tick, whatever runs there. Source: Linux 6.18, kernel/events/core.c,
__perf_event_account_interrupt and perf_sample_event_took.

mperf takes no rate that is throttled (machine_rate_max in daemon/kernel/machine.h; worked out here
again). So a test asks for rate_allowed(999) where it would ask for 999, and for samples_of(seconds, hz) at
least. Where the rate itself is its point it says @allowing() and names cpu-clock: other events
would have the kernel lower its limit again. A test that fails while the limit falls is run again
(tests/run)."""
import contextlib
import fcntl
import functools
import time
from pathlib import Path

from machine import by_itself, need_root, sysctl

LIMIT = Path("/proc/sys/kernel/perf_event_max_sample_rate")
SHARE = LIMIT.with_name("perf_cpu_time_max_percent")
# Source: Linux 6.18, kernel/events/core.c: DEFAULT_MAX_SAMPLE_RATE, DEFAULT_CPU_TIME_MAX_PERCENT.
LIMIT_AT_FIRST, SHARE_AT_FIRST = 100000, 25
# Of the rate at which ticks run out of samples: timers are late at times, and two may fall into one.
BELOW = 0.8
# Of a tick rate: where every sample makes its event silent, a period must still be much of a tick.
BELOW_TICKS = 0.4
STEPS_MAX = 5  # by which the kernel lowers its limit under one test; it has few to go
COARSE = 6  # CLOCK_MONOTONIC_COARSE moves at each tick. Source: Linux, include/uapi/linux/time.h


def ticks_a_second():
    return round(1 / time.clock_getres(COARSE))


def rate_limit():
    """What the kernel allows now."""
    return int(LIMIT.read_text()) if LIMIT.exists() else LIMIT_AT_FIRST


def rate_allowed(hz, limit=None):
    """The highest rate up to hz at which nothing is throttled; at limits of one sample a tick, where
    all is, one at which samples still fall anywhere."""
    ticks = ticks_a_second()
    in_a_tick = -(-(limit or rate_limit()) // ticks)
    most = BELOW * (in_a_tick - 1) * ticks if in_a_tick > 1 else BELOW_TICKS * ticks
    return min(hz, int(most) - 1)  # less one: no multiple of the tick rate, nor a part of it


def rate_granted(hz):
    """The rate at which mperf samples when it is asked for hz, and which it names, now."""
    return min(rate_allowed(hz), rate_limit())


def long_enough(ms, hz=999):
    """How long a program should run at rate_allowed(hz) that runs for ms at hz: not for as many samples,
    but for enough."""
    return round(ms * min(max(hz / rate_allowed(hz) / 2, 1), 5))


def samples_of(seconds, hz):
    """What a program that has had so much of processors is sampled at least, if hz was asked for.
    At a limit of one sample a tick each may cost the rest of a tick; half of the rest is left to chance and
    to the machine."""
    period = 1 / rate_granted(hz)
    if rate_limit() <= ticks_a_second():
        period += 1 / ticks_a_second()
    return 0.5 * seconds / period


@contextlib.contextmanager
def limited_to(limit):
    """The kernel's limit for a while; what it was comes back whatever happens. Only for what runs by
    itself; tests of another checkout wait, or they would put back what is not theirs."""
    need_root()
    with contextlib.ExitStack() as stack:
        if LIMIT.exists():
            fcntl.flock(stack.enter_context(open(LIMIT, encoding="ascii")), fcntl.LOCK_EX)
        # At 0 and at 100 the kernel refuses to set the limit, and would to put it back.
        if SHARE.exists() and SHARE.read_text().strip() in ("0", "100"):
            stack.enter_context(sysctl("kernel.perf_cpu_time_max_percent", SHARE_AT_FIRST))
        stack.enter_context(sysctl("kernel.perf_event_max_sample_rate", limit))
        yield


def at_one_limit(test, build):
    """Runs a test; again where it failed while the kernel lowered its limit: what was asked for at the
    begin was not allowed at the end."""
    for _ in range(STEPS_MAX):
        limit = rate_limit()
        try:
            return test(build)
        except AssertionError as error:
            if rate_limit() >= limit:
                raise
            print(f"  again, for the kernel lowered its limit from {limit} to {rate_limit()}: {error}",
                  flush=True)
    return test(build)


def allowing(limit=LIMIT_AT_FIRST):
    """A test that runs by itself while the kernel's limit is this one."""
    def decorate(test):
        @by_itself(f"it sets the rate that the kernel allows to {limit}")
        @functools.wraps(test)
        def limited(build):
            def once(build):
                LIMIT.write_text(f"{limit}\n")  # also when it runs again
                test(build)
            with limited_to(limit):
                at_one_limit(once, build)
        return limited
    return decorate
