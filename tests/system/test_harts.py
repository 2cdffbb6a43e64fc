# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Harts that go and come back."""
import contextlib
import os
import signal
import time
from pathlib import Path

from machine import Skip, leave_to_plain, need_root, rows
from running import running, spinners

BY_ITSELF = "it switches a hart off"


# --- harts that come and go ----------------------------------------------------------------------

@contextlib.contextmanager
def second_hart():
    """A function that switches hart 1 off and on; it is on again whatever happens."""
    need_root()
    switch = Path("/sys/devices/system/cpu/cpu1/online")
    if not switch.exists() or switch.read_text().strip() != "1":
        raise Skip("hart 1 cannot be switched off here")
    try:
        switch.write_text("0")
        switch.write_text("1")
    except OSError as error:
        raise Skip(f"hart 1 cannot be switched off here: {error.strerror}") from None
    try:
        yield lambda on: switch.write_text("1" if on else "0")
    finally:
        switch.write_text("1")


def bounce(build, off_seconds):
    """Record while hart 1 goes away and comes back."""
    with second_hart() as switch, spinners(build, 2 * os.cpu_count()), \
            running(build, "record", "-a", "-F", "499", "-o", "r") as r:
        time.sleep(1.2)
        switch(False)
        off = time.time()
        time.sleep(off_seconds)
        switch(True)
        on = time.time()
        time.sleep(2.3)
        r.client.send_signal(signal.SIGINT)
        done = r.end()
        assert done.returncode == 0, done
        path = r.folder / "r"
        return (rows(build, "hotspots", "-i", path, "--by", "hart", "--until", f"@{off - 1:.3f}"),
                rows(build, "hotspots", "-i", path, "--by", "hart", "--since", f"@{on + 1.2:.3f}"),
                rows(build, "hotspots", "-i", path, "--by", "hart"))


def check_bounce(before, after, whole):
    for found in before, after:
        harts = {r["hart"]: r["samples"] for r in found["rows"]}
        assert harts.get(0, 0) > 50 and harts.get(1, 0) > 50, (before["rows"], after["rows"], whole)
    assert whole["provenance"]["lost"].get("hart came or went", 0) >= 2, whole["provenance"]


def test_a_hart_that_goes_away_and_comes_back_is_sampled_again(build):
    check_bounce(*bounce(build, 1.3))


def test_a_hart_that_is_away_for_an_instant_is_sampled_again(build):
    leave_to_plain(build, "the test above takes a hart away with sanitizers")
    check_bounce(*bounce(build, 0.05))
