# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each fault of `make faults` that takes no half minute, once: so that they do not rot."""
import subprocess
import sys

from attacked import need_plain
from machine import ROOT, by_itself, need_root

SECONDS = 60
TIMES = 1


def held(build, fault, times=TIMES):
    """The fault's line says that what must hold did."""
    need_root()
    need_plain(build)
    done = subprocess.run([sys.executable, ROOT / "tests" / "faults" / "run", build, "--times",
                           str(times), "--match", f"^{fault}$"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=600)
    print(done.stdout)
    assert done.returncode == 0 and " held: " in done.stdout, done.stdout


def test_a_daemon_that_is_killed_opens_its_store_again(build):
    held(build, "daemon-killed")


def test_an_opener_that_is_killed_comes_again(build):
    held(build, "opener-killed")


def test_a_parser_that_is_killed_comes_again(build):
    held(build, "parser-killed")


def test_a_loop_that_hangs_is_seen_by_the_watchdog(build):
    held(build, "watchdog", 1)


@by_itself("each mperfd of the machine reads its mappings, which takes one with sanitizers many seconds")
def test_a_process_of_very_many_mappings_is_sampled_and_costs_no_samples(build):
    held(build, "mappings", 1)


def test_a_damaged_segment_is_refused_or_answers_as_before(build):
    held(build, "damage", 3)
