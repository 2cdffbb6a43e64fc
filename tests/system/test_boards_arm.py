# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arm boards, as test_boards.py has RISC-V ones: identity, counting, and sampling by QEMU's PMU.

They need a Debian of their own, so that only make check-boards-arm boots them.
"""
import functools
import os

from test_boards import (DIRECT, EXACT, answer, are_built_for, counters_are_read_directly,
                         counts_exactly, on_a_board)
from guest import Guest
from machine import Skip
from test_depth import boards_script, boards_stacks_are


def on_an_arm_board(test):
    @functools.wraps(test)
    def run(build):
        if os.environ.get("MPERF_BOARDS") != "arm":
            raise Skip("booted by make check-boards-arm")
        on_a_board(test)(build)
    return run


def is_profiled(build, cpu, midr):
    """The core is what it says, counts to the instruction, and its cycles lead."""
    said = Guest(build, arch="arm64", cpu=cpu, harts=1).run("""
        section identity cat /sys/devices/system/cpu/cpu0/regs/identification/midr_el1
        section doctor mperfctl doctor --json""" + EXACT)
    assert int(said["identity"].text, 16) == midr, said["identity"]
    answer(said["doctor"])
    counts_exactly(said)


@on_an_arm_board
def test_programs_and_package_are_built_for_arm(build):
    are_built_for(build, "arm64")


@on_an_arm_board
def test_neoverse_n1_counts_and_samples(build):
    is_profiled(build, "neoverse-n1", 0x414FD0C1)  # r4p1


@on_an_arm_board
def test_cortex_a72_counts_and_samples(build):
    is_profiled(build, "cortex-a72", 0x410FD083)  # r0p3


@on_an_arm_board
def test_programs_read_their_counters_without_system_calls(build):
    said = Guest(build, arch="arm64", cpu="neoverse-n1", harts=1,
                 sources=("direct.c", "regions.c")).run(DIRECT)
    counters_are_read_directly(said, counts=True)


@on_an_arm_board
def test_stacks_of_known_depth_are_complete_or_cut_where_they_must_be(build):
    """Return addresses are signed: the program is built with it, and that core does it."""
    said = Guest(build, arch="arm64", cpu="max,pauth=on", harts=1, sources=("depth.c",)).run(boards_script())
    boards_stacks_are(said, "arm64")
