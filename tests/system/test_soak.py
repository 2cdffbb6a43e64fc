# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The service stays as small as it was: tests/bench/soak, shortened."""
import subprocess
import sys

from machine import ROOT, Skip, need_program, need_root

SECONDS = 40
WAITS = "minutes of a service at rest"


def test_memory_is_flat_after_the_warm_up(build):
    need_root()
    need_program("sqlite3")
    if build.name == "asan":
        raise Skip("shown by the plain run; a sanitizer keeps what was freed")
    done = subprocess.run([sys.executable, ROOT / "tests" / "bench" / "soak", build, "--seconds",
                           str(SECONDS)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=SECONDS * 10)
    print(done.stdout)
    if "perf_event_open" in done.stdout:
        raise Skip(f"nothing can be sampled here: {done.stdout}")
    assert done.returncode == 0, done.stdout
    assert "mperfd: " in done.stdout and "namer: " in done.stdout, done.stdout


def test_growth_is_told_from_noise(build):
    """The judge itself: a leak is seen, a saw-tooth and a late start are not."""
    sys.path.insert(0, str(ROOT / "tests" / "bench"))
    import slope
    leak = [(t, 10_000 + 50 * t, 20_000) for t in range(400)]
    saw = [(t, 10_000 + 900 * (t % 17), 20_000 - 300 * (t % 5)) for t in range(400)]
    start = [(t, min(10_000, 200 * t), 20_000) for t in range(400)]
    assert slope.judge(leak, 400) == 1
    assert slope.judge([(t, n, own) for t, own, n in leak], 400) == 1
    assert slope.judge(saw, 400) == 0
    assert slope.judge(start, 400) == 0
